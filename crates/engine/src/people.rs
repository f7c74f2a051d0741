//! A tenant's people, who own activities: listed, added, changed, removed. The person of the built-in agent is the program's own and not among them.

use domain::shown::{number, plural};
use domain::{Caller, KeyId, Notice, Op, PersonId, Role, Scope};
use store::keys;
use store::people::{self, MOST_COUNTED};
pub use store::people::{Fields, Owned, Person};

use crate::act::OrMissing as _;
use crate::{ActError, Env};

/// The longest time that a person's activities wait for their own agents: 30 days.
pub const MOST_MINUTES: i32 = 30 * 24 * 60;
/// So many activities change hands in one commit.
const BITE: i64 = 5_000;

/// A person who was removed.
#[derive(Debug)]
pub struct Removed {
    pub owned: Owned,
    /// The keys that were good until now.
    pub revoked: Vec<KeyId>,
}

pub async fn list(env: &Env, caller: &Caller) -> Result<Vec<Person>, ActError> {
    let all = env.db.read(caller, async |tx| people::list(tx, caller.tenant_id).await).await?;
    Ok(all.into_iter().filter(|person| !person.is_built_in()).collect())
}

pub async fn get(env: &Env, caller: &Caller, id: PersonId) -> Result<Person, ActError> {
    let found = env.db.read(caller, async |tx| people::get(tx, caller.tenant_id, id).await).await?;
    found.filter(|person| !person.is_built_in()).or_missing("person")
}

/// Counts what belongs to a person, to tell before removing them.
pub async fn owned(env: &Env, caller: &Caller, id: PersonId) -> Result<Owned, ActError> {
    get(env, caller, id).await?;
    Ok(env.db.session(async |conn| people::owned(conn, env.clock.sql(), caller.tenant_id, id).await).await?)
}

pub async fn create(env: &Env, caller: &Caller, new: Fields) -> Result<Person, ActError> {
    let new = checked(new)?;
    if new.email.is_none() {
        return Err(ActError::invalid("a person needs an e-mail address"));
    }
    let created = env.db.write(async |tx| {
        let id = people::insert(tx, caller.tenant_id, &new).await?;
        people::get(tx, caller.tenant_id, id).await?.or_missing("person")
    });
    let person = created.await?;
    tracing::info!(tenant.id = %caller.tenant_id, "person {} was added by key {}", person.id, caller.key_id);
    Ok(person)
}

pub async fn change(env: &Env, caller: &Caller, id: PersonId, change: Fields) -> Result<Person, ActError> {
    let known = get(env, caller, id).await?;
    let change = checked(change)?;
    if caller.person_id == Some(id) && change.role.is_some_and(|role| role != known.role) {
        return Err(ActError::conflict("nobody changes their own role: somebody else has to do it"));
    }
    let changed = env.db.write(async |tx| {
        people::change(tx, caller.tenant_id, id, &change).await?.or_missing("person")?;
        // Keys for frames come from the role, so they end with it.
        let may_process = |role: Role| role.scopes().iter().any(|scope| matches!(scope, Scope::Agent | Scope::Service));
        if change.role.is_some_and(|role| !may_process(role)) {
            keys::revoke_frames(tx, caller.tenant_id, id).await?;
        }
        people::get(tx, caller.tenant_id, id).await?.or_missing("person")
    });
    let person = changed.await?;
    tracing::info!(tenant.id = %caller.tenant_id, "person {id} was changed by key {}", caller.key_id);
    Ok(person)
}

/// Removes a person: their keys are revoked and their sessions end, in the first commit. Then channels, activities and contacts become everyone's, some
/// thousands in a commit, and the person goes with the last. Asking again after a crash goes on.
pub async fn remove(env: &Env, caller: &Caller, id: PersonId) -> Result<Removed, ActError> {
    let (tenant_id, owned) = (caller.tenant_id, owned(env, caller, id).await?);
    if caller.person_id == Some(id) {
        return Err(ActError::conflict("nobody removes themselves: somebody else has to do it"));
    }
    let mut revoked = Vec::new();
    for round in 0.. {
        let removed = env.db.write(async |tx| {
            people::lock(tx, tenant_id, id).await?.or_missing("person")?;
            // In every round: somebody may have made a key meanwhile.
            let (keys, given_back) = people::shut_out(tx, tenant_id, id).await?;
            tx.notify_all(Notice::activities(tenant_id, &given_back, Op::Update));
            if round == 0 {
                return Ok::<_, ActError>((keys, false));
            }
            let disowned = people::disown(tx, tenant_id, id, BITE).await?;
            let n_contacts = people::disown_contacts(tx, tenant_id, id, BITE).await?;
            tx.notify_all(Notice::activities(tenant_id, &disowned, Op::Update));
            let is_last = (disowned.len() as i64) < BITE && n_contacts < BITE as u64;
            if is_last {
                people::delete(tx, tenant_id, id).await?;
                tx.notify(crate::nodes::changed(tenant_id));
            }
            Ok((keys, is_last))
        });
        let (keys, is_last) = removed.await?;
        revoked.extend(keys);
        if is_last {
            break;
        }
    }
    tracing::info!(tenant.id = %tenant_id, "person {id} was removed by key {}", caller.key_id);
    Ok(Removed { owned, revoked })
}

