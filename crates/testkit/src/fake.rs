//! The shared part of the fake services: a listener that can go away, one request per connection, and a script of how to behave.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A fake service on this machine.
pub(crate) trait Serve: Send + Sync + 'static {
    /// Answers one request. Then the connection is closed.
    fn serve(&self, asked: Asked, client: TcpStream) -> impl Future<Output = Option<()>> + Send;
}

/// The address of the service while it listens.
pub(crate) struct Host {
    pub address: SocketAddr,
    is_wanted: watch::Sender<bool>,
    is_listening: watch::Receiver<bool>,
}

impl Host {
    pub async fn start(ip: impl Into<IpAddr>, service: Arc<impl Serve>) -> Self {
        let listener = TcpListener::bind((ip.into(), 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (is_wanted, wanted) = watch::channel(true);
        let (listening, is_listening) = watch::channel(true);
        tokio::spawn(listen(listener, service, wanted, listening));
        Self { address, is_wanted, is_listening }
    }

    /// While the service is away, it refuses connections.
    pub async fn go_away(&self) {
        self.is_wanted.send_replace(false);
        let _ = self.is_listening.clone().wait_for(|on| !on).await;
    }

    pub async fn come_back(&self) {
        self.is_wanted.send_replace(true);
        let _ = self.is_listening.clone().wait_for(|on| *on).await;
    }
}

async fn listen(
    mut listener: TcpListener,
    service: Arc<impl Serve>,
    mut wanted: watch::Receiver<bool>,
    listening: watch::Sender<bool>,
) {
    let address: SocketAddr = listener.local_addr().expect("an address");
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => Some(accepted),
            away = wanted.wait_for(|on| !on) => match away {
                Ok(_) => None,
                Err(_) => return, // the test is over
            },
        };
        match accepted {
            Some(Ok((mut client, _))) => {
                let service = service.clone();
                tokio::spawn(async move {
                    let asked = Asked::read(&mut client).await?;
                    service.serve(asked, client).await
                });
            }
            Some(Err(_)) => {}
            None => {
                drop(listener);
                listening.send_replace(false);
                if wanted.wait_for(|on| *on).await.is_err() {
                    return; // the test is over
                }
                listener = TcpListener::bind(address).await.expect("its port again");
                listening.send_replace(true);
            }
        }
    }
}

/// A received request.
pub(crate) struct Asked {
    head: String,
    pub body: Vec<u8>,
}

impl Asked {
    async fn read(client: &mut TcpStream) -> Option<Self> {
        let mut received = Vec::new();
        let head_bytes = loop {
            if let Some(end) = received.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end + 4;
            }
            client.read_buf(&mut received).await.ok().filter(|n| *n > 0)?;
        };
        let body = received.split_off(head_bytes);
        let mut asked = Self { head: String::from_utf8_lossy(&received).into_owned(), body };
        let body_bytes: usize = asked.header("content-length").map_or(Some(0), |bytes| bytes.parse().ok())?;
        while asked.body.len() < body_bytes {
            client.read_buf(&mut asked.body).await.ok().filter(|n| *n > 0)?;
        }
        Some(asked)
    }

    /// Method and path, such as `GET /a`.
    pub fn line(&self) -> &str {
        self.head.split(" HTTP/").next().unwrap_or_default()
    }

    pub fn header(&self, name: &str) -> Option<String> {
        let of_line = |line: &str| {
            line.split_once(": ").filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
        };
        self.head.lines().find_map(of_line)
    }
}

/// Answers and closes the connection. `headers` are lines that each end in `\r\n`.
pub(crate) async fn answer(client: &mut TcpStream, status: u16, headers: &str, body: &[u8]) -> Option<()> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status} Answer\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n");
    client.write_all(&[head.as_bytes(), body].concat()).await.ok()?;
    client.shutdown().await.ok()
}

/// Answers with more bytes than a client should read.
pub(crate) async fn pour(client: &mut TcpStream, content_type: &str) -> Option<()> {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n");
    client.write_all(head.as_bytes()).await.ok()?;
    loop {
        client.write_all(&[b' '; 64 * 1024]).await.ok()?;
    }
}

/// The manner of each of the next requests, and of all later ones.
pub(crate) struct Script<M>(Mutex<(M, Vec<M>)>);

impl<M: Clone> Script<M> {
    pub fn new(manner: M) -> Self {
        Self(Mutex::new((manner, Vec::new())))
    }

    pub fn set(&self, manner: M) {
        *lock(&self.0) = (manner, Vec::new());
    }

    /// Sets how the next requests are answered, one each; then it goes on as before.
    pub fn set_next(&self, manners: &[M]) {
        lock(&self.0).1 = manners.iter().rev().cloned().collect();
    }

    pub fn take(&self) -> M {
        let mut script = lock(&self.0);
        script.1.pop().unwrap_or_else(|| script.0.clone())
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
