//! Supabase's realtime, as far as agents written with its client need it: a socket that tells which activities were inserted or changed.
//!
//! A notice names rows; [`feed`] loads them once for everybody and keeps the last in a ring; each [`socket`] reads from there what its
//! subscriptions want ([`filter`]) and says it in Phoenix's words ([`frames`]). Nothing is replayed: whoever was away polls.

pub(crate) mod feed;
mod filter;
mod frames;
pub(crate) mod socket;
