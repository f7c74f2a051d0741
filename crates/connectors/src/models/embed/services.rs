//! The services that make vectors. Each is one value; whatever differs between them is a field.

use std::time::Duration;

use super::answer::{self, Answered};

/// A service that makes vectors, and how to ask it.
pub struct EmbedService {
    /// Its name in `EMBEDDER`.
    pub name: &'static str,
    /// Its address, where everybody has the same.
    pub base_url: Option<&'static str>,
    /// The settings with its address and its key.
    pub base_url_setting: &'static str,
    pub key_setting: &'static str,
    pub needs_key: bool,
    /// Its usual model.
    pub model: Option<&'static str>,
    pub models: &'static [KnownModel],
    pub(super) path: &'static str,
    /// The field with the texts.
    pub(super) texts: &'static str,
    /// Whether a request names the model. A server with a single model is not told.
    pub(super) names_model: bool,
    /// The field that asks for shorter vectors.
    pub(super) dimensions: Option<&'static str>,
    /// Whether it shortens the vectors of every model, also of those that we do not know.
    pub(super) shortens_any: bool,
    pub(super) sides: Sides,
    /// Fields of every request, as JSON. Where a service can cut a long text silently, they forbid it.
    pub(super) fixed: &'static str,
    pub(super) read: fn(&[u8]) -> serde_json::Result<Answered>,
    /// Whether an answer names its model, and that has to be ours.
    pub(super) tells_model: bool,
    /// The most texts of one call.
    pub(super) call_texts: usize,
    /// The most tokens of one call, by our estimate, for models that we do not know.
    pub(super) call_tokens: usize,
    pub(super) answer_within: Duration,
}

