//! A mailbox's changes, in their order.

use serde_json::{Value, json};

use super::{Mailbox, Message};

/// One entry of a mailbox's history.
pub(super) struct Change {
    pub id: u64,
    pub kind: Kind,
    message_id: String,
    thread_id: String,
    /// The labels after it.
    labels: Vec<String>,
    /// The labels that it added or removed.
    changed: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Added,
    Deleted,
    LabelsAdded,
    LabelsRemoved,
}

impl Kind {
    /// The name of its list in an answer, and of it in a question.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Added => ("messagesAdded", "messageAdded"),
            Self::Deleted => ("messagesDeleted", "messageDeleted"),
            Self::LabelsAdded => ("labelsAdded", "labelAdded"),
            Self::LabelsRemoved => ("labelsRemoved", "labelRemoved"),
        }
    }
}

impl Change {
    pub fn shown(&self) -> Value {
        let stub = json!({"id": self.message_id, "threadId": self.thread_id});
        let mut message = stub.clone();
        if self.kind != Kind::Deleted && !self.labels.is_empty() {
            message["labelIds"] = json!(self.labels);
        }
        let mut entry = json!({"message": message});
        if matches!(self.kind, Kind::LabelsAdded | Kind::LabelsRemoved) {
            entry["labelIds"] = json!(self.changed);
        }
        let (list, _) = self.kind.names();
        json!({"id": self.id.to_string(), "messages": [stub], list: [entry]})
    }
}

impl Mailbox {
    /// The number of the next change. Some numbers are left out.
    fn next_id(&mut self) -> u64 {
        self.history_id += 1 + (self.history_id * 7 + 3) % 5;
        self.history_id
    }

    pub(super) fn add(&mut self, id: &str, mut message: Message) {
        let number = self.next_id();
        message.history_id = number;
        self.note(number, Kind::Added, id, &message, Vec::new());
        self.messages.insert(id.to_owned(), message);
    }

    /// Changes labels. A message that has them already tells nobody. Returns whether anything changed.
    pub(super) fn relabel(&mut self, id: &str, add: &[&str], remove: &[&str]) -> bool {
        let Some(mut message) = self.messages.get(id).cloned() else { return false };
        let removed: Vec<String> =
            message.labels.iter().filter(|label| remove.contains(&label.as_str())).cloned().collect();
        let added: Vec<String> = add
            .iter()
            .filter(|label| !message.labels.iter().any(|known| known == *label))
            .map(|label| (*label).to_owned())
            .collect();
        message.labels.retain(|label| !removed.contains(label));
        message.labels.extend(added.iter().cloned());
        for (kind, changed) in [(Kind::LabelsAdded, added), (Kind::LabelsRemoved, removed)] {
            if !changed.is_empty() {
                message.history_id = self.next_id();
                self.note(message.history_id, kind, id, &message, changed);
            }
        }
        let has_changed = self.messages.get(id).is_some_and(|known| known.history_id != message.history_id);
        self.messages.insert(id.to_owned(), message);
        has_changed
    }

    pub(super) fn delete(&mut self, id: &str) -> bool {
        let Some(message) = self.messages.remove(id) else { return false };
        let number = self.next_id();
        self.note(number, Kind::Deleted, id, &message, Vec::new());
        true
    }

    fn note(&mut self, number: u64, kind: Kind, id: &str, message: &Message, changed: Vec<String>) {
        let (message_id, thread_id) = (id.to_owned(), message.thread_id.clone());
        self.changes.push(Change { id: number, kind, message_id, thread_id, labels: message.labels.clone(), changed });
    }
}
