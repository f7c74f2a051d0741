//! Posts to a subscriber, as providers do that tell of changes. Plain HTTP alone: whoever listens is on this machine.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

const ANSWER_BYTES: usize = 64 * 1024;

/// A subscriber's answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: u16,
    pub content_type: String,
    pub body: String,
}

/// Posts a body. None: nobody answered within this time.
pub(crate) async fn post(url: &str, content_type: &str, body: &str, within: Duration) -> Option<Answer> {
    let (host, path) = url.strip_prefix("http://")?.split_once('/')?;
    let port = if host.contains(':') { "" } else { ":80" };
    let request = format!(
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: {content_type}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let answered = timeout(within, async {
        let mut stream = TcpStream::connect(format!("{host}{port}")).await.ok()?;
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut bytes = Vec::new();
        loop {
            let n_read = stream.read_buf(&mut bytes).await.ok()?;
            if n_read == 0 || bytes.len() > ANSWER_BYTES || is_whole(&bytes) {
                return Some(bytes);
            }
        }
    });
    read(&answered.await.ok()??)
}

/// Whether the body has the length that the head tells.
fn is_whole(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    field(head, "content-length")
        .and_then(|length| length.parse().ok())
        .is_some_and(|length: usize| body.len() >= length)
}

fn field(head: &str, wanted: &str) -> Option<String> {
    let pair =
        |line: &str| line.split_once(':').map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()));
    head.lines().filter_map(pair).find(|(name, _)| name == wanted).map(|(_, value)| value)
}

fn read(bytes: &[u8]) -> Option<Answer> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split_whitespace().nth(1)?.parse().ok()?;
    let content_type = field(head, "content-type").unwrap_or_default();
    Some(Answer { status, content_type, body: body.to_owned() })
}
