//! What the product does: settings, the environment of everything that runs, and the one way to do background work.
//! No SQL text, no HTTP server, no HTTP client.

pub mod activities;
pub mod agent;
pub mod bench;
pub mod blobs;
pub mod channels;
pub mod config;
pub mod contacts;
pub mod database;
pub mod enrich;
pub mod env;
pub mod health;
pub mod intake;
pub mod lanes;
pub mod memory;
pub mod pull;
pub mod recordings;
pub mod spool;
pub mod waiting;
pub mod work;

pub use config::Config;
pub use env::Env;
