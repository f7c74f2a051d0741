//! The file of a document: how far it is read, its steps, and its text page by page.

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::IntoResponse;
use chrono::{DateTime, TimeDelta, Utc};
use domain::reading::{FileKind, Page, ReadBy, Step, Unreadable};
use domain::shown::{capitalised, clipped, dollars, duration, number, plural};
use domain::{DocumentId, DocumentStatus};
use engine::files::{self, Told};
use serde_json::Value;
use store::files::steps::{StepRow, StepState};
use store::files::{File, FileState};
use store::memory::Document;
use uuid::Uuid;

use super::Visitor;
use super::document::Fact;
use super::marked::{self, MarkQuery, Marked, Piece, Wanted, marked};
use super::reading::{self, how_far, is_under_way, part, way_out};
use super::text::{Badge, When};
use crate::api::error::ApiError;
use crate::api::extract::Path;
use crate::app::App;
use crate::edge::FILE_POLICY;

/// Pages of a file on one page of ours.
const PAGES: i32 = 20;
/// Pages that are unfolded.
const MOST_OPEN: usize = 3;
/// Characters of one page that are shown.
const MOST_PAGE_CHARS: usize = 20_000;
/// The longest side of a page's picture, and the width of a sheet of A4 as a share of its height.
const LONGEST_SIDE: f32 = 1_400.0;
const A4: f32 = 0.707;
/// A step that took less took no time worth telling.
const NO_TIME: TimeDelta = TimeDelta::milliseconds(100);

/// A document's file, as far as it is known.
pub(super) struct FilePart {
    pub facts: Vec<Fact>,
    /// Further remarks on it: it was cut, or what the reader said about its refusal.
    pub notes: Vec<String>,
    pub steps: Vec<StepLine>,
    /// The word on the button that has it read again.
    pub again: Option<&'static str>,
}

/// A step of reading it.
pub(super) struct StepLine {
    /// Drawn as done, waiting or wrong.
    pub tone: &'static str,
    pub what: &'static str,
    pub at: When,
    pub detail: String,
    /// How long it took, by what it was done, and what it cost.
    pub how: String,
}

impl FilePart {
    pub fn new(document: &Document, told: &Told, now: DateTime<Utc>) -> Self {
        let file = told.file.as_ref();
        let kind = kind(told);
        let fact = |label, text: String| Fact { label, text, times: Vec::new() };
        let mut facts = vec![fact(
            "Kind",
            match (kind, file.and_then(|file| file.kind.as_deref())) {
                (Some(kind), _) => capitalised(kind.in_words()),
                (None, Some(word)) => clipped(word, 40),
                (None, None) => "not known yet".into(),
            },
        )];
        if let Some(file) = file {
            facts.push(fact(capital_parts(kind), pages_read(told.n_pages, file.n_pages)));
            facts.extend(file.language.as_deref().map(|language| fact("Spoken language", clipped(language, 40))));
        }
        let mut notes = Vec::new();
        if file.is_some_and(|file| file.is_cut) {
            notes.push("There is more text in it than is read of one file, so its end is missing here.".to_owned());
        }
        let detail = file.and_then(|file| file.detail.as_deref()).map(str::trim).filter(|detail| !detail.is_empty());
        notes.extend(detail.map(|detail| format!("The reader says: {}", clipped(detail, 300))));
        let steps = told.steps.iter().map(|step| StepLine::new(step, kind, now)).collect();
        Self { facts, notes, steps, again: reading::again(document.status) }
    }
}

/// The state of a document whose file is not read, and what to do about it. None: it is read.
pub(super) fn story(document: &Document, told: Option<&Told>) -> Option<(Badge, String)> {
    let badge = reading::badge(document.status).filter(|_| document.deleted_at.is_none())?;
    let words = match document.status {
        DocumentStatus::Pending if document.n_chunks > 0 => {
            "It waits to be read again. Until then search finds what was read before.".to_owned()
        }
        DocumentStatus::Pending => "It waits to be read. Until then search does not find what is in it.".to_owned(),
        DocumentStatus::Extracting => "It is read and found. Its fields are being looked for again.".to_owned(),
        status if is_under_way(status) => being_read(told),
        DocumentStatus::Skipped => stuck("It was not read", document, told),
        _ => stuck("Reading it failed", document, told),
    };
    Some((badge, words))
}

