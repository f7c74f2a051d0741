//! A minimal HTTP client: one connection and one request at a time, so that mostly the server is measured.

use std::net::SocketAddr;

use anyhow::{Context as _, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

pub struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

pub struct HttpAnswer<'a> {
    pub status: u16,
    pub body: &'a [u8],
}

impl Client {
    pub async fn connect(to: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(16 * 1024) })
    }

    /// Sends a whole request, head and body, and reads its answer. The connection is kept.
    pub async fn ask(&mut self, request: &[u8]) -> anyhow::Result<HttpAnswer<'_>> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let (head, status, length) = loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                bail!("the server closed the connection");
            }
            if let Some(end) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = std::str::from_utf8(&self.buffer[..end]).context("a head that is no text")?;
                let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).context("no status")?;
                let length: Option<usize> = head.lines().find_map(|line| {
                    let (name, value) = line.split_once(':')?;
                    if name.eq_ignore_ascii_case("content-length") { value.trim().parse().ok() } else { None }
                });
                break (end + 4, status, length.context("an answer without a length")?);
            }
        };
        let end = head + length;
        while self.buffer.len() < end {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                bail!("the server closed the connection within an answer");
            }
        }
        Ok(HttpAnswer { status, body: &self.buffer[head..end] })
    }
}
