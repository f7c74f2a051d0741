//! The limits that `tributary bench` measures itself against: the plain way to do the same in SQL.

use sqlx::{AssertSqlSafe, PgConnection};

use crate::connect::ConnectTo;
use crate::memory::{HalfVec, VectorTable};
use crate::queue::{self, Queue};
use crate::{Error, Result};

/// A queue of its own for a bench, empty.
pub async fn fresh_queue(admin: &mut PgConnection, name: &str) -> Result<Queue> {
    let queue = Queue::new(name)?;
    if sqlx::query_scalar::<_, bool>("select to_regclass('pgmq.q_' || $1) is not null")
        .bind(name)
        .fetch_one(&mut *admin)
        .await?
    {
        sqlx::query("select pgmq.drop_queue($1)").bind(name).execute(&mut *admin).await?;
    }
    queue::create(admin, name).await?;
    Ok(queue)
}

pub async fn drop_queue(admin: &mut PgConnection, name: &str) -> Result<()> {
    sqlx::query("select pgmq.drop_queue($1)").bind(name).execute(admin).await?;
    Ok(())
}

/// A session that may create queues.
pub async fn administrator(admin: &ConnectTo) -> Result<PgConnection> {
    admin.connect("tributary bench").await
}

/// Fills a queue with `n` small messages, due after `delay_secs`.
pub async fn fill(conn: &mut PgConnection, queue: &Queue, n: i64, delay_secs: f64) -> Result<()> {
    let sql = format!(
        "insert into pgmq.q_{} (vt, message) select now() + make_interval(secs => $2), jsonb_build_object('n', n, 'tenant_id', $3::text)
         from generate_series(1, $1) n",
        queue.name()
    );
    let tenant = uuid::Uuid::nil().to_string();
    sqlx::query(AssertSqlSafe(sql)).bind(n).bind(delay_secs).bind(tenant).execute(&mut *conn).await?;
    sqlx::raw_sql(AssertSqlSafe(format!("vacuum (analyze) pgmq.q_{}", queue.name()))).execute(conn).await?;
    Ok(())
}

/// Removes every message of a queue.
pub async fn empty(conn: &mut PgConnection, queue: &Queue) -> Result<()> {
    sqlx::query(AssertSqlSafe(format!("delete from pgmq.q_{}", queue.name()))).execute(conn).await?;
    Ok(())
}

/// Counts a tenant's documents.
pub async fn documents(conn: &mut PgConnection, tenant_id: domain::TenantId) -> Result<i64> {
    let sql = "select count(*) from public.source_documents where tenant_id = $1";
    Ok(sqlx::query_scalar(sql).bind(tenant_id.0).fetch_one(conn).await?)
}

/// Removes a tenant's documents, with their chunks and vectors.
pub async fn remove_documents(conn: &mut PgConnection, tenant_id: domain::TenantId) -> Result<()> {
    let sql = "delete from public.source_documents where tenant_id = $1";
    sqlx::query(sql).bind(tenant_id.0).execute(conn).await?;
    Ok(())
}

/// pgmq's own way: read n, delete n. No fence, no outcome per item. Returns how many it moved.
pub async fn pgmq_round(conn: &mut PgConnection, queue: &Queue, n: i32) -> Result<usize> {
    let read: Vec<(i64, i32, serde_json::Value)> =
        sqlx::query_as("select msg_id, read_ct, message from pgmq.read($1, 30, $2)")
            .bind(queue.name())
            .bind(n)
            .fetch_all(&mut *conn)
            .await?;
    if read.is_empty() {
        return Ok(0);
    }
    let ids: Vec<i64> = read.iter().map(|(msg_id, ..)| *msg_id).collect();
    let deleted: Vec<i64> =
        sqlx::query_scalar("select * from pgmq.delete($1, $2)").bind(queue.name()).bind(&ids).fetch_all(conn).await?;
    if deleted.len() != ids.len() {
        return Err(Error::Conflict("somebody else uses the bench's queue"));
    }
    Ok(ids.len())
}

