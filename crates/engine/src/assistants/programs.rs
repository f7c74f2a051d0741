//! Programs that ask to be let in: those that registered themselves (RFC 7591), and those whose id is the address of a document that describes them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use domain::Secret;
use domain::shown::shown;
use serde::{Deserialize, Serialize};
use store::assistants::clients;
use store::keys::new_secret;

use super::redirect::{Redirect, is_loopback_url};
use super::tokens::OauthError;
use crate::Env;
use crate::config::McpOauth;

/// A document is fetched again after this time.
const DOCUMENT_GOOD_FOR: Duration = Duration::from_secs(300);
const MOST_DOCUMENTS: usize = 256;
const DOCUMENT_BYTES: usize = 64 * 1024;
const DOCUMENT_WITHIN: Duration = Duration::from_secs(8);
const MOST_URIS: usize = 10;
const MOST_NAME_CHARS: usize = 100;

/// A program that asks to be let in.
#[derive(Clone, Debug)]
pub struct Program {
    pub id: String,
    /// As it calls itself, on one line.
    pub name: String,
    /// The host that answers for its document. None: it registered itself, and nobody answers for its name.
    pub vouched_by: Option<String>,
    redirect_uris: Vec<String>,
}

impl Program {
    /// The address to go back to, if the program has registered it.
    pub fn redirect(&self, given: &str) -> Option<Redirect> {
        let redirect = Redirect::parse(given)?;
        self.redirect_uris.iter().any(|registered| redirect.is(registered)).then_some(redirect)
    }
}

/// Documents that were fetched lately.
#[derive(Default)]
pub struct Documents(Mutex<HashMap<String, (Instant, Program)>>);

impl Documents {
    fn known(&self, id: &str) -> Option<Program> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(id).filter(|(at, _)| at.elapsed() < DOCUMENT_GOOD_FOR).map(|(_, program)| program.clone())
    }

    fn keep(&self, program: Program) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_DOCUMENTS {
            known.clear();
        }
        known.insert(program.id.clone(), (Instant::now(), program));
    }
}

/// A document about a program (the same members as a registration).
#[derive(Deserialize)]
struct Document {
    client_id: String,
    client_name: Option<String>,
    #[serde(default)]
    redirect_uris: Vec<String>,
    #[serde(default)]
    token_endpoint_auth_method: Option<String>,
}

/// Whether an id is the address of a document.
pub fn is_document(id: &str) -> bool {
    id.contains("://")
}

/// Finds the program with this id. A document is fetched as everything is that strangers name.
pub async fn find(env: &Env, documents: &Documents, id: &str) -> Result<Program, OauthError> {
    if !is_document(id) {
        let at = env.clock.sql();
        let found = env.db.session(async |conn| clients::get(conn, at, id).await).await?;
        let found = found.ok_or(OauthError::InvalidClient)?;
        let name = name_of(Some(&found.name));
        return Ok(Program { id: found.id, name, vouched_by: None, redirect_uris: found.redirect_uris });
    }
    if let Some(program) = documents.known(id) {
        return Ok(program);
    }
    let host = host_of_document(id, env.config.mcp_oauth == McpOauth::Loopback).ok_or(OauthError::InvalidClient)?;
    let fetched = env.outside.fetch_document(id, DOCUMENT_WITHIN, DOCUMENT_BYTES).await;
    let bytes = fetched.map_err(|error| OauthError::Document(error.to_string()))?;
    let program = read(id, host, &bytes)?;
    documents.keep(program.clone());
    Ok(program)
}

fn read(id: &str, host: String, bytes: &[u8]) -> Result<Program, OauthError> {
    let odd = |what: &str| OauthError::Document(what.to_owned());
    let document: Document =
        serde_json::from_slice(bytes).map_err(|_| odd("it is not JSON that describes a program"))?;
    if document.client_id != id {
        return Err(odd("it names another client_id"));
    }
    if document.token_endpoint_auth_method.is_some_and(|method| method != "none") {
        return Err(odd("it wants to sign its requests, which is not supported"));
    }
    if document.redirect_uris.is_empty() {
        return Err(odd("it names no redirect_uris"));
    }
    let name = document.client_name.unwrap_or_else(|| host.clone());
    Ok(Program {
        id: id.to_owned(),
        name: name_of(Some(&name)),
        vouched_by: Some(host),
        redirect_uris: document.redirect_uris,
    })
}

/// The host of a document's address: https, with a path, and nothing that reads otherwise than it is. Plain http only on this machine, if asked for.
fn host_of_document(id: &str, is_loopback_allowed: bool) -> Option<String> {
    let is_plain = id.len() <= 2_000 && id.chars().all(|c| c.is_ascii_graphic() && !"#@\\\"<>".contains(c));
    let after = match id.strip_prefix("https://") {
        Some(after) => after,
        None => id.strip_prefix("http://").filter(|_| is_loopback_allowed && is_loopback_url(id))?,
    };
    // What we show as the host is what is fetched: nothing before the first slash ends a host for one reader and not for another.
    let (host, path) = after.split_once('/')?;
    let (name, port) = host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port)));
    let is_host = !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || ".-".contains(c))
        && port.is_none_or(|port| port.parse::<u16>().is_ok());
    let dots = |part: &str| matches!(part.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
    let has_dots = path.split(['/', '?']).any(dots);
    (is_plain && is_host && !path.is_empty() && !has_dots).then(|| host.to_ascii_lowercase())
}

