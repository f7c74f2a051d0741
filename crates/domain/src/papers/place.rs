//! Places on pages: where a quote stands.

use std::ops::Range;

/// The place of a quote in a page's text, as bytes. White space counts as one space, whatever it is. None: it does not stand there.
pub fn place(page: &str, quote: &str) -> Option<Range<usize>> {
    Squeezed::of(page).place(quote)
}

/// A text whose white space is squeezed, with the way back.
pub(super) struct Squeezed {
    text: String,
    /// For each byte of `text` the byte of the original.
    at: Vec<u32>,
}

impl Squeezed {
    /// Of texts longer than 4 GB only the beginning counts.
    pub fn of(text: &str) -> Self {
        let mut squeezed = Self { text: String::with_capacity(text.len()), at: Vec::with_capacity(text.len()) };
        for (at, c) in text.char_indices() {
            let c = if c.is_whitespace() { ' ' } else { c };
            let Ok(at) = u32::try_from(at) else { break };
            if c == ' ' && (squeezed.text.is_empty() || squeezed.text.ends_with(' ')) {
                continue;
            }
            squeezed.text.push(c);
            squeezed.at.extend(std::iter::repeat_n(at, c.len_utf8()));
        }
        squeezed
    }

    pub fn text(&self) -> &str {
        self.text.trim_end()
    }

    pub fn place(&self, quote: &str) -> Option<Range<usize>> {
        let quote = Self::of(quote);
        let found = Some(quote.text()).filter(|quote| !quote.is_empty()).and_then(|quote| self.text.find(quote))?;
        let last = found + quote.text().len() - 1;
        let last_char = self.text[..=last].char_indices().next_back().map_or(0, |(_, c)| c.len_utf8());
        Some(self.at[found] as usize..self.at[last] as usize + last_char)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_is_found_whatever_its_white_space() {
        let page = "Total:\n  1\u{a0}234,50 €\tdue  now";
        for (quote, expected) in [
            ("Total: 1 234,50 €", Some("Total:\n  1\u{a0}234,50 €")),
            (" due now\n", Some("due  now")),
            ("€", Some("€")),
            ("Total: 1234,50", None),
            ("  ", None),
        ] {
            assert_eq!(place(page, quote).map(|range| &page[range]), expected, "{quote:?}");
        }
    }
}
