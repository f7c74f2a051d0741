//! The ear of this machine, and the choice between it and others. The process that reads files listens, at the lowest priority. What is heard of a call is
//! kept by the hash of its bytes, a page for every five minutes: whoever goes on after a crash does not hear those again, and nor does whoever has the same
//! bytes as a file.

use std::path::PathBuf;
use std::time::Instant;

use domain::reading::{FileKind, Line, Models, Page, READER_VERSION, ReadBy, Request, Unreadable};
use domain::{Fault, Notice, Op};
use futures_util::TryStreamExt as _;
use store::crash::{self, Point};
use store::files::{self, Ended, File, FileState, Speed};
use uuid::Uuid;

use super::Failure;
use crate::config::TranscribeKind;
use crate::files::child::{Heard, Reader};
use crate::files::reading::{self, Senses};
use crate::recordings::{self, Audio, Place};
use crate::{Config, Env};

/// A reader hears four hours at most; one that tells of more is not believed.
const MOST_PAGES: usize = 64;
const MOST_PAGE_BYTES: usize = 1 << 20;
/// A transcript that is less sure should be compared with its recording.
pub const SURE: f64 = 0.6;

/// The transcriber of calls, as the settings choose it.
pub enum Hearing {
    Service,
    Local(Ear),
    /// And why nobody does.
    Nobody(&'static str),
}

impl Hearing {
    pub fn of(config: &Config) -> Self {
        let has_address = config.transcribe_base_url.is_some();
        let usual = if has_address { TranscribeKind::Service } else { TranscribeKind::Local };
        match config.transcribe.unwrap_or(usual) {
            TranscribeKind::Off => Self::Nobody("TRANSCRIBE is off"),
            TranscribeKind::Service if has_address => Self::Service,
            TranscribeKind::Service => Self::Nobody("TRANSCRIBE_BASE_URL is not set"),
            TranscribeKind::Local => Ear::of(config).map_or(
                Self::Nobody(
                    "the model that hears is not on this machine. Start the program with ./tributary, which fetches it, or set TRANSCRIBE_BASE_URL to a service",
                ),
                Self::Local,
            ),
        }
    }

    pub fn can_hear(&self) -> bool {
        !matches!(self, Self::Nobody(_))
    }

    /// The same for people, as measured here.
    pub async fn told(env: &Env) -> store::Result<String> {
        let speed = env.db.session(async |conn| files::speed(conn).await).await?;
        Ok(Self::of(&env.config).in_words(Some(speed)))
    }

    /// For people, with how fast the last recordings were heard.
    pub fn in_words(&self, speed: Option<Speed>) -> String {
        match (self, speed.and_then(|speed| Some((speed.n, speed.times?)))) {
            (Self::Service, _) => "Calls are transcribed by the service that TRANSCRIBE_BASE_URL names.".into(),
            (Self::Local(_), None) => {
                "Calls are transcribed on this machine, one after the other. How fast, is known after the first.".into()
            }
            (Self::Local(_), Some((n, times))) => format!(
                "Calls are transcribed on this machine, one after the other, {times:.1} times as fast as they were spoken (the last {}).",
                if n == 1 { "one".into() } else { n.to_string() }
            ),
            (Self::Nobody(why), _) => format!("Calls wait for an agent that can hear: {why}."),
        }
    }
}

/// The model that hears on this machine, and the program that runs it.
pub struct Ear {
    program: Option<PathBuf>,
    models: Models,
}

/// The words of a recording.
#[derive(Debug)]
pub(super) struct Words {
    /// Empty: nobody speaks.
    pub text: String,
    pub language: Option<String>,
    pub seconds: Option<u32>,
    /// How sure it is, from 0 to 1.
    pub confidence: Option<f64>,
    /// There is more than is heard of one recording.
    pub is_cut: bool,
}

impl Ear {
    /// None: the model or its library is not installed.
    fn of(config: &Config) -> Option<Self> {
        let models = Models { ocr: None, ..reading::models(config) };
        models.speech.is_some().then(|| Self { program: config.reader_program.clone(), models })
    }

