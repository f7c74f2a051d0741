//! The end of a soak: what the actors wrote down, held against what is stored.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use testkit::{Sources, wait_until};
use uuid::Uuid;

use super::actors::Story;
use super::cast::Cast;

/// Items that are still on their way. Upkeep is left out: its schedules send items for ever.
const WAITING: &str = "select (select count(*) from pgmq.q_remember_activity) + (select count(*) from pgmq.q_ingestion_queue)
    + (select count(*) from pgmq.q_client_facts) + (select count(*) from pgmq.q_forget) + (select count(*) from pgmq.q_embed)
    + (select count(*) from tributary.dirty_clients) + (select count(*) from tributary.parked)
    + (select count(*) from sync_jobs where finished_at is null)
    + (select count(*) from activities where processing_status in ('raw', 'processing'))";

/// Why items and activities were given up.
const BURIED: &str = "select headers ->> 'reason' from pgmq.a_remember_activity where headers ->> 'state' = 'dead'
    union all select headers ->> 'reason' from pgmq.a_ingestion_queue where headers ->> 'state' = 'dead'
    union all select headers ->> 'reason' from pgmq.a_client_facts where headers ->> 'state' = 'dead'
    union all select headers ->> 'reason' from pgmq.a_embed where headers ->> 'state' = 'dead'
    union all select metadata #>> '{error,message}' from activities where processing_status = 'failed'";

/// An item whose workers, or an activity whose agents, were killed several times waits for a person: it may be what kills them.
fn is_due_to_kills(reason: &str) -> bool {
    reason.contains("workers died or went silent") || reason.starts_with("its agents went silent")
}

/// Counts of what is wrong. All zero is what is wanted.
#[derive(Default)]
pub struct Verdict {
    pub inputs: usize,
    pub results: usize,
    pub records: usize,
    pub lost: usize,
    pub doubled: usize,
    pub stuck: i64,
    /// Given up because their processes were killed too often.
    pub abandoned: usize,
    /// Given up for another reason: nothing here deserves it.
    pub buried: usize,
    /// Secrets found in a log.
    pub leaked: usize,
    pub quiet_after: Duration,
    /// The first few things that are wrong.
    pub wrong: Vec<String>,
}

impl Verdict {
    pub fn is_clean(&self) -> bool {
        let is_used = self.inputs > 0 && self.records > 0;
        is_used && (self.lost, self.doubled, self.stuck, self.buried, self.leaked) == (0, 0, 0, 0, 0)
    }

