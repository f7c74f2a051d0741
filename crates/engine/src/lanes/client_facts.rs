//! Derives what is known of clients from their records: each marked client once, however many records marked it.

mod told;

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use chrono::NaiveDate;
use connectors::pull::{self, ClientFacts};
use domain::document::CLIENT_PREFIX;
use domain::{DocumentType, Fault, Record, SourceId, TenantId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::clients::derived::{self as clients, Derived, Dirty};
use store::crash::{self, Point};
use uuid::Uuid;

use crate::Env;
use crate::clients::matching;
use crate::memory::{Batch, remember};
use crate::pull::Provider;
use crate::work::{Lane, Lease, Outcome};

/// The number of clients that one commit writes.
const STEP: i64 = 500;
/// The version of the words in which clients are told. With another one, every client's text is made anew.
const WORDS: i32 = 3;

#[derive(Serialize, Deserialize)]
pub struct ClientFactsOf {
    pub source_id: SourceId,
}

impl Lane for ClientFactsOf {
    const NAME: &'static str = "client_facts";
    const IS_LONG: bool = true;

    /// Safe to repeat: nothing is added up; facts are made of the records as they are, and a client that was marked while they were read is
    /// left for the next round.
    async fn run(self, env: &Env, lease: &Lease) -> Result<Outcome, Fault> {
        let tenant_id = lease.tenant_id()?;
        // After a failure one at a time, so that a client that cannot be written keeps nobody before it from being derived.
        let step = if lease.attempt() > 1 { 1 } else { STEP };
        loop {
            let mut conn = env.db.acquire().await?;
            let mut dirty = clients::dirty(&mut conn, tenant_id, self.source_id, step).await?;
            drop(conn);
            if dirty.is_empty() {
                // Once for all of them: a company's people are matched together.
                matching::match_waiting(env, tenant_id).await?;
                return lease.begin(env).await?.commit().await;
            }
            // A client that is marked again meanwhile drops out, so this ends.
            while !dirty.is_empty() {
                dirty = self.derive(env, lease, tenant_id, dirty).await?;
            }
        }
    }
}

impl ClientFactsOf {
    /// Derives and writes these clients; returns those to try again without the ones that were marked since. None when all is written.
    async fn derive(
        &self,
        env: &Env,
        lease: &Lease,
        tenant_id: TenantId,
        dirty: Vec<Dirty>,
    ) -> Result<Vec<Dirty>, Fault> {
        let providers = env.providers.all();
        let rolled_up = pull::rolled_up(providers);
        let names: Vec<&str> = dirty.iter().map(|dirty| dirty.external_id.as_str()).collect();
        let mut conn = env.db.acquire().await?;
        let told = clients::told(&mut conn, tenant_id, self.source_id, &names, &rolled_up).await?;
        let had_text = clients::with_text(&mut conn, tenant_id, self.source_id, &names).await?;
        drop(conn);
        let mut by_client: HashMap<&str, Vec<&clients::Told>> = HashMap::new();
        for record in &told {
            by_client.entry(record.client.as_str()).or_default().push(record);
        }
        let today = env.clock.now().date_naive();
        let (mut texts, mut derived, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        for name in &names {
            let records = by_client.remove(name).unwrap_or_default();
            let (facts, n_rolled_up) = facts(providers, name, &records);
            // One that rests on its own record alone is found by that one; unless it owes something, which a record does not say in words.
            let spoken = facts.as_ref().filter(|facts| n_rolled_up > 0 || told::owes(facts));
            let nth = spoken.map(|_| texts.len());
            if spoken.is_some() || had_text.iter().any(|had| had == name) {
                texts.push(text_of(self.source_id, name, spoken, today));
            }
            match facts {
                Some(facts) => derived.push((stored(self.source_id, name, facts, &records), nth)),
                None => gone.push(*name),
            }
        }

        // The transaction that writes removes the marks: a client that was marked since is not written.
        let again: Mutex<Option<HashSet<String>>> = Mutex::default();
        let (marks, marked_again) = (&dirty, &again);
        let begin = move || async move {
            let mut effect = lease.begin_step(env).await?;
            let same = clients::unmark(&mut effect, tenant_id, self.source_id, marks).await?;
            if same.len() < marks.len() {
                *marked_again.lock().unwrap_or_else(PoisonError::into_inner) = Some(same.into_iter().collect());
                return Err(Fault::Stale);
            }
            Ok(effect)
        };
        let written = if texts.is_empty() {
            begin().await.map(|effect| (effect, Batch::default()))
        } else {
            remember(env, tenant_id, texts, begin).await
        };
        let (mut effect, batch) = match written {
            Ok(written) => written,
            Err(fault) => {
                let same = again.into_inner().unwrap_or_else(PoisonError::into_inner).ok_or(fault)?;
                return Ok(dirty.into_iter().filter(|dirty| same.contains(&dirty.external_id)).collect());
            }
        };
        let rows: Vec<Derived> = derived
            .into_iter()
            .map(|(row, nth)| Derived {
                document_id: nth.and_then(|nth| batch.records.get(nth)).map(|document| document.id.0),
                ..row
            })
            .collect();
        let at = env.clock.sql();
        clients::upsert(&mut effect, at, tenant_id, self.source_id, &rows).await?;
        clients::withdraw(&mut effect, tenant_id, self.source_id, &gone).await?;
        crash::at(Point::ClientsBeforeCommit)?;
        effect.commit().await?;
        Ok(Vec::new())
    }
}

/// The facts that the records state about a client, and the number of records that are not its own. None: its own record is gone, or makes
/// no client.
fn facts(providers: &[Provider], name: &str, records: &[&clients::Told]) -> (Option<ClientFacts>, usize) {
    let null = Value::Null;
    let told: Vec<pull::Told<'_>> = records
        .iter()
        .map(|record| pull::Told {
            external_id: &record.external_id,
            document_type: &record.document_type,
            payload: record.raw_payload.as_ref().unwrap_or(&null),
            source_updated_at: record.source_updated_at,
        })
        .collect();
    let (own, related): (Vec<_>, Vec<_>) = told.into_iter().partition(|told| told.external_id == name);
    let rolled_up = pull::rolled_up(providers);
    let n_rolled_up = related.iter().filter(|told| rolled_up.contains(&told.document_type)).count();
    let own = own.into_iter().next();
    (own.and_then(|own| pull::client_facts(providers, own, &related)), n_rolled_up)
}

fn stored(source_id: SourceId, name: &str, mut facts: ClientFacts, records: &[&clients::Told]) -> Derived {
    let ids: HashMap<&str, Uuid> = records.iter().map(|record| (record.external_id.as_str(), record.id)).collect();
    let cited =
        |names: &[String]| -> Vec<Uuid> { names.iter().filter_map(|name| ids.get(name.as_str()).copied()).collect() };
    let evidence: serde_json::Map<String, Value> =
        facts.evidence.iter().map(|(fact, names)| (fact.clone(), json!(cited(names)))).collect();
    // Other sources have records of the same names.
    facts.identity.of.iter_mut().for_each(|of| *of = format!("{source_id}/{of}"));
    Derived {
        identity: json!(facts.identity),
        external_id: name.to_owned(),
        client_name: facts.client_name.chars().take(500).collect(),
        industry: facts.industry,
        summary: facts.summary,
        key_facts: Value::Object(facts.key_facts),
        evidence: Value::Object(evidence),
        document_id: None,
    }
}

/// The document by which search finds a client; without facts it is deleted. Its metadata says which words it is made of, and when they are no
/// longer true: the upkeep task `client_texts` has it made anew then.
fn text_of(source_id: SourceId, name: &str, facts: Option<&ClientFacts>, today: NaiveDate) -> Record {
    let text = facts.map(|facts| told::in_words(facts, today)).unwrap_or_default();
    let mut metadata = json!({ "client": name, "words": WORDS.to_string() });
    if let Some(next_due) = facts.and_then(|facts| told::next_due(facts, today)) {
        metadata["next_due"] = json!(next_due);
    }
    Record {
        title: facts.map(|facts| facts.client_name.clone()),
        source_metadata: metadata,
        is_deleted: facts.is_none(),
        ..Record::new(source_id, format!("{CLIENT_PREFIX}{name}"), DocumentType::Client, text)
    }
}

/// Marks the clients whose text has other words than these, or says of a day that has passed that something is due then.
pub(super) async fn mark_outdated(env: &Env) -> Result<(), Fault> {
    let mut conn = env.db.acquire().await?;
    let n = clients::mark_outdated(&mut conn, WORDS, env.clock.now().date_naive()).await?;
    if n > 0 {
        tracing::info!("{n} clients get new words");
    }
    Ok(())
}
