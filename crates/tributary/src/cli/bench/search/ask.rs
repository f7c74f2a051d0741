//! Queries over HTTP, each timed.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::ensure;
use engine::bench::quantile;
use serde_json::Value;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::super::client::Client;
use super::{ASKING, Asker, K, Question, RARE};

pub(super) struct TimedAnswer {
    pub documents: Vec<Uuid>,
    pub how: String,
    pub took: Duration,
}

/// Every query once, in turn by each asker, a few at a time.
pub(super) async fn ask_all(
    to: SocketAddr,
    askers: &[Asker],
    questions: &[Question],
    mode: &str,
    is_filtered: bool,
) -> anyhow::Result<Vec<TimedAnswer>> {
    let filter = if is_filtered { format!("&type={RARE}") } else { String::new() };
    let request = |nth: usize| {
        let key = askers[nth % askers.len()].key.reveal();
        let query: String = questions[nth].text.bytes().map(|byte| format!("%{byte:02X}")).collect();
        format!(
            "GET /api/v1/search?k={K}&mode={mode}{filter}&q={query} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {key}\r\n\r\n"
        )
    };
    let mut tasks = JoinSet::new();
    for first in 0..ASKING {
        let requests: Vec<(usize, String)> =
            (first..questions.len()).step_by(ASKING).map(|nth| (nth, request(nth))).collect();
        tasks.spawn(async move {
            let mut client = Client::connect(to).await?;
            let mut answers = Vec::new();
            for (nth, request) in requests {
                let asked = Instant::now();
                let answer = client.ask(request.as_bytes()).await?;
                let took = asked.elapsed();
                ensure!(answer.status == 200, "{}: {}", answer.status, String::from_utf8_lossy(answer.body));
                let said: Value = serde_json::from_slice(answer.body)?;
                let how = said["how"].as_str().unwrap_or_default().into();
                answers.push((nth, TimedAnswer { documents: documents(&said), how, took }));
            }
            Ok(answers)
        });
    }
    let mut answers = Vec::new();
    while let Some(done) = tasks.join_next().await {
        answers.extend(done??);
    }
    answers.sort_by_key(|(nth, _)| *nth);
    Ok(answers.into_iter().map(|(_, answer)| answer).collect())
}

/// The documents of an answer. Recall is that of the candidates, whether they fit or not; a document that is alike to a hit was found, too.
fn documents(said: &Value) -> Vec<Uuid> {
    let hits = [&said["hits"], &said["closest"]].into_iter().filter_map(Value::as_array).flatten();
    let found = hits.flat_map(|hit| std::iter::once(hit).chain(hit["others"].as_array().into_iter().flatten()));
    found.filter_map(|document| document["document_id"].as_str()?.parse().ok()).collect()
}

/// Times in milliseconds, sorted.
pub(super) struct Times(Vec<f64>);

impl Times {
    pub(super) fn of(times: impl IntoIterator<Item = Duration>) -> Self {
        let mut times_ms: Vec<f64> = times.into_iter().map(|took| took.as_secs_f64() * 1_000.0).collect();
        times_ms.sort_by(f64::total_cmp);
        Self(times_ms)
    }

    pub(super) fn p50(&self) -> f64 {
        quantile(&self.0, 0.50)
    }

    pub(super) fn p99(&self) -> f64 {
        quantile(&self.0, 0.99)
    }

    pub(super) fn in_words(&self) -> String {
        format!("p50 {:.2} ms, p99 {:.2} ms", self.p50(), self.p99())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_has_the_documents_of_its_hits_and_of_what_is_alike() {
        let [a, b, c] = [1, 2, 3].map(Uuid::from_u128);
        let hit = json!({ "document_id": a, "others": [{ "document_id": b }] });
        assert_eq!(documents(&json!({ "hits": [hit], "closest": [] })), [a, b]);
        assert_eq!(documents(&json!({ "hits": [], "closest": [{ "document_id": c }] })), [c]);
    }
}
