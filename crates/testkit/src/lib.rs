//! The tools of the tests: real PostgreSQL servers, cloned databases, a network that fails on demand, fake services, ledgers that the engine
//! cannot touch, and worker processes that can be killed at every step.

pub mod canary;
pub mod chat;
pub mod cluster;
pub mod disk;
pub mod effects;
pub mod embedder;
mod fake;
pub mod ledger;
mod pdf;
pub mod process;
pub mod proxy;
pub mod recordings;
pub mod sources;
pub mod speech;
mod world;

pub use canary::Canary;
pub use chat::FakeChat;
pub use cluster::Cluster;
pub use disk::BadDisk;
pub use embedder::FakeEmbedder;
pub use ledger::Ledger;
pub use pdf::pdf;
pub use recordings::FakeRecordings;
pub use sources::Sources;
pub use speech::FakeSpeech;
pub use world::{World, config, stays_true, wait_until};

/// Whether `./test --slow` runs: more rounds, larger counts.
pub fn is_slow() -> bool {
    std::env::var_os("TRIBUTARY_SLOW").is_some()
}
