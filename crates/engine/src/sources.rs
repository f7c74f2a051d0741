//! Sources as people look at them and act on them: listed, synced, paused, resumed, let go, forgotten. How an account is connected is
//! [`crate::pull::connect`]'s.

use std::collections::HashMap;
use std::time::Duration;

use domain::{Caller, JobId, JobKind, Secret, SourceId, SourceStatus, Transport};
use store::forgotten::{self, Counted, Subject};
use store::jobs::{self, Filter, Job, Spend};
use store::sources::{self, AnySource, Event, Source, Tone};
use uuid::Uuid;

use crate::act::OrMissing as _;
use crate::pull::connect::{self, ConnectError};
use crate::pull::jobs::{self as syncs, Asked};
use crate::pull::words::cadence;
use crate::{ActError, Env};

/// The number of latest events shown with a source.
const EVENTS: i64 = 50;

/// The tenant's sources, the oldest first.
pub async fn list(env: &Env, caller: &Caller) -> Result<Vec<Source>, ActError> {
    Ok(env.db.read(caller, async |tx| sources::list(tx, caller.tenant_id, None).await).await?)
}

/// The names that several of a tenant's sources have, each with its provider beside it: lists would not tell them apart otherwise.
#[derive(Debug, Default)]
pub struct Names(HashMap<Uuid, String>);

impl Names {
    pub async fn load(env: &Env, caller: &Caller) -> Result<Self, ActError> {
        let all = env.db.read(caller, async |tx| sources::all(tx).await).await?;
        Ok(Self::new(env, &all))
    }

    /// Of these, which are all that there are.
    pub fn new(env: &Env, all: &[AnySource]) -> Self {
        let mut n_called: HashMap<&str, usize> = HashMap::new();
        for source in all {
            *n_called.entry(&source.name).or_default() += 1;
        }
        let alike = all.iter().filter(|source| n_called[source.name.as_str()] > 1);
        let called = |source: &AnySource| format!("{} ({})", source.name, env.providers.label(&source.provider));
        Self(alike.map(|source| (source.id, called(source))).collect())
    }

    /// Writes the name with its provider, if another source has the same.
    pub fn tell_apart(&self, id: Uuid, name: &mut String) {
        if let Some(called) = self.0.get(&id) {
            name.clone_from(called);
        }
    }
}

pub async fn get(env: &Env, caller: &Caller, id: SourceId) -> Result<Source, ActError> {
    let found = env.db.read(caller, async |tx| sources::get(tx, caller.tenant_id, id).await).await?;
    found.or_missing("source")
}

/// A source with what it brought, what that took, and what happened lately.
#[derive(Clone, Debug)]
pub struct WholeSource {
    pub source: Source,
    /// The number of documents by type.
    pub counts: Vec<(String, i64)>,
    pub spend: Spend,
    /// The newest first.
    pub events: Vec<Event>,
}

pub async fn whole(env: &Env, caller: &Caller, id: SourceId) -> Result<WholeSource, ActError> {
    let tenant_id = caller.tenant_id;
    let loaded = env.db.read(caller, async |tx| {
        let Some(source) = sources::get(tx, tenant_id, id).await? else { return Ok(None) };
        let counts = sources::counts(tx, tenant_id, id).await?;
        let spend = jobs::spend(tx, tenant_id, id).await?;
        let events = sources::events(tx, tenant_id, id, EVENTS).await?;
        Ok(Some(WholeSource { source, counts, spend, events }))
    });
    loaded.await?.or_missing("source")
}

/// A source with the job that says how it is.
#[derive(Clone, Debug)]
pub struct Watched {
    pub source: Source,
    /// The job that waits or runs, else the last one.
    pub job: Option<Job>,
    pub is_being_forgotten: bool,
}

