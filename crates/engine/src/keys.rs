//! A tenant's keys: listed, made, revoked.

use domain::{Caller, KeyId, Scope, Secret};
use store::keys::Key;
use store::{keys, people};

use crate::act::{OrMissing as _, checked_name};
use crate::{ActError, Env};

/// A key that shall be made.
#[derive(Clone, Debug)]
pub struct NewKey<'a> {
    /// Where it is used: one key per device or program.
    pub name: &'a str,
    pub scopes: &'a [Scope],
    /// Whose key it is, by e-mail address; a new person is made. An agent's key needs one.
    pub person: Option<&'a str>,
}

/// A key that was made. Only this value has its secret.
#[derive(Debug)]
pub struct MadeKey {
    pub id: KeyId,
    pub name: String,
    pub secret: Secret,
}

/// The tenant's keys, without their secrets.
pub async fn list(env: &Env, caller: &Caller) -> Result<Vec<Key>, ActError> {
    Ok(env.db.session(async |conn| keys::list(conn, caller.tenant_id).await).await?)
}

/// Makes a key.
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
    Ok(NewKey { name, scopes: new.scopes, person })
}

/// Revokes a key. Servers that know it refuse it within five seconds.
pub async fn revoke(env: &Env, caller: &Caller, id: KeyId) -> Result<(), ActError> {
    let is_revoked = env.db.session(async |conn| keys::revoke(conn, caller.tenant_id, id).await).await?;
    is_revoked.or_missing("key")?;
    tracing::info!(key.id = %id, tenant.id = %caller.tenant_id, "key {id} was revoked by key {}", caller.key_id);
    Ok(())
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
