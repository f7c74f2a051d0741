//! How an account is connected from here: by a browser, by a key, or as sample data.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use domain::{Secret, SourceId, TenantId, Transport};
use engine::Env;
use engine::pull::connect::{self, ConnectError};
use engine::pull::{Provider, words};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use serde_json::json;
use store::sources::Source;

/// A key in an argument is in a shell's history and in every list of processes.
#[derive(Clone, Copy)]
pub struct FromStdin;

pub fn dash(text: &str) -> Result<FromStdin, String> {
    if text == "-" { Ok(FromStdin) } else { Err("a key is read from stdin: write `--key -` and paste it".into()) }
}

/// A new source, or the one that the account already is.
pub async fn connect(
    env: &Env,
    tenant_id: TenantId,
    provider: Provider,
    key: Option<FromStdin>,
    transport: Transport,
    is_json: bool,
) -> anyhow::Result<ExitCode> {
    match (transport, key) {
        (Transport::Fixtures, _) => connected(connect::with_fixtures(env, tenant_id, provider).await, is_json),
        (transport, Some(FromStdin)) => {
            let key = read_key(provider)?;
            connected(connect::with_key(env, tenant_id, provider, &key, None, transport).await, is_json)
        }
        (transport, None) => lead_to(env, provider, None, transport, is_json),
    }
}

/// New tokens for the same account.
pub async fn reconnect(
    env: &Env,
    tenant_id: TenantId,
    source: &Source,
    key: Option<FromStdin>,
    is_json: bool,
) -> anyhow::Result<ExitCode> {
    let provider = env.providers.named(&source.provider).context("the source cannot be reconnected")?;
    let (id, transport) = (SourceId(source.id), source.transport());
    match (transport, key) {
        (Transport::Fixtures, _) => connected(connect::with_fixtures(env, tenant_id, provider).await, is_json),
        (transport, Some(FromStdin)) => {
            let key = read_key(provider)?;
            connected(connect::with_key(env, tenant_id, provider, &key, Some(id), transport).await, is_json)
        }
        (transport, None) => lead_to(env, provider, Some(id), transport, is_json),
    }
}

fn read_key(provider: Provider) -> anyhow::Result<Secret> {
    if std::io::stdin().is_terminal() {
        eprint!("Paste the key of {}, then Enter: ", provider.label);
        std::io::stderr().flush()?;
    }
    let mut line = String::new();
    let hidden = Hidden::new();
    std::io::stdin().read_line(&mut line).context("stdin cannot be read")?;
    drop(hidden);
    match line.trim() {
        "" => {
            bail!("there is no key on stdin\n\nhint: paste it, or `tributary source connect {provider} --key - < FILE`")
        }
        key => Ok(Secret::new(key)),
    }
}

/// What is typed is not shown while this lives, where somebody types.
struct Hidden(Option<Termios>);

impl Hidden {
    fn new() -> Self {
        let shown = tcgetattr(std::io::stdin()).ok();
        if let Some(mut quiet) = shown.clone() {
            quiet.local_modes.remove(LocalModes::ECHO);
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &quiet);
        }
        Self(shown)
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if let Some(shown) = &self.0 {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, shown);
            eprintln!(); // the Enter was not shown either
        }
    }
}

fn connected(made: Result<SourceId, ConnectError>, is_json: bool) -> anyhow::Result<ExitCode> {
    let id = made?;
    if is_json {
        println!("{}", serde_json::to_string_pretty(&json!({ "id": id }))?);
    } else {
        println!("source {id}");
        eprintln!("Its sync has begun; `tributary source sync {id} --wait` shows how far it is.");
    }
    Ok(ExitCode::SUCCESS)
}

/// A person allows it in a browser, at the provider's own pages. Where our app is not set up there, says what is missing.
fn lead_to(
    env: &Env,
    provider: Provider,
    reconnect: Option<SourceId>,
    transport: Transport,
    is_json: bool,
) -> anyhow::Result<ExitCode> {
    let url = connect::start_url(env, provider, reconnect, transport);
    let redirect_url = connect::redirect_uri(env, provider);
    let is_set_up = env.providers.app(provider).is_some();
    if is_json {
        let settings = words::settings(provider);
        let shown = json!({ "url": url, "is_set_up": is_set_up, "redirect_url": redirect_url, "settings": settings });
        println!("{}", serde_json::to_string_pretty(&shown)?);
    } else {
        println!("{url}");
        eprintln!("\nOpen it in a browser that is signed in here (`tributary signin` prints a link that does that).");
    }
    if is_set_up {
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(oauth) = &provider.oauth {
        eprintln!(
            "\nBefore that works, once: {} has to know this installation, and the settings that this command sees do not name it.\n\
             1. To that end {}, and register this redirect URL there, exactly:\n     {redirect_url}\n\
             2. Set {} and {} for the server and the workers, and start them again.\n\
             docs/connect.md has the steps.",
            provider.label, oauth.setup, oauth.client_id.env, oauth.client_secret.env
        );
    }
    if let Some(key) = &provider.key {
        eprintln!("Or give it the token of {}: `tributary source connect {provider} --key -`.", key.of);
    }
    eprintln!("To see it without any account: `tributary source connect {provider} --fixtures`, or `tributary demo`.");
    Ok(ExitCode::FAILURE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_an_argument() {
        assert!(dash("-").is_ok());
        assert!(dash("pat-na1-1234").is_err());
    }
}
