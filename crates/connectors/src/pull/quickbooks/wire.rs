//! QuickBooks' answers in its own spelling. `map` reads the records one by one; a fault is found before an answer is read here.

use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::map::Object;
use crate::pull::records::Records;

/// The answer to a query: the records of one entity.
#[derive(Deserialize)]
pub(super) struct Queried {
    #[serde(rename = "QueryResponse")]
    pub response: Entities,
}

/// The records of each entity. An entity without records is left out.
#[derive(Deserialize)]
pub(super) struct Entities {
    #[serde(rename = "Customer", default)]
    customers: Records,
    #[serde(rename = "Invoice", default)]
    invoices: Records,
}

impl Entities {
    pub fn of(&self, object: &Object) -> &Records {
        match object.name {
            "customer" => &self.customers,
            _ => &self.invoices,
        }
    }

    pub fn len(&self) -> usize {
        self.customers.len() + self.invoices.len()
    }
}

/// The answer to a request for changes.
#[derive(Deserialize)]
pub(super) struct Changed {
    #[serde(rename = "CDCResponse")]
    pub responses: Vec<ChangedEntities>,
    pub time: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct ChangedEntities {
    #[serde(rename = "QueryResponse")]
    pub entities: Vec<Entities>,
}

#[derive(Deserialize)]
pub(super) struct Company {
    #[serde(rename = "CompanyInfo")]
    pub info: CompanyInfo,
    pub time: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct CompanyInfo {
    #[serde(rename = "CompanyName")]
    pub name: Option<String>,
}

/// The time of an answer: by its body, else by its head.
pub(super) fn told_at(time: Option<&str>, answered_at: Option<DateTime<Utc>>) -> Option<DateTime<Utc>> {
    let told = time.and_then(|time| DateTime::parse_from_rfc3339(time).ok());
    told.map(|time| time.to_utc()).or(answered_at)
}
