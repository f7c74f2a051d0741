//! The senders, agents, readers and the provider of a soak, and what each of them writes down.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use domain::{Secret, SourceId};
use fakes::Fakes;
use serde_json::{Value, json};
use testkit::Ledger;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::app::client;
use crate::intake::Opens;

/// How long a sender or an agent goes on trying: longer than any recovery.
const PATIENCE: Duration = Duration::from_secs(180);
const PAGES: [&str; 5] = ["/", "/inbox", "/system/queues", "/connections/accounts", "/system/workers"];

/// The actors' common knowledge, and their ledgers.
pub struct Story {
    /// Two servers. Each actor alternates between them.
    pub urls: Vec<String>,
    pub opens: Opens,
    /// Reads, writes and may do everything for the operator's tenant.
    pub key: Secret,
    pub agent_key: Secret,
    pub sources: [SourceId; 2],
    pub fakes: Fakes,
    /// Each acknowledged event and its activity.
    pub events: Ledger,
    /// Each acknowledged result: the activity and a word that only this result has.
    pub results: Ledger,
    /// The provider's records: the name of each document, and a word that its newest text has.
    pub records: Mutex<BTreeMap<String, String>>,
    pub counts: Counts,
    is_over: AtomicBool,
    last_answer: Mutex<Instant>,
}

/// The numbers of answers.
#[derive(Default)]
pub struct Counts {
    pub searches: AtomicU64,
    pub pages: AtomicU64,
    pub notices: AtomicU64,
    pub syncs: AtomicU64,
    /// Requests of readers without a good answer: the server was away.
    pub unanswered: AtomicU64,
    /// The longest time in which no event was acknowledged.
    pub slowest_ms: AtomicU64,
}

impl Story {
    pub fn new(urls: Vec<String>, opens: Opens, keys: [Secret; 2], sources: [SourceId; 2], fakes: Fakes) -> Self {
        let [key, agent_key] = keys;
        Self {
            urls,
            opens,
            key,
            agent_key,
            sources,
            fakes,
            events: Ledger::new("soak-events"),
            results: Ledger::new("soak-results"),
            records: Mutex::default(),
            counts: Counts::default(),
            is_over: AtomicBool::new(false),
            last_answer: Mutex::new(Instant::now()),
        }
    }

    pub fn begin(self: &Arc<Self>) -> Vec<JoinHandle<()>> {
        let mut tasks = vec![tokio::spawn(change_records(self.clone()))];
        tasks.extend((0..4).map(|nth| tokio::spawn(send_events(self.clone(), nth))));
        tasks.extend((0..2).map(|nth| tokio::spawn(process(self.clone(), nth))));
        tasks.extend((0..2).map(|nth| tokio::spawn(search(self.clone(), nth))));
        tasks.extend((0..2).map(|nth| tokio::spawn(look_at_pages(self.clone(), nth))));
        tasks.extend((0..6).map(|nth| tokio::spawn(hear(self.clone(), nth))));
        tasks
    }

    /// Actors finish what they have begun and begin nothing more.
    pub fn end(&self) {
        self.is_over.store(true, SeqCst);
    }

    fn goes_on(&self) -> bool {
        !self.is_over.load(SeqCst)
    }

    fn url(&self, nth: usize) -> &str {
        &self.urls[nth % self.urls.len()]
    }

    /// Only a document with this word is the record's newest text.
    fn has_record(&self, name: String, word: &str) {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).insert(name, word.to_owned());
    }

    fn count(&self, is_answered: bool, answered: &AtomicU64) {
        if is_answered { answered } else { &self.counts.unanswered }.fetch_add(1, SeqCst);
    }

    fn acknowledged(&self) {
        let mut last = self.last_answer.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = u64::try_from(last.elapsed().as_millis()).unwrap_or(u64::MAX);
        *last = Instant::now();
        self.counts.slowest_ms.fetch_max(waited, SeqCst);
    }

    /// Asks for a sync of both sources, each until it is promised.
    pub async fn sync(&self) {
        let http = client();
        for source in self.sources {
            let (begun, mut nth) = (Instant::now(), 0);
            while begun.elapsed() < PATIENCE {
                nth += 1;
                let url = format!("{}/api/v1/sources/{}/sync", self.url(nth), source.0);
                let asked = http.post(url).bearer_auth(self.key.reveal()).send().await;
                if asked.is_ok_and(|answer| answer.status() == 202) {
                    self.counts.syncs.fetch_add(1, SeqCst);
                    break;
                }
                pause(200).await;
            }
        }
    }
}

async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

/// Sends signed events, each until it is acknowledged. Every tenth is too large to lie beside its row.
async fn send_events(story: Arc<Story>, from: usize) {
    let http = client();
    let mut nth = from;
    while story.goes_on() {
        let event = Uuid::now_v7();
        let filler = if nth % 10 == 9 { "pad ".repeat(20_000) } else { String::new() };
        let body = json!({ "type": "note", "content": format!("Event {event} came by. {filler}") }).to_string();
        let signature = engine::intake::providers::generic::sign(&story.opens.webhook_secret, body.as_bytes());
        let begun = Instant::now();
        loop {
            nth += 1;
            let url = format!("{}/ingest/{}", story.url(nth), story.opens.ingestion_key.reveal());
            let request = http.post(url).header("x-webhook-signature", &signature);
            let request =
                request.header("content-type", "application/json").header("idempotency-key", event.to_string());
            if let Ok(answer) = request.body(body.clone()).send().await
                && answer.status().as_u16() == 202
                && let Ok(said) = answer.json::<Value>().await
            {
                story.events.write(event, said["id"].as_str().expect("an id"));
                story.acknowledged();
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "event {event} was never acknowledged");
            pause(100).await;
        }
        pause(150).await;
    }
}

