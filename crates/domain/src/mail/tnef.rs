//! Unpacks `winmail.dat` (TNEF), in which Exchange and Outlook wrap a letter and its files for those who have the same programs. Plain text, HTML
//! and files are read. A body in RTF is not: the letter around it nearly always has the same words as plain text.

use super::{decode, head};

const SIGNATURE: u32 = 0x223e_9f78;
/// More files, or properties of one, are not read.
const MOST_FILES: usize = 200;
const MOST_PROPERTIES: u32 = 10_000;

/// The content of a `winmail.dat`.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Tnef {
    pub text: Option<String>,
    pub html: Option<String>,
    pub files: Vec<TnefFile>,
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct TnefFile {
    pub name: Option<String>,
    pub media_type: Option<String>,
    pub content_id: Option<String>,
    pub content: Vec<u8>,
}

/// Unpacks. What comes after damage is missing. None: it is no TNEF.
pub(super) fn read(bytes: &[u8]) -> Option<Tnef> {
    let mut bytes = Bytes(bytes);
    (bytes.u32()? == SIGNATURE).then_some(())?;
    bytes.u16()?;
    let mut tnef = Tnef::default();
    let mut codepage = None;
    while let Some((id, data)) = attribute(&mut bytes) {
        match id {
            0x0006_9007 => codepage = Bytes(data).u32(),
            // attBody
            0x0002_800c => tnef.text = tnef.text.or(Some(ansi(data, codepage))),
            // attMAPIProps
            0x0006_9003 => {
                properties(data, |id, value| match id {
                    0x1000 => tnef.text = Some(value.text(codepage)),
                    0x1013 => tnef.html = Some(value.text(codepage)),
                    _ => {}
                });
            }
            // attAttachRenddata: another file begins.
            0x0006_9002 if tnef.files.len() < MOST_FILES => tnef.files.push(TnefFile::default()),
            0x0006_9002 => break,
            _ => {
                if let Some(file) = tnef.files.last_mut() {
                    file.take(id, data, codepage);
                }
            }
        }
    }
    Some(tnef)
}

impl TnefFile {
    fn take(&mut self, id: u32, data: &[u8], codepage: Option<u32>) {
        let line = |text: String| Some(head::line(&text)).filter(|text| !text.is_empty());
        match id {
            // attAttachTitle
            0x0001_8010 => self.name = self.name.take().or_else(|| line(ansi(data, codepage))),
            // attAttachData
            0x0006_800f => self.content = data.to_vec(),
            // attAttachment: the same and more, as properties.
            0x0006_9005 => properties(data, |id, value| match id {
                0x3707 => self.name = line(value.text(codepage)).or_else(|| self.name.take()),
                0x370e => self.media_type = line(value.text(codepage)),
                0x3712 => self.content_id = line(value.text(codepage)),
                0x3701 if self.content.is_empty() => self.content = value.data.to_vec(),
                _ => {}
            }),
            _ => {}
        }
    }
}

fn attribute<'a>(bytes: &mut Bytes<'a>) -> Option<(u32, &'a [u8])> {
    bytes.take(1)?; // of the message, or of a file
    let id = bytes.u32()?;
    let n_bytes = bytes.u32()?;
    let data = bytes.take(n_bytes as usize)?;
    bytes.u16(); // a checksum; the last one may be cut off
    Some((id, data))
}

struct Value<'a> {
    is_unicode: bool,
    data: &'a [u8],
}

impl Value<'_> {
    fn text(&self, codepage: Option<u32>) -> String {
        match self.is_unicode {
            true => decode::text(self.data, Some("utf-16le")).trim_matches('\0').to_owned(),
            false => ansi(self.data, codepage),
        }
    }
}

/// Reads a list of properties, up to the first one that makes no sense.
fn properties<'a>(data: &'a [u8], mut found: impl FnMut(u16, Value<'a>)) {
    let mut bytes = Bytes(data);
    let n_properties = bytes.u32().unwrap_or_default().min(MOST_PROPERTIES);
    for _ in 0..n_properties {
        if property(&mut bytes, &mut found).is_none() {
            return;
        }
    }
}

