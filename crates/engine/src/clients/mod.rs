//! Clients as people look at them: by name, and one with its facts, people, documents and what people decided about it.

pub mod curated;
pub mod decide;
pub(crate) mod matching;
pub mod merged;

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use domain::text::has_nul;
use domain::{Caller, ClientId, ContactId};
use serde_json::Value;
use store::clients::decisions::{self, Decision};
use store::clients::{self, Cited, ClientContact, ClientOfContact, ClientRecord, Dated, Filter};
use uuid::Uuid;

use self::merged::Fact;
use crate::act::OrMissing as _;
use crate::{ActError, Env};

/// The number of a client's records whose facts are merged; of people, that are shown.
const MOST_RECORDS: i64 = 50;
const MOST_PEOPLE: i64 = 25;

/// A client in a list.
#[derive(Clone, Debug)]
pub struct Summary {
    pub id: ClientId,
    pub name: String,
    pub facts: Vec<Fact>,
    /// The sources that know it, by name.
    pub sources: Vec<String>,
    pub n_people: i64,
    pub updated_at: DateTime<Utc>,
}

/// A page of clients by name.
#[derive(Clone, Debug)]
pub struct Page {
    pub clients: Vec<Summary>,
    /// The client after which the next page begins; none on the last.
    pub next_after: Option<ClientId>,
    /// The number of clients that the filter leaves, up to [`store::queue::MOST_COUNTED`].
    pub n: i64,
    /// The number of records that are in no list yet, because it is not known of which client they are; as far as the same.
    pub n_unmatched: i64,
}

/// Clients by name. `text` is part of a name, a domain or an e-mail address.
pub async fn list(
    env: &Env,
    caller: &Caller,
    text: Option<&str>,
    after: Option<ClientId>,
    limit: i64,
) -> Result<Page, ActError> {
    if text.is_some_and(has_nul) {
        return Err(ActError::invalid("q has a NUL character"));
    }
    let text = text.map(str::trim).filter(|text| !text.is_empty());
    let filter = Filter { text, after, limit, ..Filter::default() };
    page(env, caller, filter).await
}

async fn page(env: &Env, caller: &Caller, filter: Filter<'_>) -> Result<Page, ActError> {
    let loaded = env.db.read(caller, async |tx| {
        // One more than wanted tells whether there is another page.
        let mut listed = clients::list(tx, Filter { limit: filter.limit + 1, ..filter }).await?;
        let has_more = i64::try_from(listed.len()).is_ok_and(|n| n > filter.limit);
        listed.truncate(usize::try_from(filter.limit).unwrap_or(usize::MAX));
        let ids: Vec<Uuid> = listed.iter().map(|client| client.id).collect();
        let mut records = clients::records(tx, &ids, false, MOST_RECORDS).await?;
        records.extend(clients::records(tx, &ids, true, 1).await?);
        let (n, n_unmatched) = (clients::count(tx, filter).await?, clients::count_unmatched(tx).await?);
        Ok((listed, has_more, records, n, n_unmatched))
    });
    let (listed, has_more, records, n, n_unmatched) = loaded.await?;
    let mut of_client: HashMap<Uuid, Vec<ClientRecord>> = HashMap::new();
    for record in records {
        of_client.entry(record.client_id).or_default().push(record);
    }
    let next_after = listed.last().filter(|_| has_more).map(|last| ClientId(last.id));
    let clients = listed.into_iter().map(|listed| {
        let records = of_client.remove(&listed.id).unwrap_or_default();
        let mut sources: Vec<String> = records.iter().filter_map(|record| record.source_name.clone()).collect();
        sources.sort();
        sources.dedup();
        Summary {
            id: ClientId(listed.id),
            name: listed.client_name,
            facts: facts_of(&records, listed.n_people),
            sources,
            n_people: listed.n_people,
            updated_at: records.iter().map(|record| record.updated_at).max().unwrap_or(listed.updated_at),
        }
    });
    Ok(Page { clients: clients.collect(), next_after, n, n_unmatched })
}

/// The facts of a client: those of its organisations and those that people wrote. A person alone is told by their own record.
fn facts_of(records: &[ClientRecord], n_people: i64) -> Vec<Fact> {
    let is_of_client = |record: &&ClientRecord| !record.is_person() || n_people == 1;
    let has_organisation = records.iter().any(|record| !record.is_person() && !record.is_curated());
    let told: Vec<ClientRecord> = records
        .iter()
        .filter(|record| if has_organisation { !record.is_person() } else { is_of_client(record) })
        .cloned()
        .collect();
    merged::facts(&told)
}

