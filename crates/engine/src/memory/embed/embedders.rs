//! The embedders of this process, by model, and which of them serves a tenant.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use connectors::Http;
use domain::{Fault, TenantId};
use store::PgConnection;
use store::memory::{TenantMemory, VectorTable};

use super::{Embedder, fast, local_files};
use crate::config::{EmbedderKind, LocalModelKind};
use crate::{Config, Env};

/// All embedders that this process can ask. Cheap to clone.
#[derive(Clone)]
pub struct Embedders {
    configured: Embedder,
    others: Arc<[Embedder]>,
    /// The model that each tenant's searches used last.
    used: Arc<Mutex<HashMap<TenantId, String>>>,
}

impl Embedders {
    /// The embedder that the settings name, and those that they still describe: tenants may have vectors of their models.
    pub fn from_config(config: &Config, http: &Http) -> anyhow::Result<Self> {
        let configured = Embedder::from_config(config, http)?;
        let mut others: Vec<Embedder> = Vec::new();
        for described in also_described(config) {
            // Settings that are half there describe no embedder, and nobody asked for this one.
            let Ok(other) = Embedder::from_config(&described, http) else { continue };
            let is_known = [&configured].into_iter().chain(&others).any(|known| known.model() == other.model());
            if !is_known {
                others.push(other);
            }
        }
        Ok(Self::new(configured, others))
    }

    /// `configured` serves tenants that have no vectors yet; `others` serve those whose vectors are of their model.
    pub fn new(configured: Embedder, others: Vec<Embedder>) -> Self {
        Self { configured, others: others.into(), used: Arc::default() }
    }

    /// The embedder that the settings name.
    pub fn configured(&self) -> &Embedder {
        &self.configured
    }

    /// Every embedder.
    pub fn all(&self) -> impl Iterator<Item = &Embedder> {
        [&self.configured].into_iter().chain(self.others.iter())
    }

    /// The embedder of a model, by the model's name.
    pub fn of_model(&self, model: &str) -> Option<&Embedder> {
        self.all().find(|embedder| embedder.model().name == model)
    }

    /// The embedder for a tenant whose searches use `model`: that model's, else the configured one.
    pub fn for_tenant(&self, model: Option<&str>) -> &Embedder {
        model.and_then(|model| self.of_model(model)).unwrap_or(&self.configured)
    }

    /// Whether all tenants are served by the same embedder.
    pub fn is_single(&self) -> bool {
        self.others.is_empty()
    }

    /// The names of all models that can be asked, the configured one first.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        [&self.configured].into_iter().chain(self.others.iter()).map(|embedder| embedder.model().name.as_str())
    }

    /// The embedder that the tenant's searches used last. None: no search of this process has looked yet.
    pub(crate) fn last_used(&self, tenant_id: TenantId) -> Option<&Embedder> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.get(&tenant_id).and_then(|model| self.of_model(model))
    }

    /// Remembers which embedder the tenant's searches use.
    pub(crate) fn use_from_now_on(&self, tenant_id: TenantId, embedder: &Embedder) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.insert(tenant_id, embedder.model().name.clone());
    }
}

/// The settings of embedders that are not configured and still described: those whose files are on this machine, OpenAI's other model, and, while
/// vectors are made on this machine, each service whose settings are complete: with a key alone those that know the model. Only a tenant's vectors
/// decide which of them is asked: a memory with vectors of voyage-4 has been embedded by Voyage.
fn also_described(config: &Config) -> Vec<Config> {
    let mut described = Vec::new();
    if config.fast_model_dir.as_deref().is_some_and(fast::has_files) {
        described.push(Config { embedder: EmbedderKind::Fast, ..config.clone() });
    }
    for local_model in [LocalModelKind::GteSmall, LocalModelKind::Minilm] {
        if local_files(config, local_model).are_there() {
            described.push(Config { embedder: EmbedderKind::Local, local_model, ..config.clone() });
        }
    }
    if config.embedder.service().is_none() {
        use EmbedderKind::{Brain, Cohere, Compatible, Ollama, Openai, Tei, Voyage};
        // A key or a text must not go to another company than before.
        let knows = |kind: &&EmbedderKind| {
            config
                .embed_model
                .as_deref()
                .is_none_or(|model| kind.service().is_some_and(|service| service.known(model.trim()).is_some()))
        };
        let has_prompt = config.embed_query_prompt.is_some() || config.embed_document_prompt.is_some();
        let kinds: &[EmbedderKind] = match (&config.embed_base_url, &config.embed_api_key) {
            (Some(_), _) if has_prompt => &[Tei],
            (Some(_), _) if knows(&&Ollama) && config.embed_model.is_some() => &[Ollama, Compatible],
            (Some(_), _) => &[Compatible],
            (None, Some(_)) => &[Openai, Voyage, Cohere],
            // A model on this machine needs neither.
            (None, None) if config.embed_model.is_some() => &[Ollama],
            (None, None) => &[],
        };
        let has_address = config.embed_base_url.is_some();
        let kinds = kinds.iter().filter(|kind| has_address || knows(kind));
        let kinds = kinds.chain(config.boots_brain_url.is_some().then_some(&Brain));
        described.extend(kinds.map(|embedder| Config { embedder: *embedder, ..config.clone() }));
    }
    let openais = described.iter().chain([config]).find(|config| config.embedder == EmbedderKind::Openai).cloned();
    if let Some(openais) = openais {
        let other = |model: &str| Config {
            embed_model: Some(model.into()),
            embed_dim: None,
            embed_price_per_million: None,
            ..openais.clone()
        };
        described.extend(["text-embedding-3-small", "text-embedding-3-large"].map(other));
    }
    described
}

