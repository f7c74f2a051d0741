//! The description of a fake provider. Each folder holds one; the shared files read it and name nobody.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use chrono::{DateTime, Utc};
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use serde_json::Value;

use crate::ledger::Seen;
use crate::oauth::grants::Issued;
use crate::{ALL, Fakes, Shared};

/// A fake provider is known by its description.
pub type Provider = &'static Fake;

/// Everything about one fake provider.
pub struct Fake {
    /// The name in paths and in the program's tables.
    pub name: &'static str,
    /// The first part of its API's path.
    pub(crate) path: &'static str,
    /// The settings that lead the program here, by environment variable; `{url}` stands for the server's address.
    pub(crate) settings: &'static [(&'static str, &'static str)],
    /// The account that gives consent unless a test says otherwise.
    pub(crate) default_account: &'static str,
    /// The provider's own id of an account.
    pub(crate) account_id: fn(&str) -> String,
    /// Makes its records, empty: a `Mutex` that [`Shared::records`] finds by its type.
    pub(crate) records: fn() -> Box<dyn Any + Send + Sync>,
    /// Its API.
    pub(crate) routes: fn(&Arc<Shared>) -> Router<Arc<Shared>>,
    /// Its MCP server.
    pub(crate) mcp: fn(&Arc<Shared>, &StreamableHttpServerConfig) -> Router<Arc<Shared>>,
    pub(crate) oauth: FakeOauth,
    pub(crate) words: Words,
    /// A key that an account made for itself.
    pub(crate) key: Option<&'static str>,
    /// Adds the recorded world.
    pub(crate) load: fn(&Fakes),
    /// Fills an account for a benchmark, where that is possible.
    pub bulk: Option<Bulk>,
}

/// The differences of the token endpoint from others.
pub(crate) struct FakeOauth {
    /// The pages of another provider at which people consent to this one too.
    pub shares: Option<SharedConsent>,
    /// Whether the client proves itself by basic authentication; otherwise in the form.
    pub is_basic: bool,
    /// Whether a consent gives a refresh token, by its parameters and whether the account has a grant already.
    pub gives_refresh: fn(&HashMap<String, String>, bool) -> bool,
    /// The parameter that tells the account's id with the code.
    pub account_parameter: Option<&'static str>,
    /// Whether a refresh spends the refresh token.
    pub rotates: bool,
    /// Whether a refresh that spends nothing sends the refresh token again.
    pub repeats_refresh: bool,
    pub token_secs: i64,
    /// The fields beside the tokens and their life.
    pub pair: fn(&Issued) -> Value,
    /// Refuses a grant, by its type.
    pub invalid_grant: fn(&str) -> Response,
}

/// One company's pages for several of its services: the scope says which one is meant.
pub(crate) struct SharedConsent {
    /// The provider whose pages they are.
    pub of: &'static str,
    /// The beginning of this one's scopes.
    pub scope: &'static str,
}

/// Refusals as the provider words them.
pub(crate) struct Words {
    /// An error with this status, for which there is no function of its own. 429 is [`Words::rate_limited`]'s.
    pub error: fn(u16, DateTime<Utc>) -> Response,
    /// Too many requests to this path; `true`: for today or this month, not for these seconds.
    pub rate_limited: fn(&str, bool, DateTime<Utc>) -> Response,
    /// The same as a 403, where the provider also says it so.
    pub rate_limited_as_403: Option<fn() -> Response>,
    /// A failure under status 200, where the provider hides some there.
    pub error_with_200: Option<fn(DateTime<Utc>) -> Response>,
    /// The token of a page is not one.
    pub lost_token: fn(DateTime<Utc>) -> Response,
}

/// An account with very many records, for benchmarks.
pub struct Bulk {
    /// Adds so many records.
    pub fill: fn(&Fakes, usize),
    pub count: fn(&Fakes) -> usize,
    /// The path of its API.
    pub path: &'static str,
    /// Opens the account.
    pub key: &'static str,
    /// Whether a request was for a page of the records.
    pub is_page: fn(&Seen) -> bool,
}

impl Fake {
    pub(crate) fn named(name: &str) -> Option<Provider> {
        ALL.into_iter().find(|provider| provider.name == name)
    }

    /// The provider that is meant by these scopes at this one's pages.
    pub(crate) fn meant_by(&'static self, scope: &str) -> Provider {
        let is_meant = |provider: &Provider| self.shares_with(provider).is_some_and(|known| scope.contains(known));
        ALL.into_iter().find(is_meant).unwrap_or(self)
    }

    /// The beginning of a provider's scopes, if people consent to it at this one's pages.
    pub(crate) fn shares_with(&self, provider: Provider) -> Option<&'static str> {
        provider.oauth.shares.as_ref().filter(|shared| shared.of == self.name).map(|shared| shared.scope)
    }

    /// The provider whose API or MCP server a path belongs to; none: OAuth's pages.
    pub(crate) fn of_path(path: &str) -> Option<Provider> {
        let mut parts = path.trim_start_matches('/').split('/');
        match parts.next()? {
            "oauth" => None,
            "mcp" | "mcp-legacy" => Self::named(parts.next()?),
            "batch" => {
                let path = parts.next()?;
                ALL.into_iter().find(|provider| provider.path == path)
            }
            first => ALL.into_iter().find(|provider| provider.path == first),
        }
    }

    pub fn default_account(&self) -> &'static str {
        self.default_account
    }

    /// The provider's own id of an account.
    pub fn account_id(&self, account: &str) -> String {
        (self.account_id)(account)
    }

    /// The address of the person who gave consent.
    pub fn email(&self, account: &str) -> String {
        format!("{account}@harrowridge.example")
    }
}

impl fmt::Debug for Fake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Fake {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Fake {}

impl Hash for Fake {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl PartialOrd for Fake {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fake {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.name.cmp(other.name)
    }
}

/// FNV-1a: the same number in every run.
pub(crate) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
