//! The settings of a demonstration: every provider is the one that runs beside it, and nothing else outside is asked.

use std::net::SocketAddr;
use std::path::PathBuf;

use engine::Config;
use engine::config::{EmbedderKind, LlmKind, TranscribeKind};
use fakes::Fakes;

use super::mailboxes;

/// Points the settings at the fakes. Every other setting keeps its value.
pub fn pointed_at(fakes: &Fakes, config: Config, data_dir: PathBuf, listen: SocketAddr, log: String) -> Config {
    let mut providers = config.providers.clone();
    for (name, value) in fakes.settings() {
        providers.set(name, value);
    }
    // Providers post in plain text to this machine alone; elsewhere mailboxes are asked for news.
    let config = Config { listen, public_url: None, ..config };
    let base_url = config.base_url();
    for (name, value) in mailboxes::topic_settings(fakes, &base_url) {
        providers.set(name, value);
    }
    Config {
        mailbox_hook_url: base_url.starts_with("http://127.0.0.1:").then_some(base_url),
        data_dir,
        log,
        database_url: None,
        trusted_proxies: None,
        embed_origins: Vec::new(),
        master_key: None,
        blob_url: None,
        alert_webhook_url: None,
        embedder: EmbedderKind::Fast,
        transcribe: Some(TranscribeKind::Off),
        transcribe_base_url: None,
        llm: LlmKind::None,
        outbound_allow: Vec::new(),
        // The agent runs in the process that is never killed.
        builtin_agent: Some(false),
        // Dead after ten seconds, not fifty: nobody wants to wait for that here.
        worker_heartbeat_secs: 1,
        drain_secs: config.drain_secs.min(5),
        integrations_use_fixtures: false,
        providers,
        ..config
    }
}

/// The same for a worker, by the names of its variables. Its other settings are the usual ones.
pub fn of_worker(config: &Config) -> Vec<(String, String)> {
    let path = |path: &PathBuf| path.to_string_lossy().into_owned();
    let mut all = vec![
        ("DATA_DIR", path(&config.data_dir)),
        ("PG_BIN_DIR", path(&config.pg_bin_dir)),
        ("LISTEN", config.listen.to_string()),
        ("EMBEDDER", "fast".into()),
        ("BUILTIN_AGENT", "false".into()),
        ("WORKER_HEARTBEAT_SECS", config.worker_heartbeat_secs.to_string()),
        ("DRAIN_SECS", config.drain_secs.to_string()),
        ("LANE_SLOTS", config.lane_slots.to_string()),
        ("LOG", "info".into()),
    ];
    all.extend(config.fast_model_dir.as_ref().map(|dir| ("FAST_MODEL_DIR", path(dir))));
    all.extend(config.mailbox_hook_url.as_ref().map(|url| ("MAILBOX_HOOK_URL", url.clone())));
    all.extend(config.providers.iter().map(|(name, value)| (name, value.to_owned())));
    all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
