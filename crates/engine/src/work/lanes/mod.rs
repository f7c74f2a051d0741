//! Every lane and every schedule, in one list each. A lane is one file: payload, constants, `run`.

mod upkeep;

use std::time::Duration;

use super::LaneEntry;

pub static ALL: [LaneEntry; 1] = [upkeep_entry()];

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
    ScheduleEntry { name: "watch", lane: "upkeep", every: Duration::from_secs(30), what: "opens and closes alerts" },
];