fn being_read(told: Option<&Told>) -> String {
    let Some((told, file)) = told.and_then(|told| Some((told, told.file.as_ref()?))) else {
        return "It is being read.".into();
    };
    let is_recognising = file.state == FileState::Recognising;
    let at = match how_far(part(kind(told)), told.n_pages, file.n_pages, false) {
        at if at.is_empty() || is_recognising => ".".to_owned(),
        at => format!(": {at}."),
    };
    match is_recognising {
        true => "Letters in its pictures, or its speech, are being recognised, which takes seconds a page. What is stored in it as text is found already."
            .into(),
        false => format!("It is being read{at}"),
    }
}

/// The reason why a file is not read, in a sentence, and another one of what to do.
fn stuck(begin: &str, document: &Document, told: Option<&Told>) -> String {
    let failed = told.and_then(|told| told.steps.iter().find(|step| step.state == StepState::Failed));
    let (why, todo) = match (document.skip_reason.as_deref(), failed.and_then(|step| step.error.as_deref())) {
        (Some(word), _) => (reading::why(word), word.parse::<Unreadable>().ok().map(way_out)),
        (None, Some(error)) => (clipped(error, 300), None),
        (None, None) => return format!("{begin}."),
    };
    let todo = todo.unwrap_or("Try again; if it ends in the same way, look at System, Queues.");
    format!("{begin}: {}. {todo}", why.trim_end_matches('.'))
}

fn kind(told: &Told) -> Option<FileKind> {
    told.file.as_ref().and_then(|file| file.kind())
}

fn capital_parts(kind: Option<FileKind>) -> &'static str {
    match part(kind) {
        "sheet" => "Sheets",
        "slide" => "Slides",
        "file" => "Files",
        "part" => "Parts",
        _ => "Pages",
    }
}

/// "12", or "3 of 12 read".
fn pages_read(n_read: i64, n_pages: Option<i32>) -> String {
    match n_pages.map(i64::from) {
        Some(all) if all > n_read => format!("{} of {} read", number(n_read), number(all)),
        _ => number(n_read),
    }
}

impl StepLine {
    fn new(step: &StepRow, kind: Option<FileKind>, now: DateTime<Utc>) -> Self {
        let (tone, what) = match (step.step, step.state) {
            (Step::Classify, StepState::Done) => ("done", "Let in"),
            (Step::Classify, StepState::Running) => ("waiting", "Being let in"),
            (Step::Classify, StepState::Failed) => ("wrong", "Not let in"),
            (Step::Transcribe, StepState::Done) => ("done", "Read"),
            (Step::Transcribe, StepState::Running) => ("waiting", "Being read"),
            (Step::Transcribe, StepState::Failed) => ("wrong", "Not read"),
            (Step::Extract, StepState::Done) => ("done", "Fields looked for"),
            (Step::Extract, StepState::Running) => ("waiting", "Fields being looked for"),
            (Step::Extract, StepState::Failed) => ("wrong", "Fields not found"),
        };
        let detail = match (&step.error, step.step) {
            (Some(error), _) => capitalised(&clipped(error, 400)),
            (None, Step::Transcribe) => pages_in_words(&step.outcome, kind),
            (None, Step::Extract) if step.state == StepState::Done => fields_in_words(&step.outcome),
            (None, _) => String::new(),
        };
        Self { tone, what, at: When::new(step.ended_at.unwrap_or(step.begun_at), now), detail, how: how(step) }
    }
}