/// Removes a bench's database, even if sessions are still connected.
pub async fn drop_database(server: &ConnectTo, name: &str) -> Result<()> {
    let mut conn = administrator(server).await?;
    let name = crate::migrate::quote(name);
    sqlx::raw_sql(AssertSqlSafe(format!("drop database if exists {name} with (force)"))).execute(&mut conn).await?;
    Ok(())
}

/// The statement that inserts the tenant's newest activity once more, as a new event, with its payload: literals as hex, because pgbench
/// takes what follows a colon for a variable.
pub async fn same_activity_again(conn: &mut PgConnection, tenant_id: domain::TenantId) -> Result<String> {
    Ok(sqlx::query_scalar(include_str!("sql/bench_same_activity.sql")).bind(tenant_id.0).fetch_one(conn).await?)
}

pub async fn count_activities(conn: &mut PgConnection, ids: &[uuid::Uuid]) -> Result<i64> {
    let mut found = 0;
    for slice in ids.chunks(10_000) {
        found += sqlx::query_scalar::<_, i64>("select count(distinct id) from public.activities where id = any($1)")
            .bind(slice)
            .fetch_one(&mut *conn)
            .await?;
    }
    Ok(found)
}

/// People to be matched among.
pub async fn fill_contacts(conn: &mut PgConnection, tenant_id: domain::TenantId, n: i32) -> Result<()> {
    sqlx::query(
        "insert into public.contacts (tenant_id, email, phone_number, first_name)
         select $1, 'person' || n || '@example.com', '+1212' || lpad(n::text, 7, '2'), 'Person ' || n from generate_series(1, $2) n",
    )
    .bind(tenant_id.0)
    .bind(n)
    .execute(conn)
    .await?;
    Ok(())
}

/// Activities that wait for any agent, and nothing else.
pub async fn fresh_activities(conn: &mut PgConnection, tenant_id: domain::TenantId, n: i64) -> Result<()> {
    sqlx::query("delete from public.activities where tenant_id = $1").bind(tenant_id.0).execute(&mut *conn).await?;
    sqlx::query(
        r#"insert into public.activities (tenant_id, type, raw_data, metadata)
         select $1, 'email', jsonb_build_object('source_type', 'text', 'content', 'a question about invoice ' || n),
             jsonb_build_object('from', 'person' || n || '@example.com')
         from generate_series(1, $2) n"#,
    )
    .bind(tenant_id.0)
    .bind(n)
    .execute(conn)
    .await?;
    Ok(())
}

/// The least that keeps two agents from taking the same: no owner, no order of whose is first, no key, no epoch.
pub async fn bare_claim(conn: &mut PgConnection, tenant_id: domain::TenantId, n: i32) -> Result<Vec<uuid::Uuid>> {
    let rows: Vec<(uuid::Uuid, serde_json::Value, String)> = sqlx::query_as(
        "with picked as (
             select id from public.activities where tenant_id = $1 and processing_status = 'raw' and sales_id is null
             order by created_at limit $2 for update skip locked)
         update public.activities a set processing_status = 'processing', locked_at = now()
         from picked where a.tenant_id = $1 and a.id = picked.id returning a.id, a.raw_data, a.type",
    )
    .bind(tenant_id.0)
    .bind(n)
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|(id, ..)| id).collect())
}

pub async fn bare_complete(
    conn: &mut PgConnection,
    tenant_id: domain::TenantId,
    ids: &[uuid::Uuid],
    made: &serde_json::Value,
) -> Result<usize> {
    let done = sqlx::query(
        "update public.activities set processing_status = 'completed', processed_data = $3 where tenant_id = $1 and id = any($2)",
    )
    .bind(tenant_id.0)
    .bind(ids)
    .bind(made)
    .execute(conn)
    .await?;
    Ok(usize::try_from(done.rows_affected()).unwrap_or(usize::MAX))
}