    /// Hears a recording, or what nobody has heard of it yet. Safe to repeat.
    pub(super) async fn hear(&self, recording: &Audio) -> Result<Words, Failure> {
        let mut notes = Notes::open(recording.place.as_ref()).await?;
        if let Some(ended) = notes.ended.take() {
            return notes.words(&ended);
        }
        crash::at(Point::FileOpened).map_err(|error| broke_off(error.into()))?;
        let request = Request {
            media_type: recording.content_type.map(str::to_owned),
            bytes: Some(recording.file.bytes),
            known: notes.pages.iter().map(|page| page.number).collect(),
            models: self.models.clone(),
            ..Request::default()
        };
        let pieces = recording.file.pieces().map_err(|error| {
            Fault::Transient(anyhow::Error::new(error).context("the recording's file could not be read"))
        });
        let patience = Senses::All.patience();
        let mut reader = Reader::start(self.program.as_deref(), &request, patience, pieces).map_err(broke_off)?;
        let refused = |why, detail| Ended { refusal: Some(why), detail, ..reading::ended(FileState::Refused) };
        let ended = loop {
            match reader.next().await.map_err(broke_off)? {
                Some(Heard::Line(Line::Head { kind: FileKind::Audio, n_pages, seconds, .. })) => {
                    notes.head = Some((n_pages, seconds));
                    notes.keep(None).await?; // so that people see how far it is
                }
                Some(Heard::Line(Line::Head { .. })) => return Err(recordings::Error::NotAudio.into()),
                Some(Heard::Line(Line::Page(page)))
                    if notes.pages.len() < MOST_PAGES && page.text.len() <= MOST_PAGE_BYTES =>
                {
                    notes.pages.push(page);
                    notes.keep(None).await?;
                }
                Some(Heard::Line(Line::Alive | Line::Picture { .. })) => {}
                Some(Heard::Line(Line::End { is_cut, language, seconds })) => {
                    break Ended { is_cut, language, seconds, ..reading::ended(FileState::Read) };
                }
                Some(Heard::Line(Line::Refused { why, detail })) => break refused(why, Some(detail)),
                Some(Heard::Died(why)) => break refused(why, None),
                // More than it may tell, or nothing.
                Some(Heard::Line(Line::Page(_))) | None => break refused(Unreadable::Unsafe, None),
            }
        };
        notes.keep(Some(&ended)).await?;
        notes.words(&ended)
    }
}

/// The pages of one recording as they are heard, and the place where they are kept. A database that is away for a moment costs nothing: what is not kept
/// yet is kept with the next page.
struct Notes<'a> {
    /// None: it is not kept, because this agent is on a device.
    kept_at: Option<(&'a Place, Uuid)>,
    head: Option<(Option<u32>, Option<u32>)>,
    pages: Vec<Page>,
    n_kept: usize,
    /// Somebody has heard all of it.
    ended: Option<Ended>,
    since: Instant,
}

impl<'a> Notes<'a> {
    async fn open(place: Option<&'a Place>) -> Result<Self, Failure> {
        let (mut kept_at, mut pages, mut ended) = (None, Vec::new(), None);
        if let Some(place) = place {
            let opened = known(place).await.map_err(|error| broke_off(error.into()))?;
            let (file, kept) = opened.ok_or_else(gone)?;
            if file.kind().is_some_and(|kind| kind != FileKind::Audio) {
                return Err(recordings::Error::NotAudio.into());
            }
            ended = (file.state == FileState::Read || file.refusal().is_some()).then(|| Ended {
                state: file.state,
                is_cut: file.is_cut,
                refusal: file.refusal(),
                detail: None,
                language: file.language.clone(),
                seconds: file.seconds.and_then(|seconds| u32::try_from(seconds).ok()),
            });
            kept_at = Some((place, file.reading_id));
            pages = kept;
        }
        Ok(Self { kept_at, head: None, n_kept: pages.len(), pages, ended, since: Instant::now() })
    }

