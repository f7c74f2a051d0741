//! Moves of a tenant's memory to another model: what one would cost, how it begins, how far it is, and how it is cancelled. Lane `reembed` does the
//! work. The upkeep task `models` begins moves to the configured model by itself.

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use domain::shown::{dollars, number, rate, span};
use domain::{Caller, Fault, Notice, Op, Priority, TenantId};
use serde_json::json;
use store::PgConnection;
use store::memory::VectorTable;
use store::memory::moves::{self, Move, NewMove, Placed, State};

use super::embed::{Embedder, table_of};
use crate::act::OrMissing as _;
use crate::lanes::queue_of;
use crate::lanes::reembed::Reembed;
use crate::{ActError, Env};

/// The name under which the task begins moves.
const BY_SETTING: &str = "the setting EMBEDDER";
/// A memory is not moved back by itself to a model that it has left within this time: two workers with different settings would move it for ever.
const LEFT: TimeDelta = TimeDelta::days(1);
/// A move that got nowhere for this long is stuck.
const STUCK: TimeDelta = TimeDelta::minutes(10);

/// A tenant's memory: its model, and its move if there is one.
#[derive(Clone, Debug)]
pub struct Status {
    pub placed: Placed,
    /// Whether the settings describe an embedder of its model. If not, searches go by keyword until it has moved.
    pub can_be_asked: bool,
    /// The model that the settings name.
    pub configured: String,
    pub moving: Option<Move>,
}

/// The size and price of a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Estimate {
    pub from: String,
    pub to: String,
    /// Chunks that have no vector of the new model yet.
    pub chunks: i64,
    pub tokens: i64,
    /// Millionths of a dollar.
    pub cost_micros: i64,
}

/// The memories that the caller may see: its tenant's, or all of them for the operator.
pub async fn status(env: &Env, caller: &Caller) -> Result<Vec<Status>, ActError> {
    let whose = if caller.operates() { None } else { Some(caller.tenant_id) };
    Ok(env.db.session(async |conn| look(env, conn, whose).await).await?)
}

/// The caller's own memory. None: nothing has been remembered yet.
pub async fn own(env: &Env, caller: &Caller) -> Result<Option<Status>, ActError> {
    Ok(env.db.session(async |conn| of_tenant(env, conn, caller.tenant_id).await).await?)
}

pub(crate) async fn of_tenant(env: &Env, conn: &mut PgConnection, id: TenantId) -> store::Result<Option<Status>> {
    Ok(look(env, conn, Some(id)).await?.pop())
}

async fn look(env: &Env, conn: &mut PgConnection, whose: Option<TenantId>) -> store::Result<Vec<Status>> {
    let (placed, under_way) = (moves::placed(conn, whose).await?, moves::list(conn, whose).await?);
    let mut under_way: HashMap<_, Move> = under_way.into_iter().map(|moving| (moving.tenant_id, moving)).collect();
    let status = |placed: Placed| Status {
        can_be_asked: env.embedders.of_model(&placed.model).is_some(),
        configured: env.embedders.configured().model().name.clone(),
        moving: under_way.remove(&placed.tenant_id),
        placed,
    };
    Ok(placed.into_iter().map(status).collect())
}

/// Estimates a move of the caller's memory to a model, or to the configured one.
pub async fn estimate(env: &Env, caller: &Caller, to: Option<&str>) -> Result<Estimate, ActError> {
    let embedder = embedder(env, to)?;
    estimate_for(env, caller.tenant_id, embedder).await
}

/// Begins to move the caller's memory to a model, or to the configured one. Returns what it will cost.
pub async fn begin(env: &Env, caller: &Caller, to: Option<&str>) -> Result<Estimate, ActError> {
    let embedder = embedder(env, to)?;
    let is_chosen = embedder.model() != env.embedders.configured().model();
    begin_as(env, caller.tenant_id, embedder, is_chosen, &caller.key_name).await
}

/// Cancels the move of the caller's memory: it stays with the model that it has, and the new vectors are removed.
pub async fn cancel(env: &Env, caller: &Caller) -> Result<(), ActError> {
    let tenant_id = caller.tenant_id;
    cancel_for(env, tenant_id, true).await?;
    tracing::info!(tenant.id = %tenant_id, "the move of tenant {tenant_id}'s memory was cancelled by key {}", caller.key_id);
    Ok(())
}

