//! Transcribes recordings with any service that has OpenAI's `POST {base}/audio/transcriptions`.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use domain::Secret;
use futures_util::stream::{self, Stream, StreamExt as _};
use reqwest::Body;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE};
use serde::Deserialize;
use uuid::Uuid;

use super::{Service, Settings, Trouble};
use crate::Http;

pub struct TranscribeClient {
    service: Service,
    model: String,
}

/// A transcript, and what else the service reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Transcript {
    pub text: String,
    pub language: Option<String>,
    pub seconds: Option<f64>,
}

impl TranscribeClient {
    pub fn new(http: &Http, base_url: &str, key: Option<Secret>, model: &str) -> Self {
        let settings = Settings {
            who: "the transcriber",
            base_url: "TRANSCRIBE_BASE_URL",
            api_key: "TRANSCRIBE_API_KEY",
            model: "TRANSCRIBE_MODEL",
            answer_within: Duration::from_secs(30 * 60), // a long call takes long to transcribe
            answer_max_bytes: 8 * 1024 * 1024,
        };
        let service = Service::new(http, base_url, "/audio/transcriptions", key, settings);
        Self { service, model: model.to_owned() }
    }

    /// Sends a recording of `bytes` bytes while it is read, again for every try; it is never in memory as a whole. Services recognise the
    /// format by the file extension.
    pub async fn transcribe<S>(
        &self,
        name: &str,
        content_type: &str,
        bytes: u64,
        pieces: impl Fn() -> S,
    ) -> Result<Transcript, Trouble>
    where
        S: Stream<Item = io::Result<Bytes>> + Send + 'static,
    {
        let form = Form::new(&self.model, name, content_type);
        let body = self.service.ask(|request| {
            let bytes = form.head.len() as u64 + bytes + form.tail.len() as u64;
            let request = self.service.with_bearer(request).header(CONTENT_TYPE, &form.content_type);
            request.header(CONTENT_LENGTH, bytes).body(Body::wrap_stream(form.around(pieces())))
        });
        checked(&body.await?)
    }
}

/// A `multipart/form-data` body with one file.
struct Form {
    content_type: String,
    head: Bytes,
    tail: Bytes,
}

impl Form {
    fn new(model: &str, name: &str, content_type: &str) -> Self {
        let edge = format!("tributary-{}", Uuid::new_v4().simple());
        let field = |name: &str, value: &str| {
            format!("--{edge}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        };
        let plain = |text: &str, more: &str| -> String {
            text.chars().filter(|c| c.is_ascii_alphanumeric() || more.contains(*c)).collect()
        };
        let (name, kind) = (plain(name, "._-"), plain(content_type, "/.+-"));
        let fields = field("model", model) + &field("response_format", "json");
        let file = format!(
            "--{edge}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\nContent-Type: {kind}\r\n\r\n"
        );
        Self {
            content_type: format!("multipart/form-data; boundary={edge}"),
            head: (fields + &file).into(),
            tail: format!("\r\n--{edge}--\r\n").into(),
        }
    }

    fn around<S>(&self, content: S) -> impl Stream<Item = io::Result<Bytes>> + Send + use<S>
    where
        S: Stream<Item = io::Result<Bytes>> + Send + 'static,
    {
        let [head, tail] = [&self.head, &self.tail].map(|part| stream::iter([Ok(part.clone())]));
        head.chain(content).chain(tail)
    }
}

fn checked(body: &[u8]) -> Result<Transcript, Trouble> {
    #[derive(Deserialize)]
    struct TranscriptAnswer {
        text: String,
        language: Option<String>,
        duration: Option<f64>,
        usage: Option<Usage>,
    }
    /// The duration, from services that bill by time.
    #[derive(Deserialize)]
    struct Usage {
        seconds: Option<f64>,
    }
    let Ok(answer) = serde_json::from_slice::<TranscriptAnswer>(body) else {
        return Err(Trouble::Lasting("the transcriber gave an answer that does not parse".into()));
    };
    let seconds = answer.duration.or(answer.usage.and_then(|usage| usage.seconds));
    Ok(Transcript {
        text: answer.text,
        language: answer.language,
        seconds: seconds.filter(|seconds| seconds.is_finite() && *seconds >= 0.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_or_a_type_from_outside_cannot_end_its_header() {
        let form = Form::new("whisper-1", "a\"\r\nx: y/../b.wav", "audio/wav\r\nx: y");
        let head = String::from_utf8(form.head.to_vec()).expect("text");
        assert!(head.contains("filename=\"axy..b.wav\"\r\nContent-Type: audio/wavxy\r\n\r\n"), "{head}");
    }

    #[test]
    fn what_a_service_knows_beside_the_words_is_kept() {
        let of = |json: &str| checked(json.as_bytes()).ok();
        let heard = |language: Option<&str>, seconds| {
            Some(Transcript { text: "hello".into(), language: language.map(str::to_owned), seconds })
        };
        assert_eq!(of(r#"{"text":"hello"}"#), heard(None, None));
        assert_eq!(of(r#"{"text":"hello","language":"en","duration":3.5}"#), heard(Some("en"), Some(3.5)));
        assert_eq!(of(r#"{"text":"hello","usage":{"type":"duration","seconds":4}}"#), heard(None, Some(4.0)));
        assert_eq!(
            of(r#"{"text":"hello","usage":{"type":"tokens","input_tokens":4},"duration":-1}"#),
            heard(None, None)
        );
        assert_eq!(of(r#"{"words":"hello"}"#), None);
        assert_eq!(of("hello"), None);
    }
}
