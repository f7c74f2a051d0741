//! The frame under fire: lists A and B of what must be survived, against real PostgreSQL and real processes.

mod blobs;
mod bugs;
mod crash;
mod embed;
mod lanes;
mod lease;
mod memory;
mod postgres;
mod schema;
mod suite;
mod tracking;
