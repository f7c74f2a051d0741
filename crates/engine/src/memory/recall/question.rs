//! A question as a vector, made by the embedder of the model that the tenant's vectors are of.

use std::time::Duration;

use domain::{Fault, TenantId};
use store::memory::How;

use crate::Env;
use crate::memory::embed::Embedder;

/// A question is embedded within that time, or answered by keyword alone.
const EMBED_LIMIT: Duration = Duration::from_secs(3);

/// The vector of a question, or why there is none.
pub(super) struct Question<'a> {
    pub embedder: &'a Embedder,
    pub vector: Result<Vec<f32>, Fault>,
}

impl Question<'_> {
    /// Says why the hits were found by keyword alone, if they were.
    pub fn note(&self, how: How, is_nothing_found: bool) -> Option<String> {
        match &self.vector {
            Err(fault) => Some(format!("searched by keyword alone: the embedder is away ({})", fault.in_words())),
            Ok(_) if how == How::Keyword && !is_nothing_found => {
                let model = &self.embedder.model().name;
                Some(format!("searched by keyword alone: this memory has no vectors of the model {model}"))
            }
            Ok(_) => None,
        }
    }
}

/// Embeds a question. An embedder that is away is no error: the search goes by keyword alone.
pub(super) async fn embed<'a>(env: &'a Env, tenant_id: TenantId, text: &str) -> Result<Question<'a>, store::Error> {
    let embedder = embedder(env, tenant_id).await?;
    let late = || Fault::Transient(anyhow::anyhow!("it did not answer in time"));
    let embedded = tokio::time::timeout(EMBED_LIMIT, embedder.embed_query(text)).await;
    Ok(Question { embedder, vector: embedded.unwrap_or_else(|_| Err(late())) })
}

/// The embedder of the tenant's model. A process with a single embedder has no choice, so that nothing is looked up: the search itself
/// ignores a vector of another model.
async fn embedder(env: &Env, tenant_id: TenantId) -> Result<&Embedder, store::Error> {
    if env.embedders.is_single() {
        return Ok(env.embedders.configured());
    }
    let mut conn = env.db.acquire().await?;
    let memory = store::memory::tenant(&mut conn, tenant_id).await?;
    Ok(env.embedders.for_tenant(memory.model.as_deref()))
}
