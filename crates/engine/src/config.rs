//! Every setting: its default, its environment variable and its help are one field here, or declared by a provider. `tributary config`
//! prints the values in force, and where they came from.

mod values;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgMatches, Args, ValueEnum, parser::ValueSource};
use connectors::models::{EmbedService, services};
use domain::{Region, Secret};
use ipnet::IpNet;
use serde::Serialize;

use self::values::{
    blob_url, default_data_dir, dollars, hook_url, lane_slots, micros, origin, public_url, rate_factor, text_lang,
};
use crate::mail::pending;
use crate::pull::settings::ProviderSettings;
use crate::work::Slots;

pub(crate) use self::values::network;
pub use self::values::{base_url, server_url};

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Settings (every one also as an environment variable)")]
pub struct Config {
    /// Folder of the embedded PostgreSQL, the master key and files.
    #[arg(long, env = "DATA_DIR", default_value_os_t = default_data_dir(), global = true, hide_short_help = true)]
    pub data_dir: PathBuf,

    /// An existing PostgreSQL 15+ with pgvector, instead of the embedded one. Must be a session connection, not a transaction pooler.
    #[arg(long, env = "DATABASE_URL", global = true, hide_env_values = true, hide_short_help = true)]
    pub database_url: Option<Secret>,

    /// Folder with the programs of the embedded PostgreSQL; `./tributary` sets it to the pinned package.
    #[arg(
        long,
        env = "PG_BIN_DIR",
        default_value = "/usr/lib/postgresql/18/bin",
        global = true,
        hide_short_help = true
    )]
    pub pg_bin_dir: PathBuf,

    /// The largest number of database connections of one process.
    #[arg(long, env = "DB_CONNECTIONS", default_value_t = 16, global = true, hide_short_help = true, value_parser = clap::value_parser!(u32).range(4..=500))]
    pub db_connections: u32,

    /// Address and port of the HTTP server.
    #[arg(long, env = "LISTEN", default_value = "127.0.0.1:7171", global = true, hide_short_help = true)]
    pub listen: SocketAddr,

    /// The address by which others reach this server through a proxy, such as `https://hear.example.com`. Links begin with it; https makes cookies secure.
    #[arg(long, env = "PUBLIC_URL", global = true, hide_short_help = true, value_parser = public_url)]
    pub public_url: Option<String>,

    /// Proxies whose `X-Forwarded-For` is believed, as addresses or networks. Default: those on this machine if PUBLIC_URL is set.
    #[arg(long, env = "TRUSTED_PROXIES", value_delimiter = ',', global = true, hide_short_help = true, value_parser = network)]
    pub trusted_proxies: Option<Vec<IpNet>>,

    /// Sites that may show these pages in a frame, as origins such as `https://crm.example.com`. Such a site learns how the agents of the
    /// signed-in person reach this server. Default: none.
    #[arg(long, env = "EMBED_ORIGINS", value_delimiter = ',', global = true, hide_short_help = true, value_parser = origin)]
    pub embed_origins: Vec<String>,

    /// Whether assistants are let in by OAuth: `auto` if PUBLIC_URL is https, `off` never, `loopback` also at an address of this machine without
    /// https, to try it out.
    #[arg(long, env = "MCP_OAUTH", default_value = "auto", global = true, hide_short_help = true)]
    pub mcp_oauth: McpOauth,

    /// Further names under which programs reach `/mcp`, such as `tributary` in a network of containers. That of PUBLIC_URL, those of this machine
    /// and IP addresses are always taken.
    #[arg(long, env = "MCP_HOSTS", value_delimiter = ',', global = true, hide_short_help = true)]
    pub mcp_hosts: Vec<String>,

    /// The largest number of calls of tools over MCP of one key in a minute.
    #[arg(long, env = "MCP_CALLS_PER_MINUTE", default_value_t = 600, global = true, hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub mcp_calls_per_minute: u32,

    /// Whether the arguments of calls over MCP are kept with them, for 90 days. They can contain anything that people ask.
    #[arg(long, env = "MCP_KEEP_ARGUMENTS", default_value_t = false, action = clap::ArgAction::Set, global = true, hide_short_help = true)]
    pub mcp_keep_arguments: bool,

    /// The country of telephone numbers without a country code, such as US, DE or BR. Default: none; such numbers are matched only by their
    /// last ten digits.
    #[arg(long, env = "PHONE_REGION", global = true, hide_short_help = true)]
    pub phone_region: Option<Region>,

    /// The largest request body, in bytes, for routes without a limit of their own.
    #[arg(long, env = "REQUEST_MAX_BYTES", default_value_t = 1_048_576, global = true, hide_short_help = true)]
    pub request_max_bytes: usize,

    /// The largest file or text that can be remembered directly, in bytes.
    #[arg(long, env = "DOCUMENT_MAX_BYTES", default_value_t = 52_428_800, global = true, hide_short_help = true)]
    pub document_max_bytes: usize,

    /// The longest time for a file or text to arrive and be remembered, in seconds.
    #[arg(long, env = "DOCUMENT_SECS", default_value_t = 300, global = true, hide_short_help = true)]
    pub document_secs: u64,

    /// The longest time for one request, in seconds. Event streams are exempt.
    #[arg(long, env = "REQUEST_SECS", default_value_t = 30, global = true, hide_short_help = true)]
    pub request_secs: u64,

    /// The interval of a worker's heartbeats, in seconds. After twice that time without one it is late, after ten times it is dead. A worker whose process has ended is dead sooner.
    #[arg(long, env = "WORKER_HEARTBEAT_SECS", default_value_t = 5, global = true, hide_short_help = true, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub worker_heartbeat_secs: u64,

    /// The number of batches of one lane that a worker runs at once, from 1 to 64. Single lanes may have their own number: `4,ingestion_queue=2`.
    #[arg(long, env = "LANE_SLOTS", default_value = "2", global = true, hide_short_help = true, value_parser = lane_slots)]
    pub lane_slots: Slots,

    /// The language of texts that are too short to recognise, by PostgreSQL's name: english, german, french …; `simple` for none.
    #[arg(long, env = "TEXT_LANG", default_value = "english", global = true, hide_short_help = true, value_parser = text_lang)]
    pub text_lang: String,

    /// Whether a worker is also an agent that claims and processes activities. `up` is one unless this is `false`.
    #[arg(long, env = "BUILTIN_AGENT", global = true, hide_short_help = true)]
    pub builtin_agent: Option<bool>,

    /// The largest number of activities that an agent processes at once. The Agents page can set a smaller number.
    #[arg(long, env = "AGENT_CONCURRENCY", default_value_t = 8, global = true, hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub agent_concurrency: u32,

    /// The time that a stopping process waits for its items before it hands them back, in seconds.
    #[arg(long, env = "DRAIN_SECS", default_value_t = 20, global = true, hide_short_help = true)]
    pub drain_secs: u64,

    /// The key that encrypts other people's secrets: 32 bytes in base64, older keys on further lines. Default: the file master.key of the
    /// data folder.
    #[arg(long, env = "MASTER_KEY", global = true, hide_env_values = true, hide_short_help = true)]
    pub master_key: Option<Secret>,

    /// Further keys that open secrets and seal none, separated by spaces: the previous one during a rotation (`tributary key rotate-master`).
    #[arg(long, env = "MASTER_KEY_OLD", global = true, hide_env_values = true, hide_short_help = true)]
    pub master_key_old: Option<Secret>,

    /// The place for files and large bodies: `file:///…` or `s3://bucket/prefix` (with the usual AWS_* variables; AWS_ENDPOINT for other
    /// providers). Default: the folder blobs of the data folder.
    #[arg(long, env = "BLOB_URL", global = true, hide_short_help = true, value_parser = blob_url)]
    pub blob_url: Option<String>,

    /// A URL that gets a POST with JSON for every alert that opens.
    #[arg(long, env = "ALERT_WEBHOOK_URL", global = true, hide_env_values = true, hide_short_help = true)]
    pub alert_webhook_url: Option<Secret>,

    /// The embedder: `local` on this machine, a service (`openai`, `voyage`, `cohere`, `ollama`, `tei`), `compatible` for any other one with OpenAI's
    /// API, or `brain` for another Tributary. `fast`, also on this machine, is for tests and very large corpora: it takes next to no time and
    /// finds less. docs/embedders.md says what each needs.
    #[arg(long, env = "EMBEDDER", default_value = "local", global = true, hide_short_help = true)]
    pub embedder: EmbedderKind,

    /// The address of the service, without `/embeddings`, `/v2/embed`, `/api/embed` or `/embed`. Default: that of OpenAI, Voyage or Cohere;
    /// http://127.0.0.1:11434 for `ollama`.
    #[arg(long, env = "EMBED_BASE_URL", global = true, hide_short_help = true, value_parser = base_url)]
    pub embed_base_url: Option<String>,

    /// Its key.
    #[arg(long, env = "EMBED_API_KEY", global = true, hide_env_values = true, hide_short_help = true)]
    pub embed_api_key: Option<Secret>,

    /// Its model. Default: text-embedding-3-small for `openai` and `brain`, voyage-4, embed-v4.0 for `cohere`, embeddinggemma for `ollama`.
    #[arg(long, env = "EMBED_MODEL", global = true, hide_short_help = true)]
    pub embed_model: Option<String>,

    /// The number of dimensions of that model's vectors. Default: that of the model, if it is a known one.
    #[arg(long, env = "EMBED_DIM", global = true, hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..=4_000))]
    pub embed_dim: Option<u32>,

    /// The tokens of the longest text that the model takes. Longer ones are embedded in parts. Default: as known of the model; else the service
    /// says which are too long.
    #[arg(long, env = "EMBED_TEXT_TOKENS", global = true, hide_short_help = true, value_parser = clap::value_parser!(u32).range(64..))]
    pub embed_text_tokens: Option<u32>,

    /// The beginning of every question, for models that tell questions and documents apart by it, such as `query: `. Default: as known of the model.
    #[arg(long, env = "EMBED_QUERY_PREFIX", global = true, hide_short_help = true)]
    pub embed_query_prefix: Option<String>,

    /// The beginning of every document, such as `passage: `. With another one it counts as another model. Default: as known of the model.
    #[arg(long, env = "EMBED_DOCUMENT_PREFIX", global = true, hide_short_help = true)]
    pub embed_document_prefix: Option<String>,

    /// The name of the model's own prompt for questions, at `tei`. Default: none.
    #[arg(long, env = "EMBED_QUERY_PROMPT", global = true, hide_short_help = true)]
    pub embed_query_prompt: Option<String>,

    /// The name of the model's own prompt for documents, at `tei`. With another one it counts as another model. Default: none.
    #[arg(long, env = "EMBED_DOCUMENT_PROMPT", global = true, hide_short_help = true)]
    pub embed_document_prompt: Option<String>,

    /// The address of `brain`, without `/internal/embed`.
    #[arg(long, env = "BOOTS_BRAIN_URL", global = true, hide_short_help = true, value_parser = base_url)]
    pub boots_brain_url: Option<String>,

    /// The secret of `brain`. If it is set, this server makes vectors for others that show it, at `POST /internal/embed`. Default: none; the route
    /// is closed.
    #[arg(long, env = "BRAIN_API_SECRET", global = true, hide_env_values = true, hide_short_help = true)]
    pub brain_api_secret: Option<Secret>,

    /// The model of `local`: `gte-small`, or `minilm` where memory is short. `minilm` takes half the time and finds less.
    #[arg(long, env = "LOCAL_MODEL", default_value = "gte-small", global = true, hide_short_help = true)]
    pub local_model: LocalModelKind,

    /// Folder with the models of `local`; `./tributary` sets it to the pinned package's.
    #[arg(long, env = "LOCAL_MODEL_DIR", global = true, hide_short_help = true)]
    pub local_model_dir: Option<PathBuf>,

    /// The library ONNX Runtime, which runs them; `./tributary` sets it to the pinned package's.
    #[arg(long, env = "ONNXRUNTIME_LIB", global = true, hide_short_help = true)]
    pub onnxruntime_lib: Option<PathBuf>,

    /// Folder with the models that recognise letters in pictures; `./tributary` sets it to the pinned package's. Without it scans are not read.
    #[arg(long, env = "READING_MODELS_DIR", global = true, hide_short_help = true)]
    pub reading_models_dir: Option<PathBuf>,

    /// Folder with the model that recognises speech; `./tributary` sets it to the pinned package's. Without it recordings are not
    /// heard here.
    #[arg(long, env = "SPEECH_MODELS_DIR", global = true, hide_short_help = true)]
    pub speech_models_dir: Option<PathBuf>,

    /// The largest file that is read, in bytes.
    #[arg(long, env = "FILE_MAX_BYTES", default_value_t = 104_857_600, global = true, hide_short_help = true)]
    pub file_max_bytes: u64,

    /// The largest number of pages of a file that is read.
    #[arg(long, env = "FILE_MAX_PAGES", default_value_t = 3_000, global = true, hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub file_max_pages: u32,

    /// The program that reads files, with the argument `read`. Default: this one.
    #[arg(long, env = "READER_PROGRAM", global = true, hide_short_help = true)]
    pub reader_program: Option<PathBuf>,

    /// Whether memories move to the model of `EMBEDDER` by themselves when that changes, within the monthly cap. Otherwise
    /// `tributary memory reembed` moves them.
    #[arg(long, env = "AUTO_REEMBED", default_value_t = true, action = clap::ArgAction::Set, global = true, hide_short_help = true)]
    pub auto_reembed: bool,

    /// Folder with the model of `fast`; `./tributary` sets it to the pinned package's.
    #[arg(long, env = "FAST_MODEL_DIR", global = true, hide_short_help = true)]
    pub fast_model_dir: Option<PathBuf>,

    /// The transcriber of calls: `local`, the model on this machine; `service`, that of TRANSCRIBE_BASE_URL; `off`, nobody here, so that they wait for
    /// an agent that can. Default: `service` if TRANSCRIBE_BASE_URL is set, else `local`.
    #[arg(long, env = "TRANSCRIBE", global = true, hide_short_help = true)]
    pub transcribe: Option<TranscribeKind>,

    /// The address of the transcriber, without `/audio/transcriptions`: any service with OpenAI's API, such as `https://api.openai.com/v1`.
    #[arg(long, env = "TRANSCRIBE_BASE_URL", global = true, hide_short_help = true, value_parser = base_url)]
    pub transcribe_base_url: Option<String>,

    /// Its key.
    #[arg(long, env = "TRANSCRIBE_API_KEY", global = true, hide_env_values = true, hide_short_help = true)]
    pub transcribe_api_key: Option<Secret>,

    /// Its model.
    #[arg(long, env = "TRANSCRIBE_MODEL", default_value = "whisper-1", global = true, hide_short_help = true)]
    pub transcribe_model: String,

    /// The API of the language model that writes summaries, finds facts and answers questions: Anthropic's, or OpenAI's, which other services
    /// have too. Default: none; summaries and facts are made by rules, and questions are answered with quotations.
    #[arg(long, env = "LLM", default_value = "none", global = true, hide_short_help = true)]
    pub llm: LlmKind,

    /// Its address, without `/v1/messages` or `/chat/completions`. Default: `https://api.anthropic.com` or `https://api.openai.com/v1`.
    #[arg(long, env = "LLM_BASE_URL", global = true, hide_short_help = true, value_parser = base_url)]
    pub llm_base_url: Option<String>,

    /// Its key.
    #[arg(long, env = "LLM_API_KEY", global = true, hide_env_values = true, hide_short_help = true)]
    pub llm_api_key: Option<Secret>,

    /// Its model, by the name that its provider gave it.
    #[arg(long, env = "LLM_MODEL", global = true, hide_short_help = true)]
    pub llm_model: Option<String>,

    /// The price of a million tokens of a question at that model, in dollars, for estimates and the cap. Default: that of well-known models, 0
    /// for others.
    #[arg(long, env = "LLM_INPUT_PRICE_PER_MILLION", global = true, hide_short_help = true, value_parser = dollars)]
    pub llm_input_price_per_million: Option<f64>,

    /// The price of a million tokens of an answer, likewise.
    #[arg(long, env = "LLM_OUTPUT_PRICE_PER_MILLION", global = true, hide_short_help = true, value_parser = dollars)]
    pub llm_output_price_per_million: Option<f64>,

    /// Private networks or addresses that recordings may be fetched from, such as that of your own recorder. A Twilio channel's credentials
    /// are sent there too. Default: none.
    #[arg(long, env = "OUTBOUND_ALLOW", value_delimiter = ',', global = true, hide_short_help = true, value_parser = network)]
    pub outbound_allow: Vec<IpNet>,

    /// The largest recording that is fetched, in bytes.
    #[arg(long, env = "RECORDING_MAX_BYTES", default_value_t = 209_715_200, global = true, hide_short_help = true)]
    pub recording_max_bytes: u64,

    /// The settings that each provider of sources declares.
    #[command(flatten)]
    pub providers: ProviderSettings,

    /// A token is refreshed when it has this many seconds left.
    #[arg(long, env = "TOKEN_REFRESH_SKEW_SECONDS", default_value_t = 60, global = true, hide_short_help = true)]
    pub token_refresh_skew_seconds: u64,

    /// A factor on the providers' usual request limits, for accounts that are allowed more.
    #[arg(long, env = "PULL_RATE_FACTOR", default_value_t = 1.0, global = true, hide_short_help = true, value_parser = rate_factor)]
    pub pull_rate_factor: f64,

    /// The interval at which a new mailbox is asked for changes while its provider does not tell of them, in seconds. Each mailbox can have its own.
    #[arg(long, env = "MAILBOX_POLL_SECS", default_value_t = 60, global = true, hide_short_help = true, value_parser = clap::value_parser!(u64).range(60..=2_592_000))]
    pub mailbox_poll_secs: u64,

    /// A mailbox whose provider tells of changes is asked all the same after this time without a sync, in seconds.
    #[arg(long, env = "MAILBOX_SAFETY_SECS", default_value_t = 3_600, global = true, hide_short_help = true, value_parser = clap::value_parser!(u64).range(60..=2_592_000))]
    pub mailbox_safety_secs: u64,

    /// The pause between two syncs of a mailbox that notices ask for, in seconds: what is told meanwhile is one sync.
    #[arg(long, env = "MAILBOX_REST_SECS", default_value_t = 2, global = true, hide_short_help = true, value_parser = clap::value_parser!(u64).range(0..=3_600))]
    pub mailbox_rest_secs: u64,

    /// Whether a notice of a mailbox starts its sync at once. Otherwise MAILBOX_PENDING_SECS alone paces the syncs, which holds a flood back.
    #[arg(long, env = "MAILBOX_WAKE", default_value_t = true, action = clap::ArgAction::Set, global = true, hide_short_help = true)]
    pub mailbox_wake: bool,

    /// The interval at which syncs begin of mailboxes that something was heard of, where none has begun yet, in seconds.
    #[arg(long, env = "MAILBOX_PENDING_SECS", default_value_t = 5, global = true, hide_short_help = true, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub mailbox_pending_secs: u64,

    /// The address by which providers of mailboxes reach this server, without `/webhooks`. Default: PUBLIC_URL, if it is https. Plain http is
    /// taken for this machine alone.
    #[arg(long, env = "MAILBOX_HOOK_URL", global = true, hide_short_help = true, value_parser = hook_url)]
    pub mailbox_hook_url: Option<String>,

    /// Whether sources are read from built-in sample data instead of from their providers.
    #[arg(long, env = "INTEGRATIONS_USE_FIXTURES", default_value_t = false, action = clap::ArgAction::Set, global = true, hide_short_help = true)]
    pub integrations_use_fixtures: bool,

    /// The largest number of texts in one call to an embedding service.
    #[arg(long, env = "EMBEDDING_BATCH_SIZE", default_value_t = 32, global = true, hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..=2_048))]
    pub embedding_batch_size: u32,

    /// The price of a million tokens at that service, in dollars, for estimates. Default: as known of the model (0.02 for
    /// text-embedding-3-small, 0.13 for -3-large, 0.06 for voyage-4, 0.12 for embed-v4.0), 0 for others.
    #[arg(long, env = "EMBED_PRICE_PER_MILLION", global = true, hide_short_help = true)]
    pub embed_price_per_million: Option<f64>,

    /// The largest cost of a tenant's vectors and answers in a month, in dollars. Beyond it, new documents are found by keyword and get their
    /// vectors in the next month, or when this is raised; questions are answered with quotations. Default: no cap.
    #[arg(long, env = "EMBED_MONTHLY_CAP", global = true, hide_short_help = true, value_parser = dollars)]
    pub embed_monthly_cap: Option<f64>,

    /// Raise an alert when the vectors of 1,000 documents cost more than this, in dollars.
    #[arg(long, env = "EMBED_ALERT_PER_1000", global = true, hide_short_help = true, value_parser = dollars)]
    pub embed_alert_per_1000: Option<f64>,

    /// The log level: error, warn, info, debug, or a filter such as `info,store=debug`.
    #[arg(long, env = "LOG", default_value = "info", global = true, hide_short_help = true)]
    pub log: String,

    /// The log format.
    #[arg(long, env = "LOG_FORMAT", default_value = "text", global = true, hide_short_help = true)]
    pub log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum McpOauth {
    Auto,
    Off,
    Loopback,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EmbedderKind {
    Local,
    Fast,
    Openai,
    Voyage,
    Cohere,
    Ollama,
    Tei,
    Compatible,
    Brain,
}

impl EmbedderKind {
    /// The service; none if the vectors are made on this machine.
    pub fn service(self) -> Option<&'static EmbedService> {
        match self {
            Self::Local | Self::Fast => None,
            Self::Openai => Some(&services::OPENAI),
            Self::Voyage => Some(&services::VOYAGE),
            Self::Cohere => Some(&services::COHERE),
            Self::Ollama => Some(&services::OLLAMA),
            Self::Tei => Some(&services::TEI),
            Self::Compatible => Some(&services::COMPATIBLE),
            Self::Brain => Some(&services::BRAIN),
        }
    }
}

