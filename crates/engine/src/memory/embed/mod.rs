//! Embedders: they make vectors of texts, on this machine or by a service. Each has one model.

mod embedders;
mod fast;
pub(crate) mod local;
mod served;
mod services;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use chrono::{DateTime, Utc};
use connectors::Http;
use connectors::models::EmbedClient;
pub use connectors::models::Side;
use domain::{Fault, hex, text};
use store::spend::Spent;

pub use self::embedders::Embedders;
pub(crate) use self::embedders::{TenantEmbedder, table_of};
use self::fast::FastModel;
use self::local::LocalModel;
pub use self::served::{MOST_TEXTS, MOST_TOKENS, NotServed, serve};
pub use self::services::is_brain_secret;
use crate::Config;
use crate::config::{EmbedderKind, LocalModelKind};
use crate::memory::recall::Floor;

/// An embedding model. Vectors of two models cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// Part of the name of the model's table: at most 40 characters of `a-z`, `0-9` and `_`.
    pub name: String,
    pub dim: usize,
}

impl Model {
    fn new(model: &str, dim: usize) -> Self {
        let lower = model.to_lowercase();
        let words: Vec<&str> =
            lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let mut name = format!("{}_{dim}", words.join("_"));
        if name.len() > 40 {
            // Long names may share their beginning, so a hash tells them apart.
            let hash = text::sha256(&format!("{model} {dim}"));
            name = format!("{}_{}", &name[..31], hex::encode(&hash[..4]));
        }
        Self { name, dim }
    }
}

/// Makes vectors with one model. Cheap to clone; all clones count together.
#[derive(Clone)]
pub enum Embedder {
    Fast(Arc<Meter>, Arc<FastModel>),
    Local(Arc<Meter>, Arc<LocalModel>),
    Http(Arc<Meter>, Arc<EmbedClient>),
}

/// Vectors of unit length, one per text in order, and what they took.
#[derive(Debug, Default)]
pub struct Embedded {
    pub vectors: Vec<Vec<f32>>,
    pub spent: Spent,
    /// The reason why the last texts have no vector, if some have none.
    pub fault: Option<Fault>,
}

/// An embedder's model and price, and how much it was used.
pub struct Meter {
    model: Model,
    calls: AtomicU64,
    texts: AtomicU64,
    /// The price in dollars per million tokens.
    price_per_million: f64,
    /// Until then no question is asked, in milliseconds since 1970.
    left_alone_until: AtomicI64,
}

impl Meter {
    fn new(model: Model, price_per_million: f64) -> Arc<Self> {
        Arc::new(Self { model, calls: 0.into(), texts: 0.into(), price_per_million, left_alone_until: 0.into() })
    }
}

impl Embedder {
    /// The embedder that the settings name. Calls no service and loads no model yet.
    pub fn from_config(config: &Config, http: &Http) -> anyhow::Result<Self> {
        if let Some(service) = config.embedder.service() {
            return services::of_service(config, http, service);
        }
        if config.embedder == EmbedderKind::Local {
            let model = Model::new(config.local_model.name(), local::DIM);
            let local = LocalModel::new(local_files(config, config.local_model));
            return Ok(Self::Local(Meter::new(model, 0.0), Arc::new(local)));
        }
        let model = FastModel::new(config.fast_model_dir.clone());
        Ok(Self::Fast(Meter::new(Model::new("fast", fast::DIM), 0.0), Arc::new(model)))
    }

    pub fn model(&self) -> &Model {
        &self.meter().model
    }

    /// The share of its similarity in the score of a hit; the rest is that of keywords. Measured: a static model alone is worse than keywords.
    pub fn weight(&self) -> f64 {
        match self {
            Self::Fast(..) => 0.35,
            Self::Local(..) => 0.6,
            Self::Http(..) => 0.7,
        }
    }

    /// The largest number of texts whose vectors are worth waiting for while somebody waits for something else. The rest is made in the
    /// background.
    pub fn most_at_once(&self) -> usize {
        match self {
            Self::Local(..) => 16, // half a second on one core
            Self::Fast(..) | Self::Http(..) => usize::MAX,
        }
    }

    /// The floor below which a document does not fit a question. Those of `local` and `fast` are measured (`bench relevance`): of 200 questions that no
    /// manual answers at least 95% are below it, and less than 1% of those with an answer. That of services is an estimate.
    pub fn floor(&self) -> Floor {
        let floor = |similarity, per_words, near, words, per_decade| Floor {
            similarity,
            per_words,
            near,
            words,
            some_words: 0.33,
            per_decade,
        };
        match self {
            Self::Fast(..) => floor(0.48, 0.7, 0.35, 0.55, 0.03),
            Self::Local(_, model) => match model.kind() {
                LocalModelKind::GteSmall => floor(0.855, 0.1, 0.825, 0.75, 0.01),
                LocalModelKind::Minilm => floor(0.417, 0.5, 0.337, 0.55, 0.04),
            },
            Self::Http(..) => floor(0.6, 0.4, 0.35, 0.6, 0.03),
        }
    }

