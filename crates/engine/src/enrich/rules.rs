//! Summaries and facts without a model: the summary is the beginning of a text, and facts are recognised by their form.

use domain::normal_email;
use serde_json::{Value, json};

const SUMMARY_CHARS: usize = 280;
const MOST_FACTS: usize = 20;
const SYMBOLS: &str = "€$£";
const CURRENCIES: [&str; 5] = ["EUR", "USD", "GBP", "CHF", "JPY"];

/// Makes an activity's `processed_data` by rules.
pub fn process(raw_data: &Value) -> Value {
    of_text(field(raw_data, "subject"), &text_of(raw_data))
}

/// Makes it for a transcript.
pub fn of_text(subject: &str, text: &str) -> Value {
    json!({ "summary": summary(subject, text), "facts": facts(text) })
}

/// Returns the text of an activity, without markup.
pub(super) fn text_of(raw_data: &Value) -> String {
    let content = field(raw_data, "content");
    if field(raw_data, "format").contains("html") {
        domain::text::html_to_text(content).1
    } else {
        domain::text::normalise(content)
    }
}

pub(super) fn field<'a>(raw_data: &'a Value, name: &str) -> &'a str {
    raw_data.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the subject and the first sentences that fit.
fn summary(subject: &str, content: &str) -> String {
    let flat = content.split_whitespace().collect::<Vec<_>>().join(" ");
    let begins = match flat.char_indices().nth(SUMMARY_CHARS) {
        None => flat,
        Some((end, _)) => {
            let head = &flat[..end];
            let cut = head.rfind(". ").map(|at| at + 1).or_else(|| head.rfind(' ')).unwrap_or(end);
            format!("{}…", head[..cut].trim_end_matches('.'))
        }
    };
    [subject.trim(), begins.trim()].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
}

/// Finds addresses, links, amounts and document numbers, each once, in the order of the text.
fn facts(content: &str) -> Vec<String> {
    let mut facts = Vec::new();
    let mut words = content.split_whitespace().map(bare).peekable();
    while let Some(word) = words.next() {
        let fact = if word.starts_with("https://") || word.starts_with("http://") {
            format!("links to {word}")
        } else if let Some(address) = address(word) {
            format!("mentions the address {address}")
        } else if is_amount(word) {
            format!("names the amount {word}")
        } else if let Some(currency) = words.peek().filter(|next| CURRENCIES.contains(next) && is_number(word)) {
            format!("names the amount {word} {currency}")
        } else if is_numbered(word) {
            format!("refers to {word}")
        } else {
            continue;
        };
        if !facts.contains(&fact) {
            facts.push(fact);
        }
        if facts.len() == MOST_FACTS {
            break;
        }
    }
    facts
}

/// An e-mail address in its normal form. A domain without a dot is a user's name in some program.
fn address(word: &str) -> Option<String> {
    normal_email(word).filter(|address| address.rsplit_once('@').is_some_and(|(_, domain)| domain.contains('.')))
}

/// Removes the punctuation around a word.
fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric() && !SYMBOLS.contains(c))
}

fn is_amount(word: &str) -> bool {
    let number = word.trim_matches(|c| SYMBOLS.contains(c));
    number.len() < word.len() && is_number(number)
}

fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit()) && word.chars().all(|c| c.is_ascii_digit() || ",.".contains(c))
}

