//! Charsets and transfer encodings, from text to bytes.

use crate::mail::decode;

/// The bytes of a text in a charset. None: it lacks a letter. Tables of single bytes are made from what we decode.
pub fn encoded(text: &str, charset: &str) -> Option<Vec<u8>> {
    match charset {
        "utf-8" => Some(text.as_bytes().to_vec()),
        "us-ascii" => text.is_ascii().then(|| text.as_bytes().to_vec()),
        _ => {
            let table: Vec<(char, u8)> = (0x80..=0xff)
                .filter_map(|byte| Some((decode::text(&[byte], Some(charset)).chars().next()?, byte)))
                .collect();
            let byte = |c: char| match c.is_ascii() {
                true => u8::try_from(c).ok(),
                false => table.iter().find(|(known, _)| *known == c).map(|(_, byte)| *byte),
            };
            text.chars().map(byte).collect()
        }
    }
}

pub fn base64(bytes: &[u8], line: usize, end: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for (n, chunk) in bytes.chunks(3).enumerate() {
        if n > 0 && n % (line / 4) == 0 {
            out.push_str(end);
        }
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            let is_there = digit <= chunk.len();
            let value = (bits >> (18 - 6 * digit)) as usize & 63;
            out.push(if is_there { char::from(DIGITS[value]) } else { '=' });
        }
    }
    out
}

pub fn quoted_printable(bytes: &[u8], end: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut column = 0;
    for &byte in bytes {
        let is_plain = matches!(byte, b'\r' | b'\n') || byte.is_ascii_graphic() && byte != b'=' || byte == b' ';
        let code = if is_plain { vec![byte] } else { format!("={byte:02X}").into_bytes() };
        if column + code.len() > 72 && !matches!(byte, b'\r' | b'\n') {
            out.extend(format!("={end}").bytes());
            column = 0;
        }
        column = if byte == b'\n' { 0 } else { column + code.len() };
        out.extend(code);
    }
    out
}
