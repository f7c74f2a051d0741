//! Reads a file into pages, which are kept as they come: whoever goes on after a crash, or finds the same bytes elsewhere, has them.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use domain::reading::{FileKind, Line, Models, Page, READER_VERSION, Request, Unreadable};
use domain::{Fault, Notice, Op, TenantId};
use serde_json::Value;
use store::crash::{self, Point};
use store::files::{self, Awaited, Ended, File, FileState};
use uuid::Uuid;

use super::child::{Heard, Patience, Reader};
use crate::work::Lease;
use crate::{Config, Env};

/// Pages are kept after so many, after so much text, or after this time.
const MOST_PAGES: usize = 200;
const MOST_BYTES: usize = 1 << 20;
const KEEP_EVERY: Duration = Duration::from_secs(2);
/// A reader that tells of more text is not believed.
const MOST_TEXT_BYTES: usize = 24 << 20;

/// The tries after which a file that ends its reader is given up.
const MOST_TRIES: i32 = 2;

/// The senses that a reader may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Senses {
    /// Stored text alone: quick.
    Text,
    /// Letters in pictures, and speech, too.
    All,
}

impl Senses {
    fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::All => "all",
        }
    }

    pub(crate) fn patience(self) -> Patience {
        let secs = Duration::from_secs;
        match self {
            Self::Text => Patience { silent: secs(60), total: secs(240) },
            // A page of a scan takes seconds, five minutes of speech take one or two.
            Self::All => Patience { silent: secs(600), total: secs(6 * 3_600) },
        }
    }
}

/// The models that this process can use.
pub fn models(config: &Config) -> Models {
    let onnxruntime = config.onnxruntime_lib.clone().filter(|path| path.exists());
    let of = |folder: &Option<PathBuf>, name: &str| {
        let path = folder.as_ref().filter(|_| onnxruntime.is_some())?.join(name);
        path.exists().then_some(path)
    };
    let (ocr, speech) = (of(&config.reading_models_dir, "ocr"), of(&config.speech_models_dir, "base"));
    Models { onnxruntime: onnxruntime.clone().filter(|_| ocr.is_some() || speech.is_some()), ocr, speech, threads: 1 }
}

/// Whether what a reader of text left out can be recognised here.
fn is_recognisable(why: Unreadable, models: &Models) -> bool {
    match why {
        Unreadable::OcrNotInstalled => models.ocr.is_some(),
        Unreadable::SpeechNotInstalled => models.speech.is_some(),
        _ => false,
    }
}