/// Claims activities over HTTP and completes them, each with a word of its own.
async fn process(story: Arc<Story>, from: usize) {
    let http = client();
    let mut nth = from;
    while story.goes_on() {
        nth += 1;
        let url = format!("{}/rest/v1/rpc/claim_next_pending_activity", story.url(nth));
        let asked = http.post(url).header("apikey", story.agent_key.reveal()).json(&json!({})).send().await;
        let claimed = match asked {
            Ok(answer) if answer.status() == 200 => answer.json::<Value>().await.unwrap_or_default(),
            _ => Value::Null,
        };
        let work = claimed[0]["id"].as_str().and_then(|id| id.parse().ok()).zip(claimed[0]["lock_epoch"].as_i64());
        match work {
            Some((id, epoch)) => complete(&story, &http, id, epoch).await,
            None => pause(50).await,
        }
    }
}

async fn complete(story: &Story, http: &reqwest::Client, id: Uuid, epoch: i64) {
    let (proof, begun) = (Uuid::now_v7(), Instant::now());
    let result = json!({ "summary": format!("Processed as {proof}."), "proof": proof });
    let columns = json!({ "processing_status": "completed", "processed_data": result });
    let mut nth = 0;
    while begun.elapsed() < PATIENCE {
        nth += 1;
        let url = format!("{}/rest/v1/activities?id=eq.{id}&lock_epoch=eq.{epoch}", story.url(nth));
        let request = http.patch(url).header("apikey", story.agent_key.reveal());
        let asked = request.header("prefer", "return=representation").json(&columns).send().await;
        match asked {
            Ok(answer) if answer.status() == 200 => {
                if answer.json::<Value>().await.is_ok_and(|rows| rows.as_array().is_some_and(|rows| rows.len() == 1)) {
                    story.results.write(id, &proof.to_string());
                }
                return;
            }
            // Done already, by a try without an answer; or taken back.
            Ok(answer) if answer.status() == 409 => return,
            _ => pause(100).await,
        }
    }
}

async fn search(story: Arc<Story>, from: usize) {
    let http = client();
    let mut nth = from;
    while story.goes_on() {
        nth += 1;
        let url = format!("{}/api/v1/search?q=event+came+by+{nth}", story.url(nth));
        let asked = http.get(url).bearer_auth(story.key.reveal()).send().await;
        story.count(asked.is_ok_and(|answer| answer.status() == 200), &story.counts.searches);
        pause(250).await;
    }
}

async fn look_at_pages(story: Arc<Story>, from: usize) {
    let http = client();
    let mut nth = from;
    while story.goes_on() {
        nth += 1;
        let url = format!("{}{}", story.url(nth / PAGES.len()), PAGES[nth % PAGES.len()]);
        let asked = http.get(url).bearer_auth(story.key.reveal()).send().await;
        story.count(asked.is_ok_and(|answer| answer.status() == 200), &story.counts.pages);
        pause(250).await;
    }
}

/// An open page's event stream, opened again when it ends.
async fn hear(story: Arc<Story>, nth: usize) {
    let http = client();
    while story.goes_on() {
        let url = format!("{}/api/v1/events", story.url(nth));
        if let Ok(mut stream) = http.get(url).bearer_auth(story.key.reveal()).send().await {
            while story.goes_on()
                && let Ok(Some(chunk)) = stream.chunk().await
            {
                let told = chunk.windows(5).filter(|bytes| bytes == b"data:").count();
                story.counts.notices.fetch_add(told as u64, SeqCst);
            }
        }
        pause(200).await;
    }
}

/// The provider's people add and change records, and ask for a sync now and then.
async fn change_records(story: Arc<Story>) {
    let (crm, drive) = (story.fakes.hubspot(), story.fakes.drive());
    let mut ids: Vec<[String; 2]> = Vec::new();
    let mut nth = 0;
    while story.goes_on() {
        nth += 1;
        let word = format!("Word{}", Uuid::now_v7().simple());
        let [contact, file] = if nth % 3 == 0 && !ids.is_empty() {
            let [contact, file] = ids[nth / 3 % ids.len()].clone();
            crm.patch("contacts", &contact, json!({ "lastname": word }));
            drive.set_text(&file, &format!("The changed note says {word}."));
            [contact, file]
        } else {
            let email = format!("soak{nth}@acme.example");
            let contact = crm.put("contacts", json!({ "firstname": "Ann", "lastname": word, "email": email }));
            let file = drive.put_doc(&format!("Note {nth}"), &format!("The note says {word}."));
            ids.push([contact.clone(), file.clone()]);
            [contact, file]
        };
        story.has_record(format!("contact:{contact}"), &word);
        story.has_record(format!("file:{file}"), &word);
        if nth % 10 == 0 {
            story.sync().await;
        }
        pause(400).await;
    }
}
