//! Embedders that are services: their settings, with what is known of each service and its models in place of what is not set.

use std::sync::Arc;

use anyhow::{Context as _, ensure};
use connectors::Http;
use connectors::models::{EmbedClient, EmbedService, EmbedSettings};
use domain::{Secret, hex, text};

use super::{Embedder, Meter, Model};
use crate::Config;
use crate::config::EmbedderKind;

/// The embedder of a service. Does not call it yet.
pub(super) fn of_service(config: &Config, http: &Http, service: &'static EmbedService) -> anyhow::Result<Embedder> {
    let name = service.name;
    let missing = |setting: &str| format!("EMBEDDER is {name}, but {setting} is not set: set it");
    let is_brain = config.embedder == EmbedderKind::Brain;
    let (address, key) = match is_brain {
        true => (&config.boots_brain_url, config.brain_secret()),
        false => (&config.embed_base_url, config.embed_api_key.as_ref()),
    };
    let base_url = address.as_deref().or(service.base_url).with_context(|| missing(service.base_url_setting))?;
    let key = key.filter(|key| !key.reveal().trim().is_empty()).cloned();
    ensure!(!service.needs_key || key.is_some(), "{}", missing(service.key_setting));

    let model = config.embed_model.as_deref().or(service.model).with_context(|| missing("EMBED_MODEL"))?.trim();
    ensure!(model.contains(|c: char| c.is_ascii_alphanumeric()), "EMBED_MODEL has no name in it: set it");
    let known = service.known(model);
    let dim = match (config.embed_dim, known) {
        (Some(dim), _) => usize::try_from(dim).context("EMBED_DIM is too large")?,
        (None, Some(known)) => known.dim,
        (None, None) => anyhow::bail!("EMBED_DIM is not set: set it to the number of dimensions of {model}"),
    };
    if let Some(known) = known.filter(|known| !known.is_shortened) {
        ensure!(dim == known.dim, "EMBED_DIM is {dim}, but {model} has {} dimensions", known.dim);
    }

    let [query, document] = known.map_or(["", ""], |known| known.prefixes);
    let prefixes = [
        config.embed_query_prefix.clone().unwrap_or_else(|| query.to_owned()),
        config.embed_document_prefix.clone().unwrap_or_else(|| document.to_owned()),
    ];
    let prompts = [config.embed_query_prompt.clone(), config.embed_document_prompt.clone()];
    let stored = Model::new(
        &named(
            model,
            dim,
            is_brain,
            prefixes[1] != document,
            [&prefixes[1], prompts[1].as_deref().unwrap_or_default()],
        ),
        dim,
    );
    let text_tokens = config.embed_text_tokens.map(|tokens| tokens as usize);
    let price = config.embed_price_per_million.or(known.map(|known| known.price_per_million)).unwrap_or(0.0);
    let settings = EmbedSettings {
        base_url: base_url.to_owned(),
        key,
        model: model.to_owned(),
        dim,
        call_texts: config.embedding_batch_size as usize,
        text_tokens: text_tokens.or(known.and_then(|known| known.text_tokens)),
        prefixes,
        prompts,
    };
    Ok(Embedder::Http(Meter::new(stored, price), Arc::new(EmbedClient::new(http, service, settings))))
}

/// The name under which vectors are stored. Those of documents with another beginning than usual are no vectors of the same model. A brain's model
/// may come with its dimension: then it is the same model as in the brain's own memory.
fn named(model: &str, dim: usize, is_brain: bool, is_other_prefix: bool, [prefix, prompt]: [&str; 2]) -> String {
    if is_other_prefix || !prompt.is_empty() {
        let hash = text::sha256(&format!("{prefix}\0{prompt}"));
        return format!("{model} {}", hex::encode(&hash[..4]));
    }
    let suffix = format!("_{dim}");
    model.strip_suffix(&suffix).filter(|_| is_brain).unwrap_or(model).to_owned()
}

