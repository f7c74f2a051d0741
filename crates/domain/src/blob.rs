//! The name of a blob: the SHA-256 of its bytes, which no name of a file can pretend to be.

use std::fmt;
use std::str::FromStr;

/// Written as 64 small hexadecimal digits, in columns, in the blob store and in the API alike.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobKey([u8; 32]);

#[derive(Debug, thiserror::Error)]
#[error("a blob's key is 64 hexadecimal digits")]
pub struct NotABlobKey;

impl BlobKey {
    pub fn of_hash(sha256: [u8; 32]) -> Self {
        Self(sha256)
    }
}

impl fmt::Display for BlobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BlobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for BlobKey {
    type Err = NotABlobKey;

    fn from_str(text: &str) -> Result<Self, NotABlobKey> {
        let is_ours = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
        if text.len() != 64 || !text.as_bytes().iter().all(is_ours) {
            return Err(NotABlobKey);
        }
        let mut sha256 = [0; 32];
        for (byte, at) in sha256.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| NotABlobKey)?;
        }
        Ok(Self(sha256))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_its_hexadecimal_digits_and_nothing_else_is_a_key() {
        let text = "00ff".repeat(16);
        assert_eq!(text.parse::<BlobKey>().map(|key| key.to_string()).ok(), Some(text.clone()));
        let escapes = ["", "../../etc/passwd", &text[1..], &format!("{text}0"), &text.to_uppercase()];
        for other in escapes.iter().chain(&[&format!("../{}", &text[3..])[..], &"é".repeat(32)]) {
            assert!(other.parse::<BlobKey>().is_err(), "{other:?} was taken for a key");
        }
    }
}