/// How long a step took, how often it was tried, by what it was done, and what it cost.
fn how(step: &StepRow) -> String {
    let took = step.ended_at.map(|ended| ended - step.begun_at).filter(|took| *took >= NO_TIME);
    let said = [
        took.map(|took| format!("took {}", duration(took))),
        (step.tries > 1).then(|| format!("{} tries", number(step.tries.into()))),
        step.done_by.as_deref().map(|by| format!("by {}", clipped(by, 80))),
        (step.cost_micros > 0).then(|| format!("cost {}", dollars(step.cost_micros))),
    ];
    said.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// "12 pages, 2 of them recognised from pictures (93 % sure), 1 without text".
fn pages_in_words(outcome: &Value, kind: Option<FileKind>) -> String {
    let n = |name: &str| outcome.get(name).and_then(Value::as_i64).unwrap_or(0);
    let one = part(kind);
    let Some(pages) = outcome.get("pages").and_then(Value::as_i64) else { return String::new() };
    let recognised = |n: i64, of: &str| (n > 0).then(|| format!("{} recognised from {of}", number(n)));
    let sure = outcome.get("confidence").and_then(Value::as_f64).map(|sure| format!("{} sure", percent(sure)));
    let said = [
        Some(plural(pages, one, &format!("{one}s"))),
        recognised(n("by_ocr"), "pictures"),
        recognised(n("by_speech"), "speech"),
        sure,
        (n("without_text") > 0).then(|| format!("{} not read to the end", number(n("without_text")))),
    ];
    said.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn fields_in_words(outcome: &Value) -> String {
    let n = outcome.get("fields").and_then(Value::as_i64).unwrap_or(0);
    let paper = outcome.get("paper").and_then(Value::as_str).map(|paper| clipped(&paper.replace('_', " "), 40));
    match (paper, n) {
        (None, 0) => "It is no paper whose fields are known here".into(),
        (None, n) => plural(n, "field", "fields"),
        (Some(paper), n) => format!("{}: {}", capitalised(&paper), plural(n, "field", "fields")),
    }
}

/// `93 %`; never more than was measured.
pub(super) fn percent(share: f64) -> String {
    format!("{} %", (share.clamp(0.0, 1.0) * 100.0).floor())
}

/// The text of a file, some pages of it.
pub(super) struct PagesPart {
    pub pages: Vec<PageRow>,
    /// "Pages 21 to 40 of 350"; empty where all are here.
    pub span: String,
    pub earlier: Option<String>,
    pub later: Option<String>,
}

/// A page, sheet or slide.
pub(super) struct PageRow {
    pub number: u32,
    /// "Page 7", "Sheet 2: Prices".
    pub name: String,
    /// By what it was recognised, and why it has no text, or not all of it.
    pub told: String,
    pub text: Vec<Piece>,
    /// The boxes of the lines that are marked.
    pub boxes: Vec<marked::LineBox>,
    /// A link leads to a place on it that was not found: it leads to the page itself.
    pub is_unmarked: bool,
    /// None: it cannot be drawn.
    pub picture: Option<Picture>,
    /// It is unfolded.
    pub is_open: bool,
    /// The file has this page alone, so that it needs no name.
    pub is_alone: bool,
}

/// The picture of a page, which is drawn when somebody looks at it.
pub(super) struct Picture {
    pub href: String,
    pub width: u32,
    pub height: u32,
    pub alt: String,
}

/// A page as it looks.
pub(crate) async fn picture(
    State(app): State<App>,
    visitor: Visitor,
    Path((id, number)): Path<(Uuid, i32)>,
) -> Result<impl IntoResponse, ApiError> {
    let jpeg = files::preview(&app.env, &visitor, DocumentId(id), number).await?;
    let headers = [
        (CONTENT_TYPE, "image/jpeg"),
        (CONTENT_DISPOSITION, "inline"),
        (CONTENT_SECURITY_POLICY, FILE_POLICY),
        (CACHE_CONTROL, "private, max-age=600"),
    ];
    Ok((headers, jpeg))
}

/// The page of ours that shows a page of a file, at its place.
pub(super) fn address(document: Uuid, page: i32) -> String {
    match page {
        ..=PAGES => format!("/documents/{document}#page-{page}"),
        _ => format!("/documents/{document}?page={page}#page-{page}"),
    }
}

/// The page after which ours begins, so that it has this one.
fn before(page: i32) -> i32 {
    (page.max(1) - 1) / PAGES * PAGES
}

/// Reads the pages around one. None: nothing is read yet.
pub(super) async fn pages(
    app: &App,
    visitor: &Visitor,
    document: &Document,
    told: &Told,
    page: Option<i32>,
    mark: &MarkQuery,
) -> Result<Option<PagesPart>, ApiError> {
    let after = before(page.unwrap_or(1));
    let read = files::pages(&app.env, visitor, DocumentId(document.id), after, PAGES.into()).await?;
    if read.is_empty() && after == 0 {
        return Ok(None);
    }
    let mark = Wanted::of(mark, &told.fields, app, visitor).await?;
    let (kind, last) = (kind(told), i32::try_from(told.n_pages).unwrap_or(i32::MAX));
    let to = |page: i32| format!("/documents/{}?page={page}#text", document.id);
    let end = after.saturating_add(PAGES);
    let is_whole = after == 0 && end >= last;
    Ok(Some(PagesPart {
        span: match is_whole {
            true => String::new(),
            false => format!(
                "{} {} to {} of {}",
                capital_parts(kind),
                number((after + 1).into()),
                number(end.min(last).into()),
                number(last.into())
            ),
        },
        earlier: (after > 0).then(|| to(after)),
        later: (end < last).then(|| to(end + 1)),
        pages: rows(read, is_whole, &View { document: document.id, file: told.file.as_ref(), page, mark }),
    }))
}

/// The part of a document that is looked at: a file, and maybe one of its pages and a place on that.
struct View<'a> {
    document: Uuid,
    file: Option<&'a File>,
    page: Option<i32>,
    mark: Option<Wanted>,
}

fn rows(read: Vec<Page>, is_whole: bool, view: &View<'_>) -> Vec<PageRow> {
    let is_alone = is_whole && read.len() == 1;
    let row = |(nth, page): (usize, Page)| PageRow {
        is_open: nth < MOST_OPEN || view.is_at(&page),
        is_alone: is_alone && page.label.is_none(),
        ..PageRow::new(page, view)
    };
    read.into_iter().enumerate().map(row).collect()
}

impl View<'_> {
    fn is_at(&self, page: &Page) -> bool {
        self.page.is_some_and(|wanted| i64::from(wanted) == i64::from(page.number))
    }

    /// The picture of a page. One that was read before sizes were kept is shown on a sheet of A4.
    fn picture(&self, page: &Page, name: &str) -> Option<Picture> {
        let number = i32::try_from(page.number).ok()?;
        self.file.filter(|file| files::is_drawable(file, number))?;
        let aspect = page.aspect.filter(|aspect| (0.05..20.0).contains(aspect)).unwrap_or(A4);
        let side = |share: f32| (LONGEST_SIDE * share.min(1.0)).round() as u32;
        Some(Picture {
            href: format!("/documents/{}/pages/{number}/picture", self.document),
            width: side(aspect),
            height: side(1.0 / aspect),
            alt: format!("{name} as it looks"),
        })
    }
}

