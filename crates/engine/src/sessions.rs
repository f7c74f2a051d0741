//! Signing in: links that work once, the sessions that they and keys begin, and ending them.

use chrono::{DateTime, Utc};
use domain::{Caller, KeyId, PersonId, Scope, Secret};
pub use store::sessions::{Begun, Browser, Session};
use store::{keys, people, sessions};
use uuid::Uuid;

use crate::act::OrMissing as _;
use crate::{ActError, Env};

/// The life of the link that `tributary signin` prints, and of one that people make for another device of theirs.
pub const LINK_MINUTES: i32 = 15;
/// The life of an invitation: it is sent by whatever way people write to each other.
pub const INVITATION_HOURS: i32 = 72;

/// A link that signs a browser in, once. It is a secret.
#[derive(Debug)]
pub struct Link {
    pub url: Secret,
    pub expires_at: DateTime<Utc>,
}

/// Makes a link that signs in with every right of the caller's tenant.
pub async fn new_link(env: &Env, caller: &Caller) -> Result<Link, ActError> {
    let link = env.db.write(async |tx| {
        let key_id = keys::ensure_dashboard(tx, caller.tenant_id).await?;
        sessions::new_link(tx, env.clock.sql(), caller.tenant_id, key_id, LINK_MINUTES).await
    });
    Ok(link_of(env, link.await?))
}

/// Makes a link that signs a person in. One that they make themselves, for another device, is valid for a short time only. It replaces an earlier
/// link that was not used.
pub async fn invite(env: &Env, caller: &Caller, id: PersonId) -> Result<Link, ActError> {
    let is_own = caller.is_signed_in && caller.person_id == Some(id);
    let minutes = if is_own { LINK_MINUTES } else { INVITATION_HOURS * 60 };
    let link = env.db.write(async |tx| {
        let person = people::lock(tx, caller.tenant_id, id).await?;
        person.filter(|person| !person.is_built_in()).or_missing("person")?;
        let key_id = keys::ensure_sign_in(tx, caller.tenant_id, id).await?;
        sessions::drop_links(tx, caller.tenant_id, key_id).await?;
        Ok::<_, ActError>(sessions::new_link(tx, env.clock.sql(), caller.tenant_id, key_id, minutes).await?)
    });
    let link = link_of(env, link.await?);
    tracing::info!(tenant.id = %caller.tenant_id, "a sign-in link for person {id} was made by key {}", caller.key_id);
    Ok(link)
}

/// The secret is in the fragment, which browsers do not send, so no log contains it.
fn link_of(env: &Env, (secret, expires_at): (Secret, DateTime<Utc>)) -> Link {
    let url = Secret::new(format!("{}/signin#once={}", env.config.base_url(), secret.reveal()));
    Link { url, expires_at }
}

/// Exchanges a link for a session, in one transaction: a link that is used up has made its session. None: it is not good, or no longer.
pub async fn redeem_link(env: &Env, link: &Secret, browser: &Browser) -> Result<Option<Begun>, ActError> {
    Ok(env.db.write(async |tx| sessions::redeem_link(tx, env.clock.sql(), link, browser).await).await?)
}

/// Begins a browser session of the caller's key.
pub async fn begin(env: &Env, caller: &Caller, browser: &Browser) -> Result<Begun, ActError> {
    let at = env.clock.sql();
    let begun =
        env.db.session(async |conn| sessions::new_session(conn, at, caller.tenant_id, caller.key_id, browser).await);
    Ok(begun.await?)
}

/// Ends the session that a browser shows.
pub async fn sign_out(env: &Env, session: &Secret) -> Result<(), ActError> {
    Ok(env.db.session(async |conn| sessions::end(conn, session).await).await?)
}

/// Lists sessions and unused links: an owner sees the tenant's, everybody else their own; or those of one person. `asks` is the hash of the session that asks.
pub async fn list(
    env: &Env,
    caller: &Caller,
    asks: Option<[u8; 32]>,
    person_id: Option<PersonId>,
) -> Result<Vec<Session>, ActError> {
    let (tenant_id, own, at) = (caller.tenant_id, own(caller), env.clock.sql());
    Ok(env.db.session(async |conn| sessions::list(conn, at, tenant_id, own, asks, person_id).await).await?)
}

/// Ends a session, or makes a link useless: an owner any of the tenant, everybody else their own. Returns its key, whose callers servers have to
/// look up again.
pub async fn end(env: &Env, caller: &Caller, id: Uuid) -> Result<KeyId, ActError> {
    let (tenant_id, own) = (caller.tenant_id, own(caller));
    let ended = env.db.session(async |conn| sessions::end_by_id(conn, tenant_id, own, id).await).await?;
    let key_id = ended.or_missing("session")?;
    tracing::info!(tenant.id = %tenant_id, "session {id} was ended by key {}", caller.key_id);
    Ok(key_id)
}

/// The key to whose sessions a caller is confined. A person's sessions have a key of their own.
fn own(caller: &Caller) -> Option<KeyId> {
    (!caller.may(Scope::Service)).then_some(caller.key_id)
}
