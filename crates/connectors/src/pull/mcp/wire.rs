//! HTTP under MCP. rmcp knows the protocol of both eras; the transport is ours, so that the bearer stays with us, an answer is bounded, a
//! refusal keeps its meaning, and no server's words get into a log.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use domain::Secret;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, ProtocolVersion, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use sse_stream::{Sse, SseStream};

use super::answer::{unreadable, who};
use crate::Http;
use crate::http::{io_kind, retry_after};
use crate::pull::PullError;
use crate::pull::spec::Provider;

/// The time limit of one call, unless a test sets a shorter one.
pub(super) const DEADLINE: Duration = Duration::from_secs(60);
const ANSWER_MAX_BYTES: usize = 32 << 20;
/// The time that an unknown server has to show whether it is a modern one. rmcp itself goes on after ten seconds, but its transport still
/// waits for the answer then: it has to have one before that.
pub(super) const SILENCE: Duration = Duration::from_secs(9);
/// The wait for a server that asks us to wait and does not say how long.
const WAIT: Duration = Duration::from_secs(10);
const WAIT_MAX: Duration = Duration::from_secs(86_400);
const SESSION_ID: &str = "mcp-session-id";
const LAST_EVENT_ID: &str = "last-event-id";

type Answered = Result<StreamableHttpPostResponse, StreamableHttpError<Quiet>>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// The reason why there is no answer. rmcp logs errors as they print, so this one prints words of ours alone.
#[derive(thiserror::Error)]
#[error("{0}")]
pub(super) struct Quiet(pub PullError);

impl std::fmt::Debug for Quiet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl From<PullError> for StreamableHttpError<Quiet> {
    fn from(error: PullError) -> Self {
        Self::Client(Quiet(error))
    }
}

/// The reason why a stream ended early. rmcp says only that it did.
#[derive(Clone, Default)]
pub(super) struct LastWords(Arc<Mutex<Option<PullError>>>);

impl LastWords {
    pub fn say(&self, error: PullError) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    pub fn take(&self) -> Option<PullError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[derive(Clone)]
pub(super) struct Wire {
    pub http: Http,
    pub provider: Provider,
    pub token: Secret,
    /// The time limit of one call, including its answer.
    pub deadline: Duration,
    /// The server's era is not known: a silence of so long means the old one.
    pub probe_for: Option<Duration>,
    pub last_words: LastWords,
}

impl StreamableHttpClient for Wire {
    type Error = Quiet;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Answered {
        let Some((id, patience)) = self.probe(&message) else {
            return self.post(uri, message, session_id, headers).await;
        };
        let asked = async { self.post(uri, message, session_id, headers).await?.expect_initialized().await };
        match tokio::time::timeout(patience, asked).await {
            Ok(Ok((answer, _))) if speaks_older_alone(&answer) => Ok(not_modern(id, "it speaks older versions")),
            Ok(answered) => answered.map(|(answer, session_id)| StreamableHttpPostResponse::Json(answer, session_id)),
            Err(_) => {
                self.last_words.say(PullError::Passing(format!("{} did not answer in time", who(self.provider))));
                Ok(not_modern(id, "no answer"))
            }
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), StreamableHttpError<Quiet>> {
        let request = self.request(Method::DELETE, &uri, Some(session_id), headers);
        // The answer does not matter: a server may refuse to end its sessions.
        request.send().await.map(|_| ()).map_err(|error| self.broke(&error).into())
    }

    /// Resumes an answer that a server broke off on purpose. The stream of the server's own messages is not wanted.
    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, StreamableHttpError<Quiet>> {
        let Some(last_event_id) = last_event_id else { return Err(StreamableHttpError::ServerDoesNotSupportSse) };
        let request = self.request(Method::GET, &uri, session_id, headers).header(LAST_EVENT_ID, last_event_id);
        let answer = request.send().await.map_err(|error| self.broke(&error))?;
        if answer.status().is_success() && is(&answer, "text/event-stream") {
            return Ok(self.events(answer));
        }
        Err(StreamableHttpError::ServerDoesNotSupportSse)
    }
}

impl Wire {
    /// The request that asks whether the server is modern, while that is not known, and how long the answer may take.
    fn probe(&self, message: &ClientJsonRpcMessage) -> Option<(RequestId, Duration)> {
        match message {
            ClientJsonRpcMessage::Request(asked) if matches!(asked.request, ClientRequest::DiscoverRequest(_)) => {
                self.probe_for.map(|patience| (asked.id.clone(), patience))
            }
            _ => None,
        }
    }

