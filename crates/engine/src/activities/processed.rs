//! Activities that an agent processes call by call: claimed, completed, failed. An agent that holds its work itself uses the functions of the database.

use domain::{ActivityId, Caller, Notice, Op};
use serde_json::{Value, json};
use store::activities::notices;
use store::claims::{self, Claim};
use uuid::Uuid;

use crate::{ActError, Env};

/// The most activities that one call claims.
pub const MOST_CLAIMED: i32 = 5;
/// The most that an agent writes into an activity, as JSON.
pub const RESULT_BYTES: usize = 256 * 1024;

/// Claims the next activities for the caller's person, those of texts alone unless recordings are wanted too.
pub async fn claim(env: &Env, caller: &Caller, limit: i32, with_recordings: bool) -> Result<Vec<Claim>, ActError> {
    if caller.person_id.is_none() {
        return Err(ActError::invalid("activities are claimed with a key that belongs to a person"));
    }
    let kinds: &[&str] = if with_recordings { &["text", "url"] } else { &["text"] };
    let limit = limit.clamp(1, MOST_CLAIMED);
    let claimed = env.db.write_as(caller, async |tx| {
        let claimed = claims::claim(tx, limit, kinds).await?;
        let ids: Vec<Uuid> = claimed.iter().map(|claim| claim.id).collect();
        tx.notify_all(Notice::activities(caller.tenant_id, &ids, Op::Update));
        Ok::<_, ActError>(claimed)
    });
    let claimed = claimed.await?;
    let agent = caller.person_id.map_or_else(|| "nobody".to_owned(), |person| person.to_string());
    metrics::counter!("tributary_claim_calls_total", "agent" => agent).increment(1);
    Ok(claimed)
}

/// Returns what came in with an activity that this caller holds at this epoch.
pub async fn raw_data(env: &Env, caller: &Caller, id: ActivityId, lock_epoch: i32) -> Result<Value, ActError> {
    let (tenant_id, key_id) = (caller.tenant_id, caller.key_id);
    let raw = env.db.session(async |conn| claims::raw_data(conn, tenant_id, key_id, id.0, lock_epoch).await);
    raw.await?.ok_or_else(not_held)
}

/// Completes an activity that this caller holds at this epoch, with what was made of it.
pub async fn complete(
    env: &Env,
    caller: &Caller,
    id: ActivityId,
    lock_epoch: i32,
    made: Value,
) -> Result<(), ActError> {
    if made.to_string().len() > RESULT_BYTES {
        return Err(ActError::invalid("the result has more than 256 KiB"));
    }
    let (tenant_id, key_id) = (caller.tenant_id, caller.key_id);
    let completed = env.db.write(async |tx| {
        let done = claims::complete(tx, tenant_id, key_id, &[(id.0, lock_epoch, made)]).await?;
        tx.notify_all(notices(tenant_id, &done, Op::Update));
        Ok::<_, ActError>(!done.is_empty())
    });
    held(completed.await?)
}

/// Fails an activity that this caller holds at this epoch. It is tried again by the rules of [`domain::activity::after_failure`].
pub async fn fail(env: &Env, caller: &Caller, id: ActivityId, lock_epoch: i32, why: &str) -> Result<(), ActError> {
    let why: String = why.chars().take(2_000).collect();
    let error = json!({ "type": "AgentError", "message": why, "agent_id": caller.key_name });
    let (tenant_id, key_id) = (caller.tenant_id, caller.key_id);
    let failed = env.db.write(async |tx| {
        let is_done = claims::fail(tx, tenant_id, key_id, id.0, lock_epoch, &error).await?;
        if is_done {
            tx.notify_all(Notice::activities(tenant_id, &[id.0], Op::Update));
        }
        Ok::<_, ActError>(is_done)
    });
    held(failed.await?)
}

fn held(is_done: bool) -> Result<(), ActError> {
    if is_done { Ok(()) } else { Err(not_held()) }
}

fn not_held() -> ActError {
    ActError::conflict(
        "this key does not hold that activity at that epoch: it was completed, or given back because it took too long; claim again",
    )
}
