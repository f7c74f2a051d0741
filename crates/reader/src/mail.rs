//! Messages that were saved as files: as they were sent (eml), and as Outlook keeps them (msg). Their files are read as files inside.

use std::io::{Cursor, Read as _};

use cfb::CompoundFile;
use domain::mail::parse;
use domain::text::html_to_text;

use crate::sink::Sink;
use crate::{Result, Source, damaged, inside, text};

const MOST_FILES: usize = 200;
const MOST_TEXT_BYTES: u64 = 4 << 20;

pub(crate) fn eml(bytes: &[u8], sink: &mut Sink<'_>, depth: u32) -> Result<()> {
    let letter = parse(bytes);
    sink.head(letter.subject.clone(), None)?;
    sink.text(None, &letter.in_words())?;
    for file in letter.files.into_iter().take(MOST_FILES) {
        let Some(content) = file.content else { continue };
        sink.unpacked(content.len() as u64)?;
        inside(Source { bytes: content.to_vec(), name: file.name, media_type: Some(file.media_type) }, sink, depth)?;
    }
    Ok(())
}

/// A property of a message or a file, by its number in hex.
struct Properties<'a> {
    file: CompoundFile<Cursor<&'a [u8]>>,
    folder: String,
}

impl Properties<'_> {
    fn bytes(&mut self, tag: &str, most: u64) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let stream = self.file.open_stream(format!("{}/__substg1.0_{tag}", self.folder)).ok()?;
        stream.take(most).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// A text, which is stored in either of two forms.
    fn text(&mut self, number: &str) -> Option<String> {
        let text = match self.bytes(&format!("{number}001F"), MOST_TEXT_BYTES) {
            Some(wide) => encoding_rs::UTF_16LE.decode_without_bom_handling(&wide).0.into_owned(),
            None => text::decoded(&self.bytes(&format!("{number}001E"), MOST_TEXT_BYTES)?),
        };
        Some(text.trim_end_matches('\0').trim().to_owned()).filter(|text| !text.is_empty())
    }
}

pub(crate) fn msg(bytes: &[u8], sink: &mut Sink<'_>, depth: u32) -> Result<()> {
    let file =
        CompoundFile::open(Cursor::new(bytes)).map_err(|_| damaged("a message of Outlook that cannot be opened"))?;
    let mut message = Properties { file, folder: String::new() };
    let subject = message.text("0037");
    let sender = [message.text("0C1A"), message.text("5D01").or_else(|| message.text("0C1F"))];
    let sender: Vec<String> = sender.into_iter().flatten().collect();
    sink.head(subject.clone(), None)?;
    let mut shown = String::new();
    let to = [("To", message.text("0E04")), ("Cc", message.text("0E03"))];
    let from = Some(sender.join(", ")).filter(|from| !from.is_empty());
    for (name, value) in [("From", from)].into_iter().chain(to).chain([("Subject", subject)]) {
        if let Some(value) = value {
            shown.push_str(&format!("{name}: {value}\n"));
        }
    }
    let html =
        message.bytes("10130102", MOST_TEXT_BYTES).map(|html| text::decoded(&html)).or_else(|| message.text("1013"));
    let body = message.text("1000").or_else(|| html.map(|html| html_to_text(&html).1));
    shown.push('\n');
    shown.push_str(&body.unwrap_or_default());
    sink.text(None, &shown)?;
    for nth in 0..MOST_FILES {
        let folder = format!("/__attach_version1.0_#{nth:08X}");
        if !message.file.is_storage(&folder) {
            break;
        }
        message.folder = folder;
        let name = message.text("3707").or_else(|| message.text("3704"));
        // A message inside a message is a folder of its own, which is not read.
        let Some(content) = message.bytes("37010102", sink.room() + 1) else { continue };
        sink.unpacked(content.len() as u64)?;
        inside(Source { bytes: content, name, media_type: message.text("370E") }, sink, depth)?;
    }
    Ok(())
}
