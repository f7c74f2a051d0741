//! The providers on this machine: one HTTP server that answers as each of them does, OAuth and MCP included, keeps a ledger of the requests,
//! and misbehaves when told. Tests, the demonstration and the benchmark pull from it. It knows nothing of the engine, so that it can be its
//! oracle.

mod clock;
mod drive;
mod faults;
mod fixtures;
mod gmail;
mod google;
mod hubspot;
mod ledger;
mod manners;
mod mcp;
mod oauth;
mod outlook;
mod post;
mod provider;
mod quickbooks;
mod request;
mod server;
mod shapes;
#[cfg(test)]
mod tests;
mod tokens;
mod tools;

use std::any::Any;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use chrono::{DateTime, Utc};
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use crate::clock::Clock;
use crate::ledger::Ledger;
use crate::manners::Script;
use crate::oauth::grants::Grants;

pub use crate::drive::{DRIVE, Drive};
pub use crate::gmail::{Delivery, GMAIL, Gmail, GmailLetter, Pubsub, TokenFault};
pub use crate::hubspot::{HUBSPOT, Hubspot};
pub use crate::ledger::Seen;
pub use crate::manners::{Manner, RetryAfter};
pub use crate::oauth::grants::{Counts, Issued};
pub use crate::oauth::{CLIENT_ID, CLIENT_SECRET};
pub use crate::outlook::{Lifecycle, NoticeDelivery, OUTLOOK, Outlook, OutlookLetter};
pub use crate::provider::{Bulk, Fake, Provider};
pub use crate::quickbooks::{QUICKBOOKS, Quickbooks};

/// Every fake provider. A new one adds its folder, its module above and a line here.
pub static ALL: [Provider; 5] = [HUBSPOT, DRIVE, QUICKBOOKS, GMAIL, OUTLOOK];

/// The running server. It ends with the last clone of this value.
#[derive(Clone)]
pub struct Fakes {
    shared: Arc<Shared>,
    _server: Arc<Server>,
}

pub(crate) struct Shared {
    url: String,
    clock: Clock,
    ledger: Ledger,
    script: Script,
    grants: Grants,
    /// Each provider's, as its description makes them.
    records: Vec<Box<dyn Any + Send + Sync>>,
}

impl Shared {
    /// The records of the provider that keeps them as this type.
    pub(crate) fn records<T: Send + 'static>(&self) -> &Mutex<T> {
        self.records.iter().find_map(|records| records.downcast_ref()).expect("records of a provider in the list")
    }
}

struct Server(AbortHandle);

impl Drop for Server {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Fakes {
    /// Starts the server on a free port, with no records.
    pub async fn start() -> Self {
        Self::start_on((Ipv4Addr::LOCALHOST, 0).into()).await.expect("a port on this machine")
    }

    pub async fn start_on(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let shared = Arc::new(Shared {
            url: format!("http://{}", listener.local_addr()?),
            clock: Clock::default(),
            ledger: Ledger::default(),
            script: Script::default(),
            grants: Grants::default(),
            records: ALL.iter().map(|provider| (provider.records)()).collect(),
        });
        for provider in ALL {
            provider.key.iter().for_each(|key| shared.grants.with(|book| book.add_static(provider, key)));
        }
        let mcp = StreamableHttpServerConfig::default();
        let sessions = mcp.cancellation_token.clone().drop_guard();
        let mut router = Router::new().merge(oauth::routes());
        for provider in ALL {
            router = router.merge((provider.routes)(&shared)).merge((provider.mcp)(&shared, &mcp));
        }
        let router = router.with_state(shared.clone());
        let serving = server::serve(listener, shared.clone(), router);
        let server = tokio::spawn(async move {
            let _sessions = sessions; // they end with the server
            serving.await;
        });
        Ok(Self { shared, _server: Arc::new(Server(server.abort_handle())) })
    }

    /// Starts the server with the fixtures.
    pub async fn with_fixtures() -> Self {
        let fakes = Self::start().await;
        fakes.load_fixtures();
        fakes
    }

    /// Adds the fixtures to the present records.
    pub fn load_fixtures(&self) {
        ALL.iter().for_each(|provider| (provider.load)(self));
    }

    /// The base URL, without a slash at its end. Under it are each provider's API, `/oauth/{provider}/authorize` and `/token`,
    /// `/mcp/{provider}`, and `/mcp-legacy/{provider}` for clients of the era with a handshake.
    pub fn url(&self) -> &str {
        &self.shared.url
    }

    /// The settings that lead the program here, by environment variable.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let settings = ALL.iter().flat_map(|provider| provider.settings);
        settings.map(|(name, value)| (*name, value.replace("{url}", self.url()))).collect()
    }

    /// The first provider whose account a benchmark can fill.
    pub fn bulk(&self) -> (Provider, &'static Bulk) {
        ALL.iter()
            .find_map(|provider| Some((*provider, provider.bulk.as_ref()?)))
            .expect("a provider that can be filled")
    }

    /// The time here, which stamps changes and ends tokens.
    pub fn now(&self) -> DateTime<Utc> {
        self.shared.clock.now()
    }

    /// Moves the server's time ahead of this machine's.
    pub fn advance(&self, by: Duration) {
        self.shared.clock.advance(by);
    }

    /// Every request, in the order in which they came.
    pub fn ledger(&self) -> Vec<Seen> {
        self.shared.ledger.seen()
    }

    /// Counts the requests whose path has this prefix.
    pub fn requests(&self, prefix: &str) -> u64 {
        self.shared.ledger.count(prefix)
    }

    /// Waits for this many requests.
    pub async fn wait_for_requests(&self, prefix: &str, n_requests: u64) {
        self.shared.ledger.wait_for(prefix, n_requests).await;
    }

    pub fn clear_ledger(&self) {
        self.shared.ledger.clear();
    }

    /// Scripts the next request under this path that no earlier call has scripted.
    pub fn next(&self, prefix: &str, manner: Manner) {
        self.shared.script.add(prefix, 0, manner);
    }

    pub fn next_n(&self, prefix: &str, n_requests: u64, manner: Manner) {
        (0..n_requests).for_each(|_| self.next(prefix, manner.clone()));
    }

    /// Scripts the n-th request under this path from now, counted from 1.
    pub fn nth(&self, prefix: &str, n: u64, manner: Manner) {
        self.shared.script.add(prefix, n.saturating_sub(1), manner);
    }

    /// Scripts every request under this path for which nothing else is scripted. `None` restores normal answers.
    pub fn always(&self, prefix: &str, manner: Option<Manner>) {
        self.shared.script.set_always(prefix, manner);
    }

    /// Delays every answer under this path, as a network does.
    pub fn set_latency(&self, prefix: &str, latency: Duration) {
        self.shared.script.set_latency(prefix, latency);
    }

    /// Removes all scripts and delays.
    pub fn behave(&self) {
        self.shared.script.clear();
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
