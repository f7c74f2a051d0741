//! An agent's tools: a transcriber for recordings, then a language model, or rules if there is none.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use connectors::Http;
use connectors::models::{ChatClient, Dialect, TranscribeClient, Trouble};
use domain::audio;
use serde_json::{Value, json};

use super::hearing::{Ear, Hearing};
use super::{model, rules};
use crate::Config;
use crate::config::LlmKind;
use crate::recordings::{self, Audio};

const TRANSCRIPT_CHARS: usize = 1_000_000;
/// The longest wait, and the number of waits, for a service that asks us to wait.
const MOST_WAIT: Duration = Duration::from_secs(60);
const MOST_WAITS: u32 = 3;

/// An activity that an agent holds.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub r#type: &'a str,
    pub raw_data: &'a Value,
}

/// The reason why an activity was not processed, for its `metadata.error`. It never quotes the activity, an address or a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// `DownloadError`, `TranscriptionError`, `LLMError` or `ValidationError`.
    pub kind: &'static str,
    pub message: String,
}

/// The kinds of content that an agent can process, with or without a transcriber.
pub fn source_types(can_hear: bool) -> &'static [&'static str] {
    if can_hear { &["text", "url"] } else { &["text"] }
}

pub struct Processors {
    ears: Ears,
    model: Option<ChatClient>,
}

/// The transcriber, if there is one.
enum Ears {
    Service(TranscribeClient),
    Local(Ear),
    /// And why.
    None(&'static str),
}

impl Processors {
    /// Creates the clients from the settings, without calling any service.
    pub fn new(config: &Config, http: &Http) -> anyhow::Result<Self> {
        let ears = match Hearing::of(config) {
            Hearing::Service => {
                let base_url = config.transcribe_base_url.as_deref().unwrap_or_default();
                let key = config.transcribe_api_key.clone();
                Ears::Service(TranscribeClient::new(http, base_url, key, &config.transcribe_model))
            }
            Hearing::Local(ear) => Ears::Local(ear),
            Hearing::Nobody(why) => Ears::None(why),
        };
        Ok(Self { ears, model: language_model(config, http)? })
    }

    /// The kinds of content that can be processed here, in the words of a person's `processes`.
    pub fn source_types(&self) -> &'static [&'static str] {
        source_types(!matches!(self.ears, Ears::None(_)))
    }

    /// Whether recordings are heard by this machine itself. It has one ear, and what it hears takes nobody else's turn.
    pub fn hear_here(&self) -> bool {
        matches!(self.ears, Ears::Local(_))
    }

    /// Makes an activity's `processed_data`. For a recording it includes the transcript.
    pub async fn process(&self, work: &Subject<'_>, recording: Option<&Audio>) -> Result<Value, Failure> {
        match (rules::field(work.raw_data, "source_type"), recording) {
            ("text", _) => self.sum_up(work, &rules::text_of(work.raw_data)).await,
            ("url", Some(recording)) => {
                let (text, known) = self.hear(recording).await?;
                let text = model::clean(&text, TRANSCRIPT_CHARS);
                let mut processed = self.sum_up(work, &text).await?;
                processed["transcript"] = text.into();
                for (name, value) in known.into_iter().filter(|(_, value)| !value.is_null()) {
                    processed[name] = value;
                }
                Ok(processed)
            }
            ("url", None) => Err(Failure::new("DownloadError", "there is no recording to hear")),
            _ => Err(Failure::new("ValidationError", "it is neither a text nor a recording")),
        }
    }

    /// Returns an error if there is no transcriber.
    pub fn must_hear(&self) -> Result<(), Failure> {
        match &self.ears {
            Ears::None(why) => Err(Failure::new("TranscriptionError", format!("nothing here can hear: {why}"))),
            Ears::Service(_) | Ears::Local(_) => Ok(()),
        }
    }

    /// Whether texts take no time and no turn: no service is called, neither for them nor for recordings.
    pub fn are_instant(&self) -> bool {
        self.model.is_none() && !matches!(self.ears, Ears::Service(_))
    }

    /// Makes the result for an activity that takes no time.
    pub fn at_once(&self, raw_data: &Value) -> Option<Value> {
        let is_text = rules::field(raw_data, "source_type") == "text";
        (is_text && self.model.is_none()).then(|| rules::process(raw_data))
    }