    /// Keeps what was heard since the last time, and how it ended.
    async fn keep(&mut self, ended: Option<&Ended>) -> Result<(), Failure> {
        let Some((place, reading_id)) = self.kept_at else { return Ok(()) };
        match self.write(place, reading_id, ended).await {
            Ok(Kept::Yes) => (self.n_kept, self.head) = (self.pages.len(), None),
            Ok(Kept::AskedAgain) => self.kept_at = None,
            Ok(Kept::Gone) => return Err(gone()),
            Err(error) => tracing::debug!(error = ?error, "what was heard of a call is not kept yet"),
        }
        Ok(())
    }

    async fn write(&mut self, place: &Place, reading_id: Uuid, ended: Option<&Ended>) -> store::Result<Kept> {
        let (tenant_id, key) = (place.tenant_id, &place.key);
        let mut tx = place.env.db.begin().await?;
        if !store::recordings::is_wanted(&mut tx, tenant_id, place.activity_id, key).await? {
            return Ok(Kept::Gone);
        }
        let Some(now) = files::hold_reading(&mut tx, tenant_id, key, reading_id).await? else {
            return Ok(Kept::AskedAgain);
        };
        if let Some((n_pages, seconds)) = self.head {
            files::head(&mut tx, tenant_id, key, FileKind::Audio, None, n_pages, seconds).await?;
        }
        if self.n_kept < self.pages.len() {
            files::keep(&mut tx, tenant_id, key, &self.pages[self.n_kept..]).await?;
        }
        let ms = i64::try_from(self.since.elapsed().as_millis()).unwrap_or(i64::MAX);
        files::heard_for(&mut tx, tenant_id, key, ms).await?;
        // What somebody else has heard to its end meanwhile stays so.
        if let Some(ended) = ended.filter(|_| now.state != FileState::Read) {
            files::end(&mut tx, tenant_id, key, READER_VERSION, ended).await?;
        }
        tx.notify_all(Notice::activities(tenant_id, &[place.activity_id.0], Op::Update));
        crash::at(Point::FilePagesWritten)?;
        tx.commit().await?;
        self.since = Instant::now();
        crash::at(if ended.is_some() { Point::FileRead } else { Point::FilePagesKept })?;
        Ok(Kept::Yes)
    }

