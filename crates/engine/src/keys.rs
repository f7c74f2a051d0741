//! A tenant's keys: listed, made, revoked.

use std::time::Duration;

use domain::{Caller, KeyId, PersonId, Scope, Secret};
use store::keys::Key;
use store::{keys, people};

use crate::act::{OrMissing as _, checked_name};
use crate::people::checked_email;
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
}
