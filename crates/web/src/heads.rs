//! Reads the heads of requests off the socket and looks for one with two lengths. hyper uses the chunks and drops the length. A proxy in
//! front of us may have used the length, and then part of this request would look like the next one to us (smuggling).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The part of a line that is kept.
const LINE_BYTES: usize = 64;

/// A connection whose request heads are read.
pub(crate) struct Watched<S> {
    stream: S,
    heads: Heads,
}

/// Whether a request on this connection had two lengths.
#[derive(Clone, Default)]
pub(crate) struct Doubt(Arc<AtomicBool>);

impl Doubt {
    pub fn is_raised(&self) -> bool {
        self.0.load(Relaxed)
    }
}

impl<S> Watched<S> {
    pub fn new(stream: S) -> (Self, Doubt) {
        let heads = Heads::default();
        let doubt = heads.doubt.clone();
        (Self { stream, heads }, doubt)
    }
}

#[derive(Default)]
struct Heads {
    at: At,
    line: Vec<u8>,
    has_line: bool,
    length: Option<u64>,
    is_chunked: bool,
    is_upgrade: bool,
    doubt: Doubt,
}

#[derive(Default)]
enum At {
    #[default]
    Head,
    /// This many bytes of a body are still to come.
    Body(u64),
    /// Nothing more is read: after chunks the connection ends, and after an upgrade it ends or speaks another protocol.
    Passed,
}

impl Heads {
    fn see(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.at {
                At::Passed => return,
                At::Body(left) => {
                    let skipped = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    bytes = &bytes[skipped..];
                    self.at = if left == skipped as u64 { At::Head } else { At::Body(left - skipped as u64) };
                }
                At::Head => {
                    let end = bytes.iter().position(|byte| *byte == b'\n');
                    let line = &bytes[..end.unwrap_or(bytes.len())];
                    self.line.extend_from_slice(&line[..line.len().min(LINE_BYTES.saturating_sub(self.line.len()))]);
                    bytes = end.map_or(&[], |end| &bytes[end + 1..]);
                    if end.is_some() {
                        self.end_line();
                    }
                }
            }
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        if !line.is_empty() {
            self.has_line = true;
            let value = |name: &[u8]| {
                let (given, rest) = line.split_at_checked(name.len())?;
                given.eq_ignore_ascii_case(name).then_some(rest)
            };
            if let Some(length) = value(b"content-length:") {
                let length = std::str::from_utf8(length).ok().and_then(|text| text.trim().parse().ok());
                if length.is_none() {
                    self.doubt.0.store(true, Relaxed); // not a number, or too many spaces before it
                }
                self.length = Some(length.unwrap_or(0));
            }
            self.is_chunked |= value(b"transfer-encoding:").is_some();
            self.is_upgrade |= value(b"upgrade:").is_some();
        } else if self.has_line {
            self.end_head();
        } // else an empty line before a request, which hyper skips too
    }

    fn end_head(&mut self) {
        if self.is_chunked && self.length.is_some() {
            self.doubt.0.store(true, Relaxed);
        }
        self.at = match self.length {
            _ if self.is_chunked || self.is_upgrade => At::Passed,
            Some(length) if length > 0 => At::Body(length),
            _ => At::Head,
        };
        (self.has_line, self.length) = (false, None);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.heads.see(&buf.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_beside_chunks_raises_a_doubt_wherever_it_stands() {
        let plain =
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\n\r\nContent-Length: 1\r\nTransfer-Encoding: x\r\n\r\n";
        let get = "\r\nGET / HTTP/1.1\nHost: x\n\n";
        let both = "POST / HTTP/1.1\r\ntransfer-ENCODING:chunked\r\nContent-Length: 3\r\n\r\n";
        let chunks = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(500));
        for (requests, is_doubtful) in [
            (vec![plain, get, plain], false),
            (vec![both], true),
            (vec![plain, get, &long, both], true),
            (vec![chunks, both], false), // after chunks the connection ends
            (vec!["GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n", both], false), // after that it ends, or is not HTTP
            (vec!["POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n"], true),
            (vec![&format!("POST / HTTP/1.1\r\nContent-Length:{}7\r\n\r\n", " ".repeat(80))], true),
        ] {
            let all = requests.concat();
            for size in [1, 3, 16, 10_000] {
                let mut heads = Heads::default();
                all.as_bytes().chunks(size).for_each(|piece| heads.see(piece));
                assert_eq!(heads.doubt.is_raised(), is_doubtful, "{all} in pieces of {size}");
            }
        }
    }
}
