//! Transfer encodings and charsets. Both are read leniently, because letters that people can read in their mail programs often break the rules.

use std::borrow::Cow;

use mail_parser::decoders::charsets::map::charset_decoder;

/// The charset that letters with unsaid or wrong ones mostly have.
const WESTERN: &str = "windows-1252";
/// Labels that senders give to UTF-8, too.
const OFTEN_WRONG: [&str; 8] =
    ["us-ascii", "ascii", "iso-8859-1", "iso8859-1", "latin1", "iso-8859-15", "windows-1252", "cp1252"];

/// The bytes of a part without its transfer encoding, and whether all of them could be read.
pub(super) fn transfer<'a>(encoding: Option<&str>, bytes: &'a [u8]) -> (Cow<'a, [u8]>, bool) {
    let (decoded, is_whole) = match encoding.map(|encoding| encoding.trim().to_ascii_lowercase()).as_deref() {
        Some("base64") => base64(bytes),
        Some("quoted-printable") => quoted_printable(bytes, false),
        None | Some("" | "7bit" | "8bit" | "binary") => return (Cow::Borrowed(bytes), true),
        Some(_) => return (Cow::Borrowed(bytes), false),
    };
    (Cow::Owned(decoded), is_whole)
}

/// Decodes base64. Characters that do not belong there are skipped.
pub(super) fn base64(bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut decoded = Vec::with_capacity(bytes.len() / 4 * 3 + 3);
    let (mut bits, mut n_bits, mut is_whole) = (0_u32, 0_u32, true);
    for &byte in bytes {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            // Padding ends a group of four; some senders join several texts with padding.
            b'=' => {
                (bits, n_bits) = (0, 0);
                continue;
            }
            _ => {
                is_whole &= byte.is_ascii_whitespace();
                continue;
            }
        };
        bits = bits << 6 | u32::from(value);
        n_bits += 6;
        if n_bits >= 8 {
            n_bits -= 8;
            decoded.push((bits >> n_bits) as u8);
            bits &= (1 << n_bits) - 1;
        }
    }
    (decoded, is_whole)
}

/// Decodes quoted-printable. In the words of a header (`in_header`), an underscore is a blank. An equals sign that begins no code stays.
pub(super) fn quoted_printable(bytes: &[u8], in_header: bool) -> (Vec<u8>, bool) {
    let mut decoded = Vec::with_capacity(bytes.len());
    let (mut at, mut is_whole) = (0, true);
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'_' if in_header => decoded.push(b' '),
            b'=' => {
                let rest = &bytes[at..];
                let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).take(80).count();
                let code = rest.first().zip(rest.get(1)).and_then(|(high, low)| Some(hex(*high)? << 4 | hex(*low)?));
                match (code, &rest[blanks..]) {
                    (Some(code), _) => {
                        decoded.push(code);
                        at += 2;
                    }
                    (None, [b'\r', b'\n', ..]) => at += blanks + 2,
                    (None, [b'\n', ..]) => at += blanks + 1,
                    (None, []) => at = bytes.len(),
                    _ => {
                        decoded.push(b'=');
                        is_whole = false;
                    }
                }
            }
            _ => decoded.push(byte),
        }
    }
    (decoded, is_whole)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// Decodes a text whose charset is said, unsaid, unknown or wrong.
pub(super) fn text(bytes: &[u8], charset: Option<&str>) -> String {
    let label = charset.unwrap_or_default().trim_matches(|c: char| c.is_whitespace() || c == '"' || c == '\'');
    let label = label.to_ascii_lowercase();
    if let Some(rest) = bytes.strip_prefix(b"\xef\xbb\xbf") {
        return utf8_or_western(rest);
    }
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return by_label("utf-16", bytes).unwrap_or_default();
    }
    if label.is_empty() || matches!(label.as_str(), "utf-8" | "utf8" | "unicode-1-1-utf-8") {
        return utf8_or_western(bytes);
    }
    if OFTEN_WRONG.contains(&label.as_str()) && std::str::from_utf8(bytes).is_ok() {
        return utf8_or_western(bytes);
    }
    match by_label(&label, bytes) {
        Some(text) if text.contains('\u{fffd}') => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => text,
        },
        Some(text) => text,
        None => utf8_or_western(bytes),
    }
}