/// Sends `n` notices at an interval and returns the time each takes from one session to another, in milliseconds.
pub async fn notify_round_trips(db: &crate::Db, n: usize, every: std::time::Duration) -> Result<Vec<f64>> {
    let mut listener = sqlx::postgres::PgListener::connect_with(db.pool()).await?;
    listener.listen("tributary_bench").await?;
    let mut conn = db.acquire().await?;
    let mut clock = tokio::time::interval(every);
    let mut times_ms = Vec::with_capacity(n);
    for _ in 0..n {
        clock.tick().await;
        let begun = std::time::Instant::now();
        sqlx::query("select pg_notify('tributary_bench', '')").execute(&mut *conn).await?;
        listener.recv().await?;
        times_ms.push(begun.elapsed().as_secs_f64() * 1_000.0);
    }
    Ok(times_ms)
}

pub async fn setting(conn: &mut PgConnection, name: &str) -> Result<String> {
    Ok(sqlx::query_scalar("select current_setting($1)").bind(name).fetch_one(conn).await?)
}

/// Tells the planner what was loaded, as autovacuum would do later.
pub async fn analyze(db: &crate::Db) -> Result<()> {
    let mut conn = db.to().connect("tributary bench").await?;
    sqlx::raw_sql("set role tributary_owner").execute(&mut conn).await?;
    sqlx::raw_sql("vacuum (analyze)").execute(&mut conn).await?; // alone: it takes no part in a transaction
    Ok(())
}

/// Every vector of a tenant with its document, of one type of document or of all.
pub async fn vectors(
    conn: &mut PgConnection,
    tenant_id: domain::TenantId,
    table: &VectorTable,
    document_type: Option<&str>,
) -> Result<Vec<(uuid::Uuid, Vec<f32>)>> {
    let sql = format!(
        "select v.document_id, v.embedding::vector::real[] from memory.vectors_{} v
         join public.source_documents d on d.tenant_id = v.tenant_id and d.id = v.document_id
         where v.tenant_id = $1 and d.document_type = coalesce($2, d.document_type)",
        table.model()
    );
    Ok(sqlx::query_as(AssertSqlSafe(sql)).bind(tenant_id.0).bind(document_type).fetch_all(conn).await?)
}

/// The similarities of a tenant's `k` documents that are nearest to a vector, best first, and of those that were found, each by its best chunk. Every
/// vector is compared.
pub async fn similarities(
    conn: &mut PgConnection,
    tenant_id: domain::TenantId,
    table: &VectorTable,
    vector: &[f32],
    k: usize,
    found: &[uuid::Uuid],
) -> Result<(Vec<f32>, Vec<f32>)> {
    let sql = format!(
        "with best as materialized (
             select document_id, max(-(embedding <#> $2))::real as similarity from memory.vectors_{}
             where tenant_id = $1 group by document_id)
         select array(select similarity from best order by similarity desc limit $3),
             array(select similarity from best where document_id = any($4))",
        table.model()
    );
    Ok(sqlx::query_as(AssertSqlSafe(sql))
        .bind(tenant_id.0)
        .bind(HalfVec::new(vector))
        .bind(i64::try_from(k).unwrap_or(i64::MAX))
        .bind(found)
        .fetch_one(conn)
        .await?)
}

/// Opens a session with the owner's rights and without a time limit.
pub async fn owner(db: &crate::Db) -> Result<PgConnection> {
    let mut conn = db.to().connect("tributary bench").await?;
    sqlx::raw_sql("set role tributary_owner; set statement_timeout = 0; set maintenance_work_mem = '512MB'")
        .execute(&mut conn)
        .await?;
    Ok(conn)
}

/// Makes a plain table of a tenant's chunks, with an index for vectors and one for words.
pub async fn make_bare(
    owner: &mut PgConnection,
    tenant_id: domain::TenantId,
    table: &VectorTable,
    dim: usize,
) -> Result<()> {
    // In the row itself where it fits there, like ours.
    let storage = if dim <= 3_000 { "plain" } else { "external" };
    let make = format!(
        "create table memory.bench_bare (
             id uuid primary key, document_id uuid not null, tsv tsvector not null, embedding halfvec({dim}) not null);
         alter table memory.bench_bare alter column embedding set storage {storage}"
    );
    sqlx::raw_sql(AssertSqlSafe(make)).execute(&mut *owner).await?;
    let fill = format!(
        "insert into memory.bench_bare (id, document_id, tsv, embedding)
         select c.id, c.document_id, memory.words(c.title, c.lang, c.text), v.embedding from public.document_chunks c
         join memory.vectors_{} v on v.tenant_id = c.tenant_id and v.chunk_id = c.id where c.tenant_id = $1",
        table.model()
    );
    sqlx::query(AssertSqlSafe(fill)).bind(tenant_id.0).execute(&mut *owner).await?;
    sqlx::raw_sql(
        "create index on memory.bench_bare using hnsw (embedding halfvec_ip_ops) with (m = 16, ef_construction = 64);
         create index on memory.bench_bare using gin (tsv)",
    )
    .execute(&mut *owner)
    .await?;
    sqlx::raw_sql("vacuum (analyze) memory.bench_bare").execute(owner).await?; // alone: it takes no part in a transaction
    Ok(())
}

