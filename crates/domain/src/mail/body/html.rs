//! Plain text of an HTML body. What the markup says about history and signatures is said in the way of plain text: `> ` before quoted lines, a
//! line of dashes before history, and `--` before a signature.

use crate::text::{html_to_marked_text, normalise};

const QUOTE: char = '\u{fdd0}';
const QUOTE_END: char = '\u{fdd1}';
const SIGNATURE: char = '\u{fdd2}';
/// From here on everything is history.
const HISTORY: char = '\u{fdd3}';

/// Classes of elements that quote another letter.
const QUOTES: [&str; 9] = [
    "gmail_quote",
    "gmail_quote_container",
    "yahoo_quoted",
    "protonmail_quote",
    "tutanota_quote",
    "zmail_extra",
    "moz-cite-prefix",
    "ms-outlook-mobile-reference-message",
    "hey_quote",
];
const SIGNATURES: [&str; 8] = [
    "gmail_signature",
    "moz-signature",
    "applemailsignature",
    "protonmail_signature_block",
    "ms-outlook-mobile-signature",
    "signature",
    "x_signature",
    "yahoo-signature",
];
/// Ids of elements after which history begins, in Outlook's programs.
const HISTORIES: [&str; 6] = [
    "divrplyfwdmsg",
    "appendonsend",
    "mail-editor-reference-message-container",
    "stopspelling",
    "reply-intro",
    "outlookmessageheader",
];

/// Returns the plain text of an HTML body, with the words of links and with tables.
pub fn from_html(html: &str) -> String {
    let marked = html_to_marked_text(html, mark);
    let lines: Vec<&str> = marked.lines().collect();
    // For each line, the next one with words.
    let mut next = vec![""; lines.len()];
    let mut following = "";
    for (n, line) in lines.iter().enumerate().rev() {
        next[n] = following;
        if !line.trim().is_empty() && !matches!(*line, LINE_OF_QUOTE | LINE_OF_QUOTE_END) {
            following = line;
        }
    }
    let mut text = String::with_capacity(marked.len());
    // Whether each open quote is shown as one. A forwarded letter is not.
    let mut quotes: Vec<bool> = Vec::new();
    let (mut is_history, mut is_after_blank, mut last_depth) = (false, false, 0);
    for (line, next) in lines.into_iter().zip(next) {
        match line.chars().next() {
            Some(QUOTE) => quotes.push(!super::history::is_forward(next) && !is_history),
            Some(QUOTE_END) => {
                quotes.pop();
            }
            Some(SIGNATURE) if next.trim() != "--" && !next.starts_with(SIGNATURE) => text.push_str("--\n"),
            Some(HISTORY) if !is_history && quotes.iter().all(|is_shown| !is_shown) => {
                is_history = true;
                if !super::history::is_original(next) {
                    text.push_str("-----Original Message-----\n");
                }
            }
            Some(SIGNATURE | HISTORY) => {}
            _ if line.trim().is_empty() => is_after_blank = true,
            _ => {
                let depth = quotes.iter().filter(|is_shown| **is_shown).count().min(MOST_DEPTH);
                if std::mem::take(&mut is_after_blank) {
                    text.push_str(&"> ".repeat(depth.min(last_depth)));
                    text.push('\n');
                }
                text.push_str(&"> ".repeat(depth));
                text.push_str(line);
                text.push('\n');
                last_depth = depth;
            }
        }
    }
    normalise(&text)
}

const LINE_OF_QUOTE: &str = "\u{fdd0}";
const LINE_OF_QUOTE_END: &str = "\u{fdd1}";
/// Deeper quotes look like this depth, so that the text does not grow with the square of it.
const MOST_DEPTH: usize = 5;

