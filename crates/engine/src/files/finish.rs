//! The end of reading: a file's pages become the text of its document, in one commit with its steps, its fields and the message.

use domain::papers::PaperKind;
use domain::reading::{Page, ReadBy, Step, Unreadable};
use domain::{DocumentStatus, Fault, PageText, Record, TenantId};
use serde_json::{Value, json};
use store::crash::{self, Point};
use store::files::steps::{self, Ended, StepState};
use store::files::{self, Awaited, File, FileState};

use super::fields::{Paper, read_in_words, said_in_words};
use super::model::{self, ByModel};
use crate::Env;
use crate::config::LlmKind;
use crate::lanes::queue_of;
use crate::lanes::read_file::ReadFile;
use crate::lanes::recognise::Recognise;
use crate::memory::remember;
use crate::work::{Lane as _, Lease, Outcome};

/// The name by which a step says that no model did it.
const BY_RULES: &str = "rules";

/// Writes what was read of a document's file, as far as it is read. Safe to repeat: the same pages make the same document. Where a language model finds the
/// fields, the text is searchable before it is asked.
pub async fn finish(env: &Env, lease: &Lease, awaited: &mut Awaited, file: &File) -> Result<Outcome, Fault> {
    let tenant_id = lease.tenant_id()?;
    let pages = pages(env, tenant_id, awaited, file).await?;
    let (status, skip_reason) = status(file, &pages);
    let said = said(env, tenant_id, awaited).await?;
    let mut finished = Finished { file, pages, status, skip_reason, said, extracted: None };
    if status == DocumentStatus::Completed {
        let paper = Paper::by_rules(awaited.record.title.as_deref(), &finished.pages);
        let may_ask = env.config.llm != LlmKind::None && paper.kind != PaperKind::Other;
        // What a model was paid for stays until a person asks for the step again.
        let is_done = may_ask && extracted_by(env, tenant_id, awaited).await?.is_some_and(|by| by != BY_RULES);
        if is_done {
            finished.said = [stored_in_words(env, tenant_id, awaited).await?, finished.said].join(" ");
            finished.extracted = Some(Extracted { kept: true, ..Extracted::default() });
            return write(env, lease, awaited, &finished, false).await;
        }
        let is_asked = may_ask;
        if is_asked {
            let (pages, said) = (finished.pages.clone(), finished.said.clone());
            let early = Finished { status: DocumentStatus::Extracting, pages, said, ..finished };
            write(env, lease, awaited, &early, true).await?;
        }
        let answered = match is_asked {
            true => match model::ask(env, tenant_id, paper.kind, &finished.pages).await {
                // On the last attempt rules decide: the paper is read, whatever the model's trouble.
                Err(Fault::Transient(_)) if lease.attempt() >= ReadFile::MAX_ATTEMPTS => None,
                answered => answered?,
            },
            false => None,
        };
        finished.extracted = Some(match answered {
            None => Extracted { paper, by: BY_RULES.into(), ..Extracted::default() },
            // Prose, or nothing that stands on the pages, is no reading of them.
            Some(ByModel { fields, complaints, cost_micros, .. }) if fields.is_empty() && !complaints.is_empty() => {
                Extracted { paper, by: BY_RULES.into(), complaints, cost_micros, kept: false }
            }
            Some(ByModel { fields, complaints, model, cost_micros }) => {
                Extracted { paper: paper.answered(fields), by: model, complaints, cost_micros, kept: false }
            }
        });
    }
    write(env, lease, awaited, &finished, false).await
}

/// The state in which a document is written.
struct Finished<'a> {
    file: &'a File,
    pages: Vec<Page>,
    status: DocumentStatus,
    skip_reason: Option<Unreadable>,
    /// In words, what people said about its fields.
    said: String,
    extracted: Option<Extracted>,
}

#[derive(Default)]
struct Extracted {
    paper: Paper,
    /// Its fields and its step stay as they are stored.
    kept: bool,
    by: String,
    /// The parts of a model's answer that do not stand in the paper.
    complaints: Vec<String>,
    cost_micros: i64,
}

