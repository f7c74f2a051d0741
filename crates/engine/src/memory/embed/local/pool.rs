//! Threads that embed texts: some for documents, at low priority, and one for questions. A question never waits for documents.
//!
//! A thread starts when there is work for it, loads what it needs, and ends when it has been idle for a while.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{iter, thread, vec};

use anyhow::{Context as _, anyhow};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::memory::embed::Side;

/// Embeds one text after the other. Each thread has its own.
pub type Embed = Box<dyn FnMut(&str) -> anyhow::Result<Vec<f32>>>;

/// The niceness of threads for documents: searches, the database and everything else go first.
const NICE: i32 = 10;

pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    load: Box<dyn Fn() -> anyhow::Result<Embed> + Send + Sync>,
    /// The time after which a thread without work ends.
    idle: Duration,
    questions: Line,
    documents: Line,
}

/// Batches that wait, and the threads that serve them.
struct Line {
    name: &'static str,
    most_threads: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    batches: VecDeque<Batch>,
    n_threads: usize,
    /// The number of threads without work.
    n_idle: usize,
    is_closed: bool,
}

/// The texts of one call that nobody has begun yet.
struct Batch {
    texts: iter::Enumerate<vec::IntoIter<String>>,
    answers: Answers,
}

type Answers = UnboundedSender<(usize, anyhow::Result<Vec<f32>>)>;

impl Pool {
    /// `load` is called by each thread for its first text, and again after a failure.
    pub fn new(
        n_threads: usize,
        idle: Duration,
        load: impl Fn() -> anyhow::Result<Embed> + Send + Sync + 'static,
    ) -> Self {
        let line = |name, most_threads| Line { name, most_threads, state: Mutex::default(), changed: Condvar::new() };
        let (questions, documents) = (line("questions", 1), line("embed", n_threads.max(1)));
        Self { shared: Arc::new(Shared { load: Box::new(load), idle, questions, documents }) }
    }

    /// Makes one vector per text. Texts that nobody has begun are forgotten if the future is dropped.
    pub async fn embed(&self, side: Side, texts: &[&str]) -> anyhow::Result<Vec<Vec<f32>>> {
        let (answers, mut answered) = unbounded_channel();
        let mut vectors = vec![Vec::new(); texts.len()];
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        self.add(side, Batch { texts: texts.into_iter().enumerate(), answers })?;
        for _ in 0..vectors.len() {
            let (nth, vector) = answered.recv().await.context("the model's threads have ended")?;
            vectors[nth] = vector?;
        }
        Ok(vectors)
    }

    /// The number of threads, which is the number of models in memory.
    pub fn n_threads(&self) -> usize {
        [Side::Query, Side::Document].map(|side| self.shared.line(side).lock().n_threads).iter().sum()
    }

    fn add(&self, side: Side, batch: Batch) -> anyhow::Result<()> {
        let line = self.shared.line(side);
        let mut state = line.lock();
        let n_texts: usize = state.batches.iter().chain([&batch]).map(|batch| batch.texts.len()).sum();
        let n_wanted = n_texts.saturating_sub(state.n_idle).min(line.most_threads - state.n_threads);
        for _ in 0..n_wanted {
            let shared = self.shared.clone();
            match thread::Builder::new().name(line.name.into()).spawn(move || shared.serve(side)) {
                Ok(_) => state.n_threads += 1,
                Err(_) if state.n_threads > 0 => break, // the others do it
                Err(error) => return Err(error).context("no thread could be started for the model"),
            }
        }
        state.batches.push_back(batch);
        line.changed.notify_all();
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for side in [Side::Query, Side::Document] {
            let line = self.shared.line(side);
            line.lock().is_closed = true;
            line.changed.notify_all();
        }
    }
}

impl Shared {
    fn line(&self, side: Side) -> &Line {
        match side {
            Side::Query => &self.questions,
            Side::Document => &self.documents,
        }
    }

    /// The work of one thread, until it has been idle for too long.
    fn serve(&self, side: Side) {
        if side == Side::Document {
            lower_priority();
        }
        let mut embed: Option<Embed> = None;
        while let Some((nth, text, answers)) = self.line(side).next(self.idle) {
            let one = || match &mut embed {
                Some(embed) => embed(&text),
                none => none.insert((self.load)()?)(&text),
            };
            let answer = catch_unwind(AssertUnwindSafe(one)).unwrap_or_else(|_| {
                embed = None;
                Err(anyhow!("the model failed on a text of {} bytes", text.len()))
            });
            drop(answers.send((nth, answer))); // nobody may wait for it any more
        }
    }
}

impl Line {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next text. None: the thread must end, and is not counted any more.
    fn next(&self, idle: Duration) -> Option<(usize, String, Answers)> {
        let ends = Instant::now() + idle;
        let mut state = self.lock();
        while !state.is_closed {
            if let Some(next) = state.take() {
                return Some(next);
            }
            let left = ends.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state.n_idle += 1;
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            state.n_idle -= 1;
        }
        state.n_threads -= 1;
        None
    }
}

impl State {
    /// Takes one text of the first batch, which then waits behind the others: a short one is not held up by a long one.
    fn take(&mut self) -> Option<(usize, String, Answers)> {
        while let Some(mut batch) = self.batches.pop_front() {
            if batch.answers.is_closed() {
                continue;
            }
            let Some((nth, text)) = batch.texts.next() else { continue };
            let answers = batch.answers.clone();
            if batch.texts.len() > 0 {
                self.batches.push_back(batch);
            }
            return Some((nth, text, answers));
        }
        None
    }
}

