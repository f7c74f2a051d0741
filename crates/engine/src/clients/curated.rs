//! Facts that people write about clients. They are documents like every other, found by search, and nothing that is derived overwrites them.

use chrono::{DateTime, Utc};
use domain::document::CLIENT_PREFIX;
use domain::matching::{Identity, Kind};
use domain::text::has_nul;
use domain::{Caller, ClientId, DocumentType, Record};
use serde_json::{Map, Value, json};
use store::clients::curated::{self, Curated};
use store::clients::{ClientRecord, matching as rows};
use store::sources;

use super::WholeClient;
use super::matching::rematch;
use crate::memory::remember;
use crate::pull::words::facts::{label, value_in_words};
use crate::{ActError, Env};

const MOST_CHARACTERS: usize = 5_000;
const MOST_FACTS: usize = 50;
/// The number of records to one of which the facts belong.
const MOST_RECORDS: usize = 20;

/// A person says something of a client, or corrects it: `industry`, `summary`, or a fact of any name.
pub async fn say(
    env: &Env,
    caller: &Caller,
    client: ClientId,
    fact: &str,
    value: &str,
) -> Result<WholeClient, ActError> {
    let (fact, value) = (checked_fact(fact)?, value.trim());
    if value.is_empty() || value.chars().count() > MOST_CHARACTERS || has_nul(value) {
        return Err(ActError::Invalid(format!("a fact has 1 to {MOST_CHARACTERS} characters")));
    }
    write(env, caller, client, &fact, Some(value)).await
}

/// Takes back what a person said of a client. What is derived from records stays.
pub async fn withdraw(env: &Env, caller: &Caller, client: ClientId, fact: &str) -> Result<WholeClient, ActError> {
    write(env, caller, client, &checked_fact(fact)?, None).await
}

/// The name under which a fact is stored: "Opening hours" is `opening_hours`.
fn checked_fact(fact: &str) -> Result<String, ActError> {
    let name = fact.split_whitespace().collect::<Vec<_>>().join("_").to_lowercase();
    let is_plain = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    if (1..=60).contains(&name.chars().count()) && name.chars().all(is_plain) {
        return Ok(name);
    }
    Err(ActError::invalid("a fact's name has 1 to 60 letters, digits, hyphens and spaces"))
}

async fn write(
    env: &Env,
    caller: &Caller,
    client: ClientId,
    fact: &str,
    value: Option<&str>,
) -> Result<WholeClient, ActError> {
    let whole = super::whole(env, caller, client).await?;
    let has = |record: &&ClientRecord| record.is_curated() && of(record, fact).is_some();
    let known = whole.records.iter().find(has);
    if value.is_none() && known.is_none() {
        return Err(ActError::NotFound("fact that a person wrote about this client"));
    }
    let known = known.or_else(|| whole.records.iter().find(|record| record.is_curated()));
    let at = env.clock.now();
    let row = changed(&whole, known, fact, value, caller, at)?;
    let (tenant_id, before) = (caller.tenant_id, known.map(|record| record.said.clone()));
    let mut conn = env.db.acquire().await?;
    let source_id = sources::ensure_manual(&mut conn, tenant_id).await?;
    drop(conn);
    // By its facts: one that was written before there were names of authors has more than `said` knows.
    let is_gone =
        row.industry.is_none() && row.summary.is_none() && row.key_facts.as_object().is_none_or(Map::is_empty);
    let text = if is_gone { String::new() } else { in_words(&row) };
    let record = Record {
        title: Some(row.client_name.clone()),
        source_metadata: json!({ "client": row.id, "by": "a person" }),
        is_deleted: is_gone,
        ..Record::new(source_id, format!("{CLIENT_PREFIX}hand/{}", row.id), DocumentType::Client, text)
    };
    // Before its document, in the order in which forgetting takes both.
    let begin = || async {
        let mut tx = env.db.begin().await?;
        rows::lock(&mut tx, tenant_id).await?;
        Ok(tx)
    };
    let (mut tx, batch) = remember(env, tenant_id, vec![record], begin).await.map_err(ActError::Failed)?;
    let is_written = if is_gone {
        curated::remove(&mut tx, tenant_id, row.id, before.as_ref().unwrap_or(&Value::Null)).await?
    } else {
        let document_id = batch.records.first().map(|document| document.id.0);
        curated::write(&mut tx, env.clock.sql(), tenant_id, &Curated { document_id, ..row }, before.as_ref()).await?
    };
    if !is_written {
        return Err(ActError::conflict("somebody else wrote about this client meanwhile: look again"));
    }
    let keys: Vec<String> = whole.records.iter().map(|record| format!("ref:{}", record.reference())).collect();
    rematch(&mut tx, env.providers.all(), tenant_id, &[whole.id.0], &keys).await?;
    tx.commit().await?;
    super::whole(env, caller, whole.id).await
}

