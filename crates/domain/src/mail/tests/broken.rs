//! Breaks the messages of the corpus in the ways in which senders, gateways and disks do.

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

use super::read;
use super::writer::{Written, message};
use crate::mail::Note;

/// A way to break a message, and whether it has to be told. None: the message cannot be broken so.
type Break = (&'static str, bool, fn(&Written) -> Option<Vec<u8>>);

const BREAKS: [Break; 12] = [
    ("its last boundary is missing", true, |m| is_multipart(m).then(|| without_last_boundary(&m.bytes))),
    ("its boundary is not named", true, |m| {
        is_multipart(m).then(|| replaced(&m.bytes, b"; boundary=\"=_Part.", b"; bound=\"=_Part."))
    }),
    ("its charset is unknown", false, |m| Some(replaced(&m.bytes, b"charset=", b"charset=x-nobody-knows-"))),
    ("its charset is missing", false, |m| Some(replaced(&m.bytes, b"charset=", b"characters="))),
    ("its encoding is unknown", true, |m| {
        has(&m.bytes, b"ransfer-Encoding: ").then(|| replaced(&m.bytes, b"ransfer-Encoding: ", b"ransfer-Encoding: x-"))
    }),
    ("base64 has other characters", false, |m| Some(replaced(&m.bytes, b"==", b"=!="))),
    ("the empty line after the head is missing", false, |m| Some(replaced(&m.bytes, b"\r\n\r\n", b"\r\n"))),
    ("a line of the head is none", true, |m| {
        Some(replaced(&m.bytes, b"MIME-Version", b"no field at all\nMIME-Version"))
    }),
    ("lines end as on old Macs", false, |m| {
        Some(m.bytes.iter().filter(|b| **b != b'\r').map(|b| if *b == b'\n' { b'\r' } else { *b }).collect())
    }),
    ("NULs", false, |m| Some(replaced(&m.bytes, b"e", b"e\0"))),
    ("everything is twice", false, |m| Some(m.bytes.repeat(2))),
    ("lines have no ends", false, |m| Some(m.bytes.iter().copied().filter(|b| !matches!(b, b'\r' | b'\n')).collect())),
];

#[test]
fn broken_messages_are_read_as_far_as_they_can_be() {
    for seed in 0..200 {
        let written = message(seed);
        for (what, is_told, broken) in BREAKS {
            let Some(bytes) = broken(&written) else { continue };
            let name = format!("message {seed} ({}): {what}", written.kind);
            let letter = read(&name, &bytes);
            assert!(!is_told || letter.notes.contains(&Note::Malformed), "{name}: {:?}", letter.notes);
            // The head is whole in most of them.
            let head_is_whole = !matches!(what, "NULs" | "lines have no ends" | "its encoding is unknown");
            if head_is_whole {
                let from = letter.from.unwrap_or_default();
                assert_eq!((from.address, letter.sent_at), (written.address.clone(), Some(written.sent_at)), "{name}");
                assert_eq!(letter.subject.as_deref(), Some(written.subject.as_str()), "{name}");
            }
        }
    }
}

/// No message makes the reader panic, or gives a letter beyond the limits.
#[test]
fn messages_with_random_damage_are_read() {
    for seed in 0..200 {
        let whole = message(seed).bytes;
        let mut rng = StdRng::seed_from_u64(seed);
        for round in 0..20 {
            let mut bytes = whole.clone();
            match round % 4 {
                0 => bytes.truncate(rng.random_range(0..whole.len())),
                1 => bytes.drain(..rng.random_range(0..whole.len())).for_each(drop),
                2 => {
                    for _ in 0..rng.random_range(1..50) {
                        let at = rng.random_range(0..bytes.len());
                        bytes[at] = rng.random();
                    }
                }
                _ => {
                    // A piece of it lies somewhere else.
                    let from = rng.random_range(0..whole.len());
                    let piece = whole[from..(from + rng.random_range(0..300)).min(whole.len())].to_vec();
                    let at = rng.random_range(0..bytes.len());
                    bytes.splice(at..at, piece).for_each(drop);
                }
            }
            read(&format!("message {seed}, damage {round}"), &bytes);
        }
    }
}

fn is_multipart(message: &Written) -> bool {
    // One that is signed as a whole has its parts inside.
    has(&message.bytes, b"; boundary=")
}

fn has(bytes: &[u8], words: &[u8]) -> bool {
    bytes.windows(words.len()).any(|window| window == words)
}

fn without_last_boundary(bytes: &[u8]) -> Vec<u8> {
    let at = bytes.windows(4).rposition(|window| window == b".a--").unwrap_or(bytes.len());
    let line = bytes[..at].iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    bytes[..line].to_vec()
}

fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = rest.windows(from.len()).position(|window| window == from) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    out.extend_from_slice(rest);
    out
}