/// Says how far a move is, in a sentence without its full stop.
pub fn in_words(moving: &Move) -> String {
    let Move { from_model: from, to_model: to, n_left, n_embedded, .. } = moving;
    let mut said = match moving.state {
        State::Embedding => {
            let mut said = format!(
                "moves from {from} to {to}: {} chunks embedded, about {} left",
                number(*n_embedded),
                number(*n_left)
            );
            if let Some(per_second) = moving.rate.filter(|rate| *rate > 0.0) {
                said += &format!(", {} a second", rate(per_second));
                said += &secs_left(moving).map(|secs| format!(", {} to go", span(secs))).unwrap_or_default();
            }
            said
        }
        State::Indexing => {
            format!("moves from {from} to {to}: every chunk is embedded, and searches are about to switch")
        }
        State::Tidying => format!("uses {to}; the vectors of {from} are being removed"),
        State::Cancelling => format!("stays with {from}; the vectors of {to} are being removed"),
    };
    if moving.estimated_micros > 0 {
        said +=
            &format!("; cost {} so far, of about {}", dollars(moving.cost_micros), dollars(moving.estimated_micros));
    }
    if let Some(why) = &moving.waits_for {
        said += &format!("; waits: {why}");
    }
    said
}

/// How much of the chunks have their new vector. None once searches have switched.
pub fn percent(moving: &Move) -> Option<i64> {
    let all = moving.n_embedded.saturating_add(moving.n_left).max(1);
    moving.state.is_before_switch().then(|| moving.n_embedded.saturating_mul(100) / all)
}

/// The time that a move still takes, in seconds, at its present rate.
pub fn secs_left(moving: &Move) -> Option<i64> {
    let per_second = moving.rate.filter(|rate| *rate > 0.0)?;
    moving.state.is_before_switch().then(|| (moving.n_left as f64 / per_second).ceil() as i64)
}

/// The notice that makes pages look again.
pub(crate) fn changed(tenant_id: TenantId) -> Notice {
    Notice { tenant_id: Some(tenant_id), kind: "memory".into(), id: String::new(), op: Op::Update, ids: Vec::new() }
}

/// Finds an embedder by the name of its model: as tables have it, or without its dimensions and with any punctuation.
fn embedder<'a>(env: &'a Env, to: Option<&str>) -> Result<&'a Embedder, ActError> {
    let Some(to) = to else { return Ok(env.embedders.configured()) };
    let plain = |name: &str| name.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    let wanted = plain(to.trim());
    let is_meant = |name: &&str| *name == wanted || name.rsplit_once('_').is_some_and(|(model, _)| model == wanted);
    let found = env.embedders.models().find(is_meant).and_then(|name| env.embedders.of_model(name));
    found.ok_or_else(|| {
        let known: Vec<&str> = env.embedders.models().collect();
        ActError::invalid(format!(
            "the settings describe no embedder of that model; there is {}. Set EMBEDDER and what belongs to it first",
            known.join(", ")
        ))
    })
}

async fn estimate_for(env: &Env, tenant_id: TenantId, embedder: &Embedder) -> Result<Estimate, ActError> {
    let to = embedder.model().name.clone();
    let table = VectorTable::new(&to)?;
    let counted = env.db.session(async |conn| {
        let memory = store::memory::tenant(conn, tenant_id).await?;
        let known = memory.has_table(&table).then_some(&table);
        Ok((moves::count_lacking(conn, tenant_id, known).await?, memory.model))
    });
    let ((chunks, n_bytes), from) = counted.await?;
    let from = from.or_missing("memory")?;
    let (tokens, cost_micros) = embedder.estimate(usize::try_from(n_bytes).unwrap_or_default());
    Ok(Estimate { from, to, chunks, tokens, cost_micros })
}

async fn begin_as(
    env: &Env,
    tenant_id: TenantId,
    embedder: &Embedder,
    is_chosen: bool,
    asked_by: &str,
) -> Result<Estimate, ActError> {
    let estimate = estimate_for(env, tenant_id, embedder).await?;
    if estimate.from == estimate.to {
        return Err(ActError::conflict(format!("this memory uses the model {} already", estimate.to)));
    }
    let begun = env.db.write(async |tx| {
        let memory = store::memory::tenant(tx, tenant_id).await?;
        table_of(tx, &memory, embedder).await?;
        let (to_model, n_left, estimated_micros) = (&*estimate.to, estimate.chunks, estimate.cost_micros);
        let new = NewMove { to_model, is_chosen, asked_by, n_left, estimated_micros };
        if !moves::begin(tx, env.clock.sql(), tenant_id, &new).await? {
            return Err(ActError::conflict("this memory moves already: cancel that first, or wait until it is done"));
        }
        send(tx, tenant_id, &estimate.to).await?;
        tx.notify(changed(tenant_id));
        Ok(())
    });
    begun.await?;
    let Estimate { from, to, chunks, tokens, cost_micros } = &estimate;
    tracing::info!(
        tenant.id = %tenant_id,
        "the memory of tenant {tenant_id} moves from {from} to {to}, as {asked_by} wants: {chunks} chunks, about {tokens} tokens, cost: {}",
        dollars(*cost_micros)
    );
    Ok(estimate)
}