/// A model of `local`. Each has 384 dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LocalModelKind {
    GteSmall,
    Minilm,
}

impl LocalModelKind {
    /// The name that its makers gave it. Tables are named after it.
    pub fn name(self) -> &'static str {
        match self {
            Self::GteSmall => "gte-small",
            Self::Minilm => "all-MiniLM-L6-v2",
        }
    }

    /// The name of its folder, which is also its name in the settings.
    pub fn folder(self) -> &'static str {
        match self {
            Self::GteSmall => "gte-small",
            Self::Minilm => "minilm",
        }
    }

    /// The largest number of tokens that it reads at once.
    pub fn most_tokens(self) -> usize {
        match self {
            Self::GteSmall => 512,
            Self::Minilm => 256,
        }
    }
}

/// The transcriber of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TranscribeKind {
    Local,
    Service,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LlmKind {
    None,
    Anthropic,
    Openai,
}

impl Config {
    /// Returns the address of this server for people: the public URL, or else the address it listens on.
    pub fn base_url(&self) -> String {
        self.public_url.clone().unwrap_or_else(|| match self.listen.ip() {
            ip if ip.is_unspecified() => format!("http://127.0.0.1:{}", self.listen.port()),
            _ => format!("http://{}", self.listen),
        })
    }
}

impl Config {
    /// Returns the master keys of the environment, one per line: the one that seals, then those that only open.
    pub fn master_keys(&self) -> Option<Secret> {
        let key = self.master_key.as_ref()?;
        let old = self.master_key_old.as_ref().map_or("", Secret::reveal);
        Some(Secret::new(format!("{}\n{old}\n", key.reveal())))
    }
}

