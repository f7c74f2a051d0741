//! The settings of a demonstration: every provider is the one that runs beside it, and nothing else outside is asked.

use std::net::SocketAddr;
use std::path::PathBuf;

use engine::Config;
use engine::config::{EmbedderKind, LlmKind};
use fakes::Fakes;

/// Points the settings at the fakes. Every other setting keeps its value.
pub fn pointed_at(fakes: &Fakes, config: Config, data_dir: PathBuf, listen: SocketAddr, log: String) -> Config {
    let mut providers = config.providers.clone();
    for (name, value) in fakes.settings() {
        providers.set(name, value);
    }
    Config {
        data_dir,
        listen,
        log,
        database_url: None,
        public_url: None,
        trusted_proxies: None,
        embed_origins: Vec::new(),
        master_key: None,
        blob_url: None,
        alert_webhook_url: None,
        embedder: EmbedderKind::Fast,
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
    all.extend(config.providers.iter().map(|(name, value)| (name, value.to_owned())));
    all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
