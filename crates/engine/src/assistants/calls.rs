//! Calls of programs, noted without making the caller wait: they are written once a second, in the background.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::Caller;
use serde_json::Value;
use store::assistants::calls::{self, NewCall};
use uuid::Uuid;

use crate::Env;

const EVERY: Duration = Duration::from_secs(1);
const LIMIT: Duration = Duration::from_secs(5);
/// Calls that wait to be written; further ones are only counted in the metrics.
const MOST_WAITING: usize = 10_000;
/// Arguments that are kept are no longer than this.
const ARGUMENT_BYTES: usize = 4_096;

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Ok,
    /// The caller can mend it.
    Refused,
    /// We could not do it.
    Failed,
    /// The client gave it up.
    Cancelled,
}

impl Outcome {
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A call that ended.
#[derive(Clone, Copy, Debug)]
pub struct Called<'a> {
    /// The tool's name, or the method for a resource.
    pub tool: &'static str,
    pub outcome: Outcome,
    pub took: Duration,
    /// The number of things that were found, where something was looked for.
    pub n_hits: Option<usize>,
    pub arguments: &'a Value,
}

/// Calls that wait to be written.
#[derive(Default)]
pub struct Calls(Mutex<Vec<NewCall>>);

impl Calls {
    /// Notes a call, and counts it.
    pub fn note(&self, env: &Env, caller: &Caller, called: Called<'_>) {
        let Called { tool, outcome, took, n_hits, arguments } = called;
        metrics::counter!("tributary_mcp_calls_total", "tool" => tool, "outcome" => outcome.word()).increment(1);
        metrics::histogram!("tributary_mcp_call_seconds", "tool" => tool).record(took.as_secs_f64());
        let is_kept = env.config.mcp_keep_arguments && arguments.to_string().len() <= ARGUMENT_BYTES;
        let call = NewCall {
            id: Uuid::now_v7(),
            tenant_id: caller.tenant_id,
            key_id: caller.key_id,
            tool,
            outcome: outcome.word(),
            duration_ms: i32::try_from(took.as_millis()).unwrap_or(i32::MAX),
            n_hits: n_hits.map(|n| i32::try_from(n).unwrap_or(i32::MAX)),
            // PostgreSQL has no NUL in a text.
            arguments: is_kept
                .then(|| arguments.clone())
                .filter(|kept| !kept.is_null() && !kept.to_string().contains("\\u0000")),
            at: env.clock.now(),
        };
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < MOST_WAITING {
            waiting.push(call);
        } else {
            metrics::counter!("tributary_mcp_calls_unwritten_total").increment(1);
        }
    }

    /// Writes them to the database until dropped.
    pub async fn write(&self, env: &Env) {
        loop {
            tokio::time::sleep(EVERY).await;
            self.write_now(env).await;
        }
    }

    /// Writes those that wait.
    pub async fn write_now(&self, env: &Env) {
        let noted = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        if noted.is_empty() {
            return;
        }
        let written = store::within(LIMIT, async {
            let mut conn = env.db.acquire().await?;
            calls::insert(&mut conn, &noted).await
        });
        if let Err(error) = written.await {
            tracing::debug!(error = ?error, "{} calls are not written yet", noted.len());
            let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let room = MOST_WAITING.saturating_sub(waiting.len());
            let lost = noted.len().saturating_sub(room);
            waiting.splice(..0, noted.into_iter().skip(lost));
            metrics::counter!("tributary_mcp_calls_unwritten_total").increment(lost as u64);
        }
    }
}
