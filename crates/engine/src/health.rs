//! Findings: what is wrong now and what to do about it. One list for Home, alerts and `doctor`.

use std::collections::HashMap;
use std::time::Duration;

use chrono::TimeDelta;
use domain::shown::{counted, dollars, plural};
use domain::{Caller, SourceStatus, TenantId};
use store::PgConnection;
use store::alerts::Finding;
use store::queue::{Counts, MOST_COUNTED};
use store::sources::Unwell;
use store::workers::{Health, Worker};

use crate::Env;
use crate::lanes::{self, ingest::Ingest};
use crate::mail::check::words::differences;
use crate::memory::{self, moves};
use crate::pull::words::{self, Trouble};
use crate::pull::{Provider, tokens};
use crate::work::Lane as _;

/// The state of the installation, as one caller sees it.
#[derive(Clone, Debug)]
pub struct Overview {
    pub queues: Vec<Counts>,
    pub workers: Vec<Worker>,
    pub findings: Vec<Finding>,
}

/// Looks at everything once, for one caller. Only an operator's overview has what belongs to the installation.
pub async fn overview(env: &Env, caller: &Caller) -> store::Result<Overview> {
    env.db.session(async |conn| look(env, conn, caller).await).await
}

/// The items that were given up, of every lane and tenant.
pub struct Dead(Vec<(&'static str, HashMap<String, i64>)>);

impl Dead {
    /// Looks once for all tenants, however many there are.
    pub async fn of(env: &Env, tenants: &[TenantId]) -> store::Result<Self> {
        let names: Vec<String> = tenants.iter().map(TenantId::to_string).chain([NO_TENANT.to_owned()]).collect();
        let looked = env.db.session(async |conn| {
            let mut dead = Vec::new();
            for lane in &lanes::ALL {
                dead.push((lane.name, lane.queue().dead_of(conn, &names).await?.into_iter().collect()));
            }
            Ok(dead)
        });
        looked.await.map(Self)
    }

    /// How many of one caller's were given up, per lane.
    fn seen_by(&self, caller: &Caller) -> Vec<(&'static str, i64)> {
        let tenant = caller.tenant_id.to_string();
        let sum = |of: &HashMap<String, i64>| {
            let installation = of.get(NO_TENANT).filter(|_| caller.operates());
            of.get(&tenant).copied().unwrap_or(0) + installation.copied().unwrap_or(0)
        };
        self.0.iter().map(|(lane, of)| (*lane, sum(of))).collect()
    }
}

/// The name of nobody: items that belong to the installation.
const NO_TENANT: &str = "";

/// Finds what is wrong now, for one caller. The figures of the queues come from one look at all tenants.
pub async fn findings(env: &Env, caller: &Caller, dead: &Dead) -> store::Result<Vec<Finding>> {
    let seen = dead.seen_by(caller);
    env.db.session(async |conn| Ok(find(env, conn, caller, &seen).await?.0)).await
}

async fn look(env: &Env, conn: &mut PgConnection, caller: &Caller) -> store::Result<Overview> {
    let mut queues = Vec::new();
    for lane in &lanes::ALL {
        queues.push(lane.queue().counts(conn, env.clock.sql(), caller).await?);
    }
    let dead: Vec<(&str, i64)> = queues.iter().map(|counts| (counts.lane.as_str(), counts.dead)).collect();
    let (findings, workers) = find(env, conn, caller, &dead).await?;
    Ok(Overview { queues, workers, findings })
}

async fn find(
    env: &Env,
    conn: &mut PgConnection,
    caller: &Caller,
    dead: &[(&str, i64)],
) -> store::Result<(Vec<Finding>, Vec<Worker>)> {
    let mut findings = Vec::new();
    // A sync's dead letter is told as its source's, below.
    for (lane, n) in dead.iter().filter(|(lane, n)| *n > 0 && *lane != Ingest::NAME) {
        findings.push(Finding {
            kind: "dead_items",
            subject: (*lane).to_owned(),
            what: format!(
                "{} {} given up in lane {lane}",
                counted(*n, MOST_COUNTED),
                if *n == 1 { "item was" } else { "items were" }
            ),
            todo: "open Queues, read why, then retry or skip each".into(),
        });
    }
    let dead = store::dead_letters::count(conn, caller.tenant_id).await?;
    if dead > 0 {
        findings.push(Finding {
            kind: "dead_letters",
            subject: "activities".into(),
            what: format!(
                "{} {} for good",
                counted(dead, MOST_COUNTED),
                if dead == 1 { "activity failed" } else { "activities failed" }
            ),
            todo: "open Dead letters, read why, then replay or skip each".into(),
        });
    }
    let failed = store::jobs::given_up(conn, caller.tenant_id).await?;
    findings.extend(failed.into_iter().map(|failed| Finding {
        kind: "sync_failed",
        subject: failed.job_id.to_string(),
        what: format!("the last sync of {} was given up", a_source_at(env, &failed.provider)),
        todo: "open it, read why, then retry it; it goes on where it stopped".into(),
    }));
    let differing = store::mail::checks::differing(conn, caller.tenant_id).await?;
    findings.extend(differing.into_iter().map(|differing| Finding {
        kind: "mail_differs",
        subject: differing.source_id.to_string(),
        what: format!(
            "{}, on {}",
            differences(env.providers.label(&differing.provider), differing.n_missing, differing.n_surplus),
            plural(differing.n_days, "day", "days")
        ),
        todo: "press Fetch them: just these messages are read again, and the days counted once more".into(),
    }));
    let refusing = store::channels::refusing(conn, env.clock.sql(), caller.tenant_id, MANY_REFUSED).await?;
    findings.extend(refusing.into_iter().map(|refusing| Finding {
        kind: "channel_refuses",
        subject: refusing.channel_id.to_string(),
        what: format!(
            "channel {} refused {} within ten minutes: {}",
            refusing.name,
            plural(refusing.n, "request", "requests"),
            refusing.reason
        ),
        todo: "open Webhooks and read what it refused, and why".into(),
    }));
    let long_held = store::claims::long_held(conn, env.clock.sql(), caller.tenant_id).await?;
    if long_held > 0 {
        findings.push(Finding {
            kind: "activities_held",
            subject: "agents".into(),
            what: format!(
                "{} been in an agent's hands for over an hour",
                plural(long_held, "activity has", "activities have")
            ),
            todo: "open Agents: an agent that lives and gets nowhere has to be restarted; Skip ends an activity".into(),
        });
    }
    findings.extend(spend_findings(env, conn, caller.tenant_id).await?);
    findings.extend(embedder_findings(env, conn).await?);
    findings.extend(model_finding(env, conn, caller.tenant_id).await?);
    let unwell = store::sources::unwell(conn, caller.tenant_id).await?;
    findings.extend(unwell.iter().filter_map(|source| source_finding(env.providers.label(&source.provider), source)));
    let mut workers = Vec::new();
    if caller.operates() {
        findings.extend(client_findings(env, conn).await?);
        workers = list_workers(env, conn).await?;
        findings.extend(worker_findings(&workers));
        findings.extend(schedule_findings(env, conn).await?);
        findings.extend(store::doctor::long_transactions(conn, LONG_TRANSACTION).await?.into_iter().map(|t| Finding {
            kind: "long_transaction",
            subject: format!("pid {}", t.pid),
            what: format!(
                "a transaction of {} ({}) has been open for {} s and slows every queue down",
                t.login, t.program, t.secs
            ),
            todo: format!("find out what it does; `select pg_terminate_backend({})` ends it", t.pid),
        }));
    }
    Ok((findings, workers))
}

/// Every worker with its health; lanes with due work are looked at, because a worker that ignores it is stalled.
pub async fn list_workers(env: &Env, conn: &mut PgConnection) -> store::Result<Vec<Worker>> {
    let mut due = Vec::new();
    for lane in &lanes::ALL {
        if let Some(since) = lane.queue().oldest_due(conn).await?.filter(|since| *since <= env.clock.now()) {
            due.push((lane.name.to_owned(), since));
        }
    }
    store::workers::list(conn, &due).await
}

/// Within ten minutes: more than a scanner or a retry, less than a sender with the wrong secret.
const MANY_REFUSED: i64 = 20;
const LONG_TRANSACTION: Duration = Duration::from_secs(300);

/// Names a source by its provider. Its own name may be a person's address, and alerts are logged. The subject identifies the source.
fn a_source_at(env: &Env, provider: &str) -> String {
    format!("a {} source", env.providers.label(provider))
}

/// A source that does not go on until a person does something.
fn source_finding(who: &str, source: &Unwell) -> Option<Finding> {
    let Trouble { what, todo } = words::of_status(who, source.status, source.status_message.as_deref())?;
    Some(Finding {
        kind: if source.status == SourceStatus::TokenRefreshFailed { "source_reconnect" } else { "source_error" },
        subject: source.id.to_string(),
        what: what.trim_end_matches('.').to_owned(),
        todo: todo.trim_end_matches('.').to_owned(),
    })
}

/// Fewer documents say nothing about a price.
const PRICED_DOCUMENTS: i64 = 100;

/// Findings about this month's cost of vectors: the cap is reached, or a thousand documents cost more than the operator wants to know of.
async fn spend_findings(env: &Env, conn: &mut PgConnection, tenant_id: TenantId) -> store::Result<Vec<Finding>> {
    let (cap, alert) = (env.config.embed_cap_micros(), env.config.embed_alert_micros());
    if cap.is_none() && alert.is_none() {
        return Ok(Vec::new());
    }
    let month = store::spend::this_month(conn, env.clock.sql(), tenant_id, cap).await?;
    let mut findings = Vec::new();
    if let Some(cap) = cap.filter(|_| month.is_refused) {
        findings.push(Finding {
            kind: "budget_spent",
            subject: "embeddings".into(),
            what: format!("vectors and answers may cost {} a month, and that is spent", dollars(cap)),
            todo: "raise `EMBED_MONTHLY_CAP` and restart, or wait for the next month; until then new documents are found only by keyword, and questions are answered with quotations".into(),
        });
    }
    let per_thousand = month.per_thousand().filter(|_| month.documents >= PRICED_DOCUMENTS);
    if let Some((price, alert)) = per_thousand.zip(alert).filter(|(price, alert)| price > alert) {
        findings.push(Finding {
            kind: "embedding_price",
            subject: "embeddings".into(),
            what: format!(
                "the vectors of 1,000 documents cost about {} this month, more than {}",
                dollars(price),
                dollars(alert)
            ),
            todo: "see Spend for what costs it; a smaller model or fewer records cost less".into(),
        });
    }
    Ok(findings)
}

/// Embedders that make nothing until a person has done something.
async fn embedder_findings(env: &Env, conn: &mut PgConnection) -> store::Result<Vec<Finding>> {
    let embedders: Vec<&str> = env.embedders.all().map(|embedder| embedder.model().name.as_str()).collect();
    let gates: Vec<String> = env.embedders.all().map(memory::gate).collect();
    let shut = store::gates::shut(conn, &gates).await?;
    let blocked = embedders.into_iter().zip(&gates).filter_map(|(model, key)| {
        // One that nobody has tried for a day says nothing about today.
        let is_recent = |gate: &&store::gates::Shut| env.clock.now() - gate.closed_until < TimeDelta::days(1);
        Some((model, shut.iter().find(|gate| gate.key == *key).filter(is_recent)?))
    });
    Ok(blocked
        .map(|(model, gate)| Finding {
            kind: "embedder_blocked",
            subject: model.to_owned(),
            what: format!("no vectors are made: {}", gate.reason),
            todo:
                "do that; it is tried again every ten minutes, and until then new documents are found only by keyword"
                    .into(),
        })
        .collect())
}

/// A memory whose model is not the configured one and that does not move, or whose move gets nowhere.
async fn model_finding(env: &Env, conn: &mut PgConnection, tenant_id: TenantId) -> store::Result<Option<Finding>> {
    let status = moves::of_tenant(env, conn, tenant_id).await?;
    let trouble = status.and_then(|status| moves::trouble(env, &status));
    Ok(trouble.map(|(kind, what, todo)| Finding { kind, subject: "memory".into(), what, todo }))
}

/// Providers that refuse our own app: no token of any tenant is renewed there.
async fn client_findings(env: &Env, conn: &mut PgConnection) -> store::Result<Vec<Finding>> {
    let breakers: Vec<(Provider, String)> =
        env.providers.all().iter().map(|provider| (*provider, tokens::breaker(provider))).collect();
    let keys: Vec<&str> = breakers.iter().map(|(_, key)| key.as_str()).collect();
    let closed = store::gates::closed(conn, env.clock.sql(), &keys).await?;
    let refusing = breakers.iter().filter_map(|(provider, key)| {
        closed.iter().find(|closed| closed.key == *key).map(|closed| (provider, closed.reason == "not_set_up"))
    });
    Ok(refusing
        .map(|(provider, is_missing)| {
            let (who, [id, secret]) = (provider.label, words::settings(provider).unwrap_or_default());
            let why = if is_missing { "is not set up here any more" } else { "refuses our client id or secret" };
            Finding {
                kind: "provider_client",
                subject: provider.to_string(),
                what: format!("{who} {why}, so no source there gets a new token"),
                todo: format!(
                    "check `{id}` and `{secret}` against the app at {who}, then restart; no source has to be reconnected"
                ),
            }
        })
        .collect())
}

fn worker_findings(workers: &[Worker]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let named = |worker: &Worker| match (&worker.host, worker.pid) {
        (Some(host), Some(pid)) => format!("{host}:{pid}"),
        _ => worker.id.to_string(),
    };
    // It was started again: one of its kind began after its last heartbeat and works.
    let is_replaced = |dead: &Worker| {
        workers.iter().any(|other| {
            other.role == dead.role
                && other.started > dead.last_heartbeat
                && matches!(other.health(), Health::Alive | Health::Late)
        })
    };
    // A worker that died an hour ago is history, not something to do; its row stays on the Workers page.
    for worker in workers.iter().filter(|worker| worker.silent_secs < 3_600.0) {
        let (kind, what, todo) = match worker.health() {
            Health::Dead if is_replaced(worker) => continue,
            Health::Dead => (
                "worker_dead",
                format!("worker {} has been silent for {:.0} s", named(worker), worker.silent_secs),
                "its items are taken over automatically; see its log for why it died, and start it again",
            ),
            Health::Stalled => (
                "worker_stalled",
                format!(
                    "worker {} gets nowhere: {}",
                    named(worker),
                    worker.stalled_because.clone().unwrap_or_default()
                ),
                "look at the item it holds on Queues; restart the worker if it does not move",
            ),
            _ => continue,
        };
        findings.push(Finding { kind, subject: worker.id.to_string(), what, todo: todo.into() });
    }
    if !workers.iter().any(|worker| matches!(worker.health(), Health::Alive | Health::Stalled | Health::Late)) {
        findings.push(Finding {
            kind: "no_worker",
            subject: "all".into(),
            what: "no worker is running, so nothing is processed".into(),
            todo: "start one with `tributary worker`, or run `tributary up`".into(),
        });
    }
    findings
}

async fn schedule_findings(env: &Env, conn: &mut PgConnection) -> store::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for schedule in store::schedules::list(conn).await? {
        if let Some(error) = &schedule.last_error {
            findings.push(Finding {
                kind: "schedule_failing",
                subject: schedule.name.clone(),
                what: format!("schedule {} failed: {error}", schedule.name),
                todo: "it is tried again at its next tick; see the log of the worker that ran it".into(),
            });
        }
        let overdue = (env.clock.now() - schedule.next_run_at).num_seconds() as f64;
        if overdue > (2.0 * schedule.every_secs).max(120.0) {
            findings.push(Finding {
                kind: "schedule_late",
                subject: schedule.name.clone(),
                what: format!("schedule {} should have run {overdue:.0} s ago", schedule.name),
                todo: "no worker takes schedules: check that one is alive on Workers".into(),
            });
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_needs_a_person_is_named_with_what_to_do() {
        let unwell = |status: SourceStatus, code: Option<&str>| Unwell {
            id: uuid::Uuid::nil(),
            provider: "hubspot".into(),
            status,
            status_message: code.map(str::to_owned),
        };
        let finding = source_finding(
            "HubSpot",
            &unwell(SourceStatus::TokenRefreshFailed, Some("refresh_token_invalid: invalid_grant")),
        );
        let finding = finding.expect("a finding");
        assert_eq!(finding.kind, "source_reconnect");
        assert_eq!(finding.what, "HubSpot no longer accepts our token (invalid_grant)");
        assert_eq!(finding.todo, "Press Reconnect and allow it again; nothing read so far is lost");
        let finding =
            source_finding("HubSpot", &unwell(SourceStatus::ProviderError, Some("forbidden: MISSING_SCOPES")));
        assert_eq!(finding.expect("a finding").kind, "source_error");
        assert!(source_finding("HubSpot", &unwell(SourceStatus::Paused, None)).is_none());
    }

    fn worker(silent_secs: f64, stalled_because: Option<&str>, is_stopped: bool) -> Worker {
        let at = chrono::DateTime::UNIX_EPOCH;
        Worker {
            id: uuid::Uuid::nil(),
            version: "1".into(),
            host: Some("box".into()),
            pid: Some(7),
            role: None,
            started: at,
            interval_secs: 10.0,
            last_heartbeat: at,
            heartbeat_count: 1,
            success_count: 0,
            error_count: 0,
            last_error_at: None,
            last_error_message: None,
            stopped_at: is_stopped.then_some(at),
            died_at: None,
            silent_secs,
            stalled_because: stalled_because.map(str::to_owned),
        }
    }

    #[test]
    fn a_worker_is_told_of_while_something_can_be_done_about_it() {
        let kinds =
            |workers: &[Worker]| -> Vec<&str> { worker_findings(workers).iter().map(|found| found.kind).collect() };
        let alive = || worker(1.0, None, false);
        for (other, expected) in [
            (worker(1.0, None, false), vec![]),
            (worker(25.0, None, false), vec![]), // late: it may come back
            (worker(101.0, None, false), vec!["worker_dead"]),
            (worker(3_600.0, None, false), vec![]), // history
            (worker(1.0, Some("item m7 for 20 minutes"), false), vec!["worker_stalled"]),
            (worker(101.0, None, true), vec![]),
        ] {
            let told = format!("{:?} after {} s", other.health(), other.silent_secs);
            assert_eq!(kinds(&[alive(), other]), expected, "{told}");
        }
        let successor = Worker { started: chrono::DateTime::UNIX_EPOCH + chrono::TimeDelta::seconds(1), ..alive() };
        assert_eq!(kinds(&[successor, worker(101.0, None, false)]), [] as [&str; 0], "it was started again");
        assert_eq!(kinds(&[]), ["no_worker"]);
        assert_eq!(kinds(&[worker(101.0, None, false)]), ["worker_dead", "no_worker"]);
        assert_eq!(kinds(&[worker(1.0, None, true)]), ["no_worker"]);
        let stalled = worker_findings(&[worker(1.0, Some("item m7 for 20 minutes"), false)]);
        assert_eq!(stalled[0].what, "worker box:7 gets nowhere: item m7 for 20 minutes");
        let dead = worker_findings(&[alive(), worker(120.4, None, false)]);
        assert_eq!(dead[0].what, "worker box:7 has been silent for 120 s");
    }
}
