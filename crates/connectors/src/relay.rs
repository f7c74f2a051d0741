//! The way of a desktop program to a server: one JSON-RPC message after the other is posted to `/mcp`, and its answer brought back.

use std::time::Duration;

use anyhow::Context as _;
use domain::Secret;
use reqwest::Client;
use reqwest::header::{ACCEPT, CONTENT_TYPE};

use crate::http::{USER_AGENT, install_tls, io_kind};

/// As long as the server lets a call take.
const LIMIT: Duration = Duration::from_secs(330);
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// Cheap to clone.
#[derive(Clone)]
pub struct Relay {
    client: Client,
    url: String,
    key: Secret,
}

/// The server's answer.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    /// The messages in it; none where it has nothing to say.
    pub messages: Vec<String>,
}

impl Relay {
    /// `base_url` is the server's address without `/mcp`.
    pub fn new(base_url: &str, key: Secret) -> anyhow::Result<Self> {
        install_tls();
        let client = Client::builder()
            .user_agent(USER_AGENT)
            .connect_timeout(Duration::from_secs(10))
            .timeout(LIMIT)
            .redirect(reqwest::redirect::Policy::none()) // the key is for this server
            .build()
            .context("the HTTP client could not be made")?;
        Ok(Self { client, url: format!("{}/mcp", base_url.trim_end_matches('/')), key })
    }

    /// Posts a message. An error tells the kind of failure alone.
    pub async fn send(&self, headers: &[(&'static str, String)], message: String) -> Result<Reply, String> {
        let mut request = self.client.post(&self.url).bearer_auth(self.key.reveal());
        request =
            request.header(CONTENT_TYPE, "application/json").header(ACCEPT, "application/json, text/event-stream");
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let in_words = |error: reqwest::Error| match error.is_timeout() {
            true => "it did not answer in time".to_owned(),
            false => format!("it could not be reached{}", io_kind(&error)),
        };
        let mut answer = request.body(message).send().await.map_err(in_words)?;
        let status = answer.status().as_u16();
        let content_type = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let is_stream = content_type.starts_with("text/event-stream");
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(in_words)? {
            if body.len() + piece.len() > MOST_BYTES {
                return Err("its answer is too large".into());
            }
            body.extend_from_slice(&piece);
        }
        let text = String::from_utf8(body).map_err(|_| "its answer is no text".to_owned())?;
        let messages = if is_stream { events(&text) } else { vec![text] };
        Ok(Reply { status, messages: messages.into_iter().filter(|message| !message.trim().is_empty()).collect() })
    }
}

/// The data of the events of a stream that has ended.
fn events(stream: &str) -> Vec<String> {
    let stream = stream.replace("\r\n", "\n");
    let data = |event: &str| {
        let lines = event.lines().filter_map(|line| line.strip_prefix("data:"));
        lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
    };
    stream.split("\n\n").map(data).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_its_messages() {
        let stream = ": alive\n\nid: 0\ndata: {\"a\":\ndata: 1}\n\nevent: message\r\ndata:{}\r\n\r\n";
        assert_eq!(events(stream), ["", "{\"a\":\n1}", "{}", ""]);
    }
}
