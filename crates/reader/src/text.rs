//! Plain texts in whatever encoding, and web pages.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

use crate::sink::Sink;
use crate::{Result, web};

/// A longer text is cut into pages of about so many bytes, at ends of lines.
const PAGE_BYTES: usize = 16 * 1024;
/// A web page is read so far: a browser would take minutes for one that is longer.
const MOST_HTML_BYTES: usize = 2 << 20;
/// The part of a file by which its encoding is guessed.
const LOOKED_AT: usize = 64 * 1024;

pub(crate) fn plain(bytes: &[u8], sink: &mut Sink<'_>) -> Result<()> {
    let text = decoded(bytes);
    let mut rest = text.as_str();
    while rest.len() > PAGE_BYTES {
        let most = rest.floor_char_boundary(PAGE_BYTES);
        let end = rest[..most].rfind('\n').map_or(most, |end| end + 1);
        let (page, after) = rest.split_at(end);
        sink.text(None, page)?;
        rest = after;
    }
    sink.text(None, rest)
}

pub(crate) fn html(bytes: &[u8], sink: &mut Sink<'_>) -> Result<()> {
    let text = decoded(bytes.get(..MOST_HTML_BYTES).unwrap_or(bytes));
    let (title, text) = web::read(&text);
    sink.head(title, Some(1))?;
    sink.text(None, &text)
}

/// Whether bytes are a text in some encoding.
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    let head = bytes.get(..LOOKED_AT).unwrap_or(bytes);
    if Encoding::for_bom(head).is_some() || wide(head).is_some() {
        return true;
    }
    let is_odd = |byte: &u8| matches!(byte, 0..=8 | 14..=26 | 28..=31 | 127);
    let n_odd = head.iter().filter(|byte| is_odd(byte)).count();
    !head.contains(&0) && n_odd * 100 <= head.len()
}

/// Bytes as text: by their mark, as UTF-16 without a mark, as UTF-8, or as what they look like.
pub(crate) fn decoded(bytes: &[u8]) -> String {
    if let Some((encoding, length)) = Encoding::for_bom(bytes) {
        return encoding.decode_without_bom_handling(bytes.get(length..).unwrap_or_default()).0.into_owned();
    }
    // Before UTF-8, which takes zeros for letters.
    if let Some(encoding) = wide(bytes.get(..LOOKED_AT).unwrap_or(bytes)) {
        return encoding.decode_without_bom_handling(bytes).0.into_owned();
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(bytes.get(..LOOKED_AT).unwrap_or(bytes), bytes.len() <= LOOKED_AT);
    let guessed = detector.guess(None, Utf8Detection::Allow);
    let encoding = if guessed == UTF_8 { encoding_rs::WINDOWS_1252 } else { guessed };
    encoding.decode_without_bom_handling(bytes).0.into_owned()
}

/// UTF-16 without a mark: every other byte of a western text is zero.
fn wide(head: &[u8]) -> Option<&'static Encoding> {
    let pairs = head.len() / 2;
    if pairs < 8 {
        return None;
    }
    let zeros = |at: usize| head.iter().skip(at).step_by(2).filter(|byte| **byte == 0).count();
    let (even, odd) = (zeros(0), zeros(1));
    if odd * 10 > pairs * 6 && even * 20 < pairs {
        Some(UTF_16LE)
    } else if even * 10 > pairs * 6 && odd * 20 < pairs {
        Some(UTF_16BE)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_in_its_encoding() {
        let russian = encoding_rs::WINDOWS_1251.encode("Счёт за октябрь оплачен полностью, спасибо за работу.").0;
        let japanese = encoding_rs::SHIFT_JIS.encode("請求書は十月に支払われました。ありがとうございます。").0;
        let wide: Vec<u8> = "The invoice is paid.".encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (bytes, expected) in [
            (&b"caf\xc3\xa9"[..], "café"),
            (b"\xef\xbb\xbfcaf\xc3\xa9", "café"),
            (b"Gr\xfc\xdfe aus K\xf6ln, der Preis ist 20 \x80", "Grüße aus Köln, der Preis ist 20 €"),
            (b"\xff\xfeh\0i\0", "hi"),
            (b"\xfe\xff\0h\0i", "hi"),
            (&russian, "Счёт за октябрь оплачен полностью, спасибо за работу."),
            (&japanese, "請求書は十月に支払われました。ありがとうございます。"),
            (&wide, "The invoice is paid."),
        ] {
            assert!(is_text(bytes), "{expected}");
            assert_eq!(decoded(bytes), expected);
        }
        assert!(!is_text(b"\x00\x01\x02 some binary \x00\x01"));
    }
}
