//! Codes: short forms of a tenant's vectors (`domain::codes`), by which the server finds the nearest. They come in segments, which are written once.
//! Vectors that no segment has yet are in `memory.fresh_vectors`, kept by triggers in the transaction that writes the vector, so nothing is ever missing.
//! An entry whose chunk is gone stays until its segment is merged into another; searches leave it out.

use std::collections::{HashMap, HashSet};

use domain::TenantId;
use domain::codes::{Segment, VERSION, Vector};
use sqlx::PgConnection;
use uuid::Uuid;

use super::VectorTable;
use crate::Result;

/// From so many fresh vectors on, a tenant gets another segment. Below that they are compared one by one.
pub const FRESH: i64 = 200;
/// The most vectors that one segment takes from the fresh ones: its transaction lasts about a second.
const MOST: i64 = 8_000;
/// So many segments of about the same size become one, unless that would be larger than the largest.
const MERGED: usize = 8;
/// A segment has at most so many vectors, and fewer of long ones: all of them are in memory while it is made.
const LARGEST: i64 = 64_000;
const LARGEST_NUMBERS: i64 = 25_000_000;

/// The segments and fresh vectors of a tenant, of one model.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Coded {
    pub tenant_id: Uuid,
    pub model: String,
    /// The length of the vectors.
    pub dim: i32,
    pub n_fresh: i64,
    ids: Vec<i64>,
    /// The number of chunks in each, oldest segment first.
    sizes: Vec<i32>,
    /// The number of chunks that the tenant had when they were last counted, if that was after the newest segment was made.
    n_chunks: Option<i64>,
    /// Another release may have written them in another way.
    pub is_readable: bool,
}

impl Coded {
    /// The segments to merge next, if any: those of a size that has become frequent, or the oldest ones if a fifth of all chunks are gone.
    pub fn to_merge(&self) -> Option<Vec<i64>> {
        let largest = (LARGEST_NUMBERS / i64::from(self.dim.max(1))).clamp(MOST, LARGEST);
        let sized = || self.ids.iter().copied().zip(self.sizes.iter().map(|size| i64::from(*size)));
        let mut by_size: HashMap<u32, Vec<(i64, i64)>> = HashMap::new();
        for (id, size) in sized().filter(|(_, size)| *size * 2 < largest) {
            by_size.entry(class(size)).or_default().push((id, size));
        }
        let frequent = by_size.into_iter().filter(|(_, some)| some.len() >= MERGED).min();
        let total: i64 = sized().map(|(_, size)| size).sum();
        let n_gone = self.n_chunks.map_or(0, |n_chunks| total - n_chunks);
        let chosen = match frequent {
            Some((_, some)) => some,
            None if n_gone > 2_000 && n_gone * 5 > total => sized().collect(),
            None => return None,
        };
        let mut room = largest;
        let fits = |(id, size): (i64, i64)| {
            room -= size;
            (room >= 0).then_some(id)
        };
        let fitting: Vec<i64> = chosen.into_iter().map_while(fits).collect();
        (!fitting.is_empty()).then_some(fitting)
    }
}

/// Segments of one class differ in size by a factor of eight at most.
fn class(size: i64) -> u32 {
    (size / FRESH).max(1).ilog2() / 3
}

/// Reads the state of all tenants and models that have fresh vectors or segments.
pub async fn all(conn: &mut PgConnection) -> Result<Vec<Coded>> {
    let version = &VERSION.to_le_bytes()[..];
    Ok(sqlx::query_as(include_str!("../sql/codes.sql")).bind(version).fetch_all(conn).await?)
}

/// The number of a tenant's vectors of a model that no segment has yet.
pub async fn n_fresh(conn: &mut PgConnection, tenant_id: TenantId, table: &VectorTable) -> Result<i64> {
    let sql = "select count(*) from memory.fresh_vectors where tenant_id = $1 and model = $2";
    Ok(sqlx::query_scalar(sql).bind(tenant_id.0).bind(table.model()).fetch_one(conn).await?)
}

/// Makes a segment of a tenant's fresh vectors, and returns how many it took. The caller commits; until then searches find them as before.
pub async fn flush(conn: &mut PgConnection, tenant_id: TenantId, table: &VectorTable) -> Result<usize> {
    // Those that another process takes stay.
    let fresh: Vec<Uuid> = sqlx::query_scalar(
        "select chunk_id from memory.fresh_vectors where tenant_id = $1 and model = $2 limit $3 for update skip locked",
    )
    .bind(tenant_id.0)
    .bind(table.model())
    .bind(MOST)
    .fetch_all(&mut *conn)
    .await?;
    if fresh.is_empty() {
        return Ok(0);
    }
    write(conn, tenant_id, table, &fresh, |_| true).await?;
    sqlx::query("delete from memory.fresh_vectors where tenant_id = $1 and model = $2 and chunk_id = any ($3)")
        .bind(tenant_id.0)
        .bind(table.model())
        .bind(&fresh)
        .execute(conn)
        .await?;
    Ok(fresh.len())
}

/// Makes one segment of several, without the chunks that are gone. Returns whether it did: it does not if another process was faster.
pub async fn merge(conn: &mut PgConnection, tenant_id: TenantId, table: &VectorTable, ids: &[i64]) -> Result<bool> {
    let locked: Vec<Vec<u8>> = sqlx::query_scalar(
        "select bytes from memory.codes where tenant_id = $1 and model = $2 and id = any ($3) for update",
    )
    .bind(tenant_id.0)
    .bind(table.model())
    .bind(ids)
    .fetch_all(&mut *conn)
    .await?;
    if locked.len() != ids.len() || ids.is_empty() {
        return Ok(false);
    }
    let (mut chunks, mut numbers) = (Vec::new(), HashSet::new());
    for bytes in &locked {
        match Segment::parse(bytes) {
            Some(segment) => {
                chunks.extend(segment.chunk_ids());
                numbers.extend(segment.numbers());
            }
            None => return begin_anew(conn, tenant_id, table).await.map(|()| true),
        }
    }
    // A chunk that has another number by now is in another segment, or fresh.
    write(conn, tenant_id, table, &chunks, |n| numbers.contains(&n)).await?;
    sqlx::query("delete from memory.codes where tenant_id = $1 and model = $2 and id = any ($3)")
        .bind(tenant_id.0)
        .bind(table.model())
        .bind(ids)
        .execute(conn)
        .await?;
    Ok(true)
}

