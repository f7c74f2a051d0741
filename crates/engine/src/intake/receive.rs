//! Taking something in: knock, hand over the body, hear what became of it. An answer of success means that it is durable.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use domain::{ActivityId, ChannelId, Secret};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use metrics::Histogram;
use store::activities::{Arrival, Original};
use store::channels::Provider;
use store::crash::{self, Point};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinSet;

use super::body::{Body, Whole, apart, keep_all};
use super::channels::{Channel, Channels};
use super::committer;
use super::guard::{self, Check};
use super::limits::{PerMinute, network};
use super::mail::Mail;
use super::normalise::{self, Malformed, Normal, Sent};
use super::refusals::Refusals;
use super::room::{Place, Room, Waiting};
use crate::Env;

/// Largest body of a webhook.
pub(super) const BODY_BYTES: usize = 1 << 20;
/// Largest e-mail of Postmark's: attachments come inside.
const MAIL_BYTES: usize = 50 << 20;
/// How many mails larger than other bodies come at once, each in files of its own, and what one takes of the room to begin with.
const MAILS: usize = 16;
const MAIL_HELD_BYTES: usize = 256 << 10;
/// A body of nobody's channel, kept while its signature is computed; and how many at once.
const STRANGERS_BYTES: usize = 64 << 10;
const STRANGERS: usize = 256;
/// Larger originals go to the blob store.
pub(super) const INLINE_BYTES: usize = 64 << 10;
/// Refused requests a minute, by channel and address; further ones are not even looked at.
const MOST_REFUSED: u32 = 100;
/// How long a verified event waits for a database that is away.
const HOLD: Duration = Duration::from_secs(10);

/// Why something was not taken in.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("the key, or the signature, is not accepted")]
    Unverified,
    #[error("the body is larger than {most} bytes")]
    TooLarge { most: usize },
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
            Self::TooLarge { .. } => "too_large",
            Self::Malformed(_) => "malformed",
            Self::TooMany { .. } => "too_many",
            Self::Full => "full",
            Self::Away(_) => "away",
            Self::Broken(_) => "broken",
        }
    }

    fn status(&self) -> u16 {
        match self {
            Self::Unverified => 401,
            Self::TooLarge { .. } => 413,
            Self::Malformed(_) => 400,
            Self::TooMany { .. } => 429,
            Self::Full | Self::Away(_) => 503,
            Self::Broken(_) => 500,
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
    pub provider: Provider,
    /// Delivered again, it is the same event.
    pub has_event_key: bool,
}

/// Somebody comes with a request.
#[derive(Clone, Copy)]
pub struct Visit<'a> {
    pub key: &'a str,
    /// Path and query as they stand in the request line.
    pub target: &'a str,
    pub address: IpAddr,
    pub headers: &'a HeaderMap,
}

/// The door. Cloning shares it.
#[derive(Clone)]
pub struct Intake(Arc<Inner>);

struct Inner {
    env: Env,
    base_url: String,
    channels: Channels,
    room: Arc<Room>,
    /// By channel, and by nobody's channel.
    refused: PerMinute<(Option<ChannelId>, IpAddr)>,
    verified: PerMinute<ChannelId>,
    refusals: Refusals,
    strangers: Arc<Semaphore>,
    mails: Arc<Semaphore>,
    counters: Arc<Counters>,
}

pub(super) struct Counters {
    pub group_rows: Histogram,
    pub wait_seconds: Histogram,
}