/// Writes it in one commit: the text alone, or everything, with the message.
async fn write(
    env: &Env,
    lease: &Lease,
    awaited: &mut Awaited,
    finished: &Finished<'_>,
    is_step: bool,
) -> Result<Outcome, Fault> {
    let Finished { file, pages, status, skip_reason, said, extracted } = finished;
    let (tenant_id, id, seen) = (lease.tenant_id()?, awaited.id, awaited.updated_at);
    let record = Record {
        title: awaited.record.title.clone().or_else(|| file.title.clone()),
        text: [extracted.as_ref().map(|extracted| extracted.paper.in_words()).unwrap_or_default(), said.clone()]
            .join("\n"),
        pages: pages.iter().map(text_of).collect(),
        status: *status,
        // Whose it is may have changed since it was loaded: that stays as it is.
        contact_id: None,
        skip_reason: skip_reason.map(|why| why.as_str().to_owned()),
        ..awaited.record.clone()
    };
    let (key, reading_id) = (&awaited.key, file.reading_id);
    let begin = move || async move {
        // The text before its fields is no progress: a model that always fails would be asked for ever.
        let mut effect = if is_step { lease.begin_note(env).await? } else { lease.begin(env).await? };
        // Its source may have changed it while it was read. Then it is looked at again.
        match files::hold(&mut effect, tenant_id, id, seen).await? {
            true if files::hold_reading(&mut effect, tenant_id, key, reading_id).await?.is_some() => Ok(effect),
            _ => Err(Fault::Transient(anyhow::anyhow!("its document or its file changed meanwhile"))),
        }
    };
    let (mut effect, _) = remember(env, tenant_id, vec![record], begin).await?;
    let at = env.clock.sql();
    if file.state == FileState::Recognising {
        queue_of::<Recognise>().send(&mut effect, tenant_id, &[Recognise { document_id: id }]).await?;
    } else {
        let error = file.refusal().filter(|why| !why.is_skipped()).map(Unreadable::in_words);
        let done_by = format!("reader {}", file.reader_version);
        let ended = Ended { outcome: outcome(file, pages), error, done_by: Some(&done_by), cost_micros: 0 };
        steps::end(&mut effect, at, tenant_id, id, Step::Transcribe, &ended).await?;
    }
    if is_step {
        steps::begin(&mut effect, at, tenant_id, id, Step::Extract).await?;
    }
    if let Some(Extracted { paper, by, complaints, cost_micros, kept: false }) = extracted {
        let rows = paper.rows();
        files::fields::replace(&mut effect, tenant_id, id, &rows).await?;
        let outcome = json!({ "paper": paper.kind, "fields": rows.len(), "left_out": complaints });
        let ended = Ended { outcome, done_by: Some(by), cost_micros: *cost_micros, error: None };
        steps::end(&mut effect, at, tenant_id, id, Step::Extract, &ended).await?;
    }
    crash::at(Point::FileFinished)?;
    if is_step {
        // The next commit holds the document as this one leaves it.
        let now = files::awaited(&mut effect, tenant_id, id).await?;
        let done = effect.commit().await?;
        awaited.updated_at = now.map_or(seen, |now| now.updated_at);
        return Ok(done);
    }
    let kind = file.kind.clone().unwrap_or_else(|| "unknown".into());
    metrics::counter!("tributary_files_read_total", "kind" => kind, "status" => status.as_str()).increment(1);
    effect.commit().await
}

/// How far the document is then, and the reason if its file is not read.
fn status(file: &File, pages: &[Page]) -> (DocumentStatus, Option<Unreadable>) {
    match (file.state, file.refusal()) {
        (FileState::Reading | FileState::Recognising, _) => (DocumentStatus::Transcribing, None),
        // Some of it was read before it was refused: that is kept, and the reason is told.
        (_, Some(why)) if !why.is_skipped() => (DocumentStatus::Failed, Some(why)),
        (_, Some(why)) => (DocumentStatus::Skipped, Some(why)),
        (_, None) if pages.iter().all(|page| page.text.trim().is_empty()) => {
            let trouble = pages.iter().find_map(|page| page.trouble);
            (DocumentStatus::Skipped, Some(trouble.unwrap_or(Unreadable::NoText)))
        }
        (_, None) => (DocumentStatus::Completed, None),
    }
}