    /// Describes the tools, for a person.
    pub fn in_words(&self) -> String {
        let hears = match &self.ears {
            Ears::Service(_) => "calls are transcribed by a service".to_owned(),
            Ears::Local(_) => "calls are transcribed on this machine".to_owned(),
            Ears::None(why) => format!("calls are left to others: {why}"),
        };
        let reads = if self.model.is_some() { "a language model sums up" } else { "rules sum up: LLM is not set" };
        format!("{hears}, {reads}")
    }

    /// The words of a recording, and what else is known of them, by name.
    async fn hear(&self, recording: &Audio) -> Result<(String, [(&'static str, Value); 4]), Failure> {
        self.must_hear()?;
        let Some(kind) = recording.content_type else { return Err(recordings::Error::NotAudio.into()) };
        let told = |language: Option<String>, seconds: Value, confidence: Value, is_cut: Value| {
            let language = language.map(|language| model::clean(&language, 40));
            [("language", json!(language)), ("seconds", seconds), ("confidence", confidence), ("is_cut", is_cut)]
        };
        match &self.ears {
            Ears::None(_) => Err(Failure::new("TranscriptionError", "nothing here can hear")),
            Ears::Service(service) => {
                let name = format!("recording.{}", audio::extension(kind));
                let hear = || service.transcribe(&name, kind, recording.file.bytes, || recording.file.pieces());
                let heard = patiently(hear).await;
                let heard = heard.map_err(|trouble| Failure::new("TranscriptionError", trouble.to_string()))?;
                Ok((heard.text, told(heard.language, json!(heard.seconds), Value::Null, Value::Null)))
            }
            Ears::Local(ear) => {
                let heard = ear.hear(recording).await?;
                let sure = heard.confidence.map(|sure| (sure * 100.0).round() / 100.0);
                let is_cut = heard.is_cut.then_some(true);
                Ok((heard.text, told(heard.language, json!(heard.seconds), json!(sure), json!(is_cut))))
            }
        }
    }

    async fn sum_up(&self, work: &Subject<'_>, text: &str) -> Result<Value, Failure> {
        let subject = rules::field(work.raw_data, "subject");
        let is_recording = rules::field(work.raw_data, "source_type") == "url";
        match &self.model {
            // Models invent text when a recording is silent.
            Some(model) if !text.trim().is_empty() => {
                let summed_up = patiently(|| model::sum_up(model, work.r#type, subject, text)).await;
                summed_up.map_err(|trouble| Failure::new("LLMError", trouble.to_string()))
            }
            _ if text.is_empty() && is_recording => Ok(rules::of_text(subject, "Nobody speaks in the recording.")),
            _ => Ok(rules::of_text(subject, text)),
        }
    }
}

/// Waits for a service that asks for a short wait. Each service waits on its own, so a call is not transcribed again because the model is
/// busy.
async fn patiently<T, F: Future<Output = Result<T, Trouble>>>(ask: impl Fn() -> F) -> Result<T, Trouble> {
    let mut waits = MOST_WAITS;
    loop {
        match ask().await {
            Err(Trouble::Wait { retry_after, .. }) if retry_after <= MOST_WAIT && waits > 0 => {
                waits -= 1;
                tokio::time::sleep(retry_after).await;
            }
            settled => return settled,
        }
    }
}

/// Creates the client of the configured language model, if there is one, without calling it.
pub(crate) fn language_model(config: &Config, http: &Http) -> anyhow::Result<Option<ChatClient>> {
    let (dialect, usual_base_url) = match config.llm {
        LlmKind::None => return Ok(None),
        LlmKind::Anthropic => (Dialect::Anthropic, "https://api.anthropic.com"),
        LlmKind::Openai => (Dialect::Openai, "https://api.openai.com/v1"),
    };
    let name = config.llm_model.as_deref().map(str::trim).filter(|name| !name.is_empty());
    let name = name.context("LLM is set, but LLM_MODEL is not: set it to the name of a model")?;
    let (base_url, key) = (config.llm_base_url.as_deref(), config.llm_api_key.clone());
    ensure!(base_url.is_some() || key.is_some(), "LLM is set, but LLM_API_KEY is not: set it");
    Ok(Some(ChatClient::new(http, dialect, base_url.unwrap_or(usual_base_url), key, name)))
}

impl Failure {
    pub fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Makes an activity's `metadata.error`, without its time and count.
    pub fn to_json(&self) -> Value {
        json!({ "type": self.kind, "message": self.message })
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        recordings::Error::from(error).into()
    }
}

impl From<recordings::Error> for Failure {
    fn from(error: recordings::Error) -> Self {
        Self::new("DownloadError", error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::of_flags;

    const HEARS: [&str; 2] = ["--transcribe-base-url", "http://127.0.0.1:9/v1"];

    fn processors(flags: &[&str]) -> anyhow::Result<Processors> {
        Processors::new(&of_flags(flags), &Http::new().expect("a client"))
    }

    #[test]
    fn what_is_set_says_what_can_be_processed() {
        let rules = processors(&[]).expect("rules");
        assert_eq!((rules.source_types(), rules.are_instant()), (&["text"][..], true));
        assert!(rules.in_words().contains("calls are left to others") && rules.in_words().contains("rules sum up"));
        let hearing = processors(&HEARS).expect("hearing");
        assert_eq!((hearing.source_types(), hearing.are_instant()), (&["text", "url"][..], false));
        assert!(hearing.must_hear().is_ok());
        assert_eq!(rules.must_hear().err().map(|failure| failure.kind), Some("TranscriptionError"));
    }

    #[test]
    fn a_language_model_needs_a_name_and_a_key_or_an_address() {
        for (flags, says) in [
            (&["--llm", "anthropic"][..], Some("LLM_MODEL is not")),
            (&["--llm", "anthropic", "--llm-model", " "], Some("LLM_MODEL is not")),
            (&["--llm", "openai", "--llm-model", "m"], Some("LLM_API_KEY is not")),
            (&["--llm", "openai", "--llm-model", "m", "--llm-api-key", "k"], None),
            (&["--llm", "openai", "--llm-model", "m", "--llm-base-url", "http://127.0.0.1:9"], None),
        ] {
            match (processors(flags), says) {
                (Ok(made), None) => assert!(!made.are_instant()),
                (Err(error), Some(says)) => assert!(error.to_string().contains(says), "{flags:?}: {error}"),
                (made, _) => panic!("{flags:?}: {:?}", made.map(|made| made.in_words())),
            }
        }
    }

    #[test]
    fn only_text_without_a_model_takes_no_time() {
        let text = json!({ "source_type": "text", "content": "hello" });
        let call = json!({ "source_type": "url", "content": "https://x.test/a.wav" });
        let rules = processors(&[]).expect("rules");
        assert_eq!(rules.at_once(&text).expect("at once")["summary"], "hello");
        assert_eq!((rules.at_once(&call), rules.at_once(&json!({}))), (None, None));
        let model = processors(&["--llm", "openai", "--llm-model", "m", "--llm-api-key", "k"]).expect("a model");
        assert_eq!(model.at_once(&text), None);
    }

    #[tokio::test]
    async fn what_is_neither_text_nor_recording_is_refused_by_kind() {
        let rules = processors(&[]).expect("rules");
        for (raw_data, kind) in [
            (json!({ "source_type": "url" }), "DownloadError"),
            (json!({ "source_type": "file" }), "ValidationError"),
            (json!(null), "ValidationError"),
        ] {
            let refused =
                rules.process(&Subject { r#type: "call", raw_data: &raw_data }, None).await.expect_err("refused");
            assert_eq!((refused.kind, refused.to_json()["type"].as_str()), (kind, Some(kind)), "{raw_data}");
        }
    }

    #[tokio::test]
    async fn somebody_who_asks_for_a_little_patience_gets_it_three_times() {
        let asked = std::cell::Cell::new(0);
        let wait = |retry_after| {
            asked.set(asked.get() + 1);
            std::future::ready(Err::<(), _>(Trouble::Wait { who: "the model", retry_after }))
        };
        let busy = patiently(|| wait(Duration::from_millis(1))).await;
        assert!(matches!(busy, Err(Trouble::Wait { .. })) && asked.get() == 4, "{busy:?} after {}", asked.get());
        asked.set(0);
        let long = patiently(|| wait(MOST_WAIT + Duration::from_secs(1))).await;
        assert!(matches!(long, Err(Trouble::Wait { .. })) && asked.get() == 1, "who asks for long is not waited for");
    }
}
