//! A cache of channels by the hash of their key, for a few seconds: most requests cost no lookup, and while the database is away known
//! senders are still recognised.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use domain::{ChannelId, PersonId, TenantId};
use metrics::Counter;
use store::channels::Opened;
use tokio::sync::Semaphore;

use super::guard::Keys;
use super::providers::{ChannelSpec, UnknownProvider};
use crate::Env;

/// A disabled channel refuses everywhere within 5 s: this, and a request that was under way.
const FRESH: Duration = Duration::from_secs(4);
/// How long an unknown key is remembered: it may be a new channel's in a moment. Also the pause after a lookup that failed.
const BRIEFLY: Duration = Duration::from_secs(1);
const MOST_KNOWN: usize = 4_096;
/// However many requests arrive at once.
const LOOKUPS_AT_ONCE: usize = 4;
const LOOKUP_LIMIT: Duration = Duration::from_secs(2);

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
}

#[derive(Clone)]
struct Known {
    /// None: nobody's key.
    channel: Option<Arc<Channel>>,
    until: Instant,
}

impl Default for Channels {
    fn default() -> Self {
        Self { known: Mutex::default(), lookups: Semaphore::new(LOOKUPS_AT_ONCE) }
    }
}

impl Channels {
    /// The channel of a key, if there is one. Looks it up unless that was done just now.
    pub async fn find(&self, env: &Env, key_hash: [u8; 32]) -> store::Result<Option<Arc<Channel>>> {
        match self.fresh(&key_hash) {
            Some(known) => Ok(known.channel),
            // Boxed: it is large, rarely needed, and would be part of every request.
            None => Box::pin(self.look_up(env, key_hash)).await,
        }
    }

    async fn look_up(&self, env: &Env, key_hash: [u8; 32]) -> store::Result<Option<Arc<Channel>>> {
        let _turn = self.lookups.acquire().await;
        if let Some(known) = self.fresh(&key_hash) {
            return Ok(known.channel); // another request looked it up meanwhile
        }
        let asked = Instant::now();
        let found = store::within(LOOKUP_LIMIT, async {
            let mut conn = env.db.acquire().await?;
            store::channels::find(&mut conn, &env.vault, &key_hash).await
        });
        let known = match found.await {
            Ok(found) => {
                let channel = found.map(|opened| Channel::new(env, &opened)).transpose()?.map(Arc::new);
                let lasts = if channel.is_some() { FRESH } else { BRIEFLY };
                Known { channel, until: asked + lasts }
            }
            Err(error) => match self.lock().get(&key_hash) {
                Some(stale) if error.is_passing() && stale.channel.is_some() => {
                    Known { channel: stale.channel.clone(), until: Instant::now() + BRIEFLY }
                }
                _ => return Err(error),
            },
        };
        self.keep(key_hash, known.clone());
        Ok(known.channel)
    }

    /// Whether this key was a channel's when it was last looked up, however long ago.
    pub fn is_known(&self, key_hash: &[u8; 32]) -> bool {
        self.lock().get(key_hash).is_some_and(|known| known.channel.is_some())
    }

    /// Forgets a channel at once in this process. Others notice a change within five seconds.
    pub fn forget(&self, id: ChannelId) {
        self.lock().retain(|_, known| known.channel.as_ref().is_none_or(|channel| channel.id != id));
    }

    fn fresh(&self, key_hash: &[u8; 32]) -> Option<Known> {
        self.lock().get(key_hash).filter(|known| Instant::now() < known.until).cloned()
    }

    fn keep(&self, key_hash: [u8; 32], new: Known) {
        let mut known = self.lock();
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
