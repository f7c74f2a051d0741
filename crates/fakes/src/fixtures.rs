//! The fixtures: the records of a small equipment business at each provider, page by page as the providers answered.

use serde_json::Value;

/// A kind of record, and its pages.
pub(crate) type Fixture = (&'static str, &'static str);

/// The records of all pages.
pub(crate) fn records(pages: &str, pointer: &str) -> Vec<Value> {
    let pages: Vec<Value> = serde_json::from_str(pages).expect("pages of JSON");
    pages.iter().filter_map(|page| page.pointer(pointer)?.as_array()).flatten().cloned().collect()
}
