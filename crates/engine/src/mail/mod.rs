//! Mailboxes: letters as they come in and are filtered, notices of changes, subscriptions, and the proof that nothing was missed. How a provider
//! spells all this stays in `connectors`; the pages of an account are read by lane [`ingest`](crate::lanes::ingest).

pub mod channel;
pub mod check;
mod files;
pub mod left_out;
pub mod letters;
pub mod notices;
pub mod pending;
pub mod reading;
pub mod rules;
pub mod settings;
pub mod subscriptions;
pub mod threads;