/// How a service learns whether it gets a question or a document.
#[derive(Clone, Copy)]
pub(super) enum Sides {
    /// It does not. Models that have to know it are told by a prefix of the text.
    Prefix,
    /// By the value of a field.
    Field { name: &'static str, query: &'static str, document: &'static str },
    /// By the name of one of the model's own prompts, which the settings give.
    Prompt { name: &'static str },
}

/// A model whose properties are known, so that nobody has to set them.
pub struct KnownModel {
    pub name: &'static str,
    /// The number of dimensions unless another is set.
    pub dim: usize,
    /// Whether it makes vectors of other lengths on request.
    pub is_shortened: bool,
    /// Dollars.
    pub price_per_million: f64,
    /// The tokens of its longest text. None: the service says so itself, or nobody does.
    pub text_tokens: Option<usize>,
    /// The most tokens of one call, by our estimate. None: as usual for the service.
    pub call_tokens: Option<usize>,
    /// The beginning of a question and of a document, by which the model tells them apart.
    pub prefixes: [&'static str; 2],
}

impl KnownModel {
    const fn new(name: &'static str, dim: usize) -> Self {
        Self {
            name,
            dim,
            is_shortened: true,
            price_per_million: 0.0,
            text_tokens: None,
            call_tokens: None,
            prefixes: ["", ""],
        }
    }
}

impl EmbedService {
    pub fn known(&self, model: &str) -> Option<&'static KnownModel> {
        self.models.iter().find(|known| known.name == model)
    }
}

const OPENAI_TOKENS: usize = 8_192;

static OPENAI_MODELS: [KnownModel; 3] = [
    KnownModel {
        price_per_million: 0.02,
        text_tokens: Some(OPENAI_TOKENS),
        ..KnownModel::new("text-embedding-3-small", 1_536)
    },
    // Its own 3,072 dimensions are hardly better, and twice as large.
    KnownModel {
        price_per_million: 0.13,
        text_tokens: Some(OPENAI_TOKENS),
        ..KnownModel::new("text-embedding-3-large", 1_536)
    },
    KnownModel {
        is_shortened: false,
        price_per_million: 0.10,
        text_tokens: Some(OPENAI_TOKENS),
        ..KnownModel::new("text-embedding-ada-002", 1_536)
    },
];

const VOYAGE_TOKENS: usize = 32_000;

static VOYAGE_MODELS: [KnownModel; 3] = [
    KnownModel {
        price_per_million: 0.12,
        text_tokens: Some(VOYAGE_TOKENS),
        call_tokens: Some(100_000),
        ..KnownModel::new("voyage-4-large", 1_024)
    },
    KnownModel {
        price_per_million: 0.06,
        text_tokens: Some(VOYAGE_TOKENS),
        call_tokens: Some(250_000),
        ..KnownModel::new("voyage-4", 1_024)
    },
    KnownModel {
        price_per_million: 0.02,
        text_tokens: Some(VOYAGE_TOKENS),
        call_tokens: Some(800_000),
        ..KnownModel::new("voyage-4-lite", 1_024)
    },
];

static COHERE_MODELS: [KnownModel; 1] =
    [KnownModel { price_per_million: 0.12, ..KnownModel::new("embed-v4.0", 1_536) }];

static OLLAMA_MODELS: [KnownModel; 5] = [
    KnownModel {
        prefixes: ["task: search result | query: ", "title: none | text: "],
        ..KnownModel::new("embeddinggemma", 768)
    },
    KnownModel { prefixes: ["search_query: ", "search_document: "], ..KnownModel::new("nomic-embed-text", 768) },
    KnownModel {
        prefixes: ["Represent this sentence for searching relevant passages: ", ""],
        ..KnownModel::new("mxbai-embed-large", 1_024)
    },
    KnownModel::new("bge-m3", 1_024),
    KnownModel::new("all-minilm", 384),
];

/// The service behind `brain` pays for its model, so that it costs nothing here.
static BRAIN_MODELS: [KnownModel; 1] = [KnownModel::new("text-embedding-3-small", 1_536)];

const USUAL: Duration = Duration::from_secs(120);

/// OpenAI's own. Most others differ from it in a few fields.
pub static OPENAI: EmbedService = OPENAI_API;

const OPENAI_API: EmbedService = EmbedService {
    name: "openai",
    base_url: Some("https://api.openai.com/v1"),
    base_url_setting: "EMBED_BASE_URL",
    key_setting: "EMBED_API_KEY",
    needs_key: true,
    model: Some("text-embedding-3-small"),
    models: &OPENAI_MODELS,
    path: "/embeddings",
    texts: "input",
    names_model: true,
    dimensions: Some("dimensions"),
    shortens_any: false,
    sides: Sides::Prefix,
    fixed: r#"{"encoding_format": "base64"}"#, // a quarter of the size of numbers in JSON
    read: answer::of_data,
    tells_model: false,
    call_texts: 2_048,
    call_tokens: 250_000,
    answer_within: USUAL,
};

/// Any other service with OpenAI's API. Not all of them know base64, or shorten vectors.
pub static COMPATIBLE: EmbedService = EmbedService {
    name: "compatible",
    base_url: None,
    needs_key: false,
    model: None,
    dimensions: None,
    fixed: r#"{"encoding_format": "float"}"#,
    call_tokens: 100_000,
    ..OPENAI_API
};

pub static VOYAGE: EmbedService = EmbedService {
    name: "voyage",
    base_url: Some("https://api.voyageai.com/v1"),
    model: Some("voyage-4"),
    models: &VOYAGE_MODELS,
    dimensions: Some("output_dimension"),
    sides: Sides::Field { name: "input_type", query: "query", document: "document" },
    fixed: r#"{"truncation": false, "output_dtype": "float"}"#,
    call_texts: 1_000,
    call_tokens: 100_000,
    ..OPENAI_API
};

pub static COHERE: EmbedService = EmbedService {
    name: "cohere",
    base_url: Some("https://api.cohere.com"),
    model: Some("embed-v4.0"),
    models: &COHERE_MODELS,
    path: "/v2/embed",
    texts: "texts",
    dimensions: Some("output_dimension"),
    sides: Sides::Field { name: "input_type", query: "search_query", document: "search_document" },
    fixed: r#"{"truncate": "NONE", "embedding_types": ["float"]}"#,
    read: answer::of_floats,
    call_texts: 96,
    call_tokens: 100_000,
    ..OPENAI_API
};

pub static OLLAMA: EmbedService = EmbedService {
    name: "ollama",
    base_url: Some("http://127.0.0.1:11434"),
    needs_key: false,
    model: Some("embeddinggemma"),
    models: &OLLAMA_MODELS,
    path: "/api/embed",
    shortens_any: true,
    fixed: r#"{"truncate": false}"#,
    read: answer::of_embeddings,
    call_texts: 256,
    call_tokens: 100_000,
    answer_within: Duration::from_secs(300), // the first call loads the model
    ..OPENAI_API
};

pub static TEI: EmbedService = EmbedService {
    name: "tei",
    base_url: None,
    needs_key: false,
    model: None,
    models: &[],
    path: "/embed",
    texts: "inputs",
    names_model: false,
    shortens_any: true,
    sides: Sides::Prompt { name: "prompt_name" },
    fixed: r#"{"truncate": false, "normalize": true}"#,
    read: answer::of_rows,
    call_texts: 32,
    call_tokens: 100_000, // well below 2 MB, its limit for a request
    ..OPENAI_API
};

/// `POST /internal/embed`, of another Tributary or of a service that has the same route.
pub static BRAIN: EmbedService = EmbedService {
    name: "brain",
    base_url: None,
    base_url_setting: "BOOTS_BRAIN_URL",
    key_setting: "BRAIN_API_SECRET",
    needs_key: true,
    model: Some("text-embedding-3-small"),
    models: &BRAIN_MODELS,
    path: "/internal/embed",
    texts: "texts",
    names_model: false,
    dimensions: None,
    fixed: "{}",
    read: answer::of_embeddings,
    tells_model: true,
    call_texts: 256,
    call_tokens: 100_000,
    ..OPENAI_API
};

/// Every service, in the order of the documentation. A new one adds its value above and a line here.
pub static ALL: [&EmbedService; 7] = [&OPENAI, &VOYAGE, &COHERE, &OLLAMA, &TEI, &COMPATIBLE, &BRAIN];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_description_is_whole() {
        for service in ALL {
            let fixed: serde_json::Result<serde_json::Map<_, _>> = serde_json::from_str(service.fixed);
            assert!(fixed.is_ok(), "{}: {fixed:?}", service.name);
            assert!(service.path.starts_with('/') && service.call_texts > 0 && service.call_tokens > 0);
            assert!(service.base_url.is_none_or(|url| !url.ends_with('/')), "{}", service.name);
            let usual = service.model.map(|model| service.known(model).is_some());
            assert_ne!(usual, Some(false), "the usual model of {} is not a known one", service.name);
        }
    }
}
