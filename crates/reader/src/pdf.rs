//! PDF: the text that is stored in it, page by page. A page that is a picture is drawn, and its letters recognised.

use domain::reading::Unreadable;
use pdf_inspector::{PdfError, detect_pdf_mem, extract_pages_markdown_mem};

use crate::raster::{self, Pages};
use crate::sink::Sink;
use crate::{Result, Stop, damaged};

pub(crate) fn read(bytes: &[u8], sink: &mut Sink<'_>) -> Result<()> {
    let looked = detect_pdf_mem(bytes).map_err(refused)?;
    if looked.page_count > sink.limits().pages {
        return Err(Stop::Refused(Unreadable::TooManyPages, format!("{} pages", looked.page_count)));
    }
    sink.head(looked.title, Some(looked.page_count))?;
    let mut scans = Scans::new(bytes);
    for (index, page) in extract_pages_markdown_mem(bytes, None).map_err(refused)?.pages.into_iter().enumerate() {
        match page.needs_ocr {
            // Without a reason it may be only empty.
            true => scans.read(index, page.ocr_reason.is_some(), sink)?,
            false => sink.text(None, &page.markdown)?,
        }
    }
    Ok(())
}

/// The pages that are pictures. The file is opened for the first.
struct Scans<'a> {
    bytes: &'a [u8],
    pages: Option<Option<Pages>>,
}

impl<'a> Scans<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, pages: None }
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
        let pages = self.pages.get_or_insert_with(|| Pages::open(self.bytes));
        match pages.as_ref().and_then(|pages| pages.draw(index)) {
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