impl PageRow {
    fn new(page: Page, view: &View<'_>) -> Self {
        let kind = view.file.and_then(|file| file.kind());
        let sure = page.confidence.map(|sure| format!(", {} sure", percent(sure.into()))).unwrap_or_default();
        let recognised = match page.read_by {
            ReadBy::Text => None,
            ReadBy::Ocr => Some(format!("recognised from a picture{sure}")),
            ReadBy::Speech => Some(format!("recognised from speech{sure}")),
        };
        let is_empty = page.text.trim().is_empty();
        let trouble = match (page.trouble, is_empty) {
            (Some(why), true) => Some(format!("no text: {}", why.in_words())),
            (Some(why), false) => Some(format!("not all of its text: {}", why.in_words())),
            (None, true) => Some("no text".to_owned()),
            (None, false) => None,
        };
        let is_marked = view.mark.is_some() && view.is_at(&page);
        let Marked { text, boxes } = marked(&page, view.mark.as_ref().filter(|_| is_marked), MOST_PAGE_CHARS);
        let number = number(page.number.into());
        let name = match &page.label {
            Some(label) => format!("{} {number}: {}", capitalised(part(kind)), clipped(label, 120)),
            None => format!("{} {number}", capitalised(part(kind))),
        };
        Self {
            number: page.number,
            picture: view.picture(&page, &name),
            name,
            told: [recognised, trouble].into_iter().flatten().collect::<Vec<_>>().join("; "),
            is_unmarked: is_marked && text.iter().all(|piece| !piece.is_first),
            text,
            boxes,
            is_open: false,
            is_alone: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn view(file: &File, page: Option<i32>) -> View<'_> {
        View { document: Uuid::nil(), file: Some(file), page, mark: None }
    }

    fn file(kind: FileKind) -> File {
        File {
            reading_id: Uuid::nil(),
            reader_version: 1,
            state: FileState::Read,
            kind: Some(kind.as_str().into()),
            title: None,
            n_pages: Some(9),
            is_cut: false,
            refusal: None,
            detail: None,
            language: None,
            seconds: None,
        }
    }

    #[test]
    fn pages_of_pdfs_and_pictures_have_a_picture_of_a_fixed_size() {
        let (pdf, id) = (file(FileKind::Pdf), Uuid::nil());
        let of = |file: &File, page: Page| PageRow::new(page, &view(file, None)).picture;
        let lying = of(&pdf, Page { aspect: Some(1.414), ..page(9, "a") }).expect("a picture");
        assert_eq!((lying.width, lying.height, lying.alt.as_str()), (1_400, 990, "Page 9 as it looks"));
        assert_eq!(lying.href, format!("/documents/{id}/pages/9/picture"));
        for aspect in [None, Some(f32::NAN), Some(0.0)] {
            let unknown = of(&pdf, Page { aspect, ..page(1, "") }).expect("a picture");
            assert_eq!((unknown.width, unknown.height), (990, 1_400), "{aspect:?}");
        }
        assert!(of(&pdf, page(10, "a")).is_none() && of(&file(FileKind::Docx), page(1, "a")).is_none());
    }

    fn page(number: u32, text: &str) -> Page {
        Page {
            number,
            label: None,
            text: text.into(),
            read_by: ReadBy::Text,
            confidence: None,
            trouble: None,
            aspect: None,
            lines: Vec::new(),
        }
    }

    #[test]
    fn a_page_is_reached_by_its_number() {
        let id = Uuid::nil();
        for (page, expected) in
            [(7, "#page-7"), (20, "#page-20"), (21, "?page=21#page-21"), (350, "?page=350#page-350")]
        {
            assert_eq!(address(id, page), format!("/documents/{id}{expected}"));
        }
        for (page, expected) in [(-5, 0), (0, 0), (1, 0), (20, 0), (21, 20), (350, 340), (i32::MAX, 2_147_483_640)] {
            assert_eq!(before(page), expected, "{page}");
        }
    }

    #[test]
    fn the_first_pages_and_the_one_that_is_wanted_are_unfolded() {
        let of = |n: u32, wanted| -> Vec<u32> {
            let read = (1..=n).map(|number| page(number, "a")).collect();
            rows(read, true, &view(&file(FileKind::Pdf), wanted))
                .into_iter()
                .filter(|row| row.is_open)
                .map(|row| row.number)
                .collect()
        };
        assert_eq!(of(2, None), [1, 2]);
        assert_eq!(of(9, None), [1, 2, 3]);
        assert_eq!(of(9, Some(7)), [1, 2, 3, 7]);
        let alone = |read| rows(read, true, &view(&file(FileKind::Text), None)).into_iter().all(|row| row.is_alone);
        assert!(alone(vec![page(1, "a")]) && !alone(vec![page(1, "a"), page(2, "b")]));
        assert!(!alone(vec![Page { label: Some("Prices".into()), ..page(1, "a") }]));
    }

    #[test]
    fn a_page_says_its_name_by_what_it_was_recognised_and_why_it_has_no_text() {
        let of = |page: Page, kind| {
            let row = PageRow::new(page, &view(&file(kind), None));
            (row.name, row.told)
        };
        let said = |name: &str, told: &str| (name.to_owned(), told.to_owned());
        assert_eq!(of(page(1_200, "a"), FileKind::Pdf), said("Page 1,200", ""));
        let sheet = Page { label: Some("Prices".into()), ..page(2, "a") };
        assert_eq!(of(sheet, FileKind::Xlsx), said("Sheet 2: Prices", ""));
        let scan = Page { read_by: ReadBy::Ocr, confidence: Some(0.938), ..page(3, "a") };
        assert_eq!(of(scan, FileKind::Pdf), said("Page 3", "recognised from a picture, 93 % sure"));
        let bare = Page { trouble: Some(Unreadable::OcrNotInstalled), ..page(4, " ") };
        let why = "no text: it is a scan, and nothing here recognises letters in pictures";
        assert_eq!(of(bare, FileKind::Pdf), said("Page 4", why));
        let part = Page { trouble: Some(Unreadable::TooSlow), ..page(5, "a") };
        assert_eq!(of(part, FileKind::Audio), said("Part 5", "not all of its text: reading it took too long"));
        assert_eq!(of(page(6, ""), FileKind::Pptx), said("Slide 6", "no text"));
    }

    #[test]
    fn a_step_says_how_it_was_done() {
        let at = DateTime::UNIX_EPOCH;
        let step = StepRow {
            step: Step::Transcribe,
            state: StepState::Done,
            outcome: json!({ "pages": 12, "by_ocr": 2, "by_speech": 0, "without_text": 1, "confidence": 0.9321 }),
            error: None,
            tries: 2,
            done_by: Some("reader 1".into()),
            cost_micros: 12_000,
            begun_at: at,
            ended_at: Some(at + TimeDelta::milliseconds(1_240)),
        };
        let line = StepLine::new(&step, Some(FileKind::Pdf), at);
        assert_eq!((line.tone, line.what), ("done", "Read"));
        assert_eq!(line.detail, "12 pages, 2 recognised from pictures, 93 % sure, 1 not read to the end");
        assert_eq!(line.how, "took 1.2 s, 2 tries, by reader 1, cost $0.01");
        let failed = StepRow { state: StepState::Failed, error: Some("the file is damaged".into()), ..step };
        let line = StepLine::new(&failed, None, at);
        assert_eq!((line.tone, line.what, line.detail.as_str()), ("wrong", "Not read", "The file is damaged"));
    }

    #[test]
    fn fields_and_pages_are_counted_in_words() {
        for (outcome, words) in [
            (json!({ "paper": null, "fields": 0 }), "It is no paper whose fields are known here"),
            (json!({ "paper": "credit_note", "fields": 12 }), "Credit note: 12 fields"),
            (json!({ "fields": 1 }), "1 field"),
        ] {
            assert_eq!(fields_in_words(&outcome), words);
        }
        assert_eq!((pages_read(3, Some(12)), pages_read(12, Some(12))), ("3 of 12 read".into(), "12".into()));
        assert_eq!((pages_read(5, Some(4)), pages_read(0, None)), ("5".into(), "0".into()));
        assert_eq!((percent(0.999), percent(2.0), percent(-1.0)), ("99 %".into(), "100 %".into(), "0 %".into()));
    }
}
