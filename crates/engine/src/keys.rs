//! A tenant's keys: listed, made, revoked; and the browser sessions that belong to keys.

use std::time::Duration;

use domain::{Caller, KeyId, PersonId, Scope, Secret};
use store::keys::Key;
use store::{keys, people, sessions};

use crate::act::{OrMissing as _, checked_name};
use crate::{ActError, Env};

/// Keys of one person for one site that are good at once: the site may be open in several tabs and on several devices, and what was claimed with
/// a key is completed with it.
const FRAME_KEYS: i64 = 4;
/// The life of such a key. Every time the site is opened it gets a new one.
const FRAME_KEY_LASTS: Duration = Duration::from_secs(7 * 24 * 3_600);

/// A key that shall be made.
#[derive(Clone, Debug)]
pub struct NewKey<'a> {
    /// The device or program that uses it; each has its own key.
    pub name: &'a str,
    pub scopes: &'a [Scope],
    /// The owner's e-mail address; an unknown person is created. An agent's key needs one.
    pub person: Option<&'a str>,
}

/// A key that was made. Only this value has its secret.
#[derive(Debug)]
pub struct MadeKey {
    pub id: KeyId,
    pub name: String,
    pub secret: Secret,
}

/// The key of a frame, and the older ones that were revoked for it.
#[derive(Debug)]
pub struct FrameKey {
    pub secret: Secret,
    pub revoked: Vec<KeyId>,
}

/// The tenant's keys, without their secrets.
pub async fn list(env: &Env, caller: &Caller) -> Result<Vec<Key>, ActError> {
    Ok(env.db.session(async |conn| keys::list(conn, caller.tenant_id).await).await?)
}

/// Creates a key.
pub async fn create(env: &Env, caller: &Caller, new: &NewKey<'_>) -> Result<MadeKey, ActError> {
    let NewKey { name, person, scopes } = checked(new)?;
    let made = env.db.write(async |tx| {
        let person_id = match person {
            Some(email) => Some(people::ensure(tx, caller.tenant_id, email).await?),
            None => None,
        };
        keys::create(tx, caller.tenant_id, person_id, name, scopes).await
    });
    let (id, secret) = made.await?;
    tracing::info!(key.id = %id, tenant.id = %caller.tenant_id, "key {id} was made by key {}", caller.key_id);
    Ok(MadeKey { id, name: name.to_owned(), secret })
}

fn checked<'a>(new: &NewKey<'a>) -> Result<NewKey<'a>, ActError> {
    let name = checked_name("a key's", new.name)?;
    if new.scopes.is_empty() {
        return Err(ActError::invalid("a key needs at least one scope: read, write, agent or service"));
    }
    let person = new.person.map(checked_email).transpose()?;
    if person.is_none() && new.scopes.contains(&Scope::Agent) && !new.scopes.contains(&Scope::Service) {
        return Err(ActError::invalid(
            "an agent's key needs a person, by e-mail address: the agent works for that person",
        ));
    }
    Ok(NewKey { name, scopes: new.scopes, person })
}

/// Revokes a key. Servers that know it refuse it within five seconds.
pub async fn revoke(env: &Env, caller: &Caller, id: KeyId) -> Result<(), ActError> {
    let is_revoked = env.db.session(async |conn| keys::revoke(conn, caller.tenant_id, id).await).await?;
    is_revoked.or_missing("key")?;
    tracing::info!(key.id = %id, tenant.id = %caller.tenant_id, "key {id} was revoked by key {}", caller.key_id);
    Ok(())
}

/// Creates a key for a person's agents in another site that shows our pages in a frame. The oldest keys of that person and site are revoked.
pub async fn create_for_frame(
    env: &Env,
    caller: &Caller,
    person_id: PersonId,
    origin: &str,
) -> Result<FrameKey, ActError> {
    let (tenant_id, name) = (caller.tenant_id, format!("frame {origin}"));
    let made = env.db.write(async |tx| {
        let revoked = keys::revoke_older(tx, tenant_id, person_id, &name, FRAME_KEYS - 1).await?;
        let scopes = [Scope::Agent];
        let made = keys::create_for(tx, tenant_id, Some(person_id), &name, &scopes, Some(FRAME_KEY_LASTS)).await?;
        Ok::<_, ActError>((revoked, made))
    });
    let (revoked, (id, secret)) = made.await?;
    tracing::info!(key.id = %id, tenant.id = %tenant_id, "key {id} was made for a frame of {origin} by key {}", caller.key_id);
    Ok(FrameKey { secret, revoked })
}

/// Makes a link that signs a browser in, once. The secret is in the fragment, which browsers do not send, so no log contains it.
pub async fn new_link(env: &Env, caller: &Caller) -> Result<String, ActError> {
    let link = env.db.write(async |tx| {
        let key_id = keys::ensure_dashboard(tx, caller.tenant_id).await?;
        sessions::new_link(tx, env.clock.sql(), caller.tenant_id, key_id).await
    });
    let link = link.await?;
    Ok(format!("{}/signin#once={}", env.config.base_url(), link.reveal()))
}

/// Exchanges a link for a session, in one transaction: a link that is used up has made its session. None: it is not good, or no longer.
pub async fn redeem_link(env: &Env, link: &Secret) -> Result<Option<Secret>, ActError> {
    Ok(env.db.write(async |tx| sessions::redeem_link(tx, env.clock.sql(), link).await).await?)
}

/// Begins a browser session of the caller's key.
pub async fn begin_session(env: &Env, caller: &Caller) -> Result<Secret, ActError> {
    let session = env
        .db
        .session(async |conn| sessions::new_session(conn, env.clock.sql(), caller.tenant_id, caller.key_id).await);
    Ok(session.await?)
}

pub async fn end_session(env: &Env, session: &Secret) -> Result<(), ActError> {
    Ok(env.db.session(async |conn| sessions::end(conn, session).await).await?)
}

/// An e-mail address that names a person, trimmed.
fn checked_email(text: &str) -> Result<&str, ActError> {
    let email = text.trim();
    if email.contains('@') && email.len() <= 254 && !email.chars().any(char::is_control) {
        return Ok(email);
    }
    Err(ActError::invalid("a person is named by an e-mail address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_needs_a_name_a_scope_and_if_a_person_their_address() {
        let of = |name: &str, scopes: &[Scope], person: Option<&str>| {
            checked(&NewKey { name, scopes, person }).map(|new| (new.name.to_owned(), new.person.map(str::to_owned)))
        };
        let (read, ann) = ([Scope::Read], Some("ann@example.com"));
        assert_eq!(of(" till ", &read, None).expect("a key"), ("till".into(), None));
        assert_eq!(
            of("till", &read, Some(" ann@example.com ")).expect("a key"),
            ("till".into(), ann.map(str::to_owned))
        );
        for (name, scopes, person, why) in [
            ("", &read[..], ann, "a key's name has 1 to 100 characters"),
            ("till", &[], ann, "a key needs at least one scope: read, write, agent or service"),
            ("till", &read, Some("ann"), "a person is named by an e-mail address"),
        ] {
            assert_eq!(of(name, scopes, person).expect_err(why).to_string(), why);
        }
    }

    #[test]
    fn a_person_is_named_by_an_address() {
        assert_eq!(checked_email(" ann@example.com ").expect("an address"), "ann@example.com");
        let long = format!("{}@x", "a".repeat(253));
        for odd in ["", "ann", "ann@exam\0ple.com", "ann@example.com\nbob@example.com", &long] {
            assert!(checked_email(odd).is_err(), "{odd:?}");
        }
    }
}
