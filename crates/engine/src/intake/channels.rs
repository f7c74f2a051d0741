//! Channels by their key's hash, remembered for a few seconds: no statement per request, and while the database is away senders
//! are still known.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use domain::{ChannelId, PersonId, TenantId};
use metrics::Counter;
use store::channels::{Opened, Provider};
use tokio::sync::Semaphore;

use super::guard::Keys;
use crate::Env;

/// A closed channel is refused everywhere within 5 s: this, and a request that was under way.
const FRESH: Duration = Duration::from_secs(4);
/// A key that nobody has may be somebody's in a moment; also how long the database is not asked again when it did not answer.
const BRIEFLY: Duration = Duration::from_secs(1);
const MOST_KNOWN: usize = 4_096;
/// However many knock at once.
const LOOKUPS_AT_ONCE: usize = 4;
const LOOKUP_LIMIT: Duration = Duration::from_secs(2);

/// A channel, ready to check and label what comes. One that is closed is known too: its owner is told what it refused.
pub(super) struct Channel {
    pub id: ChannelId,
    pub tenant_id: TenantId,
    pub provider: Provider,
    pub person_id: Option<PersonId>,
    pub max_per_minute: Option<u32>,
    pub auto_create_contacts: bool,
    pub keys: Arc<Keys>,
    pub accepted: Counter,
    pub redelivered: Counter,
}

impl Channel {
    pub fn new(opened: &Opened, now: DateTime<Utc>) -> Self {
        let label = opened.id.to_string();
        Self {
            id: opened.id,
            tenant_id: opened.tenant_id,
            provider: opened.provider,
            person_id: opened.person_id,
            max_per_minute: opened.max_per_minute.and_then(|most| u32::try_from(most).ok()),
            auto_create_contacts: opened.auto_create_contacts,
            keys: Arc::new(Keys::of(opened, now)),
            accepted: metrics::counter!("tributary_intake_accepted_total", "channel" => label.clone()),
            redelivered: metrics::counter!("tributary_intake_redelivered_total", "channel" => label),
        }
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
    /// The channel of a key, if there is one. Asks the database unless it was asked just now.
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
            return Ok(known.channel); // somebody asked while we waited
        }
        let asked = Instant::now();
        let found = store::within(LOOKUP_LIMIT, async {
            let mut conn = env.db.acquire().await?;
            store::channels::find(&mut conn, &env.vault, &key_hash).await
        });
        let known = match found.await {
            Ok(found) => {
                let channel = found.map(|opened| Arc::new(Channel::new(&opened, env.clock.now())));
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

    /// Whether this key opened a channel when it was last looked at, however long ago.
    pub fn is_known(&self, key_hash: &[u8; 32]) -> bool {
        self.lock().get(key_hash).is_some_and(|known| known.channel.is_some())
    }

    /// At once in this process; elsewhere within five seconds.
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
