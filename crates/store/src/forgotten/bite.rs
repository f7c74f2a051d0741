//! One bite of a subject: rows that one commit removes.

use domain::TenantId;
use sqlx::{AssertSqlSafe, PgConnection};
use uuid::Uuid;

use super::parts::{self, Part};
use super::{Subject, messages};
use crate::{Result, clients};

/// The most rows of a kind that one bite removes.
pub const MOST_ROWS: i64 = 500;
/// The most chunks that go with the documents of one bite.
pub const MOST_CHUNKS: i64 = 2_000;

/// Rows of one kind. Bites of it are taken until there are none left.
#[derive(Clone, Debug)]
pub enum Bite {
    /// Activities of a contact, with their files and the documents made from them.
    Activities,
    /// Documents with this condition. $2: the subject's id, as text.
    Documents(&'static str),
    /// Letters of a contact, which are marked before their documents go, or lose what is known of them. $1: the tenant. $2: the subject's id, as text.
    /// $3: the most rows.
    Letters(&'static str),
    Rows(Part),
    /// Facts of clients that rested on documents which are gone.
    Facts,
    /// Messages in one table of a queue.
    Messages(String),
}

/// Where the next bite begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BiteCursor {
    Start,
    AfterMessage(i64),
    AfterClient(Uuid),
}

/// The outcome of one bite.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bitten {
    /// The number of rows of any kind.
    pub gone: u64,
    /// Those that the record counts, by its names for them.
    pub counted: Vec<(&'static str, u64)>,
    /// Where the next bite of the kind begins; none: there is nothing left of it.
    pub next: Option<BiteCursor>,
}

/// The kinds of rows of a subject, in the order in which they go. A round over all of them that removes nothing is the last one.
pub async fn bites(conn: &mut PgConnection, subject: Subject) -> Result<Vec<Bite>> {
    let messages = messages::tables(conn).await?.into_iter().map(Bite::Messages);
    let rows = |parts: Vec<Part>| parts.into_iter().map(Bite::Rows);
    Ok(match subject {
        Subject::Source(_) => [Bite::Documents("source_id = $2::uuid")]
            .into_iter()
            .chain(messages)
            .chain(rows(parts::of_source()))
            .collect(),
        Subject::Contact(_) => [
            Bite::Activities,
            // Before the documents, from which it is known whose they are.
            Bite::Letters(include_str!("../sql/letters_forget.sql")),
            Bite::Letters(include_str!("../sql/letters_forget_heads.sql")),
            Bite::Documents("contact_id = $2::bigint"),
            Bite::Facts,
        ]
        .into_iter()
        .chain(messages)
        .chain(rows(parts::of_contact()))
        .collect(),
        // Messages first: what workers hold of the tenant is taken from them.
        Subject::Tenant(_) => messages.chain(rows(parts::of_tenant(conn).await?)).collect(),
    })
}

/// Takes one bite.
pub async fn bite(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    subject: Subject,
    bite: &Bite,
    from: BiteCursor,
) -> Result<Bitten> {
    match bite {
        Bite::Activities => activities(conn, tenant_id, subject).await,
        Bite::Documents(of) => documents(conn, tenant_id, subject, of).await,
        Bite::Letters(sql) => {
            let letters = sqlx::query(*sql).bind(tenant_id.0).bind(subject.id()).bind(MOST_ROWS).execute(conn).await?;
            let gone = letters.rows_affected();
            Ok(Bitten { gone, counted: vec![("letters", gone)], next: (gone > 0).then_some(BiteCursor::Start) })
        }
        Bite::Rows(part) => {
            let gone = parts::remove(conn, tenant_id, subject, part, MOST_ROWS).await?;
            let counted = part.counted_as.map(|kind| (kind, gone)).into_iter().collect();
            Ok(Bitten { gone, counted, next: (gone > 0).then_some(BiteCursor::Start) })
        }
        Bite::Facts => facts(conn, tenant_id, from).await,
        Bite::Messages(table) => {
            let after = if let BiteCursor::AfterMessage(last) = from { last } else { i64::MIN };
            let (gone, last) = messages::remove(conn, tenant_id, subject, table, after).await?;
            Ok(Bitten { gone: number(gone), counted: Vec::new(), next: last.map(BiteCursor::AfterMessage) })
        }
    }
}

/// The activities are locked first. Lane `remember_activity` locks its activity when it writes a document, so the second statement sees every document
/// of these, and none is written afterwards.
async fn activities(conn: &mut PgConnection, tenant_id: TenantId, subject: Subject) -> Result<Bitten> {
    let locked: Vec<Uuid> = sqlx::query_scalar(
        "select id from public.activities where tenant_id = $1 and contact_id = $2::bigint limit $3 for update",
    )
    .bind(tenant_id.0)
    .bind(subject.id())
    .bind(MOST_ROWS)
    .fetch_all(&mut *conn)
    .await?;
    if locked.is_empty() {
        return Ok(Bitten::default());
    }
    let (activities, files, documents, chunks): (i64, i64, i64, i64) =
        sqlx::query_as(include_str!("../sql/activities_forget.sql"))
            .bind(tenant_id.0)
            .bind(locked)
            .bind(MOST_CHUNKS)
            .fetch_one(conn)
            .await?;
    let counted = [("activities", activities), ("files", files), ("documents", documents)];
    Ok(Bitten {
        gone: number(activities + files + documents + chunks),
        counted: counted.into_iter().map(|(kind, n)| (kind, number(n))).collect(),
        next: Some(BiteCursor::Start),
    })
}

async fn documents(conn: &mut PgConnection, tenant_id: TenantId, subject: Subject, of: &str) -> Result<Bitten> {
    let sql = include_str!("../sql/documents_forget.sql").replace("{of}", of);
    let (documents, chunks, is_empty): (i64, i64, bool) = sqlx::query_as(AssertSqlSafe(sql))
        .bind(tenant_id.0)
        .bind(subject.id())
        .bind(MOST_ROWS)
        .bind(MOST_CHUNKS)
        .fetch_one(conn)
        .await?;
    let counted = vec![("documents", number(documents))];
    Ok(Bitten { gone: number(documents + chunks), counted, next: (!is_empty).then_some(BiteCursor::Start) })
}

async fn facts(conn: &mut PgConnection, tenant_id: TenantId, from: BiteCursor) -> Result<Bitten> {
    let after = if let BiteCursor::AfterClient(last) = from { last } else { Uuid::nil() };
    // Before its rows, in the order in which matching takes both.
    clients::matching::lock(&mut *conn, tenant_id).await?;
    let (clients, changed, last): (i64, i64, Option<Uuid>) =
        sqlx::query_as(include_str!("../sql/clients_forget_facts.sql"))
            .bind(tenant_id.0)
            .bind(after)
            .bind(MOST_ROWS)
            .fetch_one(conn)
            .await?;
    let counted = vec![("clients", number(clients))];
    Ok(Bitten { gone: number(clients + changed), counted, next: last.map(BiteCursor::AfterClient) })
}

fn number(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}