/// Whether a word is letters, a dash and digits: the number of an invoice, a ticket or an order.
fn is_numbered(word: &str) -> bool {
    let Some((letters, digits)) = word.split_once('-') else { return false };
    (2..=6).contains(&letters.len())
        && letters.chars().all(|c| c.is_ascii_uppercase())
        && (2..=12).contains(&digits.len())
        && digits.chars().all(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_form_becomes_a_fact_once() {
        let text = "Dear all, invoice INV-2041 (see INV-2041) over €1,200.50 (1,310.00 USD) is due. Ask Ann@Acme.com, or https://acme.com/pay. A-1 no, root@localhost no.";
        let done = process(&json!({ "source_type": "text", "subject": "Reminder", "content": text }));
        let facts: Vec<&str> = done["facts"].as_array().expect("facts").iter().filter_map(Value::as_str).collect();
        assert_eq!(
            facts,
            [
                "refers to INV-2041",
                "names the amount €1,200.50",
                "names the amount 1,310.00 USD",
                "mentions the address ann@acme.com",
                "links to https://acme.com/pay"
            ]
        );
        assert!(done["summary"].as_str().is_some_and(|summary| summary.starts_with("Reminder: Dear all")));
    }

    #[test]
    fn a_long_text_is_summed_up_by_its_first_sentences() {
        let done = process(&json!({ "content": "One two three. ".repeat(100) }));
        let summary = done["summary"].as_str().expect("a summary");
        assert!(summary.chars().count() <= SUMMARY_CHARS + 1 && summary.ends_with("three…"), "{summary}");
        assert_eq!(process(&json!({ "content": "" }))["summary"], "");
    }

    #[test]
    fn forms_are_recognised_and_their_likes_are_not() {
        type Case<'a> = (fn(&str) -> bool, &'a [&'a str], &'a [&'a str]);
        let cases: [Case; 4] = [
            (
                |word| address(word).is_some(),
                &["a@b.de", "ann.lee+x@acme.co.uk", "ü@bücher.de"],
                &["", "@b.de", "a@", "a@b", "a@b.", "a b@c.de", "a@b@c.de"],
            ),
            (is_amount, &["€5", "5€", "$1,200.50", "£0.99"], &["", "5", "€", "€five", "$.50", "€-5"]),
            (is_number, &["5", "1,200", "1.5"], &["", ",5", "5a", "-5", "٥"]),
            (
                is_numbered,
                &["INV-2041", "PO-12", "TICKET-123456789012"],
                &["", "A-1", "inv-2041", "INV-1", "INVOICES-12", "INV-20A1", "INV2041"],
            ),
        ];
        for (nth, (is_one, good, bad)) in cases.into_iter().enumerate() {
            for word in good {
                assert!(is_one(word), "rule {nth}: {word:?} was not recognised");
            }
            for word in bad {
                assert!(!is_one(word), "rule {nth}: {word:?} was taken for one");
            }
        }
        assert_eq!((bare("(€5),"), bare("\"a@b.de\"."), bare("...")), ("€5", "a@b.de", ""));
    }

    #[test]
    fn facts_end_at_twenty_and_odd_input_is_harmless() {
        let many = (10..60).map(|n| format!("INV-{n}")).collect::<Vec<_>>().join(" ");
        assert_eq!(facts(&many).len(), MOST_FACTS);
        for odd in [json!(null), json!({}), json!({ "content": 7, "subject": ["x"] }), json!("text")] {
            assert_eq!(process(&odd), json!({ "summary": "", "facts": [] }), "{odd}");
        }
    }

    #[test]
    fn markup_is_left_out_of_what_is_read() {
        let done =
            process(&json!({ "format": "text/html", "content": "<p>Pay <b>€5</b></p><script>alert(1)</script>" }));
        assert_eq!(done, json!({ "summary": "Pay €5", "facts": ["names the amount €5"] }));
        let plain = process(&json!({ "content": "a <b>" }));
        assert_eq!(plain["summary"], "a <b>");
    }

    #[test]
    fn a_text_without_sentences_or_blanks_is_cut_where_it_must_be() {
        let words = "word ".repeat(100);
        let cut = summary("", &words);
        assert!(cut.ends_with("word…") && cut.chars().count() <= SUMMARY_CHARS + 1, "{cut}");
        let solid = summary("", &"é".repeat(400));
        assert_eq!(solid.chars().count(), SUMMARY_CHARS + 1);
        assert_eq!((summary(" A ", ""), summary("A", " b\n c ")), ("A".into(), "A: b c".into()));
    }
}
