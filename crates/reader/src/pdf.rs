//! PDF: the text that is stored in it, page by page. A page that is a picture is drawn, and its letters recognised.

use std::panic::catch_unwind;

use domain::reading::Unreadable;
use pdf_inspector::{
    PdfError, PositionFrame, TextItem, detect_pdf_mem, extract_pages_markdown_mem,
    extract_text_with_positions_mem_in_frame,
};

use crate::raster::{self, Pages};
use crate::sink::{Sink, trimmed};
use crate::{Result, Stop, damaged, places};

pub(crate) fn read(bytes: &[u8], sink: &mut Sink<'_>) -> Result<()> {
    let looked = detect_pdf_mem(bytes).map_err(refused)?;
    if looked.page_count > sink.limits().pages {
        return Err(Stop::Refused(Unreadable::TooManyPages, format!("{} pages", looked.page_count)));
    }
    sink.head(looked.title, Some(looked.page_count))?;
    let mut drawing = Drawing::new(bytes);
    for (index, page) in extract_pages_markdown_mem(bytes, None).map_err(refused)?.pages.into_iter().enumerate() {
        match page.needs_ocr {
            // Without a reason it may be only empty.
            true => drawing.read(index, page.ocr_reason.is_some(), sink)?,
            false => drawing.stored(index, &page.markdown, sink)?,
        }
    }
    Ok(())
}

/// The pages as they look. The file is opened for the first.
struct Drawing<'a> {
    bytes: &'a [u8],
    pages: Option<Option<Pages>>,
    /// The pieces of stored text with their places, in the order of their pages.
    pieces: Option<Vec<TextItem>>,
}

impl<'a> Drawing<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, pages: None, pieces: None }
    }

    fn pages(&mut self) -> Option<&Pages> {
        self.pages.get_or_insert_with(|| Pages::open(self.bytes)).as_ref()
    }

    /// A page of stored text, with the places of its lines.
    fn stored(&mut self, index: usize, text: &str, sink: &mut Sink<'_>) -> Result<()> {
        if sink.passes_known() {
            return Ok(());
        }
        let size = self.pages().and_then(|pages| pages.size(index));
        let bytes = self.bytes;
        let pieces = self.pieces.get_or_insert_with(|| {
            // A fault of the library costs the places, and no text.
            let found = catch_unwind(|| extract_text_with_positions_mem_in_frame(bytes, None, PositionFrame::Display));
            let mut pieces = found.ok().and_then(std::result::Result::ok).unwrap_or_default();
            pieces.sort_by_key(|piece| piece.page);
            pieces
        });
        let number = index as u32 + 1;
        let here =
            pieces.partition_point(|piece| piece.page < number)..pieces.partition_point(|piece| piece.page <= number);
        let text = trimmed(text, sink.limits().text_bytes);
        let lines = size.map(|size| places::of_lines(&text, &pieces[here], size)).unwrap_or_default();
        sink.drawable(&text, size.map(|(width, height)| width / height), lines)
    }

    /// Draws a page and recognises its letters.
    fn read(&mut self, index: usize, has_something: bool, sink: &mut Sink<'_>) -> Result<()> {
        if sink.passes_known() {
            return Ok(());
        }
        match sink.needs_ocr() {
            Err(Stop::Refused(why, _)) if has_something => return sink.unread(why),
            Err(Stop::Refused(..)) => return sink.text(None, ""),
            other => other?,
        }
        match self.pages().and_then(|pages| pages.draw(index)) {
            Some(page) if raster::is_blank(&page) => sink.text(None, ""),
            Some(page) => sink.picture(&page),
            None => sink.unread(Unreadable::Damaged),
        }
    }
}

fn refused(error: PdfError) -> Stop {
    match error {
        PdfError::Encrypted => Stop::Refused(Unreadable::Encrypted, "a PDF with a password".into()),
        PdfError::Parse(_) => damaged("a PDF that cannot be parsed"),
        PdfError::InvalidStructure => damaged("a PDF whose parts do not fit together"),
        PdfError::NotAPdf(_) => damaged("a PDF without a head"),
        PdfError::Io(_) => damaged("a PDF that ends too early"),
    }
}