pub async fn drop_bare(owner: &mut PgConnection) -> Result<()> {
    sqlx::raw_sql("drop table memory.bench_bare").execute(owner).await?;
    Ok(())
}

/// Opens a session for [`bare_search`]. By its default the index for vectors finds 40 rows.
pub async fn bare_session(db: &crate::Db) -> Result<PgConnection> {
    let mut conn = owner(db).await?;
    sqlx::raw_sql("set hnsw.ef_search = 100").execute(&mut conn).await?;
    Ok(conn)
}

/// The least that searches by meaning and by words: the 100 nearest and the 100 with the best words, by the sum of both scores. No tenant, no
/// filter, no text of a hit.
pub async fn bare_search(conn: &mut PgConnection, question: &str, vector: &[f32]) -> Result<Vec<uuid::Uuid>> {
    Ok(sqlx::query_scalar(
        "with near as (
             select id, -(embedding <#> $1) as score from memory.bench_bare order by embedding <#> $1 limit 100),
         worded as (
             select b.id, ts_rank_cd(b.tsv, q.words) as score from plainto_tsquery('english', $2) q (words)
             join memory.bench_bare b on b.tsv @@ q.words order by score desc limit 100)
         select id from (select * from near union all select * from worded) scored group by id order by sum(score) desc limit 10",
    )
    .bind(HalfVec::new(vector))
    .bind(question)
    .fetch_all(conn)
    .await?)
}

pub async fn count_chunks(conn: &mut PgConnection, tenant_id: domain::TenantId) -> Result<i64> {
    let sql = "select count(*) from public.document_chunks where tenant_id = $1";
    Ok(sqlx::query_scalar(sql).bind(tenant_id.0).fetch_one(conn).await?)
}

/// Copies one tenant's documents, with chunks and vectors, into the memory of another, until at least `n_chunks` are copied. Returns how many
/// were. Each copy of a document has a name of its own, by `nth`.
pub async fn copy_documents(
    owner: &mut PgConnection,
    table: &VectorTable,
    from: domain::TenantId,
    to: domain::TenantId,
    nth: i32,
    n_chunks: i64,
) -> Result<usize> {
    // Their whole texts stay behind, because no search reads them.
    sqlx::query(
        "insert into public.source_documents (tenant_id, id, source_id, external_id, document_type, title, lang, content_sha256,
             embedding_model, embedding_text_sha256, n_chunks)
         select $2, md5(d.id::text || ' ' || $3)::uuid, s.id, d.external_id || ' copy ' || $3, d.document_type, d.title, d.lang,
             sha256(d.content_sha256 || convert_to($3::text, 'UTF8')), d.embedding_model, d.embedding_text_sha256, d.n_chunks
         from (select *, sum(n_chunks) over (order by id) - n_chunks as n_before
             from public.source_documents where tenant_id = $1 and deleted_at is null) d
         join public.connected_sources s on s.tenant_id = $2 and s.provider = 'manual'
         where d.n_before < $4",
    )
    .bind(from.0)
    .bind(to.0)
    .bind(nth)
    .bind(n_chunks)
    .execute(&mut *owner)
    .await?;
    let n_copied = copy_chunks(owner, from, to, nth).await?;
    copy_vectors(owner, table, from, to, nth).await?;
    Ok(usize::try_from(n_copied).unwrap_or(usize::MAX))
}

