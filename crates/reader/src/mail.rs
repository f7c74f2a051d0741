//! Messages that were saved as files: as they were sent (eml), and as Outlook keeps them (msg). Their files are read as files inside.

use std::io::{Cursor, Read as _};

use cfb::CompoundFile;
use domain::mail::{LeftOut, parse};
use domain::reading::Unreadable;
use domain::text::html_to_text;

use crate::sink::Sink;
use crate::{DEEPEST, Result, Source, damaged, day, inside, text};

const MOST_FILES: usize = 200;
const MOST_TEXT_BYTES: u64 = 4 << 20;
const MOST_RECIPIENTS: usize = 50;
/// Properties by number and type.
const SENT_AT: u32 = 0x0039_0040;
const ARRIVED_AT: u32 = 0x0e06_0040;
const RECIPIENT_KIND: u32 = 0x0c15_0003;

pub(crate) fn eml(bytes: &[u8], sink: &mut Sink<'_>, depth: u32) -> Result<()> {
    let letter = parse(bytes);
    sink.head(letter.subject.clone(), None)?;
    sink.text(None, &letter.in_words())?;
    for file in letter.files.into_iter().take(MOST_FILES) {
        let Some(content) = file.content else {
            // Pictures in the text and entries of calendars are no files to anybody.
            if matches!(file.left_out, Some(LeftOut::Kind | LeftOut::TooLarge)) {
                let why =
                    if file.left_out == Some(LeftOut::Kind) { Unreadable::UnknownKind } else { Unreadable::TooLarge };
                let before = sink.enter(file.name.as_deref().unwrap_or("a file without a name"));
                sink.unread(why)?;
                sink.leave(before);
            }
            continue;
        };
        sink.unpacked(content.len() as u64)?;
        inside(Source { bytes: content.to_vec(), name: file.name, media_type: Some(file.media_type) }, sink, depth)?;
    }
    Ok(())
}

/// A folder of a compound file: a message, or a recipient or a file of one.
struct Folder<'a, 'b> {
    file: &'b mut CompoundFile<Cursor<&'a [u8]>>,
    path: String,
}

impl<'a> Folder<'a, '_> {
    fn inner(&mut self, name: &str) -> Folder<'a, '_> {
        Folder { path: format!("{}/{name}", self.path), file: self.file }
    }

    /// The folders in it whose names begin so, in order.
    fn named(&mut self, begin: &str) -> Vec<String> {
        let path = if self.path.is_empty() { "/" } else { &self.path };
        let entries = self.file.read_storage(path).into_iter().flatten();
        let names = entries.filter(|entry| entry.is_storage()).map(|entry| entry.name().to_owned());
        let mut names: Vec<String> = names.filter(|name| name.starts_with(begin)).collect();
        names.sort();
        names
    }

    /// A property, by its number and type in hex.
    fn bytes(&mut self, tag: &str, most: u64) -> Option<Vec<u8>> {
        self.stream(&format!("__substg1.0_{tag}"), most)
    }

    fn stream(&mut self, name: &str, most: u64) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let stream = self.file.open_stream(format!("{}/{name}", self.path)).ok()?;
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

    /// A property of few bytes. They are kept together: a head, then 16 bytes for each.
    fn small(&mut self, tag: u32) -> Option<u64> {
        let all = self.stream("__properties_version1.0", MOST_TEXT_BYTES)?;
        // The head has 8, 24 or 32 bytes, so entries begin at multiples of 8.
        let at = |begin: usize| all.get(begin..begin + 8)?.try_into().ok().map(u64::from_le_bytes);
        let is_it = |begin: &usize| at(*begin).is_some_and(|entry| entry & 0xffff_ffff == u64::from(tag));
        (8..all.len()).step_by(8).find(is_it).and_then(|begin| at(begin + 8))
    }

    /// Name and address, as people write them.
    fn person(&mut self, name: &str, addresses: [&str; 2]) -> Option<String> {
        let name = self.text(name);
        let address = addresses.into_iter().find_map(|number| self.text(number).filter(|text| text.contains('@')));
        match (name, address) {
            (Some(name), Some(address)) if name != address => Some(format!("{name} <{address}>")),
            (name, address) => name.or(address),
        }
    }
}

pub(crate) fn msg(bytes: &[u8], sink: &mut Sink<'_>, depth: u32) -> Result<()> {
    let mut file =
        CompoundFile::open(Cursor::new(bytes)).map_err(|_| damaged("a message of Outlook that cannot be opened"))?;
    message(Folder { file: &mut file, path: String::new() }, sink, depth)
}

fn message(mut message: Folder<'_, '_>, sink: &mut Sink<'_>, depth: u32) -> Result<()> {
    let subject = message.text("0037");
    sink.head(subject.clone(), None)?;
    let mut shown = String::new();
    let [to, cc] = recipients(&mut message);
    let sent_at = message.small(SENT_AT).or_else(|| message.small(ARRIVED_AT)).map(time);
    let from = message.person("0C1A", ["5D01", "0C1F"]);
    let to = to.or_else(|| message.text("0E04"));
    let cc = cc.or_else(|| message.text("0E03"));
    for (name, value) in [("From", from), ("To", to), ("Cc", cc), ("Date", sent_at), ("Subject", subject)] {
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
    for name in message.named("__attach_version1.0_#").iter().take(MOST_FILES) {
        attached(message.inner(name), sink, depth)?;
    }
    Ok(())
}

/// Reads a file of a message, or a message within it.
fn attached(mut file: Folder<'_, '_>, sink: &mut Sink<'_>, depth: u32) -> Result<()> {
    let name = file.text("3707").or_else(|| file.text("3704"));
    if let Some(content) = file.bytes("37010102", sink.room() + 1) {
        sink.unpacked(content.len() as u64)?;
        return inside(Source { bytes: content, name, media_type: file.text("370E") }, sink, depth);
    }
    let Some(inner) = file.named("__substg1.0_3701000D").pop() else { return Ok(()) };
    let before = sink.enter(name.or_else(|| file.text("3001")).as_deref().unwrap_or("a message"));
    let outcome = match depth < DEEPEST {
        true => message(file.inner(&inner), sink, depth + 1),
        false => sink.unread(Unreadable::TooLarge),
    };
    sink.leave(before);
    outcome
}

/// Those to whom a message was sent, and those who got a copy.
fn recipients(message: &mut Folder<'_, '_>) -> [Option<String>; 2] {
    let mut people: [Vec<String>; 2] = Default::default();
    for name in message.named("__recip_version1.0_#").iter().take(MOST_RECIPIENTS) {
        let mut recipient = message.inner(name);
        let kind = recipient.small(RECIPIENT_KIND).map(|kind| kind & 0xffff_ffff);
        let people = match kind {
            None | Some(1) => &mut people[0],
            Some(2) => &mut people[1],
            Some(_) => continue,
        };
        people.extend(recipient.person("3001", ["39FE", "3003"]));
    }
    people.map(|people| Some(people.join(", ")).filter(|people| !people.is_empty()))
}

/// A time as Windows counts it: in ten-millionths of a second since 1601.
fn time(ticks: u64) -> String {
    let minutes = (ticks / 600_000_000) as i64;
    let day = day::since_1970(minutes.div_euclid(1_440) - 134_774);
    format!("{day} {:02}:{:02} UTC", minutes / 60 % 24, minutes % 60)
}
