//! Memory's tables: documents, chunks and vectors, and how they are searched. Only `engine::memory` writes here.

pub mod chunks;
pub mod codes;
pub mod documents;
mod halfvec;
pub mod languages;
pub mod maintain;
pub mod mentions;
pub mod moves;
mod passages;
pub mod postings;
pub mod removed;
mod search;

pub use chunks::{Chunk, Kept, Moved, NewChunk};
pub use documents::{Document, Listed, Pending, Seen, Stored, Totals};
pub use halfvec::HalfVec;
pub use passages::{Passage, passages};
pub use search::{
    Candidate, ChunkText, Filters, Found, FreshChunk, How, Looked, Mode, PaperFilters, QueryVector, Question, Sort,
    Traits, complete, found, live, look, moment, posting_lists, texts, traits,
};

use std::collections::HashSet;

use domain::TenantId;
use sqlx::{AssertSqlSafe, PgConnection};

use crate::{Error, Result};

/// The table that holds a model's vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorTable {
    model: String,
}

impl VectorTable {
    /// The name becomes part of statements, so only a plain one is accepted.
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

    /// The statement with `{v}` replaced by the table's name.
    fn on(&self, sql: &str) -> AssertSqlSafe<String> {
        AssertSqlSafe(sql.replace("{v}", &format!("memory.vectors_{}", self.model)))
    }
}

/// The data that search keeps about a tenant.
#[derive(Clone, Debug, Default, sqlx::FromRow)]
pub struct TenantMemory {
    /// The model that its searches use; none before anything was remembered.
    pub model: Option<String>,
    /// The languages of its documents.
    pub langs: Vec<String>,
    /// The language that the tenant has fixed for all of its texts; none: it is detected.
    pub lang: Option<String>,
    /// All models that have a table, of all tenants.
    pub models: Vec<String>,
    /// The model that it moves to, until its searches have switched.
    pub to_model: Option<String>,
    /// The models of a move that is not over: documents may be labelled with either.
    pub moving: Vec<String>,
}

/// The model that a tenant's searches use, the one that its memory moves to, and the language that it has fixed. Whoever writes documents or vectors
/// makes them for these.
#[derive(Clone, Debug, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct Pointer {
    pub model: Option<String>,
    pub to_model: Option<String>,
    pub lang: Option<String>,
}

impl TenantMemory {
    pub fn pointer(&self) -> Pointer {
        Pointer { model: self.model.clone(), to_model: self.to_model.clone(), lang: self.lang.clone() }
    }

    pub fn has_table(&self, table: &VectorTable) -> bool {
        self.models.contains(&table.model)
    }

    /// Whether the tenant has no memory yet, or none in one of these languages.
    pub fn is_new_to(&self, langs: &HashSet<&str>) -> bool {
        self.model.is_none() || langs.iter().any(|lang| !self.langs.iter().any(|known| known == lang))
    }
}

/// Reads a tenant's model and languages, and which models have a table.
pub async fn tenant(conn: &mut PgConnection, tenant_id: TenantId) -> Result<TenantMemory> {
    Ok(sqlx::query_as(
        "select t.model, coalesce(t.langs::text[], '{}') as langs, t.lang::text as lang, array(select name from memory.models) as models,
             case when m.state in ('embedding', 'indexing') then m.to_model end as to_model,
             array_remove(array[m.from_model, m.to_model], null) as moving
         from (select) nothing left join memory.tenants t on t.tenant_id = $1 left join memory.moves m on m.tenant_id = t.tenant_id",
    )
    .bind(tenant_id.0)
    .fetch_one(conn)
    .await?)
}

/// Keeps the tenant's searches from switching to another model, and its texts from getting another language, until the transaction ends. Returns what
/// documents and vectors are written for now.
pub async fn hold_pointer(conn: &mut PgConnection, tenant_id: TenantId) -> Result<Pointer> {
    let sql = "select model, to_model, lang from memory.hold_pointer($1)";
    Ok(sqlx::query_as(sql).bind(tenant_id.0).fetch_one(conn).await?)
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

/// Sets the model of a tenant that has none yet, and adds languages that its searches must know.
pub async fn ensure_tenant(conn: &mut PgConnection, tenant_id: TenantId, model: &str, langs: &[&str]) -> Result<()> {
    sqlx::query(include_str!("../sql/memory_tenant_ensure.sql"))
        .bind(tenant_id.0)
        .bind(model)
        .bind(langs)
        .execute(conn)
        .await?;
    Ok(())
}