/// Finds clients by what a person typed: the id of one or of one of its records, else exactly a name, else part of one.
pub async fn find(env: &Env, caller: &Caller, text: &str) -> Result<Vec<Summary>, ActError> {
    let text = text.trim();
    if has_nul(text) || text.is_empty() {
        return Err(ActError::invalid("name a client"));
    }
    if let Ok(id) = text.parse::<ClientId>() {
        let whole = whole(env, caller, id).await?;
        return Ok(vec![whole.summary()]);
    }
    let named = page(env, caller, Filter { name: Some(text), limit: 20, ..Filter::default() }).await?.clients;
    if !named.is_empty() {
        return Ok(named);
    }
    Ok(list(env, caller, Some(text), None, 20).await?.clients)
}

/// The one client that a person typed. An error names those that it could be.
pub async fn find_one(env: &Env, caller: &Caller, text: &str) -> Result<ClientId, ActError> {
    let found = find(env, caller, text).await?;
    match found.as_slice() {
        [] => Err(ActError::NotFound("client")),
        [one] => Ok(one.id),
        several => {
            let names: Vec<String> =
                several.iter().take(5).map(|client| format!("{} ({})", client.name, client.id)).collect();
            Err(ActError::conflict(format!("several clients have that name: {}; give the id", names.join("; "))))
        }
    }
}

/// A client with everything that its page shows.
#[derive(Clone, Debug)]
pub struct WholeClient {
    pub id: ClientId,
    pub name: String,
    /// Its records of organisations and what people wrote; the one that leads first.
    pub records: Vec<ClientRecord>,
    pub facts: Vec<Fact>,
    /// The documents that facts cite.
    pub cited: HashMap<Uuid, Cited>,
    /// The first people of it, and how many there are.
    pub people: Vec<ClientRecord>,
    pub n_people: i64,
    pub contacts: Vec<ClientContact>,
    pub decisions: Vec<Decided>,
    pub updated_at: DateTime<Utc>,
}

/// A decision about one of its records, with the names of both.
#[derive(Clone, Debug)]
pub struct Decided {
    pub decision: Decision,
    pub record_name: String,
    pub other_name: Option<String>,
}

impl Decided {
    pub fn in_words(&self) -> String {
        let name = &self.record_name;
        match (decide::is_contact(&self.decision.record), &self.other_name) {
            (true, Some(other)) => format!("{name} belongs to {other}"),
            (true, None) => format!("{name} belongs to no client"),
            (false, Some(other)) => format!("{name} and {other} are one client"),
            (false, None) => format!("{name} is matched with no other record"),
        }
    }
}

/// The decisions about these records and contacts, oldest first.
async fn decided(tx: &mut store::Tx, references: &[String]) -> store::Result<Vec<Decided>> {
    let mut decided = Vec::new();
    for decision in decisions::about(tx, references).await? {
        let record_name = decide::name_of(tx, &decision.record).await?;
        let other_name = match &decision.other {
            Some(other) => Some(decide::name_of(tx, other).await?),
            None => None,
        };
        decided.push(Decided { decision, record_name, other_name });
    }
    Ok(decided)
}

/// A client, by its id or that of one of its records.
pub async fn whole(env: &Env, caller: &Caller, id: ClientId) -> Result<WholeClient, ActError> {
    let loaded = env.db.read(caller, async |tx| {
        let Some(id) = clients::of_record(tx, id).await? else { return Ok(None) };
        let records = clients::records(tx, &[id.0], false, MOST_RECORDS).await?;
        let people = clients::records(tx, &[id.0], true, MOST_PEOPLE).await?;
        let n_people = clients::count_people(tx, id).await?;
        let contacts = clients::contacts(tx, id, MOST_PEOPLE).await?;
        let all: Vec<&ClientRecord> = records.iter().chain(&people).collect();
        let facts = facts_of(&all.iter().copied().cloned().collect::<Vec<_>>(), n_people);
        let cited = clients::cited(tx, &cited_by(&facts)).await?;
        let mut references: Vec<String> = all.iter().map(|record| record.reference()).collect();
        references.extend(contacts.iter().map(|contact| decide::contact_reference(ContactId(contact.id))));
        let decisions = decided(tx, &references).await?;
        Ok(Some((id, records, people, n_people, contacts, facts, cited, decisions)))
    });
    let (id, records, people, n_people, contacts, facts, cited, decisions) = loaded.await?.or_missing("client")?;
    let leads = records.iter().chain(&people).find(|record| record.id == id.0);
    let name = leads.map(|record| record.client_name.clone()).unwrap_or_default();
    let updated_at = records.iter().chain(&people).map(|record| record.updated_at).max().unwrap_or_default();
    let cited = cited.into_iter().map(|cited| (cited.id, cited)).collect();
    Ok(WholeClient { id, name, records, facts, cited, people, n_people, contacts, decisions, updated_at })
}

