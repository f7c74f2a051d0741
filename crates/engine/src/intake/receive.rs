//! Taking something in: knock, hand over the body, hear what became of it. An answer of success means that it is durable.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use domain::{ActivityId, ChannelId, Secret, TenantId};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use metrics::{Counter, Histogram};
use sha2::{Digest as _, Sha256};
use store::activities::{Arrival, Original};
use store::crash::{self, Point};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::channels::{Channel, Channels};
use super::committer;
use super::guard::Check;
use super::limits::{PerMinute, network};
use super::normalise::{self, Malformed};
use super::room::{Place, Room, Waiting};
use crate::Env;

/// Largest body of a generic webhook.
pub const BODY_BYTES: usize = 1 << 20;
/// Larger originals go to the blob store.
const INLINE_BYTES: usize = 64 << 10;
/// Refused requests a minute, by channel and address; further ones are not even looked at.
const MOST_REFUSED: u32 = 100;
/// How long a verified event waits for a database that is away.
const HOLD: Duration = Duration::from_secs(10);

/// Why something was not taken in.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("the key, or the signature, is not accepted")]
    Unverified,
    #[error("the body is larger than {BODY_BYTES} bytes")]
    TooLarge,
    #[error("the body cannot be understood: {0}")]
    Malformed(&'static str),
    #[error("too many requests")]
    TooMany { wait: Duration },
    #[error("too much is waiting already")]
    Full,
    #[error("the database is away")]
    Away(#[source] store::Error),
    #[error("the event could not be stored")]
    Broken(#[source] store::Error),
}

impl Refusal {
    fn reason(&self) -> &'static str {
        match self {
            Self::Unverified => "unverified",
            Self::TooLarge => "too_large",
            Self::Malformed(_) => "malformed",
            Self::TooMany { .. } => "too_many",
            Self::Full => "full",
            Self::Away(_) => "away",
            Self::Broken(_) => "broken",
        }
    }
}

impl From<Malformed> for Refusal {
    fn from(Malformed(what): Malformed) -> Self {
        Self::Malformed(what)
    }
}

/// What the sender is told.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    pub id: ActivityId,
    /// Delivered again, it is the same event.
    pub has_event_key: bool,
}

/// The door. Cloning shares it.
#[derive(Clone)]
pub struct Intake(Arc<Inner>);

struct Inner {
    env: Env,
    channels: Channels,
    room: Arc<Room>,
    /// By channel, and by nobody's channel.
    refused: PerMinute<(Option<ChannelId>, IpAddr)>,
    verified: PerMinute<ChannelId>,
    counters: Arc<Counters>,
}

pub(super) struct Counters {
    accepted: Counter,
    redelivered: Counter,
    pub group_rows: Histogram,
    pub wait_seconds: Histogram,
}

impl Intake {
    pub fn new(env: Env) -> Self {
        let counters = Counters {
            accepted: metrics::counter!("tributary_intake_accepted_total"),
            redelivered: metrics::counter!("tributary_intake_redelivered_total"),
            group_rows: metrics::histogram!("tributary_intake_group_rows"),
            wait_seconds: metrics::histogram!("tributary_intake_wait_seconds"),
        };
        Self(Arc::new(Inner {
            env,
            channels: Channels::default(),
            room: Arc::default(),
            refused: PerMinute::default(),
            verified: PerMinute::default(),
            counters: Arc::new(counters),
        }))
    }

    /// The committer; until dropped. Whoever delivers waits for it.
    pub async fn commit(self) {
        // Sessions of its own: what waits for the pool must not keep webhooks waiting.
        let db = self.0.env.db.sibling(2 * committer::SESSIONS as u32);
        let mut sessions = JoinSet::new();
        loop {
            while sessions.len() < committer::SESSIONS {
                sessions.spawn(committer::run(db.clone(), self.0.room.clone(), self.0.counters.clone()));
            }
            sessions.join_next().await;
            tracing::error!("a session of the committer ended badly; another takes its place");
        }
    }

    /// A channel was closed or deleted: refused at once in this process.
    pub fn forget(&self, id: ChannelId) {
        self.0.channels.forget(id);
    }

    /// Somebody wants to bring something to the channel of `key`. An error is said before the body is read.
    pub async fn knock(&self, key: &str, address: IpAddr, headers: &HeaderMap) -> Result<Knock, Refusal> {
        self.enter(key, address, headers).await.inspect_err(count)
    }

    async fn enter(&self, key: &str, address: IpAddr, headers: &HeaderMap) -> Result<Knock, Refusal> {
        let (inner, address) = (&self.0, network(address));
        let said_bytes = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
        if said_bytes.is_some_and(|bytes| bytes > BODY_BYTES) {
            return Err(Refusal::TooLarge);
        }
        let key_hash = store::keys::hash(&Secret::new(key));
        // Who tries one key after the other asks the database no more, but an address may be shared with a good sender.
        if let Some(wait) = inner.refused.is_over(&(None, address), MOST_REFUSED)
            && !inner.channels.is_known(&key_hash)
        {
            return Err(Refusal::TooMany { wait });
        }
        if inner.room.is_full() {
            return Err(Refusal::Full);
        }
        let asked = Instant::now();
        let channel = inner.channels.find(&inner.env, key_hash).await.map_err(database)?;
        let hold = HOLD.saturating_sub(asked.elapsed());
        // Only who knows a channel's key takes a place and is kept in memory.
        let place = match &channel {
            Some(_) => Some(inner.room.reserve(said_bytes.unwrap_or(BODY_BYTES)).ok_or(Refusal::Full)?),
            None => None,
        };
        let check = Check::begin(channel.as_deref(), headers);
        Ok(Knock { intake: self.clone(), address, channel, place, check, hold, bytes: 0, body: Body::Empty })
    }
}

