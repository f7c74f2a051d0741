//! The frame under fire: lists A and B of what must be survived, against real PostgreSQL and real processes.

mod blobs;
mod bugs;
mod claims;
mod contacts;
mod crash;
mod embed;
mod lanes;
mod lease;
mod memory;
mod models;
mod outside;
mod plans;
mod postgres;
mod pull;
mod pull_faults;
mod pull_mcp;
mod recordings;
mod schema;
mod spend;
mod suite;
mod tokens;
mod tracking;
