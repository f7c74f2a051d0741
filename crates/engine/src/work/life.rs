//! Keeps the session that speaks for this process, and takes over from processes whose session has ended.

use std::sync::Arc;
use std::time::Duration;

use store::queue::Queue;
use store::workers::Found;
use store::workers::life::Life;

use super::counters::LaneCounters;
use crate::{Env, workers};

const LOOK: Duration = Duration::from_secs(1);
/// One look, connecting included.
const LIMIT: Duration = Duration::from_secs(5);
/// Looks before a new session judges others: when the server has dropped everyone's, the living have theirs again by then.
const SETTLED: u32 = 3;

/// Never ends.
pub(super) async fn keep(env: &Env, life: &mut Life, lanes: &[Arc<LaneCounters>]) {
    let queues: Vec<&Queue> = lanes.iter().map(|lane| lane.entry.queue()).collect();
    let (mut suspects, mut n_looks): (Vec<Found>, u32) = (Vec::new(), 0);
    loop {
        tokio::time::sleep(LOOK).await;
        let Ok(Some(found)) = store::within(LIMIT, life.look(&env.db)).await else {
            (suspects, n_looks) = (Vec::new(), 0);
            continue;
        };
        n_looks += 1;
        // Twice: a worker that is just replacing its own session has it at the second look.
        let dead: Vec<Found> = found.iter().filter(|worker| suspects.contains(worker)).cloned().collect();
        suspects = found;
        if n_looks >= SETTLED
            && !dead.is_empty()
            && let Err(error) = workers::take_over(env, &queues, &dead).await
        {
            tracing::warn!(error = ?error, "dead workers could not be taken over from, will try again");
        }
    }
}
