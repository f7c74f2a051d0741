//! The passages that an answer may rest on.

use domain::Caller;
use domain::evidence::{self, addresses_a_machine};
use store::memory;
use uuid::Uuid;

use super::Place;
use crate::memory::recall::Hit;
use crate::{ActError, Env};

/// The number of documents that are searched for, and of those that are read with the chunks around the one that matched.
pub(super) const DOCUMENTS: usize = 12;
const WITH_NEIGHBOURS: usize = 4;
/// Of all passages together. Further ones are left out.
const MOST_CHARS: usize = 40_000;

pub(super) struct Passage {
    pub place: Place,
    pub text: String,
    /// Whether the search found this very passage.
    is_best: bool,
    /// Whether it gives orders to a machine.
    is_addressed: bool,
    pub evidence: evidence::Passage,
}

/// In the order of the search.
pub(super) struct Passages(Vec<Passage>);

impl Passages {
    /// Reads them in the caller's own transaction: what it may not read is not there.
    pub async fn read(env: &Env, caller: &Caller, hits: &[Hit]) -> Result<Self, ActError> {
        let around = |nth: usize| i32::from(nth < WITH_NEIGHBOURS);
        let best: Vec<(Uuid, Uuid, i32)> =
            hits.iter().enumerate().map(|(nth, hit)| (hit.document_id, hit.chunk_id, around(nth))).collect();
        let read = env.db.read(caller, async |tx| memory::passages(tx, &best).await).await?;
        let mut n_chars = 0;
        let fits = |passage: &memory::Passage| {
            n_chars += passage.text.chars().count();
            n_chars <= MOST_CHARS
        };
        Ok(Self(read.into_iter().take_while(fits).map(Passage::new).collect()))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those that may be cited.
    pub fn citable(&self) -> Vec<&Passage> {
        self.0.iter().filter(|passage| !passage.is_addressed).collect()
    }

    /// Those that may be cited, by the names that the model gets for them.
    pub fn named(&self) -> impl Iterator<Item = (String, &Passage)> {
        self.0.iter().filter(|passage| !passage.is_addressed).enumerate().map(|(nth, passage)| (name(nth), passage))
    }

    /// The passage with this name; none where the model made it up.
    pub fn cited(&self, name: &str) -> Option<&Passage> {
        self.named().find(|(known, _)| known == name).map(|(_, passage)| passage)
    }

    /// Those that the search found, without their neighbours.
    pub fn closest(&self) -> impl Iterator<Item = &Passage> {
        self.0.iter().filter(|passage| passage.is_best)
    }
}

impl Passage {
    fn new(read: memory::Passage) -> Self {
        let title = read.title.as_deref();
        Self {
            evidence: evidence::Passage::new(title, &read.text),
            is_addressed: addresses_a_machine(&read.text) || title.is_some_and(addresses_a_machine),
            is_best: read.is_best,
            place: Place {
                document_id: read.document_id,
                chunk_id: read.chunk_id,
                title: read.title,
                document_type: read.document_type,
                source_id: read.source_id,
                source_name: read.source_name,
                external_id: read.external_id,
                at: read.at,
            },
            text: read.text,
        }
    }
}

fn name(nth: usize) -> String {
    format!("p{}", nth + 1)
}