/// A program's name on one line.
fn name_of(given: Option<&str>) -> String {
    let name: String = shown(given.unwrap_or_default().trim()).chars().take(MOST_NAME_CHARS).collect();
    if name.is_empty() { "A program without a name".into() } else { name }
}

/// A program's registration of itself. Other members are ignored, as the standard says.
#[derive(Debug, Deserialize)]
pub struct Registration {
    client_name: Option<String>,
    #[serde(default)]
    redirect_uris: Vec<String>,
    token_endpoint_auth_method: Option<String>,
}

/// The answer to a registration.
#[derive(Debug, Serialize)]
pub struct Registered {
    client_id: String,
    client_id_issued_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_secret: Option<String>,
    /// It does not expire.
    #[serde(skip_serializing_if = "Option::is_none")]
    client_secret_expires_at: Option<i64>,
    client_name: String,
    redirect_uris: Vec<String>,
    grant_types: [&'static str; 2],
    response_types: [&'static str; 1],
    token_endpoint_auth_method: String,
}

/// Registers a program. It may do nothing until a person lets it in.
pub async fn register(env: &Env, wanted: Registration) -> Result<Registered, OauthError> {
    let uris = wanted.redirect_uris;
    if uris.is_empty() || uris.len() > MOST_URIS || uris.iter().any(|uri| Redirect::parse(uri).is_none()) {
        return Err(OauthError::InvalidRedirect);
    }
    let method = wanted.token_endpoint_auth_method.unwrap_or_else(|| "none".into());
    let secret: Option<Secret> = match method.as_str() {
        "none" => None,
        "client_secret_post" | "client_secret_basic" => Some(new_secret("trs_")),
        _ => {
            return Err(OauthError::InvalidMetadata(
                "token_endpoint_auth_method is none, client_secret_post or client_secret_basic",
            ));
        }
    };
    let id = format!("trp_{}", uuid::Uuid::new_v4().simple());
    let name = name_of(wanted.client_name.as_deref());
    let at = env.clock.sql();
    let registered = env.db.session(async |conn| clients::register(conn, at, &id, &name, &uris, secret.as_ref()).await);
    if !registered.await? {
        return Err(OauthError::Full);
    }
    Ok(Registered {
        client_id: id,
        client_id_issued_at: env.clock.now().timestamp(),
        client_secret_expires_at: secret.as_ref().map(|_| 0),
        client_secret: secret.map(|secret| secret.reveal().to_owned()),
        client_name: name,
        redirect_uris: uris,
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
        token_endpoint_auth_method: method,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_describes_the_program_at_its_own_address() {
        let id = "https://app.example/client.json";
        let of = |text: &str| read(id, "app.example".into(), text.as_bytes());
        let good = of(&format!(
            r#"{{"client_id":"{id}","client_name":"App","redirect_uris":["https://app.example/cb"],"x":1}}"#
        ));
        let program = good.expect("a program");
        assert_eq!((program.name.as_str(), program.vouched_by.as_deref()), ("App", Some("app.example")));
        assert!(program.redirect("https://app.example/cb").is_some());
        assert!(program.redirect("https://evil.example/cb").is_none(), "S22: another address was accepted");
        for bad in [
            "",
            "[]",
            r#"{"client_id":"https://evil.example/client.json","redirect_uris":["https://app.example/cb"]}"#,
            &format!(r#"{{"client_id":"{id}","redirect_uris":[]}}"#),
            &format!(
                r#"{{"client_id":"{id}","redirect_uris":["https://app.example/cb"],"token_endpoint_auth_method":"private_key_jwt"}}"#
            ),
        ] {
            assert!(of(bad).is_err(), "{bad} was accepted");
        }
    }

    /// S22: the consent page names the host that was asked, and no other.
    #[test]
    fn a_documents_address_is_plain() {
        let of = |id| host_of_document(id, false);
        assert_eq!(of("https://App.example/oauth/client.json").as_deref(), Some("app.example"));
        for bad in [
            "https://app.example",
            "https://app.example/",
            "http://app.example/c",
            "http://127.0.0.1:1/c",
            "https://a@app.example/c",
            "https://app.example/c#x",
            "https://app.example/../c",
            "https://app.example/%2E./c",
            "https://evil.example?.app.example/c",
            "https://evil.example%2f.app.example/c",
            "https://evil.example;.app.example/c",
            "https://app.example:x/c",
            "https://app.example:/c",
            "https://:443/c",
            "ftp://app.example/c",
        ] {
            assert_eq!(of(bad), None, "{bad}");
        }
        assert_eq!(host_of_document("http://127.0.0.1:1/c", true).as_deref(), Some("127.0.0.1:1"));
        assert_eq!(host_of_document("http://evil.example/c", true), None);
    }

    #[test]
    fn a_programs_name_is_one_short_line() {
        assert_eq!(name_of(Some("  Claude ")), "Claude");
        assert_eq!(name_of(None), "A program without a name");
        assert!(!name_of(Some("a\nb\u{202e}c")).contains(['\n', '\u{202e}']));
        assert_eq!(name_of(Some(&"x".repeat(500))).chars().count(), MOST_NAME_CHARS);
    }
}
