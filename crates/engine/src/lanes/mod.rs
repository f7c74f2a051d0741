//! Every lane and every schedule, in one list each. A lane is one file: payload, constants, `run`.

pub mod build_index;
pub mod client_facts;
pub mod embed;
pub mod forget;
pub mod ingest;
pub mod remember_activity;
mod upkeep;

use std::time::Duration;

use crate::work::LaneEntry;

pub static ALL: [LaneEntry; 7] = [
    LaneEntry::of::<remember_activity::RememberActivity>(),
    LaneEntry::of::<ingest::Ingest>(),
    LaneEntry::of::<client_facts::ClientFactsOf>(),
    LaneEntry::of::<forget::Forget>(),
    LaneEntry::of::<embed::Embed>(),
    LaneEntry::of::<build_index::BuildIndex>(),
    upkeep_entry(),
];

/// Upkeep alone, for programs with lanes of their own.
pub const fn upkeep_entry() -> LaneEntry {
    LaneEntry::of::<upkeep::Upkeep>()
}

/// A tick: every so often a lane gets the message `{"task": name}`.
pub struct ScheduleEntry {
    pub name: &'static str,
    pub lane: &'static str,
    pub every: Duration,
    pub what: &'static str,
}

pub const SCHEDULES: &[ScheduleEntry] = &[
    ScheduleEntry {
        name: "retention",
        lane: "upkeep",
        every: Duration::from_secs(3_600),
        what: "removes what has outlived its retention",
    },
    ScheduleEntry {
        name: "unpark",
        lane: "upkeep",
        every: Duration::from_secs(30),
        what: "sends parked items whose time has come",
    },
    ScheduleEntry {
        name: "unlock_stale_locks",
        lane: "upkeep",
        every: Duration::from_secs(60),
        what: "gives back activities whose agent went silent for five minutes",
    },
    ScheduleEntry {
        name: "reset_stale_locks",
        lane: "upkeep",
        every: Duration::from_secs(600),
        what: "gives back activities whose agent went silent for half an hour",
    },
    ScheduleEntry {
        name: "retry_failed",
        lane: "upkeep",
        every: Duration::from_secs(300),
        what: "has failed activities processed again, an hour after their error",
    },
    ScheduleEntry {
        name: "memory",
        lane: "upkeep",
        every: Duration::from_secs(60),
        what: "counts what search relies on, and asks for the index of a large memory",
    },
    ScheduleEntry {
        name: "blobs",
        lane: "upkeep",
        every: Duration::from_secs(3_600),
        what: "removes files that nothing names any more",
    },
    ScheduleEntry {
        name: "indexes",
        lane: "upkeep",
        every: Duration::from_secs(3_600),
        what: "builds indexes that are missing, while everybody goes on writing",
    },
    ScheduleEntry {
        name: "syncs",
        lane: "upkeep",
        every: Duration::from_secs(30),
        what: "starts the syncs whose time has come, and has clients derived whose turn was missed",
    },
    ScheduleEntry {
        name: "takeover",
        lane: "upkeep",
        every: Duration::from_secs(10),
        what: "gives others what a dead worker held",
    },
    ScheduleEntry {
        name: "tokens",
        lane: "upkeep",
        every: Duration::from_secs(3_600),
        what: "removes tokens that were replaced a day ago",
    },
    ScheduleEntry { name: "watch", lane: "upkeep", every: Duration::from_secs(30), what: "opens and closes alerts" },
];