/// The caller's sources, the oldest first, or only one of them. Their numbers are those of [`sources::list_for_page`].
pub async fn watch(env: &Env, caller: &Caller, only: Option<SourceId>) -> Result<Vec<Watched>, ActError> {
    let tenant_id = caller.tenant_id;
    let going = env.db.session(async |conn| forgotten::under_way(conn, tenant_id).await).await?;
    let watched = env.db.read(caller, async |tx| {
        let mut watched = Vec::new();
        for source in sources::list_for_page(tx, tenant_id, only).await? {
            let job = match source.live_job {
                Some(id) => jobs::get(tx, tenant_id, JobId(id)).await?,
                None => {
                    let newest = Filter { source_id: Some(SourceId(source.id)), limit: 1, ..Filter::default() };
                    jobs::list(tx, tenant_id, newest).await?.pop()
                }
            };
            watched.push(Watched { is_being_forgotten: going.contains(&source.id), source, job });
        }
        Ok(watched)
    });
    Ok(watched.await?)
}

/// An account to be connected without a browser: by a key, or with sample data.
#[derive(Debug)]
pub struct NewSource {
    /// Its provider's name, as in `/oauth/{provider}/authorize`.
    pub provider: String,
    pub key: Option<Secret>,
    /// Sample data instead of an account.
    pub fixtures: bool,
    pub transport: Option<Transport>,
    /// The source whose key this one replaces. None: a new one, or the one that the account already is.
    pub replaces: Option<SourceId>,
}

/// Connects the sample data of every provider that has some, so that there is something to look at. Again, it is the same sources.
pub async fn connect_samples(env: &Env, caller: &Caller) -> Result<Vec<SourceId>, ConnectError> {
    let mut connected = Vec::new();
    for provider in env.providers.all().iter().filter(|provider| provider.has_samples()) {
        connected.push(connect::with_fixtures(env, caller.tenant_id, provider).await?);
    }
    Ok(connected)
}

/// Connects a source. Its first sync begins at once.
pub async fn connect(env: &Env, caller: &Caller, new: NewSource) -> Result<SourceId, ConnectError> {
    let tenant_id = caller.tenant_id;
    let provider = env.providers.named(&new.provider).map_err(|unknown| ConnectError::Invalid(unknown.to_string()))?;
    let id = match (new.fixtures, new.key) {
        (true, Some(_)) => return Err(ConnectError::Invalid("either a key or fixtures, not both".into())),
        (true, None) => connect::with_fixtures(env, tenant_id, provider).await?,
        (false, None) => {
            let or_key = provider.key.as_ref().map(|key| format!(", or send the `key` of {}", key.of));
            let or_key = or_key.unwrap_or_default();
            let url = connect::start_url(env, provider, None, Transport::default());
            return Err(ConnectError::InBrowser { who: provider.label, url, or_key });
        }
        (false, Some(key)) => {
            let transport = asked_transport(new.transport)?;
            let key = Secret::new(key.reveal().trim());
            if key.reveal().is_empty() {
                return Err(ConnectError::Invalid("the key is empty".into()));
            }
            if let Some(id) = new.replaces {
                let known = env.db.read(caller, async |tx| sources::get(tx, tenant_id, id).await).await?;
                known.ok_or(ConnectError::NoSource)?;
            }
            // In a task of its own: the caller may leave, and what the provider said is stored all the same.
            let (env, replaces) = (env.clone(), new.replaces);
            let connecting =
                tokio::spawn(
                    async move { connect::with_key(&env, tenant_id, provider, &key, replaces, transport).await },
                );
            connecting.await.map_err(|_| ConnectError::Interrupted)??
        }
    };
    tracing::info!(source.id = %id, tenant.id = %tenant_id, "{provider} source {id} was connected by key {}", caller.key_id);
    Ok(id)
}

/// The transport that a person may ask for; REST unless they say otherwise.
pub fn asked_transport(asked: Option<Transport>) -> Result<Transport, ConnectError> {
    match asked.unwrap_or_default() {
        Transport::Fixtures => {
            Err(ConnectError::Invalid("transport is rest or mcp; sample data is connected with `fixtures`".into()))
        }
        transport => Ok(transport),
    }
}

