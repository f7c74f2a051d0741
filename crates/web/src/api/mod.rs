//! The HTTP API under `/api/v1`, and what pages share with it: who is calling, what went wrong, which routes there are. The shapes of its answers are
//! public, because the command line prints the same with `--json`.

pub mod activities;
pub mod alerts;
pub mod answer;
pub(crate) mod auth;
pub mod channels;
pub mod clients;
pub mod contacts;
pub mod dead_letters;
pub mod documents;
pub mod embed;
pub(crate) mod error;
pub(crate) mod events;
pub(crate) mod extract;
pub mod failures;
pub mod forget;
pub(crate) mod health;
pub mod jobs;
pub mod keys;
pub mod memory;
pub mod nodes;
pub(crate) mod origin;
pub mod queues;
pub(crate) mod recordings;
pub(crate) mod rest;
pub(crate) mod router;
pub mod schedules;
pub mod search;
pub mod searches;
pub mod sources;
pub mod tenants;
pub(crate) mod upload;
pub mod usage;
pub(crate) mod webhooks;
pub mod workers;
