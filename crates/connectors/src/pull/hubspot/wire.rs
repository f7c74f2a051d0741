//! HubSpot's answers in its own spelling. `map` reads the records one by one.

use serde::Deserialize;
use serde_json::Value;

use crate::pull::records::Records;

/// A page of a list or of a search.
#[derive(Deserialize)]
pub(super) struct List {
    pub results: Records,
    paging: Option<Paging>,
}

impl List {
    /// The token of the next page; none on the last one.
    pub fn next(&mut self) -> Option<String> {
        after(self.paging.take())
    }
}

#[derive(Deserialize)]
struct Paging {
    next: Option<Next>,
}

#[derive(Deserialize)]
struct Next {
    after: String,
}

fn after(paging: Option<Paging>) -> Option<String> {
    Some(paging?.next?.after)
}

/// The parts of a listed record that `map` does not read. Companies that do not fit in the list are on pages of their own.
#[derive(Deserialize)]
pub(super) struct Head {
    pub id: Value,
    associations: Option<HeadAssociations>,
}

#[derive(Deserialize)]
struct HeadAssociations {
    companies: Option<HeadCompanies>,
}

#[derive(Deserialize)]
struct HeadCompanies {
    paging: Option<Paging>,
}

impl Head {
    pub fn has_more_companies(self) -> bool {
        after(self.associations.and_then(|all| all.companies).and_then(|companies| companies.paging)).is_some()
    }
}

/// Records asked for by their ids.
#[derive(Deserialize)]
pub(super) struct Batch {
    pub results: Records,
    #[serde(default)]
    pub errors: Vec<BatchError>,
}

/// The companies of records asked for by their ids.
#[derive(Deserialize)]
pub(super) struct Associations {
    pub results: Vec<Linked>,
    #[serde(default)]
    pub errors: Vec<BatchError>,
}

#[derive(Deserialize)]
pub(super) struct Linked {
    pub from: From,
    pub to: Vec<To>,
    paging: Option<Paging>,
}

impl Linked {
    pub fn next(&mut self) -> Option<String> {
        after(self.paging.take())
    }
}

#[derive(Deserialize)]
pub(super) struct From {
    pub id: Value,
}

#[derive(Deserialize)]
pub(super) struct To {
    #[serde(rename = "toObjectId", alias = "id")]
    pub id: Value,
}

/// A record of a batch that failed (207).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BatchError {
    category: Option<String>,
    sub_category: Option<String>,
}

impl BatchError {
    /// Whether there is no such record, or nothing belongs to it. That is a normal answer.
    pub fn is_absence(&self) -> bool {
        let words = [self.category.as_deref(), self.sub_category.as_deref()];
        words.into_iter().flatten().any(|word| word.ends_with("NOT_FOUND") || word.ends_with("NO_ASSOCIATIONS_FOUND"))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Details {
    pub portal_id: u64,
}
