//! Messages of a subject, waiting or archived, in every queue. They are looked for in order of their numbers, so many at a time: a queue has no index
//! on what its messages name.

use domain::TenantId;
use sqlx::{AssertSqlSafe, PgConnection};

use super::Subject;
use crate::Result;

/// So many messages are looked at by one statement.
const WINDOW: i64 = 5_000;
/// An id as it is written in messages. Other texts cannot be cast, and one such message would end the statement.
const AN_ID: &str = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$";

/// The tables of every queue: what waits, and the archive.
pub(super) async fn tables(conn: &mut PgConnection) -> Result<Vec<String>> {
    Ok(sqlx::query_scalar(
        "select format('pgmq.%I', relname) from pg_class
         where relnamespace = 'pgmq'::regnamespace and relkind in ('r', 'p') and relname ~ '^[qa]_' order by 1",
    )
    .fetch_all(conn)
    .await?)
}

/// Removes the subject's messages among the next ones after `after`. Returns how many, and the number of the last one that was looked at; none at the
/// end of the table. A worker that holds one of them finds its message gone, and writes nothing.
pub(super) async fn remove(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    subject: Subject,
    table: &str,
    after: i64,
) -> Result<(i64, Option<i64>)> {
    let which = match subject {
        // The one that asks for the removal itself has a `forgotten_id`.
        Subject::Source(_) => "n.message ->> 'source_id' = $2 and not n.message ? 'forgotten_id'".to_owned(),
        Subject::Contact(_) => names_what_is_gone("n.message"),
        Subject::Tenant(_) => "$2 = n.message ->> 'tenant_id'".to_owned(),
    };
    let sql = format!(
        "with next as materialized (select msg_id, message from {table} where msg_id > $3 order by msg_id limit $4),
         gone as (delete from {table} where msg_id = any (array(
             select n.msg_id from next n where n.message ->> 'tenant_id' = $1::text and {which})) returning 1)
         select (select count(*) from gone), (select msg_id from next order by msg_id desc limit 1)"
    );
    let removed = sqlx::query_as(AssertSqlSafe(sql)).bind(tenant_id.0).bind(subject.id()).bind(after).bind(WINDOW);
    Ok(removed.fetch_one(conn).await?)
}

/// The condition that a message of tenant $1 names an activity or a document which is gone. A text that is no id names nothing, so a message with one
/// stays: it was never about the contact, and it must not keep the contact from being forgotten.
pub(super) fn names_what_is_gone(message: &str) -> String {
    let is_gone = |field: &str, table: &str| {
        let text = format!("{message} ->> '{field}'");
        let id = format!("case when {text} ~* '{AN_ID}' then ({text})::uuid end");
        // One by one, by their key (`offset 0`): another plan would read all of a tenant's rows.
        let by_key = format!("select from {table} x where x.tenant_id = $1 and x.id = {id} offset 0");
        format!("({id} is not null and not exists ({by_key}))")
    };
    format!(
        "({} or {})",
        is_gone("activity_id", "public.activities"),
        is_gone("document_id", "public.source_documents")
    )
}
