//! The recorded mailbox of the office.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use serde_json::Value;

use super::handle::message;
use super::{GMAIL, Mailbox, Mailboxes, SYSTEM};
use crate::fixtures::records;
use crate::{Fakes, clock, lock};

const THREADS: &str = include_str!("../../../../fixtures/gmail/threads.json");

/// Loads the messages in the order in which they came in.
pub(super) fn load(fakes: &Fakes) {
    let threads = records(THREADS, "/threads");
    let messages = threads.iter().filter_map(|thread| thread["messages"].as_array()).flatten();
    let mut messages: Vec<&Value> = messages.collect();
    messages.sort_by_key(|message| received_ms(message));
    let mut boxes = lock(fakes.shared.records::<Mailboxes>());
    let mailbox = boxes.of(GMAIL.default_account());
    messages.into_iter().for_each(|message| mailbox.load(message));
}

fn received_ms(message: &Value) -> i64 {
    message["internalDate"].as_str().and_then(|ms| ms.parse().ok()).unwrap_or_default()
}

impl Mailbox {
    fn load(&mut self, recorded: &Value) {
        let (Some(id), Some(raw)) = (recorded["id"].as_str(), recorded["raw"].as_str()) else { return };
        let raw = URL_SAFE.decode(raw).expect("base64 in a fixture");
        let labels: Vec<&str> =
            recorded["labelIds"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for label in labels.iter().filter(|label| !SYSTEM.contains(label)) {
            self.labels.insert((*label).to_owned(), (*label).to_owned());
        }
        let at = clock::at_ms(received_ms(recorded));
        self.add(id, message(id, raw, &labels, recorded["threadId"].as_str(), at));
    }
}
