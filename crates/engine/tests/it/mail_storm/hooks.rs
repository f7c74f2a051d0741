//! The address to which the fakes post: what the web server does with a notice, without its routes.

use std::sync::Arc;

use engine::Env;
use engine::mail::notices::{Notices, Refused};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// An address that nobody listens at yet.
pub struct Address(TcpListener);

impl Address {
    pub async fn new() -> Self {
        Self(TcpListener::bind(("127.0.0.1", 0)).await.expect("a port"))
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.0.local_addr().expect("an address"))
    }

    pub fn listen(self, env: &Env) -> Hooks {
        let notices = Notices::new(env.clone());
        let writing = tokio::spawn(notices.clone().write());
        let notices = Arc::new(notices);
        let listening = tokio::spawn(async move {
            while let Ok((client, _)) = self.0.accept().await {
                let notices = notices.clone();
                tokio::spawn(async move { answer(&notices, client).await });
            }
        });
        Hooks { tasks: [writing, listening] }
    }
}

/// Takes notices until dropped.
pub struct Hooks {
    tasks: [JoinHandle<()>; 2],
}

impl Drop for Hooks {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

struct Posted {
    hook: String,
    query: Vec<(String, String)>,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Posted {
    fn get(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Answers one post. Then the connection is closed.
async fn answer(notices: &Notices, mut client: TcpStream) -> Option<()> {
    let posted = read(&mut client).await?;
    let (status, text) = match taken(notices, &posted).await {
        Ok(text) => (200, text),
        Err(Refused::Closed) => (404, String::new()),
        Err(Refused::Unproved(_)) => (403, String::new()),
        Err(Refused::Malformed(_)) => (400, String::new()),
        Err(Refused::Full | Refused::Away(_)) => (503, String::new()),
    };
    let head = format!(
        "HTTP/1.1 {status} Answer\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        text.len()
    );
    client.write_all((head + &text).as_bytes()).await.ok()?;
    client.shutdown().await.ok()
}

async fn taken(notices: &Notices, posted: &Posted) -> Result<String, Refused> {
    let hook = notices.hook(&posted.hook).ok_or(Refused::Closed)?;
    if let Some(echo) = notices.echo(hook, posted.get("validationToken")) {
        return echo;
    }
    notices.admit(hook, &posted.headers, posted.get("token")).await?;
    notices.receive(hook, &posted.body).await?;
    Ok(String::new())
}

async fn read(client: &mut TcpStream) -> Option<Posted> {
    let mut received = Vec::new();
    let head_bytes = loop {
        if let Some(end) = received.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break end + 4;
        }
        client.read_buf(&mut received).await.ok().filter(|n| *n > 0)?;
    };
    let mut body = received.split_off(head_bytes);
    let head = String::from_utf8(received).ok()?;
    let headers: HeaderMap = head
        .lines()
        .filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            let name: HeaderName = name.to_ascii_lowercase().parse().ok()?;
            Some((name, HeaderValue::from_str(value.trim()).ok()?))
        })
        .collect();
    let n_body: usize = headers.get("content-length").map_or(Some(0), |length| length.to_str().ok()?.parse().ok())?;
    while body.len() < n_body {
        client.read_buf(&mut body).await.ok().filter(|n| *n > 0)?;
    }
    let target = head.split_whitespace().nth(1)?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let plain = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let pair = |pair: &str| pair.split_once('=').map(|(name, value)| (plain(name), plain(value)));
    let query = query.split('&').filter_map(pair).collect();
    Some(Posted { hook: path.strip_prefix("/webhooks/")?.to_owned(), query, headers, body })
}
