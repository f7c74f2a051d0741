//! Text for people, on a page or in a terminal: numbers, times and sizes in words, and text from outside made safe to show.

mod device;
mod numbers;

pub use device::device;
pub use numbers::{
    bytes, counted, day, dollars, duration, interval, money, money_in, number, plural, rate, relative, span,
};

/// Shows text on one line. Characters that are invisible or change the reading direction are shown instead of applied, so that no text
/// can imitate another.
pub fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => out.push(' '),
            '\0'..='\x1f' => out.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}')), // ␀ ␁ ␛ …
            '\x7f' => out.push('\u{2421}'),
            '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' => {
                mark(&mut out, c)
            }
            '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => {
                mark(&mut out, c)
            }
            _ => out.push(c),
        }
    }
    out
}

/// Shows text in the same way, but keeps its lines.
pub fn shown_lines(text: &str) -> String {
    text.lines().map(|line| shown(&line.replace('\t', "    "))).collect::<Vec<_>>().join("\n")
}

/// Shows text on one line of at most `most` characters.
pub fn clipped(text: &str, most: usize) -> String {
    let text = shown(text);
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text,
    }
}

fn mark(out: &mut String, c: char) {
    out.push_str(&format!("⟨U+{:04X}⟩", u32::from(c)));
}

/// A sentence begins with a capital letter.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_hides_or_turns_is_shown() {
        let cases = [
            ("plain ünïcode 日本語 🙂", "plain ünïcode 日本語 🙂"),
            ("invoice\u{202e}fdp.exe", "invoice⟨U+202E⟩fdp.exe"),
            ("a\u{200b}b\u{feff}c\u{2066}", "a⟨U+200B⟩b⟨U+FEFF⟩c⟨U+2066⟩"),
            ("a\0b\x1b[31mc\x7f", "a␀b␛[31mc␡"),
            ("one\ntwo\tthree\u{2028}four", "one two three four"),
            ("c1\u{9b}", "c1⟨U+009B⟩"),
        ];
        for (given, expected) in cases {
            assert_eq!(shown(given), expected);
        }
        assert_eq!(shown_lines("{\n\t\"a\": \u{202e}\n}"), "{\n    \"a\": ⟨U+202E⟩\n}");
    }

    #[test]
    fn clipping_counts_characters_not_bytes() {
        assert_eq!(clipped("ééé", 3), "ééé");
        assert_eq!(clipped("éé ééé", 3), "éé…");
    }

    #[test]
    fn clipping_at_the_edges() {
        for (text, most, expected) in [
            ("", 0, ""),
            ("a", 0, "…"),
            ("abc", 3, "abc"),
            ("abcd", 3, "abc…"),
            ("ab  cd", 4, "ab…"),
            ("🙂🙂", 1, "🙂…"),
        ] {
            assert_eq!(clipped(text, most), expected, "{most} of {text:?}");
        }
        // What hides is counted as it is shown, so that a clipped text cannot hide more than a whole one.
        assert_eq!(clipped("a\u{200b}bc", 4), "a⟨U+…");
    }

    #[test]
    fn every_control_character_is_visible() {
        for code in (0..=0x1f).chain(0x7f..=0x9f) {
            let c = char::from_u32(code).expect("a character");
            let out = shown(&c.to_string());
            assert!(!out.is_empty() && !out.chars().any(char::is_control), "U+{code:04X} became {out:?}");
        }
        assert_eq!(shown_lines("a\r\nb\n\nc"), "a\nb\n\nc");
    }
}
