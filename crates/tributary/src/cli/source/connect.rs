//! Connects an account: in a browser, with a key, or as sample data.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use domain::{Caller, Secret, SourceId, Transport};
use engine::Env;
use engine::pull::connect;
use engine::pull::{Provider, words};
use engine::sources::{self, NewSource};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use serde_json::json;
use store::sources::Source;

use super::super::print_json;

/// Reads a key from stdin. As an argument it would be in the shell history and in the process list.
#[derive(Clone, Copy)]
pub struct FromStdin;

pub fn dash(text: &str) -> Result<FromStdin, String> {
    if text == "-" { Ok(FromStdin) } else { Err("a key is read from stdin: write `--key -` and paste it".into()) }
}

/// Connects a new source, or the one that the account already is.
pub async fn connect(
    env: &Env,
    caller: &Caller,
    provider: Provider,
    key: Option<FromStdin>,
    transport: Transport,
    is_json: bool,
) -> anyhow::Result<ExitCode> {
    attach(env, caller, provider, None, key, transport, is_json).await
}

/// Gives a source new tokens for the same account.
pub async fn reconnect(
    env: &Env,
    caller: &Caller,
    source: &Source,
    key: Option<FromStdin>,
    is_json: bool,
) -> anyhow::Result<ExitCode> {
    let provider = env.providers.named(&source.provider).context("the source cannot be reconnected")?;
    attach(env, caller, provider, Some(SourceId(source.id)), key, source.transport, is_json).await
}

async fn attach(
    env: &Env,
    caller: &Caller,
    provider: Provider,
    replaces: Option<SourceId>,
    key: Option<FromStdin>,
    transport: Transport,
    is_json: bool,
) -> anyhow::Result<ExitCode> {
    let id = match (transport, key) {
        // At this machine also where the settings do not offer it.
        (Transport::Fixtures, _) => connect::with_fixtures(env, caller.tenant_id, provider).await?,
        (transport, Some(FromStdin)) => {
            let (key, transport) = (Some(read_key(provider)?), Some(transport));
            let provider = provider.name.to_owned();
            let new = NewSource { provider, key, fixtures: false, transport, replaces };
            sources::connect(env, caller, new).await?
        }
        (transport, None) => return lead_to(env, provider, replaces, transport, is_json),
    };
    if is_json {
        print_json(&web::api::sources::Source::new(env, sources::get(env, caller, id).await?))?;
    } else {
        println!("source {id}");
        eprintln!("Its sync has begun; `tributary source sync {id} --wait` shows how far it is.");
    }
    Ok(ExitCode::SUCCESS)
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

/// Hides what is typed while this lives, if stdin is a terminal.
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

/// Prints where a person allows it in a browser, on the provider's own pages. Where our app is not set up there, says what is missing.
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
