//! A question as a vector, made by the embedder of the model that the tenant's vectors are of.

use std::time::Duration;

use chrono::TimeDelta;
use domain::{Fault, TenantId};
use store::memory::{How, Looked};

use crate::Env;
use crate::memory::embed::Embedder;

/// A question is embedded within that time, or answered by keyword alone.
const EMBED_LIMIT: Duration = Duration::from_secs(3);
/// The time for which a service is not asked after it has failed to answer a question.
const LEFT_ALONE: TimeDelta = TimeDelta::seconds(10);

/// The vector of a question, or why there is none.
pub(super) struct Question<'a> {
    pub embedder: &'a Embedder,
    pub vector: Result<Vec<f32>, Fault>,
}

impl Question<'_> {
    /// Says why the hits were found by keyword alone, or with a part of the vectors, if they were.
    pub fn note(&self, looked: &Looked, is_nothing_found: bool) -> Option<String> {
        let (asked, own) = (&self.embedder.model().name, looked.model.as_deref().unwrap_or_default());
        match &self.vector {
            Err(fault) => Some(format!("searched by keyword alone: the embedder is away ({})", fault.in_words())),
            Ok(_) if looked.how != How::Keyword && asked != own => Some(format!(
                "the model {own} cannot be asked any more, so this was searched with the vectors of {asked} that are there so far"
            )),
            Ok(_) if looked.how == How::Keyword && !is_nothing_found => {
                Some(format!("searched by keyword alone: this memory has no vectors of the model {asked}"))
            }
            Ok(_) => None,
        }
    }

    /// The embedder that should have been asked instead: the searches of the tenant have switched to another model since the last one, or the embedder
    /// is away and the memory moves to a model that can be asked. None: it was the right one.
    pub async fn better<'a>(
        &self,
        env: &'a Env,
        tenant_id: TenantId,
        looked: &Looked,
    ) -> Result<Option<&'a Embedder>, store::Error> {
        let is_asked = |model: &str| self.embedder.model().name == model;
        if let Some(own) = looked.model.as_deref().filter(|model| !is_asked(model))
            && let Some(embedder) = env.embedders.of_model(own)
        {
            env.embedders.use_from_now_on(tenant_id, embedder);
            return Ok(Some(embedder));
        }
        if self.vector.is_ok() {
            return Ok(None);
        }
        let mut conn = env.db.acquire().await?;
        let target = store::memory::tenant(&mut conn, tenant_id).await?.to_model;
        Ok(target.filter(|model| !is_asked(model)).and_then(|model| env.embedders.of_model(&model)))
    }
}

/// Embeds a question. An embedder that is away is no error: the search goes by keyword alone. A service that did not answer is not asked again for
/// [`LEFT_ALONE`], so that one search waits for it and not every one.
pub(super) async fn embed<'a>(env: &Env, embedder: &'a Embedder, text: &str) -> Question<'a> {
    let away = |what: &'static str| Err(Fault::Transient(anyhow::anyhow!(what)));
    if embedder.is_left_alone(env.clock.now()) {
        return Question { embedder, vector: away("it did not answer a moment ago") };
    }
    let embedded = tokio::time::timeout(EMBED_LIMIT, embedder.embed_query(text)).await;
    let vector = embedded.unwrap_or_else(|_| away("it did not answer in time"));
    if embedder.is_service() && matches!(vector, Err(Fault::Transient(_))) {
        embedder.leave_alone_until(env.clock.now() + LEFT_ALONE);
    }
    Question { embedder, vector }
}

/// The embedder to ask: that of the tenant's last search, because a look at the tenant's model costs a round trip. The search itself says which model
/// is right, see [`Question::better`].
pub(super) async fn embedder(env: &Env, tenant_id: TenantId) -> Result<&Embedder, store::Error> {
    if env.embedders.is_single() {
        return Ok(env.embedders.configured());
    }
    if let Some(last) = env.embedders.last_used(tenant_id) {
        return Ok(last);
    }
    let mut conn = env.db.acquire().await?;
    let memory = store::memory::tenant(&mut conn, tenant_id).await?;
    let embedder = env.embedders.for_tenant(memory.model.as_deref());
    env.embedders.use_from_now_on(tenant_id, embedder);
    Ok(embedder)
}
