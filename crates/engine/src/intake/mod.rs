//! The intake of webhooks. A request comes from `web::api::webhooks` and takes these steps, in this order:
//!
//! 1. [`Intake::begin`]: whose channel it is, by the key in its URL (`channels`, `limits`).
//! 2. [`Delivery`]: the body arrives and takes room of its channel's share (`room`, `shares`). It is kept in memory, or in files if it is
//!    large (`body`, `large`, `lift`).
//! 3. [`guard`]: the channel's provider verifies the raw bytes. Nothing is parsed or stored before that.
//! 4. [`providers`]: the same provider reads the body as an event (`normalise` has the form and the tools).
//! 5. `committer`: the event waits until it is its tenant's turn (`line`), is inserted in a group, and its sender is answered once it is
//!    durable.
//!
//! The insert sends a message to lane `remember_activity`, which makes the document that a search finds. Requests that are refused on the
//! way are noted for the channel's owner (`refusals`).

mod body;
mod channels;
mod committer;
mod delivery;
pub mod guard;
mod large;
mod lift;
mod limits;
mod line;
pub mod normalise;
pub mod providers;
mod refusals;
mod room;
mod sample;
mod shares;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::{ChannelId, Secret};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use metrics::Histogram;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub use delivery::{Delivery, Received};
pub use limits::{PerMinute, network};
pub use providers::{ChannelProviders, ChannelSpec};
pub use refusals::Refusal;
pub use sample::{Sample, sample, sample_of};

use self::body::Body;
use self::channels::Channels;
use self::guard::{Check, Keys};
use self::large::LargeInFiles;
use self::line::SESSIONS;
use self::refusals::Refusals;
use self::room::Room;
use self::shares::{Amount, Owner};
use crate::Env;

/// Largest body of a webhook, but for providers with a limit of their own.
const BODY_BYTES: usize = 1 << 20;
/// The memory that a larger body, which is kept in files, takes to begin with.
const LARGE_HELD_BYTES: usize = 256 << 10;
/// Bodies without an open channel that are kept at once while their signature is computed.
const STRANGERS: usize = 256;
/// Requests of one address within a minute that are not verified. Further ones are told to wait; verified ones pass.
const MOST_REFUSED: u32 = 100;
/// Those of one channel and address that its owner is told of within a minute. Further ones are only counted in the metrics.
const MOST_NOTED: u32 = 100;
/// How long a verified event waits for a database that is away.
const HOLD: Duration = Duration::from_secs(10);

/// A request as it comes to the door.
#[derive(Clone, Copy)]
pub struct Visit<'a> {
    pub key: &'a str,
    /// Path and query as they stand in the request line.
    pub target: &'a str,
    pub address: IpAddr,
    pub headers: &'a HeaderMap,
}

/// The intake of one process. Clones share it.
#[derive(Clone)]
pub struct Intake(Arc<Inner>);

struct Inner {
    env: Env,
    base_url: String,
    channels: Channels,
    /// Checked for keys that no channel has.
    nobodys: Arc<Keys>,
    room: Arc<Room>,
    /// By address alone, whether a channel has the key or not: a count by channel would tell.
    refused: PerMinute<IpAddr>,
    noted: PerMinute<(ChannelId, IpAddr)>,
    verified: PerMinute<ChannelId>,
    refusals: Refusals,
    strangers: Arc<Semaphore>,
    counters: Arc<Counters>,
}

struct Counters {
    group_rows: Histogram,
    wait_seconds: Histogram,
}

impl Intake {
    pub fn new(env: Env) -> Self {
        let counters = Counters {
            group_rows: metrics::histogram!("tributary_intake_group_rows"),
            wait_seconds: metrics::histogram!("tributary_intake_wait_seconds"),
        };
        Self(Arc::new(Inner {
            base_url: env.config.base_url(),
            nobodys: Arc::new(Keys::nobodys(&env.channel_providers)),
            env,
            channels: Channels::default(),
            room: Arc::default(),
            refused: PerMinute::default(),
            noted: PerMinute::default(),
            verified: PerMinute::default(),
            refusals: Refusals::default(),
            strangers: Arc::new(Semaphore::new(STRANGERS)),
            counters: Arc::new(counters),
        }))
    }

