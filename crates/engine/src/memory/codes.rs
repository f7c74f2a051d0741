//! Codes, by which the nearest vectors are found: keeps them in the database, and holds those that searches need in this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use domain::codes::Segment;
use domain::{Fault, TenantId};
use store::Tx;
use store::crash::{self, Point};
use store::memory::VectorTable;
use store::memory::codes::{self, Coded};

use crate::Env;

/// So much is held. Beyond it, those go that were not asked for lately.
const MOST_BYTES: usize = 512 << 20;

/// Makes segments for every memory that has `least` fresh vectors, and merges small ones. Each is one commit: a crash loses the work since the last one
/// and nothing else, because a search finds a vector among the fresh ones until its segment is committed.
pub async fn keep(env: &Env, least: i64) -> Result<(), Fault> {
    let mut conn = env.db.acquire().await?;
    let all = codes::all(&mut conn).await?;
    drop(conn);
    // A memory for which something fails holds up no other.
    let mut failed = None;
    for coded in &all {
        failed = keep_one(env, coded, least).await.err().or(failed);
    }
    failed.map_or(Ok(()), Err)
}

async fn keep_one(env: &Env, coded: &Coded, least: i64) -> Result<(), Fault> {
    let (tenant_id, table) = (TenantId(coded.tenant_id), VectorTable::new(&coded.model)?);
    if !coded.is_readable {
        let mut tx = env.db.begin().await?;
        codes::begin_anew(&mut tx, tenant_id, &table).await?;
        tx.commit().await?;
        return Ok(()); // the next tick makes them
    }
    if let Some(ids) = coded.to_merge() {
        let mut tx = env.db.begin().await?;
        codes::merge(&mut tx, tenant_id, &table, &ids).await?;
        crash::at(Point::CodesBeforeCommit)?;
        tx.commit().await?;
    }
    if coded.n_fresh >= least {
        flush(env, tenant_id, &table, coded.n_fresh).await?;
    }
    Ok(())
}

/// Makes segments of a memory's fresh vectors.
pub(crate) async fn flush(env: &Env, tenant_id: TenantId, table: &VectorTable, n_fresh: i64) -> Result<(), Fault> {
    let mut n_left = n_fresh;
    while n_left > 0 {
        let mut tx = env.db.begin().await?;
        let n_taken = i64::try_from(codes::flush(&mut tx, tenant_id, table).await?).unwrap_or(i64::MAX);
        crash::at(Point::CodesBeforeCommit)?;
        tx.commit().await?;
        n_left = if n_taken > 0 { n_left - n_taken } else { 0 };
    }
    Ok(())
}

/// The segments that this process has read. A segment is written once and its number is never given out again. Cheap to clone; all clones are the same.
#[derive(Clone, Default)]
pub struct Codes(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    segments: HashMap<i64, Entry>,
    bytes: usize,
    /// The number of look-ups so far.
    now: u64,
}

struct Entry {
    segment: Arc<Segment>,
    used: u64,
}

impl Codes {
    /// Returns the segments with these ids, and reads from the database those that are not known. None: one of them was merged into another meanwhile.
    pub(super) async fn get(&self, tx: &mut Tx, model: &str, ids: &[i64]) -> store::Result<Option<Vec<Arc<Segment>>>> {
        self.known().now += 1;
        // Held from here on: others' searches may push them out of the memory meanwhile.
        let mut found: Vec<(i64, Option<Arc<Segment>>)> = {
            let mut known = self.known();
            ids.iter().map(|id| (*id, known.touch(*id))).collect()
        };
        // One at a time: together they may be hundreds of megabytes.
        for (id, segment) in found.iter_mut().filter(|(_, segment)| segment.is_none()) {
            *segment = self.known().touch(*id); // another search may have read it by now
            if segment.is_some() {
                continue;
            }
            let Some((_, bytes)) = codes::read(tx, model, std::slice::from_ref(id)).await?.pop() else {
                return Ok(None);
            };
            let parsed = tokio::task::spawn_blocking(move || Segment::parse(&bytes)).await.ok().flatten();
            let Some(read) = parsed.map(Arc::new) else {
                tracing::error!(
                    "the codes {id} are damaged and left out of searches: restore the database from a backup"
                );
                continue;
            };
            self.known().insert(*id, read.clone());
            *segment = Some(read);
        }
        self.known().shrink(MOST_BYTES);
        Ok(Some(found.into_iter().filter_map(|(_, segment)| segment).collect()))
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn touch(&mut self, id: i64) -> Option<Arc<Segment>> {
        let entry = self.segments.get_mut(&id)?;
        entry.used = self.now;
        Some(entry.segment.clone())
    }

    fn insert(&mut self, id: i64, segment: Arc<Segment>) {
        self.bytes += segment.size();
        let before = self.segments.insert(id, Entry { segment, used: self.now });
        self.bytes -= before.map_or(0, |entry| entry.segment.size());
    }

    /// If they take more than `most` bytes, removes those that were not used for the longest time.
    fn shrink(&mut self, most: usize) {
        while self.bytes > most
            && let Some(oldest) = self.segments.iter().min_by_key(|(id, entry)| (entry.used, **id)).map(|(id, _)| *id)
            && let Some(entry) = self.segments.remove(&oldest)
        {
            self.bytes -= entry.segment.size();
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::codes::Vector;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn segments_that_nobody_asks_for_go_first() {
        let vector = |n| Vector { n, chunk_id: Uuid::now_v7(), document_id: Uuid::nil(), numbers: vec![0.5; 64] };
        let segment = Arc::new(Segment::of((0..10).map(vector).collect()));
        let mut known = Known::default();
        for id in 0..5 {
            known.now += 1;
            known.insert(id, segment.clone());
            known.insert(id, segment.clone());
        }
        assert_eq!(known.bytes, 5 * segment.size(), "written twice, kept once");
        known.now += 1;
        assert!(known.touch(0).is_some() && known.touch(77).is_none());
        known.shrink(5 * segment.size());
        assert_eq!(known.segments.len(), 5, "there is room");
        known.shrink(2 * segment.size());
        let mut kept: Vec<i64> = known.segments.keys().copied().collect();
        kept.sort_unstable();
        assert_eq!((kept, known.bytes), (vec![0, 4], 2 * segment.size()));
    }
}
