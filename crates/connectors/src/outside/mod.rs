//! Fetches URLs that come from outside. The address of every hop is checked, and the connection goes to the checked address. Credentials
//! go only to the server they are meant for. Size and time are bounded. Errors name neither the address nor credentials.

mod lookup;
mod public;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::{Bytes, BytesMut};
use domain::Secret;
use ipnet::IpNet;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, StatusCode, Url};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

pub use self::lookup::Lookup;
use self::lookup::{Gate, NoWay};
use crate::http::{USER_AGENT, causes, install_tls, io_kind};

const MOST_HOPS: usize = 5;
/// The number of fetches at once, because each may use its full limits of size and time.
const AT_ONCE: usize = 16;
const URL_MAX_BYTES: usize = 8_192;

/// The limits of a fetch.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub connect: Duration,
    /// The longest pause between two pieces of the body.
    pub idle: Duration,
    pub total: Duration,
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(30),
            total: Duration::from_secs(600),
            bytes: 200 * 1024 * 1024,
        }
    }
}

/// User and password for one domain and its subdomains, over https only. Servers in the allowed networks are our own, so they get the
/// credentials too.
#[derive(Clone, Debug)]
pub struct Basic {
    pub user: String,
    pub password: Secret,
    pub domain: &'static str,
}

/// The reason why something was not fetched. The caller knows what "it" is in the messages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    #[error("its address is no address of the web")]
    Malformed,
    #[error("its address is not public")]
    NotPublic,
    #[error("its server sent us on more than {MOST_HOPS} times")]
    TooManyHops,
    #[error("its server sent us from https to http")]
    Downgraded,
    #[error("its server {}", in_words(*.0))]
    Status(u16),
    #[error("it is larger than {most} bytes")]
    TooLarge { most: u64 },
    #[error("its server could not be reached{0}")]
    Unreachable(String),
    #[error("the connection to its server broke{0}")]
    Broken(String),
    #[error("its server is too slow")]
    TooSlow,
}

fn in_words(status: u16) -> String {
    match status {
        401 | 403 => format!("wants other credentials, or any ({status})"),
        _ => format!("answered {status}"),
    }
}

/// Cheap to clone.
#[derive(Clone)]
pub struct Outside {
    client: Client,
    gate: Gate,
    limits: Limits,
    turns: Arc<Semaphore>,
}

impl Outside {
    /// `allow` lists private networks that may be reached.
    pub fn new(allow: &[IpNet], lookup: Lookup, limits: Limits) -> anyhow::Result<Self> {
        install_tls();
        let gate = Gate { allow: allow.into(), lookup };
        let client = Client::builder()
            .user_agent(USER_AGENT)
            .dns_resolver(gate.clone())
            .no_proxy() // a proxy would choose the address
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(limits.connect)
            .pool_max_idle_per_host(0)
            .build()
            .context("the HTTP client could not be made")?;
        Ok(Self { client, gate, limits, turns: Arc::new(Semaphore::new(AT_ONCE)) })
    }

    /// Returns the head of the answer; the body follows piece by piece. Credentials in the URL itself are not used.
    pub async fn fetch(&self, url: &str, basic: Option<&Basic>) -> Result<Fetched, FetchError> {
        let mut url = parse(url)?;
        let turn = self.turns.clone().acquire_owned().await.ok();
        let until = Instant::now() + self.limits.total;
        let mut basic = basic.filter(|basic| self.is_meant_for(basic, &url));
        for _ in 0..=MOST_HOPS {
            let answer = self.ask(&url, basic, until).await?;
            let Some(next) = next_hop(&url, &answer)? else { return self.opened(answer, until, turn) };
            if !is_same_server(&url, &next) {
                basic = None;
            }
            url = next;
        }
        Err(FetchError::TooManyHops)
    }

    /// Fetches a small document whole. It is fetched from where it is said to be: a redirect is an error, as every other status is.
    pub async fn fetch_document(&self, url: &str, within: Duration, most: usize) -> Result<Bytes, FetchError> {
        let url = parse(url)?;
        let fetched = async {
            let turn = self.turns.clone().acquire_owned().await.ok();
            let until = Instant::now() + within;
            let answer = self.ask(&url, None, until).await?;
            let mut pieces = self.opened(answer, until, turn)?;
            let mut document = BytesMut::new();
            while let Some(piece) = pieces.next().await? {
                if document.len() + piece.len() > most {
                    return Err(FetchError::TooLarge { most: most as u64 });
                }
                document.extend_from_slice(&piece);
            }
            Ok(document.freeze())
        };
        tokio::time::timeout(within, fetched).await.map_err(|_| FetchError::TooSlow)?
    }

