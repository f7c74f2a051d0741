//! Logs go to stderr, as text for people or JSON for machines.

use std::io::IsTerminal as _;

use anyhow::Context as _;
use engine::Config;
use engine::config::LogFormat;
use tracing_subscriber::EnvFilter;

pub fn start(config: &Config) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&config.log).with_context(|| format!("LOG={:?} is not a filter", config.log))?;
    // The database driver logs every slow statement with its text; that is shown only on request.
    let filter = if config.log.contains("sqlx") { filter } else { filter.add_directive("sqlx=error".parse()?) };
    // The MCP library tells what servers say, which is theirs to write and nobody's here to log.
    let filter = if config.log.contains("rmcp") { filter } else { filter.add_directive("rmcp=off".parse()?) };
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .log_internal_errors(false) // it would say so where nothing can be written, and die of it
        .with_ansi(std::io::stderr().is_terminal());
    match config.log_format {
        LogFormat::Text => logs.with_target(false).init(),
        LogFormat::Json => logs.json().flatten_event(true).init(),
    }
    Ok(())
}
