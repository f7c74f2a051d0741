//! The recorded messages.

use crate::Fakes;
use crate::fixtures::records;

const MESSAGES: &str = include_str!("../../../../fixtures/outlook/messages.json");

/// Their folders are named as in paths.
pub(super) fn load(fakes: &Fakes) {
    records(MESSAGES, "/value").into_iter().for_each(|message| fakes.outlook().load(message));
}
