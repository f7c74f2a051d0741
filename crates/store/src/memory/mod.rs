//! Memory's tables: documents, chunks, vectors, and the one function that searches them. Only `engine::memory` writes here.

pub mod chunks;
pub mod documents;
mod halfvec;
pub mod maintain;
pub mod mentions;
mod search;

pub use chunks::{Chunk, Kept, Moved, NewChunk};
pub use documents::{Document, Listed, Pending, Seen, Stored, Totals};
pub use halfvec::HalfVec;
pub use search::{Filters, Found, Mode, search};

use domain::TenantId;
use sqlx::{AssertSqlSafe, PgConnection};

use crate::{Error, Result};

/// A model and the statements on its table of vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorTable {
    model: String,
}

impl VectorTable {
    /// Names become part of a statement, so only plain ones are taken.
    pub fn new(model: &str) -> Result<Self> {
        let fits = model.len() <= 40
            && model.starts_with(|c: char| c.is_ascii_lowercase())
            && model.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if fits {
            Ok(Self { model: model.to_owned() })
        } else {
            Err(Error::Refused { what: format!("{model:?} is no model's name: a-z, 0-9 and _ only") })
        }
    }

    pub fn model(&self) -> &str {
        &self.model
    }

    fn on(&self, sql: &str) -> AssertSqlSafe<String> {
        AssertSqlSafe(sql.replace("{v}", &format!("memory.vectors_{}", self.model)))
    }
}

/// What search knows of a tenant.
#[derive(Clone, Debug, Default, sqlx::FromRow)]
pub struct TenantMemory {
    /// The model its searches use; none before anything was remembered.
    pub model: Option<String>,
    pub langs: Vec<String>,
    /// The model asked about has its table.
    pub is_model_known: bool,
}

/// One look before a batch: where the tenant stands, and whether `model` has a table.
pub async fn tenant(conn: &mut PgConnection, tenant_id: TenantId, model: &str) -> Result<TenantMemory> {
    Ok(sqlx::query_as(
        "select t.model, coalesce(t.langs::text[], '{}') as langs, exists (select from memory.models where name = $2) as is_model_known
         from (select) nothing left join memory.tenants t on t.tenant_id = $1",
    )
    .bind(tenant_id.0)
    .bind(model)
    .fetch_one(conn)
    .await?)
}

/// Makes a model's table where it is missing.
pub async fn ensure_model(conn: &mut PgConnection, model: &str, dim: usize, weight: f64) -> Result<()> {
    sqlx::query("select memory.ensure_model($1, $2, $3)")
        .bind(model)
        .bind(i32::try_from(dim).unwrap_or(i32::MAX))
        .bind(weight)
        .execute(conn)
        .await?;
    Ok(())
}

/// Points a tenant that has nothing yet to a model, and adds languages that its searches must know.
pub async fn ensure_tenant(conn: &mut PgConnection, tenant_id: TenantId, model: &str, langs: &[&str]) -> Result<()> {
    sqlx::query(include_str!("../sql/memory_tenant_ensure.sql"))
        .bind(tenant_id.0)
        .bind(model)
        .bind(langs)
        .execute(conn)
        .await?;
    Ok(())
}
