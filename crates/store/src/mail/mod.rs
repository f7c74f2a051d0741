//! Mailboxes.

pub mod channels;
pub mod checks;
pub mod letters;
pub mod pending;
pub mod processed;
pub mod reading;
pub mod rules;
pub mod settings;
pub mod subscriptions;
pub mod threads;
