//! A tenant's senders beside another tenant's: how long each waits for its answer while the other's channel is held by connections that never
//! finish, or flooded with good events, beside how long it waits on an idle server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use engine::bench::{Case, ROUNDS, quantile};
use engine::intake::providers::DEFAULT;
use store::tenants;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use uuid::Uuid;

use super::client::Client;
use super::intake::Kind;
use super::scratch::Scratch;

#[derive(clap::Args)]
pub struct Args {
    /// Events that are measured in each of three rounds, one every 20 ms.
    #[arg(long, default_value_t = 300)]
    events: usize,
    /// Connections that hold the other channel.
    #[arg(long, default_value_t = 1_000)]
    held: usize,
    /// Connections that flood the other channel.
    #[arg(long, default_value_t = 64)]
    flooding: usize,
}

const EVERY: Duration = Duration::from_millis(20);
/// A flood at this share of its full rate leaves a core of two free.
const PACED: f64 = 0.4;

pub async fn run(scratch: &Scratch, args: &Args) -> anyhow::Result<Vec<Case>> {
    eprintln!("measuring; about {} seconds", 4 * ROUNDS * args.events / 45);
    let other = tenants::create(&mut *scratch.env.db.acquire().await?, "other").await?;
    let spec = scratch.env.channel_providers.find(DEFAULT)?;
    let events = spec.load.as_ref().context("events to send")?;
    let ours = Arc::new(Kind::new(scratch, other, spec, events).await?);
    let theirs = Arc::new(Kind::new(scratch, scratch.tenant_id, spec, events).await?);
    let serving = scratch.serve().await?;
    let to = serving.address;
    answers(to, &ours, args.events / 4).await?; // warms up

    let (mut idle, mut held, mut paced, mut flooded) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut full_rate, mut paced_rate) = (0.0, 0.0);
    for _ in 0..ROUNDS {
        idle.extend(answers(to, &ours, args.events).await?);
        let holding = hold(to, &theirs, args.held).await?;
        held.extend(answers(to, &ours, args.events).await?);
        drop(holding);
        let flood = Flood::start(to, &theirs, args.flooding, None).await?;
        flooded.extend(answers(to, &ours, args.events).await?);
        full_rate = flood.stop().await?;
        let flood = Flood::start(to, &theirs, args.flooding, Some(PACED * full_rate)).await?;
        paced.extend(answers(to, &ours, args.events).await?);
        paced_rate = flood.stop().await?;
    }
    serving.stop().await?;
    let beside = |what: String, share: f64, unit: &'static str, times_ms: Vec<f64>| {
        let (idle, ours) = (sorted(idle.clone()), sorted(times_ms));
        let [idle_p50, idle_p99, p50_ms, p99_ms] =
            [(&idle, 0.5), (&idle, 0.99), (&ours, 0.5), (&ours, 0.99)].map(|(times, share)| quantile(times, share));
        let (ours, limit) = (quantile(&ours, share), quantile(&idle, share));
        let case = format!("an event is acknowledged while another tenant's channel is {what}, beside an idle server");
        let note = format!("idle: p50 {idle_p50:.2} ms, p99 {idle_p99:.2} ms; a ratio of 1 is as fast");
        Case { case, ours, limit, ratio: ours / limit, unit, p50_ms, p99_ms, note }
    };
    let (n, connections) = (args.held, args.flooding);
    Ok(vec![
        beside(format!("held by {n} connections that never finish"), 0.99, "ms (p99)", held),
        beside(format!("flooded by {connections} connections at {paced_rate:.0} events/s"), 0.5, "ms (p50)", paced),
        beside(
            format!("flooded by {connections} connections at {full_rate:.0} events/s, all it can"),
            0.5,
            "ms (p50)",
            flooded,
        ),
    ])
}

fn sorted(mut times_ms: Vec<f64>) -> Vec<f64> {
    times_ms.sort_by(f64::total_cmp);
    times_ms
}

/// Sends events one after the other, and returns how long each waited for its answer.
async fn answers(to: SocketAddr, kind: &Kind, n: usize) -> anyhow::Result<Vec<f64>> {
    let (mut client, mut request) = (Client::connect(to).await?, kind.request(Uuid::now_v7())?);
    let mut clock = tokio::time::interval(EVERY);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut times_ms = Vec::with_capacity(n);
    for _ in 0..n {
        clock.tick().await;
        kind.write(&mut request, Uuid::now_v7())?;
        let asked = Instant::now();
        let answer = client.ask(&request).await?;
        ensure!(answer.status == 202, "an event was answered {}", answer.status);
        times_ms.push(asked.elapsed().as_secs_f64() * 1_000.0);
    }
    Ok(times_ms)
}

/// Opens connections that announce a megabyte without a signature. Half of them send nothing of it, half a byte a second.
async fn hold(to: SocketAddr, kind: &Kind, n: usize) -> anyhow::Result<JoinSet<()>> {
    let head = format!("POST {} HTTP/1.1\r\nHost: bench\r\nContent-Length: 1048576\r\n\r\n", kind.target());
    let mut holding = JoinSet::new();
    for nth in 0..n {
        let mut stream = TcpStream::connect(to).await?;
        stream.write_all(head.as_bytes()).await?;
        holding.spawn(async move {
            let pause = if nth % 2 == 0 { Duration::from_secs(3_600) } else { Duration::from_secs(1) };
            loop {
                tokio::time::sleep(pause).await;
                if stream.write_all(b"x").await.is_err() {
                    return; // the server has waited long enough
                }
            }
        });
    }
    Ok(holding)
}

/// Good events, on many connections, until stopped.
struct Flood {
    begun: Instant,
    n: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
    clients: JoinSet<anyhow::Result<()>>,
}

impl Flood {
    /// `rate`: events a second, together. None: each connection sends the next event when the last one is answered.
    async fn start(to: SocketAddr, kind: &Arc<Kind>, connections: usize, rate: Option<f64>) -> anyhow::Result<Self> {
        let (n, is_over, mut clients) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default(), JoinSet::new());
        for nth in 0..connections {
            let (mut client, kind) = (Client::connect(to).await?, kind.clone());
            let (n, is_over) = (n.clone(), is_over.clone());
            let pause = rate.map(|rate| Duration::from_secs_f64(connections as f64 / rate.max(1.0)));
            clients.spawn(async move {
                let mut clock = pause.map(|pause| {
                    let first = tokio::time::Instant::now() + pause.mul_f64(nth as f64 / connections as f64);
                    tokio::time::interval_at(first, pause)
                });
                let mut request = kind.request(Uuid::now_v7())?;
                while !is_over.load(Relaxed) {
                    if let Some(clock) = &mut clock {
                        clock.tick().await;
                    }
                    kind.write(&mut request, Uuid::now_v7())?;
                    let answer = client.ask(&request).await?;
                    ensure!(answer.status == 202, "an event of the flood was answered {}", answer.status);
                    n.fetch_add(1, Relaxed);
                }
                Ok(())
            });
        }
        Ok(Self { begun: Instant::now(), n, is_over, clients })
    }

    /// Ends it, and returns how many events a second were answered.
    async fn stop(mut self) -> anyhow::Result<f64> {
        let rate = self.n.load(Relaxed) as f64 / self.begun.elapsed().as_secs_f64();
        self.is_over.store(true, Relaxed);
        while let Some(ended) = self.clients.join_next().await {
            ended??;
        }
        Ok(rate)
    }
}
