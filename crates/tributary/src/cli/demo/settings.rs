//! The settings of a demonstration: every provider is the one that runs beside it, and nothing else outside is asked.

use std::net::SocketAddr;
use std::path::PathBuf;

use domain::Secret;
use engine::Config;
use engine::config::{EmbedderKind, LlmKind};
use fakes::{CLIENT_ID, CLIENT_SECRET, Fakes};

/// What is not named here is as it was said, or as usual.
pub fn pointed_at(fakes: &Fakes, config: Config, data_dir: PathBuf, listen: SocketAddr, log: String) -> Config {
    let url = fakes.url();
    let (id, secret) = (|| Some(CLIENT_ID.to_owned()), || Some(Secret::new(CLIENT_SECRET)));
    let oauth = |provider: &str, end: &str| format!("{url}/oauth/{provider}/{end}");
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
        hubspot_client_id: id(),
        hubspot_client_secret: secret(),
        hubspot_api_url: format!("{url}/hubspot"),
        hubspot_authorize_url: oauth("hubspot", "authorize"),
        hubspot_token_url: oauth("hubspot", "token"),
        hubspot_mcp_url: Some(format!("{url}/mcp/hubspot")),
        google_client_id: id(),
        google_client_secret: secret(),
        drive_api_url: format!("{url}/drive/v3"),
        google_authorize_url: oauth("google_drive", "authorize"),
        google_token_url: oauth("google_drive", "token"),
        quickbooks_client_id: id(),
        quickbooks_client_secret: secret(),
        quickbooks_api_url: format!("{url}/quickbooks"),
        quickbooks_authorize_url: oauth("quickbooks", "authorize"),
        quickbooks_token_url: oauth("quickbooks", "token"),
        ..config
    }
}

/// The same for a worker, by the names of its variables. Its other settings are the usual ones.
pub fn of_worker(config: &Config) -> Vec<(&'static str, String)> {
    let path = |path: &PathBuf| path.to_string_lossy().into_owned();
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let secret = |value: &Option<Secret>| value.as_ref().map(|secret| secret.reveal().to_owned()).unwrap_or_default();
    let mut all = vec![
        ("DATA_DIR", path(&config.data_dir)),
        ("PG_BIN_DIR", path(&config.pg_bin_dir)),
        ("LISTEN", config.listen.to_string()),
        ("BUILTIN_AGENT", "false".into()),
        ("WORKER_HEARTBEAT_SECS", config.worker_heartbeat_secs.to_string()),
        ("DRAIN_SECS", config.drain_secs.to_string()),
        ("LANE_SLOTS", config.lane_slots.to_string()),
        ("LOG", "info".into()),
        ("HUBSPOT_CLIENT_ID", text(&config.hubspot_client_id)),
        ("HUBSPOT_CLIENT_SECRET", secret(&config.hubspot_client_secret)),
        ("HUBSPOT_API_URL", config.hubspot_api_url.clone()),
        ("HUBSPOT_TOKEN_URL", config.hubspot_token_url.clone()),
        ("HUBSPOT_MCP_URL", text(&config.hubspot_mcp_url)),
        ("GOOGLE_CLIENT_ID", text(&config.google_client_id)),
        ("GOOGLE_CLIENT_SECRET", secret(&config.google_client_secret)),
        ("DRIVE_API_URL", config.drive_api_url.clone()),
        ("GOOGLE_TOKEN_URL", config.google_token_url.clone()),
        ("QUICKBOOKS_CLIENT_ID", text(&config.quickbooks_client_id)),
        ("QUICKBOOKS_CLIENT_SECRET", secret(&config.quickbooks_client_secret)),
        ("QUICKBOOKS_API_URL", config.quickbooks_api_url.clone()),
        ("QUICKBOOKS_TOKEN_URL", config.quickbooks_token_url.clone()),
    ];
    all.extend(config.fast_model_dir.as_ref().map(|dir| ("FAST_MODEL_DIR", path(dir))));
    all
}
