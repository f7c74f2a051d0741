//! Connects sources, reconnects them and lets them go.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use connectors::pull::oauth::GrantError;
use connectors::pull::{Account, Identity, PullError};
use domain::{Fault, Secret, SourceId, SourceStatus, TenantId, Transport};
use rand::RngExt as _;
use store::Tx;
use store::forgotten::{self, Subject};
use store::oauth::{self, Trip};
use store::sources::{self, NewSource, Source, Tone};
use store::tokens::{self, Pair};

use super::{Paced, Provider, jobs};
use crate::Env;
use crate::lanes::forget::Forget;
use crate::lanes::queue_of;
use crate::mail::subscriptions;

/// The reasons why nothing was connected, in words for the person who tried.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("{0} is not set up here: set {1} and {2}, then try again")]
    NotSetUp(&'static str, &'static str, &'static str),
    #[error("{0} has no pages to connect by: give its key")]
    ByKeyAlone(&'static str),
    #[error("{0} has no sample data")]
    NoSamples(&'static str),
    #[error(
        "this way back from the provider was used already, is older than ten minutes, or was not begun in this session: connect again"
    )]
    UnknownState,
    #[error("{0} did not allow it ({1}): connect again, and allow it there")]
    Denied(&'static str, String),
    #[error("the code was not accepted: connect again")]
    BadCode,
    #[error("{0} refuses our client id or secret: check its settings")]
    OurClient(&'static str),
    /// The provider refused the key or token.
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Trouble(String),
    #[error("somebody else reconnected it at the same moment: look at it again")]
    Meanwhile,
    #[error("it is being forgotten: connect it again once it is gone")]
    Forgotten,
    #[error("{0} has no MCP server that is read here: connect it without")]
    NotRead(&'static str),
    #[error("this is another account ({0}) than the one that is connected ({1}): connect it as a source of its own")]
    OtherAccount(String, String),
    #[error("{0} has no keys: connect it by its own pages")]
    NoKeys(&'static str),
    /// Asked for in a way that no source is connected.
    #[error("{0}")]
    Invalid(String),
    #[error("there is no such source")]
    NoSource,
    #[error("{who} asks a person: open {url} in a browser that is signed in here{or_key}")]
    InBrowser { who: &'static str, url: String, or_key: String },
    /// The task that connects died. What it said is not shown, because it can hold anything.
    #[error("connecting a source was interrupted")]
    Interrupted,
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl ConnectError {
    /// The code by which [`ProviderSpec::explain`](connectors::pull::ProviderSpec::explain) has advice. None: the words say all of it.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::UnknownState => Some("unknown_state"),
            Self::Denied(_, code) => Some(code),
            Self::BadCode => Some("invalid_grant"),
            Self::OurClient(_) => Some("invalid_client"),
            Self::Trouble(_) => Some("unreachable"),
            Self::OtherAccount(..) => Some("other_account"),
            // The code is in brackets at the end: `… refused what we asked for (MISSING_SCOPES)`.
            Self::Refused(what) => {
                Some(what.rsplit_once(" (").map_or("invalid_grant", |(_, code)| code.trim_end_matches(')')))
            }
            Self::NotSetUp(..)
            | Self::ByKeyAlone(_)
            | Self::NoSamples(_)
            | Self::Meanwhile
            | Self::Forgotten
            | Self::NotRead(_)
            | Self::NoKeys(_)
            | Self::Invalid(_)
            | Self::NoSource
            | Self::InBrowser { .. }
            | Self::Interrupted
            | Self::Store(_) => None,
        }
    }
}

/// Begins a consent: returns the address at the provider, and stores the state that the person comes back with.
pub async fn authorize(
    env: &Env,
    tenant_id: TenantId,
    session: &[u8],
    provider: Provider,
    reconnect: Option<SourceId>,
    transport: Transport,
) -> Result<String, ConnectError> {
    check(env, provider, transport)?;
    let app = env.providers.app(provider).ok_or(not_set_up(provider))?;
    let (state, verifier) = (random(), random());
    let redirect_uri = redirect_uri(env, provider);
    let url = app.authorize(&redirect_uri, state.reveal(), &verifier);
    let trip = Trip { tenant_id, source_id: reconnect, verifier, redirect_uri, transport };
    let mut tx = env.db.begin().await?;
    if let Some(id) = reconnect {
        check_kept(&mut tx, tenant_id, id).await?;
    }
    oauth::start(&mut tx, &env.vault, provider.name, &state, session, &trip).await?;
    tx.commit().await?;
    Ok(url)
}

/// The address that a person comes back to. It depends on settings alone, never on a request.
pub fn redirect_uri(env: &Env, provider: Provider) -> String {
    format!("{}/oauth/{provider}/callback", env.config.base_url())
}

/// The page of ours where a browser that is signed in begins a consent.
pub fn start_url(env: &Env, provider: Provider, reconnect: Option<SourceId>, transport: Transport) -> String {
    let mut query: Vec<String> = reconnect.iter().map(|id| format!("source={id}")).collect();
    if transport != Transport::default() {
        query.push(format!("transport={}", transport.as_str()));
    }
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{}/oauth/{provider}/authorize{mark}{}", env.config.base_url(), query.join("&"))
}

fn random() -> Secret {
    Secret::new(URL_SAFE_NO_PAD.encode(rand::rng().random::<[u8; 32]>()))
}

/// The parameters that a provider sends a person back with.
#[derive(Debug, Default)]
pub struct Returned {
    pub state: String,
    pub code: Option<String>,
    pub error: Option<String>,
    /// The account, where the provider tells it there.
    pub account: Option<String>,
}

impl Returned {
    /// Reads the parameters of the address that a provider sends a person back to.
    pub fn read<'a>(provider: Provider, parameters: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let account = provider.oauth.as_ref().and_then(|oauth| oauth.account_parameter);
        let mut returned = Self::default();
        for (name, value) in parameters {
            match name {
                "state" => returned.state = value.to_owned(),
                "code" => returned.code = Some(value.to_owned()),
                "error" => returned.error = Some(value.to_owned()),
                name if account == Some(name) => returned.account = Some(value.to_owned()),
                _ => {}
            }
        }
        returned
    }
}

/// Ends a consent: uses up the state, even if something else is wrong, exchanges the code for tokens, and connects the source or has it go on.
pub async fn returned(
    env: &Env,
    tenant_id: TenantId,
    session: &[u8],
    provider: Provider,
    returned: &Returned,
) -> Result<SourceId, ConnectError> {
    let app = env.providers.app(provider).ok_or(not_set_up(provider))?;
    let mut tx = env.db.begin().await?;
    let state = Secret::new(returned.state.clone());
    let trip = oauth::finish(&mut tx, &env.vault, provider.name, tenant_id, &state, session).await?;
    tx.commit().await?; // used up, also when what follows fails
    let trip = trip.ok_or(ConnectError::UnknownState)?;
    if let Some(error) = &returned.error {
        return Err(ConnectError::Denied(provider.label, plain(error)));
    }
    let code = returned.code.as_deref().ok_or(ConnectError::BadCode)?;
    let grant = app.exchange(&env.http, code, &trip.redirect_uri, &trip.verifier).await;
    let grant = grant.map_err(|error| match error {
        GrantError::Revoked { .. } => ConnectError::BadCode,
        GrantError::OurClient => ConnectError::OurClient(provider.label),
        GrantError::Wait { .. } => {
            ConnectError::Trouble(format!("{} asked us to wait: try again later", provider.label))
        }
        GrantError::Passing(words) | GrantError::Unknown(words) => ConnectError::Trouble(words),
    })?;
    let identity = identify(env, provider, &grant.access_token, returned.account.as_deref()).await?;
    let pair = Pair {
        access: &grant.access_token,
        refresh: grant.refresh_token.as_ref(),
        expires_in: grant.expires_in.or_else(|| grant.refresh_token.as_ref().map(|_| super::tokens::ASSUMED_LIFE)),
    };
    connect(env, tenant_id, provider, trip.transport, trip.source_id, &identity, &grant.scopes, &pair).await
}

/// Connects an account by a key that a person made at the provider.
pub async fn with_key(
    env: &Env,
    tenant_id: TenantId,
    provider: Provider,
    key: &Secret,
    reconnect: Option<SourceId>,
    transport: Transport,
) -> Result<SourceId, ConnectError> {
    if provider.key.is_none() {
        return Err(ConnectError::NoKeys(provider.label));
    }
    check(env, provider, transport)?;
    let identity = identify(env, provider, key, None).await?;
    let pair = Pair { access: key, refresh: None, expires_in: None };
    connect(env, tenant_id, provider, transport, reconnect, &identity, &[], &pair).await
}

/// Connects sample data.
pub async fn with_fixtures(env: &Env, tenant_id: TenantId, provider: Provider) -> Result<SourceId, ConnectError> {
    if !provider.has_samples() {
        return Err(ConnectError::NoSamples(provider.label));
    }
    let identity = Identity { account: "fixtures".into(), name: format!("{} sample data", provider.label) };
    let key = Secret::new("fixtures");
    let pair = Pair { access: &key, refresh: None, expires_in: None };
    connect(env, tenant_id, provider, Transport::Fixtures, None, &identity, &[], &pair).await
}

/// Fails if nothing here reads the provider by this transport.
fn check(env: &Env, provider: Provider, transport: Transport) -> Result<(), ConnectError> {
    env.providers.connector(provider, transport).map(|_| ()).ok_or(ConnectError::NotRead(provider.label))
}

/// Fails for a source that is being forgotten: its new tokens would be removed with it.
async fn check_kept(tx: &mut Tx, tenant_id: TenantId, id: SourceId) -> Result<(), ConnectError> {
    let is_going = forgotten::under_way(tx, tenant_id).await?.contains(&id.0);
    if is_going { Err(ConnectError::Forgotten) } else { Ok(()) }
}

async fn identify(
    env: &Env,
    provider: Provider,
    token: &Secret,
    account: Option<&str>,
) -> Result<Identity, ConnectError> {
    let connector = env.providers.connector(provider, Transport::Rest);
    let connector = connector.ok_or(not_set_up(provider))?;
    let pace = Paced::new(&env.db, provider, SourceId::new(), env.config.pull_rate_factor);
    let account = Account { token, account: account.unwrap_or_default(), pace: &pace, places: &[] };
    connector.identify(&account).await.map_err(|error| match error {
        PullError::Unauthorized { who } => ConnectError::Refused(format!("{who} refused the key or token")),
        refused @ PullError::Forbidden { .. } => ConnectError::Refused(refused.to_string()),
        other => ConnectError::Trouble(other.to_string()),
    })
}

/// Stores the source with its tokens in one transaction, and starts its first sync or the one that had stopped.
#[expect(clippy::too_many_arguments, reason = "one place where all of it comes together")]
async fn connect(
    env: &Env,
    tenant_id: TenantId,
    provider: Provider,
    transport: Transport,
    reconnect: Option<SourceId>,
    identity: &Identity,
    scopes: &[String],
    pair: &Pair<'_>,
) -> Result<SourceId, ConnectError> {
    let at = env.clock.sql();
    let mut tx = env.db.begin().await?;
    let known = match reconnect {
        Some(id) => {
            sources::locked_status(&mut tx, tenant_id, id).await?;
            check_kept(&mut tx, tenant_id, id).await?;
            let source = sources::load(&mut tx, tenant_id, id).await?.ok_or(ConnectError::UnknownState)?;
            let account = source.account.as_deref().unwrap_or_default();
            if account != identity.account || source.provider != provider.name {
                return Err(ConnectError::OtherAccount(identity.account.clone(), account.to_owned()));
            }
            // Unless another transport is asked for, it is read as before.
            Some((id, if transport == Transport::default() { source.transport } else { transport }))
        }
        // An account that is connected already is the same source.
        None => {
            let id = sources::of_account(&mut tx, tenant_id, provider.name, &identity.account).await?;
            if let Some(id) = id {
                sources::locked_status(&mut tx, tenant_id, id).await?;
                check_kept(&mut tx, tenant_id, id).await?;
            }
            id.map(|id| (id, transport))
        }
    };
    let id = match known {
        Some((id, transport)) => {
            sources::set_access(&mut tx, tenant_id, id, transport, scopes).await?;
            id
        }
        None => {
            let name = if identity.name.trim().is_empty() { &identity.account } else { &identity.name };
            let name: String = name.chars().take(200).collect();
            let new = NewSource { provider: provider.name, name: &name, account: &identity.account, transport, scopes };
            let id = sources::insert(&mut tx, at, tenant_id, &new).await?;
            if provider.mailbox.is_some() {
                let every = Duration::from_secs(env.config.mailbox_poll_secs);
                sources::set_sync_every(&mut tx, tenant_id, id, every).await?;
            }
            id
        }
    };
    if provider.mailbox.is_some() {
        store::mail::subscriptions::set_due(&mut tx, tenant_id, id, None).await?; // it may have ended meanwhile
    }
    let version = tokens::held(&mut tx, at, tenant_id, id).await?.map_or(0, |held| held.version);
    if pair.refresh.is_none() {
        // The old consent must not be renewed instead: it may be the reason to reconnect.
        tokens::drop_refresh(&mut tx, tenant_id, id).await?;
    }
    if !tokens::store(&mut tx, &env.vault, at, tenant_id, id, version, pair).await? {
        return Err(ConnectError::Meanwhile);
    }
    sources::set_status(&mut tx, at, tenant_id, id, SourceStatus::Active, None).await?;
    let what =
        if known.is_some() { "Reconnected; it goes on where it stopped" } else { "Connected; its first sync begins" };
    sources::tell(&mut tx, at, tenant_id, id, None, Tone::Good, what).await?;
    if let Some(source) = sources::load(&mut tx, tenant_id, id).await? {
        // From the start: a first sync that is given up is tried again at night.
        if source.next_sync_at.is_none() {
            let next = jobs::next_sync(env.clock.now(), source.sync_every_secs, id);
            sources::set_next_sync(&mut tx, tenant_id, id, Some(next)).await?;
        }
        jobs::go_on(env, &mut tx, &source, "connect").await?;
    }
    tx.commit().await?;
    Ok(id)
}

/// Disconnects a source: its tokens are removed at once and nothing is synced any more. Its documents stay until it is forgotten.
pub async fn disconnect(env: &Env, tenant_id: TenantId, id: SourceId) -> store::Result<bool> {
    subscriptions::remove(env, tenant_id, id).await?; // while there is a token
    let disconnected = env.db.write(async |tx| {
        let Some(source) = sources::load(tx, tenant_id, id).await? else { return Ok(false) };
        let_go(env, tx, &source).await?;
        Ok(true)
    });
    disconnected.await
}

async fn let_go(env: &Env, tx: &mut Tx, source: &Source) -> store::Result<()> {
    let (at, tenant_id, id) = (env.clock.sql(), TenantId(source.tenant_id), SourceId(source.id));
    // Its job first, and the syncs that were to run after it: every code path that ends a job locks the message before the source.
    while let Some(job_id) = store::jobs::live(tx, tenant_id, id).await? {
        jobs::stop(env, tx, tenant_id, job_id).await?;
    }
    sources::set_status(tx, at, tenant_id, id, SourceStatus::Disconnected, None).await?;
    sources::set_next_sync(tx, tenant_id, id, None).await?;
    store::mail::subscriptions::forget(tx, tenant_id, id).await?;
    store::mail::pending::forget(tx, tenant_id, id).await?;
    tokens::remove(tx, tenant_id, id).await?;
    sources::tell(tx, at, tenant_id, id, None, Tone::Info, "Disconnected; its documents are kept").await
}

/// Disconnects a source and has everything removed that came from it. Returns the counts by kind. A second call changes nothing.
pub async fn forget(
    env: &Env,
    tenant_id: TenantId,
    id: SourceId,
    by: &str,
) -> store::Result<Option<forgotten::Counted>> {
    subscriptions::remove(env, tenant_id, id).await?;
    let counted = env.db.write(async |tx| {
        let Some(source) = sources::load(tx, tenant_id, id).await? else { return Ok(None) };
        let counted = forgotten::count(tx, tenant_id, Subject::Source(id)).await?;
        if forgotten::under_way(tx, tenant_id).await?.contains(&id.0) {
            return Ok(Some(counted));
        }
        if source.status != SourceStatus::Disconnected {
            let_go(env, tx, &source).await?;
        }
        if sources::locked_status(tx, tenant_id, id).await?.is_none() {
            return Ok(None);
        }
        if forgotten::under_way(tx, tenant_id).await?.contains(&id.0) {
            return Ok(Some(counted));
        }
        let label = env.providers.label(&source.provider);
        let forgotten_id = forgotten::begin(tx, tenant_id, label, by, &counted).await?;
        queue_of::<Forget>().send(tx, tenant_id, &[Forget { source_id: id, forgotten_id }]).await?;
        Ok(Some(counted))
    });
    counted.await
}

fn not_set_up(provider: Provider) -> ConnectError {
    match super::words::settings(provider) {
        Some([id, secret]) => ConnectError::NotSetUp(provider.label, id, secret),
        None => ConnectError::ByKeyAlone(provider.label),
    }
}

/// The provider's error code, if it is a plain word: its sentences are not shown.
fn plain(word: &str) -> String {
    let is_word = (1..=60).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    if is_word { word.to_owned() } else { "no reason given".into() }
}

impl From<ConnectError> for Fault {
    fn from(error: ConnectError) -> Self {
        Self::Refused { what: error.to_string() }
    }
}
