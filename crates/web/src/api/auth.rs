//! Authentication. Handlers take one of five extractors, so that none can forget to ask: [`Reading`], [`Writing`], [`Hearing`]
//! (what changes, and recordings), [`Managing`] (the keys) or [`Operating`] (the installation). Pages take [`crate::ui::Visitor`].

use std::collections::HashMap;
use std::mem::Discriminant;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::FromRequestParts;
use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, Method};
use domain::{KeyId, PersonId, Scope, Secret};
use engine::intake::{PerMinute, network};
use tokio::sync::Semaphore;

use super::error::ApiError;
use super::origin;
use crate::app::{AUTH_LIMIT, App};
use crate::server::CallerAddress;

pub(crate) const SESSION_COOKIE: &str = "tributary_session";
/// A revoked key is refused everywhere within 5 s: this, and a request that was under way.
const KNOWN_FOR: Duration = Duration::from_secs(4);
const MOST_KNOWN: usize = 4_096;
/// Wrong credentials of one address within a minute. Further ones are refused without a query.
const MOST_WRONG: u32 = 200;
const STRANGERS_AT_ONCE: usize = 4;

/// A key or a session, as a request shows it.
#[derive(Clone, Debug)]
pub(crate) enum Credential {
    Key(Secret),
    Session(Secret),
    /// The token of an assistant, which is good at `/mcp` alone: nothing else reads one.
    Assistant(Secret),
}

impl Credential {
    /// A header goes before the cookie: a caller that sends a key means the key.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        if let Some(given) = text(AUTHORIZATION.as_str()) {
            let (scheme, key) = given.split_once(' ').unwrap_or_default();
            return scheme.eq_ignore_ascii_case("bearer").then(|| Self::Key(Secret::new(key.trim())));
        }
        if let Some(key) = text("apikey") {
            return Some(Self::Key(Secret::new(key.trim())));
        }
        let cookies =
            headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok()).flat_map(|line| line.split(';'));
        let mut named = cookies.filter_map(|cookie| cookie.trim().split_once('='));
        let (_, session) = named.find(|(name, session)| *name == SESSION_COOKIE && !session.is_empty())?;
        Some(Self::Session(Secret::new(session)))
    }
}

/// Callers that were found, by the hash of what they showed, and addresses that showed something that nobody knows.
pub(crate) struct Callers {
    known: Mutex<HashMap<[u8; 32], Known>>,
    /// Wrong credentials, by kind and network: a browser whose session has ended does not keep others from showing a key.
    wrong: PerMinute<(Discriminant<Credential>, IpAddr)>,
    /// Look-ups of what was not known before. They come one after the other, so an address that is over its limit by the time it is its
    /// turn causes no query.
    strangers: Semaphore,
}

impl Default for Callers {
    fn default() -> Self {
        Self { known: Mutex::default(), wrong: PerMinute::default(), strangers: Semaphore::new(STRANGERS_AT_ONCE) }
    }
}

struct Known {
    caller: Arc<domain::Caller>,
    since: Instant,
}

impl Callers {
    fn get(&self, hash: &[u8; 32]) -> Option<Arc<domain::Caller>> {
        let known = self.lock();
        known.get(hash).filter(|known| known.since.elapsed() < KNOWN_FOR).map(|known| known.caller.clone())
    }

    fn keep(&self, hash: [u8; 32], caller: Arc<domain::Caller>, since: Instant) {
        let mut known = self.lock();
        if known.len() >= MOST_KNOWN {
            known.retain(|_, known| known.since.elapsed() < KNOWN_FOR);
        }
        if known.len() < MOST_KNOWN {
            known.insert(hash, Known { caller, since });
        }
    }

    /// Forgets a key that was revoked, or whose session ended, at once in this process. Others learn of it within five seconds.
    pub fn forget(&self, key_id: KeyId) {
        self.lock().retain(|_, known| known.caller.key_id != key_id);
    }

    /// Forgets what a person may do, whose role was changed.
    pub fn forget_person(&self, person_id: PersonId) {
        self.lock().retain(|_, known| known.caller.person_id != Some(person_id));
    }

