//! The tasks of upkeep. Each is a function without input that may run at any time, twice, or at once on two workers.

use domain::{Caller, Fault, Notice, Op, SourceId, TenantId};
use serde_json::json;
use store::claims::Changed;
use store::memory::maintain;
use store::{alerts, claims, queue, retention, tenants};

use crate::lanes::build_index::BuildIndex;
use crate::lanes::client_facts::ClientFactsOf;
use crate::work::Lane as _;
use crate::{Env, activities, health, lanes, pull};

pub(super) async fn remove_outlived(env: &Env) -> Result<(), Fault> {
    let queues: Vec<_> = lanes::ALL.iter().map(|lane| lane.queue().clone()).collect();
    let mut conn = env.db.acquire().await?;
    let gone = retention::enforce(&mut conn, env.clock.sql(), &queues).await?;
    if gone > 0 {
        tracing::info!(rows = gone, "retention removed {gone} rows");
    }
    Ok(())
}

pub(super) async fn unpark(env: &Env) -> Result<(), Fault> {
    let mut conn = env.db.acquire().await?;
    let released = store::spend::release(&mut conn, env.clock.sql(), env.config.embed_cap_micros()).await?;
    drop(conn);
    if released > 0 {
        tracing::info!("{released} items go on under a higher cap");
    }
    loop {
        let mut tx = env.db.begin().await?;
        let sent = queue::unpark_due(&mut tx, env.clock.sql(), 500).await?;
        tx.commit().await?;
        if sent < 500 {
            return Ok(());
        }
    }
}

pub(super) async fn build_indexes(env: &Env) -> Result<(), Fault> {
    for (schema, name, on) in store::indexes::LATER {
        store::indexes::build(&env.db, schema, name, on).await?;
    }
    Ok(())
}

/// Starts the syncs whose time has come, and has clients derived that were marked by a job which never came to its end.
pub(super) async fn start_syncs(env: &Env) -> Result<(), Fault> {
    let started = pull::jobs::sync_due(env).await?;
    if started > 0 {
        tracing::info!("{started} syncs were due");
    }
    let mut conn = env.db.acquire().await?;
    let neglected = store::clients::neglected(&mut conn, env.clock.sql()).await?;
    drop(conn);
    let queue = queue::Queue::new(ClientFactsOf::NAME)?;
    for (tenant_id, source_id) in neglected {
        let (tenant_id, source_id) = (TenantId(tenant_id), SourceId(source_id));
        let mut tx = env.db.begin().await?;
        // An item that was given up waits for a person: another one would only be given up as well.
        let of_it = json!({ "tenant_id": tenant_id, "source_id": source_id });
        if !queue.holds_or_buried(&mut tx, &of_it).await? {
            queue.send(&mut tx, tenant_id, &[ClientFactsOf { source_id }]).await?;
        }
        tx.commit().await?;
    }
    Ok(())
}

/// Makes the items due that are held by workers silent for ten heartbeats: they need not wait for their leases to run out.
pub(super) async fn take_over(env: &Env) -> Result<(), Fault> {
    let mut conn = env.db.acquire().await?;
    let dead = store::workers::dead(&mut conn).await?;
    if dead.is_empty() {
        return Ok(());
    }
    for lane in &lanes::ALL {
        let taken = lane.queue().take_over(&mut conn, env.clock.sql(), &dead).await?;
        if taken > 0 {
            tracing::warn!(lane = lane.name, "{taken} items of a dead worker are given to others");
        }
    }
    Ok(())
}

pub(super) async fn collect_tokens(env: &Env) -> Result<(), Fault> {
    let mut conn = env.db.acquire().await?;
    let gone = store::tokens::collect(&mut conn, env.clock.sql()).await?;
    if gone > 0 {
        tracing::info!("{gone} replaced tokens were removed");
    }
    Ok(())
}

pub(super) async fn recover_locks(env: &Env, is_reset: bool) -> Result<(), Fault> {
    let mut tx = env.db.begin().await?;
    let recovered = claims::recover(&mut tx, is_reset).await?;
    tx.notify_all(activities::waiting_again(&recovered));
    tx.commit().await?;
    metrics::counter!("tributary_activity_recoveries_total").increment(recovered.len() as u64);
    if !recovered.is_empty() {
        tracing::warn!("{} activities were taken back from agents that went silent", recovered.len());
    }
    Ok(())
}

pub(super) async fn retry_failed(env: &Env) -> Result<(), Fault> {
    let mut tx = env.db.begin().await?;
    let changed = claims::retry_failed(&mut tx, env.clock.sql()).await?;
    let (dead, retried): (Vec<Changed>, Vec<Changed>) = changed.into_iter().partition(|changed| changed.is_dead);
    tx.notify_all(activities::waiting_again(&retried));
    tx.commit().await?;
    if !retried.is_empty() {
        tracing::info!("{} failed activities are tried again", retried.len());
    }
    if !dead.is_empty() {
        tracing::warn!("{} activities failed too often and are dead letters now", dead.len());
    }
    Ok(())
}

/// Renews the estimates that search relies on, and sends for the index of a tenant that outgrew exact search.
pub(super) async fn maintain_memory(env: &Env) -> Result<(), Fault> {
    let mut conn = env.db.acquire().await?;
    let tenants = maintain::count(&mut conn).await?;
    for tenant in &tenants {
        if tenant.wants_stats() {
            maintain::renew_stats(&mut conn, tenant).await?;
        }
    }
    drop(conn);
    let queue = queue::Queue::new(BuildIndex::NAME)?;
    for tenant in tenants.iter().filter(|tenant| tenant.wants_index()) {
        let tenant_id = TenantId(tenant.tenant_id);
        let mut tx = env.db.begin().await?;
        if !queue.holds(&mut tx, &json!({ "tenant_id": tenant_id })).await? {
            queue.send(&mut tx, tenant_id, &[BuildIndex { model: tenant.model.clone() }]).await?;
        }
        tx.commit().await?;
    }
    Ok(())
}

/// Opens and closes each tenant's alerts by what is wrong now, and reports the new ones.
pub(super) async fn watch(env: &Env) -> Result<(), Fault> {
    let mut conn = env.db.acquire().await?;
    let tenants = tenants::list(&mut conn).await?;
    drop(conn);
    let mut n_open = 0;
    for tenant in tenants {
        let caller = Caller::local("watch", TenantId(tenant.id), tenant.is_operator);
        let findings = health::overview(env, &caller).await?.findings;
        n_open += findings.len();
        let mut tx = env.db.begin().await?;
        let opened = alerts::reconcile(&mut tx, env.clock.sql(), caller.tenant_id, &findings).await?;
        tx.notify(Notice {
            tenant_id: Some(caller.tenant_id),
            kind: "alerts".into(),
            id: String::new(),
            op: Op::Update,
            ids: Vec::new(),
        });
        tx.commit().await?;
        for alert in &opened {
            tracing::error!(
                alert.kind = alert.kind,
                alert.subject = alert.subject,
                "alert: {}; {}",
                alert.what,
                alert.todo
            );
            if let Some(url) = &env.config.alert_webhook_url {
                // At most once: a receiver that is away must not keep alerts from opening.
                if let Err(fault) = env.http.post_json(url, alert).await {
                    tracing::warn!("the alert webhook could not be told: {}", fault.in_words());
                }
            }
        }
    }
    metrics::gauge!("tributary_alerts_open").set(n_open as f64);
    Ok(())
}
