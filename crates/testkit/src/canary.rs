//! A server that no request should reach. It counts those that do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

pub struct Canary {
    pub port: u16,
    visits: Arc<AtomicU32>,
}

impl Canary {
    /// Listens on every address of this machine.
    pub async fn start() -> Self {
        // An IPv6 socket takes IPv4 connections too; without IPv6 there is only the other one.
        match TcpListener::bind("[::]:0").await {
            Ok(listener) => Self::on(listener),
            Err(_) => Self::on(TcpListener::bind("0.0.0.0:0").await.expect("a port")),
        }
    }

    /// Listens on 127.0.0.1 at this port, which another program may have on another address.
    pub async fn start_at(port: u16) -> Self {
        Self::on(TcpListener::bind(("127.0.0.1", port)).await.expect("the port"))
    }

    fn on(listener: TcpListener) -> Self {
        let port = listener.local_addr().expect("an address").port();
        let visits = Arc::new(AtomicU32::new(0));
        let counting = visits.clone();
        tokio::spawn(async move {
            while let Ok((mut visitor, _)) = listener.accept().await {
                counting.fetch_add(1, SeqCst);
                let _ = visitor.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
            }
        });
        Self { port, visits }
    }

    pub fn visits(&self) -> u32 {
        self.visits.load(SeqCst)
    }
}
