//! Agents: claim activities, process a few at a time, and write back what they made of them. The same code runs in this process ([`builtin`])
//! and on people's devices ([`remote`]); what differs is the desk it takes its work from.

pub mod builtin;
pub mod remote;
mod run;

use std::fmt::Debug;

use domain::Fault;
use serde_json::Value;
use uuid::Uuid;

pub use run::run;

use crate::enrich::Failure;
use crate::recordings::Audio;

/// An activity in an agent's hands.
#[derive(Clone, Debug)]
pub struct Work<Of> {
    /// Whose it is, where a desk serves several.
    pub of: Of,
    pub id: Uuid,
    pub r#type: String,
    pub raw_data: Value,
    pub lock_epoch: i32,
}

/// What became of it.
#[derive(Debug)]
pub enum Outcome {
    Completed(Value),
    Failed(Failure),
    /// Given back unprocessed.
    Released,
}

pub type Settled<Of> = (Work<Of>, Outcome);

/// What an agent says of itself with each heartbeat.
#[derive(Clone, Debug)]
pub struct Beat<Of> {
    /// What it has in hand, the oldest first.
    pub held: Vec<(Of, Uuid)>,
    /// Since it started.
    pub processed: i64,
    /// The last one.
    pub is_goodbye: bool,
}

impl<Of> Default for Beat<Of> {
    fn default() -> Self {
        Self { held: Vec::new(), processed: 0, is_goodbye: false }
    }
}

impl<Of> Beat<Of> {
    /// As the table of nodes has it.
    fn status(&self, is_busy: bool) -> &'static str {
        match is_busy {
            _ if self.is_goodbye => "offline",
            true => "processing",
            false => "ready",
        }
    }
}

/// What people set for it on the Nodes page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orders {
    pub is_enabled: bool,
    pub concurrency: usize,
}

/// Where an agent takes its work from, and brings it back to.
pub trait Desk: Send + Sync + 'static {
    type Of: Clone + Debug + Send + Sync + 'static;

    /// How often to look when nothing wakes it.
    const POLL: std::time::Duration;

    /// Up to `most` activities, which are then in this agent's hands alone, beside those `held`.
    fn claim(&self, most: usize, held: &[Self::Of]) -> impl Future<Output = Result<Vec<Work<Self::Of>>, Fault>> + Send;

    /// Writes results down, and returns how many came too late: somebody else has those activities. What is left in the list could not be
    /// written now.
    fn settle(&self, settled: &mut Vec<Settled<Self::Of>>) -> impl Future<Output = Result<usize, Fault>> + Send;

    /// Says that this one is still being worked on. False: it is in other hands now.
    fn renew(&self, work: &Work<Self::Of>) -> impl Future<Output = Result<bool, Fault>> + Send;

    fn beat(&self, beat: &Beat<Self::Of>) -> impl Future<Output = Result<Orders, Fault>> + Send;

    /// The recording of a call.
    fn recording(&self, work: &Work<Self::Of>) -> impl Future<Output = Result<Audio, Failure>> + Send;

    /// Something may have come.
    fn woken(&self) -> impl Future<Output = ()> + Send;
}
