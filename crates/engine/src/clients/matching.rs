//! Finds which records are one client, for the records that wait to be matched and everything that they reach: records that have a key in common with
//! one of them, that are of the same client until now, or that a person decided about. [`domain::matching`] has the rules.

use std::collections::{HashMap, HashSet};

use domain::matching::{self, Decisions, Node};
use domain::{Fault, TenantId};
use serde_json::json;
use store::clients::matching::{self as rows, Matchable, Matched};
use store::crash::{self, Point};
use uuid::Uuid;

use crate::Env;
use crate::pull::Provider;

/// The number of records that are matched at once, with all that they reach.
const STEP: i64 = 2_000;

/// Matches the records of a tenant that wait for it. Safe to repeat: the result depends on the records alone.
pub(crate) async fn match_waiting(env: &Env, tenant_id: TenantId) -> Result<(), Fault> {
    loop {
        let mut tx = env.db.begin().await?;
        rows::lock(&mut tx, tenant_id).await?;
        let waiting = rows::unmatched(&mut tx, tenant_id, STEP).await?;
        if waiting.is_empty() {
            return Ok(tx.commit().await?);
        }
        rematch(&mut tx, env.providers.all(), tenant_id, &waiting, &[]).await?;
        crash::at(Point::ClientsMatched)?;
        tx.commit().await?;
    }
}

/// Matches these records, and those with these keys, with all that they reach. The transaction holds the tenant's lock.
pub(crate) async fn rematch(
    tx: &mut store::Tx,
    providers: &[Provider],
    tenant_id: TenantId,
    ids: &[Uuid],
    keys: &[String],
) -> store::Result<()> {
    let (found, decisions) = component(tx, tenant_id, ids, keys).await?;
    let nodes: Vec<Node> = found.iter().map(|row| node(row, providers)).collect();
    let grouped = matching::group(&nodes, &decisions);
    let leaders: Vec<usize> = grouped.iter().map(|(leader, _)| *leader).collect();
    let mut owned = matching::owned(&nodes, &leaders);
    let matched: Vec<Matched> = grouped
        .into_iter()
        .enumerate()
        .map(|(nth, (leader, reason))| Matched {
            id: found[nth].id,
            client_id: found[leader].id,
            matched_by: reason.map(|reason| json!(reason)),
            owns: owned.remove(&nth).unwrap_or_default(),
            marks: found[nth].marks,
        })
        .collect();
    rows::write(tx, tenant_id, &matched).await?;
    Ok(())
}

/// Everything that the records reach, and the decisions about it.
async fn component(
    tx: &mut store::Tx,
    tenant_id: TenantId,
    ids: &[Uuid],
    keys: &[String],
) -> store::Result<(Vec<Matchable>, Decisions)> {
    let mut found: Vec<Matchable> = Vec::new();
    let (mut seen_keys, mut seen_clients): (HashSet<String>, HashSet<Uuid>) = Default::default();
    let (mut decided, mut decisions): (HashMap<(String, Option<String>), ()>, Decisions) = Default::default();
    let (mut ids, mut keys, mut clients): (Vec<Uuid>, Vec<String>, Vec<Uuid>) =
        (ids.to_vec(), keys.to_vec(), Vec::new());
    loop {
        let known: Vec<Uuid> = found.iter().map(|row| row.id).collect();
        let new = rows::reach(tx, tenant_id, &ids, &keys, &clients, &known).await?;
        if new.is_empty() {
            return Ok((found, decisions));
        }
        let references: Vec<String> = new.iter().map(|row| row.reference.clone()).collect();
        let said = rows::decided(tx, tenant_id, &references).await?;
        (ids, keys, clients) = Default::default();
        for (record, other) in said.merged {
            keys.extend([format!("ref:{record}"), format!("ref:{other}")]);
            if decided.insert((record.clone(), Some(other.clone())), ()).is_none() {
                decisions.merged.push((record, other));
            }
        }
        for record in said.apart {
            if decided.insert((record.clone(), None), ()).is_none() {
                decisions.apart.push(record);
            }
        }
        for row in &new {
            keys.extend(row.keys.iter().cloned());
            clients.push(row.client_id);
        }
        keys.retain(|key| seen_keys.insert(key.clone()));
        clients.retain(|client| seen_clients.insert(*client));
        found.extend(new);
    }
}

fn node(row: &Matchable, providers: &[Provider]) -> Node {
    let of = row.identity["of"].as_array().into_iter().flatten();
    // The provider that people see first names the client.
    let place = providers.iter().position(|provider| Some(provider.name) == row.provider.as_deref());
    let mut node = Node {
        reference: row.reference.clone(),
        source: row.source.clone(),
        kind: row.kind(),
        of: of.filter_map(|of| of.as_str()).map(str::to_owned).collect(),
        place: (place.unwrap_or(providers.len()), row.client_name.clone()),
        ..Node::default()
    };
    node.read(&row.keys);
    node
}

/// Matches what waits in any tenant: records of clients that lost others when a source was forgotten, or whose worker died.
pub(crate) async fn match_all(env: &Env) -> Result<(), Fault> {
    let mut conn = env.db.acquire().await?;
    let waiting = rows::waiting(&mut conn).await?;
    drop(conn);
    let mut matched = Ok(());
    for tenant_id in waiting {
        // One that cannot be matched keeps no other tenant waiting.
        matched = match_waiting(env, TenantId(tenant_id)).await.and(matched);
    }
    matched
}
