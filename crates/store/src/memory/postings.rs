//! Postings: for each lexeme of a tenant, the chunks that have it and what it weighs in each. They come in segments, which are written once. Chunks that
//! no segment has yet are in `memory.fresh_chunks`, kept by triggers in the transaction that writes the chunk, so nothing is ever missing.
//!
//! A list is five bytes per chunk, by rising number: four for the chunk's number, counted from the segment's first, most significant byte first, and
//! one for the weight (`domain::ranking::weight`). An entry whose chunk is gone stays until the segment is merged into another; searches leave it out.

use std::collections::{HashMap, HashSet};

use domain::TenantId;
use domain::ranking::{self, TITLE, USUAL_LENGTH};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// From so many fresh chunks on, a tenant gets another segment. Below that they are found nearly as fast.
pub const FRESH: i64 = 4_000;
/// The most chunks that one segment takes from the fresh ones: its transaction lasts some seconds.
const MOST: i64 = 16_000;
/// So many segments of about the same size become one.
const MERGED: usize = 8;
/// The number of rows that one statement writes or reads.
const ROWS: usize = 5_000;
const ENTRY: usize = 5;

/// The entries of a list: the chunk's number and the weight.
pub fn entries(list: &[u8], from_n: i64) -> impl DoubleEndedIterator<Item = (i64, u8)> {
    let (entries, _) = list.as_chunks::<ENTRY>();
    entries.iter().map(move |[a, b, c, d, weight]| (from_n + i64::from(u32::from_be_bytes([*a, *b, *c, *d])), *weight))
}

/// Whether a list has an entry of a chunk.
pub fn has_entry(list: &[u8], from_n: i64, n: i64) -> bool {
    let Ok(wanted) = u32::try_from(n - from_n) else { return false };
    let (entries, _) = list.as_chunks::<ENTRY>();
    entries.binary_search_by_key(&wanted, |[a, b, c, d, _]| u32::from_be_bytes([*a, *b, *c, *d])).is_ok()
}

/// A list of entries, which are sorted by number.
fn list(entries: &[(i64, u8)], from_n: i64) -> Vec<u8> {
    let mut list = Vec::with_capacity(entries.len() * ENTRY);
    for (n, weight) in entries {
        let offset = u32::try_from(n - from_n).unwrap_or(u32::MAX);
        list.extend(offset.to_be_bytes());
        list.push(*weight);
    }
    list
}

/// A tenant's segments and fresh chunks.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Segments {
    pub tenant_id: Uuid,
    pub n_fresh: i64,
    ids: Vec<i64>,
    /// The number of chunks in each, oldest segment first.
    sizes: Vec<i32>,
    /// The number of chunks that the tenant had when they were last counted, if that was after the newest segment was made.
    n_chunks: Option<i64>,
}

impl Segments {
    /// The segments to merge next, if any: those of a size that has become frequent, or all if a fifth of their chunks are gone.
    pub fn to_merge(&self) -> Option<Vec<i64>> {
        let total: i64 = self.sizes.iter().map(|size| i64::from(*size)).sum();
        let n_gone = self.n_chunks.map_or(0, |n_chunks| total - n_chunks);
        if n_gone > FRESH && n_gone * 5 > total {
            return Some(self.ids.clone());
        }
        let mut by_size: HashMap<u32, Vec<i64>> = HashMap::new();
        for (id, size) in self.ids.iter().zip(&self.sizes) {
            by_size.entry(class(*size)).or_default().push(*id);
        }
        by_size.into_iter().filter(|(_, ids)| ids.len() >= MERGED).min().map(|(_, ids)| ids)
    }
}

/// Segments of one class differ in size by a factor of eight at most.
fn class(size: i32) -> u32 {
    let size = u64::try_from(size).unwrap_or_default();
    (size / FRESH.unsigned_abs()).max(1).ilog2() / 3
}

/// Reads the state of all tenants that have fresh chunks or segments.
pub async fn segments(conn: &mut PgConnection) -> Result<Vec<Segments>> {
    Ok(sqlx::query_as(include_str!("../sql/segments.sql")).fetch_all(conn).await?)
}

/// The segments of a tenant, oldest first.
pub async fn segment_ids(conn: &mut PgConnection, tenant_id: TenantId) -> Result<Vec<i64>> {
    let ids = sqlx::query_scalar("select id from memory.segments where tenant_id = $1 order by id");
    Ok(ids.bind(tenant_id.0).fetch_all(conn).await?)
}

