//! Gets vectors from any service with OpenAI's `POST {base}/embeddings`. Every answer is checked, and no error names the address or the
//! key.

use std::time::Duration;

use anyhow::anyhow;
use domain::{Fault, Secret};
use serde::{Deserialize, Serialize};

use super::{Service, Settings, Trouble};
use crate::Http;

const BATCH_CHARS: usize = 200_000;

/// Vectors and their cost.
#[derive(Debug, Default)]
pub struct Embedded {
    /// One vector of unit length per text, in order. If there is a `fault`, only the first texts have one.
    pub vectors: Vec<Vec<f32>>,
    pub calls: usize,
    /// Tokens as the service counts them; `None` if it does not say.
    pub tokens: Option<u64>,
    /// The reason why the remaining vectors are missing. Those before it are paid for.
    pub fault: Option<Fault>,
}

pub struct EmbedClient {
    service: Service,
    model: String,
    dim: usize,
    send_dimensions: bool,
    /// The largest number of texts in one call.
    batch_texts: usize,
}

impl EmbedClient {
    /// With `send_dimensions` the service is asked for vectors of this length; the model must support that.
    pub fn new(
        http: &Http,
        base_url: &str,
        key: Option<Secret>,
        model: &str,
        dim: usize,
        send_dimensions: bool,
        batch_texts: usize,
    ) -> Self {
        let settings = Settings {
            who: "the embedder",
            base_url: "EMBED_BASE_URL",
            api_key: "EMBED_API_KEY",
            answer_within: Duration::from_secs(120),
            answer_max_bytes: 64 * 1024 * 1024,
        };
        let service = Service::new(http, base_url, "/embeddings", key, settings);
        Self { service, model: model.to_owned(), dim, send_dimensions, batch_texts }
    }

    /// Makes as many calls as needed, until one fails. Returns a fault only if the first call failed. Every failure of the service or its
    /// answer may pass, so a retry may help.
    pub async fn embed(&self, texts: &[&str]) -> Result<Embedded, Fault> {
        let mut embedded = Embedded { tokens: Some(0), ..Embedded::default() };
        for batch in batches(texts, self.batch_texts) {
            let (vectors, tokens) = match self.one(batch).await {
                Ok(answer) => answer,
                Err(fault) if embedded.calls == 0 => return Err(fault),
                Err(fault) => return Ok(Embedded { fault: Some(fault), ..embedded }),
            };
            embedded.vectors.extend(vectors);
            embedded.calls += 1;
            embedded.tokens = embedded.tokens.zip(tokens).map(|(sum, more)| sum.saturating_add(more));
        }
        Ok(embedded)
    }

    async fn one(&self, texts: &[&str]) -> Result<(Vec<Vec<f32>>, Option<u64>), Fault> {
        let body = self.ask(texts).await?;
        self.checked(&body, texts.len())
    }

    async fn ask(&self, texts: &[&str]) -> Result<Vec<u8>, Trouble> {
        let dimensions = self.send_dimensions.then_some(self.dim);
        let question = Question { model: &self.model, input: texts, encoding_format: "float", dimensions };
        self.service.ask(|request| self.service.with_bearer(request).json(&question)).await
    }

    fn checked(&self, body: &[u8], n_texts: usize) -> Result<(Vec<Vec<f32>>, Option<u64>), Fault> {
        let refused = |what: String| Fault::Transient(anyhow!(what));
        let Ok(answer) = serde_json::from_slice::<EmbeddingsAnswer>(body) else {
            // Some services write NaN or infinity, which JSON does not have.
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
        Ok((vectors.into_iter().flatten().collect(), answer.usage.and_then(|usage| usage.total_tokens)))
    }

    /// Normalises a vector to unit length, or says why it cannot be stored.
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
struct EmbeddingsAnswer {
    data: Vec<Row>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Usage {
    total_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Row {
    index: Option<usize>,
    /// `null` is how JavaScript writes NaN.
    embedding: Vec<Option<f32>>,
}

fn batches<'a, 'b>(texts: &'a [&'b str], most: usize) -> Vec<&'a [&'b str]> {
    let mut batches = Vec::new();
    let (mut start, mut chars) = (0, 0);
    for (i, text) in texts.iter().enumerate() {
        let text_chars = text.chars().count();
        if i > start && (i - start == most || chars + text_chars > BATCH_CHARS) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_small_in_number_and_size() {
        let long = "x".repeat(BATCH_CHARS - 1);
        let sizes = |texts: &[&str]| batches(texts, 256).iter().map(|batch| batch.len()).collect::<Vec<_>>();
        assert_eq!(sizes(&[]), [0; 0]);
        assert_eq!(sizes(&["a"; 600]), [256, 256, 88]);
        assert_eq!(sizes(&["a", &long, "b", "c", &long, &long]), [2, 2, 1, 1]);
    }
}