    fn request(
        &self,
        method: Method,
        url: &str,
        session_id: Option<Arc<str>>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> RequestBuilder {
        let headers: HeaderMap = headers.into_iter().collect();
        let request = self
            .http
            .client()
            .request(method, url)
            .timeout(self.deadline)
            .headers(headers)
            .header(ACCEPT, "application/json, text/event-stream")
            .bearer_auth(self.token.reveal());
        match session_id {
            Some(session_id) => request.header(SESSION_ID, session_id.as_ref()),
            None => request,
        }
    }

    async fn post(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Answered {
        let (probe, has_session) = (self.probe(&message), session_id.is_some());
        let request = self.request(Method::POST, &uri, session_id, headers).json(&message);
        let answer = request.send().await.map_err(|error| self.broke(&error))?;
        let status = answer.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        if let Some(refusal) = self.refusal(&answer) {
            return Err(refusal.into());
        }
        let session_id = answer.headers().get(SESSION_ID).and_then(|id| id.to_str().ok()).map(str::to_owned);
        if status.is_success() && is(&answer, "text/event-stream") {
            return Ok(StreamableHttpPostResponse::Sse(self.events(answer), session_id));
        }

        let body = self.read(answer).await?;
        let id = match &message {
            ClientJsonRpcMessage::Request(asked) => Some(asked.id.clone()),
            _ => None,
        };
        match (serde_json::from_slice(&body), id) {
            // This answers our request, also where the server could not read its id.
            (Ok(ServerJsonRpcMessage::Error(error)), Some(id)) => {
                let answer = ServerJsonRpcMessage::error(error.error, Some(id));
                Ok(StreamableHttpPostResponse::Json(answer, session_id))
            }
            (Ok(answer), _) if status.is_success() => Ok(StreamableHttpPostResponse::Json(answer, session_id)),
            // A notification needs no answer.
            (Err(_), None) if status.is_success() => Ok(StreamableHttpPostResponse::Accepted),
            _ => match probe {
                Some((id, _)) if status.is_client_error() => Ok(not_modern(id, "refused")),
                _ if status.is_server_error() => {
                    Err(PullError::Passing(format!("{} answered {}", who(self.provider), status.as_u16())).into())
                }
                _ => {
                    let what = format!("answered {} and no MCP", status.as_u16());
                    Err(unreadable(self.provider, &what, &String::from_utf8_lossy(&body)).into())
                }
            },
        }
    }

    /// The refusal that a status alone means.
    fn refusal(&self, answer: &Response) -> Option<PullError> {
        let who = who(self.provider);
        let retry_after = retry_after(answer.headers(), WAIT, WAIT_MAX);
        match answer.status() {
            StatusCode::UNAUTHORIZED => Some(PullError::Unauthorized { who }),
            StatusCode::FORBIDDEN => {
                let challenge = answer.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
                let lacks_scope = challenge.is_some_and(|challenge| challenge.contains("insufficient_scope"));
                let code = if lacks_scope { "insufficient_scope" } else { "http_403" };
                Some(PullError::Forbidden { who, code: code.to_owned() })
            }
            StatusCode::TOO_MANY_REQUESTS => {
                Some(PullError::RateLimited { who, retry_after: retry_after.unwrap_or(WAIT) })
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                retry_after.map(|retry_after| PullError::RateLimited { who, retry_after })
            }
            _ => None,
        }
    }

    async fn read(&self, mut answer: Response) -> Result<Vec<u8>, PullError> {
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(|error| self.broke(&error))? {
            if body.len() + piece.len() > ANSWER_MAX_BYTES {
                return Err(self.too_large());
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    fn events(&self, answer: Response) -> Events {
        let (wire, mut bytes) = (self.clone(), 0);
        let pieces = answer.bytes_stream().map(move |piece| {
            let piece: Bytes = piece.map_err(|error| wire.ended(wire.broke(&error)))?;
            bytes += piece.len();
            if bytes > ANSWER_MAX_BYTES { Err(wire.ended(wire.too_large())) } else { Ok(piece) }
        });
        SseStream::from_bytes_stream(pieces).map_ok(without_notices).boxed()
    }

    fn ended(&self, error: PullError) -> Quiet {
        self.last_words.say(error);
        Quiet(PullError::Passing("the stream ended".to_owned()))
    }

    fn too_large(&self) -> PullError {
        unreadable(self.provider, &format!("gave an answer of more than {ANSWER_MAX_BYTES} bytes"), "")
    }

    /// Describes a broken connection without naming an address.
    fn broke(&self, error: &reqwest::Error) -> PullError {
        let (who, kind) = (who(self.provider), io_kind(error));
        if error.is_builder() {
            // The address was checked before, so the token does not fit into a header.
            return PullError::Unauthorized { who };
        }
        PullError::Passing(if error.is_timeout() {
            format!("{who} did not answer in time")
        } else if error.is_connect() {
            format!("{who} could not be reached{kind}")
        } else {
            format!("the connection to {who} broke{kind}")
        })
    }
}

fn is(answer: &Response, kind: &str) -> bool {
    let given = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    given.is_some_and(|given| given.starts_with(kind))
}

/// Whether a server names the versions that it speaks, and our modern one is not among them. rmcp would give up there.
fn speaks_older_alone(answer: &ServerJsonRpcMessage) -> bool {
    let ServerJsonRpcMessage::Error(error) = answer else { return false };
    let supported = error.error.data.as_ref().and_then(|data| data.get("supported")?.as_array());
    error.error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
        && supported.is_some_and(|known| known.iter().all(|version| version != ProtocolVersion::V_2026_07_28.as_str()))
}

/// The answer of a server of the old era to the question whether it is modern.
fn not_modern(id: RequestId, why: &'static str) -> StreamableHttpPostResponse {
    StreamableHttpPostResponse::Json(ServerJsonRpcMessage::error(ErrorData::invalid_request(why, None), Some(id)), None)
}

/// Drops progress and log messages: nobody reads them, and rmcp would write them into our log.
fn without_notices(mut event: Sse) -> Sse {
    #[derive(Deserialize)]
    struct Head {
        id: Option<IgnoredAny>,
        method: Option<IgnoredAny>,
    }
    let head = event.data.as_deref().and_then(|data| serde_json::from_str::<Head>(data).ok());
    if head.is_some_and(|head| head.method.is_some() && head.id.is_none()) {
        event.data = None;
    }
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_are_left_out_of_a_stream_and_nothing_else_is() {
        for (data, expected) in [
            (r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"Nora"}}"#, false),
            (r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#, true),
            (r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#, true),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}"#, true),
            ("no JSON", true),
        ] {
            let event = without_notices(Sse::default().id("3").data(data));
            assert_eq!(event.data.is_some(), expected, "{data}");
            assert_eq!(event.id.as_deref(), Some("3"), "the place in the stream is kept");
        }
    }

    #[test]
    fn an_error_prints_nothing_that_a_server_said() {
        let quiet = Quiet(PullError::Unreadable { what: "it answered 418".into(), raw: "canary-7f3a".into() });
        let error = StreamableHttpError::Client(quiet);
        let printed = format!("{error} {error:?}");
        assert!(!printed.contains("canary"), "{printed}");
    }
}