/// How many things of each kind belong to a person: `10,000+` where counting stopped.
pub fn counts(owned: &Owned) -> Vec<(&'static str, String)> {
    let counted = |n: i64| format!("{}{}", number(n), if n >= MOST_COUNTED { "+" } else { "" });
    let kinds = [
        ("Channels", owned.channels),
        ("Activities", owned.activities),
        ("Contacts", owned.contacts),
        ("Keys", owned.keys),
        ("Devices", owned.devices),
        ("Sessions", owned.sessions),
    ];
    kinds.map(|(label, n)| (label, counted(n))).into()
}

/// Says what becomes of a person's things when they are removed, a sentence for each kind.
pub fn fate(owned: &Owned) -> Vec<String> {
    let said = |n: i64, one: &str, many: &str| match n {
        MOST_COUNTED.. => format!("{}+ {many}", number(n)),
        _ => plural(n, one, many),
    };
    let becomes = |n: i64| if n == 1 { "becomes everyone's" } else { "become everyone's" };
    let is = |n: i64| if n == 1 { "is" } else { "are" };
    let kinds = [
        (owned.channels, said(owned.channels, "channel", "channels"), becomes(owned.channels).to_owned()),
        (owned.activities, said(owned.activities, "activity", "activities"), becomes(owned.activities).to_owned()),
        (owned.contacts, said(owned.contacts, "contact", "contacts"), becomes(owned.contacts).to_owned()),
        (owned.keys, said(owned.keys, "key", "keys"), format!("{} revoked", is(owned.keys))),
        (owned.devices, said(owned.devices, "device", "devices"), format!("{} forgotten", is(owned.devices))),
        (
            owned.sessions,
            said(owned.sessions, "session", "sessions"),
            if owned.sessions == 1 { "ends" } else { "end" }.into(),
        ),
    ];
    let told = kinds.into_iter().filter(|(n, ..)| *n > 0).map(|(_, what, fate)| format!("{what} {fate}."));
    told.collect()
}

/// Brings fields to the form in which they are stored.
fn checked(fields: Fields) -> Result<Fields, ActError> {
    if fields.stale_threshold_minutes.is_some_and(|minutes| !(0..=MOST_MINUTES).contains(&minutes)) {
        return Err(ActError::invalid(format!("stale_threshold_minutes is a number from 0 to {MOST_MINUTES}")));
    }
    let name = |name: Option<String>| match name.as_deref().map(str::trim) {
        None => Ok(None),
        Some(name) if name.chars().count() <= 100 && !name.chars().any(char::is_control) => Ok(Some(name.to_owned())),
        Some(_) => Err(ActError::invalid("a person's name has at most 100 characters")),
    };
    Ok(Fields {
        email: fields.email.as_deref().map(checked_email).transpose()?.map(str::to_owned),
        first_name: name(fields.first_name)?,
        last_name: name(fields.last_name)?,
        ..fields
    })
}

/// An e-mail address that names a person, trimmed.
pub(crate) fn checked_email(text: &str) -> Result<&str, ActError> {
    let email = text.trim();
    if email.eq_ignore_ascii_case(store::claims::BUILT_IN) {
        return Err(ActError::invalid("that address is the built-in agent's own"));
    }
    let (name, domain) = email.rsplit_once('@').unwrap_or_default();
    let is_odd = |c: char| c.is_control() || c.is_whitespace();
    if name.is_empty() || domain.is_empty() || email.len() > 254 || email.chars().any(is_odd) {
        return Err(ActError::invalid("a person is named by an e-mail address"));
    }
    Ok(email)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_named_by_an_address() {
        assert_eq!(checked_email(" ann@example.com ").expect("an address"), "ann@example.com");
        let long = format!("{}@x", "a".repeat(253));
        for odd in ["", "ann", "@", "ann@", "@x", "a b@x", "ann@exam\0ple.com", "ann@example.com\nbob@x.com", &long] {
            assert!(checked_email(odd).is_err(), "{odd:?}");
        }
        assert!(checked_email("Built-In-Agent@tributary.invalid").is_err(), "the built-in agent's");
    }

    #[test]
    fn fields_are_trimmed_and_checked() {
        let fields = Fields { first_name: Some(" Ann ".into()), last_name: Some(" ".into()), ..Fields::default() };
        let kept = checked(fields).expect("fields");
        assert_eq!((kept.first_name.as_deref(), kept.last_name.as_deref(), kept.email), (Some("Ann"), Some(""), None));
        for (minutes, is_good) in [(0, true), (MOST_MINUTES, true), (-1, false), (MOST_MINUTES + 1, false)] {
            let fields = Fields { stale_threshold_minutes: Some(minutes), ..Fields::default() };
            assert_eq!(checked(fields).is_ok(), is_good, "{minutes}");
        }
        assert!(checked(Fields { first_name: Some("a\nb".into()), ..Fields::default() }).is_err());
        assert!(checked(Fields { last_name: Some("x".repeat(101)), ..Fields::default() }).is_err());
    }

    #[test]
    fn what_becomes_of_each_kind_is_told_and_of_nothing_nothing() {
        let owned = Owned { channels: 1, activities: 10_000, contacts: 2, keys: 1, devices: 3, sessions: 2 };
        let expected = [
            "1 channel becomes everyone's.",
            "10,000+ activities become everyone's.",
            "2 contacts become everyone's.",
            "1 key is revoked.",
            "3 devices are forgotten.",
            "2 sessions end.",
        ];
        assert_eq!(fate(&owned), expected);
        assert_eq!(fate(&Owned::default()), [""; 0]);
        assert_eq!(counts(&owned)[..2], [("Channels", "1".to_owned()), ("Activities", "10,000+".to_owned())]);
    }
}
