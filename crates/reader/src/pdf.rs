//! PDF: the text that is stored in it, page by page. A page that is a picture says so.

use domain::reading::Unreadable;
use pdf_inspector::{PdfError, detect_pdf_mem, extract_pages_markdown_mem};

use crate::sink::Sink;
use crate::{Result, Stop, damaged};

pub(crate) fn read(bytes: &[u8], sink: &mut Sink<'_>) -> Result<()> {
    let looked = detect_pdf_mem(bytes).map_err(refused)?;
    if looked.page_count > sink.limits().pages {
        return Err(Stop::Refused(Unreadable::TooManyPages, format!("{} pages", looked.page_count)));
    }
    sink.head(looked.title, Some(looked.page_count))?;
    for page in extract_pages_markdown_mem(bytes, None).map_err(refused)?.pages {
        // Without a reason the page is only empty.
        match page.ocr_reason {
            Some(_) => sink.unread(Unreadable::OcrNotInstalled)?,
            None => sink.text(None, &page.markdown)?,
        }
    }
    Ok(())
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
