//! How far the files of documents are read, in words: on their pages, and in lists of documents.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use domain::reading::{FileKind, Unreadable};
use domain::shown::{capitalised, clipped, number};
use domain::{Caller, DocumentStatus};
use store::files::progress::{self, Progress};
use store::memory::Listed;
use uuid::Uuid;

use super::flow::NewestRow;
use super::text::Badge;
use crate::app::App;

/// A line of a list of documents, with how far its file is read.
pub(super) struct ReadRow {
    pub row: NewestRow,
    /// The page at which the reader is, or the reason why there is no text.
    pub told: String,
    /// The word on the button that has it read again, if it was skipped, or failed.
    pub again: Option<&'static str>,
    /// Where that button leads.
    pub again_href: String,
}

/// Makes the lines of a list of documents. Of files that are being read it looks up how far.
pub(super) async fn rows(
    app: &App,
    caller: &Caller,
    listed: &[Listed],
    now: DateTime<Utc>,
) -> store::Result<Vec<ReadRow>> {
    let under_way: Vec<Uuid> = listed.iter().filter(|row| is_under_way(row.status)).map(|row| row.id).collect();
    let found = match under_way.is_empty() {
        true => Vec::new(),
        false => app.env.db.read(caller, async |tx| progress::of(tx, &under_way).await).await?,
    };
    let found: HashMap<Uuid, Progress> = found.into_iter().map(|progress| (progress.id, progress)).collect();
    Ok(listed.iter().map(|listed| ReadRow::new(listed, found.get(&listed.id), now)).collect())
}

impl ReadRow {
    fn new(listed: &Listed, progress: Option<&Progress>, now: DateTime<Utc>) -> Self {
        let mut row = NewestRow::remembered(listed, now);
        if let Some(badge) = badge(listed.status) {
            (row.badge, row.is_open) = (badge, true);
        }
        let told = match listed.status {
            DocumentStatus::Skipped | DocumentStatus::Failed => {
                listed.skip_reason.as_deref().map(|word| capitalised(&why(word))).unwrap_or_default()
            }
            status if is_under_way(status) => capitalised(&progress.map(at_page).unwrap_or_default()),
            _ => String::new(),
        };
        let is_stuck = matches!(listed.status, DocumentStatus::Skipped | DocumentStatus::Failed);
        let again_href = format!("/documents/{}/read-again", listed.id);
        Self { told, again: again(listed.status).filter(|_| is_stuck), again_href, row }
    }
}

/// Whether the file is still to be read, or is being read.
pub(super) fn is_under_way(status: DocumentStatus) -> bool {
    use DocumentStatus::{Classifying, Extracting, Pending, Transcribing};
    matches!(status, Pending | Classifying | Transcribing | Extracting)
}

/// The state of a file as a coloured word. None: it is read, which is the ordinary state.
pub(super) fn badge(status: DocumentStatus) -> Option<Badge> {
    match status {
        DocumentStatus::Pending => Some(Badge("waiting")),
        DocumentStatus::Classifying | DocumentStatus::Transcribing | DocumentStatus::Extracting => {
            Some(Badge("reading"))
        }
        DocumentStatus::Completed => None,
        DocumentStatus::Skipped => Some(Badge("skipped")),
        DocumentStatus::Failed => Some(Badge("failed")),
    }
}

/// The state of a file, as a filter offers it.
pub(super) fn state_in_words(status: DocumentStatus) -> &'static str {
    match status {
        DocumentStatus::Pending => "Waiting",
        DocumentStatus::Classifying => "Being let in",
        DocumentStatus::Transcribing => "Being read",
        DocumentStatus::Extracting => "Fields being found",
        DocumentStatus::Completed => "Read",
        DocumentStatus::Skipped => "Skipped",
        DocumentStatus::Failed => "Failed",
    }
}

/// The word on the button that has a file read again. None: it is being read.
pub(super) fn again(status: DocumentStatus) -> Option<&'static str> {
    match status {
        DocumentStatus::Completed => Some("Read again"),
        DocumentStatus::Skipped => Some("Process anyway"),
        DocumentStatus::Failed => Some("Try again"),
        _ => None,
    }
}

/// The reason why a file is not read, for people. A word that is not known is shown as it is.
pub(super) fn why(word: &str) -> String {
    word.parse::<Unreadable>().map_or_else(|_| clipped(word, 120), |why| why.in_words().to_owned())
}

