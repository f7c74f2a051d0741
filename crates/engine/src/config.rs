//! Every setting: its default, its environment variable and its help are one field here. `tributary config` prints what is in
//! force, and where it came from.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgMatches, Args, ValueEnum, parser::ValueSource};
use domain::Secret;
use serde::Serialize;

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

    /// Most database connections of one process.
    #[arg(long, env = "DB_CONNECTIONS", default_value_t = 16, global = true, hide_short_help = true, value_parser = clap::value_parser!(u32).range(4..=500))]
    pub db_connections: u32,

    /// Address and port of the HTTP server.
    #[arg(long, env = "LISTEN", default_value = "127.0.0.1:7171", global = true, hide_short_help = true)]
    pub listen: SocketAddr,

    /// How others reach this server, when a proxy stands before it, such as `https://hear.example.com`. Shown in links; https makes cookies secure.
    #[arg(long, env = "PUBLIC_URL", global = true, hide_short_help = true, value_parser = public_url)]
    pub public_url: Option<String>,

    /// Largest request body accepted, in bytes, where a door has no limit of its own.
    #[arg(long, env = "REQUEST_MAX_BYTES", default_value_t = 1_048_576, global = true, hide_short_help = true)]
    pub request_max_bytes: usize,

    /// Longest time one request may take, in seconds; event streams are exempt.
    #[arg(long, env = "REQUEST_SECS", default_value_t = 30, global = true, hide_short_help = true)]
    pub request_secs: u64,

    /// How often a worker says that it lives, in seconds. Silent for twice that it is late, for ten times it is dead.
    #[arg(long, env = "WORKER_HEARTBEAT_SECS", default_value_t = 5, global = true, hide_short_help = true, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub worker_heartbeat_secs: u64,

    /// How many batches of one lane a worker runs at once.
    #[arg(long, env = "LANE_SLOTS", default_value_t = 2, global = true, hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub lane_slots: u32,

    /// How long a stopping process waits for work in hand before it hands it back, in seconds.
    #[arg(long, env = "DRAIN_SECS", default_value_t = 20, global = true, hide_short_help = true)]
    pub drain_secs: u64,

    /// Seals other people's secrets: 32 bytes in base64, older keys on further lines. Default: the file master.key of the data folder.
    #[arg(long, env = "MASTER_KEY", global = true, hide_env_values = true, hide_short_help = true)]
    pub master_key: Option<Secret>,

    /// Gets a POST with JSON for every alert that opens.
    #[arg(long, env = "ALERT_WEBHOOK_URL", global = true, hide_env_values = true, hide_short_help = true)]
    pub alert_webhook_url: Option<Secret>,

    /// What is logged: error, warn, info, debug, or a filter such as `info,store=debug`.
    #[arg(long, env = "LOG", default_value = "info", global = true, hide_short_help = true)]
    pub log: String,

    /// How it is logged.
    #[arg(long, env = "LOG_FORMAT", default_value = "text", global = true, hide_short_help = true)]
    pub log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

impl Config {
    /// Where people find this server: the public URL, else the address it listens on.
    pub fn base_url(&self) -> String {
        self.public_url.clone().unwrap_or_else(|| match self.listen.ip() {
            ip if ip.is_unspecified() => format!("http://127.0.0.1:{}", self.listen.port()),
            _ => format!("http://{}", self.listen),
        })
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

/// Every setting in force. Secrets print as `***`, because their type does.
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

/// As root a folder that the server's own user can reach; else the user's own.
fn default_data_dir() -> PathBuf {
    if store::embedded::is_root() {
        return "/var/lib/tributary".into();
    }
    let home = || std::env::var_os("HOME").map_or_else(|| PathBuf::from("."), PathBuf::from);
    std::env::var_os("XDG_DATA_HOME").map_or_else(|| home().join(".local/share"), PathBuf::from).join("tributary")
}

fn public_url(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")).unwrap_or_default();
    let is_plain = !rest.is_empty() && rest.chars().all(|c| c.is_ascii_alphanumeric() || "-.:/[]_".contains(c));
    if is_plain {
        Ok(text.trim_end_matches('/').to_owned())
    } else {
        Err("a public URL looks like https://hear.example.com".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_urls_are_plain_origins() {
        assert_eq!(public_url("https://hear.example.com/").as_deref(), Ok("https://hear.example.com"));
        for bad in ["", "hear.example.com", "https://", "javascript:alert(1)", "https://a b", "https://a?x=1"] {
            assert!(public_url(bad).is_err(), "{bad:?} was accepted");
        }
    }
}