/// Copies the chunks of the `nth` copies of documents. Texts that are alike would become one hit of a search, so these have another word in every
/// sentence.
async fn copy_chunks(owner: &mut PgConnection, from: domain::TenantId, to: domain::TenantId, nth: i32) -> Result<u64> {
    let copied = sqlx::query(
        "insert into public.document_chunks (tenant_id, id, document_id, ordinal, title, lang, text, hash, occurrence)
         select $2, md5(c.id::text || ' ' || $3)::uuid, d.id, c.ordinal, c.title, c.lang,
             replace(replace(c.text, ' the ', ' the copy' || $3 || ' '), '. ', '. copy' || $3 || ' ') || ' copy' || $3,
             sha256(c.hash || convert_to($3::text, 'UTF8')), c.occurrence
         from public.document_chunks c
         join public.source_documents d on d.tenant_id = $2 and d.id = md5(c.document_id::text || ' ' || $3)::uuid
         where c.tenant_id = $1",
    )
    .bind(from.0)
    .bind(to.0)
    .bind(nth)
    .execute(owner)
    .await?;
    Ok(copied.rows_affected())
}

/// Copies the vectors of the `nth` copies of documents, each moved a little in a direction of its own (its cosine with the original is 0.96).
/// pgvector's index keeps equal vectors as one, and would be smaller than it seems.
async fn copy_vectors(
    owner: &mut PgConnection,
    table: &VectorTable,
    from: domain::TenantId,
    to: domain::TenantId,
    nth: i32,
) -> Result<()> {
    let sql = format!(
        "insert into memory.vectors_{0} (tenant_id, chunk_id, document_id, embedding)
         select $2, md5(v.chunk_id::text || ' ' || $3)::uuid, d.id, l2_normalize(v.embedding + m.moved)
         from memory.vectors_{0} v
         join public.source_documents d on d.tenant_id = $2 and d.id = md5(v.document_id::text || ' ' || $3)::uuid
         cross join lateral (
             select array_agg(r.x)::halfvec as moved from (
                 select ((random() - 0.5) / sqrt(vector_dims(v.embedding)))::real as x
                 from generate_series(1, vector_dims(v.embedding))) r) m
         where v.tenant_id = $1",
        table.model()
    );
    sqlx::query(AssertSqlSafe(sql)).bind(from.0).bind(to.0).bind(nth).execute(owner).await?;
    Ok(())
}

/// The words of a chunk and its title, as a textbook's BM25 takes them: English stems without stop words, each with its count.
#[derive(Debug, sqlx::FromRow)]
pub struct ChunkWords {
    pub id: uuid::Uuid,
    pub document_id: uuid::Uuid,
    pub external_id: String,
    pub lexemes: Vec<String>,
    pub counts: Vec<i32>,
}

/// Reads the words of the next chunks of a tenant, by id after `after`.
pub async fn chunk_words(
    conn: &mut PgConnection,
    tenant_id: domain::TenantId,
    after: uuid::Uuid,
) -> Result<Vec<ChunkWords>> {
    Ok(sqlx::query_as(
        "select c.id, c.document_id, d.external_id, coalesce(w.lexemes, '{}') as lexemes, coalesce(w.counts, '{}') as counts
         from (select * from public.document_chunks where tenant_id = $1 and id > $2 order by id limit 5000) c
         join public.source_documents d on d.tenant_id = c.tenant_id and d.id = c.document_id
         cross join lateral (
             select array_agg(u.lexeme) as lexemes, array_agg(cardinality(u.positions)) as counts
             from unnest(to_tsvector('english', coalesce(c.title, '') || ' ' || c.text)) u) w
         order by c.id",
    )
    .bind(tenant_id.0)
    .bind(after)
    .fetch_all(conn)
    .await?)
}

/// The English stems of a question, without stop words.
pub async fn words(conn: &mut PgConnection, question: &str) -> Result<Vec<String>> {
    let words = sqlx::query_scalar("select lexeme from unnest(to_tsvector('english', $1))");
    Ok(words.bind(question).fetch_all(conn).await?)
}
