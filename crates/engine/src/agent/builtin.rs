//! The built-in agent, whose desk is the database itself. It claims with the same functions as other agents, in the name of each tenant's
//! system person. Without a transcriber it claims only texts, and recordings wait for an agent that has one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::{ActivityId, Caller, Fault, Notice, Op, PersonId, Scope, TenantId};
use store::crash::{self, Point};
use store::nodes::{self, Heartbeat};
use store::{activities, claims};
use tokio::sync::broadcast;
use uuid::Uuid;

use super::{Beat, Desk, Orders, Outcome, Settled, Work};
use crate::enrich::{Failure, Processors};
use crate::recordings::{self, Audio, Place};
use crate::work::runtime::woken;
use crate::work::{Registered, Stop};
use crate::{Env, work};

const DB_LIMIT: Duration = work::runtime::DB_LIMIT;
/// The app name of its rows among the nodes.
const APP_NAME: &str = "tributary";
/// The device name. There is one row per tenant, whichever machine runs it, so its settings also apply to a replacement machine.
const DEVICE_NAME: &str = "built-in";

/// Processes activities until told to stop. It begins when its process is registered, because it claims in the name of that worker.
pub async fn run(env: Env, registered: Registered, stop: Stop) {
    let processors = match Processors::new(&env.config, &env.http) {
        Ok(processors) => processors,
        Err(error) => return tracing::error!("the built-in agent does not run: {error:#}"),
    };
    if !registered.or_stopped(&stop).await {
        return;
    }
    let (most, drain) = (env.config.agent_concurrency as usize, Duration::from_secs(env.config.drain_secs));
    super::run(Builtin::new(env, &processors), processors, most, drain, stop).await;
}

pub struct Builtin {
    env: Env,
    source_types: &'static [&'static str],
    /// Whether texts are processed at once, without asking a service.
    is_instant: bool,
    /// The tenant that is asked first, for texts and for recordings.
    turn: AtomicUsize,
    turn_to_be_heard: AtomicUsize,
    wake: tokio::sync::Mutex<broadcast::Receiver<Notice>>,
    people: Mutex<HashMap<TenantId, Person>>,
    /// Whether the nodes of tenants where it worked before have been shown as alive.
    is_introduced: AtomicBool,
}

/// Its identity in one tenant.
#[derive(Clone)]
struct Person {
    caller: Caller,
    id: PersonId,
    /// The settings from the Agents page.
    orders: Orders,
}

impl Builtin {
    pub fn new(env: Env, processors: &Processors) -> Self {
        let (source_types, is_instant) = (processors.source_types(), processors.are_instant());
        Self {
            wake: tokio::sync::Mutex::new(env.db.bus().subscribe()),
            env,
            source_types,
            turn: AtomicUsize::default(),
            turn_to_be_heard: AtomicUsize::default(),
            is_instant,
            people: Mutex::default(),
            is_introduced: AtomicBool::default(),
        }
    }

    fn people(&self) -> MutexGuard<'_, HashMap<TenantId, Person>> {
        self.people.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns its identity in a tenant, created on first use. It sends a heartbeat at once, so that it has its settings before it claims.
    async fn person(&self, tenant_id: TenantId) -> store::Result<Person> {
        if let Some(person) = self.people().get(&tenant_id) {
            return Ok(person.clone());
        }
        let mut tx = self.env.db.begin().await?;
        let (id, user_id, key_id) = claims::ensure_agent(&mut tx, tenant_id, self.source_types).await?;
        tx.commit().await?;
        let caller = Caller {
            key_id,
            person_id: Some(id),
            user_id: Some(user_id),
            scopes: vec![Scope::Agent],
            ..Caller::local("built-in agent", tenant_id, false)
        };
        let orders = self.beat_as(tenant_id, id, &Beat::default()).await?;
        let person = Person { caller, id, orders };
        self.people().insert(tenant_id, person.clone());
        Ok(person)
    }

    /// Forgets an identity whose person may have been removed, so that it is created again.
    fn forget(&self, tenant_id: TenantId, error: &store::Error) {
        if !error.is_passing() {
            self.people().remove(&tenant_id);
        }
    }

