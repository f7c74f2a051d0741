//! Gets vectors from a service. The services differ in what [`EmbedService`] describes. Every answer is checked, and no error names the
//! address, the key, or anything that a service wrote but its code.
//!
//! No text is cut silently: services are told not to, and a text that is too long for its model is embedded in parts.

mod answer;
mod batches;
pub mod services;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use anyhow::anyhow;
use domain::{Fault, Secret};
use serde_json::{Map, Value, json};

use self::answer::{is_same_model, unit, unreadable};
pub use self::batches::estimated_tokens;
use self::batches::{Part, batches, halves, windows};
use self::services::Sides;
pub use self::services::{EmbedService, KnownModel};
use super::{Service, Settings, Trouble, is_plain};
use crate::Http;

/// A shorter text is never cut: a service that refuses it refuses everything.
const SHORTEST_TOKENS: usize = 64;

/// The kind of a text. Many models treat the two differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Query,
    Document,
}

/// Vectors and their cost.
#[derive(Debug, Default)]
pub struct Embedded {
    /// One vector of unit length per text, in order. If there is a `fault`, only the first texts have one.
    pub vectors: Vec<Vec<f32>>,
    pub calls: usize,
    /// Tokens as the service counts them; `None` if it does not say.
    pub tokens: Option<u64>,
    /// The number of texts that were too long for the model. Their vectors are the mean of their parts'.
    pub in_parts: usize,
    /// The reason why the remaining vectors are missing. Those before it are paid for.
    pub fault: Option<Fault>,
}

/// The settings of a service.
#[derive(Clone, Debug)]
pub struct EmbedSettings {
    pub base_url: String,
    pub key: Option<Secret>,
    pub model: String,
    pub dim: usize,
    /// The most texts of one call. The service may allow fewer.
    pub call_texts: usize,
    /// The tokens of the model's longest text. None: the service says when one is too long.
    pub text_tokens: Option<usize>,
    /// The beginning of every question, and of every document.
    pub prefixes: [String; 2],
    /// The names of the model's prompts for questions and for documents, where the service has such.
    pub prompts: [Option<String>; 2],
}

pub struct EmbedClient {
    service: Service,
    kind: &'static EmbedService,
    settings: EmbedSettings,
    fixed: Map<String, Value>,
    call_texts: usize,
    call_tokens: usize,
    is_shortened: bool,
    /// The estimated tokens of the longest text that is sent whole. Falls when the service refuses one.
    text_tokens: AtomicUsize,
}

impl EmbedClient {
    pub fn new(http: &Http, kind: &'static EmbedService, settings: EmbedSettings) -> Self {
        let words = Settings {
            who: "the embedder",
            base_url: kind.base_url_setting,
            api_key: kind.key_setting,
            model: "EMBED_MODEL",
            answer_within: kind.answer_within,
            answer_max_bytes: 64 * 1024 * 1024,
        };
        let known = kind.known(&settings.model);
        Self {
            service: Service::new(http, &settings.base_url, kind.path, settings.key.clone(), words),
            fixed: serde_json::from_str(kind.fixed).unwrap_or_default(), // a test parses each
            call_texts: settings.call_texts.clamp(1, kind.call_texts),
            call_tokens: known.and_then(|known| known.call_tokens).unwrap_or(kind.call_tokens),
            is_shortened: known.map_or(kind.shortens_any, |known| known.is_shortened),
            text_tokens: settings.text_tokens.unwrap_or(usize::MAX).max(SHORTEST_TOKENS).into(),
            kind,
            settings,
        }
    }

    /// Makes as many calls as needed, until one fails. Returns a fault only if no call succeeded. A call that is too large for the service is
    /// repeated in halves.
    pub async fn embed(&self, side: Side, texts: &[&str]) -> Result<Embedded, Fault> {
        let (mut calls, mut tokens, mut fault, mut smallest_refused) = (0, Some(0_u64), None, usize::MAX);
        let more_tokens = estimated_tokens(self.prefix(side));
        let most_tokens = self.text_tokens.load(Relaxed).saturating_sub(more_tokens).max(SHORTEST_TOKENS);
        let (mut parts, mut sums) = (Vec::new(), Vec::new());
        for (of, text) in texts.iter().enumerate() {
            let windows = windows(text, most_tokens);
            sums.push(Sum { n_waiting: windows.len(), parts: Vec::new() });
            parts.extend(windows.into_iter().map(|text| Part { of, text }));
        }
        let mut waiting: VecDeque<_> = batches(parts, self.call_texts, self.call_tokens, more_tokens).into();
        while let Some(batch) = waiting.pop_front() {
            match self.one(side, &batch).await {
                Ok((vectors, counted)) => {
                    calls += 1;
                    tokens = tokens.zip(counted).map(|(sum, more)| sum.saturating_add(more));
                    for (part, vector) in batch.iter().zip(vectors) {
                        sums[part.of].add(vector, part.text.len());
                    }
                }
                Err(Trouble::TooLarge(words)) => {
                    let Some(smaller) = smaller(&batch) else {
                        fault = Some(Fault::Transient(anyhow!(words)));
                        break;
                    };
                    if let [part] = batch[..] {
                        sums[part.of].n_waiting += 1;
                        smallest_refused = smallest_refused.min(estimated_tokens(part.text) + more_tokens);
                    }
                    smaller.into_iter().rev().for_each(|batch| waiting.push_front(batch));
                }
                Err(trouble) => {
                    fault = Some(trouble.into());
                    break;
                }
            }
        }
        if fault.is_none() && smallest_refused < usize::MAX {
            // Its parts were taken, so it was its length. Later texts of that length are not tried whole.
            self.text_tokens.fetch_min(smallest_refused.saturating_sub(1).max(SHORTEST_TOKENS), Relaxed);
        }
        let (mut vectors, mut in_parts) = (Vec::new(), 0);
        for sum in sums.into_iter().take_while(|sum| sum.n_waiting == 0) {
            in_parts += usize::from(sum.parts.len() > 1);
            match sum.mean(self.settings.dim) {
                Ok(vector) => vectors.push(vector),
                Err(words) => {
                    fault = Some(Fault::Transient(anyhow!(words)));
                    break;
                }
            }
        }
        match fault {
            Some(fault) if calls == 0 => Err(fault),
            fault => Ok(Embedded { vectors, calls, tokens, in_parts, fault }),
        }
    }

