//! Upkeep: what the installation does for itself on a timer. Each tick of a schedule is one item of this lane.

mod tasks;

use std::time::Duration;

use domain::Fault;
use serde::{Deserialize, Serialize};
use store::memory::codes::FRESH as FRESH_VECTORS;
use store::memory::postings::FRESH;
use store::schedules;

use crate::files::attached;
use crate::lanes::client_facts;
use crate::mail::{check, pending, subscriptions};
use crate::memory::{codes, languages, moves, postings};
use crate::work::{Lane, Lease, Outcome, Schedule, UPKEEP};
use crate::{Env, blobs};

pub const SCHEDULES: &[Schedule] = &[
    Schedule {
        name: "retention",
        every: Duration::from_secs(3_600),
        what: "removes what has outlived its retention",
        run: |env| Box::pin(tasks::remove_outlived(env)),
    },
    Schedule {
        name: "unpark",
        every: Duration::from_secs(30),
        what: "sends parked items whose time has come",
        run: |env| Box::pin(tasks::unpark(env)),
    },
    Schedule {
        name: "unlock_stale_locks",
        every: Duration::from_secs(60),
        what: "gives back activities whose agent went silent",
        run: |env| Box::pin(tasks::recover_locks(env, false)),
    },
    Schedule {
        name: "reset_stale_locks",
        every: Duration::from_secs(600),
        what: "gives back activities whose agent went silent long ago, however it locked them",
        run: |env| Box::pin(tasks::recover_locks(env, true)),
    },
    Schedule {
        name: "retry_failed",
        every: Duration::from_secs(300),
        what: "has failed activities processed again, some time after their error",
        run: |env| Box::pin(tasks::retry_failed(env)),
    },
    Schedule {
        name: "memory",
        every: Duration::from_secs(60),
        what: "counts what search relies on",
        run: |env| Box::pin(tasks::maintain_memory(env)),
    },
    Schedule {
        name: "postings",
        every: Duration::from_secs(10),
        what: "sorts the words of what was remembered, so that large memories are searched fast",
        run: |env| Box::pin(postings::keep(env, FRESH)),
    },
    Schedule {
        name: "vectors",
        every: Duration::from_secs(10),
        what: "makes short forms of new vectors, so that large memories are searched fast",
        run: |env| Box::pin(codes::keep(env, FRESH_VECTORS)),
    },
    Schedule {
        name: "languages",
        every: Duration::from_secs(20),
        what: "gives documents the language that their tenant has set",
        run: |env| Box::pin(languages::keep(env)),
    },
    Schedule {
        name: "models",
        every: Duration::from_secs(60),
        what: "moves memories to the configured embedder's model, and drops tables of vectors that no memory uses",
        run: |env| Box::pin(moves::keep(env)),
    },
    Schedule {
        name: "blobs",
        every: Duration::from_secs(3_600),
        what: "removes files that nothing names any more",
        run: |env| Box::pin(blobs::collect(env)),
    },
    Schedule {
        name: "indexes",
        every: Duration::from_secs(3_600),
        what: "builds indexes that are missing, while everybody goes on writing",
        run: |env| Box::pin(tasks::build_indexes(env)),
    },
    Schedule {
        name: "syncs",
        every: Duration::from_secs(30),
        what: "starts the syncs whose time has come, and has clients derived whose turn was missed",
        run: |env| Box::pin(tasks::start_syncs(env)),
    },
    Schedule {
        name: pending::SCHEDULE,
        every: Duration::from_secs(5),
        what: "starts the syncs of mailboxes of which something was heard, where none has begun",
        run: |env| Box::pin(pending::keep(env)),
    },
    Schedule {
        name: "mail_subscriptions",
        every: Duration::from_secs(30),
        what: "makes and renews the subscriptions by which providers tell of mailboxes' changes",
        run: |env| Box::pin(subscriptions::keep(env)),
    },
    Schedule {
        name: "mail_checks",
        every: Duration::from_secs(900),
        what: "has the letters of mailboxes counted, once a day each, and compared with what is stored",
        run: |env| Box::pin(check::keep(env)),
    },
    Schedule {
        name: "files",
        every: Duration::from_secs(60),
        what: "has files read again whose reading was forgotten",
        run: |env| Box::pin(tasks::read_lost_files(env)),
    },
    Schedule {
        name: "attached",
        every: Duration::from_secs(60),
        what: "has files of events read that came before files were read",
        run: |env| Box::pin(attached::keep(env)),
    },
    Schedule {
        name: "client_texts",
        every: Duration::from_secs(3_600),
        what: "has the texts of clients made anew when a day that they speak of has passed",
        run: |env| Box::pin(client_facts::mark_outdated(env)),
    },
    Schedule {
        name: "takeover",
        every: Duration::from_secs(10),
        what: "gives others what a dead worker held",
        run: |env| Box::pin(tasks::take_over(env)),
    },
    Schedule {
        name: "tokens",
        every: Duration::from_secs(3_600),
        what: "removes tokens that were replaced a day ago",
        run: |env| Box::pin(tasks::collect_tokens(env)),
    },
    Schedule {
        name: "watch",
        every: Duration::from_secs(30),
        what: "opens and closes alerts",
        run: |env| Box::pin(tasks::watch(env)),
    },
];

