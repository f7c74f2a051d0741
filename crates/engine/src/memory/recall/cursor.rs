//! Cursors: where the next page of a search begins. A cursor is sealed by the vault for one tenant, so that nobody can read, change or make one.
//!
//! It holds the time of the first page and the documents shown so far. Later pages leave out documents that were stored after that time, and
//! those that were shown: whatever arrives or changes its place between two pages, none is shown twice, and none of those that were there is missed
//! as long as it is among the candidates.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use domain::TenantId;
use sha2::{Digest as _, Sha256};
use store::vault::Vault;
use uuid::Uuid;

use super::Query;
use crate::ActError;

const PURPOSE: &str = "search";
const VERSION: u8 = 1;
/// Of a document's id: its last bytes, which are random. A million documents hardly have two of the same.
const ID_BYTES: usize = 5;
const HASH_BYTES: usize = 16;
/// A longer text is no cursor: a search has a few hundred candidates.
const MOST_CHARS: usize = 20_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    /// The time of the first page.
    pub began_at: DateTime<Utc>,
    shown: Vec<[u8; ID_BYTES]>,
}

impl Cursor {
    pub fn new(began_at: DateTime<Utc>) -> Self {
        Self { began_at, shown: Vec::new() }
    }

    /// Whether an earlier page has shown the document, by itself or among its copies.
    pub fn has_shown(&self, document_id: Uuid) -> bool {
        self.shown.contains(&short(document_id))
    }

    pub fn add(&mut self, document_id: Uuid) {
        self.shown.push(short(document_id));
    }

    pub fn seal(&self, vault: &Vault, tenant_id: TenantId, query: &Query) -> Result<String, ActError> {
        let mut bytes = vec![VERSION];
        bytes.extend(self.began_at.timestamp_micros().to_be_bytes());
        bytes.extend(hash(query));
        bytes.extend(self.shown.iter().flatten());
        Ok(URL_SAFE_NO_PAD.encode(vault.seal_token(tenant_id, PURPOSE, &bytes)?))
    }

    /// Opens a cursor that this installation made for this tenant and question.
    pub fn open(vault: &Vault, tenant_id: TenantId, query: &Query, text: &str) -> Result<Self, ActError> {
        let unknown =
            || ActError::invalid("the cursor is none of this search's: leave it out to begin with the first page");
        let sealed =
            Some(text).filter(|text| text.len() <= MOST_CHARS).and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
        let bytes = sealed.and_then(|sealed| vault.open_token(tenant_id, PURPOSE, &sealed)).ok_or_else(unknown)?;
        let (version, rest) = bytes.split_first().ok_or_else(unknown)?;
        let (micros, rest) = rest.split_first_chunk::<8>().ok_or_else(unknown)?;
        let (asked, shown) = rest.split_first_chunk::<HASH_BYTES>().ok_or_else(unknown)?;
        if *version != VERSION || *asked != hash(query) {
            return Err(unknown());
        }
        let began_at = DateTime::from_timestamp_micros(i64::from_be_bytes(*micros)).ok_or_else(unknown)?;
        let (shown, _) = shown.as_chunks::<ID_BYTES>();
        Ok(Self { began_at, shown: shown.to_vec() })
    }
}

/// Of everything that decides which documents are found and in which order. The number of hits on a page may change.
fn hash(query: &Query) -> [u8; HASH_BYTES] {
    let Query { text, filters, mode, sort, k: _, cursor: _, with_facets: _ } = query;
    let asked = serde_json::json!([text, filters, mode, sort]).to_string();
    let whole: [u8; 32] = Sha256::digest(asked).into();
    let mut hash = [0; HASH_BYTES];
    hash.copy_from_slice(&whole[..HASH_BYTES]);
    hash
}

fn short(document_id: Uuid) -> [u8; ID_BYTES] {
    let mut short = [0; ID_BYTES];
    short.copy_from_slice(&document_id.as_bytes()[16 - ID_BYTES..]);
    short
}

#[cfg(test)]
mod tests {
    use domain::Secret;
    use store::memory::{Filters, Mode, Sort};

    use super::*;

    #[test]
    fn a_cursor_opens_for_its_own_tenant_and_question_alone() {
        let vault = Vault::new(&store::vault::new_key()).expect("a key");
        let (ours, theirs) = (TenantId(Uuid::from_u128(1)), TenantId(Uuid::from_u128(2)));
        let query = Query { text: "late delivery".into(), k: 10, ..Query::default() };
        let mut cursor = Cursor::new(DateTime::UNIX_EPOCH);
        cursor.add(Uuid::from_u128(7));
        let sealed = cursor.seal(&vault, ours, &query).expect("sealed");
        let opened = Cursor::open(&vault, ours, &query, &sealed).expect("opened");
        assert_eq!(opened, cursor);
        assert!(opened.has_shown(Uuid::from_u128(7)) && !opened.has_shown(Uuid::from_u128(8)));
        assert!(Cursor::open(&vault, ours, &Query { k: 50, ..query.clone() }, &sealed).is_ok(), "another size of page");

        let filters = Filters { contact: Some(7), ..Filters::default() };
        for (what, tenant, query, text) in [
            ("another tenant", theirs, query.clone(), sealed.clone()),
            ("another question", ours, Query { text: "late".into(), ..query.clone() }, sealed.clone()),
            ("another filter", ours, Query { filters, ..query.clone() }, sealed.clone()),
            ("another mode", ours, Query { mode: Mode::Keyword, ..query.clone() }, sealed.clone()),
            ("another order", ours, Query { sort: Sort::Date, ..query.clone() }, sealed.clone()),
            (
                "changed",
                ours,
                query.clone(),
                sealed.replacen(&sealed[..1], if sealed.starts_with('A') { "B" } else { "A" }, 1),
            ),
            ("cut", ours, query.clone(), sealed[..sealed.len() - 2].to_owned()),
            ("none", ours, query.clone(), String::new()),
            ("something else", ours, query.clone(), "' or 1=1 --".to_owned()),
            ("huge", ours, query.clone(), "A".repeat(MOST_CHARS + 1)),
        ] {
            assert!(matches!(Cursor::open(&vault, tenant, &query, &text), Err(ActError::Invalid(_))), "{what}");
        }
        let elsewhere = Vault::new(&Secret::new(store::vault::new_key().reveal().to_owned())).expect("a key");
        assert!(Cursor::open(&elsewhere, ours, &query, &sealed).is_err(), "another installation");
    }
}
