//! The encoded words of a header (`=?utf-8?B?…?=`), as RFC 2047 has them and as senders write them.

use super::decode;

/// Characters of a decoded word that would mean something to the reader of a structured field. They are exchanged for noncharacters while the
/// field is read, so that a comma in a name separates no addresses.
const SHIELDED: [char; 30] = [
    '!', '"', '#', '$', '%', '&', '\'', '(', ')', '*', '+', ',', '/', ':', ';', '<', '=', '>', '?', '@', '[', '\\',
    ']', '^', '`', '{', '|', '}', '~', ' ',
];
const SHIELDS: std::ops::RangeInclusive<char> = '\u{fdd0}'..='\u{fdef}';
const LABEL_CHARS: usize = 60;

/// Decodes the words of an unstructured field.
pub(super) fn decode(value: &str) -> String {
    words(value, |text, out| out.push_str(text))
}

/// Decodes the words of a structured field, which has to be read next. [`unshield`] then restores each text. What only looks like a word is
/// shielded too, or its reader would try again.
pub(super) fn decode_shielded(value: &str) -> String {
    let shielded = words(value, |text, out| out.extend(text.chars().map(shield)));
    shielded.replace("=?", &format!("={}", shield('?')))
}

fn shield(c: char) -> char {
    let n = SHIELDED.iter().position(|shielded| *shielded == c);
    n.and_then(|n| SHIELDS.clone().nth(n)).unwrap_or(c)
}

pub(super) fn unshield(text: &str) -> String {
    let restore = |c: char| match SHIELDS.contains(&c) {
        true => SHIELDED.get((u32::from(c) - u32::from(*SHIELDS.start())) as usize).copied().unwrap_or(' '),
        false => c,
    };
    text.chars().map(restore).collect()
}

/// Reads a value from left to right. Words beside each other are joined before their charset is read, because senders cut letters in two.
fn words(value: &str, mut write: impl FnMut(&str, &mut String)) -> String {
    let mut out = String::with_capacity(value.len());
    let mut pending: Option<(String, Vec<u8>)> = None;
    let mut ends = Ends { at: Some(0) };
    let (mut at, mut plain_from) = (0, 0);
    while let Some(begin) = value[at..].find("=?").map(|n| at + n) {
        let Some(word) = Word::read(value, begin, &mut ends) else {
            at = begin + 2;
            continue;
        };
        let between = &value[plain_from..begin];
        let is_beside = pending.is_some() && between.trim().is_empty();
        if !is_beside {
            flush(&mut pending, &mut out, &mut write);
            push_plain(between, &mut out);
        }
        match &mut pending {
            Some((charset, bytes)) if charset.eq_ignore_ascii_case(word.charset) => bytes.extend(word.bytes),
            _ => {
                flush(&mut pending, &mut out, &mut write);
                pending = Some((word.charset.to_owned(), word.bytes));
            }
        }
        (at, plain_from) = (word.end, word.end);
    }
    flush(&mut pending, &mut out, &mut write);
    push_plain(&value[plain_from..], &mut out);
    out
}

fn push_plain(text: &str, out: &mut String) {
    out.extend(text.chars().filter(|c| !SHIELDS.contains(c)));
}

fn flush(pending: &mut Option<(String, Vec<u8>)>, out: &mut String, write: &mut impl FnMut(&str, &mut String)) {
    if let Some((charset, bytes)) = pending.take() {
        let text = decode::text(&bytes, Some(&charset));
        let line: String = text
            .chars()
            .filter(|c| !SHIELDS.contains(c))
            .map(|c| if c.is_control() || c.is_whitespace() { ' ' } else { c })
            .collect();
        write(&line, out);
    }
}

struct Word<'a> {
    charset: &'a str,
    bytes: Vec<u8>,
    end: usize,
}

impl<'a> Word<'a> {
    fn read(value: &'a str, begin: usize, ends: &mut Ends) -> Option<Self> {
        let from = begin + 2;
        let label = value.as_bytes()[from..].iter().take(LABEL_CHARS).position(|byte| *byte == b'?')?;
        let charset = &value[from..from + label];
        let charset = charset.split('*').next().filter(|charset| {
            !charset.is_empty() && charset.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:+".contains(&byte))
        })?;
        let [encoding, b'?', ..] = &value.as_bytes()[from + label + 1..] else {
            return None;
        };
        let data_from = from + label + 3;
        let data_end = ends.after(value, data_from)?;
        let data = &value[data_from..data_end];
        if data.contains("=?") {
            return None; // the word was cut off, and another one begins
        }
        let bytes = match encoding {
            b'b' | b'B' => decode::base64(data.as_bytes()).0,
            b'q' | b'Q' => decode::quoted_printable(data.as_bytes(), true).0,
            _ => return None,
        };
        Some(Self { charset, bytes, end: data_end + 2 })
    }
}

/// The ends of words. They are looked for once, however many words seem to begin.
struct Ends {
    at: Option<usize>,
}

impl Ends {
    fn after(&mut self, value: &str, from: usize) -> Option<usize> {
        while self.at.is_some_and(|at| at < from || !value[at..].starts_with("?=")) {
            let next = from.max(self.at? + 1);
            self.at = value.as_bytes()[next..].windows(2).position(|pair| pair == b"?=").map(|n| next + n);
        }
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_words_are_read() {
        for (value, expected) in [
            ("plain", "plain"),
            ("=?utf-8?B?R3LDvMOfZQ==?=", "Grüße"),
            ("=?ISO-8859-1?Q?Olle_J=E4rnefors?=", "Olle Järnefors"),
            ("=?utf-8*de?q?Gr=C3=BC=C3=9Fe?= aus =?utf-8?q?K=C3=B6ln?=", "Grüße aus Köln"),
            ("=?utf-8?q?a?=  =?utf-8?q?b?= \t =?iso-8859-1?q?=E4?=", "abä"),
            ("=?utf-8?B?R3LD?= =?UTF-8?B?vMOfZQ==?=", "Grüße"), // a letter in two words
            ("=?utf-8?q?a b c?=", "a b c"),
            ("=?utf-8?q?really??=", "really?"),
            ("Re:=?utf-8?q?x?=y", "Re:xy"),
            ("=?utf-8?x?abc?=", "=?utf-8?x?abc?="),
            ("=?utf-8?q?never ends", "=?utf-8?q?never ends"),
            ("=?utf-8?q?cut =?utf-8?q?whole?=", "=?utf-8?q?cut whole"),
            ("=?", "=?"),
            ("=?=?=?", "=?=?=?"),
            ("=??q?a?=", "=??q?a?="),
            ("=?nobody-knows?q?caf=E9?=", "café"),
            ("=?utf-8?q?line=0D=0Abreak=00?=", "line  break "),
            ("ü=?utf-8?q?=C3=BC?=", "üü"),
            ("=?ü?q?a?=", "=?ü?q?a?="),
        ] {
            assert_eq!(decode(value), expected, "of {value:?}");
        }
    }

    #[test]
    fn a_shielded_text_comes_back_as_it_was() {
        let all: String = (' '..='~').collect();
        let word = format!("=?utf-8?q?{}?=", all.bytes().map(|byte| format!("={byte:02X}")).collect::<String>());
        let shielded = decode_shielded(&word);
        assert!(shielded.chars().all(|c| !SHIELDED.contains(&c)), "{shielded:?}");
        assert_eq!(unshield(&shielded), all);
    }
}
