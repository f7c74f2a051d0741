//! The frame under fire: lists A and B of what must be survived, against real PostgreSQL and real processes.

mod bugs;
mod crash;
mod lanes;
mod lease;
mod postgres;
mod schema;
mod suite;
mod tracking;
