//! Facts of clients, made from their records. Nothing is added up as records come: the facts are made of all of them each time, so a deal
//! before its company, an invoice twice or a deleted deal leave no trace but the right one. Each provider's folder has the rules for its own
//! records.

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use domain::matching::{Identity, Kind};
use serde_json::{Map, Value, json};

use super::record::time;
use super::spec::{Provider, Says};

/// The facts of one client, made from its records alone: the same records give the same facts in any order.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientFacts {
    pub client_name: String,
    pub industry: Option<String>,
    pub summary: Option<String>,
    /// Named facts, as they are stored in `client_intelligence.key_facts`.
    pub key_facts: serde_json::Map<String, Value>,
    /// The records that each fact rests on, by external id: `industry`, `summary` and the names of `key_facts`.
    pub evidence: Vec<(String, Vec<String>)>,
    /// By which the record is matched with those of other sources.
    pub identity: Identity,
}

/// A stored record, for [`client_facts`].
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    pub external_id: &'a str,
    pub document_type: &'a str,
    pub payload: &'a Value,
    pub source_updated_at: Option<DateTime<Utc>>,
}

/// The types whose records are rolled up into the clients that they mention.
pub fn rolled_up(providers: &[Provider]) -> Vec<&'static str> {
    let says = providers.iter().flat_map(|provider| provider.clients);
    says.filter(|(_, says)| matches!(says, Says::IsOfClients)).map(|(document_type, _)| *document_type).collect()
}

/// The facts of the client that `own` is; none when it is no client, or has no name. `related` is every record of the same source that is
/// not deleted and mentions `own`, or that `own` mentions.
pub fn client_facts(providers: &[Provider], own: Told<'_>, related: &[Told<'_>]) -> Option<ClientFacts> {
    let mut says = providers.iter().flat_map(|provider| provider.clients);
    let (_, says) = says.find(|(document_type, _)| *document_type == own.document_type)?;
    let Says::IsClient(facts) = says else { return None };
    let mut related = related.to_vec();
    related.sort_by(|a, b| a.external_id.cmp(b.external_id));
    related.dedup_by(|a, b| a.external_id == b.external_id);
    facts(own, &related)
}

/// Facts in the making.
pub struct Facts(pub ClientFacts);

impl Facts {
    pub fn new(client_name: String) -> Self {
        let identity = Identity { names: vec![client_name.clone()], ..Identity::default() };
        let (key_facts, evidence) = (Map::new(), Vec::new());
        Self(ClientFacts { client_name, industry: None, summary: None, key_facts, evidence, identity })
    }

    /// The record is a person at this company, and belongs to these records of the same source.
    pub fn person(&mut self, company: Option<String>, of: Vec<String>) {
        self.0.identity =
            Identity { kind: Kind::Person, names: company.into_iter().collect(), of, ..Identity::default() };
    }

    /// Another name of the client.
    pub fn name(&mut self, name: Option<String>) {
        let new = name.filter(|name| !self.0.identity.names.contains(name));
        self.0.identity.names.extend(new);
    }

    /// A domain of the client's own.
    pub fn domain(&mut self, domain: Option<String>) {
        self.0.identity.domains.extend(domain);
    }

    pub fn email(&mut self, email: Option<String>) {
        self.0.identity.emails.extend(email);
    }

    /// `from` is the external id of the record that says so.
    pub fn industry(&mut self, industry: String, from: &str) {
        self.0.industry = Some(industry);
        self.rests_on("industry", &[from]);
    }

    pub fn summary(&mut self, summary: Option<String>, from: &str) {
        let Some(summary) = summary else { return };
        self.0.summary = Some(summary);
        self.rests_on("summary", &[from]);
    }

    /// Adds a named fact; nothing where there is no value.
    pub fn key(&mut self, name: &str, value: Option<impl Into<Value>>, from: &[&str]) {
        let Some(value) = value.map(Into::into).filter(|value| !value.is_null()) else { return };
        self.0.key_facts.insert(name.to_owned(), value);
        self.rests_on(name, from);
    }

    fn rests_on(&mut self, name: &str, from: &[&str]) {
        self.0.evidence.push((name.to_owned(), from.iter().map(|id| (*id).to_owned()).collect()));
    }
}

/// Reads a time, or a day.
pub(super) fn moment(text: &str) -> Option<DateTime<Utc>> {
    let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    day.map(|day| day.and_time(NaiveTime::MIN).and_utc()).or_else(|| time(Some(&json!(text))))
}

/// Sorts ids as numbers: `deal:9` before `deal:10`.
pub(super) fn in_order(external_id: &str) -> (usize, &str) {
    (external_id.len(), external_id)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::{ALL, RawItem};
    use super::*;

    pub fn told(raw: &RawItem) -> Told<'_> {
        Told {
            external_id: &raw.external_id,
            document_type: raw.document_type,
            payload: &raw.payload,
            source_updated_at: raw.source_updated_at,
        }
    }

    /// The facts, which must be the same in every order, and whether or not a record is told twice.
    pub fn facts(own: &RawItem, related: &[RawItem]) -> Option<ClientFacts> {
        let mut shuffled: Vec<Told<'_>> = related.iter().map(told).collect();
        let facts = client_facts(ALL, told(own), &shuffled);
        for turn in 0..12_usize {
            let length = shuffled.len();
            if length > 1 {
                shuffled.rotate_left(1);
                shuffled.swap(turn % length, (turn * 7 + 3) % length);
            }
            assert_eq!(client_facts(ALL, told(own), &shuffled), facts, "in another order");
        }
        let twice: Vec<Told<'_>> = shuffled.iter().chain(&shuffled).chain([&told(own)]).copied().collect();
        assert_eq!(client_facts(ALL, told(own), &twice), facts, "told twice");
        facts
    }

    pub fn evidence<'a>(facts: &'a ClientFacts, name: &str) -> Vec<&'a str> {
        let found = facts.evidence.iter().find(|(fact, _)| fact == name);
        found.map(|(_, ids)| ids.iter().map(String::as_str).collect()).unwrap_or_default()
    }

    #[test]
    fn records_of_a_type_that_says_nothing_make_no_client() {
        let payload = json!({ "name": "Acme" });
        for document_type in ROLLED_UP.iter().chain(&["google_drive.doc", "nobody.knows"]) {
            let own = Told { external_id: "x:1", document_type, payload: &payload, source_updated_at: None };
            assert_eq!(client_facts(ALL, own, &[]), None, "{document_type}");
        }
        assert_eq!(rolled_up(ALL), ROLLED_UP);
    }

    const ROLLED_UP: [&str; 2] = ["hubspot.deal", "quickbooks.invoice"];

    #[test]
    fn days_and_times_are_moments() {
        for (text, expected) in [
            ("2026-11-20", Some("2026-11-20T00:00:00+00:00")),
            ("2026-12-01T00:00:00Z", Some("2026-12-01T00:00:00+00:00")),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(moment(text).map(|at| at.to_rfc3339()).as_deref(), expected, "{text}");
        }
    }
}
