//! Checks for a person who sets up a connection: each says in words how it is, and what to do if it is not well.

use std::time::Duration;

use connectors::pull::oauth::GrantError;
use domain::Secret;

use crate::pull::{Provider, connect};
use crate::{Config, Env};

const ANSWER_WITHIN: Duration = Duration::from_secs(8);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Good,
    /// It may work, or nobody can tell from here.
    Unsure,
    Bad,
}

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub verdict: Verdict,
    /// A sentence.
    pub what: String,
    /// The remedy; empty: nothing is to be done.
    pub todo: String,
}

impl Finding {
    fn new(verdict: Verdict, what: impl Into<String>, todo: impl Into<String>) -> Self {
        Self { verdict, what: what.into(), todo: todo.into() }
    }

    fn good(what: impl Into<String>) -> Self {
        Self::new(Verdict::Good, what, "")
    }
}

/// The address by which others call this server, as the settings have it.
pub fn address(config: &Config) -> Finding {
    of_address(config.public_url.as_deref(), &config.base_url())
}

fn of_address(public_url: Option<&str>, base_url: &str) -> Finding {
    match public_url {
        None => Finding::new(
            Verdict::Unsure,
            format!("PUBLIC_URL is not set, so addresses begin with {base_url}. Only this machine can call them."),
            "Set PUBLIC_URL to the address by which others reach this server, and restart it. To try things on this machine, leave it.",
        ),
        Some(url) if !url.starts_with("https://") => Finding::new(
            Verdict::Unsure,
            format!("Addresses begin with {url}, which is not encrypted."),
            "Put a proxy with a certificate in front and set PUBLIC_URL to its https address. Most providers refuse http.",
        ),
        Some(url) => Finding::good(format!("Addresses begin with {url}.")),
    }
}

/// Calls this server by the address that others know it by.
pub async fn reach(env: &Env) -> Finding {
    let base_url = env.config.base_url();
    let todo = "Check the DNS name, the certificate and the proxy. Some networks do not let a server call its own public address: try it from outside, too.";
    match env.http.get(&format!("{base_url}/healthz"), ANSWER_WITHIN).await {
        Ok((200, body)) if body.contains("\"status\":\"ok\"") => {
            Finding::good(format!("{base_url} leads to this server."))
        }
        Ok((status, _)) => Finding::new(
            Verdict::Bad,
            format!("{base_url} answers {status}, and not as this server does."),
            "Let the proxy pass every path on to this server, and check that PUBLIC_URL has no path that the proxy does not know.",
        ),
        Err(why) => Finding::new(Verdict::Bad, format!("{base_url} was called, and {why}."), todo),
    }
}

/// A setting that our app at a provider needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needed {
    pub env: &'static str,
    pub is_set: bool,
}

/// The settings of our app at a provider. None: there is no such app.
pub fn settings(env: &Env, provider: Provider) -> Option<[Needed; 2]> {
    let oauth = provider.oauth.as_ref()?;
    let needed = |setting: &'static connectors::pull::Setting| Needed {
        env: setting.env,
        is_set: env.config.providers.get(setting).is_some_and(|value| !value.is_empty()),
    };
    Some([needed(oauth.client_id), needed(oauth.client_secret)])
}

/// Says whether the settings of our app are there.
pub fn has_settings(env: &Env, provider: Provider) -> Option<Finding> {
    // A process may know an app by other means than its settings.
    if env.providers.app(provider).is_some() {
        return Some(Finding::good(format!("The client id and secret of your app at {} are set.", provider.label)));
    }
    let needed = settings(env, provider)?;
    let missing: Vec<&str> = needed.iter().filter(|needed| !needed.is_set).map(|needed| needed.env).collect();
    if missing.is_empty() {
        return Some(Finding::new(
            Verdict::Unsure,
            "The settings are there, but this server began without them.",
            "Restart every server and worker.",
        ));
    }
    let (verb, them) = if missing.len() == 1 { ("is", "it") } else { ("are", "them") };
    Some(Finding::new(
        Verdict::Bad,
        format!("{} {verb} not set.", missing.join(" and ")),
        format!(
            "Create the app at {} as below, put {them} into the environment, and restart every server and worker.",
            provider.label
        ),
    ))
}

/// Asks the provider whether it knows our app: with a code that cannot be good, a provider that knows the app refuses the code, and one that
/// does not refuses the app.
pub async fn knows_app(env: &Env, provider: Provider) -> Option<Finding> {
    let app = env.providers.app(provider)?;
    let who = provider.label;
    let (redirect_uri, verifier) =
        (connect::redirect_uri(env, provider), Secret::new("tributary-checks-its-client-id-and-secret-only"));
    Some(match app.exchange(&env.http, "tributary-check", &redirect_uri, &verifier).await {
        Err(GrantError::Revoked { .. }) => Finding::good(format!("{who} knows the client id and secret.")),
        Err(GrantError::OurClient) => {
            let todo = provider.explain("invalid_client").map_or("", |advice| advice.todo);
            Finding::new(Verdict::Bad, format!("{who} refuses the client id or the secret."), todo)
        }
        Err(GrantError::Wait { .. }) => {
            Finding::new(Verdict::Unsure, format!("{who} asked us to wait."), "Wait some minutes and check again.")
        }
        Err(GrantError::Passing(why) | GrantError::Unknown(why)) => Finding::new(
            Verdict::Unsure,
            format!("It cannot be told whether {who} knows the app: {why}."),
            "Check that this server may reach the internet, then check again. Connecting an account also shows it.",
        ),
        // No provider gives a token for such a code.
        Ok(_) => Finding::good(format!("{who} answers.")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_others_cannot_call_says_what_to_set() {
        let of = |url| of_address(url, url.unwrap_or("http://127.0.0.1:7171"));
        assert_eq!(
            of(Some("https://hear.example.com")),
            Finding::good("Addresses begin with https://hear.example.com.")
        );
        assert_eq!(of(Some("http://hear.example.com")).verdict, Verdict::Unsure);
        let none = of(None);
        assert!(none.what.contains("http://127.0.0.1") && none.todo.contains("PUBLIC_URL"), "{none:?}");
    }
}