/// In numbers, what reading has made.
fn outcome(file: &File, pages: &[Page]) -> Value {
    let by = |read_by: ReadBy| pages.iter().filter(|page| page.read_by == read_by && !page.text.is_empty()).count();
    let confidence: Vec<f32> = pages.iter().filter_map(|page| page.confidence).collect();
    let mean = (!confidence.is_empty()).then(|| confidence.iter().sum::<f32>() / confidence.len() as f32);
    json!({
        "kind": file.kind,
        "pages": pages.len(),
        "by_text": by(ReadBy::Text),
        "by_ocr": by(ReadBy::Ocr),
        "by_speech": by(ReadBy::Speech),
        "without_text": pages.iter().filter(|page| page.trouble.is_some()).count(),
        "is_cut": file.is_cut,
        "confidence": mean,
        "language": file.language,
    })
}

fn text_of(page: &Page) -> PageText {
    let number = i32::try_from(page.number).unwrap_or(i32::MAX);
    PageText { number, label: page.label.clone(), text: page.text.clone() }
}

/// By what the fields of a document were found, if they were.
async fn extracted_by(env: &Env, tenant_id: TenantId, awaited: &Awaited) -> Result<Option<String>, Fault> {
    let mut conn = env.db.acquire().await?;
    let steps = steps::list(&mut conn, tenant_id, awaited.id).await?;
    let done = steps.into_iter().find(|step| step.step == Step::Extract && step.state == StepState::Done);
    Ok(done.and_then(|step| step.done_by))
}

/// In words, the fields of a document as they are stored.
async fn stored_in_words(env: &Env, tenant_id: TenantId, awaited: &Awaited) -> Result<String, Fault> {
    let mut conn = env.db.acquire().await?;
    Ok(read_in_words(&files::fields::list(&mut conn, tenant_id, awaited.id).await?))
}

/// In words, what people said about the fields of a document.
async fn said(env: &Env, tenant_id: TenantId, awaited: &Awaited) -> Result<String, Fault> {
    let mut conn = env.db.acquire().await?;
    Ok(said_in_words(&files::fields::list(&mut conn, tenant_id, awaited.id).await?))
}

async fn pages(env: &Env, tenant_id: TenantId, awaited: &Awaited, file: &File) -> Result<Vec<Page>, Fault> {
    let mut conn = env.db.acquire().await?;
    let key = awaited.key.to_string();
    let most = i64::from(env.config.file_max_pages).max(i64::from(file.n_pages.unwrap_or(0))) + 1;
    Ok(files::pages(&mut conn, tenant_id, &key, 0, most).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(state: FileState, refusal: Option<Unreadable>) -> File {
        File {
            reading_id: uuid::Uuid::nil(),
            reader_version: 1,
            state,
            kind: Some("pdf".into()),
            title: None,
            n_pages: Some(2),
            is_cut: false,
            refusal: refusal.map(|why| why.as_str().to_owned()),
            detail: None,
            language: None,
            seconds: None,
        }
    }

    fn page(text: &str, trouble: Option<Unreadable>) -> Page {
        Page {
            number: 1,
            label: None,
            text: text.into(),
            read_by: ReadBy::Text,
            confidence: None,
            trouble,
            aspect: None,
            lines: Vec::new(),
        }
    }

    #[test]
    fn a_document_is_as_far_as_its_file() {
        use DocumentStatus::{Completed, Failed, Skipped, Transcribing};
        let scan = Some(Unreadable::OcrNotInstalled);
        for (state, refusal, pages, expected) in [
            (FileState::Read, None, vec![page("a", None)], (Completed, None)),
            (FileState::Read, None, vec![page("a", None), page("", scan)], (Completed, None)),
            (FileState::Read, None, vec![page("", scan)], (Skipped, scan)),
            (FileState::Read, None, vec![page(" ", None)], (Skipped, Some(Unreadable::NoText))),
            (FileState::Recognising, None, vec![page("", scan)], (Transcribing, None)),
            (FileState::Refused, Some(Unreadable::Encrypted), vec![], (Skipped, Some(Unreadable::Encrypted))),
            (FileState::Refused, Some(Unreadable::Damaged), vec![], (Failed, Some(Unreadable::Damaged))),
        ] {
            assert_eq!(status(&file(state, refusal), &pages), expected, "{state} {refusal:?}");
        }
    }
}
