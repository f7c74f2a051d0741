//! Moves of a tenant's memory to another model. A worker gives every chunk a vector of the new model, bite by bite, while searches go on with the old
//! one; then one statement switches them.

use chrono::{DateTime, Utc};
use domain::{TenantId, words};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{HalfVec, VectorTable};
use crate::Result;
use crate::spend::Spent;

words! {
    /// How far a move is.
    State {
        /// Chunks get their new vectors.
        Embedding = "embedding",
        /// Every chunk has one; codes are made of them, and searches are about to switch.
        Indexing = "indexing",
        /// Searches use the new model. The old vectors are removed.
        Tidying = "tidying",
        /// It was cancelled. The new vectors are removed.
        Cancelling = "cancelling",
    }
}

impl State {
    /// Whether searches still use the old model and are going to switch.
    pub fn is_before_switch(self) -> bool {
        matches!(self, Self::Embedding | Self::Indexing)
    }
}

/// A move under way.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Move {
    pub tenant_id: Uuid,
    pub from_model: String,
    pub to_model: String,
    #[sqlx(try_from = "String")]
    pub state: State,
    /// A person chose the model.
    pub is_chosen: bool,
    pub asked_by: String,
    /// The last chunk, or document, that was looked at.
    pub after: Option<Uuid>,
    /// Chunks that still lack a vector, more or less.
    pub n_left: i64,
    pub n_embedded: i64,
    pub tokens: i64,
    pub cost_micros: i64,
    /// The cost of all of it, as estimated at the beginning.
    pub estimated_micros: i64,
    /// Chunks per second, lately.
    pub rate: Option<f64>,
    /// Why it does not go on at the moment.
    pub waits_for: Option<String>,
    pub begun_at: DateTime<Utc>,
    pub progressed_at: DateTime<Utc>,
}

/// A tenant's memory: its model, and its move if there is one.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Placed {
    pub tenant_id: Uuid,
    pub tenant: String,
    pub model: String,
    /// A person chose the model, so that the settings do not move the memory.
    pub is_chosen: bool,
    /// The model before the last move, and when that ended.
    pub left_model: Option<String>,
    pub moved_at: Option<DateTime<Utc>>,
    /// As of the last count.
    pub n_chunks: i64,
    /// The language that the tenant has fixed for its texts; none: it is detected.
    pub lang: Option<String>,
    /// Whether documents still get the language that was set.
    pub is_relabelled: bool,
}

/// Lists the memories of all tenants in service, or of one.
pub async fn placed(conn: &mut PgConnection, tenant_id: Option<TenantId>) -> Result<Vec<Placed>> {
    Ok(sqlx::query_as(
        "select t.tenant_id, n.name as tenant, t.model, t.is_chosen, t.left_model, t.moved_at, t.n_chunks, t.lang::text as lang,
             t.relabel_after is not null as is_relabelled
         from memory.tenants t join public.tenants n on n.id = t.tenant_id
         where n.forgetting_at is null and ($1::uuid is null or t.tenant_id = $1) order by n.created_at, n.id",
    )
    .bind(tenant_id.map(|id| id.0))
    .fetch_all(conn)
    .await?)
}

/// Lists the moves under way, of all tenants or of one.
pub async fn list(conn: &mut PgConnection, tenant_id: Option<TenantId>) -> Result<Vec<Move>> {
    let sql = "select * from memory.moves where $1::uuid is null or tenant_id = $1 order by begun_at, tenant_id";
    Ok(sqlx::query_as(sql).bind(tenant_id.map(|id| id.0)).fetch_all(conn).await?)
}

/// The move of a tenant, if there is one.
pub async fn get(conn: &mut PgConnection, tenant_id: TenantId) -> Result<Option<Move>> {
    Ok(sqlx::query_as("select * from memory.moves where tenant_id = $1").bind(tenant_id.0).fetch_optional(conn).await?)
}

/// The same, locked until the transaction ends.
pub async fn lock(conn: &mut PgConnection, tenant_id: TenantId) -> Result<Option<Move>> {
    let sql = "select * from memory.moves where tenant_id = $1 for update";
    Ok(sqlx::query_as(sql).bind(tenant_id.0).fetch_optional(conn).await?)
}

/// The chunks that lack a vector, and the bytes of their texts, estimated from some of them. Without a table all lack one.
pub async fn count_lacking(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    table: Option<&VectorTable>,
) -> Result<(i64, i64)> {
    let having = match table {
        Some(_) => "and not exists (select from {v} v where v.tenant_id = c.tenant_id and v.chunk_id = c.id)",
        None => "",
    };
    let sql = format!(
        "with lacking as (select count(*) as n from public.document_chunks c where c.tenant_id = $1 {having}),
         sampled as (select octet_length(text) as bytes from public.document_chunks where tenant_id = $1 order by id limit 5000)
         select n, (n * coalesce((select avg(bytes) from sampled), 0))::int8 from lacking"
    );
    let sql = match table {
        Some(table) => table.on(&sql),
        None => sqlx::AssertSqlSafe(sql),
    };
    Ok(sqlx::query_as(sql).bind(tenant_id.0).fetch_one(conn).await?)
}