/// Whether a secret is the one that is set. Hashes are compared, in constant time: texts of different lengths could be told apart.
pub fn is_brain_secret(config: &Config, given: &Secret) -> bool {
    use subtle::ConstantTimeEq as _;
    let hash = |secret: &Secret| text::sha256(secret.reveal());
    config.brain_secret().is_some_and(|wanted| hash(wanted).ct_eq(&hash(given)).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::of_flags;

    /// The stored name, the dimension and the price of what these settings choose, or why they do not.
    fn chosen(flags: &[&str]) -> Result<(String, usize, f64), String> {
        let config = of_flags(flags);
        let embedder = Embedder::from_config(&config, &Http::new().expect("a client"));
        embedder.map_err(|error| error.to_string()).map(|embedder| {
            let meter = embedder.meter();
            (meter.model.name.clone(), meter.model.dim, meter.price_per_million)
        })
    }

    #[test]
    fn each_service_has_its_usual_model() {
        let key = ["--embed-api-key", "k"];
        let brain = ["--boots-brain-url", "http://brain.example", "--brain-api-secret", "s"];
        let cases: [(&str, &[&str], &str, usize, f64); 10] = [
            ("openai", &key, "text_embedding_3_small_1536", 1_536, 0.02),
            ("voyage", &key, "voyage_4_1024", 1_024, 0.06),
            ("cohere", &key, "embed_v4_0_1536", 1_536, 0.12),
            ("ollama", &[], "embeddinggemma_768", 768, 0.0),
            ("brain", &brain, "text_embedding_3_small_1536", 1_536, 0.0),
            (
                "openai",
                &["--embed-api-key", "k", "--embed-model", "text-embedding-3-large"],
                "text_embedding_3_large_1536",
                1_536,
                0.13,
            ),
            (
                "voyage",
                &["--embed-api-key", "k", "--embed-dim", "256", "--embed-price-per-million", "1"],
                "voyage_4_256",
                256,
                1.0,
            ),
            ("ollama", &["--embed-model", "my-own", "--embed-dim", "100"], "my_own_100", 100, 0.0),
            (
                "tei",
                &["--embed-base-url", "http://t", "--embed-model", "BAAI/bge-m3", "--embed-dim", "1024"],
                "baai_bge_m3_1024",
                1_024,
                0.0,
            ),
            ("compatible", &["--embed-base-url", "http://c", "--embed-model", "m", "--embed-dim", "8"], "m_8", 8, 0.0),
        ];
        for (service, flags, name, dim, price) in cases {
            let chosen = chosen(&[&["--embedder", service], flags].concat());
            assert_eq!(chosen, Ok((name.to_owned(), dim, price)), "{service} {flags:?}");
        }
        let tributary =
            [&["--embedder", "brain", "--embed-model", "fast_256", "--embed-dim", "256"][..], &brain].concat();
        assert_eq!(
            chosen(&tributary).map(|(name, ..)| name).as_deref(),
            Ok("fast_256"),
            "as in the brain's own memory"
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        let cases: [(&[&str], &str); 9] = [
            (&["openai"], "EMBED_API_KEY is not set"),
            (&["voyage", "--embed-api-key", " "], "EMBED_API_KEY is not set"),
            (&["tei"], "EMBED_BASE_URL is not set"),
            (&["tei", "--embed-base-url", "http://t"], "EMBED_MODEL is not set"),
            (&["tei", "--embed-base-url", "http://t", "--embed-model", "m"], "EMBED_DIM is not set"),
            (&["compatible"], "EMBED_BASE_URL is not set"),
            (&["brain"], "BOOTS_BRAIN_URL is not set"),
            (&["brain", "--boots-brain-url", "http://b"], "BRAIN_API_SECRET is not set"),
            (
                &["openai", "--embed-api-key", "k", "--embed-model", "text-embedding-ada-002", "--embed-dim", "8"],
                "text-embedding-ada-002 has 1536 dimensions",
            ),
        ];
        for (flags, expected) in cases {
            let refused = chosen(&[&["--embedder"], flags].concat()).expect_err(expected);
            assert!(refused.contains(expected), "{flags:?}: {refused}");
        }
    }

    #[test]
    fn another_beginning_of_documents_is_another_model() {
        let with = |flags: &[&str]| chosen(&[&["--embedder", "ollama"], flags].concat()).map(|(name, ..)| name);
        let usual = with(&[]);
        assert_eq!(with(&["--embed-document-prefix", "title: none | text: "]), usual, "as usual");
        assert_eq!(with(&["--embed-query-prefix", "q: "]), usual, "questions are not stored");
        let other = with(&["--embed-document-prefix", "passage: "]);
        assert!(other != usual && other != with(&["--embed-document-prefix", ""]), "{other:?}");
    }

    #[test]
    fn only_the_secret_itself_opens() {
        let is_right = |flags: &[&str], given: &str| is_brain_secret(&of_flags(flags), &Secret::new(given));
        let set = ["--brain-api-secret", "canary"];
        assert!(is_right(&set, "canary"));
        for wrong in ["", "canar", "canary1", "Canary"] {
            assert!(!is_right(&set, wrong), "{wrong}");
        }
        assert!(!is_right(&[], "") && !is_right(&["--brain-api-secret", " "], " "), "none is set");
    }
}