    /// Runs the committer until dropped. Deliveries wait for it.
    pub async fn commit(self) {
        // Sessions of its own: what waits for the pool must not keep webhooks waiting.
        let db = self.0.env.db.sibling(2 * SESSIONS as u32);
        let mut sessions = JoinSet::new();
        loop {
            while sessions.len() < SESSIONS {
                sessions.spawn(committer::run(db.clone(), self.0.room.clone(), self.0.counters.clone()));
            }
            sessions.join_next().await;
            tracing::error!("a session of the committer ended badly; another takes its place");
        }
    }

    /// Writes refusals to the database until dropped.
    pub async fn note_refusals(self) {
        self.0.refusals.write(&self.0.env).await;
    }

    /// Forgets what this process knows of a channel that was changed, so that the change counts at once.
    pub fn forget(&self, id: ChannelId) {
        self.0.channels.forget(id);
    }

    /// Begins to take a request. An error is the answer, before its body is read.
    pub async fn begin(&self, visit: Visit<'_>) -> Result<Delivery, Refusal> {
        let mut delivery = self.find_channel(visit).await.inspect_err(|refusal| refusal.count(None))?;
        let is_encoded = visit.headers.get(CONTENT_ENCODING).is_some_and(|value| value != "identity");
        if is_encoded {
            return Err(delivery.refuse(Refusal::Malformed("send it without Content-Encoding"), None));
        }
        let (most, said_bytes) = (delivery.most(), delivery.said_bytes);
        if said_bytes.is_some_and(|bytes| bytes > most) {
            return Err(delivery.refuse(Refusal::TooLarge { most }, None));
        }
        // Only the body of an open channel's sender takes room and is kept, but for a little that a check needs.
        if let Some(channel) = delivery.channel.as_ref().filter(|channel| channel.keys.is_open()) {
            let mut reservation = self.0.room.reserve(Owner { tenant_id: channel.tenant_id, channel_id: channel.id });
            if let Some(large) = delivery.large.filter(|_| said_bytes.is_none_or(|bytes| bytes > BODY_BYTES)) {
                if !reservation.hold(Amount { rows: 0, bytes: LARGE_HELD_BYTES, files: 1 }) {
                    return Err(delivery.refuse(Refusal::Full, None));
                }
                let files = LargeInFiles::new(&self.0.env, large).await;
                delivery.body = Body::Large(Box::new(files.map_err(|error| delivery.unwritten(error))?));
            }
            delivery.reservation = Some(reservation);
        }
        delivery.is_kept = delivery.reservation.is_some() || delivery.stranger.is_some();
        delivery.is_arriving = true;
        Ok(delivery)
    }

    /// Finds the channel of the request's key. An error is no channel's in particular.
    async fn find_channel(&self, visit: Visit<'_>) -> Result<Delivery, Refusal> {
        let (inner, headers) = (&self.0, visit.headers);
        let key_hash = store::keys::hash(&Secret::new(visit.key));
        let asked = Instant::now();
        // Nobody's key is not refused here: its body is read, and it is counted and answered like a wrong signature.
        let found = inner.channels.find(&inner.env, key_hash, network(visit.address)).await;
        let channel = found.map_err(Refusal::of_lookup)?;
        let hold = HOLD.saturating_sub(asked.elapsed());
        let request = guard::Request {
            headers,
            target: visit.target,
            base_url: &inner.base_url,
            address: visit.address,
            now: inner.env.clock.now(),
        };
        let check = Check::begin(channel.as_ref().map_or(&inner.nobodys, |channel| &channel.keys), request);
        let large = channel.as_ref().and_then(|channel| channel.spec.large_body).filter(|_| check.is_verified_early());
        let said_bytes = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
        let is_open = channel.as_ref().is_some_and(|channel| channel.keys.is_open());
        let stranger = match check.wants_body() {
            true if !is_open => inner.strangers.clone().try_acquire_owned().ok(),
            _ => None,
        };
        Ok(Delivery {
            intake: self.clone(),
            address: visit.address,
            channel,
            reservation: None,
            stranger,
            is_kept: false,
            is_arriving: false,
            check,
            hold,
            large,
            said_bytes,
            bytes: 0,
            body: Body::Empty,
        })
    }
}