fn property<'a>(bytes: &mut Bytes<'a>, found: &mut impl FnMut(u16, Value<'a>)) -> Option<()> {
    let (kind, id) = (bytes.u16()?, bytes.u16()?);
    if id >= 0x8000 {
        bytes.take(16)?; // the set that its name belongs to
        match bytes.u32()? {
            0 => bytes.take(4)?,
            _ => bytes.sized()?,
        };
    }
    let is_list = kind & 0x1000 != 0;
    let kind = kind & !0x1000;
    let (n_bytes, is_sized) = match kind {
        0x02 | 0x03 | 0x04 | 0x0a | 0x0b => (4, false),
        0x05 | 0x06 | 0x07 | 0x14 | 0x40 => (8, false),
        0x48 => (16, false),
        0x0d | 0x1e | 0x1f | 0x102 => (0, true),
        _ => return None,
    };
    let n_values = if is_list || is_sized { bytes.u32()? } else { 1 };
    for _ in 0..n_values {
        // Each value takes bytes, so a wrong number ends with them.
        let data = if is_sized { bytes.sized()? } else { bytes.take(n_bytes)? };
        // An object begins with the id of its interface.
        let data = if kind == 0x0d { data.get(16..).unwrap_or_default() } else { data };
        found(id, Value { is_unicode: kind == 0x1f, data });
    }
    Some(())
}

fn ansi(data: &[u8], codepage: Option<u32>) -> String {
    let charset = match codepage {
        None | Some(0) => "windows-1252".to_owned(),
        Some(65001) => "utf-8".to_owned(),
        Some(932) => "shift_jis".to_owned(),
        Some(936) => "gbk".to_owned(),
        Some(949) => "euc-kr".to_owned(),
        Some(950) => "big5".to_owned(),
        Some(codepage) => format!("windows-{codepage}"),
    };
    decode::text(data, Some(&charset)).trim_matches('\0').to_owned()
}

/// Bytes that are read from their beginning. A number is little-endian.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    /// Bytes after their number, filled up to a multiple of four.
    fn sized(&mut self) -> Option<&'a [u8]> {
        let n = self.u32()? as usize;
        let data = self.take(n)?;
        let fill = n.next_multiple_of(4) - n;
        self.0 = self.0.get(fill..).unwrap_or_default(); // the last one may lack it
        Some(data)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Writes a `winmail.dat` with a text and one file.
    pub(in crate::mail) fn written(text: &str, name: &str, content: &[u8]) -> Vec<u8> {
        let mut bytes = SIGNATURE.to_le_bytes().to_vec();
        bytes.extend(7_u16.to_le_bytes());
        let mut attribute = |level: u8, id: u32, data: &[u8]| {
            bytes.push(level);
            bytes.extend(id.to_le_bytes());
            bytes.extend((data.len() as u32).to_le_bytes());
            bytes.extend(data);
            bytes.extend(data.iter().fold(0_u16, |sum, byte| sum.wrapping_add(u16::from(*byte))).to_le_bytes());
        };
        attribute(1, 0x0006_9007, &1252_u64.to_le_bytes());
        let body: Vec<u8> = text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
        attribute(1, 0x0006_9003, &listed(&[(0x0b, 0x1234, vec![1, 0, 0, 0]), (0x1f, 0x1000, sized(&body))]));
        attribute(2, 0x0006_9002, &[0; 14]);
        attribute(2, 0x0001_8010, b"SHORT~1.PDF\0");
        attribute(2, 0x0006_800f, content);
        let long: Vec<u8> = name.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
        let kind = sized(b"application/pdf\0");
        attribute(2, 0x0006_9005, &listed(&[(0x1f, 0x3707, sized(&long)), (0x1e, 0x370e, kind)]));
        bytes
    }

    fn listed(properties: &[(u16, u16, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = (properties.len() as u32).to_le_bytes().to_vec();
        for (kind, id, value) in properties {
            bytes.extend(kind.to_le_bytes());
            bytes.extend(id.to_le_bytes());
            bytes.extend(value);
        }
        bytes
    }

    fn sized(data: &[u8]) -> Vec<u8> {
        let mut bytes = 1_u32.to_le_bytes().to_vec();
        bytes.extend((data.len() as u32).to_le_bytes());
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn text_and_files_are_unpacked() {
        let tnef = read(&written("Grüße", "Rechnung März.pdf", b"%PDF-1.7")).expect("a TNEF");
        assert_eq!(tnef.text.as_deref(), Some("Grüße"));
        let [file] = &tnef.files[..] else { panic!("{tnef:?}") };
        assert_eq!((file.name.as_deref(), &file.content[..]), (Some("Rechnung März.pdf"), &b"%PDF-1.7"[..]));
        assert_eq!(file.media_type.as_deref(), Some("application/pdf"));
    }

    #[test]
    fn damage_ends_it_and_nothing_panics() {
        let whole = written("text", "a.pdf", b"content");
        for end in 0..whole.len() {
            let tnef = read(&whole[..end]);
            assert_eq!(tnef.is_some(), end >= 6, "{end} bytes");
            for value in [0, 0x7f, 0xff] {
                let mut broken = whole.clone();
                broken[end] = value;
                let _ = read(&broken);
            }
        }
        assert_eq!(read(b"%PDF-1.7 and more"), None);
    }
}
