//! Caps per key, tenant and address: none of them can use up what is there for all. Each process counts for itself.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, HttpBody};
use domain::{KeyId, TenantId};
use hyper::body::{Frame, SizeHint};

/// Counts what is held at once, by its holder. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Held<K>(Arc<Mutex<HashMap<K, usize>>>);

/// One of the things that are held, until dropped.
pub(crate) struct Hold<K: Eq + Hash> {
    held: Held<K>,
    by: K,
}

impl<K> Default for Held<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Eq + Hash + Copy> Held<K> {
    /// Counts one more. None: the holder has `most` already.
    pub fn take(&self, by: K, most: usize) -> Option<Hold<K>> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let n = held.entry(by).or_default();
        if *n >= most {
            return None;
        }
        *n += 1;
        Some(Hold { held: self.clone(), by })
    }

    /// Those that hold something.
    fn holders(&self) -> HashSet<K> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keys().copied().collect()
    }
}

impl<K: Eq + Hash> Drop for Hold<K> {
    fn drop(&mut self) {
        let mut held = self.held.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(n) = held.get_mut(&self.by) {
            *n -= 1;
            if *n == 0 {
                held.remove(&self.by);
            }
        }
    }
}

/// The holds of each key and each tenant on things of one kind, such as event streams.
#[derive(Clone, Default)]
pub(crate) struct PerCaller {
    keys: Held<KeyId>,
    tenants: Held<TenantId>,
}

/// One of them, until dropped.
pub(crate) struct OfCaller {
    _key: Hold<KeyId>,
    _tenant: Hold<TenantId>,
}

impl PerCaller {
    /// Counts one more. None: the caller's key or tenant has enough.
    pub fn take(&self, caller: &domain::Caller, most_of_key: usize, most_of_tenant: usize) -> Option<OfCaller> {
        Some(OfCaller {
            _key: self.keys.take(caller.key_id, most_of_key)?,
            _tenant: self.tenants.take(caller.tenant_id, most_of_tenant)?,
        })
    }

    /// The tenants that hold at least one.
    pub fn tenants(&self) -> HashSet<TenantId> {
        self.tenants.holders()
    }
}

/// The body of an answer that holds something until it is sent.
struct Holding<H> {
    body: Body,
    _hold: H,
}

/// Keeps a hold for as long as the body of an answer lives.
pub(crate) fn holding(body: Body, hold: impl Send + Unpin + 'static) -> Body {
    Body::new(Holding { body, _hold: hold })
}

impl<H: Unpin> HttpBody for Holding<H> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// An answer that is good for a moment: however many ask, it is found out once.
pub(crate) struct Recent<T> {
    good_for: fn(&T) -> Duration,
    last: tokio::sync::Mutex<Option<(Instant, T)>>,
}

impl<T: Clone> Recent<T> {
    /// Some answers are good for longer than others.
    pub fn new(good_for: fn(&T) -> Duration) -> Self {
        Self { good_for, last: tokio::sync::Mutex::default() }
    }

    /// The last answer, or a new one if that is too old. Callers that ask meanwhile wait for it.
    pub async fn get(&self, find_out: impl Future<Output = T>) -> T {
        let mut last = self.last.lock().await;
        match last.as_ref().filter(|(at, answer)| at.elapsed() < (self.good_for)(answer)) {
            Some((_, answer)) => answer.clone(),
            None => {
                let answer = find_out.await;
                *last = Some((Instant::now(), answer.clone()));
                answer
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    #[test]
    fn a_holder_has_no_more_than_its_cap_and_others_have_theirs() {
        let held = Held::default();
        let mut holds: Vec<_> = (0..3).map_while(|_| held.take("a", 2)).collect();
        assert_eq!(holds.len(), 2);
        assert!(held.take("b", 2).is_some());
        holds.pop();
        assert!(held.take("a", 2).is_some(), "what was given back is free again");
        drop(holds);
        assert!(held.0.lock().expect("held").is_empty(), "a caller that holds nothing is forgotten");
    }

    #[test]
    fn the_keys_of_a_tenant_have_no_more_than_it_may_have() {
        let (held, tenant_id) = (PerCaller::default(), TenantId::new());
        let caller = |tenant_id| domain::Caller {
            key_id: KeyId(uuid::Uuid::now_v7()),
            ..domain::Caller::local("test", tenant_id, false)
        };
        let (ann, bob) = (caller(tenant_id), caller(tenant_id));
        let take = |caller: &domain::Caller| held.take(caller, 2, 3);
        let mut holds = vec![take(&ann), take(&ann)];
        assert!(holds.iter().all(Option::is_some) && take(&ann).is_none(), "a key has two");
        holds.push(take(&bob));
        assert!(holds[2].is_some() && take(&bob).is_none(), "a tenant has three");
        assert!(take(&caller(TenantId::new())).is_some(), "another tenant has its own");
        assert_eq!(held.tenants(), HashSet::from([tenant_id]));
        holds.clear();
        assert!(held.tenants().is_empty() && take(&bob).is_some(), "what was given back is free again");
    }

    /// S32.
    #[tokio::test]
    async fn an_answer_holds_its_place_until_it_is_sent() {
        let held = Held::default();
        let body = holding(Body::from("sent"), held.take("a", 1));
        assert_eq!(body.size_hint().exact(), Some(4));
        assert!(held.take("a", 1).is_none(), "it is not sent yet");
        assert_eq!(axum::body::to_bytes(body, 10).await.expect("a body"), "sent");
        assert!(held.take("a", 1).is_some(), "it was sent");
        drop(holding(Body::empty(), held.take("b", 1)));
        assert!(held.take("b", 1).is_some(), "its caller has left");
    }

    /// S32.
    #[tokio::test]
    async fn an_answer_is_found_out_once_however_many_ask() {
        let (recent, asked) = (Recent::new(|_| Duration::from_secs(600)), AtomicUsize::new(0));
        let ask = async || {
            recent
                .get(async {
                    tokio::task::yield_now().await;
                    asked.fetch_add(1, Relaxed)
                })
                .await
        };
        let answers = futures_util::future::join_all((0..1_000).map(|_| ask())).await;
        assert!(answers.iter().all(|answer| *answer == 0));
        assert_eq!(asked.load(Relaxed), 1);
        let kept_if_even = Recent::new(|n: &u32| Duration::from_secs(if n.is_multiple_of(2) { 600 } else { 0 }));
        let mut answers = Vec::new();
        for n in 1..=3 {
            answers.push(kept_if_even.get(async { n }).await);
        }
        assert_eq!(answers, [1, 2, 2]);
    }
}
