//! Builds JSON objects of values that are JSON text already.

use super::Malformed;
use super::fields::quoted;

/// Names that only we write: a sender's would be taken for ours. Theirs are kept under `sent`.
pub const RESERVED: [&str; 7] = ["recovery_count", "retry_count", "error", "from_key", "to_key", "attachments", "sent"];

/// A JSON object under construction.
#[derive(Debug, Default)]
pub struct Object(String);

impl Object {
    /// Adds a member: a plain name of ours, and JSON.
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

/// An activity's `metadata`: the sender's fields, and ours.
#[derive(Debug, Default)]
pub struct Metadata {
    said: Object,
    reserved: Object,
    ours: Object,
}

impl Metadata {
    /// Adds a sender's field.
    pub fn push(&mut self, name: &str, value: &str) -> Result<(), Malformed> {
        let into = if RESERVED.contains(&name) { &mut self.reserved } else { &mut self.said };
        into.push_quoted(&quoted(name)?, value);
        Ok(())
    }

    /// Adds a field of ours.
    pub fn push_ours(&mut self, name: &str, value: &str) {
        self.ours.push(name, value);
    }

    /// The sender has given no field.
    pub fn is_empty(&self) -> bool {
        self.said.0.is_empty() && self.reserved.0.is_empty()
    }

    /// The sender's fields as one object.
    pub fn said(&self) -> String {
        self.object(false)
    }

    /// All fields as one object.
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