/// Makes this thread give way to others. On Linux, niceness belongs to the calling thread; elsewhere it belongs to the process, and stays.
pub fn lower_priority() {
    if cfg!(target_os = "linux")
        && let Err(error) = rustix::process::setpriority_process(None, NICE)
    {
        tracing::debug!(%error, "the priority of the model's thread stays as it is");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::sync::mpsc;

    use futures_util::FutureExt as _;

    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    /// A pool whose threads wait for a permit before each text but questions, and a count of the texts that they began.
    fn gated(n_threads: usize) -> (Pool, mpsc::Sender<()>, Arc<AtomicUsize>) {
        let (permits, gate) = mpsc::channel();
        let (gate, begun) = (Arc::new(Mutex::new(gate)), Arc::new(AtomicUsize::new(0)));
        let counted = begun.clone();
        let pool = Pool::new(n_threads, LONG, move || {
            let (gate, begun) = (gate.clone(), counted.clone());
            Ok(Box::new(move |text: &str| {
                begun.fetch_add(1, SeqCst);
                if text != "question" {
                    gate.lock().unwrap_or_else(PoisonError::into_inner).recv()?;
                }
                Ok(vec![text.len() as f32])
            }))
        });
        (pool, permits, begun)
    }

    async fn until(is_so: impl Fn() -> bool) {
        let limit = Instant::now() + Duration::from_secs(30);
        while !is_so() {
            assert!(Instant::now() < limit, "it never came");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn a_question_is_answered_while_every_thread_is_busy_with_documents() {
        let (pool, permits, begun) = gated(2);
        let mut bulk = Box::pin(pool.embed(Side::Document, &["a text"; 200]));
        assert!((&mut bulk).now_or_never().is_none());
        until(|| begun.load(SeqCst) == 2).await;
        // No permit was given: not one of the 200 texts is done.
        assert_eq!(pool.embed(Side::Query, &["question"]).await.expect("a vector"), [[8.0]]);
        assert!((&mut bulk).now_or_never().is_none());
        for _ in 0..200 {
            permits.send(()).expect("a thread");
        }
        assert_eq!(bulk.await.expect("vectors").len(), 200);
        assert_eq!(begun.load(SeqCst), 201);
    }

    #[tokio::test]
    async fn batches_take_turns() {
        let (pool, permits, begun) = gated(1);
        let mut long = Box::pin(pool.embed(Side::Document, &["a text"; 100]));
        assert!((&mut long).now_or_never().is_none());
        until(|| begun.load(SeqCst) == 1).await;
        let mut short = Box::pin(pool.embed(Side::Document, &["a note", "two"]));
        assert!((&mut short).now_or_never().is_none());
        for _ in 0..6 {
            permits.send(()).expect("a thread");
        }
        assert_eq!(short.await.expect("vectors"), [[6.0], [3.0]]);
        assert!((&mut long).now_or_never().is_none());
    }

    #[tokio::test]
    async fn the_texts_of_a_dropped_call_are_forgotten() {
        let (pool, permits, begun) = gated(1);
        let mut dropped = Box::pin(pool.embed(Side::Document, &["a text"; 100]));
        assert!((&mut dropped).now_or_never().is_none());
        until(|| begun.load(SeqCst) == 1).await;
        drop(dropped);
        for _ in 0..2 {
            permits.send(()).expect("a thread");
        }
        assert_eq!(pool.embed(Side::Document, &["next"]).await.expect("a vector"), [[4.0]]);
        assert_eq!(begun.load(SeqCst), 2, "a text was embedded for nobody");
        assert!(pool.shared.documents.lock().batches.is_empty());
    }

    #[tokio::test]
    async fn idle_threads_end_and_later_work_starts_new_ones() {
        let loads = Arc::new(AtomicUsize::new(0));
        let counted = loads.clone();
        let pool = Pool::new(3, Duration::from_millis(20), move || {
            counted.fetch_add(1, SeqCst);
            Ok(Box::new(|_: &str| Ok(vec![1.0])))
        });
        assert_eq!((pool.n_threads(), loads.load(SeqCst)), (0, 0), "nothing is loaded before it is needed");
        for round in 1..=3 {
            pool.embed(Side::Document, &["one"; 30]).await.expect("vectors");
            pool.embed(Side::Query, &["two"]).await.expect("a vector");
            until(|| pool.n_threads() == 0).await;
            assert!((2 * round..=4 * round).contains(&loads.load(SeqCst)), "round {round}");
        }
    }

    #[tokio::test]
    async fn a_failure_is_the_answer_to_one_call_and_the_next_one_loads_again() {
        let loads = Arc::new(AtomicUsize::new(0));
        let counted = loads.clone();
        let pool = Pool::new(1, LONG, move || {
            anyhow::ensure!(counted.fetch_add(1, SeqCst) > 0, "no such file");
            Ok(Box::new(|text: &str| match text {
                "panic" => panic!("on purpose"),
                "error" => Err(anyhow!("no numbers")),
                _ => Ok(vec![1.0]),
            }))
        });
        let said = |result: anyhow::Result<Vec<Vec<f32>>>| result.expect_err("a failure").to_string();
        assert_eq!(said(pool.embed(Side::Document, &["well"; 20]).await), "no such file");
        assert_eq!(said(pool.embed(Side::Document, &["well", "error"]).await), "no numbers");
        assert!(said(pool.embed(Side::Document, &["panic", "well"]).await).contains("failed on a text of 5 bytes"));
        assert_eq!(pool.embed(Side::Document, &["well"; 20]).await.expect("vectors").len(), 20);
        assert_eq!(loads.load(SeqCst), 3, "at first, again after the failure, again after the panic");
    }
}
