//! The limits that `tributary bench` measures itself against: the plain way to do the same in SQL.

use sqlx::{AssertSqlSafe, PgConnection};

use crate::db::ConnectTo;
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
    use sqlx::ConnectOptions as _;
    Ok(admin.0.connect().await?)
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

/// Removes a bench's database, whoever is still connected.
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

pub async fn setting(conn: &mut PgConnection, name: &str) -> Result<String> {
    Ok(sqlx::query_scalar("select current_setting($1)").bind(name).fetch_one(conn).await?)
}

/// Tells the planner what was loaded, as autovacuum does by itself in time.
pub async fn analyze(db: &crate::Db) -> Result<()> {
    use sqlx::ConnectOptions as _;
    let mut conn = db.to().0.connect().await?;
    sqlx::raw_sql("set role tributary_owner").execute(&mut conn).await?;
    sqlx::raw_sql("vacuum (analyze)").execute(&mut conn).await?; // alone: it takes no part in a transaction
    Ok(())
}

/// Every vector of a tenant with its document, of one type of document or of all.
pub async fn vectors(
    conn: &mut PgConnection,
    tenant_id: domain::TenantId,
    table: &crate::memory::VectorTable,
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
