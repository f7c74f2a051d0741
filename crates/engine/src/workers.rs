//! Workers, and what runs on a timer, as the operator sees them.

use std::time::Duration;

use domain::{Notice, Op};
use store::claims;
use store::queue::Queue;
use store::schedules::{self, Schedule};
use store::workers::{self, Found, LaneState, Worker};
use uuid::Uuid;

use crate::{ActError, Env, activities, health};

/// A look through every queue: long, but it waits for nobody.
const TAKE_OVER_LIMIT: Duration = Duration::from_secs(60);

/// Every worker that was heard of, the liveliest first, with its lanes.
pub async fn list(env: &Env) -> Result<Vec<(Worker, Vec<LaneState>)>, ActError> {
    let loaded = env.db.session(async |conn| {
        let listed = health::list_workers(env, conn).await?;
        let ids: Vec<Uuid> = listed.iter().map(|worker| worker.id).collect();
        let lanes = workers::lanes_of(conn, &ids).await?;
        Ok((listed, lanes))
    });
    let (listed, lanes) = loaded.await?;
    let lanes_of = |id: Uuid| lanes.iter().filter(|(of, _)| *of == id).map(|(_, lane)| lane.clone()).collect();
    Ok(listed.into_iter().map(|worker| (lanes_of(worker.id), worker)).map(|(lanes, worker)| (worker, lanes)).collect())
}

/// Lists the schedules, and how their last runs went.
pub async fn schedules(env: &Env) -> Result<Vec<Schedule>, ActError> {
    Ok(env.db.session(async |conn| schedules::list(conn).await).await?)
}

/// Gives others what dead workers held: items of these queues are due at once, and activities of their built-in agents go back. What they did
/// counts as an attempt. Safe to repeat: a late write of a worker that lives after all touches nothing that was given to others.
pub(crate) async fn take_over(env: &Env, queues: &[&Queue], dead: &[Found]) -> store::Result<()> {
    let names: Vec<String> = dead.iter().map(|worker| worker.name.clone()).collect();
    let taken = env.db.within(TAKE_OVER_LIMIT).write(async |tx| {
        if !workers::may_take_over(tx).await? {
            return Ok(None);
        }
        let mut items = 0;
        for queue in queues {
            let n = queue.take_over(tx, env.clock.sql(), &names).await?;
            if n > 0 {
                tx.notify(Notice::lane(None, queue.name(), Op::Update));
            }
            items += n;
        }
        let mut recovered = 0;
        loop {
            let some = claims::take_over(tx, &names).await?;
            tx.notify_all(activities::waiting_again(&some));
            recovered += some.len();
            if some.is_empty() {
                break;
            }
        }
        workers::declare_dead(tx, dead).await?;
        Ok::<_, store::Error>(Some((items, recovered)))
    });
    if let Some((items, recovered)) = taken.await? {
        let names = names.join(", ");
        tracing::warn!(
            items,
            activities = recovered,
            "dead: {names}; {items} items and {recovered} activities go to others"
        );
        metrics::counter!("tributary_activity_recoveries_total").increment(recovered as u64);
    }
    Ok(())
}