impl Intake {
    pub fn new(env: Env) -> Self {
        let counters = Counters {
            group_rows: metrics::histogram!("tributary_intake_group_rows"),
            wait_seconds: metrics::histogram!("tributary_intake_wait_seconds"),
        };
        Self(Arc::new(Inner {
            base_url: env.config.base_url(),
            env,
            channels: Channels::default(),
            room: Arc::default(),
            refused: PerMinute::default(),
            verified: PerMinute::default(),
            refusals: Refusals::default(),
            strangers: Arc::new(Semaphore::new(STRANGERS)),
            mails: Arc::new(Semaphore::new(MAILS)),
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

    /// Writes down what was refused; until dropped.
    pub async fn note_refusals(self) {
        self.0.refusals.write(&self.0.env).await;
    }

    /// A channel was closed, changed or deleted: known anew at once in this process.
    pub fn forget(&self, id: ChannelId) {
        self.0.channels.forget(id);
    }

    /// Somebody wants to bring something to the channel of the visit's key. An error is said before the body is read.
    pub async fn knock(&self, visit: Visit<'_>) -> Result<Knock, Refusal> {
        let mut knock = self.enter(visit).await.inspect_err(|refusal| count(refusal, None))?;
        let is_encoded = visit.headers.get(CONTENT_ENCODING).is_some_and(|value| value != "identity");
        if is_encoded {
            return Err(knock.refuse(Refusal::Malformed("send it without Content-Encoding"), None));
        }
        if knock.said_bytes.is_some_and(|bytes| bytes > knock.most) {
            return Err(knock.refuse(Refusal::TooLarge { most: knock.most }, None));
        }
        // Only who knows a channel's key takes a place and is kept in memory, but for a little that a check needs.
        if knock.channel.is_some() {
            let is_mail = knock.most == MAIL_BYTES && knock.said_bytes.is_none_or(|bytes| bytes > BODY_BYTES);
            let bytes = if is_mail { MAIL_HELD_BYTES } else { knock.said_bytes.unwrap_or(knock.most) };
            let Some(place) = self.0.room.reserve(bytes) else {
                return Err(knock.refuse(Refusal::Full, None));
            };
            knock.place = Some(place);
            if is_mail {
                let Ok(permit) = self.0.mails.clone().try_acquire_owned() else {
                    return Err(knock.refuse(Refusal::Full, None));
                };
                let mail = Mail::new(&self.0.env, permit).await.map_err(|error| knock.unspooled(error))?;
                knock.body = Body::Mail(Box::new(mail));
            }
        }
        knock.is_kept = knock.place.is_some() || knock._stranger.is_some();
        Ok(knock)
    }

    /// Whose channel it is. An error is nobody's in particular.
    async fn enter(&self, visit: Visit<'_>) -> Result<Knock, Refusal> {
        let (inner, headers) = (&self.0, visit.headers);
        let key_hash = store::keys::hash(&Secret::new(visit.key));
        // Who tries one key after the other asks the database no more, but an address may be shared with a good sender.
        if let Some(wait) = inner.refused.is_over(&(None, network(visit.address)), MOST_REFUSED)
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
        let request = guard::Request {
            headers,
            target: visit.target,
            base_url: &inner.base_url,
            address: visit.address,
            now: inner.env.clock.now(),
        };
        let check = Check::begin(channel.as_ref().map(|channel| &channel.keys), request);
        let most = if check.is_placed() { MAIL_BYTES } else { BODY_BYTES };
        let said_bytes = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
        let stranger = match &channel {
            None if check.wants_body() => inner.strangers.clone().try_acquire_owned().ok(),
            _ => None,
        };
        Ok(Knock {
            intake: self.clone(),
            address: visit.address,
            channel,
            place: None,
            _stranger: stranger,
            is_kept: false,
            check,
            hold,
            most,
            said_bytes,
            bytes: 0,
            body: Body::Empty,
        })
    }
}

/// Somebody at the door, handing over a body.
pub struct Knock {
    intake: Intake,
    address: IpAddr,
    channel: Option<Arc<Channel>>,
    place: Option<Place>,
    _stranger: Option<OwnedSemaphorePermit>,
    is_kept: bool,
    check: Check,
    /// What is left of it after asking whose channel this is.
    hold: Duration,
    /// Bytes it may have, and those it was said to have.
    most: usize,
    said_bytes: Option<usize>,
    bytes: usize,
    body: Body,
}

impl Knock {
    /// The next piece of the body.
    pub async fn push(&mut self, piece: Bytes) -> Result<(), Refusal> {
        self.bytes += piece.len();
        if self.bytes > self.most {
            return Err(self.refuse(Refusal::TooLarge { most: self.most }, None));
        }
        self.check.update(&piece);
        if let Body::Mail(mail) = &mut self.body {
            if let Err(error) = mail.push(&self.intake.0.env, &piece).await {
                return Err(self.unspooled(error));
            }
            let is_roomy = self.place.as_mut().is_some_and(|place| place.grow(mail.held()));
            return if is_roomy { Ok(()) } else { Err(self.refuse(Refusal::Full, None)) };
        }
        if self.is_kept {
            let expected = if self.channel.is_some() { self.said_bytes.unwrap_or(0) } else { 0 };
            self.body.add(piece, expected);
            if self.channel.is_none() && self.bytes > STRANGERS_BYTES {
                (self.is_kept, self.body) = (false, Body::Empty);
            }
        }
        Ok(())
    }

    /// Counts it, and writes down why, for the channel's owner; the sender is told the refusal alone.
    fn refuse(&self, refusal: Refusal, why: Option<guard::Why>) -> Refusal {
        count(&refusal, self.channel.as_deref());
        if let Some(channel) = &self.channel {
            let reason = why.map_or_else(|| refusal.to_string(), str::to_owned);
            let refusals = &self.intake.0.refusals;
            refusals.note(channel.tenant_id, channel.id, refusal.status(), reason, self.address);
        }
        refusal
    }

    /// A mail that could not be written down: the disk is full, or the folder is not ours.
    fn unspooled(&self, error: std::io::Error) -> Refusal {
        tracing::error!(error = ?error, "a large mail could not be written to the data folder");
        self.refuse(Refusal::Away(store::Error::TimedOut), Some("it could not be written to this server's disk"))
    }

    async fn whole(&mut self) -> Result<Whole, Refusal> {
        let body = match std::mem::replace(&mut self.body, Body::Empty) {
            Body::Empty => Bytes::new(),
            Body::One(body) => body,
            Body::Many(body) => body.freeze(),
            Body::Mail(mail) => {
                let mail = mail.finish().await.map_err(|error| self.unspooled(error))?;
                return Ok(Whole { body: mail.rest.clone(), mail: Some(mail) });
            }
        };
        Ok(Whole { body, mail: None })
    }

    /// The body is complete: who brought it is verified, then it is made durable.
    pub async fn deliver(mut self, headers: &HeaderMap) -> Result<Received, Refusal> {
        let intake = self.intake.clone();
        let inner = &intake.0;
        let whole = self.whole().await?;
        let verdict = self.check.passes(&whole.body);
        let (Some(channel), Some(mut place), Ok(())) = (self.channel.clone(), self.place.take(), verdict) else {
            let whose = (self.channel.as_ref().map(|channel| channel.id), network(self.address));
            return Err(match inner.refused.count(whose, MOST_REFUSED) {
                Ok(()) => self.refuse(Refusal::Unverified, verdict.err()),
                Err(wait) => {
                    let refusal = Refusal::TooMany { wait };
                    count(&refusal, self.channel.as_deref()); // enough of it is written down
                    refusal
                }
            });
        };
        if let Some(most) = channel.max_per_minute {
            let counted = inner.verified.count(channel.id, most);
            counted.map_err(|wait| self.refuse(Refusal::TooMany { wait }, None))?;
        }
        let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let region = inner.env.config.phone_region;
        let sent = Sent { headers, content_type, body: &whole.body, region };
        let normalised = apart(whole.body.len(), || (normalise::normalise(channel.provider, &sent), whole.sha256()));
        let (normal, sha256) = (normalised.0.map_err(|malformed| self.refuse(malformed.into(), None))?, normalised.1);
        let Normal { r#type, direction, raw_data, mut metadata, event_key, files, party } = normal;
        let slowly = Duration::from_secs((whole.bytes() / BODY_BYTES) as u64); // a large mail is given time to reach its store
        let until = tokio::time::Instant::now() + self.hold + slowly;
        let (original, attachments) = if whole.mail.is_none() && whole.bytes() <= INLINE_BYTES && files.is_empty() {
            (Original::Body(whole.body), Vec::new())
        } else {
            let kept = Box::pin(keep_all(&inner.env, channel.tenant_id, whole, files)); // boxed: large, and rarely needed
            let away =
                |_| self.refuse(Refusal::Away(store::Error::TimedOut), Some("its files could not be stored in time"));
            tokio::time::timeout_at(until, kept).await.map_err(away)?
        };
        if !attachments.is_empty() {
            metadata.push_ours("attachments", &serde_json::to_string(&attachments).unwrap_or_default());
        }
        let metadata = metadata.to_json();
        let inline_bytes = if let Original::Body(body) = &original { body.len() } else { 0 };
        place.resize(inline_bytes + raw_data.len() + metadata.len());
        let has_event_key = event_key.is_some();
        let arrival = Arrival {
            id: ActivityId::new(),
            tenant_id: channel.tenant_id,
            channel_id: channel.id,
            person_id: channel.person_id,
            event_key,
            r#type,
            direction,
            raw_data,
            metadata,
            content_type: content_type.map(str::to_owned),
            sha256,
            original,
            attachments,
            new_contact: party.filter(|_| channel.auto_create_contacts),
        };
        let (answer, answered) = oneshot::channel();
        inner.room.join(Waiting { arrival, since: Instant::now(), answer, place });
        let stored = match tokio::time::timeout_at(until, answered).await {
            Ok(Ok(Ok(stored))) => stored,
            Ok(Ok(Err(error))) => return Err(self.refuse(refused(error, inner, channel.id), None)),
            Ok(Err(_)) | Err(_) => return Err(self.refuse(Refusal::Away(store::Error::TimedOut), None)),
        };
        let counter = if stored.is_new { &channel.accepted } else { &channel.redelivered };
        counter.increment(1);
        crash::at(Point::IntakeBeforeAnswer).map_err(|error| self.refuse(Refusal::Away(error), None))?;
        Ok(Received { id: stored.id, provider: channel.provider, has_event_key })
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

fn count(refusal: &Refusal, channel: Option<&Channel>) {
    let channel = channel.map_or_else(|| "unknown".to_owned(), |channel| channel.id.to_string());
    metrics::counter!("tributary_intake_refused_total", "reason" => refusal.reason(), "channel" => channel)
        .increment(1);
}