/// Somebody at the door, handing over a body.
pub struct Knock {
    intake: Intake,
    address: IpAddr,
    channel: Option<Arc<Channel>>,
    place: Option<Place>,
    check: Check,
    /// What is left of it after asking whose channel this is.
    hold: Duration,
    bytes: usize,
    body: Body,
}

/// Most bodies come in one piece, which is kept as it is.
enum Body {
    Empty,
    One(Bytes),
    Many(BytesMut),
}

impl Knock {
    /// The next piece of the body.
    pub fn push(&mut self, piece: Bytes) -> Result<(), Refusal> {
        self.bytes += piece.len();
        if self.bytes > BODY_BYTES {
            return Err(Refusal::TooLarge).inspect_err(count);
        }
        self.check.update(&piece);
        if self.channel.is_some() {
            self.body = match std::mem::replace(&mut self.body, Body::Empty) {
                Body::Empty => Body::One(piece),
                Body::One(first) => {
                    let mut both = BytesMut::with_capacity(2 * (first.len() + piece.len()));
                    both.extend_from_slice(&first);
                    both.extend_from_slice(&piece);
                    Body::Many(both)
                }
                Body::Many(mut all) => {
                    all.extend_from_slice(&piece);
                    Body::Many(all)
                }
            };
        }
        Ok(())
    }

    /// The body is complete: who brought it is verified, then it is made durable.
    pub async fn deliver(self, headers: &HeaderMap) -> Result<Received, Refusal> {
        self.bring(headers).await.inspect_err(count)
    }

    async fn bring(self, headers: &HeaderMap) -> Result<Received, Refusal> {
        let inner = &self.intake.0;
        let passes = self.check.passes();
        let (Some(channel), Some(mut place), true) = (&self.channel, self.place, passes) else {
            let whose = (self.channel.as_ref().map(|channel| channel.id), self.address);
            return Err(match inner.refused.count(whose, MOST_REFUSED) {
                Ok(()) => Refusal::Unverified,
                Err(wait) => Refusal::TooMany { wait },
            });
        };
        if let Some(most) = channel.max_per_minute {
            inner.verified.count(channel.id, most).map_err(|wait| Refusal::TooMany { wait })?;
        }
        let body = match self.body {
            Body::Empty => Bytes::new(),
            Body::One(body) => body,
            Body::Many(body) => body.freeze(),
        };
        let event_key = normalise::event_key(channel.provider, headers)?;
        let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let normal = normalise::normalise(channel.provider, content_type, &body)?;
        let sha256 = Sha256::digest(&body).into();
        let until = tokio::time::Instant::now() + self.hold;
        let original = if body.len() <= INLINE_BYTES {
            Original::Body(body)
        } else {
            let kept = Box::pin(keep(&inner.env, channel.tenant_id, &body)); // boxed: large, and rarely needed
            tokio::time::timeout_at(until, kept).await.map_err(|_| Refusal::Away(store::Error::TimedOut))?
        };
        let inline_bytes = if let Original::Body(body) = &original { body.len() } else { 0 };
        place.resize(inline_bytes + normal.raw_data.len() + normal.metadata.len());
        let has_event_key = event_key.is_some();
        let arrival = Arrival {
            id: ActivityId::new(),
            tenant_id: channel.tenant_id,
            channel_id: channel.id,
            person_id: channel.person_id,
            event_key,
            r#type: normal.r#type,
            direction: normal.direction,
            raw_data: normal.raw_data,
            metadata: normal.metadata,
            content_type: content_type.map(str::to_owned),
            sha256,
            original,
        };
        let (answer, answered) = oneshot::channel();
        inner.room.join(Waiting { arrival, since: Instant::now(), answer, place });
        let stored = match tokio::time::timeout_at(until, answered).await {
            Ok(Ok(Ok(stored))) => stored,
            Ok(Ok(Err(error))) => return Err(refused(error, inner, channel.id)),
            Ok(Err(_)) | Err(_) => return Err(Refusal::Away(store::Error::TimedOut)),
        };
        if stored.is_new {
            inner.counters.accepted.increment(1)
        } else {
            inner.counters.redelivered.increment(1)
        };
        crash::at(Point::IntakeBeforeAnswer).map_err(Refusal::Away)?;
        Ok(Received { id: stored.id, has_event_key })
    }
}

/// Puts a large original where its row will find it, trying while the sender waits.
async fn keep(env: &Env, tenant_id: TenantId, body: &Bytes) -> Original {
    loop {
        let put = async { env.blobs.put(&mut *env.db.acquire().await?, tenant_id, body.clone()).await };
        match put.await {
            Ok(key) => return Original::Blob(key),
            Err(fault) => {
                tracing::warn!(error = ?fault, tenant.id = %tenant_id, "a large event's original is not kept yet");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

/// The database said no to one row.
fn refused(error: store::Error, inner: &Inner, id: ChannelId) -> Refusal {
    match error.code().as_deref() {
        // Foreign key: its tenant is gone, and the channel with it.
        Some("23503") => {
            inner.channels.forget(id);
            Refusal::Unverified
        }
        Some(code) if code.starts_with("22") => Refusal::Malformed("it has values that cannot be stored"),
        _ => Refusal::Broken(error),
    }
}

fn database(error: store::Error) -> Refusal {
    if error.is_passing() { Refusal::Away(error) } else { Refusal::Broken(error) }
}

fn count(refusal: &Refusal) {
    metrics::counter!("tributary_intake_refused_total", "reason" => refusal.reason()).increment(1);
}
