//! The engine against real PostgreSQL, real processes and fake providers: the frame, memory, pulls, and what they survive.

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
mod programs;
mod pull;
mod pull_accounts;
mod pull_control;
mod pull_faults;
mod pull_mcp;
mod pull_passes;
mod recordings;
mod schema;
mod spend;
mod suite;
mod tokens;
mod tracking;
