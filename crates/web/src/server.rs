//! The accept loop. axum's own has no limit on how long a client may take to send its headers, nor on how many connect.

use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::HeaderMap;
use engine::Env;
use engine::work::Stop;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::api::{events, router};
use crate::app::App;
use crate::heads::Watched;

/// More than that wait in the kernel's queue until one leaves.
const MAX_CONNECTIONS: usize = 4_096;
/// From the first byte of a request to the end of its headers; also how long an idle connection is kept.
const HEAD_LIMIT: Duration = Duration::from_secs(30);
const HEAD_BYTES: usize = 64 * 1024;

/// Who is at the other end of the connection: a proxy, or the caller itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub SocketAddr);

/// The caller's own address. Each proxy of ours says at the end of `X-Forwarded-For` who called it; what comes before is the caller's own
/// word.
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

/// Serves until told to stop, then lets requests in flight finish (bounded by `DRAIN_SECS`). Event streams end at once.
pub async fn serve(env: Env, listener: TcpListener, metrics: PrometheusHandle, stop: Stop) -> anyhow::Result<()> {
    let drain = Duration::from_secs(env.config.drain_secs);
    let app = App::new(env, metrics, stop.clone());
    let mut background = JoinSet::new();
    background.spawn(store::notices::relay(app.env.db.clone()));
    background.spawn(events::fill(app.clone()));
    background.spawn(tidy(app.metrics.clone()));
    background.spawn(app.intake.clone().commit());
    background.spawn(app.intake.clone().note_refusals());
    let router = router::build(app);
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let permit = tokio::select! { permit = room.clone().acquire_owned() => permit?, () = stop.stopped() => break };
        let accepted = tokio::select! { accepted = listener.accept() => accepted, () = stop.stopped() => break };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file handles, or the client left before we came: neither ends the server.
                tracing::warn!(error = ?error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (router, stop) = (router.clone(), stop.clone());
        connections.spawn(async move {
            connection(stream, peer, router, stop).await;
            drop(permit);
        });
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    let drained = tokio::time::timeout(drain, async { while connections.join_next().await.is_some() {} }).await;
    if drained.is_err() {
        tracing::warn!("{} connections were cut: they took longer than the drain", connections.len());
    }
    Ok(())
}

/// Observations pile up until somebody scrapes, and perhaps nobody does.
async fn tidy(metrics: PrometheusHandle) {
    loop {
        tokio::time::sleep(Duration::from_secs(5)).await;
        metrics.run_upkeep();
    }
}

async fn connection(stream: TcpStream, peer: SocketAddr, router: Router, stop: Stop) {
    let _ = stream.set_nodelay(true); // only slower without
    let (stream, doubt) = Watched::new(stream);
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Peer(peer));
        request.extensions_mut().insert(doubt.clone());
        router.call(request)
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT).max_buf_size(HEAD_BYTES);
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), service));
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
