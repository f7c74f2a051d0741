//! The tasks of upkeep. Each is a function without input that may run at any time, twice, or at once on two workers.

use domain::{Caller, DocumentId, Fault, Notice, Op, SourceId, TenantId};
use serde_json::json;
use store::claims::Changed;
use store::memory::maintain;
use store::{alerts, claims, queue, retention, tenants};

use crate::lanes::client_facts::ClientFactsOf;
use crate::lanes::embed::Embed;
use crate::lanes::queue_of;
use crate::lanes::read_file::ReadFile;
use crate::lanes::reembed::Reembed;
use crate::work::Lane as _;
use crate::{Env, activities, clients, health, lanes, memory, pull, workers};

/// Removes what has outlived its retention. A rule that fails is told after all others have run.
pub(super) async fn remove_outlived(env: &Env) -> Result<(), Fault> {
    let queues: Vec<_> = lanes::ALL.iter().map(|lane| lane.queue().clone()).collect();
    let mut conn = env.db.acquire().await?;
    let count = |table: &str, n| {
        metrics::counter!("tributary_retention_rows_total", "table" => table.to_owned()).increment(n);
    };
    let mut failed = None;
    for swept in retention::enforce(&mut conn, env.clock.sql(), &queues, count).await {
        let (table, gone) = (swept.table, swept.gone);
        if gone > 0 {
            tracing::info!(table, rows = gone, "retention removed {gone} rows of {table}");
        }
        if let Some(error) = swept.error {
            tracing::error!(table, error = ?error, "retention could not go on with {table}");
            failed = failed.or(Some(error));
        }
    }
    failed.map_or(Ok(()), |error| Err(error.into()))
}

pub(super) async fn unpark(env: &Env) -> Result<(), Fault> {
    let mut conn = env.db.acquire().await?;
    let released = store::spend::release(&mut conn, env.clock.sql(), env.config.embed_cap_micros()).await?;
    if released > 0 {
        tracing::info!("{released} items go on under a higher cap");
    }
    // All go on as soon as the service has answered one of them. Until then one is tried now and then.
    let gates: Vec<String> = env.embedders.all().map(memory::gate).collect();
    let shut = store::gates::shut(&mut conn, &gates).await?;
    let is_left_alone = shut.iter().any(|gate| gate.closed_until > env.clock.now());
    let most = if shut.is_empty() { i64::MAX } else { i64::from(!is_left_alone) };
    let mut released = 0;
    for lane in [Embed::NAME, Reembed::NAME] {
        released += store::spend::release_blocked(&mut conn, env.clock.sql(), lane, most).await?;
    }
    if released > 0 {
        tracing::info!("{released} texts are tried again by the embedder that was blocked");
    }
    drop(conn);
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

/// Starts the syncs whose time has come, has clients derived that were marked by a job which never came to its end, and matches those that wait for it.
pub(super) async fn start_syncs(env: &Env) -> Result<(), Fault> {
    let started = pull::jobs::sync_due(env).await?;
    if started > 0 {
        tracing::info!("{started} syncs were due");
    }
    let mut conn = env.db.acquire().await?;
    let neglected = store::clients::derived::neglected(&mut conn, env.clock.sql()).await?;
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
    clients::matching::match_all(env).await
}

/// Gives others what workers held that were silent for ten heartbeats: machines that went away with their sessions open.
pub(super) async fn take_over(env: &Env) -> Result<(), Fault> {
    let mut conn = env.db.acquire().await?;
    let dead = store::workers::silent(&mut conn).await?;
    drop(conn);
    if !dead.is_empty() {
        let queues: Vec<_> = lanes::ALL.iter().map(|lane| lane.queue()).collect();
        workers::take_over(env, &queues, &dead).await?;
    }
    Ok(())
}

pub(super) async fn collect_tokens(env: &Env) -> Result<(), Fault> {
    let mut conn = env.db.acquire().await?;
    let mut gone = 0;
    loop {
        let some = store::tokens::collect(&mut conn, env.clock.sql()).await?;
        gone += some;
        if some == 0 {
            break;
        }
    }
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

/// Counts what search relies on, and drops indexes over vectors, which codes have replaced.
pub(super) async fn maintain_memory(env: &Env) -> Result<(), Fault> {
    let mut conn = env.db.acquire().await?;
    let tenants = maintain::count(&mut conn).await?;
    drop(conn);
    for tenant in tenants.iter().filter(|tenant| tenant.index_name.is_some()) {
        maintain::drop_indexes(&env.db, TenantId(tenant.tenant_id)).await?;
    }
    Ok(())
}

/// Opens and closes the alerts of each tenant in service. A tenant for which that fails is told after all others have had their turn.
pub(super) async fn watch(env: &Env) -> Result<(), Fault> {
    let mut conn = env.db.acquire().await?;
    let mut tenants = tenants::list(&mut conn).await?;
    drop(conn);
    tenants.retain(|tenant| tenant.forgetting_at.is_none());
    let dead = health::Dead::of(env, &tenants.iter().map(|tenant| TenantId(tenant.id)).collect::<Vec<_>>()).await?;
    let (mut n_open, mut failed) = (0, None);
    for tenant in tenants {
        let caller = Caller::local("watch", TenantId(tenant.id), tenant.is_operator);
        let error = match watch_tenant(env, &caller, &dead).await {
            Ok(n) => {
                n_open += n;
                continue;
            }
            Err(error) => error,
        };
        let id = caller.tenant_id;
        let is_in_service = env.db.session(async |conn| tenants::is_in_service(conn, id).await).await;
        if matches!(is_in_service, Ok(false)) {
            continue; // it is being forgotten since it was listed
        }
        tracing::error!(tenant.id = %id, error = ?error, "the alerts of tenant {id} could not be looked after");
        failed = failed.or(Some(error));
    }
    metrics::gauge!("tributary_alerts_open").set(n_open as f64);
    failed.map_or(Ok(()), |error| Err(error.into()))
}

/// Opens and closes one tenant's alerts by what is wrong now, and reports the new ones. Returns how many are open.
async fn watch_tenant(env: &Env, caller: &Caller, dead: &health::Dead) -> store::Result<usize> {
    let findings = health::findings(env, caller, dead).await?;
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
    Ok(findings.len())
}

/// The time without a word after which a file may have lost its message, in seconds, and how many of those are taken at once.
const FILE_SILENT_SECS: f64 = 300.0;
const MOST_LOST_FILES: i64 = 500;

/// Sends messages for documents whose file is being read, of which no queue knows.
pub(super) async fn read_lost_files(env: &Env) -> Result<(), Fault> {
    let mut tx = env.db.begin().await?;
    let lost = store::files::lost(&mut tx, env.clock.sql(), FILE_SILENT_SECS, MOST_LOST_FILES).await?;
    let sent: Vec<(TenantId, ReadFile)> =
        lost.into_iter().map(|(tenant, id)| (TenantId(tenant), ReadFile { document_id: DocumentId(id) })).collect();
    queue_of::<ReadFile>().send_each(&mut tx, &sent).await?;
    tx.commit().await?;
    Ok(())
}
