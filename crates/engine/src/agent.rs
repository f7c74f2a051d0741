//! The built-in agent: claims text activities by the same functions as everybody's agents, as each tenant's own system person, and
//! completes them by rules. Recordings wait for an agent that can hear.

use std::collections::HashMap;
use std::time::Duration;

use domain::{Caller, KeyId, Notice, Op, PersonId, Scope, TenantId};
use store::claims::{self, Claim};
use store::crash::{self, Point};
use uuid::Uuid;

use crate::enrich::rules;
use crate::work::runtime::woken;
use crate::work::{Lane as _, Stop, lanes};
use crate::{Env, work};

const POLL: Duration = Duration::from_secs(1);
const BATCH: i32 = 32;
const DB_LIMIT: Duration = work::runtime::DB_LIMIT;

/// Works until told to stop. What it held when it died is given back after five minutes, and counted.
pub async fn run(env: Env, stop: Stop) {
    let mut wake = env.db.bus().subscribe();
    let mut agents = HashMap::new();
    while !stop.is_stopping() {
        match store::within(DB_LIMIT, work_once(&env, &mut agents)).await {
            Ok(n) if n > 0 => continue,
            Ok(_) => {}
            Err(error) => tracing::debug!(error = ?error, "the built-in agent could not claim, will keep trying"),
        }
        tokio::select! {
            () = tokio::time::sleep(POLL) => {}
            () = woken(&mut wake, |notice| notice.kind == "activities" && notice.op == Op::Insert) => {}
            () = stop.stopped() => {}
        }
    }
}

/// Claims and completes one batch of every tenant that has work. Returns how many activities it took.
pub async fn work_once(env: &Env, agents: &mut HashMap<TenantId, Caller>) -> store::Result<usize> {
    let mut conn = env.db.acquire().await?;
    let tenants = claims::tenants_with_text(&mut conn).await?;
    drop(conn);
    let mut taken = 0;
    for tenant_id in tenants {
        let agent = match agents.get(&tenant_id) {
            Some(agent) => agent.clone(),
            None => {
                let mut tx = env.db.begin().await?;
                let (person_id, user_id, key_id) = claims::ensure_agent(&mut tx, tenant_id).await?;
                tx.commit().await?;
                let agent = caller(tenant_id, person_id, user_id, key_id);
                agents.insert(tenant_id, agent.clone());
                agent
            }
        };
        let mut tx = env.db.begin_as(&agent).await?;
        let claimed = claims::claim(&mut tx, BATCH).await?;
        tx.commit().await?;
        if claimed.is_empty() {
            continue;
        }
        crash::at(Point::AgentClaimed)?;
        taken += claimed.len();
        let results: Vec<_> = claimed.into_iter().map(processed).collect();
        let mut tx = env.db.begin().await?;
        let completed = claims::complete(&mut tx, tenant_id, agent.key_id, &results).await?;
        tx.notify(Notice::lane(Some(tenant_id), lanes::remember_activity::RememberActivity::NAME, Op::Insert));
        tx.notify(Notice { tenant_id: Some(tenant_id), kind: "activities".into(), id: String::new(), op: Op::Update });
        crash::at(Point::AgentBeforeCommit)?;
        tx.commit().await?;
        metrics::counter!("tributary_agent_completed_total").increment(completed.len() as u64);
        let late = results.len() - completed.len();
        if late > 0 {
            tracing::warn!("{late} results of the built-in agent came too late: somebody else has those activities");
        }
    }
    Ok(taken)
}

fn processed(claim: Claim) -> (Uuid, i32, serde_json::Value) {
    (claim.id, claim.lock_epoch, rules::process(&claim.raw_data))
}

fn caller(tenant_id: TenantId, person_id: PersonId, user_id: Uuid, key_id: KeyId) -> Caller {
    Caller {
        key_id,
        person_id: Some(person_id),
        user_id: Some(user_id),
        scopes: vec![Scope::Agent],
        ..Caller::local("built-in agent", tenant_id, false)
    }
}
