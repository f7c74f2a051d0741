//! A cache of channels by the hash of their key, for a few seconds: most requests cost no lookup, and while the database is away known
//! senders are still recognised. An address that shows one unknown key after the other causes a bounded number of lookups.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use domain::{ChannelId, PersonId, TenantId};
use metrics::Counter;
use store::channels::Opened;
use tokio::sync::Semaphore;

use super::guard::Keys;
use super::limits::PerMinute;
use super::providers::{ChannelSpec, UnknownProvider};
use crate::Env;

/// A disabled channel refuses everywhere within 5 s: this, and a request that was under way.
const FRESH: Duration = Duration::from_secs(4);
/// The pause after a lookup that failed.
const BRIEFLY: Duration = Duration::from_secs(1);
/// How long a key that no channel has is remembered. Keys are random, so it will not become a channel's. As long as a count of unknown keys
/// lasts: a sender that still uses the URL of a deleted channel is counted once a minute.
const NOBODYS_FOR: Duration = Duration::from_secs(60);
/// Unknown keys of one address that are looked up within a minute. Further ones count as nobody's.
const MOST_STRANGE: u32 = 100;
const MOST_KNOWN: usize = 4_096;
/// However many requests arrive at once.
const LOOKUPS_AT_ONCE: usize = 4;
/// A known channel is used as it was when the database takes longer to answer.
const LOOKUP_LIMIT: Duration = Duration::from_secs(2);
/// An unknown one has to be waited for. With a connection to open, that is up to twelve round trips.
const FIRST_LOOKUP_LIMIT: Duration = Duration::from_secs(5);

/// A channel, ready to check and label requests. A disabled one is cached too: its owner is told what it refused.
pub(super) struct Channel {
    pub id: ChannelId,
    pub tenant_id: TenantId,
    pub spec: &'static ChannelSpec,
    pub person_id: Option<PersonId>,
    pub max_per_minute: Option<u32>,
    pub auto_create_contacts: bool,
    pub keys: Arc<Keys>,
    pub accepted: Counter,
    pub redelivered: Counter,
}

impl Channel {
    /// An error where this process does not know the channel's provider.
    fn new(env: &Env, opened: &Opened) -> store::Result<Self> {
        let row = &opened.channel;
        let (id, providers) = (ChannelId(row.id), &env.channel_providers);
        let unknown = |error: UnknownProvider| store::Error::Refused { what: format!("channel {id}: {error}") };
        let spec = providers.find(&row.provider_code).map_err(unknown)?;
        let label = id.to_string();
        Ok(Self {
            id,
            tenant_id: opened.tenant_id,
            spec,
            person_id: row.person_id.map(PersonId),
            max_per_minute: row.max_per_minute.and_then(|most| u32::try_from(most).ok()),
            auto_create_contacts: row.auto_create_contacts,
            keys: Arc::new(Keys::of(providers, spec, opened, env.clock.now())),
            accepted: metrics::counter!("tributary_intake_accepted_total", "channel" => label.clone()),
            redelivered: metrics::counter!("tributary_intake_redelivered_total", "channel" => label),
        })
    }
}

pub(super) struct Channels {
    known: Mutex<HashMap<[u8; 32], Known>>,
    lookups: Semaphore,
    /// Keys that were looked up and are no channel's, by address. It decides what is looked up, and nothing that a sender is told.
    strange: PerMinute<IpAddr>,
}

#[derive(Clone)]
struct Known {
    /// None: nobody's key, or a channel's that was changed since.
    channel: Option<Arc<Channel>>,
    /// It was a channel's key when it was last looked up.
    is_channels: bool,
    until: Instant,
}

impl Default for Channels {
    fn default() -> Self {
        Self { known: Mutex::default(), lookups: Semaphore::new(LOOKUPS_AT_ONCE), strange: PerMinute::default() }
    }
}

impl Channels {
    /// The channel of a key, if there is one. Looks it up unless that was done just now, or too many unknown keys came from `network`.
    pub async fn find(&self, env: &Env, key_hash: [u8; 32], network: IpAddr) -> store::Result<Option<Arc<Channel>>> {
        match self.fresh(&key_hash) {
            Some(known) => Ok(known.channel),
            None if self.is_spent(&key_hash, network) => Ok(None),
            // Boxed: it is large, rarely needed, and would be part of every request.
            None => Box::pin(self.look_up(env, key_hash, network)).await,
        }
    }

    async fn look_up(&self, env: &Env, key_hash: [u8; 32], network: IpAddr) -> store::Result<Option<Arc<Channel>>> {
        let _turn = self.lookups.acquire().await;
        // Requests that had their turn before this one may have looked it up, or used up what its address may look up.
        if let Some(known) = self.fresh(&key_hash) {
            return Ok(known.channel);
        }
        if self.is_spent(&key_hash, network) {
            return Ok(None);
        }
        metrics::counter!("tributary_intake_lookups_total").increment(1);
        let asked = Instant::now();
        let has_stale = self.lock().get(&key_hash).is_some_and(|known| known.channel.is_some());
        let limit = if has_stale { LOOKUP_LIMIT } else { FIRST_LOOKUP_LIMIT };
        let found = store::within(limit, async {
            let mut conn = env.db.acquire().await?;
            store::channels::find(&mut conn, &env.vault, &key_hash).await
        });
        let known = match found.await {
            Ok(found) => {
                let channel = found.map(|opened| Channel::new(env, &opened)).transpose()?.map(Arc::new);
                let is_channels = channel.is_some();
                if !is_channels {
                    let _ = self.strange.count(network, MOST_STRANGE); // asked for before the next lookup
                }
                let lasts = if is_channels { FRESH } else { NOBODYS_FOR };
                Known { channel, is_channels, until: asked + lasts }
            }
            Err(error) => match self.lock().get(&key_hash) {
                Some(stale) if error.is_passing() && stale.channel.is_some() => {
                    Known { until: Instant::now() + BRIEFLY, ..stale.clone() }
                }
                _ => return Err(error),
            },
        };
        self.keep(key_hash, known.clone());
        Ok(known.channel)
    }

    /// Whether enough unknown keys of this address were looked up. A good sender may share the address, so a key passes that was a channel's
    /// when it was last looked up, however long ago.
    fn is_spent(&self, key_hash: &[u8; 32], network: IpAddr) -> bool {
        self.strange.is_over(&network, MOST_STRANGE).is_some()
            && self.lock().get(key_hash).is_none_or(|known| !known.is_channels)
    }

    /// Forgets a channel at once in this process, but not that its key was a channel's. Others notice a change within five seconds.
    pub fn forget(&self, id: ChannelId) {
        let mut known = self.lock();
        let of_channel = |known: &&mut Known| known.channel.as_ref().is_some_and(|channel| channel.id == id);
        for known in known.values_mut().filter(of_channel) {
            (known.channel, known.until) = (None, Instant::now());
        }
    }

    fn fresh(&self, key_hash: &[u8; 32]) -> Option<Known> {
        self.lock().get(key_hash).filter(|known| Instant::now() < known.until).cloned()
    }

    fn keep(&self, key_hash: [u8; 32], new: Known) {
        let mut known = self.lock();
        if known.len() >= MOST_KNOWN {
            known.retain(|_, known| known.is_channels); // nobody's keys first: an attack brings them
        }
        if known.len() >= MOST_KNOWN {
            let now = Instant::now();
            known.retain(|_, known| known.channel.is_some() && now < known.until + FRESH);
        }
        if known.len() < MOST_KNOWN || new.channel.is_some() {
            known.insert(key_hash, new);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
