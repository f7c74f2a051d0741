//! Unwraps what S/MIME has signed as a whole: the content lies inside a DER structure. Signatures are not checked.

/// Elements are not nested deeper, nor are there more of them before the content.
const MOST_DEPTH: usize = 12;
const MOST_STEPS: usize = 2_000;

const DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x01];
const SIGNED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02];
const ENVELOPED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x03];

/// The content of an `application/pkcs7-mime` part.
#[derive(Debug, PartialEq)]
pub(super) enum Wrapped {
    /// The MIME entity that was signed.
    Signed(Vec<u8>),
    Encrypted,
    Unknown,
}

pub(super) fn unwrap(bytes: &[u8]) -> Wrapped {
    let Some(outer) = Element::first(bytes).map(|(element, _)| element) else { return Wrapped::Unknown };
    let Some((kind, rest)) = Element::first(outer.content) else { return Wrapped::Unknown };
    match kind.content {
        SIGNED_DATA => {
            let mut steps = 0;
            content(rest, 0, &mut steps).map_or(Wrapped::Unknown, Wrapped::Signed)
        }
        ENVELOPED_DATA => Wrapped::Encrypted,
        _ => Wrapped::Unknown,
    }
}

/// Finds the content after the id of plain data, depth first.
fn content(mut bytes: &[u8], depth: usize, steps: &mut usize) -> Option<Vec<u8>> {
    let mut is_next = false;
    while let Some((element, rest)) = Element::first(bytes) {
        *steps += 1;
        if depth > MOST_DEPTH || *steps > MOST_STEPS {
            return None;
        }
        if is_next {
            let mut whole = Vec::new();
            octets(element.content, 0, steps, &mut whole);
            return Some(whole);
        }
        is_next = element.tag == 0x06 && element.content == DATA;
        if element.is_constructed()
            && let Some(found) = content(element.content, depth + 1, steps)
        {
            return Some(found);
        }
        bytes = rest;
    }
    None
}

/// Joins the pieces of an octet string, which writers of long contents cut.
fn octets(mut bytes: &[u8], depth: usize, steps: &mut usize, whole: &mut Vec<u8>) {
    while let Some((element, rest)) = Element::first(bytes) {
        *steps += 1;
        // Pieces are of a few thousand bytes, so there may be many.
        if depth > MOST_DEPTH || *steps > 100 * MOST_STEPS {
            return;
        }
        match element.tag {
            0x04 => whole.extend_from_slice(element.content),
            0x24 => octets(element.content, depth + 1, steps, whole),
            _ => return,
        }
        bytes = rest;
    }
}

struct Element<'a> {
    tag: u8,
    content: &'a [u8],
}

impl<'a> Element<'a> {
    fn is_constructed(&self) -> bool {
        self.tag & 0x20 != 0
    }

    /// The first element, and the bytes after it. One of indefinite length is taken to last to the end: its end marks are elements that nobody
    /// looks for.
    fn first(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let [tag, length, rest @ ..] = bytes else { return None };
        let (n_bytes, rest) = match *length {
            0x80 => (rest.len(), rest),
            short @ ..0x80 => (usize::from(short), rest),
            long => {
                let n = usize::from(long & 0x7f);
                let digits = rest.get(..n).filter(|_| n <= 4)?;
                (digits.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), &rest[n..])
            }
        };
        let (content, rest) = rest.split_at_checked(n_bytes).unwrap_or((rest, &[]));
        Some((Self { tag: *tag, content }, rest))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn element(tag: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![tag, 0x84];
        bytes.extend((content.len() as u32).to_be_bytes());
        bytes.extend(content);
        bytes
    }

    /// Writes a message that was signed as a whole, or the beginning of an encrypted one.
    pub(in crate::mail) fn written(content: Option<&[u8]>) -> Vec<u8> {
        let inner = match content {
            Some(content) => {
                let data = [element(0x06, DATA), element(0xa0, &element(0x04, content))].concat();
                [element(0x02, &[1]), element(0x31, &[]), element(0x30, &data)].concat()
            }
            None => element(0x02, &[0]),
        };
        let kind = if content.is_some() { SIGNED_DATA } else { ENVELOPED_DATA };
        element(0x30, &[element(0x06, kind), element(0xa0, &element(0x30, &inner))].concat())
    }

    #[test]
    fn the_content_is_found() {
        assert_eq!(
            unwrap(&written(Some(b"Subject: x\r\n\r\nwords"))),
            Wrapped::Signed(b"Subject: x\r\n\r\nwords".into())
        );
        assert_eq!(unwrap(&written(None)), Wrapped::Encrypted);
        // Of indefinite length, in two pieces, as Outlook writes it.
        let mut streamed = vec![0x30, 0x80];
        streamed.extend(element(0x06, SIGNED_DATA));
        streamed.extend([0xa0, 0x80, 0x30, 0x80]);
        streamed.extend(element(0x02, &[1]));
        streamed.extend(element(0x31, &[]));
        streamed.extend([0x30, 0x80]);
        streamed.extend(element(0x06, DATA));
        streamed.extend([0xa0, 0x80, 0x24, 0x80, 0x04, 2, b'a', b'b', 0x04, 1, b'c', 0, 0, 0, 0, 0, 0]);
        assert_eq!(unwrap(&streamed), Wrapped::Signed(b"abc".into()));
    }

    #[test]
    fn damage_and_deep_nesting_end_it() {
        let whole = written(Some(b"words"));
        for end in 0..whole.len() {
            let _ = unwrap(&whole[..end]);
            let mut broken = whole.clone();
            broken[end] ^= 0xff;
            let _ = unwrap(&broken);
        }
        let deep = element(0x30, &[element(0x06, SIGNED_DATA), [0x30, 0x80].repeat(100_000)].concat());
        assert_eq!(unwrap(&deep), Wrapped::Unknown);
    }
}
