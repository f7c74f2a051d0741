//! The embedders of this process, by model, and which of them serves a tenant.

use std::sync::Arc;

use connectors::Http;
use domain::{Fault, TenantId};
use store::memory::{TenantMemory, VectorTable};

use super::Embedder;
use crate::{Config, Env};

/// All embedders that this process can ask. Cheap to clone.
#[derive(Clone)]
pub struct Embedders {
    configured: Embedder,
    others: Arc<[Embedder]>,
}

impl Embedders {
    /// The embedder that the settings name, and no other.
    pub fn from_config(config: &Config, http: &Http) -> anyhow::Result<Self> {
        Ok(Self::new(Embedder::from_config(config, http)?, Vec::new()))
    }

    /// `configured` serves tenants that have no vectors yet; `others` serve those whose vectors are of their model.
    pub fn new(configured: Embedder, others: Vec<Embedder>) -> Self {
        Self { configured, others: others.into() }
    }

    /// The embedder that the settings name.
    pub fn configured(&self) -> &Embedder {
        &self.configured
    }

    /// The embedder of a model, by the model's name.
    pub fn of_model(&self, model: &str) -> Option<&Embedder> {
        [&self.configured].into_iter().chain(self.others.iter()).find(|embedder| embedder.model().name == model)
    }

    /// The embedder for a tenant whose searches use `model`: that model's, else the configured one.
    pub fn for_tenant(&self, model: Option<&str>) -> &Embedder {
        model.and_then(|model| self.of_model(model)).unwrap_or(&self.configured)
    }

    /// Whether all tenants are served by the same embedder.
    pub fn is_single(&self) -> bool {
        self.others.is_empty()
    }
}

/// The embedder for a tenant's texts, and the table that its vectors go to.
pub(crate) struct TenantEmbedder {
    pub tenant_id: TenantId,
    pub embedder: Embedder,
    pub table: VectorTable,
    pub memory: TenantMemory,
}

impl TenantEmbedder {
    /// Looks up the tenant's model, and makes that model's table where it is missing.
    pub async fn look(env: &Env, tenant_id: TenantId) -> Result<Self, Fault> {
        let mut conn = env.db.acquire().await?;
        let memory = store::memory::tenant(&mut conn, tenant_id).await?;
        let embedder = env.embedders.for_tenant(memory.model.as_deref()).clone();
        let model = embedder.model();
        let table = VectorTable::new(&model.name)?;
        if !memory.has_table(&table) {
            store::memory::ensure_model(&mut conn, &model.name, model.dim, embedder.weight()).await?;
        }
        Ok(Self { tenant_id, embedder, table, memory })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Meter, Model, fast::FastModel};
    use super::*;

    fn embedder(model: &str) -> Embedder {
        Embedder::Fast(Meter::new(Model::new(model, 8), 0.0), Arc::new(FastModel::new(None)))
    }

    #[test]
    fn a_tenant_is_served_by_the_embedder_of_its_model_else_by_the_configured_one() {
        let one = Embedders::new(embedder("a"), Vec::new());
        let two = Embedders::new(embedder("a"), vec![embedder("b")]);
        for (embedders, model, expected) in [
            (&one, None, "a_8"),
            (&one, Some("a_8"), "a_8"),
            (&one, Some("b_8"), "a_8"),
            (&two, None, "a_8"),
            (&two, Some("b_8"), "b_8"),
            (&two, Some("c_8"), "a_8"),
        ] {
            assert_eq!(embedders.for_tenant(model).model().name, expected, "{model:?}");
        }
        assert!(one.is_single() && !two.is_single());
        assert!(two.of_model("b_8").is_some() && two.of_model("c_8").is_none());
    }
}