impl Config {
    /// Whether the other end of a connection is a trusted proxy.
    pub fn is_trusted_proxy(&self, peer: IpAddr) -> bool {
        let peer = peer.to_canonical();
        match &self.trusted_proxies {
            Some(networks) => networks.iter().any(|network| network.contains(&peer)),
            None => self.public_url.is_some() && peer.is_loopback(),
        }
    }
}

impl Config {
    /// Returns the monthly cap of a tenant's vectors and answers in millionths of a dollar.
    pub fn embed_cap_micros(&self) -> Option<i64> {
        self.embed_monthly_cap.map(micros)
    }

    /// Returns the secret of `POST /internal/embed`. A blank one is none.
    pub fn brain_secret(&self) -> Option<&Secret> {
        self.brain_api_secret.as_ref().filter(|secret| !secret.reveal().trim().is_empty())
    }

    pub fn embed_alert_micros(&self) -> Option<i64> {
        self.embed_alert_per_1000.map(micros)
    }
}

impl Config {
    /// Returns the address by which providers of mailboxes reach this server; none if they cannot.
    pub fn hook_base(&self) -> Option<&str> {
        let public = self.public_url.as_deref().filter(|url| url.starts_with("https://"));
        self.mailbox_hook_url.as_deref().or(public)
    }

