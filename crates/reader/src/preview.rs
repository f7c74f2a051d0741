//! The picture of a page, to be looked at beside its text. What leaves here is a JPEG that was made here: of the file itself a browser sees nothing.

use std::io::{self, Write};

use domain::reading::{FileKind, Line, Unreadable};
use image::RgbImage;
use image::codecs::jpeg::JpegEncoder;

use crate::raster::Pages;
use crate::{Source, Stop, damaged, kind, picture};

/// The longest side of a picture, in dots: sharp on a page of ours.
const LONGEST_SIDE: u32 = 1_400;
/// Letters are sharp, and a page has 100 to 300 KB.
const QUALITY: u8 = 80;

/// Draws a page of a file, counted from 1. An error: nobody takes it.
pub(crate) fn draw(source: &Source, page: u32, out: &mut dyn Write) -> io::Result<()> {
    let (line, jpeg) = match drawn(source, page).and_then(|picture| encoded(&picture)) {
        Ok(jpeg) => (Line::Picture { bytes: jpeg.len() as u64 }, jpeg),
        Err(Stop::Refused(why, detail)) => (Line::Refused { why, detail }, Vec::new()),
        Err(Stop::Enough) => (Line::Refused { why: Unreadable::TooLarge, detail: String::new() }, Vec::new()),
        Err(Stop::Unheard(error)) => return Err(error),
    };
    serde_json::to_writer(&mut *out, &line)?;
    out.write_all(b"\n")?;
    out.write_all(&jpeg)
}

fn drawn(source: &Source, page: u32) -> crate::Result<RgbImage> {
    let index = page.checked_sub(1).ok_or_else(|| damaged("there is no such page"))? as usize;
    match kind::of(source)? {
        FileKind::Pdf => Pages::open(&source.bytes)
            .and_then(|pages| pages.preview(index, LONGEST_SIDE))
            .ok_or_else(|| damaged("a page that cannot be drawn")),
        FileKind::Image => picture::preview(&source.bytes, index, LONGEST_SIDE),
        _ => Err(Stop::Refused(Unreadable::UnknownKind, "a file whose pages are not drawn".into())),
    }
}

fn encoded(picture: &RgbImage) -> crate::Result<Vec<u8>> {
    let mut jpeg = Vec::new();
    let encoder = JpegEncoder::new_with_quality(&mut jpeg, QUALITY);
    picture.write_with_encoder(encoder).map_err(|_| damaged("a page that cannot be drawn"))?;
    Ok(jpeg)
}