async fn cancel_for(env: &Env, tenant_id: TenantId, is_chosen: bool) -> Result<(), ActError> {
    let cancelled = env.db.write(async |tx| {
        let moving = moves::lock(tx, tenant_id).await?.or_missing("move")?;
        match moving.state {
            State::Cancelling => return Ok(()),
            State::Tidying => {
                return Err(ActError::conflict("its searches use the new model already; move it back instead"));
            }
            State::Embedding | State::Indexing => {}
        }
        moves::enter(tx, env.clock.sql(), tenant_id, State::Cancelling, None).await?;
        if is_chosen {
            moves::choose(tx, tenant_id, true).await?;
        }
        // The move's own item may be parked for weeks.
        send(tx, tenant_id, &moving.to_model).await?;
        tx.notify(changed(tenant_id));
        Ok::<(), ActError>(())
    });
    cancelled.await
}

async fn send(tx: &mut store::Tx, tenant_id: TenantId, model: &str) -> store::Result<()> {
    let message = Reembed { model: model.to_owned() };
    queue_of::<Reembed>().send_as(tx, tenant_id, Priority::History, &[message]).await?;
    Ok(())
}

/// Moves memories to the configured model where the settings want it, keeps moves going, and drops the tables of models that nobody uses.
pub async fn keep(env: &Env) -> Result<(), Fault> {
    let mut conn = env.db.acquire().await?;
    let (placed, under_way) = (moves::placed(&mut conn, None).await?, moves::list(&mut conn, None).await?);
    drop(conn);
    let (configured, now) = (env.embedders.configured(), env.clock.now());
    // A memory for which something fails holds up no other.
    let mut failed = None;
    for moving in &under_way {
        failed = keep_going(env, moving, now).await.err().or(failed);
    }
    for memory in &placed {
        let is_moving = under_way.iter().any(|moving| moving.tenant_id == memory.tenant_id);
        if is_moving || !env.config.auto_reembed || !is_moved_by_itself(memory, &configured.model().name, now) {
            continue;
        }
        match begin_as(env, TenantId(memory.tenant_id), configured, false, BY_SETTING).await {
            Ok(_) | Err(ActError::Conflict(_) | ActError::NotFound(_)) => {} // another worker was first, or it is forgotten
            Err(ActError::Store(error)) => failed = Some(error.into()),
            Err(error @ ActError::Invalid(_)) => failed = Some(Fault::Malformed { what: error.to_string() }),
            Err(ActError::Failed(fault)) => failed = Some(fault),
        }
    }
    let mut conn = env.db.acquire().await?;
    let in_force = configured.model().name.as_str();
    for model in moves::drop_unused_models(&mut conn, env.clock.sql(), &[in_force]).await? {
        tracing::info!("the table of the model {model} was dropped: no memory has used it for an hour");
    }
    failed.map_or(Ok(()), Err)
}

/// Sends for a move whose item somebody has skipped. Cancels one to a model that no worker asks any more, so that another can begin.
async fn keep_going(env: &Env, moving: &Move, now: DateTime<Utc>) -> Result<(), Fault> {
    let (tenant_id, queue) = (TenantId(moving.tenant_id), queue_of::<Reembed>());
    let is_stuck = now - moving.progressed_at > STUCK && moving.state.is_before_switch();
    let is_foreign = env.embedders.of_model(&moving.to_model).is_none();
    if is_stuck && is_foreign && !moving.is_chosen && env.config.auto_reembed {
        match cancel_for(env, tenant_id, false).await {
            Err(ActError::Store(error)) => return Err(error.into()),
            _ => return Ok(()),
        }
    }
    let of_it = json!({ "tenant_id": tenant_id, "model": moving.to_model });
    let mut tx = env.db.begin().await?;
    if !queue.holds_or_buried(&mut tx, &of_it).await? && !queue.has_parked(&mut tx, tenant_id, &of_it).await? {
        send(&mut tx, tenant_id, &moving.to_model).await?;
    }
    Ok(tx.commit().await?)
}