    /// Makes the vector of a question. Its few tokens are not charged: that would cost a write for each search.
    pub async fn embed_query(&self, text: &str) -> Result<Vec<f32>, Fault> {
        let vector = self.embed(Side::Query, &[text]).await?.vectors.pop();
        vector.ok_or_else(|| Fault::Transient(anyhow::anyhow!("the embedder gave no vector")))
    }

    /// Whether the embedder has just failed to answer a question, so that the next ones do without it.
    pub(crate) fn is_left_alone(&self, now: DateTime<Utc>) -> bool {
        now.timestamp_millis() < self.meter().left_alone_until.load(Relaxed)
    }

    /// It has answered, so that questions can be asked again.
    fn is_well(&self) {
        self.meter().left_alone_until.store(0, Relaxed);
    }

    pub(crate) fn leave_alone_until(&self, until: DateTime<Utc>) {
        self.meter().left_alone_until.store(until.timestamp_millis(), Relaxed);
    }

    /// Makes one vector per text. If only the first texts got one, `Embedded::fault` says why; if none did, that is the error.
    pub async fn embed_documents(&self, texts: &[&str]) -> Result<Embedded, Fault> {
        self.embed(Side::Document, texts).await
    }

    async fn embed(&self, side: Side, texts: &[&str]) -> Result<Embedded, Fault> {
        if texts.is_empty() {
            return Ok(Embedded::default());
        }
        self.meter().calls.fetch_add(1, Relaxed);
        let (vectors, calls, counted, fault) = match self {
            Self::Fast(_, model) => (model.embed(texts).await?, 1, None, None),
            Self::Local(_, model) => (model.embed(side, texts).await?, 1, None, None),
            Self::Http(_, client) => {
                let embedded = client.embed(side, texts).await?;
                self.is_well();
                self.note_in_parts(embedded.in_parts);
                let tokens = embedded.tokens.and_then(|tokens| i64::try_from(tokens).ok());
                (embedded.vectors, embedded.calls, tokens, embedded.fault)
            }
        };
        let texts = &texts[..vectors.len().min(texts.len())];
        let n_texts = u64::try_from(texts.len()).unwrap_or(u64::MAX);
        self.meter().texts.fetch_add(n_texts, Relaxed);
        metrics::counter!("tributary_embed_texts_total", "model" => self.model().name.clone()).increment(n_texts);
        let tokens = counted.unwrap_or_else(|| self.estimate(texts.iter().map(|text| text.len()).sum()).0);
        let spent = Spent {
            calls: i64::try_from(calls).unwrap_or(i64::MAX),
            documents: 0,
            texts: i64::try_from(texts.len()).unwrap_or(i64::MAX),
            tokens,
            cost_micros: self.cost(tokens),
        };
        Ok(Embedded { vectors, spent, fault })
    }

    /// Nothing of a text that is too long for the model is lost, but its vector is less exact than that of a shorter one.
    fn note_in_parts(&self, n_texts: usize) {
        if n_texts > 0 {
            let model = &self.model().name;
            tracing::info!("{n_texts} texts are too long for the model {model} and were embedded in parts");
            metrics::counter!("tributary_embed_in_parts_total", "model" => model.clone()).increment(n_texts as u64);
        }
    }

    /// Whether a service makes the vectors, so that they may cost money.
    pub fn is_service(&self) -> bool {
        matches!(self, Self::Http(..))
    }

    /// Estimates tokens, four bytes each, and their cost in millionths of a dollar.
    pub fn estimate(&self, bytes: usize) -> (i64, i64) {
        let tokens = i64::try_from(bytes.div_ceil(4)).unwrap_or(i64::MAX);
        (tokens, self.cost(tokens))
    }

    fn cost(&self, tokens: i64) -> i64 {
        (tokens as f64 * self.meter().price_per_million).ceil() as i64
    }

    /// Returns the number of calls it got.
    pub fn calls(&self) -> u64 {
        self.meter().calls.load(Relaxed)
    }

    /// Returns the number of texts it made vectors of.
    pub fn texts(&self) -> u64 {
        self.meter().texts.load(Relaxed)
    }

    fn meter(&self) -> &Meter {
        let (Self::Fast(meter, _) | Self::Local(meter, _) | Self::Http(meter, _)) = self;
        meter
    }
}

/// The files of a model of `local`.
pub(crate) fn local_files(config: &Config, kind: LocalModelKind) -> local::Files {
    local::Files::new(kind, config.local_model_dir.clone(), config.onnxruntime_lib.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_name_can_be_part_of_a_tables() {
        for (model, dim, expected) in [
            ("fast", 256, "fast_256"),
            (LocalModelKind::GteSmall.name(), local::DIM, "gte_small_384"),
            (LocalModelKind::Minilm.name(), local::DIM, "all_minilm_l6_v2_384"),
            ("text-embedding-3-small", 1_536, "text_embedding_3_small_1536"),
            ("BAAI/bge-m3", 1_024, "baai_bge_m3_1024"),
            ("-é-x", 8, "x_8"),
        ] {
            assert_eq!(Model::new(model, dim).name, expected);
        }
        let long =
            |end: &str| Model::new(&format!("some-organisation/an-embedding-model-with-a-long-name-{end}"), 768).name;
        assert_eq!(long("one").len(), 40);
        assert_ne!(long("one"), long("two"));
    }
}
