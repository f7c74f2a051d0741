//! The accept loop. axum's own limits neither the time for a request's headers nor the number of connections.

use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::HeaderMap;
use engine::Env;
use engine::intake::network;
use engine::work::Stop;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::api::{events, router};
use crate::app::App;
use crate::caps::Hold;
use crate::heads::Watched;
use crate::realtime::feed;

/// The largest number of connections. More wait in the kernel's queue.
const MAX_CONNECTIONS: u32 = 4_096;
/// The largest number of one address. A trusted proxy has no such limit; of its requests, each caller has as many under way.
pub(crate) const MAX_OF_ADDRESS: usize = MAX_CONNECTIONS as usize / 2;
/// The time from the first byte of a request to the end of its headers, and the time for which an idle connection is kept.
const HEAD_LIMIT: Duration = Duration::from_secs(30);
const HEAD_BYTES: usize = 64 * 1024;
const TOO_MANY: &[u8] =
    b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// The other end of the connection: a proxy, or the caller itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub SocketAddr);

/// The caller's address, as far as our proxies tell it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallerAddress(pub IpAddr);

/// The permit of a connection: its own among [`MAX_CONNECTIONS`], and its hold among those of its address. A WebSocket that outlives its
/// request keeps it. Cloning shares it.
#[derive(Clone)]
pub(crate) struct ConnectionPermit {
    _permit: Arc<OwnedSemaphorePermit>,
    /// None: a trusted proxy's.
    _address: Option<Arc<Hold<IpAddr>>>,
}

impl ConnectionPermit {
    /// Gives the permit of a proxy's connection to one of its callers, for one request.
    pub fn give_to(&mut self, caller: Arc<Hold<IpAddr>>) {
        self._address = Some(caller);
    }
}

/// Returns the caller's address. Each of our proxies appends its caller to `X-Forwarded-For`; earlier entries come from the caller and
/// are not trusted.
pub(crate) fn client_address(peer: IpAddr, headers: &HeaderMap, config: &engine::Config) -> IpAddr {
    let mut address = peer;
    let said = headers
        .get_all("x-forwarded-for")
        .iter()
        .rev()
        .flat_map(|value| value.to_str().unwrap_or_default().rsplit(','));
    for hop in said {
        if !config.is_trusted_proxy(address) {
            break;
        }
        match hop.trim().parse() {
            Ok(before) => address = before,
            Err(_) => break,
        }
    }
    address
}

/// Serves until told to stop, then lets running requests finish (for up to `DRAIN_SECS`). Event streams and sockets end at once.
pub async fn serve(env: Env, listener: TcpListener, metrics: PrometheusHandle, stop: Stop) -> anyhow::Result<()> {
    let drain = Duration::from_secs(env.config.drain_secs);
    let app = App::new(env, metrics, stop.clone());
    let mut background = JoinSet::new();
    background.spawn(store::notices::relay(app.env.db.clone()));
    background.spawn(events::fill(app.clone()));
    background.spawn(feed::fill(app.clone()));
    background.spawn(tidy(app.metrics.clone()));
    background.spawn(app.intake.clone().commit());
    background.spawn(app.intake.clone().note_refusals());
    background.spawn(app.notices.clone().write());
    let calls = app.clone();
    background.spawn(async move { calls.mcp.calls.write(&calls.env).await });
    let last_calls = app.clone();
    let (config, addresses) = (app.env.config.clone(), app.addresses.clone());
    let router = router::build(app);
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS as usize));
    let mut connections = JoinSet::new();
    loop {
        let permit = tokio::select! { permit = room.clone().acquire_owned() => permit?, () = stop.stopped() => break };
        let accepted = tokio::select! { accepted = listener.accept() => accepted, () = stop.stopped() => break };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // We are out of file handles, or the client left early. Neither ends the server.
                tracing::warn!(error = ?error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        let is_proxy = config.is_trusted_proxy(peer.ip());
        let hold = if is_proxy { None } else { addresses.take(network(peer.ip()), MAX_OF_ADDRESS) };
        if hold.is_none() && !is_proxy {
            connections.spawn(refuse(stream));
            continue;
        }
        let place = ConnectionPermit { _permit: Arc::new(permit), _address: hold.map(Arc::new) };
        let (router, stop) = (router.clone(), stop.clone());
        connections.spawn(connection(stream, peer, place, router, stop));
    }
    drop(listener);
    // All permits are free again when every connection has ended, including those that became sockets.
    if tokio::time::timeout(drain, room.acquire_many(MAX_CONNECTIONS)).await.is_err() {
        let left = MAX_CONNECTIONS as usize - room.available_permits();
        tracing::warn!("{left} connections were cut: they took longer than the drain");
    }
    last_calls.mcp.calls.write_now(&last_calls.env).await;
    Ok(())
}

/// Answers a connection that is one too many of its address, and reads nothing.
async fn refuse(mut stream: TcpStream) {
    metrics::counter!("tributary_http_connections_refused_total").increment(1);
    let _ = tokio::time::timeout(Duration::from_secs(1), stream.write_all(TOO_MANY)).await;
}

/// Runs the upkeep of metrics, because observations pile up if nobody scrapes them.
async fn tidy(metrics: PrometheusHandle) {
    loop {
        tokio::time::sleep(Duration::from_secs(5)).await;
        metrics.run_upkeep();
    }
}

async fn connection(stream: TcpStream, peer: SocketAddr, place: ConnectionPermit, router: Router, stop: Stop) {
    let _ = stream.set_nodelay(true); // only slower without
    let (stream, doubt) = Watched::new(stream);
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Peer(peer));
        request.extensions_mut().insert(doubt.clone());
        request.extensions_mut().insert(place.clone());
        router.call(request)
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT).max_buf_size(HEAD_BYTES);
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), service).with_upgrades());
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = stop.stopped() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error = ?error, "a connection ended badly");
    }
}
