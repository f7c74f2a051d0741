//! Files that become text: the program that reads them, the steps of a document, and what people ask for.
//!
//! A document with a file is `pending` when it is remembered, whatever door it came through (`attached`: those of events), and lane `document_queue`
//! (`lanes::read_file`) takes it from there. Foreign bytes are parsed by a process of their own (`child`), whose pages are kept as they come
//! (`store::files`). Pictures and speech are left to lane `recognise`, so that no text waits for a scan. `finish` makes the pages the document's text, and finds the fields of its paper.

mod asked;
pub mod attached;
pub(crate) mod child;
mod exported;
pub(crate) mod failed;
mod fields;
pub(crate) mod finish;
mod model;
mod preview;
pub mod reading;
mod said;

pub use asked::{Asking, Estimate, Told, again, again_all, estimate, pages, told};
pub use exported::all_fields;
pub use preview::{is_drawable, preview};
pub use said::{say, withdraw};
