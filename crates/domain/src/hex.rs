//! Converts bytes to lower-case hexadecimal digits and back.

use std::fmt::Write as _;

pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    let bytes = bytes.as_ref();
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(digits, "{byte:02x}"); // writing to a string cannot fail
    }
    digits
}

/// Reads exactly `N` bytes, in upper or lower case. The time it takes depends only on the length.
pub fn decode<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let (digits, mut bytes) = (digits.as_bytes(), [0; N]);
    if digits.len() != 2 * N {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_read_back_as_the_bytes_they_were_made_of() {
        assert_eq!(encode([0, 1, 0xab, 0xff]), "0001abff");
        assert_eq!(decode("0001abFF"), Some([0, 1, 0xab, 0xff]));
        for bad in ["", "0001abf", "0001abff0", "0001abfg", "+001abff", "0001ab\u{e9}"] {
            assert_eq!(decode::<4>(bad), None, "{bad:?}");
        }
    }
}
