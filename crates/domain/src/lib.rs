//! Types and rules that need no I/O: ids, the clock, secrets, callers, faults and the reactions to them, states, and text processing.

pub mod activity;
pub mod address;
pub mod audio;
pub mod blob;
pub mod caller;
pub mod clock;
pub mod codes;
pub mod document;
pub mod evidence;
pub mod fault;
pub mod hex;
pub mod ids;
pub mod item;
pub mod mail;
pub mod matching;
pub mod notice;
pub mod papers;
pub mod ranking;
pub mod reading;
pub mod secret;
pub mod shown;
pub mod source;
pub mod sums;
pub mod text;
pub mod words;

pub use activity::{ActivityType, Direction, NodeStatus, ProcessingStatus};
pub use address::{Region, normal_address, normal_email, normal_phone};
pub use blob::BlobKey;
pub use caller::{Caller, Role, Scope};
pub use clock::Clock;
pub use document::{DocumentStatus, DocumentType, PageText, Record};
pub use fault::{Fault, Verdict};
pub use ids::{
    ActivityId, ChannelId, ChunkId, ClientId, ContactId, DocumentId, JobId, KeyId, NodeId, ParkedId, PersonId,
    SourceId, TenantId, WorkerId,
};
pub use item::{ItemId, ItemState, Priority};
pub use notice::{Notice, Op};
pub use secret::Secret;
pub use source::{JobKind, JobStatus, SourceStatus, Transport};
