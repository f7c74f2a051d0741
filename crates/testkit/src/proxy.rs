//! A TCP proxy in this process that fails on demand: what a network does to a database connection, without touching the network.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub struct Proxy {
    pub port: u16,
    state: Arc<State>,
}

struct State {
    target: SocketAddr,
    /// The delay of every chunk, both ways.
    delay_ms: AtomicU64,
    /// The number of further COMMITs that reach the server but whose answer does not reach the client.
    lost_commits: AtomicU32,
    /// The number of answers lost so far.
    commits_lost: AtomicU32,
    /// While true nothing passes and nothing closes.
    black_hole: watch::Sender<bool>,
    /// Counts up to reset every open connection.
    resets: watch::Sender<u32>,
    /// Counts up to forget every open connection.
    forgets: watch::Sender<u32>,
}

impl Proxy {
    pub async fn start(target_port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let state = Arc::new(State {
            target: ([127, 0, 0, 1], target_port).into(),
            delay_ms: 0.into(),
            lost_commits: 0.into(),
            commits_lost: 0.into(),
            black_hole: watch::Sender::new(false),
            resets: watch::Sender::new(0),
            forgets: watch::Sender::new(0),
        });
        let accepting = state.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, accepting.clone()));
            }
        });
        Self { port, state }
    }

    pub fn delay(&self, each_way: Duration) {
        self.state.delay_ms.store(u64::try_from(each_way.as_millis()).unwrap_or(0), SeqCst);
    }

    /// Resets every connection that is open now.
    pub fn reset_all(&self) {
        self.state.resets.send_modify(|n| *n += 1);
    }

    /// Carries nothing more on any connection that is open now, for good, and tells neither side. New ones are carried: as after a
    /// fail-over, or behind a NAT that has forgotten.
    pub fn forget_all(&self) {
        self.state.forgets.send_modify(|n| *n += 1);
    }

    /// While true nothing passes either way, and neither side is told.
    pub fn black_hole(&self, on: bool) {
        self.state.black_hole.send_replace(on);
    }

    /// The next `n` COMMITs are carried out, but their answers are lost with their connections.
    pub fn lose_commit_replies(&self, n: u32) {
        self.state.lost_commits.store(n, SeqCst);
    }

    pub fn commits_lost(&self) -> u32 {
        self.state.commits_lost.load(SeqCst)
    }
}

async fn carry(client: TcpStream, state: Arc<State>) {
    let Ok(server) = TcpStream::connect(state.target).await else { return };
    let (_, _) = (client.set_nodelay(true), server.set_nodelay(true));
    let mut resets = state.resets.subscribe();
    let mut forgets = state.forgets.subscribe();
    let (client_in, client_out) = client.into_split();
    let (server_in, server_out) = server.into_split();
    let (losing, lost) = watch::channel(false);
    // Pinned here, because they own the sockets: those of a forgotten connection stay open.
    let up = pump(client_in, server_out, &state, Some(losing));
    let down = pump_back(server_in, client_out, &state, lost);
    tokio::pin!(up, down);
    tokio::select! {
        () = &mut up => {}
        () = &mut down => {}
        _ = resets.changed() => {}
        _ = forgets.changed() => {
            let _ = resets.changed().await;
        }
    }
    // Both halves drop here. The sockets close with unread data, so the kernel sends a reset.
}

async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, state: &State, losing: Option<watch::Sender<bool>>) {
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let Ok(n @ 1..) = from.read(&mut chunk).await else { return };
        pass(state).await;
        let is_commit = chunk[..n].windows(6).any(|window| window == b"COMMIT");
        if let Some(losing) = losing.as_ref().filter(|_| is_commit) {
            let taken = state.lost_commits.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1));
            if taken.is_ok() {
                losing.send_replace(true);
            }
        }
        if to.write_all(&chunk[..n]).await.is_err() {
            return;
        }
    }
}

async fn pump_back(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, state: &State, lost: watch::Receiver<bool>) {
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let Ok(n @ 1..) = from.read(&mut chunk).await else { return };
        if *lost.borrow() {
            state.commits_lost.fetch_add(1, SeqCst);
            return; // the server has answered, so it has committed; the client never hears of it
        }
        pass(state).await;
        if to.write_all(&chunk[..n]).await.is_err() {
            return;
        }
    }
}

async fn pass(state: &State) {
    let mut hole = state.black_hole.subscribe();
    let _ = hole.wait_for(|on| !on).await;
    let delay_ms = state.delay_ms.load(SeqCst);
    if delay_ms > 0 {
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
    }
}