/// A move to begin.
#[derive(Clone, Debug)]
pub struct NewMove<'a> {
    pub to_model: &'a str,
    pub is_chosen: bool,
    pub asked_by: &'a str,
    pub n_left: i64,
    pub estimated_micros: i64,
}

/// Begins a move from the model that the tenant's searches use. False if it uses the new one already, moves already, or has no memory.
pub async fn begin(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    new: &NewMove<'_>,
) -> Result<bool> {
    let begun = sqlx::query(
        "insert into memory.moves (tenant_id, from_model, to_model, is_chosen, asked_by, n_left, estimated_micros, begun_at, progressed_at)
         select t.tenant_id, t.model, $2, $3, left($4, 200), $5, $6, coalesce($7, now()), coalesce($7, now())
         from memory.tenants t where t.tenant_id = $1 and t.model <> $2
         on conflict (tenant_id) do nothing",
    )
    .bind(tenant_id.0)
    .bind(new.to_model)
    .bind(new.is_chosen)
    .bind(new.asked_by)
    .bind(new.n_left)
    .bind(new.estimated_micros)
    .bind(at);
    Ok(begun.execute(conn).await?.rows_affected() == 1)
}

/// Says whether a person chose the tenant's model, so that the settings do not move its memory.
pub async fn choose(conn: &mut PgConnection, tenant_id: TenantId, is_chosen: bool) -> Result<()> {
    let sql = "update memory.tenants set is_chosen = $2 where tenant_id = $1 and is_chosen <> $2";
    sqlx::query(sql).bind(tenant_id.0).bind(is_chosen).execute(conn).await?;
    Ok(())
}

/// A chunk without a vector.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Lacking {
    pub id: Uuid,
    pub text: String,
    /// The first of its document.
    pub is_first: bool,
}

/// The next chunks that have no vector in this table, in the order of their ids. Each statement looks at so many at most: a pass that finds
/// nothing looks at all chunks of the memory.
pub async fn lacking(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    table: &VectorTable,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Lacking>> {
    let mut after = after.unwrap_or_default();
    loop {
        let last: Option<Uuid> = sqlx::query_scalar(
            "select id from (select id from public.document_chunks where tenant_id = $1 and id > $2 order by id limit 20000) w
             order by id desc limit 1",
        )
        .bind(tenant_id.0)
        .bind(after)
        .fetch_optional(&mut *conn)
        .await?;
        let Some(last) = last else { return Ok(Vec::new()) };
        // Counted for each chunk, by its key: a join would read the whole table for every bite.
        let sql = table.on("select c.id, c.text, c.ordinal = 0 as is_first from public.document_chunks c
             where c.tenant_id = $1 and c.id > $2 and c.id <= $3
                 and (select count(*) from {v} v where v.tenant_id = c.tenant_id and v.chunk_id = c.id) = 0
             order by c.id limit $4");
        let query = sqlx::query_as(sql).bind(tenant_id.0).bind(after).bind(last).bind(limit);
        let lacking: Vec<Lacking> = query.fetch_all(&mut *conn).await?;
        if !lacking.is_empty() {
            return Ok(lacking);
        }
        after = last;
    }
}

/// Whether any chunk has no vector in this table.
pub async fn lacks(conn: &mut PgConnection, tenant_id: TenantId, table: &VectorTable) -> Result<bool> {
    let sql = table.on("select exists (select from public.document_chunks c where c.tenant_id = $1
         and not exists (select from {v} v where v.tenant_id = c.tenant_id and v.chunk_id = c.id))");
    Ok(sqlx::query_scalar(sql).bind(tenant_id.0).fetch_one(conn).await?)
}

/// Inserts the vectors of a bite. A chunk that is gone, or that somebody is removing, gets none: waiting for it could end in a deadlock.
pub async fn insert(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    table: &VectorTable,
    vectors: &[(Uuid, &[f32])],
) -> Result<()> {
    let Some((_, first)) = vectors.first() else { return Ok(()) };
    for some in vectors.chunks(super::chunks::per_statement(first.len())) {
        sqlx::query(table.on(include_str!("../sql/moves_insert.sql")))
            .bind(tenant_id.0)
            .bind(some.iter().map(|(chunk, _)| *chunk).collect::<Vec<_>>())
            .bind(some.iter().map(|(_, vector)| HalfVec::new(vector)).collect::<Vec<_>>())
            .execute(&mut *conn)
            .await?;
    }
    Ok(())
}

/// Notes a bite: up to which chunk, how many, what it cost, and how fast it was.
pub async fn advance(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    after: Option<Uuid>,
    n: usize,
    spent: &Spent,
    per_second: f64,
) -> Result<()> {
    sqlx::query(
        "update memory.moves set after = $2, n_embedded = n_embedded + $3, n_left = greatest(n_left - $3, 0),
             tokens = tokens + $4, cost_micros = cost_micros + $5, rate = coalesce(0.8 * rate + 0.2 * $6, $6),
             waits_for = null, progressed_at = coalesce($7, now())
         where tenant_id = $1",
    )
    .bind(tenant_id.0)
    .bind(after)
    .bind(i64::try_from(n).unwrap_or(i64::MAX))
    .bind(spent.tokens)
    .bind(spent.cost_micros)
    .bind(per_second)
    .bind(at)
    .execute(conn)
    .await?;
    Ok(())
}

/// Goes on in another state, or begins anew in the same one: from the first chunk.
pub async fn enter(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    state: State,
    n_left: Option<i64>,
) -> Result<()> {
    sqlx::query(
        "update memory.moves set state = $2, after = null, n_left = coalesce($3, n_left), waits_for = null, progressed_at = coalesce($4, now())
         where tenant_id = $1",
    )
    .bind(tenant_id.0)
    .bind(state.as_str())
    .bind(n_left)
    .bind(at)
    .execute(conn)
    .await?;
    Ok(())
}

/// Says why a move does not go on at the moment.
pub async fn wait(conn: &mut PgConnection, tenant_id: TenantId, why: &str) -> Result<()> {
    let sql = "update memory.moves set waits_for = left($2, 400) where tenant_id = $1";
    sqlx::query(sql).bind(tenant_id.0).bind(why).execute(conn).await?;
    Ok(())
}

/// Waits until nobody writes vectors of the tenant, and keeps writers away until the transaction ends. False if that takes too long.
pub async fn free_pointer(conn: &mut PgConnection, tenant_id: TenantId) -> Result<bool> {
    Ok(sqlx::query_scalar("select memory.free_pointer($1)").bind(tenant_id.0).fetch_one(conn).await?)
}

/// Switches the tenant's searches to the new model.
pub async fn switch(conn: &mut PgConnection, at: Option<DateTime<Utc>>, tenant_id: TenantId) -> Result<()> {
    sqlx::query(
        "with moved as (
             update memory.moves set state = 'tidying', after = null, n_left = 0, waits_for = null, progressed_at = coalesce($2, now())
             where tenant_id = $1 returning *
         )
         update memory.tenants t set model = m.to_model, is_chosen = m.is_chosen, left_model = m.from_model,
             moved_at = coalesce($2, now())
         from moved m where t.tenant_id = m.tenant_id",
    )
    .bind(tenant_id.0)
    .bind(at)
    .execute(conn)
    .await?;
    Ok(())
}

/// A document that was labelled with its new model, or that lacks a vector of it.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Labelled {
    pub id: Uuid,
    pub is_pending: bool,
}

