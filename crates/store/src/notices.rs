//! Notices of changes, sent after the commit. Inside the process they go over a bus; between processes as at most one NOTIFY every
//! 10 ms, from one connection. Readers also poll, so a lost notice only delays them by a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::Notice;
use sqlx::postgres::PgListener;
use tokio::sync::{broadcast, mpsc};
use uuid::Uuid;

use crate::{Db, Error, Result, within};

const CHANNEL: &str = "tributary";
const COALESCE: Duration = Duration::from_millis(10);
/// The interval at which an idle process sends an empty notice, so that listeners can distinguish silence from a dead socket.
const PROBE: Duration = Duration::from_secs(20);
/// How soon after a batch that could not be sent the others are told to look at the tables.
const RETRY: Duration = Duration::from_secs(1);
/// PostgreSQL refuses payloads of 8,000 bytes and more.
const PAYLOAD_BYTES: usize = 7_900;

/// The bus of this process. Clones share it.
#[derive(Clone)]
pub struct Bus(Arc<Inner>);

struct Inner {
    /// Identifies this process, to recognise its own NOTIFYs when they come back.
    boot: Uuid,
    local: broadcast::Sender<Notice>,
    outbound: mpsc::Sender<Notice>,
    /// Taken by the only task that relays.
    relay_end: std::sync::Mutex<Option<mpsc::Receiver<Notice>>>,
    /// The outbound queue was full, so other processes must look at the tables.
    overflowed: AtomicBool,
}

impl Default for Bus {
    fn default() -> Self {
        let (outbound, relay_end) = mpsc::channel(4_096);
        let local = broadcast::Sender::new(4_096);
        Self(Arc::new(Inner {
            boot: Uuid::now_v7(),
            local,
            outbound,
            relay_end: std::sync::Mutex::new(Some(relay_end)),
            overflowed: AtomicBool::new(false),
        }))
    }
}

impl Bus {
    pub fn boot(&self) -> Uuid {
        self.0.boot
    }

    pub fn subscribe(&self) -> broadcast::Receiver<Notice> {
        self.0.local.subscribe()
    }

    /// Sends a notice to this process at once, and to the others shortly after.
    pub fn publish(&self, notice: Notice) {
        self.publish_here(notice.clone());
        if self.0.outbound.try_send(notice).is_err() {
            self.0.overflowed.store(true, Ordering::Relaxed);
        }
    }

    /// Sends a notice to this process only.
    pub fn publish_here(&self, notice: Notice) {
        let _ = self.0.local.send(notice); // no listener is fine
    }
}

/// Relays notices between processes until dropped: one task sends, one listens. After a lost connection all readers are told to look
/// at the tables, because notices were missed.
pub async fn relay(db: Db) {
    let outbound = db.bus().0.relay_end.lock().ok().and_then(|mut end| end.take());
    let Some(outbound) = outbound else { return }; // another task relays already
    tokio::join!(send_all(db.clone(), outbound), hear_all(db));
}

async fn send_all(db: Db, mut outbound: mpsc::Receiver<Notice>) {
    // A batch was not sent, so the others do not know what they missed.
    let mut is_resync_owed = false;
    loop {
        let wait = if is_resync_owed { RETRY } else { PROBE };
        let mut batch = match tokio::time::timeout(wait, outbound.recv()).await {
            Ok(Some(first)) => vec![first],
            Ok(None) => return,
            Err(_) => Vec::new(), // an empty notice shows listeners that the connection is alive
        };
        tokio::time::sleep(COALESCE).await;
        while let Ok(more) = outbound.try_recv() {
            if !batch.contains(&more) {
                batch.push(more);
            }
        }
        if db.bus().0.overflowed.swap(false, Ordering::Relaxed) || is_resync_owed {
            batch = vec![Notice::resync("*")];
        }
        is_resync_owed = false;
        for payload in payloads(db.bus().boot(), &batch) {
            if let Err(error) = notify(&db, &payload).await {
                tracing::debug!(error = ?error, "notices were not relayed; the others will be told to look at everything");
                is_resync_owed = true;
                break;
            }
        }
    }
}

