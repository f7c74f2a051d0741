//! Text processing: normalisation, language detection, chunks, HTML to text, and snippets for search results. All are pure functions in
//! linear time, because texts come from outside.

mod alike;
mod boundaries;
mod chunk;
mod exact;
mod html;
mod lang;
#[cfg(test)]
mod linear;
mod normalise;
mod nul;
mod phrase;
mod sentences;
mod snippet;

use sha2::{Digest as _, Sha256};

pub use alike::Likeness;
pub use chunk::{Chunk, MAX_CHARS, MIN_CHARS, chunks, chunks_of_pages};
pub use exact::{Exact, Looked as LookedExactly};
pub use html::{Marker, html_to_marked_text, html_to_text};
pub use lang::detect_lang;
#[cfg(test)]
pub(crate) use linear::assert_linear;
pub use normalise::normalise;
pub use nul::{has_nul, replace_nul, replace_nul_in};
pub use phrase::Phrases;
pub use sentences::sentences;
pub use snippet::{Part, matches, snippet};

/// The version of normalising and cutting. It is part of every hash, so with a new version every text counts as changed.
pub const TEXT_VERSION: u8 = 1;

/// Returns the hash by which a text is compared with its stored version.
pub fn sha256(text: &str) -> [u8; 32] {
    Sha256::new().chain_update([TEXT_VERSION]).chain_update(text).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stored hashes are compared with new ones: a change of these also changes `TEXT_VERSION`, and every text is embedded again.
    #[test]
    fn hashes_are_the_same_as_ever() {
        for (text, expected) in [
            ("", "4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a"),
            ("Grüße", "f8c381ab3bce161b9b6593cf36de8f32b8f9ecc86e3a92bfc1061791b1f34f75"),
        ] {
            assert_eq!(crate::hex::encode(sha256(text)), expected, "of {text:?}");
        }
        assert_ne!(sha256("a"), sha256("b"));
    }
}