/// Labels the next documents with the model of their vectors, in the order of their ids. A document that lacks one is pending again.
pub async fn label(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    table: &VectorTable,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Labelled>> {
    // Locked first, looked at in a statement of its own: what a writer that was waited for has committed must be seen.
    let locked: Vec<Uuid> = sqlx::query_scalar(
        "select d.id from public.source_documents d
         where d.tenant_id = $1 and d.id > coalesce($2::uuid, '00000000-0000-0000-0000-000000000000') and d.n_chunks > 0
             and d.deleted_at is null and d.embedding_model is distinct from $4
         order by d.id limit $3 for update",
    )
    .bind(tenant_id.0)
    .bind(after)
    .bind(limit)
    .bind(table.model())
    .fetch_all(&mut *conn)
    .await?;
    let sql = table.on(include_str!("../sql/moves_label.sql"));
    Ok(sqlx::query_as(sql).bind(tenant_id.0).bind(locked).bind(table.model()).fetch_all(conn).await?)
}

/// Notes the last document that was labelled.
pub async fn labelled(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    after: Uuid,
) -> Result<()> {
    let sql = "update memory.moves set after = $2, progressed_at = coalesce($3, now()) where tenant_id = $1";
    sqlx::query(sql).bind(tenant_id.0).bind(after).bind(at).execute(conn).await?;
    Ok(())
}

/// Removes some of a tenant's vectors from a table; returns how many.
pub async fn remove(conn: &mut PgConnection, tenant_id: TenantId, table: &VectorTable, limit: i64) -> Result<u64> {
    let sql = table.on("delete from {v} where tenant_id = $1 and chunk_id = any (array(
         select chunk_id from {v} where tenant_id = $1 order by chunk_id limit $2))");
    Ok(sqlx::query(sql).bind(tenant_id.0).bind(limit).execute(conn).await?.rows_affected())
}

/// Ends a move.
pub async fn end(conn: &mut PgConnection, tenant_id: TenantId) -> Result<()> {
    sqlx::query("delete from memory.moves where tenant_id = $1").bind(tenant_id.0).execute(conn).await?;
    Ok(())
}

/// Drops the tables of models that no tenant has used for an hour; returns the models. Those of `keep` stay.
pub async fn drop_unused_models(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    keep: &[&str],
) -> Result<Vec<String>> {
    let sql = "select memory.drop_unused_models($1, coalesce($2, now()))";
    Ok(sqlx::query_scalar(sql).bind(keep).bind(at).fetch_one(conn).await?)
}
