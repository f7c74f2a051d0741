//! A language model's answer as it is written: server-sent events, bounded in size, in time and in silence. Only the pieces of the JSON that
//! was asked for come out; how it ended and what it cost is known at the end.

use std::time::Duration;

use reqwest::Response;
use serde_json::Value;

use super::chat::{Dialect, wrong};
use super::{Service, Trouble};

/// The longest time of a whole answer, and of a silence in the middle of it.
pub(super) const WITHIN: Duration = Duration::from_secs(120);
const SILENCE: Duration = Duration::from_secs(45);
/// Of the whole answer. An event is some two hundred bytes for one token.
const MOST_BYTES: usize = 4 << 20;

/// The tokens of a question and of its answer, as the service counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChatUsage {
    pub input_tokens: u64,
    pub output_tokens: u64,
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Complete,
    /// The model would not answer, or its provider's filter did not let it.
    Refused,
    /// It reached the largest number of tokens.
    CutOff,
}

/// An answer that is being written.
pub struct ChatStream<'a> {
    service: &'a Service,
    dialect: Dialect,
    answer: Response,
    /// The bytes after the last whole line.
    rest: Vec<u8>,
    n_bytes: usize,
    usage: Option<ChatUsage>,
    ending: Option<Ending>,
    is_over: bool,
}

impl<'a> ChatStream<'a> {
    pub(super) fn new(service: &'a Service, dialect: Dialect, answer: Response) -> Self {
        Self { service, dialect, answer, rest: Vec::new(), n_bytes: 0, usage: None, ending: None, is_over: false }
    }

    /// The next piece of the JSON; none at its end. An answer that breaks off is an error.
    pub async fn next(&mut self) -> Result<Option<String>, Trouble> {
        while !self.is_over {
            let Some(data) = self.data().await? else {
                // Some services close the connection without a last word; they have said that the answer is complete.
                return if self.ending.is_some() { Ok(None) } else { Err(broken()) };
            };
            let piece = match self.dialect {
                Dialect::Anthropic => self.of_anthropic(&data)?,
                Dialect::Openai => self.of_openai(&data)?,
            };
            if let Some(piece) = piece.filter(|piece| !piece.is_empty()) {
                return Ok(Some(piece));
            }
        }
        Ok(None)
    }

    /// The tokens that the service has counted so far, if it has said so.
    pub fn usage(&self) -> Option<ChatUsage> {
        self.usage
    }

    /// How it ended, once `next` has returned none.
    pub fn ending(&self) -> Ending {
        self.ending.unwrap_or(Ending::Complete)
    }

    /// The data of the next event; none where the connection ends. Both services send it on one line, and say in it what it is.
    async fn data(&mut self) -> Result<Option<Vec<u8>>, Trouble> {
        loop {
            while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                if let Some(data) = line.trim_ascii_end().strip_prefix(b"data:") {
                    return Ok(Some(data.trim_ascii_start().to_vec()));
                }
            }
            let who = self.service.settings.who;
            let silent = || Trouble::Passing(format!("{who} fell silent in the middle of its answer"));
            let piece = tokio::time::timeout(SILENCE, self.answer.chunk()).await.map_err(|_| silent())?;
            let Some(piece) = piece.map_err(|error| self.service.in_words(&error))? else { return Ok(None) };
            self.n_bytes += piece.len();
            if self.n_bytes > MOST_BYTES {
                return Err(Trouble::Lasting(format!("{who} gave an answer of more than {MOST_BYTES} bytes")));
            }
            self.rest.extend_from_slice(&piece);
        }
    }

    fn of_anthropic(&mut self, data: &[u8]) -> Result<Option<String>, Trouble> {
        let event = parsed(data)?;
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => self.count_anthropic(&event["message"]["usage"]),
            "content_block_delta" if event["delta"]["type"] == "input_json_delta" => {
                return Ok(text(&event["delta"]["partial_json"]));
            }
            "message_delta" => {
                self.count_anthropic(&event["usage"]);
                self.ending = match event["delta"]["stop_reason"].as_str() {
                    Some("refusal") => Some(Ending::Refused),
                    Some("max_tokens" | "model_context_window_exceeded") => Some(Ending::CutOff),
                    Some(_) => Some(Ending::Complete),
                    None => self.ending,
                };
            }
            "message_stop" => self.is_over = true,
            "error" => return Err(broken()),
            _ => {}
        }
        Ok(None)
    }

    /// The first event has the question's tokens, and later ones the answer's so far. Cached tokens are counted beside the others.
    fn count_anthropic(&mut self, usage: &Value) {
        let number = |name: &str| usage[name].as_u64();
        let input = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
        let counted = self.usage.get_or_insert_default();
        counted.input_tokens = counted.input_tokens.max(input.iter().filter_map(|name| number(name)).sum());
        counted.output_tokens = counted.output_tokens.max(number("output_tokens").unwrap_or(0));
    }

    fn of_openai(&mut self, data: &[u8]) -> Result<Option<String>, Trouble> {
        if data == b"[DONE]" {
            self.is_over = true;
            return Ok(None);
        }
        let event = parsed(data)?;
        if !event["error"].is_null() {
            return Err(broken());
        }
        if let (Some(input_tokens), Some(output_tokens)) =
            (event["usage"]["prompt_tokens"].as_u64(), event["usage"]["completion_tokens"].as_u64())
        {
            self.usage = Some(ChatUsage { input_tokens, output_tokens });
        }
        let choice = &event["choices"][0];
        if choice["delta"]["refusal"].as_str().is_some_and(|words| !words.is_empty()) {
            self.ending = Some(Ending::Refused);
        }
        match choice["finish_reason"].as_str() {
            Some("content_filter") => self.ending = Some(Ending::Refused),
            Some("length") => self.ending = Some(Ending::CutOff),
            Some(_) if self.ending.is_none() => self.ending = Some(Ending::Complete),
            _ => {}
        }
        Ok(text(&choice["delta"]["content"]))
    }
}

fn parsed(data: &[u8]) -> Result<Value, Trouble> {
    serde_json::from_slice(data).map_err(|_| wrong("gave an answer that does not parse"))
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn broken() -> Trouble {
    Trouble::Passing("the language model broke off its answer".into())
}
