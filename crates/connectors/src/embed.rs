//! Vectors from any service that speaks OpenAI's `POST {base}/embeddings`. What comes back is checked before anybody sees it, and neither
//! the address nor the key is in any error.

use std::time::Duration;

use anyhow::anyhow;
use domain::{Fault, Secret};
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use serde::{Deserialize, Serialize};

use crate::Http;

const BATCH_TEXTS: usize = 256;
const BATCH_CHARS: usize = 200_000;
const ANSWER_MAX_BYTES: usize = 64 * 1024 * 1024;
const ANSWER_SECS: u64 = 120;
/// Before the second and the third try: a hiccup is gone by then, and what is not is for the lane's own backoff.
const BACKOFF: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];
/// For who asks us to wait and does not say how long.
const WAIT_SECS: u64 = 10;
const WAIT_MAX_SECS: u64 = 3_600;

pub struct EmbedClient {
    http: Http,
    url: String,
    key: Option<Secret>,
    model: String,
    dim: usize,
    send_dimensions: bool,
}

impl EmbedClient {
    /// `send_dimensions` asks for vectors of that length, where the model can be cut to one.
    pub fn new(
        http: &Http,
        base_url: &str,
        key: Option<Secret>,
        model: &str,
        dim: usize,
        send_dimensions: bool,
    ) -> Self {
        let url = format!("{}/embeddings", base_url.trim_end_matches('/'));
        Self { http: http.clone(), url, key, model: model.to_owned(), dim, send_dimensions }
    }

    /// One vector of unit length per text, in order; all or none. Whatever is wrong with the service or its answer is a fault after which
    /// trying again may help.
    pub async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Fault> {
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in batches(texts) {
            let body = self.ask(batch).await?;
            vectors.extend(self.checked(&body, batch.len())?);
        }
        Ok(vectors)
    }

    /// The body of a good answer. Tries again what may be gone in a second.
    async fn ask(&self, texts: &[&str]) -> Result<Vec<u8>, Fault> {
        let mut pauses = BACKOFF.into_iter();
        loop {
            let trouble = match self.ask_once(texts).await {
                Ok(body) => return Ok(body),
                Err(Refusal::Final(fault)) => return Err(fault),
                Err(Refusal::Passing(error)) => error,
            };
            let Some(pause) = pauses.next() else { return Err(Fault::Transient(trouble)) };
            tokio::time::sleep(pause).await;
        }
    }

    async fn ask_once(&self, texts: &[&str]) -> Result<Vec<u8>, Refusal> {
        let dimensions = self.send_dimensions.then_some(self.dim);
        let question = Question { model: &self.model, input: texts, encoding_format: "float", dimensions };
        let mut request = self.http.client().post(&self.url).timeout(Duration::from_secs(ANSWER_SECS)).json(&question);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key.reveal());
        }
        let answer = request.send().await.map_err(|error| in_words(&error))?;
        let status = answer.status();
        if status.is_success() {
            return read(answer).await;
        }
        let retry_after = retry_after(answer.headers());
        Err(match status {
            StatusCode::TOO_MANY_REQUESTS => {
                let retry_after = retry_after.unwrap_or(Duration::from_secs(WAIT_SECS));
                Refusal::Final(Fault::RateLimited { retry_after })
            }
            StatusCode::SERVICE_UNAVAILABLE if retry_after.is_some() => {
                Refusal::Final(Fault::RateLimited { retry_after: retry_after.unwrap_or_default() })
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                wrong(format!("the embedder refused the key ({status}): check EMBED_API_KEY"))
            }
            status if status.is_server_error() => Refusal::Passing(anyhow!("the embedder answered {status}")),
            status => wrong(format!("the embedder answered {status}{}", self.reason(answer).await)),
        })
    }

    /// The service's own name for what it did not like, if that is a plain word. Its sentences may quote a key or a text.
    async fn reason(&self, answer: Response) -> String {
        #[derive(Deserialize)]
        struct Complaint {
            error: Reason,
        }
        #[derive(Deserialize)]
        struct Reason {
            code: Option<String>,
        }
        let body = read(answer).await.unwrap_or_default();
        let code = serde_json::from_slice(&body).ok().and_then(|Complaint { error }| error.code).unwrap_or_default();
        let is_word = (1..=60).contains(&code.len()) && code.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        let is_secret = self.key.as_ref().is_some_and(|key| key.reveal().contains(&code));
        if is_word && !is_secret { format!(" ({code})") } else { String::new() }
    }

    fn checked(&self, body: &[u8], n_texts: usize) -> Result<Vec<Vec<f32>>, Fault> {
        let refused = |what: String| Fault::Transient(anyhow!(what));
        let Ok(answer) = serde_json::from_slice::<Answer>(body) else {
            // Some write what JSON has no word for.
            let has_nan = body.windows(3).any(|word| word == b"NaN") || body.windows(8).any(|word| word == b"Infinity");
            let what = if has_nan { "with numbers that are none" } else { "that does not parse" };
            return Err(refused(format!("the embedder gave an answer {what}")));
        };
        let n_vectors = answer.data.len();
        if n_vectors != n_texts {
            return Err(refused(format!("the embedder gave {n_vectors} vectors for {n_texts} texts")));
        }
        let mut vectors: Vec<Option<Vec<f32>>> = vec![None; n_texts];
        for (i, row) in answer.data.into_iter().enumerate() {
            let index = row.index.unwrap_or(i);
            let vector = self.unit(&row.embedding).map_err(refused)?;
            match vectors.get_mut(index) {
                Some(place @ None) => *place = Some(vector),
                _ => {
                    return Err(refused(format!(
                        "the embedder gave a vector for no text, or two for one (index {index})"
                    )));
                }
            }
        }
        Ok(vectors.into_iter().flatten().collect())
    }

    /// A vector that can be stored, made one long; or what is wrong with it.
    fn unit(&self, numbers: &[Option<f32>]) -> Result<Vec<f32>, String> {
        if numbers.len() != self.dim {
            let (n, dim) = (numbers.len(), self.dim);
            return Err(format!("the embedder gave a vector of {n} dimensions where {dim} are set: check EMBED_DIM"));
        }
        let numbers: Option<Vec<f32>> = numbers.iter().map(|number| number.filter(|n| n.is_finite())).collect();
        let Some(mut vector) = numbers else {
            return Err("the embedder gave a vector with numbers that are none".into());
        };
        let length = vector.iter().map(|n| f64::from(*n) * f64::from(*n)).sum::<f64>().sqrt();
        if length == 0.0 {
            return Err("the embedder gave a vector of zeros".into());
        }
        vector.iter_mut().for_each(|n| *n = (f64::from(*n) / length) as f32);
        Ok(vector)
    }
}