    /// The transcript, or why there is none.
    fn words(&self, ended: &Ended) -> Result<Words, Failure> {
        if let Some(why) = ended.refusal.filter(|why| !matches!(why, Unreadable::NoText | Unreadable::Empty)) {
            return Err(refusal(why));
        }
        let texts: Vec<&str> = self.pages.iter().map(|page| page.text.trim()).filter(|text| !text.is_empty()).collect();
        let of_page = |page: &Page| Some((f64::from(page.confidence?), page.text.len() as f64));
        let sure: Vec<(f64, f64)> = self.pages.iter().filter_map(of_page).collect();
        let length: f64 = sure.iter().map(|(_, length)| length).sum();
        Ok(Words {
            text: texts.join("\n\n"),
            language: ended.language.clone(),
            seconds: ended.seconds,
            confidence: (length > 0.0).then(|| sure.iter().map(|(sure, length)| sure * length).sum::<f64>() / length),
            is_cut: ended.is_cut,
        })
    }
}

/// Whether what was heard is kept.
enum Kept {
    Yes,
    /// A person has the same bytes read again.
    AskedAgain,
    Gone,
}

/// Reads all that is known of a recording, and its pages. None: nobody wants them any more.
async fn known(place: &Place) -> store::Result<Option<(File, Vec<Page>)>> {
    let (tenant_id, key) = (place.tenant_id, &place.key);
    let mut tx = place.env.db.begin().await?;
    if !store::recordings::is_wanted(&mut tx, tenant_id, place.activity_id, key).await? {
        return Ok(None);
    }
    let mut file = files::open(&mut tx, tenant_id, key, READER_VERSION).await?;
    // It could not be heard then, and perhaps now.
    if file.refusal().is_some_and(|why| why.may_pass() || why == Unreadable::SpeechNotInstalled) {
        files::forget(&mut tx, tenant_id, &key.to_string()).await?;
        file = files::open(&mut tx, tenant_id, key, READER_VERSION).await?;
    }
    let pages = files::pages(&mut tx, tenant_id, &key.to_string(), 0, MOST_PAGES as i64).await?;
    tx.commit().await?;
    let heard = pages.into_iter().filter(|page| page.read_by == ReadBy::Speech && page.trouble.is_none());
    Ok(Some((file, heard.collect())))
}

fn gone() -> Failure {
    Failure::new("DownloadError", "the activity is gone, and its recording with it")
}

fn broke_off(fault: Fault) -> Failure {
    Failure::new("TranscriptionError", fault.in_words())
}

fn refusal(why: Unreadable) -> Failure {
    let words = match why {
        Unreadable::UnknownKind => {
            "recordings of this kind are not heard here, but WAV, MP3, AAC, Vorbis, Opus and FLAC are"
        }
        Unreadable::Damaged => "the recording is damaged",
        Unreadable::Unsafe => "the program that hears died of it",
        why => why.in_words(),
    };
    Failure::new("TranscriptionError", words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::of_flags;

    #[test]
    fn the_settings_say_who_hears_and_what_is_missing() {
        let told = |flags: &[&str]| {
            let hearing = Hearing::of(&of_flags(flags));
            (hearing.can_hear(), hearing.in_words(None))
        };
        let address = ["--transcribe-base-url", "http://127.0.0.1:9/v1"];
        let nowhere = ["--speech-models-dir", "/nowhere", "--onnxruntime-lib", "/nowhere"];
        for (flags, can_hear, words) in [
            (&["--transcribe", "off"][..], false, "TRANSCRIBE is off"),
            (&[&["--transcribe", "off"][..], &address].concat(), false, "TRANSCRIBE is off"),
            (&["--transcribe", "service"], false, "TRANSCRIBE_BASE_URL is not set"),
            (&address, true, "by the service"),
            (&[&["--transcribe", "local"][..], &nowhere].concat(), false, "Start the program with ./tributary"),
        ] {
            let told = told(flags);
            assert!(told.0 == can_hear && told.1.contains(words), "{flags:?}: {told:?}");
        }
        let ear = Hearing::Local(Ear { program: None, models: Models::default() });
        assert!(ear.in_words(Some(Speed { n: 0, times: None })).contains("after the first"));
        let words = ear.in_words(Some(Speed { n: 3, times: Some(5.26) }));
        assert!(words.contains("5.3 times as fast as they were spoken (the last 3)"), "{words}");
    }

    #[test]
    fn a_transcript_is_as_sure_as_its_words_are() {
        let page = |number: u32, text: &str, confidence: Option<f32>| Page {
            number,
            label: None,
            text: text.into(),
            read_by: ReadBy::Speech,
            confidence,
            trouble: None,
            lines: Vec::new(),
            aspect: None,
        };
        let notes = |pages: Vec<Page>| Notes {
            kept_at: None,
            head: None,
            n_kept: 0,
            pages,
            ended: None,
            since: Instant::now(),
        };
        let read = reading::ended(FileState::Read);
        let all = notes(vec![page(1, "abc", Some(0.5)), page(2, " ", None), page(3, "d", Some(0.9))]);
        let words = all.words(&read).expect("words");
        assert_eq!(words.text, "abc\n\nd");
        assert!(words.confidence.is_some_and(|sure| (sure - 0.6).abs() < 0.001), "{words:?}");
        let refused = |why| Ended { refusal: Some(why), ..reading::ended(FileState::Refused) };
        let silent = notes(Vec::new()).words(&refused(Unreadable::NoText)).expect("silence is no failure");
        assert_eq!((silent.text.as_str(), silent.confidence), ("", None));
        for why in Unreadable::ALL.into_iter().filter(|why| !matches!(why, Unreadable::NoText | Unreadable::Empty)) {
            let failure = notes(Vec::new()).words(&refused(why)).expect_err("a failure");
            assert!(failure.kind == "TranscriptionError" && !failure.message.is_empty(), "{why}");
        }
    }
}
