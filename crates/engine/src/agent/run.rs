//! The loop of an agent. Nothing that it holds is lost when it dies: locks that are not renewed expire, and late results are refused.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use domain::Fault;
use serde_json::Value;
use store::crash::{self, Point};
use tokio::task::{AbortHandle, Id, JoinSet};
use tokio::time::Instant;

use super::{Beat, Desk, Orders, Outcome, Settled, Work};
use crate::enrich::{Failure, Processors, Subject};
use crate::work::Stop;

const BEAT: Duration = Duration::from_secs(10);
/// The interval at which locks are renewed. Much shorter than `domain::activity::UNLOCK_AFTER`.
const RENEW: Duration = Duration::from_secs(60);
/// The pause after an error.
const PAUSE: Duration = Duration::from_secs(2);
/// The number of activities claimed at once if processing takes no time.
const AT_ONCE: usize = 32;

/// Processes activities until told to stop. Then it finishes those that it holds, or gives them back after `drain`.
pub async fn run<D: Desk>(desk: D, processors: Processors, most: usize, drain: Duration, stop: Stop) {
    let mut agent = Agent {
        desk: Arc::new(desk),
        processors: Arc::new(processors),
        most,
        orders: Orders { is_enabled: true, concurrency: most },
        tasks: JoinSet::new(),
        held: HashMap::new(),
        settled: Vec::new(),
        processed: 0,
        next_claim: Instant::now(),
        next_beat: Instant::now(),
        next_renewal: Instant::now() + RENEW,
        is_away: false,
    };
    agent.work(&stop).await;
    agent.finish(drain).await;
}

struct Agent<D: Desk> {
    desk: Arc<D>,
    processors: Arc<Processors>,
    /// The largest number at once, whatever people set.
    most: usize,
    orders: Orders,
    tasks: JoinSet<Settled<D::Of>>,
    held: HashMap<Id, Held<D::Of>>,
    /// Results that are not written yet, because the desk was away.
    settled: Vec<Settled<D::Of>>,
    processed: i64,
    next_claim: Instant,
    next_beat: Instant,
    next_renewal: Instant,
    is_away: bool,
}

/// A claim that it may make.
struct Hands {
    source_types: &'static [&'static str],
    free: usize,
}

struct Held<Of> {
    work: Work<Of>,
    since: Instant,
    task: AbortHandle,
}

impl<Of> Held<Of> {
    fn is_recording(&self) -> bool {
        is_recording(&self.work.raw_data)
    }
}

fn is_recording(raw_data: &Value) -> bool {
    raw_data.get("source_type").and_then(Value::as_str) == Some("url")
}

impl<D: Desk> Agent<D> {
    async fn work(&mut self, stop: &Stop) {
        while !stop.is_stopping() {
            self.keep_up().await;
            if !self.settled.is_empty() {
                continue; // it has paused; results go before everything else
            }
            let free = self.free();
            let is_free = !free.is_empty();
            if is_free && Instant::now() >= self.next_claim {
                self.next_claim = Instant::now() + D::POLL;
                for hands in free {
                    self.claim(hands).await;
                }
                continue;
            }
            let desk = self.desk.clone();
            let next = [self.next_beat, self.next_renewal].into_iter().min().unwrap_or(self.next_beat);
            tokio::select! {
                Some(done) = self.tasks.join_next_with_id() => self.take(done),
                () = desk.woken(), if is_free => self.next_claim = Instant::now(),
                () = tokio::time::sleep_until(self.next_claim), if is_free => {}
                () = tokio::time::sleep_until(next) => {}
                () = stop.stopped() => {}
            }
        }
    }

    /// Does what is due besides new activities.
    async fn keep_up(&mut self) {
        while let Some(done) = self.tasks.try_join_next_with_id() {
            self.take(done);
        }
        if !self.settled.is_empty() && !self.settle().await {
            tokio::time::sleep(PAUSE).await;
        }
        if Instant::now() >= self.next_beat {
            self.beat(false).await;
        }
        if Instant::now() >= self.next_renewal {
            self.renew().await;
        }
    }

    /// The kinds of content that it has hands for, and how many. An ear of this machine is one more hand, so that no text waits for a call.
    fn free(&self) -> Vec<Hands> {
        if !self.orders.is_enabled || !self.settled.is_empty() {
            return Vec::new();
        }
        let most = self.orders.concurrency.min(self.most);
        let hands = |source_types, most: usize| Hands {
            source_types,
            free: most.saturating_sub(self.held_of(source_types).count()),
        };
        let all = match self.processors.hear_here() {
            true => vec![hands(&["text"], most), hands(&["url"], most.min(1))],
            false => vec![hands(self.processors.source_types(), most)],
        };
        all.into_iter().filter(|hands| hands.free > 0).collect()
    }