    async fn beat_as(&self, tenant_id: TenantId, person_id: PersonId, beat: &Beat<TenantId>) -> store::Result<Orders> {
        let current = beat.held.iter().find(|(of, _)| *of == tenant_id).map(|(_, id)| ActivityId(*id));
        let heartbeat = Heartbeat {
            person_id,
            app_name: APP_NAME,
            device_name: DEVICE_NAME,
            status: beat.status(current.is_some()),
            current_activity_id: current,
            processed_count: beat.processed,
            concurrency: self.env.config.agent_concurrency,
        };
        let mut conn = self.env.db.acquire().await?;
        let (is_enabled, concurrency) = nodes::beat(&mut conn, tenant_id, &heartbeat).await?;
        Ok(Orders { is_enabled, concurrency: usize::try_from(concurrency).unwrap_or(1) })
    }

    async fn claim_of(
        &self,
        tenant_id: TenantId,
        source_types: &[&str],
        most: usize,
        n_held: usize,
    ) -> store::Result<Vec<Work<TenantId>>> {
        let person = self.person(tenant_id).await?;
        // Activities that take no time are never held.
        let limit = if self.is_instant && source_types == ["text"] {
            most
        } else {
            person.orders.concurrency.saturating_sub(n_held).min(most)
        };
        if !person.orders.is_enabled || limit == 0 {
            return Ok(Vec::new());
        }
        let mut tx = self.env.db.begin_as(&person.caller).await?;
        claims::hold_as(&mut tx, &self.env.name).await?;
        let claimed = claims::claim(&mut tx, i32::try_from(limit).unwrap_or(i32::MAX), source_types).await?;
        let ids: Vec<Uuid> = claimed.iter().map(|claim| claim.id).collect();
        tx.notify_all(Notice::activities(tenant_id, &ids, Op::Update));
        tx.commit().await?;
        metrics::counter!("tributary_claim_calls_total", "agent" => person.id.to_string()).increment(1);
        let work = |claim: claims::Claim| Work {
            of: tenant_id,
            id: claim.id,
            r#type: claim.r#type,
            raw_data: claim.raw_data,
            lock_epoch: claim.lock_epoch,
        };
        Ok(claimed.into_iter().map(work).collect())
    }

    /// Writes the results of one tenant in one commit. Returns how many were still ours.
    async fn settle_of(&self, tenant_id: TenantId, settled: &[Settled<TenantId>]) -> store::Result<usize> {
        let key_id = self.person(tenant_id).await?.caller.key_id;
        let mut results = Vec::new();
        let mut tx = self.env.db.begin().await?;
        let mut ids = Vec::new();
        for (work, outcome) in settled {
            let done = match outcome {
                Outcome::Completed(made) => {
                    results.push((work.id, work.lock_epoch, made.clone()));
                    continue;
                }
                Outcome::Failed(failure) => {
                    let error = failure.to_json();
                    claims::fail(&mut tx, tenant_id, key_id, work.id, work.lock_epoch, &error).await?
                }
                Outcome::Released => claims::release(&mut tx, tenant_id, key_id, work.id, work.lock_epoch).await?,
            };
            ids.extend(done.then_some(work.id));
        }
        let completed = claims::complete(&mut tx, tenant_id, key_id, &results).await?;
        metrics::counter!("tributary_agent_completed_total").increment(completed.len() as u64);
        tx.notify_all(Notice::activities(tenant_id, &ids, Op::Update));
        tx.notify_all(activities::notices(tenant_id, &completed, Op::Update));
        ids.extend(completed);
        crash::at(Point::AgentBeforeCommit)?;
        tx.commit().await?;
        Ok(ids.len())
    }
}

impl Desk for Builtin {
    type Of = TenantId;

    const POLL: Duration = Duration::from_secs(1);