fn mark(name: &str, attribute: &dyn Fn(&str) -> Option<String>) -> Option<(char, Option<char>)> {
    if !matches!(name, "div" | "blockquote" | "span" | "p" | "pre" | "hr" | "table") {
        return None;
    }
    let lower = |name: &str| attribute(name).unwrap_or_default().to_lowercase();
    let id = lower("id");
    if HISTORIES.contains(&id.trim_start_matches("x_")) {
        return Some((HISTORY, None));
    }
    let classes = lower("class");
    let has = |known: &[&str]| classes.split_whitespace().any(|class| known.contains(&class));
    let is_cite = name == "blockquote" && (lower("type") == "cite" || !lower("cite").is_empty());
    if is_cite || has(&QUOTES) || QUOTES.contains(&id.as_str()) {
        return Some((QUOTE, Some(QUOTE_END)));
    }
    (name != "hr" && (has(&SIGNATURES) || SIGNATURES.contains(&id.as_str()))).then_some((SIGNATURE, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_markup_of_mail_programs_is_said_in_plain_text() {
        for (what, html, expected) in [
            (
                "Gmail",
                "<div dir=ltr>Yes, Friday.<div class=gmail_signature>Ann</div></div><br><div class='gmail_quote'>\
                 <div class='gmail_attr'>On Tue, 3 Mar 2026 at 10:00, Bob wrote:<br></div>\
                 <blockquote class='gmail_quote'><div>When?</div></blockquote></div>",
                "Yes, Friday.\n--\nAnn\n\n> On Tue, 3 Mar 2026 at 10:00, Bob wrote:\n>\n> > When?",
            ),
            (
                "Gmail, forwarded",
                "<div>FYI</div><div class='gmail_quote'><div class=gmail_attr>---------- Forwarded message ---------<br>\
                 From: Bob</div><p>Words</p></div>",
                "FYI\n---------- Forwarded message ---------\nFrom: Bob\n\nWords",
            ),
            (
                "Apple Mail",
                "<p>Yes</p><blockquote type=cite><div>On 3 Mar 2026, at 10:00, Bob wrote:</div><div>When?</div></blockquote>",
                "Yes\n\n> On 3 Mar 2026, at 10:00, Bob wrote:\n> When?",
            ),
            (
                "Thunderbird",
                "<p>Yes</p><div class=moz-cite-prefix>On 3/3/26 10:00, Bob wrote:</div><blockquote type=cite cite='mid:a@b'>\
                 <p>When?</p></blockquote><p>Below</p><pre class=moz-signature cols=72>-- \nAnn</pre>",
                "Yes\n\n> On 3/3/26 10:00, Bob wrote:\n>\n> When?\n\nBelow\n\n--\nAnn",
            ),
            (
                "Outlook on the web",
                "<div>Yes</div><div id=appendonsend></div><hr><div id='divRplyFwdMsg'><b>From:</b> Bob<br><b>Sent:</b> Tuesday</div>\
                 <div>When?</div>",
                "Yes\n-----Original Message-----\n\nFrom: Bob\nSent: Tuesday\nWhen?",
            ),
            ("a plain quote of a book stays", "<blockquote>To be or not</blockquote>", "To be or not"),
            ("marks of the page itself", "a\u{fdd0}b<p>&#xfdd0;</p>c", "ab\n\nc"),
            ("unclosed", "a<blockquote type=cite>b", "a\n\n> b"),
            ("closed twice", "<blockquote type=cite>b</blockquote></blockquote>c", "> b\n\nc"),
            ("an empty signature", "a<div class=gmail_signature></div>", "a\n--"),
            (
                "a table",
                "<table><tr><td>No</td><td>Sum</td></tr><tr><td>1</td><td>10</td></tr></table>",
                "No | Sum\n1 | 10",
            ),
        ] {
            assert_eq!(from_html(html), expected, "{what}");
        }
    }

    #[test]
    fn deep_quotes_make_no_long_lines() {
        let html = "<blockquote type=cite>a".repeat(10_000);
        assert!(from_html(&html).len() < 400_000);
    }
}