    fn held_of(&self, source_types: &'static [&'static str]) -> impl Iterator<Item = &Held<D::Of>> {
        let is_meant =
            move |held: &&Held<D::Of>| source_types.contains(if held.is_recording() { &"url" } else { &"text" });
        self.held.values().filter(is_meant)
    }

    async fn claim(&mut self, hands: Hands) {
        let Hands { source_types, free } = hands;
        let is_instant = self.processors.are_instant() && source_types == ["text"];
        let most = if is_instant { free.max(AT_ONCE) } else { free };
        let held: Vec<D::Of> = self.held_of(source_types).map(|held| held.work.of.clone()).collect();
        let claimed = match self.desk.claim(source_types, most, &held).await {
            Ok(claimed) => claimed,
            Err(fault) => {
                self.went_wrong("claim", &fault);
                self.next_claim = Instant::now() + PAUSE.min(D::POLL);
                return;
            }
        };
        self.is_away = false;
        if claimed.is_empty() {
            return;
        }
        if crash::at(Point::AgentClaimed).is_err() {
            return;
        }
        self.next_claim = Instant::now(); // there may be more
        for work in claimed {
            match self.processors.at_once(&work.raw_data) {
                Some(made) => self.settled.push((work, Outcome::Completed(made))),
                None => self.begin(work),
            }
        }
    }

    fn begin(&mut self, work: Work<D::Of>) {
        let (desk, processors) = (self.desk.clone(), self.processors.clone());
        let taken = work.clone();
        let task = self.tasks.spawn(async move {
            let outcome = match process(&*desk, &processors, &taken).await {
                Ok(made) => Outcome::Completed(made),
                Err(failure) => Outcome::Failed(failure),
            };
            (taken, outcome)
        });
        self.held.insert(task.id(), Held { work, since: Instant::now(), task });
    }

    fn take(&mut self, done: Result<(Id, Settled<D::Of>), tokio::task::JoinError>) {
        match done {
            Ok((id, settled)) => {
                self.held.remove(&id);
                self.settled.push(settled);
            }
            Err(error) => {
                // A cancelled task means that the activity is no longer ours. A panic counts against the activity, and others continue.
                if let Some(held) = self.held.remove(&error.id())
                    && error.is_panic()
                {
                    let failure = Failure::new("ValidationError", "its processor broke down over it");
                    self.settled.push((held.work, Outcome::Failed(failure)));
                }
            }
        }
    }

    /// Writes results. Returns `false` if they have to be tried again.
    async fn settle(&mut self) -> bool {
        let before = self.settled.len();
        match self.desk.settle(&mut self.settled).await {
            Ok(late) => {
                self.processed += (before - self.settled.len()).saturating_sub(late) as i64;
                if late > 0 {
                    tracing::warn!("{late} results came too late: other agents have claimed those activities");
                }
            }
            Err(fault) => self.went_wrong("write results down", &fault),
        }
        self.settled.is_empty()
    }

    async fn beat(&mut self, is_goodbye: bool) {
        self.next_beat = Instant::now() + BEAT;
        let mut held: Vec<&Held<D::Of>> = self.held.values().collect();
        held.sort_by_key(|held| held.since);
        let held = held.iter().map(|held| (held.work.of.clone(), held.work.id)).collect();
        match self.desk.beat(&Beat { held, processed: self.processed, is_goodbye }).await {
            Ok(orders) => {
                if orders != self.orders {
                    let state = if orders.is_enabled { "enabled" } else { "disabled" };
                    tracing::info!("this agent is {state}, with {} at once", orders.concurrency.min(self.most));
                }
                self.orders = orders;
            }
            Err(fault) => self.went_wrong("say that it lives", &fault),
        }
    }

    /// Renews long-running activities and stops those that another agent holds by now.
    async fn renew(&mut self) {
        self.next_renewal = Instant::now() + RENEW;
        for held in self.held.values().filter(|held| held.since.elapsed() > RENEW / 2) {
            match self.desk.renew(&held.work).await {
                Ok(true) => {}
                Ok(false) => {
                    tracing::warn!(
                        "another agent has claimed activity {}: its unfinished work is dropped",
                        held.work.id
                    );
                    held.task.abort();
                }
                Err(fault) => tracing::debug!("a lock could not be renewed: {}", fault.in_words()),
            }
        }
    }

    async fn finish(&mut self, drain: Duration) {
        let until = Instant::now() + drain;
        while !self.held.is_empty() && Instant::now() < until {
            tokio::select! {
                Some(done) = self.tasks.join_next_with_id() => self.take(done),
                () = tokio::time::sleep_until(until.min(self.next_beat)) => {}
            }
            self.keep_up().await;
        }
        self.tasks.abort_all();
        let given_back = self.held.drain().map(|(_, held)| (held.work, Outcome::Released));
        self.settled.extend(given_back);
        if !self.settled.is_empty() && !self.settle().await {
            tracing::warn!("{} activities stay locked until their locks are given back", self.settled.len());
        }
        self.beat(true).await;
    }

    fn went_wrong(&mut self, doing: &str, fault: &Fault) {
        // Log it once, not every two seconds.
        if !std::mem::replace(&mut self.is_away, true) {
            tracing::warn!("this agent could not {doing}, will keep trying: {}", fault.in_words());
        }
    }
}

async fn process<D: Desk>(desk: &D, processors: &Processors, work: &Work<D::Of>) -> Result<Value, Failure> {
    let subject = Subject { r#type: &work.r#type, raw_data: &work.raw_data };
    let recording = match is_recording(&work.raw_data) {
        true => {
            processors.must_hear()?; // before it is fetched in vain
            Some(desk.recording(work).await?)
        }
        false => None,
    };
    processors.process(&subject, recording.as_ref()).await
}

#[cfg(test)]
mod tests;