    async fn claim(
        &self,
        source_types: &'static [&'static str],
        most: usize,
        held: &[TenantId],
    ) -> Result<Vec<Work<TenantId>>, Fault> {
        let tenants =
            store::within(DB_LIMIT, async { claims::tenants_with_raw(&mut *self.env.db.acquire().await?).await });
        let tenants = tenants.await?;
        let mut all: Vec<Work<TenantId>> = Vec::new();
        // Each tenant gets its share, so that one with many activities does not delay the others. Another tenant comes first each time.
        let share = most.div_ceil(tenants.len().max(1));
        let turn = if source_types == ["url"] { &self.turn_to_be_heard } else { &self.turn };
        let first = turn.fetch_add(1, Relaxed) % tenants.len().max(1);
        for tenant_id in tenants[first..].iter().chain(&tenants[..first]) {
            let left = most - all.len();
            if left == 0 {
                break;
            }
            let n_held = held.iter().filter(|of| *of == tenant_id).count();
            match store::within(DB_LIMIT, self.claim_of(*tenant_id, source_types, share.min(left), n_held)).await {
                Ok(claimed) => all.extend(claimed),
                // Activities claimed from other tenants are already held and must not be dropped because of this.
                Err(error) => {
                    self.forget(*tenant_id, &error);
                    if all.is_empty() {
                        return Err(error.into());
                    }
                    tracing::warn!(error = ?error, tenant.id = %tenant_id, "a tenant's work could not be claimed");
                    break;
                }
            }
        }
        Ok(all)
    }

    async fn settle(&self, settled: &mut Vec<Settled<TenantId>>) -> Result<usize, Fault> {
        let mut of: HashMap<TenantId, Vec<Settled<TenantId>>> = HashMap::new();
        for one in settled.drain(..) {
            of.entry(one.0.of).or_default().push(one);
        }
        let (mut late, mut failed) = (0, None);
        for (tenant_id, all) in of {
            match store::within(DB_LIMIT, self.settle_of(tenant_id, &all)).await {
                Ok(ours) => late += all.len() - ours,
                Err(error) if error.is_passing() => {
                    settled.extend(all);
                    failed = Some(error);
                }
                // These results would fail again and block all others. Their locks expire and are counted.
                Err(error) => {
                    self.forget(tenant_id, &error);
                    tracing::error!(error = ?error, tenant.id = %tenant_id, "results could not be written down");
                }
            }
        }
        failed.map_or(Ok(late), |error| Err(error.into()))
    }

    async fn renew(&self, work: &Work<TenantId>) -> Result<bool, Fault> {
        let renewed = store::within(DB_LIMIT, async {
            let key_id = self.person(work.of).await?.caller.key_id;
            let mut conn = self.env.db.acquire().await?;
            claims::renew(&mut conn, work.of, key_id, work.id, work.lock_epoch).await
        });
        Ok(renewed.await?)
    }

    /// Sends a heartbeat for each tenant in which it has worked. A tenant's settings apply to that tenant only.
    async fn beat(&self, beat: &Beat<TenantId>) -> Result<Orders, Fault> {
        if !self.is_introduced.swap(true, Relaxed) {
            let introduced = store::within(DB_LIMIT, async {
                let tenants = claims::tenants_with_agent(&mut *self.env.db.acquire().await?).await?;
                for tenant_id in tenants {
                    self.person(tenant_id).await?;
                }
                Ok(())
            });
            introduced.await.inspect_err(|_| self.is_introduced.store(false, Relaxed))?;
        }
        let known: Vec<(TenantId, PersonId)> = self.people().iter().map(|(id, person)| (*id, person.id)).collect();
        for (tenant_id, person_id) in known {
            match store::within(DB_LIMIT, self.beat_as(tenant_id, person_id, beat)).await {
                Ok(orders) => {
                    if let Some(person) = self.people().get_mut(&tenant_id) {
                        person.orders = orders;
                    }
                }
                Err(error) if error.is_passing() => return Err(error.into()),
                Err(error) => {
                    self.forget(tenant_id, &error);
                    tracing::warn!(error = ?error, tenant.id = %tenant_id, "the built-in agent could not say that it lives");
                }
            }
        }
        Ok(Orders { is_enabled: true, concurrency: self.env.config.agent_concurrency as usize })
    }

    async fn recording(&self, work: &Work<TenantId>) -> Result<Audio, Failure> {
        let (env, tenant_id, activity_id) = (self.env.clone(), work.of, ActivityId(work.id));
        let kept = recordings::open(&env, tenant_id, activity_id).await?;
        let audio = recordings::audio(&env, tenant_id, &kept).await?.ok_or(recordings::Error::None)?;
        Ok(Audio { place: Some(Place { env, tenant_id, activity_id, key: kept.key }), ..audio })
    }

    async fn woken(&self) {
        let mut wake = self.wake.lock().await;
        woken(&mut wake, |notice| notice.kind == "activities" && notice.op == Op::Insert).await;
    }
}
