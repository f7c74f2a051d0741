//! Agents claim activities, process a few at a time, and write the results back. The same code runs in this process ([`builtin`]) and on
//! people's devices ([`remote`]); they differ in the desk that hands out the activities.

pub mod builtin;
pub mod remote;
mod run;

use std::fmt::Debug;

use domain::{Fault, NodeStatus};
use serde_json::Value;
use uuid::Uuid;

pub use run::run;

use crate::enrich::Failure;
use crate::recordings::Audio;

/// An activity that an agent holds.
#[derive(Clone, Debug)]
pub struct Work<Of> {
    /// The tenant, if a desk serves several.
    pub of: Of,
    pub id: Uuid,
    pub r#type: String,
    pub raw_data: Value,
    pub lock_epoch: i32,
}

/// The outcome.
#[derive(Debug)]
pub enum Outcome {
    Completed(Value),
    Failed(Failure),
    /// Given back unprocessed.
    Released,
}

pub type Settled<Of> = (Work<Of>, Outcome);

/// The report of an agent in each heartbeat.
#[derive(Clone, Debug)]
pub struct Beat<Of> {
    /// The activities that it holds, oldest first.
    pub held: Vec<(Of, Uuid)>,
    /// The number of processed activities since it started.
    pub processed: i64,
    /// Whether this is the last heartbeat.
    pub is_goodbye: bool,
}

impl<Of> Default for Beat<Of> {
    fn default() -> Self {
        Self { held: Vec::new(), processed: 0, is_goodbye: false }
    }
}

impl<Of> Beat<Of> {
    /// The agent's state, as in the table of nodes.
    fn status(&self, is_busy: bool) -> NodeStatus {
        match is_busy {
            _ if self.is_goodbye => NodeStatus::Offline,
            true => NodeStatus::Processing,
            false => NodeStatus::Ready,
        }
    }
}

/// The settings from the Agents page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orders {
    pub is_enabled: bool,
    pub concurrency: usize,
}

/// Hands out activities to an agent and takes its results.
pub trait Desk: Send + Sync + 'static {
    type Of: Clone + Debug + Send + Sync + 'static;

    /// The interval at which the agent looks for activities without being woken.
    const POLL: std::time::Duration;

    /// Claims up to `most` activities with these kinds of content for this agent, in addition to those `held`.
    fn claim(
        &self,
        source_types: &'static [&'static str],
        most: usize,
        held: &[Self::Of],
    ) -> impl Future<Output = Result<Vec<Work<Self::Of>>, Fault>> + Send;

    /// Writes results and returns how many came too late, because another agent holds those activities. Results that stay in the list could
    /// not be written now.
    fn settle(&self, settled: &mut Vec<Settled<Self::Of>>) -> impl Future<Output = Result<usize, Fault>> + Send;

    /// Extends the claim on an activity. Returns `false` if another agent holds it now.
    fn renew(&self, work: &Work<Self::Of>) -> impl Future<Output = Result<bool, Fault>> + Send;

    fn beat(&self, beat: &Beat<Self::Of>) -> impl Future<Output = Result<Orders, Fault>> + Send;

    /// The recording of a call.
    fn recording(&self, work: &Work<Self::Of>) -> impl Future<Output = Result<Audio, Failure>> + Send;

    /// Returns when new activities may be there.
    fn woken(&self) -> impl Future<Output = ()> + Send;
}