/// Every document that any fact rests on, once.
fn cited_by(facts: &[Fact]) -> Vec<Uuid> {
    let mut all: Vec<Uuid> = facts
        .iter()
        .flat_map(|fact| std::iter::once(fact).chain(&fact.also))
        .flat_map(|fact| fact.documents.clone())
        .collect();
    all.sort();
    all.dedup();
    all
}

impl WholeClient {
    /// The documents that a fact rests on, as far as they are still there.
    pub fn documents_of(&self, fact: &Fact) -> Vec<&Cited> {
        fact.documents.iter().filter_map(|id| self.cited.get(id)).collect()
    }

    pub fn summary(&self) -> Summary {
        let mut sources: Vec<String> =
            self.records.iter().chain(&self.people).filter_map(|record| record.source_name.clone()).collect();
        sources.sort();
        sources.dedup();
        Summary {
            id: self.id,
            name: self.name.clone(),
            facts: self.facts.clone(),
            sources,
            n_people: self.n_people,
            updated_at: self.updated_at,
        }
    }
}

/// The reason why a record or contact is of its client, in words. None: it leads the client.
pub fn why(matched_by: Option<&Value>) -> Option<String> {
    let matched_by = matched_by?;
    let key = matched_by["key"].as_str().unwrap_or_default();
    Some(match matched_by["by"].as_str()? {
        "email" => format!("matched by e-mail {key}"),
        "domain" => format!("matched by domain {key}"),
        "name" => "matched by name".into(),
        "near" => "matched by a name that is nearly the same".into(),
        "people" => "matched by the addresses of its people".into(),
        "record" => "named by its record".into(),
        "person" => "joined by a person".into(),
        _ => return None,
    })
}

/// A page of a client's documents and activities, newest first, and the one before which the next page begins. `files`: only files and documents.
pub async fn timeline(
    env: &Env,
    caller: &Caller,
    id: ClientId,
    files: bool,
    before: Option<Uuid>,
    limit: i64,
) -> Result<(Vec<Dated>, Option<Uuid>), ActError> {
    // Records that say something of clients are facts, not files.
    let providers = env.providers.all().iter();
    let types: Vec<String> = providers
        .flat_map(|provider| {
            provider.document_types.iter().filter(|kind| provider.clients.iter().all(|(known, _)| known != *kind))
        })
        .map(|kind| (*kind).to_owned())
        .collect();
    let found = env.db.read(caller, async |tx| {
        let Some(id) = clients::of_record(tx, id).await? else { return Ok(None) };
        clients::timeline(tx, id, &types, files, before, limit).await.map(Some)
    });
    let listed = found.await?.or_missing("client")?;
    let is_full = i64::try_from(listed.len()).is_ok_and(|n| n >= limit);
    let next = listed.last().filter(|_| is_full).map(|last| last.id);
    Ok((listed, next))
}

/// The client that a contact belongs to, and what a person said about that.
#[derive(Clone, Debug)]
pub struct Belonging {
    pub client: Option<ClientOfContact>,
    /// Its addresses and its company decide nothing as long as this stands.
    pub said: Option<Decided>,
}

/// The client of a contact.
pub async fn of_contact(env: &Env, caller: &Caller, id: ContactId) -> Result<Belonging, ActError> {
    let client = env.db.session(async |conn| clients::of_contact(conn, caller.tenant_id, id).await).await?;
    let about = [decide::contact_reference(id)];
    let said = env.db.read(caller, async |tx| decided(tx, &about).await).await?;
    Ok(Belonging { client, said: said.into_iter().next_back() })
}