    async fn one(&self, side: Side, batch: &[Part<'_>]) -> Result<(Vec<Vec<f32>>, Option<u64>), Trouble> {
        let question = self.question(side, batch);
        let fill = |request| self.service.with_bearer(request).json(&question);
        let body = match side {
            Side::Query => self.service.ask_once(fill).await?,
            Side::Document => self.service.ask(fill).await?,
        };
        let answered = (self.kind.read)(&body).map_err(|error| Trouble::Lasting(unreadable(&body, &error)))?;
        if let Some(model) = answered.model.as_deref().filter(|_| self.kind.tells_model) {
            self.check_model(model)?;
        }
        let tokens = answered.tokens;
        let vectors = answered.vectors(batch.len(), self.settings.dim).map_err(Trouble::Lasting)?;
        Ok((vectors, tokens))
    }

    fn question(&self, side: Side, batch: &[Part<'_>]) -> Map<String, Value> {
        let (prefix, settings) = (self.prefix(side), &self.settings);
        let texts: Vec<String> = batch.iter().map(|part| format!("{prefix}{}", part.text)).collect();
        let mut question = self.fixed.clone();
        question.insert(self.kind.texts.into(), json!(texts));
        if self.kind.names_model {
            question.insert("model".into(), json!(settings.model));
        }
        if let Some(name) = self.kind.dimensions.filter(|_| self.is_shortened) {
            question.insert(name.into(), json!(settings.dim));
        }
        let told = match self.kind.sides {
            Sides::Prefix => None,
            Sides::Field { name, query, document } => Some((name, side.of([query, document]).to_owned())),
            Sides::Prompt { name } => side.of(settings.prompts.each_ref()).clone().map(|prompt| (name, prompt)),
        };
        question.extend(told.map(|(name, value)| (name.to_owned(), Value::String(value))));
        question
    }

    fn prefix(&self, side: Side) -> &str {
        side.of(self.settings.prefixes.each_ref().map(String::as_str))
    }

    /// Vectors of two models cannot be compared, so those of another one are refused.
    fn check_model(&self, model: &str) -> Result<(), Trouble> {
        let (ours, dim) = (&self.settings.model, self.settings.dim);
        if is_same_model(model, ours, dim) {
            return Ok(());
        }
        let is_secret = self.settings.key.as_ref().is_some_and(|key| key.reveal().contains(model));
        let theirs = if is_plain(model) && !is_secret { model } else { "another one" };
        Err(Trouble::Lasting(format!(
            "the embedder answered with the model {theirs} where {ours} is set: check EMBED_MODEL and EMBED_DIM"
        )))
    }
}

impl Side {
    fn of<T>(self, [query, document]: [T; 2]) -> T {
        match self {
            Self::Query => query,
            Self::Document => document,
        }
    }
}

/// Cuts a batch that was too large: in two batches, or its only text in two parts. None: it cannot be smaller.
fn smaller<'a>(batch: &[Part<'a>]) -> Option<Vec<Vec<Part<'a>>>> {
    if let [part] = batch {
        let long = Some(part).filter(|part| estimated_tokens(part.text) > SHORTEST_TOKENS)?;
        let [one, other] = halves(long.text)?;
        return Some(vec![vec![Part { text: one, ..*part }, Part { text: other, ..*part }]]);
    }
    let (one, other) = batch.split_at(batch.len() / 2);
    Some(vec![one.to_vec(), other.to_vec()])
}

/// The vectors of a text's parts, with their lengths.
struct Sum {
    n_waiting: usize,
    parts: Vec<(Vec<f32>, usize)>,
}

impl Sum {
    fn add(&mut self, vector: Vec<f32>, bytes: usize) {
        self.n_waiting -= 1;
        self.parts.push((vector, bytes));
    }

    /// Returns the mean of the parts, by their lengths.
    fn mean(mut self, dim: usize) -> Result<Vec<f32>, String> {
        if self.parts.len() == 1 {
            return Ok(self.parts.remove(0).0);
        }
        let mut mean = vec![0.0; dim];
        for (vector, bytes) in &self.parts {
            mean.iter_mut().zip(vector).for_each(|(sum, n)| *sum += n * *bytes as f32);
        }
        unit(mean, dim)
    }
}
