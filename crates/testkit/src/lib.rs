//! What tests share: real PostgreSQL servers, cloned databases, a network that fails on demand, ledgers that the engine cannot
//! touch, and a worker process that can be killed at every step.

pub mod cluster;
pub mod effects;
pub mod embedder;
pub mod ledger;
pub mod process;
pub mod proxy;
mod world;

pub use cluster::Cluster;
pub use embedder::FakeEmbedder;
pub use ledger::Ledger;
pub use world::{World, config, wait_until};

/// More rounds, larger counts: `./test --slow`.
pub fn is_slow() -> bool {
    std::env::var_os("TRIBUTARY_SLOW").is_some()
}
