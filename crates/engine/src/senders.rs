//! Senders that match no contact, as a person deals with them: listed with their newest activity, ignored, and shown again.

use std::collections::HashMap;

use domain::Caller;
use domain::shown::clipped;
use store::activities::Activity;
use store::queue::MOST_COUNTED;
use store::senders::{Ignored, Sender};
use store::{activities, senders};

use crate::act::OrMissing as _;
use crate::{ActError, Env};

/// A sender with its newest activity.
#[derive(Clone, Debug)]
pub struct Unrecognised {
    pub sender: Sender,
    pub newest: Activity,
}

/// The latest senders without a contact.
#[derive(Clone, Debug)]
pub struct Latest {
    pub senders: Vec<Unrecognised>,
    /// The number of all of them, up to [`MOST_COUNTED`].
    pub n: i64,
}

/// Lists senders without a contact, the latest first, at most `limit`.
pub async fn unrecognised(env: &Env, caller: &Caller, limit: i64) -> Result<Latest, ActError> {
    let tenant_id = caller.tenant_id;
    let listed = env.db.session(async |conn| senders::unrecognised(conn, tenant_id, limit).await).await?;
    let ids: Vec<_> = listed.iter().map(|sender| sender.newest_id).collect();
    let newest = env.db.read(caller, async |tx| activities::get_all(tx, tenant_id, &ids).await).await?;
    let mut newest: HashMap<_, Activity> = newest.into_iter().map(|activity| (activity.id, activity)).collect();
    let (n_listed, n) = (listed.len(), listed.first().map_or(0, |first| first.n_senders));
    // One that the caller may not see, or that went meanwhile, is left out.
    let whole = |sender: Sender| newest.remove(&sender.newest_id).map(|newest| Unrecognised { sender, newest });
    let senders: Vec<Unrecognised> = listed.into_iter().filter_map(whole).collect();
    // Who does not see all of them is not told how many there are.
    let n = if senders.len() == n_listed { n } else { i64::try_from(senders.len()).unwrap_or(i64::MAX) };
    Ok(Latest { senders, n: n.min(MOST_COUNTED) })
}

/// Lists ignored senders, the latest first, at most `limit`.
pub async fn ignored(env: &Env, caller: &Caller, limit: i64) -> Result<Vec<Ignored>, ActError> {
    Ok(env.db.session(async |conn| senders::ignored(conn, caller.tenant_id, limit).await).await?)
}

/// Ignores a sender: it is not listed among the unrecognised ones any more. Its events are stored and processed like all others.
pub async fn ignore(env: &Env, caller: &Caller, address: &str) -> Result<(), ActError> {
    let address = checked(address)?;
    let by = clipped(&caller.key_name, 60);
    Ok(env.db.session(async |conn| senders::ignore(conn, caller.tenant_id, address, &by).await).await?)
}

/// Lists a sender again that was ignored.
pub async fn restore(env: &Env, caller: &Caller, address: &str) -> Result<(), ActError> {
    let address = checked(address)?;
    let restored = env.db.session(async |conn| senders::restore(conn, caller.tenant_id, address).await);
    restored.await?.or_missing("ignored sender")
}

fn checked(address: &str) -> Result<&str, ActError> {
    let n = address.chars().count();
    if (1..=1_000).contains(&n) && !address.contains('\0') {
        return Ok(address);
    }
    Err(ActError::invalid("a sender's address has 1 to 1,000 characters"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_some_text() {
        assert_eq!(checked("+15005550006").expect("an address"), "+15005550006");
        for odd in ["", "a\0b", &"x".repeat(1_001)] {
            assert!(checked(odd).is_err());
        }
    }
}