#[derive(Serialize)]
struct Question<'a> {
    model: &'a str,
    input: &'a [&'a str],
    encoding_format: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<usize>,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    index: Option<usize>,
    /// `null` is how JavaScript writes NaN.
    embedding: Vec<Option<f32>>,
}

/// Why there is no answer: for good, as far as this call goes, or perhaps not a moment later.
enum Refusal {
    Final(Fault),
    Passing(anyhow::Error),
}

fn wrong(what: String) -> Refusal {
    Refusal::Final(Fault::Transient(anyhow!(what)))
}

fn batches<'a, 'b>(texts: &'a [&'b str]) -> Vec<&'a [&'b str]> {
    let mut batches = Vec::new();
    let (mut start, mut chars) = (0, 0);
    for (i, text) in texts.iter().enumerate() {
        let text_chars = text.chars().count();
        if i > start && (i - start == BATCH_TEXTS || chars + text_chars > BATCH_CHARS) {
            batches.push(&texts[start..i]);
            (start, chars) = (i, 0);
        }
        chars += text_chars;
    }
    if start < texts.len() {
        batches.push(&texts[start..]);
    }
    batches
}

/// Reads a body as it comes, and no more of it than is sensible.
async fn read(mut answer: Response) -> Result<Vec<u8>, Refusal> {
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(|error| in_words(&error))? {
        if body.len() + piece.len() > ANSWER_MAX_BYTES {
            return Err(wrong(format!("the embedder gave an answer of more than {ANSWER_MAX_BYTES} bytes")));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// The kind of failure only: the errors below may name the address.
fn in_words(error: &reqwest::Error) -> Refusal {
    let mut cause = std::error::Error::source(error);
    let mut kind = None;
    while let Some(error) = cause {
        kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind).or(kind);
        cause = error.source();
    }
    let kind = kind.map(|kind| format!(": {kind}")).unwrap_or_default();
    if error.is_builder() {
        wrong("the embedder cannot be asked: check EMBED_BASE_URL and EMBED_API_KEY".into())
    } else if error.is_timeout() {
        Refusal::Passing(anyhow!("the embedder did not answer in time"))
    } else if error.is_connect() {
        Refusal::Passing(anyhow!("the embedder could not be reached{kind}"))
    } else {
        Refusal::Passing(anyhow!("the connection to the embedder broke{kind}"))
    }
}

/// Seconds, or a date: that one is compared with the answer's own date, never with our clock.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let until = httpdate::parse_http_date(text).ok()?;
            let now = headers.get(DATE).and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
            now.map_or(Duration::from_secs(WAIT_SECS), |now| until.duration_since(now).unwrap_or_default())
        }
    };
    Some(wait.min(Duration::from_secs(WAIT_MAX_SECS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_small_in_number_and_size() {
        let long = "x".repeat(BATCH_CHARS - 1);
        let sizes = |texts: &[&str]| batches(texts).iter().map(|batch| batch.len()).collect::<Vec<_>>();
        assert_eq!(sizes(&[]), [0; 0]);
        assert_eq!(sizes(&["a"; 600]), [256, 256, 88]);
        assert_eq!(sizes(&["a", &long, "b", "c", &long, &long]), [2, 2, 1, 1]);
    }

    #[test]
    fn a_wait_is_told_in_seconds_or_as_a_date_and_is_never_longer_than_an_hour() {
        for (after, date, expected) in [
            ("30", None, Some(30)),
            (" 0 ", None, Some(0)),
            ("86400", None, Some(3_600)),
            ("soon", None, None),
            ("-1", None, None),
            ("Sun, 15 Nov 2026 12:01:00 GMT", Some("Sun, 15 Nov 2026 12:00:00 GMT"), Some(60)),
            ("Sun, 15 Nov 2026 11:00:00 GMT", Some("Sun, 15 Nov 2026 12:00:00 GMT"), Some(0)),
            ("Sun, 15 Nov 2026 18:00:00 GMT", Some("Sun, 15 Nov 2026 12:00:00 GMT"), Some(3_600)),
            ("Sun, 15 Nov 2026 18:00:00 GMT", None, Some(10)),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, after.parse().expect("a value"));
            if let Some(date) = date {
                headers.insert(DATE, date.parse().expect("a value"));
            }
            assert_eq!(retry_after(&headers), expected.map(Duration::from_secs), "of {after:?}");
        }
    }
}
