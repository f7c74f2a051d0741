//! Every lane, in one list. A lane is one file: payload, constants, `run`. Schedules are in [`upkeep`].

pub mod check_mailbox;
pub mod client_facts;
pub mod embed;
pub mod forget;
pub mod ingest;
pub mod read_file;
pub mod recognise;
pub mod reembed;
pub mod remember_activity;
pub mod upkeep;

use store::queue::Queue;

use crate::work::{Lane, LaneEntry};

pub use upkeep::SCHEDULES;

pub static ALL: [LaneEntry; 11] = [
    LaneEntry::of::<remember_activity::RememberActivity>(),
    LaneEntry::of::<ingest::Ingest>(),
    LaneEntry::of::<check_mailbox::CheckMailbox>(),
    LaneEntry::of::<client_facts::ClientFactsOf>(),
    LaneEntry::of::<forget::Forget>(),
    LaneEntry::of::<forget::ForgetAll>(),
    LaneEntry::of::<embed::Embed>(),
    LaneEntry::of::<reembed::Reembed>(),
    LaneEntry::of::<upkeep::Upkeep>(),
    LaneEntry::of::<read_file::ReadFile>(),
    LaneEntry::of::<recognise::Recognise>(),
];

/// The queue of a lane of the list.
pub fn queue_of<L: Lane>() -> &'static Queue {
    ALL.iter().find(|lane| lane.name == L::NAME).expect("every lane is in the list").queue()
}