/// Decodes UTF-8. A text with more errors than letters of two bytes and more is read as a Western one.
fn utf8_or_western(bytes: &[u8]) -> String {
    let lossy = match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => return text.to_owned(),
        Cow::Owned(lossy) => lossy,
    };
    let errors = lossy.chars().filter(|c| *c == '\u{fffd}').count();
    let letters = lossy.chars().filter(|c| !c.is_ascii()).count() - errors;
    if errors > letters { by_label(WESTERN, bytes).unwrap_or(lossy) } else { lossy }
}

fn by_label(label: &str, bytes: &[u8]) -> Option<String> {
    if label.is_empty() {
        return None; // the library's table takes no empty label
    }
    charset_decoder(label.as_bytes()).map(|decode| decode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfer_encodings_are_read_leniently() {
        for (encoding, bytes, expected, is_whole) in [
            ("base64", "R3LDvMOfZQ==", "Grüße", true),
            ("BASE64 ", "R3LD\r\nvMOf\r\nZQ", "Grüße", true),
            ("base64", "R3LD!vMOfZQ==", "Grüße", false),
            ("base64", "YQ==Yg==", "ab", true),
            ("quoted-printable", "Gr=C3=BC=C3=9Fe=\r\n a=3Db =\nc", "Grüße a=b c", true),
            ("quoted-printable", "a = b =ZZ=", "a = b =ZZ", false),
            ("quoted-printable", "a=  \r\nb", "ab", true),
            ("quoted-printable", "a_b", "a_b", true),
            ("8bit", "as it is =20", "as it is =20", true),
            ("x-uuencode", "begin", "begin", false),
        ] {
            let (decoded, whole) = transfer(Some(encoding), bytes.as_bytes());
            assert_eq!((String::from_utf8_lossy(&decoded).as_ref(), whole), (expected, is_whole), "{encoding} {bytes}");
        }
    }

    #[test]
    fn a_text_is_read_in_the_charset_that_it_has() {
        for (charset, bytes, expected) in [
            (Some("utf-8"), &b"Gr\xc3\xbc\xc3\x9fe"[..], "Grüße"),
            (Some("\"UTF-8\""), b"Gr\xc3\xbc\xc3\x9fe", "Grüße"),
            (Some("iso-8859-1"), b"Gr\xfc\xdfe", "Grüße"),
            (Some("iso-8859-1"), b"Gr\xc3\xbc\xc3\x9fe", "Grüße"),
            (Some("us-ascii"), b"Gr\xc3\xbc\xc3\x9fe", "Grüße"),
            (Some("us-ascii"), b"Gr\xfc\xdfe", "Grüße"),
            (Some("utf-8"), b"Gr\xfc\xdfe \x80", "Grüße €"),
            (Some("utf-8"), b"\xc3\xbc\xc3\xbc\xc3", "üü\u{fffd}"),
            (None, b"Gr\xfc\xdfe", "Grüße"),
            (None, b"\xef\xbb\xbfa", "a"),
            (None, b"\xff\xfea\0b\0", "ab"),
            (Some("nobody-knows"), b"caf\xe9", "café"),
            (Some(""), b"caf\xc3\xa9", "café"),
            (Some("iso-8859-2"), b"\xb3\xf3d\xbc", "łódź"),
            (Some("windows-1251"), b"\xcf\xf0\xe8\xe2\xe5\xf2", "Привет"),
            (Some("koi8-r"), b"\xf0\xd2\xc9\xd7\xc5\xd4", "Привет"),
            (Some("iso-2022-jp"), b"\x1b$B%O%m!<\x1b(B", "ハロー"),
            (Some("shift_jis"), b"\x83n\x83\x8d\x81[", "ハロー"),
            (Some("gb2312"), b"\xc4\xe3\xba\xc3", "你好"),
            (Some("euc-kr"), b"\xbe\xc8\xb3\xe7", "안녕"),
            (Some("big5"), b"\xa7A\xa6n", "你好"),
        ] {
            assert_eq!(text(bytes, charset), expected, "{charset:?} {bytes:?}");
        }
    }
}