/// Reads the file of a document, if it is not read yet, and returns what is known of it then. Safe to repeat: pages that are kept stay, and a file that
/// is read is not read again.
pub async fn read(env: &Env, lease: &Lease, awaited: &Awaited, senses: Senses) -> Result<File, Fault> {
    let tenant_id = lease.tenant_id()?;
    let mut effect = lease.begin_note(env).await?;
    still_wanted(&mut effect, tenant_id, awaited).await?;
    let file = files::open(&mut effect, tenant_id, &awaited.key, READER_VERSION).await?;
    // What is inside an archive or a letter has other numbers once its pictures are pages: it is read as a whole.
    let is_nested = matches!(file.kind(), Some(FileKind::Zip | FileKind::Eml | FileKind::Msg));
    let known = match senses {
        Senses::All if !is_nested => files::settled(&mut effect, tenant_id, &awaited.key).await?,
        _ => Vec::new(),
    };
    effect.commit().await?;
    let is_due = match file.state {
        FileState::Reading => true,
        FileState::Recognising => senses == Senses::All,
        FileState::Read | FileState::Refused => false,
    };
    if !is_due {
        return Ok(file);
    }
    crash::at(Point::FileOpened)?;
    let models = models(&env.config);
    let request = Request {
        name: name(awaited),
        media_type: text(awaited, "media_type"),
        bytes: awaited.bytes,
        most_pages: Some(env.config.file_max_pages),
        known: known.into_iter().filter_map(|number| u32::try_from(number).ok()).collect(),
        draw: None,
        models: if senses == Senses::All { models.clone() } else { Models::default() },
    };
    let begun = Instant::now();
    let mut keeping = Keeping::new(env, lease, awaited, file.reading_id, tenant_id);
    keeping.is_progress = senses == Senses::All && !is_nested;
    keeping.is_whole = senses == Senses::All && is_nested;
    let ended = match env.blobs.get_stream(tenant_id, &awaited.key).await? {
        None => Ended { refusal: Some(Unreadable::Missing), ..ended(FileState::Refused) },
        Some((size, _)) if size > env.config.file_max_bytes => {
            Ended { refusal: Some(Unreadable::TooLarge), ..ended(FileState::Refused) }
        }
        Some((size, bytes)) => {
            let request = Request { bytes: Some(size), ..request };
            let mut reader = Reader::start(env.config.reader_program.as_deref(), &request, senses.patience(), bytes)?;
            loop {
                match reader.next().await? {
                    Some(Heard::Line(Line::Head { kind, title, n_pages, seconds })) => {
                        keeping.is_heard = senses == Senses::All && kind == FileKind::Audio;
                        keeping.head = Some(Head { kind, title, n_pages, seconds });
                    }
                    Some(Heard::Line(Line::Page(page))) if keeping.has_room(&page, env.config.file_max_pages) => {
                        keeping.page(page).await?;
                    }
                    // A reader that tells of more than it may is not believed.
                    Some(Heard::Line(Line::Page(_))) => {
                        break Ended { refusal: Some(Unreadable::Unsafe), ..ended(FileState::Refused) };
                    }
                    Some(Heard::Line(Line::Alive | Line::Picture { .. })) => {}
                    Some(Heard::Line(Line::End { is_cut, language, seconds })) => {
                        let to_recognise = keeping.troubles.iter().any(|why| is_recognisable(*why, &models));
                        let is_over = senses == Senses::All || !to_recognise;
                        let state = if is_over { FileState::Read } else { FileState::Recognising };
                        break Ended { is_cut, language, seconds, ..ended(state) };
                    }
                    Some(Heard::Line(Line::Refused { why, .. }))
                        if senses == Senses::Text && is_recognisable(why, &models) =>
                    {
                        break ended(FileState::Recognising);
                    }
                    Some(Heard::Line(Line::Refused { why, detail })) => {
                        break Ended { refusal: Some(why), detail: Some(detail), ..ended(FileState::Refused) };
                    }
                    Some(Heard::Died(why)) if lease.attempt() < MOST_TRIES => {
                        if keeping.is_progress {
                            keeping.write().await?;
                        }
                        return Err(Fault::Transient(anyhow::anyhow!("the file was not read: {}", why.in_words())));
                    }
                    Some(Heard::Died(why)) => break Ended { refusal: Some(why), ..ended(FileState::Refused) },
                    None => break Ended { refusal: Some(Unreadable::Unsafe), ..ended(FileState::Refused) },
                }
            }
        }
    };
    let file = keeping.end(&ended).await?;
    let kind = file.kind.clone().unwrap_or_else(|| "unknown".into());
    let seconds = begun.elapsed().as_secs_f64();
    metrics::histogram!("tributary_file_read_seconds", "kind" => kind, "senses" => senses.as_str()).record(seconds);
    Ok(file)
}

/// Ends the attempt if nobody wants the text any more: what was read of a deleted file would stay for ever.
async fn still_wanted(tx: &mut store::Tx, tenant_id: TenantId, awaited: &Awaited) -> Result<(), Fault> {
    match files::is_wanted(tx, tenant_id, awaited.id, &awaited.key).await? {
        true => Ok(()),
        false => Err(Fault::Transient(anyhow::anyhow!("its document was deleted, or has another file now"))),
    }
}

/// How reading ends where nothing is to be said of it.
pub(crate) fn ended(state: FileState) -> Ended {
    Ended { state, is_cut: false, refusal: None, detail: None, language: None, seconds: None }
}

/// The name of a document's file, as it came.
pub fn name(awaited: &Awaited) -> Option<String> {
    ["file_name", "attachment_filename"].into_iter().find_map(|name| text(awaited, name))
}

fn text(awaited: &Awaited, name: &str) -> Option<String> {
    awaited.record.source_metadata.get(name).and_then(Value::as_str).map(str::to_owned)
}

/// The first line that a reader writes.
struct Head {
    kind: FileKind,
    title: Option<String>,
    n_pages: Option<u32>,
    seconds: Option<u32>,
}

/// Pages on their way into the database.
struct Keeping<'a> {
    env: &'a Env,
    lease: &'a Lease,
    awaited: &'a Awaited,
    reading_id: Uuid,
    tenant_id: TenantId,
    /// Pages that are kept are not read again, so attempts count anew.
    is_progress: bool,
    /// The pages replace those that were there.
    is_whole: bool,
    n_pages: u32,
    n_bytes: usize,
    head: Option<Head>,
    /// It is a recording that is heard, whose time is told.
    is_heard: bool,
    heard_since: Instant,
    pages: Vec<Page>,
    bytes: usize,
    since: Instant,
    /// The reasons why pages have no text.
    troubles: Vec<Unreadable>,
}