/// The name of the requester of a sync, as its job stores it.
pub(crate) fn requested_by(caller: &Caller) -> &str {
    if caller.is_local() { "person" } else { &caller.key_name }
}

/// Starts a sync. While another one is under way it is remembered and runs after that. Without a kind: of what changed, or of everything where nothing was read to the end yet.
pub async fn sync(env: &Env, caller: &Caller, id: SourceId, kind: Option<JobKind>) -> Result<Asked, ActError> {
    if matches!(kind, Some(JobKind::Push | JobKind::Backfill)) {
        return Err(ActError::invalid("kind is full or delta"));
    }
    syncs::sync(env, caller.tenant_id, id, kind, requested_by(caller)).await?.or_missing("source")
}

/// Stops syncing a source until it is resumed. A running sync stops at its next page.
pub async fn pause(env: &Env, caller: &Caller, id: SourceId) -> Result<(), ActError> {
    syncs::pause_source(env, caller.tenant_id, id).await?.or_missing("source")
}

/// Resumes a paused source where it stopped.
pub async fn resume(env: &Env, caller: &Caller, id: SourceId) -> Result<(), ActError> {
    syncs::resume_source(env, caller.tenant_id, id).await?.or_missing("source")
}

/// Sets how often a source is synced by itself, counted from now.
pub async fn set_sync_every(env: &Env, caller: &Caller, id: SourceId, every: Duration) -> Result<(), ActError> {
    let every = cadence::checked(every).map_err(ActError::Invalid)?;
    let (at, now, tenant_id) = (env.clock.sql(), env.clock.now(), caller.tenant_id);
    let set = env.db.write(async |tx| {
        let source = sources::get(tx, tenant_id, id).await?.or_missing("source")?;
        sources::set_sync_every(tx, tenant_id, id, every).await?;
        if source.status != SourceStatus::Disconnected {
            let next = syncs::next_sync(now, every.as_secs_f64(), id);
            sources::set_next_sync(tx, tenant_id, id, Some(next)).await?;
        }
        let what = format!("Synced every {} from now on", cadence::spelled(every));
        Ok(sources::tell(tx, at, tenant_id, id, None, Tone::Info, &what).await?)
    });
    set.await
}

/// Disconnects a source: its tokens are removed at once and nothing more is read. Its documents stay.
pub async fn disconnect(env: &Env, caller: &Caller, id: SourceId) -> Result<(), ActError> {
    connect::disconnect(env, caller.tenant_id, id).await?.or_missing("source")?;
    let (tenant_id, key_id) = (caller.tenant_id, caller.key_id);
    tracing::info!(source.id = %id, tenant.id = %tenant_id, "source {id} was disconnected, as key {key_id} asked");
    Ok(())
}

/// Counts the data that came from a source and would be removed with it.
pub async fn count(env: &Env, caller: &Caller, id: SourceId) -> Result<Counted, ActError> {
    Ok(env.db.session(async |conn| forgotten::count(conn, caller.tenant_id, Subject::Source(id)).await).await?)
}

/// Disconnects a source and has everything removed that came from it; returns how much that is. Asked twice, it is done once.
pub async fn forget(env: &Env, caller: &Caller, id: SourceId) -> Result<Counted, ActError> {
    let counted = connect::forget(env, caller.tenant_id, id, &caller.key_name).await?.or_missing("source")?;
    let (tenant_id, key_id) = (caller.tenant_id, caller.key_id);
    tracing::info!(source.id = %id, tenant.id = %tenant_id, "source {id} is being forgotten, as key {key_id} asked");
    Ok(counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_data_is_no_transport_that_one_asks_for() {
        assert!(matches!(asked_transport(None), Ok(Transport::Rest)));
        assert!(matches!(asked_transport(Some(Transport::Mcp)), Ok(Transport::Mcp)));
        assert!(asked_transport(Some(Transport::Fixtures)).is_err());
    }
}