    fn note(&mut self, n_found: usize, what: impl FnOnce() -> String) {
        self.lost += usize::from(n_found == 0);
        self.doubled += usize::from(n_found > 1);
        if n_found != 1 && self.wrong.len() < 20 {
            self.wrong.push(format!("{}: {n_found} times", what()));
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { inputs, results, records, lost, doubled, stuck, abandoned, buried, leaked, quiet_after, wrong } =
            self;
        write!(
            f,
            "{inputs} events, {results} results, {records} records: {lost} lost, {doubled} doubled, {stuck} stuck, "
        )?;
        write!(
            f,
            "{abandoned} given up after kills, {buried} given up otherwise, {leaked} secrets in logs; quiet after {quiet_after:.1?}"
        )?;
        wrong.iter().try_for_each(|what| write!(f, "\n  {what}"))
    }
}

/// Waits until nothing is on its way, then compares.
pub async fn verdict(t: &Sources, story: &Story, cast: &mut Cast, limit: Duration) -> Verdict {
    let begun = Instant::now();
    wait_until(limit, async || {
        cast.revive().await;
        number(t, WAITING).await == 0
    })
    .await;
    let reasons: Vec<Option<String>> =
        sqlx::query_scalar(BURIED).fetch_all(&mut *t.world.conn().await).await.expect("what was given up");
    let (abandoned, buried): (Vec<String>, Vec<String>) =
        reasons.into_iter().map(Option::unwrap_or_default).partition(|reason| is_due_to_kills(reason));
    let mut verdict = Verdict {
        stuck: number(t, WAITING).await,
        quiet_after: begun.elapsed(),
        abandoned: abandoned.len(),
        buried: buried.len(),
        wrong: buried,
        ..Verdict::default()
    };
    let documents = documents(t).await;
    check_events(t, story, &documents, &mut verdict).await;
    let records = story.records.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for (name, word) in &records {
        let found = documents.get(name).map_or(0, |texts| texts.iter().filter(|text| text.contains(word)).count());
        let n_documents = documents.get(name).map_or(0, Vec::len);
        verdict.note(if found == 1 { n_documents } else { 0 }, || format!("record {name} with {word}"));
    }
    verdict.records = records.len();
    let printed = cast.printed();
    verdict.leaked = secrets(story, cast).iter().filter(|secret| printed.contains(secret.as_str())).count();
    verdict
}

async fn check_events(t: &Sources, story: &Story, documents: &BTreeMap<String, Vec<String>>, verdict: &mut Verdict) {
    let rows: Vec<(Option<String>, Uuid, Option<String>)> =
        sqlx::query_as("select event_key, id, processed_data ->> 'proof' from activities")
            .fetch_all(&mut *t.world.conn().await)
            .await
            .expect("activities");
    let mut by_event: HashMap<&str, Vec<(Uuid, Option<&str>)>> = HashMap::new();
    for (event, id, proof) in &rows {
        by_event.entry(event.as_deref().unwrap_or_default()).or_default().push((*id, proof.as_deref()));
    }
    let (events, results) = (story.events.read(), story.results.read());
    for (event, told) in &events {
        let found = by_event.get(event.to_string().as_str()).map_or(&[][..], Vec::as_slice);
        let is_told = found.iter().any(|(id, _)| id.to_string() == *told);
        verdict.note(if is_told { found.len() } else { 0 }, || format!("event {event}, acknowledged as {told}"));
        let event_text = event.to_string();
        let texts = documents.get(&format!("activity:{told}")).map_or(&[][..], Vec::as_slice);
        let is_its = texts.iter().any(|text| text.contains(&event_text));
        verdict.note(if is_its { texts.len() } else { 0 }, || format!("document of event {event}"));
    }
    for (event, found) in &by_event {
        // One that was never acknowledged to its sender cannot be here: senders go on until it is.
        if !event.parse().is_ok_and(|event: Uuid| events.contains_key(&event)) {
            verdict.note(1 + found.len(), || format!("activity of {event}, which nobody was promised"));
        }
    }
    for (_, id, proof) in &rows {
        if let Some(wanted) = results.get(id) {
            let texts = documents.get(&format!("activity:{id}")).map_or(&[][..], Vec::as_slice);
            let is_there = proof.as_ref() == Some(wanted) && texts.iter().any(|text| text.contains(wanted.as_str()));
            verdict.note(usize::from(is_there), || format!("result {wanted} of activity {id}"));
        }
    }
    (verdict.inputs, verdict.results) = (events.len(), results.len());
}

/// The texts of each document by its name.
async fn documents(t: &Sources) -> BTreeMap<String, Vec<String>> {
    let rows: Vec<(String, String)> = sqlx::query_as(
        "select external_id, text from source_documents where deleted_at is null and document_type <> 'client'",
    )
    .fetch_all(&mut *t.world.conn().await)
    .await
    .expect("documents");
    let mut documents: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, text) in rows {
        documents.entry(name).or_default().push(text);
    }
    documents
}

async fn number(t: &Sources, sql: &'static str) -> i64 {
    match t.world.env.db.acquire().await {
        Ok(mut conn) => sqlx::query_scalar(sql).fetch_one(&mut *conn).await.unwrap_or(-1),
        Err(_) => -1, // the server is still coming back
    }
}

/// The secrets that must never be printed.
fn secrets(story: &Story, cast: &Cast) -> Vec<String> {
    let of_files = ["login.password", "postgres.password"]
        .map(|name| std::fs::read_to_string(cast.folder.0.join(name)).expect("a password").trim().to_owned());
    let opens = &story.opens;
    let of_senders = [&opens.ingestion_key, &opens.webhook_secret, &opens.bearer, &story.key, &story.agent_key];
    let of_senders = of_senders.map(|secret| secret.reveal().to_owned());
    let others = [fakes::CLIENT_SECRET.to_owned(), crate::intake::MASTER_KEY.to_owned()];
    of_files.into_iter().chain(of_senders).chain(others).collect()
}
