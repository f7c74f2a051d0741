//! Normalises texts, so that equal texts have equal hashes and PostgreSQL accepts all of them.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfc_quick};

/// Normalises to NFC. Line breaks of every kind become `\n`, NUL becomes U+FFFD, and other control characters except tabs are removed.
/// Lines have no trailing blanks, there is at most one empty line in a row, and the text is trimmed. Normalising twice changes nothing
/// more.
pub fn normalise(text: &str) -> String {
    let plain = without_controls(text); // before NFC, because the characters around a control character may compose
    let composed = match is_nfc_quick(plain.chars()) {
        IsNormalized::Yes => plain,
        _ => Cow::Owned(plain.nfc().collect()),
    };
    let mut out = String::with_capacity(composed.len());
    let mut empty_lines = 0;
    for line in composed.split('\n') {
        let line = line.trim_end_matches(is_blank);
        if line.is_empty() {
            empty_lines += 1;
            continue;
        }
        if !out.is_empty() {
            out.push_str(if empty_lines == 0 { "\n" } else { "\n\n" });
        }
        empty_lines = 0;
        out.push_str(if out.is_empty() { line.trim_start_matches(is_blank) } else { line });
    }
    out
}

/// A byte order mark counts as blank: many files begin with one, and it has no meaning.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == '\u{feff}'
}

fn without_controls(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| matches!(c, '\n' | '\t') || !(c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'));
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut after_return = false;
    for c in text.chars() {
        match c {
            '\n' if after_return => {}
            // Form feeds and similar characters separate words. Removing them would join the words.
            '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => out.push('\n'),
            '\0' => out.push('\u{fffd}'),
            c if is_plain(c) => out.push(c),
            _ => {}
        }
        after_return = c == '\r';
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

    use super::*;

    #[test]
    fn texts_come_out_in_one_form() {
        for (text, expected) in [
            ("", ""),
            (" \n\t\r\n ", ""),
            ("a\r\nb\rc\nd", "a\nb\nc\nd"),
            ("a\r\r\nb", "a\n\nb"),
            ("a\0b\u{1}c\u{7f}d\u{9f}e", "a\u{fffd}bcde"),
            ("page one\u{c}page two\u{2028}line", "page one\npage two\nline"),
            ("a  \t\nb\u{a0}\n", "a\nb"),
            ("a\n\n\n\n\nb\n \n\t\nc", "a\n\nb\n\nc"),
            ("  indented\n    more", "indented\n    more"),
            ("e\u{301}", "é"),
            ("e\u{1}\u{301}", "é"),
            ("\u{feff}\u{feff} text\u{feff}", "text"),
            ("a\tb", "a\tb"),
        ] {
            assert_eq!(normalise(text), expected, "of {text:?}");
        }
    }

    #[test]
    fn normalising_twice_changes_nothing_more() {
        let odd: Vec<char> = "a Z.\n\r\t\0\u{1}\u{b}\u{c}\u{1b}\u{7f}\u{85}\u{9f}\u{a0}\u{ad}\u{300}\u{301}\u{323}\u{338}e\u{1100}\u{1161}\u{11a8}\
             \u{200b}\u{200d}\u{2000}\u{2028}\u{2029}\u{202e}\u{212b}\u{2126}\u{0958}\u{fb1d}\u{fb2c}\u{feff}\u{fffd}\u{ffff}\u{1f600}\u{1d15e}\u{10ffff}#-"
            .chars()
            .collect();
        let mut rng = StdRng::seed_from_u64(7);
        for _ in 0..20_000 {
            let text: String = (0..rng.random_range(0..40)).map(|_| odd[rng.random_range(0..odd.len())]).collect();
            let once = normalise(&text);
            assert_eq!(normalise(&once), once, "of {text:?}");
            let is_clean = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
            assert!(
                once.chars().all(is_clean) && !once.contains("\n\n\n") && once.trim() == once,
                "of {text:?}: {once:?}"
            );
            assert!(once.lines().all(|line| line.trim_end() == line), "of {text:?}: {once:?}");
        }
    }
}