/// Writes a segment of those chunks that are there, have a vector, and whose number is wanted.
async fn write(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    table: &VectorTable,
    chunks: &[Uuid],
    is_wanted: impl Fn(i64) -> bool,
) -> Result<()> {
    let sql = table.on(include_str!("../sql/codes_vectors.sql"));
    let mut rows: Vec<(i64, Uuid, Uuid, Vec<f32>)> =
        sqlx::query_as(sql).bind(tenant_id.0).bind(chunks).fetch_all(&mut *conn).await?;
    rows.retain(|(n, ..)| is_wanted(*n));
    if rows.is_empty() {
        return Ok(());
    }
    let vector = |(n, chunk_id, document_id, numbers)| Vector { n, chunk_id, document_id, numbers };
    let vectors: Vec<Vector> = rows.into_iter().map(vector).collect();
    let made = tokio::task::spawn_blocking(move || {
        let segment = Segment::of(vectors);
        (segment.len(), segment.to_bytes())
    });
    let (n_chunks, bytes) = made.await.map_err(|error| crate::Error::Refused { what: error.to_string() })?;
    sqlx::query("insert into memory.codes (tenant_id, model, n_chunks, bytes) values ($1, $2, $3, $4)")
        .bind(tenant_id.0)
        .bind(table.model())
        .bind(i32::try_from(n_chunks).unwrap_or(i32::MAX))
        .bind(bytes)
        .execute(conn)
        .await?;
    Ok(())
}

const REMOVE_CODES: &str = "delete from memory.codes where tenant_id = $1 and model = $2";

/// Removes the codes of a tenant's vectors of one model. All of these are fresh again.
pub async fn begin_anew(conn: &mut PgConnection, tenant_id: TenantId, table: &VectorTable) -> Result<()> {
    sqlx::query(REMOVE_CODES).bind(tenant_id.0).bind(table.model()).execute(&mut *conn).await?;
    let mut after = Uuid::nil();
    loop {
        let last: Option<Uuid> = sqlx::query_scalar(table.on(include_str!("../sql/codes_fresh.sql")))
            .bind(tenant_id.0)
            .bind(table.model())
            .bind(after)
            .fetch_optional(&mut *conn)
            .await?;
        let Some(last) = last else { return Ok(()) };
        after = last;
    }
}

/// The segments of all of a tenant's models.
pub async fn segments(conn: &mut PgConnection, tenant_id: TenantId) -> Result<Vec<(String, i64)>> {
    let sql = "select model, id from memory.codes where tenant_id = $1 order by model, id";
    Ok(sqlx::query_as(sql).bind(tenant_id.0).fetch_all(conn).await?)
}

/// Removes the codes of a tenant's vectors of one model, with what is known of fresh ones.
pub async fn remove(conn: &mut PgConnection, tenant_id: TenantId, table: &VectorTable) -> Result<()> {
    // The fresh ones first: that waits for a segment that is being made of them, and then removes it too.
    for sql in ["delete from memory.fresh_vectors where tenant_id = $1 and model = $2", REMOVE_CODES] {
        sqlx::query(sql).bind(tenant_id.0).bind(table.model()).execute(&mut *conn).await?;
    }
    Ok(())
}

/// Reads segments of the caller's codes, by id. Those that others have replaced are left out.
pub async fn read(conn: &mut PgConnection, model: &str, ids: &[i64]) -> Result<Vec<(i64, Vec<u8>)>> {
    Ok(sqlx::query_as("select id, bytes from memory.read_codes($1, $2)").bind(model).bind(ids).fetch_all(conn).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_of_a_size_are_merged_when_there_are_eight_and_none_becomes_too_large() {
        let state = |sizes: &[i32], n_chunks: i64| Coded {
            tenant_id: Uuid::nil(),
            model: "m".into(),
            dim: 384,
            n_fresh: 0,
            ids: (1..).take(sizes.len()).collect(),
            sizes: sizes.to_vec(),
            n_chunks: Some(n_chunks),
            is_readable: true,
        };
        for (what, coded, expected) in [
            ("none", state(&[], 0), None),
            ("seven", state(&[200; 7], 1_400), None),
            ("eight", state(&[200; 8], 1_600), Some((1..=8).collect())),
            (
                "those of a size",
                state(&[30_000, 300, 300, 300, 300, 300, 300, 300, 300], 32_400),
                Some((2..=9).collect()),
            ),
            ("as many as there is room for", state(&[20_000; 9], 180_000), Some(vec![1, 2, 3])),
            ("large ones stay", state(&[60_000; 12], 720_000), None),
            ("a fifth is gone", state(&[60_000, 4_000], 50_000), Some(vec![1, 2])),
            ("a tenth is gone", state(&[60_000, 4_000], 58_000), None),
        ] {
            assert_eq!(coded.to_merge(), expected, "{what}");
        }
        let long = Coded { dim: 3_072, ..state(&[2_000; 8], 16_000) };
        assert_eq!(long.to_merge(), Some(vec![1, 2, 3, 4]), "fewer of long ones");
    }
}
