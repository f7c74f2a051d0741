//! Providers over the Model Context Protocol: tools that read, called by exact name. They know neither changes nor deletions, so every sync
//! over them is a full pass. A provider's own API is the better way wherever there is one.

pub(in crate::pull) mod answer;
mod connection;
mod tools;
mod wire;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use domain::Secret;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, TryFutureExt as _};
use serde_json::Value;
use tokio::time::Instant;

pub use self::answer::{ToolAnswer, ToolRecords};
use self::answer::{lost, read, unreadable, who};
use self::connection::{Broken, Connection, Server};
pub use self::tools::{Then, Tool};
use self::wire::{DEADLINE, SILENCE};
use super::listing::{Lister, Listing, RawPage};
use super::settings::Settings;
use super::spec::Provider;
use super::trail::{Trail, follow, same_page};
use super::{Account, Connector, Failed, PullError, record};
use crate::Http;

/// A connection that nobody used for so long belongs to a pass that is over.
const IDLE: Duration = Duration::from_secs(120);
/// Most pages that a tool gives of one record: more are a circle.
const PAGES_OF_ONE_MAX: usize = 200;

/// A provider's MCP server; none while the settings name none, or nobody has mapped its tools.
pub fn mcp(provider: Provider, settings: &Settings, http: &Http) -> anyhow::Result<Option<Arc<dyn Connector>>> {
    let Some(mcp) = &provider.mcp else { return Ok(None) };
    let Some(url) = settings.get(mcp.url) else { return Ok(None) };
    let parsed = reqwest::Url::parse(url).with_context(|| format!("{} is no URL", mcp.url.env))?;
    ensure!(
        ["http", "https"].contains(&parsed.scheme()) && parsed.has_host(),
        "{} is no address of the web",
        mcp.url.env
    );
    let url = parsed.as_str().into();
    let (era, silence, deadline) = (Mutex::default(), SILENCE, DEADLINE);
    let server = Server { provider, mcp, url, http: http.clone(), era, silence, deadline };
    let lister = McpLister { server, open: Mutex::default() };
    let first_max = provider.first_sync.as_ref().map(|cap| settings.count(cap.max));
    Ok(Some(Arc::new(Listing { provider, lister, identity: None, first_max })))
}

pub(in crate::pull) struct McpLister {
    server: Server,
    /// Connections by account.
    open: Mutex<HashMap<String, Open>>,
}

struct Open {
    connection: Arc<Connection>,
    token: Secret,
    used: Instant,
}

impl Lister for McpLister {
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

impl McpLister {
    async fn read(
        &self,
        account: &Account<'_>,
        method: &'static str,
        page: Option<&str>,
        ids: &[&str],
    ) -> Result<RawPage, PullError> {
        let provider = self.server.provider;
        let kind = provider.kinds.iter().find(|kind| kind.list == method || kind.get == method);
        let object = kind.map_or("record", |kind| kind.object);
        let tool = self.tool(method)?;
        let ToolRecords { mut records, next } = self.ask(account, tool, page, ids).await?;
        records.retain(|record| !(provider.is_passed_over)(record));

        let (mut whole, mut left_behind) = (Vec::with_capacity(records.len()), Vec::new());
        for record in records {
            match tool.then.filter(|then| (then.of)(&record)) {
                None => whole.push(record),
                Some(then) => match self.complete(account, object, then, record).await? {
                    Ok(record) => whole.push(record),
                    Err(failed) => left_behind.push(failed),
                },
            }
        }
        let mut page = RawPage::new(provider, object, whole, next);
        page.failed.extend(left_behind);
        Ok(page)
    }

    /// Adds to a record what another tool says of it. A record that is wrong holds up no other.
    async fn complete(
        &self,
        account: &Account<'_>,
        object: &str,
        then: Then,
        mut record: Value,
    ) -> Result<Result<Value, Failed>, PullError> {
        let Some(id) = record.get("id").and_then(record::plain_id) else { return Ok(Ok(record)) };
        let said = match self.all(account, self.tool(then.method)?, &id).await {
            Ok(said) => said,
            Err(error @ (PullError::Forbidden { .. } | PullError::Unreadable { .. })) => {
                return Ok(Err(record::failed(object, Some(&Value::from(id)), error.to_string(), record)));
            }
            Err(error) => return Err(error),
        };
        (then.put)(&mut record, said);
        Ok(Ok(record))
    }

    /// Every page of what a tool says of one record.
    async fn all(&self, account: &Account<'_>, tool: &'static Tool, id: &str) -> Result<Vec<Value>, PullError> {
        let (mut said, mut trail) = (Vec::new(), None::<Trail>);
        for _ in 0..PAGES_OF_ONE_MAX {
            let page = trail.as_ref().map(|trail| trail.after.as_str());
            let ToolRecords { records, next } = self.ask(account, tool, page, &[id]).await?;
            said.extend(records);
            let Some(token) = next else { return Ok(said) };
            trail = Some(follow(who(self.server.provider), trail, token)?);
        }
        Err(same_page(who(self.server.provider)))
    }

    async fn ask(
        &self,
        account: &Account<'_>,
        tool: &'static Tool,
        page: Option<&str>,
        ids: &[&str],
    ) -> Result<ToolRecords, PullError> {
        let (provider, mcp) = (self.server.provider, self.server.mcp);
        for limit in mcp.limits {
            account.pace.turn(limit, 1).await?;
        }
        let mut is_again = false;
        let result = loop {
            let connection = self.connection(account).await?;
            match connection.call(tool, tool.arguments(mcp, page, ids)).await {
                Ok(result) => break result,
                Err(Broken::SessionGone) if !is_again => is_again = true,
                Err(Broken::SessionGone) => {
                    return Err(PullError::Passing(format!("{} lost our session", who(provider))));
                }
                // The call was understood, so the connection is as good as before.
                Err(Broken::BadArguments(_)) if tool.has_page_tokens && page.is_some() => return Err(lost()),
                Err(Broken::BadArguments(error) | Broken::Said(error)) => {
                    self.forget(account, &connection);
                    return Err(error);
                }
            }
            self.forget(account, &connection);
        };
        read(provider, tool, &result, page)
    }

    fn tool(&self, method: &str) -> Result<&'static Tool, PullError> {
        let known = self.server.mcp.tools.iter().find(|tool| tool.method == method);
        known.ok_or_else(|| unreadable(self.server.provider, "has no tool for what we want", method))
    }

    /// The open connection of this account and token, else a new one. Two may be opened at once; one of them is then used once.
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

/// Hides the token: a server may repeat it, and a person sees the beginning of an answer that cannot be read.
fn without_token(error: PullError, token: &Secret) -> PullError {
    match error {
        PullError::Unreadable { what, raw } if !token.reveal().is_empty() => {
            PullError::Unreadable { what, raw: raw.replace(token.reveal(), "***") }
        }
        error => error,
    }
}

#[cfg(test)]
pub(in crate::pull) mod tests;
