//! The part of Supabase's realtime protocol that agents need: a socket that sends inserted and changed activities.
//!
//! A notice names rows. [`feed`] loads them once for all sockets and keeps the latest in a ring. Each [`socket`] takes those that its
//! subscriptions want ([`filter`]) and sends them as Phoenix messages ([`frames`]). Nothing is replayed: a client that was away polls.

pub(crate) mod feed;
mod filter;
mod frames;
pub(crate) mod socket;