/// The advice about a file that is not read.
pub(super) fn way_out(why: Unreadable) -> &'static str {
    match why {
        Unreadable::Empty => "Add it again, if something should be in it.",
        Unreadable::NoText => "There is nothing to do, unless you expected text: then look at the original.",
        Unreadable::Encrypted => "Save a copy of it without a password, and add that.",
        Unreadable::Damaged => "Open it in the program that made it, save it anew, and add that.",
        Unreadable::UnknownKind => "Save it as a PDF or as text, and add that.",
        Unreadable::Program => "Programs are kept and never run. There is nothing to do.",
        Unreadable::Bomb => "Unpack it yourself, and add the files that you need.",
        Unreadable::TooLarge => "Split it, or raise FILE_MAX_BYTES and try again.",
        Unreadable::TooManyPages => "Split it, or raise FILE_MAX_PAGES and try again.",
        Unreadable::TooSlow | Unreadable::TooMuchMemory => {
            "Try again when less is going on here. If it ends in the same way, split it."
        }
        Unreadable::Unsafe => "Try again. If it ends in the same way, save it in another format and add that.",
        Unreadable::OcrNotInstalled => {
            "Start the program with ./tributary, which brings what recognises letters, or set OCR_MODEL_DIR; then process it anyway."
        }
        Unreadable::SpeechNotInstalled => {
            "Start the program with ./tributary, which brings what recognises speech, or set SPEECH_MODEL_DIR; then process it anyway."
        }
        Unreadable::Missing => "Add it again, or restore the blob store from a backup and try again.",
    }
}

/// The name of a file's parts: "page", "sheet", "slide".
pub(super) fn part(kind: Option<FileKind>) -> &'static str {
    match kind {
        Some(FileKind::Audio) => "part",
        Some(kind) => kind.part(),
        None => "page",
    }
}

/// "page 3 of 12"; nothing before the first page.
fn at_page(progress: &Progress) -> String {
    let part = part(progress.kind.as_deref().and_then(|kind| kind.parse().ok()));
    how_far(part, progress.n_read, progress.n_pages, progress.is_recognising)
}

/// How many pages of a file that is being read are read: "page 3 of 12".
pub(super) fn how_far(part: &str, n_read: i64, n_pages: Option<i32>, is_recognising: bool) -> String {
    let begin = if is_recognising { "recognising letters or speech: " } else { "" };
    match (n_read, n_pages.map(i64::from)) {
        (..=0, _) => begin.trim_end_matches(": ").to_owned(),
        (read, Some(all)) if all >= read => format!("{begin}{part} {} of {}", number(read), number(all)),
        (read, _) => format!("{begin}{part} {}", number(read)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_told_in_words_and_an_unknown_one_as_it_is() {
        assert_eq!(why("encrypted"), "it is locked with a password");
        assert_eq!(why("ocr_not_installed"), "it is a scan, and nothing here recognises letters in pictures");
        assert_eq!(why("eaten_by\u{202e}moths"), "eaten_by⟨U+202E⟩moths");
        assert!(Unreadable::ALL.into_iter().all(|why| way_out(why).ends_with('.')));
    }

    #[test]
    fn only_what_is_not_ordinary_has_a_state() {
        use DocumentStatus::{Completed, Extracting, Failed, Pending, Skipped, Transcribing};
        let of = |status| (badge(status).map(|badge| badge.0), state_in_words(status), again(status));
        assert_eq!(of(Completed), (None, "Read", Some("Read again")));
        assert_eq!(of(Pending), (Some("waiting"), "Waiting", None));
        assert_eq!(of(Transcribing), (Some("reading"), "Being read", None));
        assert_eq!(of(Extracting), (Some("reading"), "Fields being found", None));
        assert_eq!(of(Skipped), (Some("skipped"), "Skipped", Some("Process anyway")));
        assert_eq!(of(Failed), (Some("failed"), "Failed", Some("Try again")));
    }

    #[test]
    fn the_page_at_which_a_reader_is_has_the_word_of_its_kind() {
        for (kind, n_read, n_pages, is_recognising, words) in [
            (Some(FileKind::Pdf), 0, Some(12), false, ""),
            (Some(FileKind::Pdf), 3, Some(12), false, "page 3 of 12"),
            (Some(FileKind::Xlsx), 2, Some(3), false, "sheet 2 of 3"),
            (Some(FileKind::Zip), 1_200, None, false, "file 1,200"),
            (Some(FileKind::Zip), 5, Some(4), false, "file 5"),
            (Some(FileKind::Image), 0, Some(1), true, "recognising letters or speech"),
            (Some(FileKind::Pdf), 3, Some(12), true, "recognising letters or speech: page 3 of 12"),
            (Some(FileKind::Audio), 2, None, true, "recognising letters or speech: part 2"),
            (None, 1, None, false, "page 1"),
        ] {
            assert_eq!(how_far(part(kind), n_read, n_pages, is_recognising), words, "{kind:?} {n_read}");
        }
    }
}