/// One tick of a schedule.
#[derive(Serialize, Deserialize)]
pub struct Upkeep {
    task: String,
}

impl Lane for Upkeep {
    const NAME: &'static str = UPKEEP;
    const IS_LONG: bool = true;
    /// One for each task, of which the queue never holds two: no task waits for another.
    const SLOTS: Option<u32> = Some(SCHEDULES.len() as u32);
    /// Short: a tick whose worker died keeps the next one of its task from firing.
    const LEASE_SECS: u32 = 20;
    /// A build of the missing indexes of a large installation.
    const MAX_RUN: Duration = Duration::from_secs(3_600);

    /// Safe to repeat: every task brings the database to a state and stops there.
    async fn run(self, env: &Env, lease: &Lease) -> Result<Outcome, Fault> {
        let Some(schedule) = SCHEDULES.iter().find(|schedule| schedule.name == self.task) else {
            let wait = Duration::from_secs(60);
            return Ok(Outcome::Snooze(wait, "this worker does not know the task; a newer one will"));
        };
        let done = (schedule.run)(env).await;
        let mut effect = lease.begin(env).await?;
        let error = done.as_ref().err().map(Fault::in_words);
        schedules::record(&mut effect, env.clock.sql(), &self.task, error.as_deref()).await?;
        if let Some(error) = error {
            // The tick is over, its error is on the schedule's row and on Home; the next tick tries again.
            tracing::error!(task = self.task, "upkeep task {} failed: {error}", self.task);
        }
        effect.commit().await
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    #[test]
    fn every_schedule_has_a_name_of_its_own() {
        let names: HashSet<&str> = SCHEDULES.iter().map(|schedule| schedule.name).collect();
        assert_eq!(names.len(), SCHEDULES.len());
    }

    #[test]
    fn schedules_do_not_fire_in_the_same_second() {
        let mut firings: HashMap<u64, Vec<&str>> = HashMap::new();
        for schedule in SCHEDULES {
            let first = schedule.first_after();
            assert!(first <= Duration::from_secs(30) && first <= schedule.every, "{} begins late", schedule.name);
            for second in (first.as_secs()..2 * 3_600).step_by(schedule.every.as_secs() as usize) {
                firings.entry(second).or_default().push(schedule.name);
            }
        }
        let crowded: Vec<_> = firings.iter().filter(|(_, names)| names.len() > 2).collect();
        assert!(crowded.is_empty(), "more than two at once: {crowded:?}");
        let first_minute: usize = (0..30).filter(|second| firings.contains_key(second)).count();
        assert!(first_minute > 8, "the first firings stand in {first_minute} seconds");
    }
}