async fn notify(db: &Db, payload: &str) -> Result<()> {
    within(PROBE, async {
        let mut conn = db.acquire().await?;
        sqlx::query("select pg_notify($1, $2)").bind(CHANNEL).bind(payload).execute(&mut *conn).await?;
        Ok(())
    })
    .await
}

/// Packs as many notices as fit into each payload, `[boot, notice…]`.
fn payloads(boot: Uuid, batch: &[Notice]) -> Vec<String> {
    let mut payloads = Vec::new();
    let mut payload = format!("{boot}");
    for notice in batch {
        let Ok(mut line) = serde_json::to_string(notice) else { continue };
        if line.len() > PAYLOAD_BYTES - 64 {
            line = serde_json::to_string(&Notice::resync(notice.kind.chars().take(200).collect::<String>()))
                .unwrap_or_default();
        }
        if payload.len() + line.len() + 1 > PAYLOAD_BYTES {
            payloads.push(std::mem::replace(&mut payload, format!("{boot}")));
        }
        payload.push('\n');
        payload.push_str(&line);
    }
    payloads.push(payload);
    payloads
}

async fn hear_all(db: Db) {
    loop {
        if let Err(error) = hear(&db).await {
            tracing::debug!(error = ?error, "listening for notices was interrupted; polling meanwhile");
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn hear(db: &Db) -> Result<()> {
    // On a session of its own: the listener gives a silent one back to its pool without a limit.
    let mut listener = PgListener::connect_with(db.sibling(1).pool()).await?;
    listener.ignore_pool_close_event(false);
    within(PROBE, async { Ok(listener.listen(CHANNEL).await?) }).await?;
    db.bus().publish_here(Notice::resync("*")); // notices before this point were missed
    // `try_recv` returns None once when the connection was lost. Then this ends and starts over. The same happens when nothing arrives for
    // long, not even our own empty notices: a socket can die silently.
    while let Some(heard) =
        tokio::time::timeout(3 * PROBE, listener.try_recv()).await.map_err(|_| Error::TimedOut)??
    {
        let mut lines = heard.payload().lines();
        if lines.next().and_then(|boot| Uuid::parse_str(boot).ok()) == Some(db.bus().boot()) {
            continue;
        }
        for line in lines {
            match serde_json::from_str(line) {
                Ok(notice) => db.bus().publish_here(notice),
                Err(_) => db.bus().publish_here(Notice::resync("*")), // a newer version's format
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use domain::{Op, TenantId};

    use super::*;

    #[test]
    fn payloads_never_exceed_what_notify_takes() {
        let boot = Uuid::now_v7();
        let mut batch: Vec<Notice> = (0..500).map(|n| Notice::resync(format!("lane:probe{n}"))).collect();
        batch.push(Notice { id: "x".repeat(9_000), ..Notice::resync("documents") });
        let ids: Vec<Uuid> = (0..1_000).map(|_| Uuid::now_v7()).collect();
        batch.extend(Notice::activities(TenantId::new(), &ids, Op::Insert));
        let payloads = payloads(boot, &batch);
        assert!(payloads.iter().all(|payload| payload.len() <= PAYLOAD_BYTES));
        let lines: usize = payloads.iter().map(|payload| payload.lines().count() - 1).sum();
        assert_eq!(lines, batch.len());
        let heard = payloads.iter().flat_map(|payload| payload.lines().skip(1));
        let heard = heard.map(|line| serde_json::from_str::<Notice>(line).expect("a notice"));
        assert_eq!(heard.flat_map(|notice| notice.ids).collect::<Vec<_>>(), ids, "rows are named, however many");
    }

    #[test]
    fn a_program_without_ids_is_understood() {
        let heard = r#"{"tenant_id":null,"kind":"activities","id":"7","op":"insert"}"#;
        let heard: Notice = serde_json::from_str(heard).expect("a notice");
        assert_eq!((heard.id.as_str(), heard.op, heard.ids.len()), ("7", Op::Insert, 0));
    }
}
