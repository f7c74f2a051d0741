//! Providers over the Model Context Protocol: tools that read, called by exact name. They know neither changes nor deletions, so every sync
//! over them is a full pass; a provider's own API is the better way wherever it is to be had.

mod answer;
mod connection;
mod tools;
mod wire;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use domain::{Provider, Secret};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, TryFutureExt as _};
use serde_json::{Value, json};
use tokio::time::Instant;

use self::answer::{Parser, Records, lost, unreadable, who};
use self::connection::{Broken, Connection, Server};
use self::tools::{Mapping, TOOLS};
use self::wire::{DEADLINE, SILENCE};
use super::listing::{Lister, Listing, RawPage, is_passed_over, kinds};
use super::trail::{Trail, follow, same_page};
use super::{Account, Connector, Failed, Limit, PullError, endpoints, record};
use crate::Http;

/// Nobody has used it for so long: the pass it was for is over.
const IDLE: Duration = Duration::from_secs(120);
/// Of what a tool says of one record: whoever has more has a circle.
const PAGES_OF_ONE_MAX: usize = 200;

/// A provider's MCP server. `drive_first_max`: how many files a first sync takes.
pub fn mcp(
    provider: Provider,
    mcp_url: &str,
    http: &Http,
    drive_first_max: usize,
) -> anyhow::Result<Arc<dyn Connector>> {
    let url = reqwest::Url::parse(mcp_url).context("the URL of an MCP server is no URL")?;
    ensure!(["http", "https"].contains(&url.scheme()) && url.has_host(), "the URL of an MCP server is none of the web");
    let url = url.as_str().into();
    let (era, silence, deadline) = (Mutex::default(), SILENCE, DEADLINE);
    let server = Server { provider, url, http: http.clone(), era, silence, deadline };
    let lister = Mcp { server, open: Mutex::default() };
    Ok(Arc::new(Listing { provider, lister, identity: None, first_max_files: Some(drive_first_max) }))
}

struct Mcp {
    server: Server,
    /// By account.
    open: Mutex<HashMap<String, Open>>,
}

struct Open {
    connection: Arc<Connection>,
    token: Secret,
    used: Instant,
}

impl Lister for Mcp {
    fn list<'a>(
        &'a self,
        account: &'a Account<'a>,
        method: &'static str,
        page: Option<&'a str>,
    ) -> BoxFuture<'a, Result<RawPage, PullError>> {
        self.read(account, method, page, &[]).map_err(|error| without_token(error, account.token)).boxed()
    }

    fn get<'a>(
        &'a self,
        account: &'a Account<'a>,
        method: &'static str,
        ids: &'a [&'a str],
    ) -> BoxFuture<'a, Result<RawPage, PullError>> {
        self.read(account, method, None, ids).map_err(|error| without_token(error, account.token)).boxed()
    }
}

impl Mcp {
    async fn read(
        &self,
        account: &Account<'_>,
        method: &'static str,
        page: Option<&str>,
        ids: &[&str],
    ) -> Result<RawPage, PullError> {
        let provider = self.server.provider;
        let kind = kinds(provider).iter().find(|kind| kind.list == method || kind.get == method);
        let object = kind.map_or("record", |kind| kind.object);
        let mapping = self.mapping(method)?;
        let Records { mut records, next } = self.ask(account, mapping, page, ids).await?;
        records.retain(|record| !is_passed_over(provider, record));

        let (mut whole, mut left_behind) = (Vec::with_capacity(records.len()), Vec::new());
        for record in records {
            match mapping.then.filter(|then| (then.of)(&record)) {
                None => whole.push(record),
                Some(then) => match self.complete(account, object, self.mapping(then.method)?, record).await? {
                    Ok(record) => whole.push(record),
                    Err(failed) => left_behind.push(failed),
                },
            }
        }
        let mut page = RawPage::new(provider, object, whole, next);
        page.failed.extend(left_behind);
        Ok(page)
    }

    /// Adds to a record what another tool says of it. What is wrong with one record holds up no other.
    async fn complete(
        &self,
        account: &Account<'_>,
        object: &str,
        then: &'static Mapping,
        mut record: Value,
    ) -> Result<Result<Value, Failed>, PullError> {
        let Some(id) = record.get("id").and_then(record::plain_id) else { return Ok(Ok(record)) };
        let said = match self.all(account, then, &id).await {
            Ok(said) => said,
            Err(error @ (PullError::Forbidden { .. } | PullError::Unreadable { .. })) => {
                return Ok(Err(record::failed(object, Some(&Value::from(id)), error.to_string(), record)));
            }
            Err(error) => return Err(error),
        };
        match then.parser {
            Parser::HubspotAssociations => record["associations"] = json!({ "companies": { "results": said } }),
            _ => record["text"] = said.into_iter().next().unwrap_or_default(),
        }
        Ok(Ok(record))
    }