/// Whether the settings move a memory to the configured model without being asked.
fn is_moved_by_itself(memory: &Placed, configured: &str, now: DateTime<Utc>) -> bool {
    let has_just_left = memory.left_model.as_deref() == Some(configured)
        && memory.moved_at.is_some_and(|moved_at| now - moved_at < LEFT);
    memory.model != configured && !memory.is_chosen && !has_just_left
}

/// The reason why a person should look at a memory's model, and what to do. None: it is well, or it moves by itself.
pub(crate) fn trouble(env: &Env, status: &Status) -> Option<(&'static str, String, String)> {
    let (memory, now) = (&status.placed, env.clock.now());
    if let Some(moving) = &status.moving {
        let why = moving.waits_for.as_deref().filter(|_| now - moving.progressed_at > STUCK)?;
        let what = format!("the move of this memory to the model {} does not go on: {why}", moving.to_model);
        let todo = "it goes on by itself when that is over; `tributary memory cancel` goes back to the old model";
        return Some(("memory_stuck", what, todo.into()));
    }
    let goes_by_itself = env.config.auto_reembed && is_moved_by_itself(memory, &status.configured, now);
    let is_wanted = memory.is_chosen && status.can_be_asked;
    if memory.model == status.configured || goes_by_itself || is_wanted {
        return None;
    }
    let what = match status.can_be_asked {
        true => format!("search uses the model {}, and EMBEDDER names {}", memory.model, status.configured),
        false => {
            format!("search goes by keyword alone: no embedder here has the model {} of its vectors", memory.model)
        }
    };
    let todo = "run `tributary memory reembed`, which says first what it costs; or set EMBEDDER back".to_owned();
    Some(("memory_model", what, todo))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn placed(model: &str) -> Placed {
        Placed {
            tenant_id: Uuid::nil(),
            tenant: "default".into(),
            model: model.into(),
            is_chosen: false,
            left_model: None,
            moved_at: None,
            n_chunks: 10,
            lang: None,
            is_relabelled: false,
        }
    }

    #[test]
    fn a_memory_moves_by_itself_unless_somebody_chose_its_model_or_it_was_there_today() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(100);
        let left = |model: &str, hours: i64| Placed {
            left_model: Some(model.into()),
            moved_at: Some(now - TimeDelta::hours(hours)),
            ..placed("a")
        };
        for (what, memory, expected) in [
            ("another model", placed("a"), true),
            ("the same", placed("b"), false),
            ("chosen", Placed { is_chosen: true, ..placed("a") }, false),
            ("left today", left("b", 23), false),
            ("left yesterday", left("b", 25), true),
            ("left another", left("c", 1), true),
        ] {
            assert_eq!(is_moved_by_itself(&memory, "b", now), expected, "{what}");
        }
    }

    #[test]
    fn a_move_says_how_far_it_is() {
        let at = DateTime::UNIX_EPOCH;
        let moving = |state: State| Move {
            tenant_id: Uuid::nil(),
            from_model: "a_8".into(),
            to_model: "b_8".into(),
            state,
            is_chosen: false,
            asked_by: "test".into(),
            after: None,
            n_left: 9_000,
            n_embedded: 1_000,
            tokens: 0,
            cost_micros: 0,
            estimated_micros: 0,
            rate: None,
            waits_for: None,
            begun_at: at,
            progressed_at: at,
        };
        assert_eq!((percent(&moving(State::Embedding)), percent(&moving(State::Tidying))), (Some(10), None));
        let fast = Move { rate: Some(100.0), ..moving(State::Embedding) };
        let paid = Move {
            cost_micros: 10_000,
            estimated_micros: 100_000,
            waits_for: Some("the embedder is away".into()),
            ..moving(State::Embedding)
        };
        for (moving, expected) in [
            (moving(State::Embedding), "moves from a_8 to b_8: 1,000 chunks embedded, about 9,000 left"),
            (fast, "moves from a_8 to b_8: 1,000 chunks embedded, about 9,000 left, 100 a second, 90 s to go"),
            (
                paid,
                "moves from a_8 to b_8: 1,000 chunks embedded, about 9,000 left; cost $0.01 so far, of about $0.10; waits: the embedder is away",
            ),
            (
                moving(State::Indexing),
                "moves from a_8 to b_8: every chunk is embedded, and searches are about to switch",
            ),
            (moving(State::Tidying), "uses b_8; the vectors of a_8 are being removed"),
            (moving(State::Cancelling), "stays with a_8; the vectors of b_8 are being removed"),
        ] {
            assert_eq!(in_words(&moving), expected);
        }
    }
}