/// Makes a segment of a tenant's fresh chunks, and returns how many it took. The caller commits; until then searches find them as before.
pub async fn flush(conn: &mut PgConnection, tenant_id: TenantId) -> Result<usize> {
    // Those that another writer is about to remove stay. They are gone, or taken next time.
    let fresh: Vec<(i64, i32)> = sqlx::query_as(
        "select n, length from memory.fresh_chunks where tenant_id = $1 order by n limit $2 for update skip locked",
    )
    .bind(tenant_id.0)
    .bind(MOST)
    .fetch_all(&mut *conn)
    .await?;
    let (Some((first, _)), Some((last, _))) = (fresh.first(), fresh.last()) else { return Ok(0) };
    let (first_n, last_n) = (*first, *last);
    let lengths: HashMap<i64, i32> = fresh.iter().copied().collect();
    let mean = fresh.iter().map(|(_, length)| *length as f32).sum::<f32>() / fresh.len() as f32;
    let mean = if mean > 0.0 { mean } else { USUAL_LENGTH };
    let numbers: Vec<i64> = fresh.iter().map(|(n, _)| *n).collect();
    let rows: Vec<(String, Vec<i64>, Vec<f32>)> = sqlx::query_as(include_str!("../sql/fresh_lexemes.sql"))
        .bind(tenant_id.0)
        .bind(&numbers)
        .bind(TITLE)
        .fetch_all(&mut *conn)
        .await?;
    let id = insert(conn, tenant_id, first_n, last_n, numbers.len(), mean).await?;
    let lists = rows.into_iter().map(|(lexeme, numbers, occurrences)| {
        let weigh = |(n, occurrences): (i64, f32)| {
            (n, ranking::weight(occurrences, lengths.get(&n).map_or(mean, |length| *length as f32), mean))
        };
        let mut entries: Vec<(i64, u8)> = numbers.into_iter().zip(occurrences).map(weigh).collect();
        // Two long lexemes of a chunk may have the same beginning: the heavier one counts.
        entries.sort_unstable_by_key(|(n, weight)| (*n, u8::MAX - weight));
        entries.dedup_by_key(|(n, _)| *n);
        (lexeme, entries)
    });
    let lists: Vec<(String, Vec<(i64, u8)>)> = lists.collect();
    for some in lists.chunks(ROWS) {
        write(conn, tenant_id, id, first_n, some).await?;
    }
    sqlx::query("delete from memory.fresh_chunks where tenant_id = $1 and n = any ($2)")
        .bind(tenant_id.0)
        .bind(&numbers)
        .execute(conn)
        .await?;
    Ok(numbers.len())
}

/// Makes one segment of several, without the chunks that are gone. Returns whether it did: it does not if another process was faster.
pub async fn merge(conn: &mut PgConnection, tenant_id: TenantId, ids: &[i64]) -> Result<bool> {
    let locked: Vec<(i64, i64, i32, f32)> = sqlx::query_as(
        "select first_n, last_n, n_chunks, mean_length from memory.segments where tenant_id = $1 and id = any ($2) for update",
    )
    .bind(tenant_id.0)
    .bind(ids)
    .fetch_all(&mut *conn)
    .await?;
    if locked.len() != ids.len() || ids.is_empty() {
        return Ok(false);
    }
    let first_n = locked.iter().map(|(first, ..)| *first).min().unwrap_or_default();
    let last_n = locked.iter().map(|(_, last, ..)| *last).max().unwrap_or_default();
    let n: f32 = locked.iter().map(|(_, _, n, _)| *n as f32).sum();
    let mean = locked.iter().map(|(_, _, n, mean)| *n as f32 * mean).sum::<f32>() / n.max(1.0);
    let there: HashSet<i64> = sqlx::query_scalar::<_, i64>(
        "select n from public.document_chunks where tenant_id = $1 and n between $2 and $3",
    )
    .bind(tenant_id.0)
    .bind(first_n)
    .bind(last_n)
    .fetch_all(&mut *conn)
    .await?
    .into_iter()
    .collect();
    let id = insert(conn, tenant_id, first_n, last_n, 0, mean).await?;
    let mut kept: HashSet<i64> = HashSet::new();
    let mut after = String::new();
    loop {
        let rows: Vec<(String, i64, Vec<u8>)> = sqlx::query_as(include_str!("../sql/postings_page.sql"))
            .bind(tenant_id.0)
            .bind(ids)
            .bind(&after)
            .bind(ROWS as i64)
            .fetch_all(&mut *conn)
            .await?;
        let Some((last, ..)) = rows.last() else { break };
        after.clone_from(last);
        let mut lists: Vec<(String, Vec<(i64, u8)>)> = Vec::new();
        for (lexeme, from_n, list) in rows {
            let some = entries(&list, from_n).filter(|(n, _)| there.contains(n));
            match lists.last_mut().filter(|(known, _)| *known == lexeme) {
                Some((_, entries)) => entries.extend(some),
                None => lists.push((lexeme, some.collect())),
            }
        }
        lists.retain(|(_, entries)| !entries.is_empty());
        for (_, entries) in &mut lists {
            entries.sort_unstable();
            kept.extend(entries.iter().map(|(n, _)| n));
        }
        write(conn, tenant_id, id, first_n, &lists).await?;
    }
    sqlx::query("update memory.segments set n_chunks = $3 where tenant_id = $1 and id = $2")
        .bind(tenant_id.0)
        .bind(id)
        .bind(i32::try_from(kept.len()).unwrap_or(i32::MAX))
        .execute(&mut *conn)
        .await?;
    sqlx::query(include_str!("../sql/segments_remove.sql")).bind(tenant_id.0).bind(ids).execute(conn).await?;
    Ok(true)
}

