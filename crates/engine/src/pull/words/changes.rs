//! The way in which the changes of a mailbox come in, as people read it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::Transport;
use store::sources::Source;

use super::cadence::spelled;
use crate::Env;
use crate::mail::subscriptions::{Way, is_heard, way};

/// Says how the changes of a mailbox come in; none for other sources, and while it is not read.
pub fn changes(env: &Env, source: &Source) -> Option<String> {
    let provider = env.providers.named(&source.provider).ok()?;
    let spec = provider.mailbox.as_ref()?;
    if !source.status.is_synced() || source.transport != Transport::Rest {
        return None;
    }
    let silence = Duration::from_secs(env.config.mailbox_safety_secs);
    Some(told(provider.label, source, &way(env, spec), env.clock.now(), silence))
}

fn told(who: &str, source: &Source, way: &Way, now: DateTime<Utc>, silence: Duration) -> String {
    let every = spelled(Duration::try_from_secs_f64(source.sync_every_secs).unwrap_or_default());
    match way {
        _ if is_heard(source, now) => {
            let silence = spelled(silence);
            format!(
                "{who} tells of changes; after {silence} without a word it is asked, and every {every} while it does not tell"
            )
        }
        Way::Missing(setting) => {
            format!("{who} is asked for changes every {every}; it cannot tell of them while {setting} is not set")
        }
        Way::Told { .. } => {
            let why = source.subscription_trouble.as_deref().map(|code| format!(" ({code})")).unwrap_or_default();
            format!("{who} is asked for changes every {every}, until it tells of them{why}")
        }
    }
}

/// The time until which a provider tells of a mailbox's changes, and that of the next renewal; none while it does not.
pub fn until(source: &Source, now: DateTime<Utc>) -> Option<(DateTime<Utc>, Option<DateTime<Utc>>)> {
    let until = source.subscription_expires_at.filter(|_| is_heard(source, now))?;
    Some((until, source.subscription_due_at.filter(|_| source.status.is_synced()).map(|due| due.max(now))))
}