    /// Every page of what a tool says of one record.
    async fn all(&self, account: &Account<'_>, mapping: &'static Mapping, id: &str) -> Result<Vec<Value>, PullError> {
        let (mut said, mut trail) = (Vec::new(), None::<Trail>);
        for _ in 0..PAGES_OF_ONE_MAX {
            let page = trail.as_ref().map(|trail| trail.after.as_str());
            let Records { records, next } = self.ask(account, mapping, page, &[id]).await?;
            said.extend(records);
            let Some(token) = next else { return Ok(said) };
            trail = Some(follow(who(self.server.provider), trail, token)?);
        }
        Err(same_page(who(self.server.provider)))
    }

    async fn ask(
        &self,
        account: &Account<'_>,
        mapping: &'static Mapping,
        page: Option<&str>,
        ids: &[&str],
    ) -> Result<Records, PullError> {
        let provider = self.server.provider;
        for limit in limits(provider) {
            account.pace.turn(limit, 1).await?;
        }
        let mut is_again = false;
        let result = loop {
            let connection = self.connection(account).await?;
            match connection.call(mapping, mapping.arguments(page, ids)).await {
                Ok(result) => break result,
                Err(Broken::SessionGone) if !is_again => is_again = true,
                Err(Broken::SessionGone) => {
                    return Err(PullError::Passing(format!("{} lost our session", who(provider))));
                }
                // The call was understood, so the connection is as good as before.
                Err(Broken::BadArguments(_)) if mapping.parser.goes_by_token(page) => return Err(lost()),
                Err(Broken::BadArguments(error) | Broken::Said(error)) => {
                    self.forget(account, &connection);
                    return Err(error);
                }
            }
            self.forget(account, &connection);
        };
        mapping.parser.read(provider, result, page)
    }

    fn mapping(&self, method: &str) -> Result<&'static Mapping, PullError> {
        let known = TOOLS.iter().find(|mapping| mapping.method == method);
        known.ok_or_else(|| unreadable(self.server.provider, "has no tool for what we want", method))
    }

    /// The open one of this account and token, else a new one. Two may be opened at once; one of them is then used once.
    async fn connection(&self, account: &Account<'_>) -> Result<Arc<Connection>, PullError> {
        if let Some(connection) = self.kept(account) {
            return Ok(connection);
        }
        let connection = Arc::new(self.server.connect(account.token).await?);
        let kept = Open { connection: connection.clone(), token: account.token.clone(), used: Instant::now() };
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(account.account.to_owned(), kept);
        Ok(connection)
    }

    fn kept(&self, account: &Account<'_>) -> Option<Arc<Connection>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, kept| kept.used.elapsed() < IDLE);
        let kept = open.get_mut(account.account).filter(|kept| kept.token == *account.token)?;
        kept.used = Instant::now();
        Some(kept.connection.clone())
    }

    fn forget(&self, account: &Account<'_>, connection: &Arc<Connection>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.get(account.account).is_some_and(|kept| Arc::ptr_eq(&kept.connection, connection)) {
            open.remove(account.account);
        }
    }
}

/// Those of the API behind the server, which is asked once for each call.
fn limits(provider: Provider) -> Vec<&'static Limit> {
    match provider {
        Provider::Hubspot => vec![&endpoints::HUBSPOT],
        Provider::GoogleDrive => vec![&endpoints::GOOGLE_DRIVE],
        Provider::Quickbooks => vec![&endpoints::QUICKBOOKS_SECOND, &endpoints::QUICKBOOKS_MINUTE],
    }
}

/// A server may say back what it was told, and a person sees the beginning of what cannot be read.
fn without_token(error: PullError, token: &Secret) -> PullError {
    match error {
        PullError::Unreadable { what, raw } if !token.reveal().is_empty() => {
            PullError::Unreadable { what, raw: raw.replace(token.reveal(), "***") }
        }
        error => error,
    }
}

#[cfg(test)]
mod tests;
