//! Clients as people look at them: by name, and one with the documents that its facts rest on.

use std::collections::HashMap;

use domain::text::has_nul;
use domain::{Caller, ClientId};
use serde_json::Value;
use store::clients::{self, Cited, Client, Filter};
use uuid::Uuid;

use crate::act::OrMissing as _;
use crate::{ActError, Env};

/// The number of other clients of the same name that are shown.
const MOST_ALIKE: i64 = 50;

/// Clients by name. `named` is a part of a name; `is_grouped` leaves one of each name, a company or customer and not the people there.
pub async fn list(
    env: &Env,
    caller: &Caller,
    named: Option<&str>,
    is_grouped: bool,
    limit: i64,
) -> Result<Vec<Client>, ActError> {
    if named.is_some_and(has_nul) {
        return Err(ActError::invalid("q has a NUL character"));
    }
    let named = named.map(str::trim).filter(|named| !named.is_empty());
    let filter = Filter { named, limit, is_grouped, ..Filter::default() };
    Ok(env.db.read(caller, async |tx| clients::list(tx, filter).await).await?)
}

/// Clients of exactly this name, in any case.
pub async fn named(env: &Env, caller: &Caller, name: &str, limit: i64) -> Result<Vec<Client>, ActError> {
    let filter = Filter { alike: Some(name), limit, ..Filter::default() };
    Ok(env.db.read(caller, async |tx| clients::list(tx, filter).await).await?)
}

/// A client, the documents that its facts cite, and others of its name.
#[derive(Clone, Debug)]
pub struct WholeClient {
    pub client: Client,
    pub cited: HashMap<Uuid, Cited>,
    /// The first other clients of the same name, people last.
    pub alike: Vec<Client>,
    /// Their total number.
    pub n_alike: i64,
}

pub async fn whole(env: &Env, caller: &Caller, id: ClientId) -> Result<WholeClient, ActError> {
    let loaded = env.db.read(caller, async |tx| {
        let only = Filter { only: Some(id), limit: 1, ..Filter::default() };
        let Some(client) = clients::list(tx, only).await?.pop() else { return Ok(None) };
        let cited = clients::cited(tx, &evidence(&client.evidence)).await?;
        let same = Filter { alike: Some(&client.client_name), limit: MOST_ALIKE + 1, ..Filter::default() };
        let alike = clients::list(tx, same).await?;
        Ok(Some((client, cited, alike)))
    });
    let (client, cited, mut alike) = loaded.await?.or_missing("client")?;
    let n_alike = alike.first().map_or(0, |first| first.n_alike - 1); // itself is one of them
    alike.retain(|other| other.id != client.id);
    Ok(WholeClient { client, cited: cited.into_iter().map(|cited| (cited.id, cited)).collect(), alike, n_alike })
}

impl WholeClient {
    /// The documents that a fact rests on, as far as they are still there.
    pub fn documents_of(&self, fact: &str) -> Vec<&Cited> {
        self.client.evidence.get(fact).into_iter().flat_map(ids).filter_map(|id| self.cited.get(&id)).collect()
    }
}

/// Every document that any fact rests on, once.
fn evidence(evidence: &Value) -> Vec<Uuid> {
    let mut all: Vec<Uuid> = evidence.as_object().into_iter().flat_map(|facts| facts.values()).flat_map(ids).collect();
    all.sort();
    all.dedup();
    all
}

fn ids(cited: &Value) -> impl Iterator<Item = Uuid> {
    cited.as_array().into_iter().flatten().filter_map(|id| id.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_document_is_cited_once_and_nonsense_is_passed_over() {
        let (a, b) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let stored = json!({ "open_deals": [b, a], "industry": [a], "broken": "no list", "odd": ["no id", 7] });
        assert_eq!(evidence(&stored), [a, b]);
        assert_eq!(evidence(&json!(null)), Vec::<Uuid>::new());
    }
}