/// The text that a person wrote for a fact.
fn of<'a>(record: &'a ClientRecord, fact: &str) -> Option<&'a str> {
    match fact {
        "industry" => record.industry.as_deref(),
        "summary" => record.summary.as_deref(),
        other => record.key_facts.get(other).and_then(Value::as_str),
    }
}

/// The row with one fact changed.
fn changed(
    whole: &WholeClient,
    known: Option<&ClientRecord>,
    fact: &str,
    value: Option<&str>,
    caller: &Caller,
    at: DateTime<Utc>,
) -> Result<Curated, ActError> {
    let object = |value: Option<&Value>| value.and_then(Value::as_object).cloned().unwrap_or_default();
    let (mut key_facts, mut said) =
        (object(known.map(|record| &record.key_facts)), object(known.map(|record| &record.said)));
    let (mut industry, mut summary) =
        (known.and_then(|record| record.industry.clone()), known.and_then(|record| record.summary.clone()));
    match (fact, value) {
        ("industry", value) => industry = value.map(str::to_owned),
        ("summary", value) => summary = value.map(str::to_owned),
        (other, Some(value)) => _ = key_facts.insert(other.to_owned(), value.into()),
        (other, None) => _ = key_facts.remove(other),
    }
    match value {
        Some(_) => _ = said.insert(fact.to_owned(), json!({ "by": caller.key_name, "at": at })),
        None => _ = said.remove(fact),
    }
    if said.len() > MOST_FACTS {
        return Err(ActError::Invalid(format!(
            "a client has at most {MOST_FACTS} facts that people wrote: withdraw one"
        )));
    }
    let records = whole.records.iter().chain(&whole.people).filter(|record| !record.is_curated());
    let of = records.map(ClientRecord::reference).take(MOST_RECORDS).collect();
    // One that a person wrote as a client of its own keeps its name, also where it was matched with others.
    let own = known.filter(|record| record.id == whole.id.0 || record.kind == "organisation");
    let names = own.map(|record| record.client_name.clone()).into_iter().collect();
    let kind = if own.is_some() { Kind::Organisation } else { Kind::Curated };
    let identity = Identity { kind, of, names, ..Identity::default() };
    Ok(Curated {
        id: known.map_or_else(|| ClientId::new().0, |record| record.id),
        client_name: own.map_or_else(|| whole.name.clone(), |record| record.client_name.clone()),
        industry,
        summary,
        key_facts: Value::Object(key_facts),
        said: Value::Object(said),
        identity: json!(identity),
        document_id: None,
    })
}

/// The text by which search finds it, with who said so.
fn in_words(row: &Curated) -> String {
    let by = |fact: &str| {
        let said = &row.said[fact];
        let day = said["at"].as_str().and_then(|at| at.parse::<DateTime<Utc>>().ok());
        let on = day.map(|day| format!(" on {}", day.format("%-d %B %Y"))).unwrap_or_default();
        format!("(said by {}{on})", said["by"].as_str().unwrap_or("a person"))
    };
    let mut lines = Vec::new();
    lines.extend(row.summary.as_ref().map(|text| format!("{text} {}", by("summary"))));
    lines.extend(
        row.industry.as_ref().map(|text| format!("Industry: {} {}", value_in_words("industry", text), by("industry"))),
    );
    for (fact, value) in row.key_facts.as_object().into_iter().flatten() {
        lines.push(format!("{}: {} {}", label(fact), value.as_str().unwrap_or_default(), by(fact)));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_has_a_plain_name() {
        for (given, name) in [("Opening hours", "opening_hours"), (" industry ", "industry"), ("Größe", "größe")] {
            assert_eq!(checked_fact(given).expect("a name"), name);
        }
        for odd in ["", "  ", "a/b", "a\0b", "<b>", &"x".repeat(61)] {
            assert!(checked_fact(odd).is_err(), "{odd:?}");
        }
    }
}