    async fn ask(&self, url: &Url, basic: Option<&Basic>, until: Instant) -> Result<Response, FetchError> {
        // A literal IP address is not looked up, so this is its only check.
        if address(url).is_some_and(|address| !self.gate.lets(address)) {
            return Err(FetchError::NotPublic);
        }
        let mut request = self.client.get(url.clone()).header(ACCEPT_ENCODING, "identity");
        if let Some(basic) = basic {
            request = request.basic_auth(&basic.user, Some(basic.password.reveal()));
        }
        let patience = until.min(Instant::now() + self.limits.connect + self.limits.idle);
        let answered = timeout_at(patience, request.send()).await.map_err(|_| FetchError::TooSlow)?;
        answered.map_err(|error| match causes(&error).find_map(|cause| cause.downcast_ref()) {
            Some(NoWay::NotPublic) => FetchError::NotPublic,
            Some(NoWay::Unknown) => FetchError::Unreachable(": its name has no address".into()),
            None if error.is_timeout() => FetchError::TooSlow,
            None if error.is_builder() => FetchError::Malformed,
            None => FetchError::Unreachable(io_kind(&error)),
        })
    }

    fn opened(
        &self,
        answer: Response,
        until: Instant,
        turn: Option<OwnedSemaphorePermit>,
    ) -> Result<Fetched, FetchError> {
        let (status, most) = (answer.status(), self.limits.bytes);
        if !status.is_success() {
            return Err(FetchError::Status(status.as_u16()));
        }
        if answer.content_length().is_some_and(|bytes| bytes > most) {
            return Err(FetchError::TooLarge { most });
        }
        let content_type = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Ok(Fetched { content_type, answer, until, idle: self.limits.idle, most, bytes: 0, _turn: turn })
    }

    fn is_meant_for(&self, basic: &Basic, url: &Url) -> bool {
        if address(url).is_some_and(|address| self.gate.is_allowed(address)) {
            return true;
        }
        let below =
            |name: &str| name.strip_suffix(basic.domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        url.scheme() == "https" && url.domain().is_some_and(below)
    }
}

/// A body that is being received.
pub struct Fetched {
    pub content_type: Option<String>,
    answer: Response,
    until: Instant,
    idle: Duration,
    most: u64,
    bytes: u64,
    _turn: Option<OwnedSemaphorePermit>,
}

impl Fetched {
    /// Returns the next piece, or `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, FetchError> {
        let patience = self.until.min(Instant::now() + self.idle);
        let read = timeout_at(patience, self.answer.chunk()).await.map_err(|_| FetchError::TooSlow)?;
        let piece = read.map_err(|error| FetchError::Broken(io_kind(&error)))?;
        self.bytes += piece.as_ref().map_or(0, |piece| piece.len() as u64);
        if self.bytes > self.most {
            return Err(FetchError::TooLarge { most: self.most });
        }
        Ok(piece)
    }
}

/// Parses a URL as browsers do, so every notation of an address becomes the same one.
fn parse(text: &str) -> Result<Url, FetchError> {
    if text.len() > URL_MAX_BYTES {
        return Err(FetchError::Malformed);
    }
    checked(Url::parse(text).map_err(|_| FetchError::Malformed)?)
}

fn checked(mut url: Url) -> Result<Url, FetchError> {
    let is_web = ["http", "https"].contains(&url.scheme()) && url.has_host();
    // Otherwise the client would send them as credentials.
    let is_bare = url.set_username("").is_ok() && url.set_password(None).is_ok();
    if is_web && is_bare { Ok(url) } else { Err(FetchError::Malformed) }
}

/// Returns the target of a redirect.
fn next_hop(url: &Url, answer: &Response) -> Result<Option<Url>, FetchError> {
    use StatusCode as S;
    let is_redirect = matches!(
        answer.status(),
        S::MOVED_PERMANENTLY | S::FOUND | S::SEE_OTHER | S::TEMPORARY_REDIRECT | S::PERMANENT_REDIRECT
    );
    let Some(location) = answer.headers().get(LOCATION).filter(|_| is_redirect) else { return Ok(None) };
    let location = std::str::from_utf8(location.as_bytes()).map_err(|_| FetchError::Malformed)?;
    hop(url, location).map(Some)
}

fn hop(from: &Url, location: &str) -> Result<Url, FetchError> {
    if location.len() > URL_MAX_BYTES {
        return Err(FetchError::Malformed);
    }
    let to = checked(from.join(location).map_err(|_| FetchError::Malformed)?)?;
    if from.scheme() == "https" && to.scheme() == "http" {
        return Err(FetchError::Downgraded);
    }
    Ok(to)
}

fn is_same_server(one: &Url, other: &Url) -> bool {
    let server = |url: &Url| (url.scheme().to_owned(), url.host_str().map(str::to_owned), url.port_or_known_default());
    server(one) == server(other)
}

/// Returns the literal IP address of a URL that has no host name.
fn address(url: &Url) -> Option<IpAddr> {
    url.host_str()?.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

#[cfg(test)]
mod tests;
