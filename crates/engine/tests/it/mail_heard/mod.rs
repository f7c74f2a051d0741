//! Mailboxes whose providers tell of changes: what is heard is read, once and never too little, and what is not proved is not heard.

mod mailbox;
mod notices;
mod provider;
mod subscriptions;
mod syncs;