    /// Whether this was somebody's when it was last looked up, however long ago.
    fn was_known(&self, hash: &[u8; 32]) -> bool {
        self.lock().contains_key(hash)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A key and a session of the same text are different credentials.
fn hash(credential: &Credential) -> [u8; 32] {
    match credential {
        Credential::Key(secret) => store::keys::hash(secret),
        Credential::Session(secret) => store::keys::hash(&Secret::new(format!("session:{}", secret.reveal()))),
        Credential::Assistant(secret) => store::keys::hash(&Secret::new(format!("assistant:{}", secret.reveal()))),
    }
}

/// Finds the caller behind a credential. None: it is not, or no longer, good. An address that shows one wrong credential after the other
/// is told to wait; a good caller may share the address, so those that were known before pass.
pub(crate) async fn authenticate(
    app: &App,
    credential: &Credential,
    CallerAddress(address): CallerAddress,
) -> Result<Option<Arc<domain::Caller>>, ApiError> {
    let hash = hash(credential);
    if let Some(caller) = app.callers.get(&hash) {
        return Ok(Some(caller));
    }
    if app.callers.was_known(&hash) {
        return look_up(app, credential, hash, Some(address)).await;
    }
    let _turn = app.callers.strangers.acquire().await;
    let whose = (std::mem::discriminant(credential), network(address));
    if app.callers.wrong.is_over(&whose, MOST_WRONG).is_some() {
        return Err(ApiError::TooManyFailures);
    }
    let found = look_up(app, credential, hash, Some(address)).await?;
    if found.is_none() {
        let _ = app.callers.wrong.count(whose, MOST_WRONG); // the next one is told
    }
    Ok(found)
}

/// Asks the database whether a credential is still good, past the cache: for what lasts, such as an event stream.
pub(crate) async fn authenticate_anew(app: &App, credential: &Credential) -> Result<bool, ApiError> {
    Ok(look_up(app, credential, hash(credential), None).await?.is_some())
}

async fn look_up(
    app: &App,
    credential: &Credential,
    hash: [u8; 32],
    address: Option<IpAddr>,
) -> Result<Option<Arc<domain::Caller>>, ApiError> {
    let (asked, address) = (Instant::now(), address.map(|address| address.to_string()));
    let found = app.env.db.within(AUTH_LIMIT).session(async |conn| match credential {
        Credential::Key(secret) => store::keys::authenticate(conn, secret).await,
        Credential::Session(secret) => {
            store::sessions::caller(conn, app.env.clock.sql(), secret, address.as_deref()).await
        }
        Credential::Assistant(secret) => {
            let found = store::assistants::caller(conn, app.env.clock.sql(), secret).await?;
            // A token that was given for another address of ours is good for nothing (S30).
            let resource = engine::assistants::resource(&app.env.config);
            Ok(found.filter(|(_, of)| *of == resource).map(|(caller, _)| caller))
        }
    });
    let Some(caller) = found.await?.map(Arc::new) else {
        app.callers.lock().remove(&hash);
        return Ok(None);
    };
    app.callers.keep(hash, caller.clone(), asked);
    Ok(Some(caller))
}

/// An authenticated caller, and the credential it showed.
#[derive(Clone)]
pub(crate) struct Caller {
    who: Arc<domain::Caller>,
    pub credential: Credential,
}

impl Caller {
    /// The caller of a request. Does not check that a browser's request comes from our own page: see [`Caller::of_api`].
    pub async fn of(headers: &HeaderMap, address: CallerAddress, app: &App) -> Result<Self, ApiError> {
        let credential = Credential::of(headers).ok_or(ApiError::Unauthenticated)?;
        Self::with(credential, address, app).await
    }

    /// The caller with this credential.
    pub async fn with(credential: Credential, address: CallerAddress, app: &App) -> Result<Self, ApiError> {
        match authenticate(app, &credential, address).await? {
            Some(who) => Ok(Self { who, credential }),
            None if matches!(credential, Credential::Session(_)) => Err(ApiError::Unauthenticated), // it has ended
            None => Err(ApiError::UnknownKey),
        }
    }

    /// A browser may use its session for the API, from our own pages alone, and with the token when it changes something.
    async fn of_api(parts: &Parts, app: &App) -> Result<Self, ApiError> {
        let caller = Self::of(&parts.headers, address_of(&parts.extensions), app).await?;
        if let Credential::Session(session) = &caller.credential {
            if origin::is_foreign(&parts.headers) {
                return Err(ApiError::CrossSite);
            }
            if !matches!(parts.method, Method::GET | Method::HEAD) {
                let token = parts.headers.get("x-csrf").and_then(|value| value.to_str().ok()).unwrap_or_default();
                origin::check(&parts.headers, app.env.config.public_url.as_deref(), session, token)?;
            }
        }
        Ok(caller)
    }

    /// The browser's session, as sessions are stored. None for a caller with a key.
    pub fn session(&self) -> Option<[u8; 32]> {
        match &self.credential {
            Credential::Session(session) => Some(store::keys::hash(session)),
            Credential::Key(_) | Credential::Assistant(_) => None,
        }
    }

    /// Refuses a caller without a scope. A person has those of their role, so what a role may do on pages and in the API is decided here.
    pub fn need(&self, scope: Scope) -> Result<(), ApiError> {
        if self.is_signed_in && !self.may(scope) {
            return Err(ApiError::NotYourRole);
        }
        let missing = match scope {
            Scope::Read => "the key lacks the scope `read`",
            Scope::Write => "the key lacks the scope `write`",
            Scope::Agent => "the key lacks the scope `agent`",
            Scope::Service => "the key lacks the scope `service`",
        };
        if self.may(scope) { Ok(()) } else { Err(ApiError::Forbidden(missing)) }
    }
}

/// The address that the edge has put into the request.
pub(crate) fn address_of(extensions: &Extensions) -> CallerAddress {
    extensions.get().copied().unwrap_or(CallerAddress(IpAddr::V4(Ipv4Addr::UNSPECIFIED)))
}

impl Deref for Caller {
    type Target = domain::Caller;
    fn deref(&self) -> &domain::Caller {
        &self.who
    }
}

macro_rules! callers {
    ($($(#[$doc:meta])* $name:ident($scope:expr);)*) => {$(
        $(#[$doc])*
        pub(crate) struct $name(pub Caller);

        impl FromRequestParts<App> for $name {
            type Rejection = ApiError;
            async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
                let caller = Caller::of_api(parts, app).await?;
                caller.need($scope)?;
                Ok(Self(caller))
            }
        }
    )*};
}

callers! {
    /// May look.
    Reading(Scope::Read);
    /// May act on items.
    Writing(Scope::Write);
    /// May manage its tenant's keys.
    Managing(Scope::Service);
}

/// May hear of changes and fetch recordings: a reader, or an agent that processes them.
pub(crate) struct Hearing(pub Caller);

impl FromRequestParts<App> for Hearing {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let caller = Caller::of_api(parts, app).await?;
        if !caller.may(Scope::Agent) {
            caller.need(Scope::Read)?;
        }
        Ok(Self(caller))
    }
}

/// May see what belongs to the installation. Others are told that there is no such page.
pub(crate) struct Operating(pub Caller);

impl FromRequestParts<App> for Operating {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let caller = Caller::of_api(parts, app).await?;
        if caller.operates() { Ok(Self(caller)) } else { Err(ApiError::NotFound("page")) }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn a_credential_is_found_where_clients_put_it() {
        type Sent<'a> = &'a [(&'a str, &'a str)];
        let cases: [(Sent, Option<&str>); 9] = [
            (&[("authorization", "Bearer trb_a")], Some("key trb_a")),
            (&[("authorization", "bearer trb_a"), ("cookie", "tributary_session=s")], Some("key trb_a")),
            (&[("authorization", "Basic eA=="), ("cookie", "tributary_session=s")], None),
            (&[("apikey", "trb_b")], Some("key trb_b")),
            (&[("cookie", "a=b; tributary_session=s; c=d")], Some("session s")),
            (&[("cookie", "tributary_session=")], None),
            (&[("cookie", "xtributary_session=s")], None),
            (&[("cookie", "a=b"), ("cookie", "tributary_session=s")], Some("session s")),
            (&[], None),
        ];
        for (given, expected) in cases {
            let mut headers = HeaderMap::new();
            for (name, value) in given {
                headers
                    .append(HeaderName::try_from(*name).expect("name"), HeaderValue::try_from(*value).expect("value"));
            }
            let found = Credential::of(&headers).map(|credential| match credential {
                Credential::Key(secret) => format!("key {}", secret.reveal()),
                Credential::Session(secret) => format!("session {}", secret.reveal()),
                Credential::Assistant(secret) => format!("assistant {}", secret.reveal()),
            });
            assert_eq!(found.as_deref(), expected, "{given:?}");
        }
    }
}
