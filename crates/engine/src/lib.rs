//! The product's behaviour: settings, the environment of everything that runs, and the one way to do background work.
//! No SQL text, no HTTP server, no HTTP client.

mod act;
pub mod activities;
pub mod agent;
pub mod assistants;
pub mod bench;
pub mod blobs;
pub mod channels;
pub mod clients;
pub mod config;
pub mod contacts;
pub mod database;
pub mod documents;
pub mod enrich;
pub mod env;
pub mod failures;
pub mod files;
pub mod findings;
pub mod forgetting;
pub mod health;
pub mod intake;
pub mod items;
pub mod jobs;
pub mod keys;
pub mod lanes;
pub mod mail;
pub mod memory;
pub mod nodes;
pub mod people;
pub mod pull;
pub mod recordings;
pub mod rotation;
pub mod searches;
pub mod senders;
pub mod sessions;
pub mod setup;
pub mod sources;
pub mod spool;
pub mod tenants;
pub mod waiting;
pub mod work;
pub mod workers;

pub use act::ActError;
pub use config::Config;
pub use env::Env;
