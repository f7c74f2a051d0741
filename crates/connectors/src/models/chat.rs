//! Asks a language model and gets JSON in a given schema, at once or as it is written (`stream`). There are two dialects: in Anthropic's the
//! schema is a tool that must be used, in OpenAI's it is the response format. The answer is data: nothing in it is executed or fetched.

use std::time::Duration;

use domain::Secret;
use reqwest::RequestBuilder;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::stream::ChatStream;
use super::{Service, Settings, Trouble};
use crate::Http;

const ANTHROPIC_VERSION: &str = "2023-06-01";
const ANSWER_TOKENS: u32 = 8_192;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Anthropic,
    Openai,
}

pub struct ChatClient {
    service: Service,
    dialect: Dialect,
    model: String,
}

impl ChatClient {
    pub fn new(http: &Http, dialect: Dialect, base_url: &str, key: Option<Secret>, model: &str) -> Self {
        let settings = Settings {
            who: "the language model",
            base_url: "LLM_BASE_URL",
            api_key: "LLM_API_KEY",
            model: "LLM_MODEL",
            answer_within: Duration::from_secs(300),
            answer_max_bytes: 8 * 1024 * 1024,
        };
        let path = match dialect {
            Dialect::Anthropic => "/v1/messages",
            Dialect::Openai => "/chat/completions",
        };
        Self { service: Service::new(http, base_url, path, key, settings), dialect, model: model.to_owned() }
    }

    /// Asks about a text. `schema` describes the answer, `name` names the schema, and the answer is parsed into `T`. An answer that does
    /// not fit is an error.
    pub async fn ask<T: DeserializeOwned>(
        &self,
        system: &str,
        text: &str,
        name: &str,
        schema: &Value,
    ) -> Result<T, Trouble> {
        let value = match self.dialect {
            Dialect::Anthropic => self.ask_anthropic(system, text, name, schema).await?,
            Dialect::Openai => self.ask_openai(system, text, name, schema).await?,
        };
        serde_json::from_value(value).map_err(|_| wrong("gave an answer that does not fit what was asked for"))
    }

    /// Asks for the same, and returns the answer as it is written, in pieces. It has at most `most_tokens`.
    pub async fn stream(
        &self,
        system: &str,
        text: &str,
        name: &str,
        schema: &Value,
        most_tokens: u32,
    ) -> Result<ChatStream<'_>, Trouble> {
        let mut question = match self.dialect {
            Dialect::Anthropic => self.anthropic_question(system, text, name, schema, most_tokens),
            Dialect::Openai => {
                let mut question = self.openai_question(system, text, name, schema);
                question["max_completion_tokens"] = most_tokens.into();
                question["stream_options"] = json!({ "include_usage": true });
                question
            }
        };
        question["stream"] = true.into();
        let answer = self.service.open(|request| self.with_key(request).timeout(super::stream::WITHIN).json(&question));
        Ok(ChatStream::new(&self.service, self.dialect, answer.await?))
    }

    /// The model's name, as it is configured.
    pub fn model(&self) -> &str {
        &self.model
    }

    fn with_key(&self, request: RequestBuilder) -> RequestBuilder {
        if self.dialect == Dialect::Openai {
            return self.service.with_bearer(request);
        }
        let request = request.header("anthropic-version", ANTHROPIC_VERSION);
        match &self.service.key {
            Some(key) => request.header("x-api-key", key.reveal()),
            None => request,
        }
    }

    fn anthropic_question(&self, system: &str, text: &str, name: &str, schema: &Value, most_tokens: u32) -> Value {
        json!({
            "model": self.model,
            "max_tokens": most_tokens,
            "system": system,
            "messages": [{ "role": "user", "content": text }],
            "tools": [{ "name": name, "description": "Takes the answer.", "input_schema": schema }],
            "tool_choice": { "type": "tool", "name": name },
        })
    }

    fn openai_question(&self, system: &str, text: &str, name: &str, schema: &Value) -> Value {
        json!({
            "model": self.model,
            "messages": [{ "role": "system", "content": system }, { "role": "user", "content": text }],
            "response_format": { "type": "json_schema", "json_schema": { "name": name, "strict": true, "schema": schema } },
        })
    }

    async fn ask_anthropic(&self, system: &str, text: &str, name: &str, schema: &Value) -> Result<Value, Trouble> {
        let question = self.anthropic_question(system, text, name, schema, ANSWER_TOKENS);
        let body = self.service.ask(|request| self.with_key(request).json(&question));
        let answer: Message = parsed(&body.await?)?;
        match answer.stop_reason.as_deref() {
            Some("refusal") => return Err(refused()),
            Some("max_tokens" | "model_context_window_exceeded") => return Err(cut_off()),
            _ => {}
        }
        let used = answer.content.into_iter().find(|block| block.r#type == "tool_use" && block.name == name);
        used.map(|block| block.input).ok_or_else(|| wrong("gave an answer that does not fit what was asked for"))
    }

    async fn ask_openai(&self, system: &str, text: &str, name: &str, schema: &Value) -> Result<Value, Trouble> {
        let question = self.openai_question(system, text, name, schema);
        let body = self.service.ask(|request| self.with_key(request).json(&question));
        let answer: Completion = parsed(&body.await?)?;
        let Some(choice) = answer.choices.into_iter().next() else {
            return Err(wrong("gave an answer without a choice"));
        };
        match choice.finish_reason.as_deref() {
            Some("length") => return Err(cut_off()),
            Some("content_filter") => return Err(refused()),
            _ if choice.message.refusal.is_some() => return Err(refused()),
            _ => {}
        }
        serde_json::from_str(&choice.message.content.unwrap_or_default())
            .map_err(|_| wrong("gave an answer that is not JSON"))
    }
}

#[derive(Deserialize)]
struct Message {
    content: Vec<Block>,
    stop_reason: Option<String>,
}

/// A part of Anthropic's answer: text, or a tool with its input.
#[derive(Deserialize)]
struct Block {
    r#type: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    input: Value,
}

#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: Said,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Said {
    content: Option<String>,
    refusal: Option<String>,
}

fn parsed<T: DeserializeOwned>(body: &[u8]) -> Result<T, Trouble> {
    serde_json::from_slice(body).map_err(|_| wrong("gave an answer that does not parse"))
}

pub(super) fn wrong(what: &str) -> Trouble {
    Trouble::Lasting(format!("the language model {what}"))
}

fn refused() -> Trouble {
    wrong("refused to answer")
}

fn cut_off() -> Trouble {
    wrong("was cut off before its answer was complete")
}
