//! The name of a blob: the SHA-256 of its bytes. No file name can imitate it.

use std::fmt;
use std::str::FromStr;

use crate::hex;

/// Written as 64 lower-case hexadecimal digits in columns, in the blob store and in the API.
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
        f.write_str(&hex::encode(self.0))
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
        let is_small = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        hex::decode(text).filter(|_| is_small).map(Self).ok_or(NotABlobKey)
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
