//! Saved searches: a person saves a question, and sees how many documents have been stored since that match it.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use domain::Caller;
use store::searches;
pub use store::searches::{Asked, SavedSearch};
use tracing::warn;
use uuid::Uuid;

use crate::act::{OrMissing as _, checked_name};
use crate::memory::recall::{self, Query};
use crate::{ActError, Env};

/// The new hits of so many searches are counted for one list: each count is a search.
const MOST_COUNTED: usize = 20;
/// Somebody waits for the list: an embedder that hangs must not hold it up.
const PATIENCE: Duration = Duration::from_secs(4);

/// A saved search and the number of new documents that match it.
#[derive(Clone, Debug)]
pub struct Listed {
    pub search: SavedSearch,
    /// None: it could not be counted, or there are more searches than are counted for one list.
    pub news: Option<News>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    pub n: usize,
    pub is_at_least: bool,
}

/// Saves a search under a name of its own.
pub async fn save(env: &Env, caller: &Caller, name: &str, asked: Asked) -> Result<Uuid, ActError> {
    let name = checked_name("a saved search's", name)?;
    let asked = Asked { text: asked.text.trim().to_owned(), ..asked };
    query(&asked).check()?;
    let saved = env.db.write(async |tx| {
        let inserted = searches::insert(tx, caller.tenant_id, name, &asked, &caller.key_name).await?;
        inserted.ok_or_else(|| ActError::conflict(format!("{} searches are saved already: remove one", searches::MOST)))
    });
    saved.await
}

/// Lists the tenant's saved searches by name, each with the number of its new documents.
pub async fn list(env: &Env, caller: &Caller) -> Result<Vec<Listed>, ActError> {
    let saved = env.db.read(caller, async |tx| searches::list(tx, caller.tenant_id, None).await).await?;
    let (mut listed, begun) = (Vec::new(), Instant::now());
    for (nth, search) in saved.into_iter().enumerate() {
        let news = if nth < MOST_COUNTED && begun.elapsed() < PATIENCE {
            // One search that fails must not hide the others.
            let counted = news(env, caller, &search).await;
            counted.inspect_err(|error| warn!(%error, "could not count what is new for a saved search")).ok()
        } else {
            None
        };
        listed.push(Listed { search, news });
    }
    Ok(listed)
}

pub async fn get(env: &Env, caller: &Caller, id: Uuid) -> Result<SavedSearch, ActError> {
    let found = env.db.read(caller, async |tx| searches::list(tx, caller.tenant_id, Some(id)).await).await?;
    found.into_iter().next().or_missing("saved search")
}

/// Counts the matching documents that were stored since somebody looked.
pub async fn news(env: &Env, caller: &Caller, search: &SavedSearch) -> Result<News, ActError> {
    if !search.has_later {
        return Ok(News::default());
    }
    let mut query = Query { k: 1, with_facets: true, ..query(&search.asked) };
    query.filters.stored_after = Some(search.seen_at);
    let facets = recall::search(env, caller, &query).await?.facets.unwrap_or_default();
    Ok(News { n: facets.n_matches, is_at_least: facets.is_at_least })
}

/// Marks what was stored until a time as seen: the time of the answer that somebody has looked at. Without a time, until now.
pub async fn see(env: &Env, caller: &Caller, id: Uuid, until: Option<DateTime<Utc>>) -> Result<(), ActError> {
    let seen =
        env.db.write(async |tx| searches::see(tx, caller.tenant_id, id, until).await?.or_missing("saved search"));
    seen.await
}

pub async fn remove(env: &Env, caller: &Caller, id: Uuid) -> Result<(), ActError> {
    let gone = env.db.write(async |tx| searches::delete(tx, caller.tenant_id, id).await?.or_missing("saved search"));
    gone.await
}

fn query(asked: &Asked) -> Query {
    Query { text: asked.text.clone(), mode: asked.mode, filters: asked.filters.clone(), k: 10, ..Query::default() }
}