/// The embedder for a tenant's texts, and the table that its vectors go to.
pub(crate) struct TenantEmbedder {
    pub tenant_id: TenantId,
    pub embedder: Embedder,
    pub table: VectorTable,
    /// Whether the embedder makes vectors for that table. If not, the settings describe none that does: texts wait for one.
    pub is_askable: bool,
    /// While the memory moves to another model: new chunks get a vector of that one too.
    pub also: Option<(Embedder, VectorTable)>,
    pub memory: TenantMemory,
}

impl TenantEmbedder {
    /// Looks up the tenant's model, and makes that model's table where it is missing.
    pub async fn look(env: &Env, tenant_id: TenantId) -> Result<Self, Fault> {
        let mut conn = env.db.acquire().await?;
        let memory = store::memory::tenant(&mut conn, tenant_id).await?;
        let own = memory.model.as_deref().and_then(|model| env.embedders.of_model(model));
        let target = memory.to_model.as_deref().and_then(|model| env.embedders.of_model(model));
        let askable = match &memory.model {
            // A memory whose model cannot be asked any more gets vectors of the one that it moves to.
            Some(_) => own.or(target),
            None => Some(env.embedders.configured()),
        };
        let embedder = askable.unwrap_or_else(|| env.embedders.configured()).clone();
        env.embedders.use_from_now_on(tenant_id, &embedder);
        let table = match (&memory.model, askable) {
            (Some(model), None) => VectorTable::new(model)?,
            _ => table_of(&mut conn, &memory, &embedder).await?,
        };
        let is_askable = askable.is_some();
        let also = match target.filter(|target| target.model() != embedder.model()) {
            Some(target) => Some((target.clone(), table_of(&mut conn, &memory, target).await?)),
            None => None,
        };
        Ok(Self { tenant_id, embedder, table, is_askable, also, memory })
    }

    /// Whether a document that is labelled with this model has the vectors that it needs. During a move either model will do: the move sees to the
    /// other.
    pub fn is_label(&self, model: &str) -> bool {
        self.table.model() == model || self.memory.moving.iter().any(|moving| moving == model)
    }
}

/// The table of an embedder's vectors, made where it is missing.
pub(crate) async fn table_of(
    conn: &mut PgConnection,
    memory: &TenantMemory,
    embedder: &Embedder,
) -> store::Result<VectorTable> {
    let model = embedder.model();
    let table = VectorTable::new(&model.name)?;
    if !memory.has_table(&table) {
        store::memory::ensure_model(conn, &model.name, model.dim, embedder.weight()).await?;
    }
    Ok(table)
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
        assert_eq!(two.models().collect::<Vec<_>>(), ["a_8", "b_8"]);
    }

    #[test]
    fn an_embedder_stays_askable_while_the_settings_describe_it() {
        #[derive(clap::Parser)]
        struct Settings {
            #[command(flatten)]
            config: Config,
        }
        let http = Http::new().expect("a client");
        let (small, large) = ("text_embedding_3_small_1536", "text_embedding_3_large_1536");
        for (flags, expected) in [
            (vec!["--embedder", "fast"], vec!["fast_256"]),
            (
                vec!["--embedder", "fast", "--embed-api-key", "k"],
                vec!["fast_256", small, "voyage_4_1024", "embed_v4_0_1536", large],
            ),
            (
                vec!["--embedder", "fast", "--embed-api-key", "k", "--embed-model", "voyage-4-lite"],
                vec!["fast_256", "voyage_4_lite_1024"],
            ),
            (vec!["--embedder", "fast", "--embed-model", "nomic-embed-text"], vec!["fast_256", "nomic_embed_text_768"]),
            (
                vec!["--embedder", "fast", "--boots-brain-url", "http://b", "--brain-api-secret", "s"],
                vec!["fast_256", small],
            ),
            (
                vec!["--embedder", "fast", "--embed-base-url", "http://e/v1", "--embed-model", "m", "--embed-dim", "8"],
                vec!["fast_256", "m_8"],
            ),
            (vec!["--embedder", "openai", "--embed-api-key", "k"], vec![small, large]),
            (
                vec!["--embedder", "openai", "--embed-api-key", "k", "--embed-model", "text-embedding-3-large"],
                vec![large, small],
            ),
        ] {
            let mut all = vec!["test", "--fast-model-dir", "/nowhere", "--local-model-dir", "/nowhere"];
            all.extend(&flags);
            let config = <Settings as clap::Parser>::parse_from(all).config;
            let embedders = Embedders::from_config(&config, &http).expect("embedders");
            assert_eq!(embedders.models().collect::<Vec<_>>(), expected, "{flags:?}");
        }
    }

    #[test]
    fn what_a_tenants_searches_used_last_is_asked_first() {
        let embedders = Embedders::new(embedder("a"), vec![embedder("b")]);
        let tenant_id = TenantId::new();
        assert!(embedders.last_used(tenant_id).is_none());
        embedders.use_from_now_on(tenant_id, &embedder("b"));
        assert_eq!(embedders.last_used(tenant_id).map(|used| used.model().name.as_str()), Some("b_8"));
        assert!(embedders.last_used(TenantId::new()).is_none());
    }
}
