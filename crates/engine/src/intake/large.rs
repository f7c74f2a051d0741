//! A large body while it arrives: the original and the files in it are written to disk piece by piece, and memory holds only the rest. Its
//! sender was verified before.

use base64::Engine as _;
use bytes::Bytes;

use super::lift::{Cut, Lift};
use super::normalise::{LENIENT, LIFTED};
use super::providers::LargeBody;
use crate::Env;
use crate::spool::{Spool, Spooled};

/// Each is an open file until the event is stored. The content of further ones is in the original alone.
const MOST_FILES: usize = 100;

/// A large body that arrives.
pub(super) struct LargeInFiles {
    original: Spool,
    lift: Lift,
    /// The JSON without the contents of its files; in their places stand their numbers.
    rest: Vec<u8>,
    files: Vec<Option<Spooled>>,
    open: Option<(Spool, Base64)>,
}

/// A large body that has arrived.
pub(super) struct LargeOnDisk {
    pub rest: Bytes,
    pub original: Spooled,
    /// None: it was no base64, or one too many, so only the original has it.
    pub files: Vec<Option<Spooled>>,
}

impl LargeInFiles {
    pub async fn new(env: &Env, wanted: LargeBody) -> std::io::Result<Self> {
        Ok(Self {
            original: Spool::new(&env.config.data_dir).await?,
            lift: Lift::new(wanted),
            rest: Vec::new(),
            files: Vec::new(),
            open: None,
        })
    }

    /// Bytes in memory.
    pub fn held(&self) -> usize {
        self.rest.capacity()
    }

    pub async fn push(&mut self, env: &Env, piece: &[u8]) -> std::io::Result<()> {
        self.original.write(piece).await?;
        for cut in self.lift.feed(piece) {
            match cut {
                Cut::Rest(bytes) => self.rest.extend_from_slice(bytes),
                Cut::Content(_) if self.files.len() >= MOST_FILES => {}
                Cut::Content(text) => {
                    let (file, base64) = match &mut self.open {
                        Some(open) => open,
                        none => none.insert((Spool::new(&env.config.data_dir).await?, Base64::default())),
                    };
                    file.write(&base64.decode(text)).await?;
                }
                Cut::End => {
                    self.rest.extend_from_slice(format!("{LIFTED}{}", self.files.len()).as_bytes());
                    let Some((mut file, base64)) = self.open.take() else {
                        self.files.push(None);
                        continue;
                    };
                    let Some(last) = base64.finish() else {
                        self.files.push(None);
                        continue;
                    };
                    file.write(&last).await?;
                    self.files.push(Some(file.finish().await?));
                }
            }
        }
        Ok(())
    }

    pub async fn finish(self) -> std::io::Result<LargeOnDisk> {
        let original = self.original.finish().await?;
        Ok(LargeOnDisk { rest: self.rest.into(), original, files: self.files })
    }
}

/// Base64 within a JSON string, piece by piece.
#[derive(Default)]
struct Base64 {
    waiting: Vec<u8>,
    is_escaped: bool,
    is_wrong: bool,
}

impl Base64 {
    /// Decodes the groups that are complete. Only the last one may have padding.
    fn decode(&mut self, text: &[u8]) -> Vec<u8> {
        for &byte in text {
            match (std::mem::take(&mut self.is_escaped), byte) {
                (false, b'\\') => self.is_escaped = true,
                (true, b'/') | (false, b'!'..=b'~') => self.waiting.push(byte),
                (true, b'n' | b'r' | b't') | (false, b' ') => {}
                _ => self.is_wrong = true,
            }
        }
        // The last group waits: it may turn out to be the end.
        let whole = self.waiting.len().saturating_sub(1) / 4 * 4;
        let decoded = LENIENT.decode(&self.waiting[..whole]).ok().filter(|decoded| decoded.len() == whole / 4 * 3);
        self.waiting.drain(..whole);
        self.is_wrong |= decoded.is_none();
        decoded.unwrap_or_default()
    }

    /// Decodes the last group. None: it was no base64.
    fn finish(self) -> Option<Vec<u8>> {
        if self.is_wrong { None } else { LENIENT.decode(&self.waiting).ok() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_the_same_however_it_is_torn() {
        let decoded = |text: &str, size: usize| {
            let mut base64 = Base64::default();
            let mut bytes: Vec<u8> = text.as_bytes().chunks(size).flat_map(|piece| base64.decode(piece)).collect();
            bytes.extend(base64.finish()?);
            Some(bytes)
        };
        for size in [1, 2, 3, 5, 100] {
            for (text, wanted) in [
                ("", Some(&b""[..])),
                ("aGVsbG8=", Some(b"hello")),
                ("aGVsbG8", Some(b"hello")),
                (r"aGVs\r\nbG8h", Some(b"hello!")),
                (r"\/\/\/\/", Some(&[255, 255, 255])),
                ("aGVs=bG8", None),
                ("aGVs====bG8h", None),
                ("not base64!", None),
                (r"aGVs\u0062G8=", None),
                ("aGVsbG8häh", None),
                ("aGVsbG8\0", None),
            ] {
                assert_eq!(decoded(text, size).as_deref(), wanted, "{text:?} in pieces of {size}");
            }
        }
    }
}
