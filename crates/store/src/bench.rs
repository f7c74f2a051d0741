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
