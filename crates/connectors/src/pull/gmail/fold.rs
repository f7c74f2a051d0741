//! A page of changes, folded: the consequence for each message, once.

use std::collections::HashMap;

use domain::mail::Place;

use super::map;
use super::wire::{Record, Stub};

/// Labels that say nothing about where a message lies. Reading a message removes one of them.
const MARKS: [&str; 4] = ["UNREAD", "STARRED", "IMPORTANT", "CHAT"];

/// The consequence of a change for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    Fetch,
    /// It is deleted, or lies where nobody reads.
    Bury,
}

/// Folds records in their order. Messages come in the order of their first change.
pub(super) fn fold(records: &[Record], places: &[Place]) -> Vec<(String, Then)> {
    let mut folded = Folded::default();
    for record in records {
        for added in &record.messages_added.0 {
            let then = if is_unread(&added.message.label_ids, places) { Then::Bury } else { Then::Fetch };
            folded.set(&added.message, then);
        }
        for labelled in &record.labels_added.0 {
            if labelled.label_ids.iter().any(|label| is_hidden(label, places)) {
                folded.set(&labelled.message, Then::Bury);
            } else if has_moved(&labelled.label_ids) {
                folded.set(&labelled.message, Then::Fetch);
            }
        }
        for unlabelled in &record.labels_removed.0 {
            let removed = &unlabelled.label_ids;
            if has_moved(removed) {
                // Who throws a letter away takes it out of the inbox too.
                let mut kept = unlabelled.message.label_ids.iter().filter(|label| !removed.contains(label));
                let is_hidden = kept.any(|label| is_hidden(label, places));
                folded.set(&unlabelled.message, if is_hidden { Then::Bury } else { Then::Fetch });
            }
        }
        for deleted in &record.messages_deleted.0 {
            folded.set(&deleted.message, Then::Bury);
        }
    }
    folded.order.into_iter().map(|id| (id.clone(), folded.then[&id])).collect()
}

#[derive(Default)]
struct Folded {
    order: Vec<String>,
    then: HashMap<String, Then>,
}

impl Folded {
    fn set(&mut self, message: &Stub, then: Then) {
        if self.then.insert(message.id.clone(), then).is_none() {
            self.order.push(message.id.clone());
        }
    }
}

/// Whether a message with these labels need not be fetched. Without labels nobody knows.
fn is_unread(labels: &[String], places: &[Place]) -> bool {
    !labels.is_empty() && !map::is_read(labels, places)
}

/// Whether a message that gets this label lies where nobody reads, whatever else it is called.
fn is_hidden(label: &str, places: &[Place]) -> bool {
    match label {
        "TRASH" => !places.contains(&Place::Deleted),
        "SPAM" => !places.contains(&Place::Spam),
        _ => false,
    }
}

/// Whether these labels are more than marks.
fn has_moved(labels: &[String]) -> bool {
    labels.iter().any(|label| !is_mark(label))
}

pub(super) fn is_mark(label: &str) -> bool {
    MARKS.contains(&label) || label.starts_with("CATEGORY_")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const READ: [Place; 3] = [Place::Inbox, Place::Sent, Place::Other];

    fn folded(records: Value, places: &[Place]) -> Vec<(String, Then)> {
        let records: Vec<Record> = serde_json::from_value(records).expect("records");
        fold(&records, places)
    }

    fn short(folded: &[(String, Then)]) -> Vec<(&str, Then)> {
        folded.iter().map(|(id, then)| (id.as_str(), *then)).collect()
    }

    fn one(kind: &str, id: &str, labels: &[&str], changed: &[&str]) -> Value {
        json!({ "id": "7", "messages": [{ "id": id }], kind: [{ "message": { "id": id, "labelIds": labels }, "labelIds": changed }] })
    }

    #[test]
    fn every_kind_of_change_is_told_by_its_own_list() {
        use Then::{Bury, Fetch};
        for (kind, labels, changed, then) in [
            ("messagesAdded", &["INBOX", "UNREAD"][..], &[][..], Some(Fetch)),
            ("messagesAdded", &[], &[], Some(Fetch)),
            ("messagesAdded", &["SENT"], &[], Some(Fetch)),
            ("messagesAdded", &["DRAFT"], &[], Some(Bury)),
            ("messagesAdded", &["SPAM"], &[], Some(Bury)),
            ("messagesAdded", &["CHAT"], &[], Some(Bury)),
            ("messagesDeleted", &[], &[], Some(Bury)),
            ("labelsAdded", &["TRASH"], &["TRASH"], Some(Bury)),
            ("labelsAdded", &["SPAM"], &["SPAM"], Some(Bury)),
            ("labelsAdded", &["INBOX", "Label_7"], &["Label_7"], Some(Fetch)),
            ("labelsAdded", &["INBOX", "UNREAD"], &["UNREAD", "STARRED", "CATEGORY_UPDATES"], None),
            ("labelsRemoved", &["INBOX"], &["UNREAD"], None),
            ("labelsRemoved", &["Label_7"], &["INBOX", "UNREAD"], Some(Fetch)),
            ("labelsRemoved", &["INBOX"], &["TRASH"], Some(Fetch)),
            ("labelsRemoved", &["TRASH", "UNREAD"], &["INBOX"], Some(Bury)),
        ] {
            let folded = folded(json!([one(kind, "m", labels, changed)]), &READ);
            assert_eq!(folded.first().map(|(_, then)| *then), then, "{kind} {labels:?} {changed:?}");
        }
    }

    #[test]
    fn the_last_change_of_a_message_decides_and_it_is_named_once() {
        let records = json!([
            one("messagesAdded", "a", &["INBOX"], &[]),
            one("messagesAdded", "draft1", &["DRAFT"], &[]),
            one("labelsAdded", "a", &["TRASH"], &["TRASH"]),
            one("messagesDeleted", "draft1", &[], &[]),
            one("messagesAdded", "sent", &["SENT"], &[]),
            one("labelsRemoved", "a", &["INBOX"], &["TRASH"]),
            one("labelsAdded", "b", &["TRASH"], &["TRASH"]),
            one("labelsRemoved", "b", &["TRASH"], &["UNREAD"]),
        ]);
        let folded = folded(records, &READ);
        let expected = [("a", Then::Fetch), ("draft1", Then::Bury), ("sent", Then::Fetch), ("b", Then::Bury)];
        assert_eq!(short(&folded), expected);
    }

    #[test]
    fn a_record_with_several_lists_is_read_whole() {
        let record = json!({
            "id": "9", "messagesAdded": [{ "message": { "id": "a", "labelIds": ["INBOX"] } }],
            "labelsRemoved": [{ "message": { "id": "b" }, "labelIds": ["INBOX"] }],
            "messagesDeleted": [{ "message": { "id": "c" } }],
        });
        let folded = folded(json!([record]), &READ);
        assert_eq!(short(&folded), [("a", Then::Fetch), ("b", Then::Fetch), ("c", Then::Bury)]);
    }

    #[test]
    fn a_mailbox_whose_bin_is_read_fetches_from_it() {
        let everywhere = [Place::Inbox, Place::Drafts, Place::Deleted, Place::Spam];
        let records = json!([
            one("labelsAdded", "a", &["TRASH"], &["TRASH"]),
            one("messagesAdded", "b", &["DRAFT"], &[]),
            one("messagesAdded", "c", &["SENT"], &[]),
        ]);
        let folded = folded(records, &everywhere);
        assert_eq!(short(&folded), [("a", Then::Fetch), ("b", Then::Fetch), ("c", Then::Bury)]);
    }
}
