//! Reads files that strangers made: PDF, office documents, mail, tables, archives. It runs in a process of its own (`tributary read`), which has no rights,
//! no network and a limit on memory and time: a parser that overflows its stack takes nothing with it.
//!
//! Module `kind` tells what a file is. Each kind has a module, which gives pages to `sink`. What comes out is [`domain::reading`]; `docs/files.md` says what
//! is kept of each kind.

mod day;
mod jail;
mod kind;
mod mail;
mod markdown;
mod ocr;
mod odf;
mod onnx;
mod ooxml;
mod pdf;
mod picture;
mod places;
mod preview;
mod process;
mod raster;
mod rtf;
mod sheet;
mod sink;
mod speech;
mod table;
mod text;
mod unpack;
mod web;
mod xml;

use std::io::Write;

use domain::reading::{FileKind, Models, Unreadable};

pub use self::process::run;
pub use self::sink::Limits;
use self::sink::Sink;

/// A file as it was handed over.
#[derive(Clone, Debug, Default)]
pub struct Source {
    pub bytes: Vec<u8>,
    /// It decides only where bytes do not, and is never a path.
    pub name: Option<String>,
    /// As it was stated. It decides as little.
    pub media_type: Option<String>,
}

impl Source {
    /// The ending of its name, in small letters.
    fn ending(&self) -> Option<String> {
        let (_, ending) = self.name.as_deref()?.rsplit_once('.')?;
        (1..=10).contains(&ending.len()).then(|| ending.to_ascii_lowercase())
    }
}

/// The reasons to stop reading.
#[derive(Debug)]
enum Stop {
    Refused(Unreadable, String),
    /// No more is taken of one file.
    Enough,
    /// Nobody listens any more.
    Unheard(std::io::Error),
}

type Result<T> = std::result::Result<T, Stop>;

/// Stops because the file is not as its kind says.
fn damaged(detail: impl Into<String>) -> Stop {
    Stop::Refused(Unreadable::Damaged, detail.into())
}

/// Reads a file and writes what is in it, a line of JSON for each page but those that are `known`. An error: nobody takes it.
pub fn read(
    source: Source,
    limits: Limits,
    models: &Models,
    known: &[u32],
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let mut sink = Sink::new(out, limits, models, known);
    let outcome = whole(source, &mut sink);
    sink.close(outcome)
}

fn whole(source: Source, sink: &mut Sink<'_>) -> Result<()> {
    let kind = kind::of(&source)?;
    sink.kind(kind);
    of_kind(kind, source, sink, 0)
}

/// Reads a file of this kind. Files inside others are `depth` deep.
fn of_kind(kind: FileKind, source: Source, sink: &mut Sink<'_>, depth: u32) -> Result<()> {
    let bytes = source.bytes.as_slice();
    match kind {
        FileKind::Pdf => pdf::read(bytes, sink),
        FileKind::Docx => ooxml::docx::read(bytes, sink),
        FileKind::Xlsx => ooxml::xlsx::read(bytes, sink),
        FileKind::Pptx => ooxml::pptx::read(bytes, sink),
        FileKind::Odt | FileKind::Ods | FileKind::Odp => odf::read(bytes, sink),
        FileKind::Rtf => rtf::read(bytes, sink),
        FileKind::Eml => mail::eml(bytes, sink, depth),
        FileKind::Msg => mail::msg(bytes, sink, depth),
        FileKind::Html => text::html(bytes, sink),
        FileKind::Markdown | FileKind::Text => text::plain(bytes, sink),
        FileKind::Csv | FileKind::Tsv => table::read(bytes, kind, sink),
        FileKind::Zip => unpack::archive(bytes, sink, depth),
        FileKind::Image => picture::read(bytes, sink),
        FileKind::Audio => speech::read(bytes, sink),
    }
}

/// Files inside files inside a file are read, and none inside those.
const DEEPEST: u32 = 2;

/// Reads a file inside another, if it is not too deep. What cannot be read of it is a page that says so.
fn inside(source: Source, sink: &mut Sink<'_>, depth: u32) -> Result<()> {
    let label = source.name.clone().unwrap_or_else(|| "a file without a name".into());
    let before = sink.enter(&label);
    let outcome = match kind::of(&source) {
        Ok(FileKind::Zip | FileKind::Eml | FileKind::Msg) if depth >= DEEPEST => {
            Err(Stop::Refused(Unreadable::TooLarge, "a file in a file in a file".into()))
        }
        Ok(kind) => of_kind(kind, source, sink, depth + 1),
        Err(stop) => Err(stop),
    };
    let outcome = match outcome {
        Err(Stop::Refused(why, _)) if why != Unreadable::Bomb => sink.unread(why),
        outcome => outcome,
    };
    sink.leave(before);
    outcome
}

#[cfg(test)]
mod tests;
