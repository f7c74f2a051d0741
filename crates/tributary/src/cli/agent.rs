//! `tributary agent`: processes activities on this device, for a server that may be elsewhere.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use connectors::{Http, Rest, RestError};
use domain::Secret;
use engine::Config;
use engine::agent::remote::Remote;
use engine::enrich::Processors;

use super::process;
use crate::logging;

#[derive(clap::Args)]
pub struct Args {
    /// The server, such as `https://hear.example.com`.
    #[arg(long, env = "TRIBUTARY_URL", default_value = "http://127.0.0.1:7171", value_parser = engine::config::server_url)]
    url: String,
    /// A key for this person and device: `tributary key create laptop --scopes agent --person ann@acme.example`.
    #[arg(long, env = "TRIBUTARY_KEY", hide_env_values = true)]
    key: Option<Secret>,
    /// The name of this device on the Agents page. Default: its host name.
    #[arg(long)]
    device: Option<String>,
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let Some(key) = args.key else {
        bail!(
            "an agent needs a key\n\nhint: make one with `tributary key create laptop --scopes agent --person ann@acme.example`, and set TRIBUTARY_KEY to it"
        );
    };
    logging::start(&config)?;
    let stop = process::stop_on_signals(&config)?;
    let http = Http::new()?;
    let processors = Processors::new(&config, &http)?;
    let (most, drain) = (config.agent_concurrency as usize, Duration::from_secs(config.drain_secs));
    let device = args.device.unwrap_or_else(engine::agent::remote::device_name);
    let remote = Remote::new(Rest::new(http, &args.url, key), config, device.clone());
    match remote.introduce().await {
        Ok(orders) => tracing::info!(
            "{device} processes {} for {}, {} at once; {}",
            processors.source_types().join(" and "),
            args.url,
            orders.concurrency.min(most),
            processors.in_words()
        ),
        Err(RestError::Refused { status: 401, .. }) => {
            bail!(
                "{} does not know this key\n\nhint: make one there with `tributary key create laptop --scopes agent --person …`",
                args.url
            )
        }
        Err(error @ RestError::Refused { .. }) => {
            return Err(error)
                .context("the server takes no work from this key\n\nhint: it needs the scope `agent` and a person");
        }
        Err(error) => tracing::warn!("{} cannot be reached, will keep trying: {error}", args.url),
    }
    engine::agent::run(remote, processors, most, drain, stop).await;
    Ok(ExitCode::SUCCESS)
}