async fn insert(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    first_n: i64,
    last_n: i64,
    n_chunks: usize,
    mean_length: f32,
) -> Result<i64> {
    Ok(sqlx::query_scalar(
        "insert into memory.segments (tenant_id, first_n, last_n, n_chunks, mean_length) values ($1, $2, $3, $4, $5) returning id",
    )
    .bind(tenant_id.0)
    .bind(first_n)
    .bind(last_n)
    .bind(i32::try_from(n_chunks).unwrap_or(i32::MAX))
    .bind(mean_length)
    .fetch_one(conn)
    .await?)
}

async fn write(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    segment_id: i64,
    first_n: i64,
    lists: &[(String, Vec<(i64, u8)>)],
) -> Result<()> {
    sqlx::query(
        "insert into memory.postings (tenant_id, lexeme, segment_id, n_chunks, list)
         select $1, r.lexeme, $2, r.n_chunks, r.list from unnest($3::text[], $4::int4[], $5::bytea[]) r (lexeme, n_chunks, list)",
    )
    .bind(tenant_id.0)
    .bind(segment_id)
    .bind(lists.iter().map(|(lexeme, _)| lexeme.as_str()).collect::<Vec<_>>())
    .bind(lists.iter().map(|(_, entries)| i32::try_from(entries.len()).unwrap_or(i32::MAX)).collect::<Vec<_>>())
    .bind(lists.iter().map(|(_, entries)| list(entries, first_n)).collect::<Vec<_>>())
    .execute(conn)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_gives_back_its_entries() {
        for (first, given) in [
            (0, vec![]),
            (7, vec![(7, 1), (8, 255), (7 + i64::from(u32::MAX), 9)]),
            (5_000_000_000, vec![(5_000_000_001, 3)]),
        ] {
            let list = list(&given, first);
            assert_eq!(list.len(), 5 * given.len());
            assert_eq!(entries(&list, first).collect::<Vec<_>>(), given);
        }
    }

    #[test]
    fn segments_of_a_size_are_merged_when_there_are_eight() {
        let state = |sizes: &[i32], n_fresh: i64, n_chunks: i64| Segments {
            tenant_id: Uuid::nil(),
            n_fresh,
            ids: (1..).take(sizes.len()).collect(),
            sizes: sizes.to_vec(),
            n_chunks: Some(n_chunks),
        };
        let small = [4_000; 8];
        let mixed = [200_000, 4_000, 9_000, 31_000, 4_000, 4_000, 4_000, 5_000, 16_000];
        for (what, segments, expected) in [
            ("none", state(&[], 9_000, 9_000), None),
            ("seven", state(&small[..7], 0, 28_000), None),
            ("eight", state(&small, 0, 32_000), Some((1..=8).collect())),
            ("those of a size", state(&mixed, 0, 277_000), Some((2..=9).collect())),
            ("a fifth is gone", state(&[100_000, 4_000], 0, 80_000), Some(vec![1, 2])),
            ("a tenth is gone", state(&[100_000, 4_000], 0, 95_000), None),
            ("few are gone", state(&[5_000], 0, 3_000), None),
            ("nobody has counted since", Segments { n_chunks: None, ..state(&[100_000, 4_000], 0, 0) }, None),
        ] {
            assert_eq!(segments.to_merge(), expected, "{what}");
        }
    }
}