impl<'a> Keeping<'a> {
    fn new(env: &'a Env, lease: &'a Lease, awaited: &'a Awaited, reading_id: Uuid, tenant_id: TenantId) -> Self {
        Self {
            env,
            lease,
            awaited,
            reading_id,
            tenant_id,
            is_progress: false,
            is_whole: false,
            n_pages: 0,
            n_bytes: 0,
            head: None,
            is_heard: false,
            heard_since: Instant::now(),
            pages: Vec::new(),
            bytes: 0,
            since: Instant::now(),
            troubles: Vec::new(),
        }
    }

    /// Whether a page is among those that a file may have.
    fn has_room(&mut self, page: &Page, most_pages: u32) -> bool {
        self.n_pages += 1;
        self.n_bytes += page.text.len();
        page.number <= most_pages && self.n_pages <= most_pages && self.n_bytes <= MOST_TEXT_BYTES
    }

    async fn page(&mut self, page: Page) -> Result<(), Fault> {
        if let Some(why) = page.trouble
            && !self.troubles.contains(&why)
        {
            self.troubles.push(why);
        }
        self.bytes += page.text.len();
        self.pages.push(page);
        if self.pages.len() >= MOST_PAGES || self.bytes >= MOST_BYTES || self.since.elapsed() >= KEEP_EVERY {
            self.write().await?;
        }
        Ok(())
    }

    /// Keeps what came since the last time, if anything did.
    async fn write(&mut self) -> Result<(), Fault> {
        if self.head.is_none() && self.pages.is_empty() {
            return Ok(());
        }
        // Text is read from the beginning after a failure, so its pages are no progress: a file that ends its reader would be tried for ever. A page that
        // is recognised is never recognised again.
        let is_progress = self.is_progress && self.pages.iter().any(|page| page.trouble.is_none());
        let mut effect = match is_progress {
            false => self.lease.begin_note(self.env).await?,
            true => self.lease.begin_step(self.env).await?,
        };
        self.write_in(&mut effect).await?;
        crash::at(Point::FilePagesWritten)?;
        effect.commit().await?;
        crash::at(Point::FilePagesKept)?;
        Ok(())
    }

    async fn write_in(&mut self, tx: &mut store::Tx) -> Result<(), Fault> {
        let (tenant_id, key) = (self.tenant_id, &self.awaited.key);
        still_wanted(tx, tenant_id, self.awaited).await?;
        self.hold(tx).await?;
        if std::mem::take(&mut self.is_whole) {
            files::forget_pages(tx, tenant_id, key).await?;
        }
        if let Some(Head { kind, title, n_pages, seconds }) = self.head.take() {
            files::head(tx, tenant_id, key, kind, title.as_deref(), n_pages, seconds).await?;
        }
        if self.is_heard {
            let ms = std::mem::replace(&mut self.heard_since, Instant::now()).elapsed().as_millis();
            files::heard_for(tx, tenant_id, key, i64::try_from(ms).unwrap_or(i64::MAX)).await?;
        }
        if !self.pages.is_empty() {
            files::keep(tx, tenant_id, key, &self.pages).await?;
        }
        tx.notify_all(Notice::documents(tenant_id, &[self.awaited.id.0], Op::Update));
        self.pages.clear();
        (self.bytes, self.since) = (0, Instant::now());
        Ok(())
    }

    /// The file as it is now, locked.
    async fn hold(&self, tx: &mut store::Tx) -> Result<File, Fault> {
        let held = files::hold_reading(tx, self.tenant_id, &self.awaited.key, self.reading_id).await?;
        held.ok_or_else(|| Fault::Transient(anyhow::anyhow!("somebody has asked for this file again")))
    }

    /// Keeps the rest, and how it ended. What somebody else has read further meanwhile, as the file of another document, stays so.
    async fn end(mut self, ended: &Ended) -> Result<File, Fault> {
        let mut effect = self.lease.begin_step(self.env).await?;
        self.write_in(&mut effect).await?;
        let now = self.hold(&mut effect).await?;
        let is_behind = now.state != FileState::Reading && ended.state == FileState::Recognising;
        if !is_behind {
            files::end(&mut effect, self.tenant_id, &self.awaited.key, READER_VERSION, ended).await?;
        }
        let file = self.hold(&mut effect).await?;
        crash::at(Point::FilePagesWritten)?;
        effect.commit().await?;
        crash::at(Point::FileRead)?;
        Ok(file)
    }
}