    /// Returns the interval of a schedule that has a setting.
    pub fn schedule_every(&self, name: &str) -> Option<Duration> {
        (name == pending::SCHEDULE).then(|| Duration::from_secs(self.mailbox_pending_secs))
    }
}

/// One line of `tributary config`.
#[derive(Debug, Serialize)]
pub struct Setting {
    pub name: String,
    pub value: String,
    /// `default`, `environment` or `flag`.
    pub from: &'static str,
    pub help: String,
}

/// Returns every setting. Secrets print as `***`, because their type does.
pub fn in_force(command: &clap::Command, matches: &ArgMatches) -> Vec<Setting> {
    let mut settings = Vec::new();
    for arg in command.get_arguments() {
        let (Some(env), id) = (arg.get_env(), arg.get_id().as_str()) else { continue };
        let raw = matches.try_get_raw(id).ok().flatten();
        let value = if arg.is_hide_env_values_set() {
            raw.map(|_| "***".to_owned())
        } else {
            raw.map(|values| values.map(|value| value.to_string_lossy().into_owned()).collect::<Vec<_>>().join(","))
        };
        let from = match matches.value_source(id) {
            Some(ValueSource::CommandLine) => "flag",
            Some(ValueSource::EnvVariable) => "environment",
            _ => "default",
        };
        settings.push(Setting {
            name: env.to_string_lossy().into_owned(),
            value: value.unwrap_or_else(|| "(not set)".into()),
            from,
            help: arg.get_help().map(ToString::to_string).unwrap_or_default(),
        });
    }
    settings
}

#[cfg(test)]
pub(crate) mod tests;
