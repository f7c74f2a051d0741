//! JSON objects put together from texts that are JSON already.

use super::Malformed;
use super::fields::quoted;

/// Ours alone: a sender's would be taken for what happened here. They are kept under `sent`.
const RESERVED: [&str; 7] = ["recovery_count", "retry_count", "error", "from_key", "to_key", "attachments", "sent"];

#[derive(Debug, Default)]
pub(super) struct Object(String);

impl Object {
    /// A plain name of ours, and JSON.
    pub fn push(&mut self, name: &str, value: &str) {
        self.push_quoted(&format!("\"{name}\""), value);
    }

    fn push_quoted(&mut self, name: &str, value: &str) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.push_str(name);
        self.0.push(':');
        self.0.push_str(value);
    }

    pub fn finish(mut self) -> String {
        if self.0.is_empty() {
            self.0.push('{');
        }
        self.0.push('}');
        self.0
    }
}

/// An activity's `metadata`: what the sender said, and what we say about it.
#[derive(Debug, Default)]
pub(in crate::intake) struct Metadata {
    said: Object,
    reserved: Object,
    ours: Object,
}

impl Metadata {
    /// What a sender said, under its own name.
    pub fn push(&mut self, name: &str, value: &str) -> Result<(), Malformed> {
        let into = if RESERVED.contains(&name) { &mut self.reserved } else { &mut self.said };
        into.push_quoted(&quoted(name)?, value);
        Ok(())
    }

    /// What we say.
    pub fn push_ours(&mut self, name: &str, value: &str) {
        self.ours.push(name, value);
    }

    pub fn is_empty(&self) -> bool {
        self.said.0.is_empty() && self.reserved.0.is_empty()
    }

    /// What the sender said, as one object.
    pub fn said(&self) -> String {
        self.object(false)
    }

    pub fn to_json(&self) -> String {
        self.object(true)
    }

    fn object(&self, is_whole: bool) -> String {
        let mut all = Object(self.said.0.clone());
        if !self.reserved.0.is_empty() {
            all.push("sent", &Object(self.reserved.0.clone()).finish());
        }
        if is_whole && !self.ours.0.is_empty() {
            all.0.push(if all.0.is_empty() { '{' } else { ',' });
            all.0.push_str(&self.ours.0[1..]);
        }
        all.finish()
    }
}
