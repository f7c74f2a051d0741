//! The cost of embedding services and of answers: reserved before a paid call, and recorded with the vectors of that call, or after the answer.

use chrono::{DateTime, NaiveDate, Utc};
use domain::TenantId;
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{Error, Result};

/// The cost of embedding, or of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    pub calls: i64,
    pub documents: i64,
    pub texts: i64,
    pub tokens: i64,
    /// Millionths of a dollar.
    pub cost_micros: i64,
}

impl std::ops::AddAssign for Spent {
    fn add_assign(&mut self, more: Self) {
        self.calls += more.calls;
        self.documents += more.documents;
        self.texts += more.texts;
        self.tokens += more.tokens;
        self.cost_micros += more.cost_micros;
    }
}

/// The answer to a reservation: whether a paid call fits under the cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    Reserved,
    /// Not while other calls are running.
    Busy,
    /// Not this month.
    Spent,
}

/// Reserves an estimated cost, in a transaction of its own. The reservation expires after ten minutes.
pub async fn reserve(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    id: Uuid,
    micros: i64,
    cap_micros: i64,
) -> Result<Room> {
    let said: String = sqlx::query_scalar("select tributary.reserve($1, $2, $3, $4, coalesce($5, now()))")
        .bind(tenant_id.0)
        .bind(id)
        .bind(micros)
        .bind(cap_micros)
        .bind(at)
        .fetch_one(conn)
        .await?;
    match said.as_str() {
        "reserved" => Ok(Room::Reserved),
        "busy" => Ok(Room::Busy),
        "spent" => Ok(Room::Spent),
        other => Err(Error::Refused { what: format!("a reservation was answered {other}") }),
    }
}

/// Adds the cost to the tenant's month, in the commit that writes the vectors, and ends its reservations.
pub async fn settle(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    model: &str,
    reservations: &[Uuid],
    spent: &Spent,
) -> Result<()> {
    sqlx::query(include_str!("sql/spend_settle.sql"))
        .bind(tenant_id.0)
        .bind(at)
        .bind(model)
        .bind(reservations)
        .bind(spent.calls)
        .bind(spent.documents)
        .bind(spent.texts)
        .bind(spent.tokens)
        .bind(spent.cost_micros)
        .execute(conn)
        .await?;
    Ok(())
}

/// The prefix of the reason of items that are parked because the month's budget is spent.
pub const PARKED: &str = "budget";

/// Makes items due that were parked under a lower cap. `None` means that there is no cap any more. Returns how many.
pub async fn release(conn: &mut PgConnection, at: Option<DateTime<Utc>>, cap_micros: Option<i64>) -> Result<u64> {
    let released = sqlx::query(include_str!("sql/spend_release.sql")).bind(at).bind(cap_micros).bind(PARKED);
    Ok(released.execute(conn).await?.rows_affected())
}

/// The prefix of the reason of items that are parked until a person has paid a service or corrected its key.
pub const BLOCKED: &str = "blocked";

/// Makes up to `most` blocked items of a queue due, the oldest first. Returns how many.
pub async fn release_blocked(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    queue: &str,
    most: i64,
) -> Result<u64> {
    let released =
        sqlx::query(include_str!("sql/spend_release_blocked.sql")).bind(at).bind(queue).bind(BLOCKED).bind(most);
    Ok(released.execute(conn).await?.rows_affected())
}

/// One month of a tenant, by model.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct Month {
    pub month: NaiveDate,
    pub model: String,
    pub calls: i64,
    pub documents: i64,
    pub texts: i64,
    pub tokens: i64,
    pub cost_micros: i64,
}

impl Month {
    /// The cost of a thousand documents in millionths of a dollar; `None` if there are no documents.
    pub fn per_thousand(&self) -> Option<i64> {
        per_thousand(self.cost_micros, self.documents)
    }
}

pub(crate) fn per_thousand(cost_micros: i64, documents: i64) -> Option<i64> {
    (documents > 0).then(|| cost_micros.saturating_mul(1_000) / documents)
}

/// Lists the latest months, newest first.
pub async fn months(conn: &mut PgConnection, tenant_id: TenantId, limit: i64) -> Result<Vec<Month>> {
    Ok(sqlx::query_as(
        "select month, model, calls, documents, texts, tokens, cost_micros from public.usage
         where tenant_id = $1 order by month desc, cost_micros desc, model limit $2",
    )
    .bind(tenant_id.0)
    .bind(limit)
    .fetch_all(conn)
    .await?)
}

/// This month's cost of documents over all models, and whether something was refused under this cap.
#[derive(Clone, Copy, Debug, Default, sqlx::FromRow)]
pub struct ThisMonth {
    pub documents: i64,
    pub cost_micros: i64,
    pub is_refused: bool,
}

impl ThisMonth {
    pub fn per_thousand(&self) -> Option<i64> {
        per_thousand(self.cost_micros, self.documents)
    }
}

pub async fn this_month(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    cap_micros: Option<i64>,
) -> Result<ThisMonth> {
    Ok(sqlx::query_as(include_str!("sql/spend_this_month.sql"))
        .bind(tenant_id.0)
        .bind(at)
        .bind(cap_micros)
        .fetch_one(conn)
        .await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thousand_documents_cost() {
        for (cost_micros, documents, expected) in [
            (0, 0, None),
            (500, 0, None),
            (0, 10, Some(0)),
            (500, 1_000, Some(500)),
            (1, 3, Some(333)),
            (i64::MAX, 1_000, Some(i64::MAX / 1_000)), // saturates; nobody pays that
        ] {
            assert_eq!(per_thousand(cost_micros, documents), expected, "{cost_micros} for {documents}");
        }
    }

    #[test]
    fn spending_adds_up_field_by_field() {
        let mut sum = Spent { calls: 1, documents: 2, texts: 3, tokens: 4, cost_micros: 5 };
        sum += Spent { calls: 10, documents: 20, texts: 30, tokens: 40, cost_micros: 50 };
        assert_eq!(sum, Spent { calls: 11, documents: 22, texts: 33, tokens: 44, cost_micros: 55 });
    }
}
