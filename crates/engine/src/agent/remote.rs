//! An agent on a person's device. Its desk is a Tributary server, reached over HTTP with a key for that person and device.

use std::sync::Arc;
use std::time::Duration;

use connectors::{Rest, RestError};
use domain::Fault;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::{Beat, Desk, Orders, Outcome, Settled, Work};
use crate::Config;
use crate::enrich::Failure;
use crate::recordings::Audio;

/// The app name that other programs with this table use.
const APP_NAME: &str = "atomic-crm";

pub struct Remote {
    rest: Rest,
    config: Config,
    device_name: String,
    woken: Arc<Notify>,
    listening: AbortHandle,
}

impl Remote {
    pub fn new(rest: Rest, config: Config, device_name: String) -> Self {
        let woken = Arc::new(Notify::new());
        let listening = tokio::spawn(listen(rest.clone(), woken.clone())).abort_handle();
        Self { rest, config, device_name, woken, listening }
    }

    /// Connects and sends a first heartbeat, which detects a wrong key at once.
    pub async fn introduce(&self) -> Result<Orders, RestError> {
        self.beat_as(&Beat::default()).await
    }

    async fn beat_as(&self, beat: &Beat<()>) -> Result<Orders, RestError> {
        let current = beat.held.first().map(|(_, id)| *id);
        let status = beat.status(current.is_some());
        let row = json!({
            "app_name": APP_NAME, "device_name": self.device_name, "status": status,
            "current_activity_id": current, "processed_count": beat.processed,
        });
        let node = self.rest.upsert("crm_processing_nodes", "sales_id,app_name,device_name", &row).await?;
        Ok(Orders {
            is_enabled: node.get("enabled").and_then(Value::as_bool).unwrap_or(true),
            concurrency: node.get("concurrency").and_then(Value::as_u64).map_or(1, |n| n as usize),
        })
    }

    async fn claim_by(&self, function: &str, source_types: &[&str], most: usize) -> Result<Vec<Work<()>>, RestError> {
        let rows = self.rest.call(function, &json!({ "p_limit": most, "p_source_types": source_types })).await?;
        let work = |row: &Value| {
            Some(Work {
                of: (),
                id: row.get("id")?.as_str()?.parse().ok()?,
                r#type: row.get("type").and_then(Value::as_str).unwrap_or_default().to_owned(),
                raw_data: row.get("raw_data")?.clone(),
                lock_epoch: i32::try_from(row.get("lock_epoch")?.as_i64()?).ok()?,
            })
        };
        Ok(rows.as_array().map(|rows| rows.iter().filter_map(work).collect()).unwrap_or_default())
    }

    fn failed(&self, failure: &Failure) -> Value {
        let mut error = failure.to_json();
        error["agent_id"] = self.device_name.clone().into();
        json!({ "processing_status": "failed", "metadata": { "error": error } })
    }

    /// Returns `false` if another agent holds it.
    async fn write(&self, work: &Work<()>, columns: &Value) -> Result<bool, RestError> {
        let filter = format!("id=eq.{}&lock_epoch=eq.{}", work.id, work.lock_epoch);
        match self.rest.update("activities", &filter, columns).await {
            Ok(()) => Ok(true),
            Err(RestError::Lost(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Desk for Remote {
    type Of = ();

    const POLL: Duration = Duration::from_secs(30);

    async fn claim(
        &self,
        source_types: &'static [&'static str],
        most: usize,
        _: &[()],
    ) -> Result<Vec<Work<()>>, Fault> {
        let next = self.claim_by("claim_next_pending_activity", source_types, most).await?;
        Ok(if next.is_empty() { self.claim_by("claim_stale_activity", source_types, most).await? } else { next })
    }

    /// Writes results one by one. A written result leaves the list, so nothing is written twice.
    async fn settle(&self, settled: &mut Vec<Settled<()>>) -> Result<usize, Fault> {
        let mut late = 0;
        while let Some((work, outcome)) = settled.last() {
            let columns = match outcome {
                Outcome::Completed(made) => json!({ "processing_status": "completed", "processed_data": made }),
                Outcome::Failed(failure) => self.failed(failure),
                Outcome::Released => json!({ "processing_status": "raw" }),
            };
            let written = match self.write(work, &columns).await {
                // The same result would be refused again, so the activity fails with the server's message.
                Err(RestError::Refused { status, message }) => {
                    let refused = format!("the result was refused ({status}): {message}");
                    self.write(work, &self.failed(&Failure::new("ValidationError", refused))).await
                }
                written => written,
            };
            match written {
                Ok(is_ours) => late += usize::from(!is_ours),
                Err(RestError::Refused { status, message }) => {
                    tracing::error!("activity {} stays locked, its end was refused ({status}): {message}", work.id);
                }
                Err(error) => return Err(error.into()),
            }
            settled.pop();
        }
        Ok(late)
    }

    async fn renew(&self, work: &Work<()>) -> Result<bool, Fault> {
        // Any time will do: the server sets its own.
        Ok(self.write(work, &json!({ "locked_at": "now" })).await?)
    }

    async fn beat(&self, beat: &Beat<()>) -> Result<Orders, Fault> {
        Ok(self.beat_as(beat).await?)
    }

    /// Gets the recording from the server, which fetches and keeps it, so no device needs a provider's password.
    async fn recording(&self, work: &Work<()>) -> Result<Audio, Failure> {
        let (content_type, pieces) = self.rest.recording(&work.id.to_string()).await.map_err(not_fetched)?;
        let most = self.config.recording_max_bytes;
        let pieces = stream::try_unfold((pieces, 0), move |(mut pieces, bytes)| async move {
            let Some(piece) = pieces.next().await.map_err(not_fetched)? else { return Ok(None) };
            let bytes = bytes + piece.len() as u64;
            if bytes > most {
                return Err(Failure::new("DownloadError", "the recording is larger than RECORDING_MAX_BYTES"));
            }
            Ok(Some((piece, (pieces, bytes))))
        });
        Audio::fill(&self.config.data_dir, Some(&content_type), pieces).await
    }

    async fn woken(&self) {
        self.woken.notified().await;
    }
}

fn not_fetched(error: RestError) -> Failure {
    Failure::new("DownloadError", Fault::from(error).in_words())
}

/// The name of this device among those of its person.
pub fn device_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().trim().chars().take(200).collect::<String>();
    if name.is_empty() { "device".into() } else { name }
}

/// Reads the server's event stream until dropped. While the stream is broken, the agent looks every half minute.
async fn listen(rest: Rest, woken: Arc<Notify>) {
    let mut pause = Duration::from_secs(1);
    loop {
        let begun = tokio::time::Instant::now();
        match rest.events(|| woken.notify_one()).await {
            Ok(()) => tracing::debug!("the event stream ended"),
            Err(error) => tracing::debug!("the event stream ended: {}", Fault::from(error).in_words()),
        }
        pause = if begun.elapsed() > Duration::from_secs(60) {
            Duration::from_secs(1)
        } else {
            (2 * pause).min(Duration::from_secs(30))
        };
        tokio::time::sleep(pause).await;
        woken.notify_one(); // events may have been missed
    }
}
