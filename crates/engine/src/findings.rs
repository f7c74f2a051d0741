//! Findings as a person deals with them: one line for each kind, with what can be done about all of them at once. [`crate::health`] finds them.

use std::time::Duration;

use domain::item::Action;
use domain::shown::{clipped, plural};
use domain::{Caller, ItemId, ItemState, JobId, SourceId};
use store::alerts::{self, Dismissal, Finding};
use store::queue::Page;

use crate::mail::check;
use crate::{ActError, Env, activities, health, items, jobs};

/// How long a person does not see what was dismissed, unless its cause goes and comes back before.
const DISMISSED_FOR: Duration = Duration::from_secs(24 * 3_600);
/// Items, dead letters or syncs that are retried at once: what a request has the time for. What is left is retried by asking again.
pub const MOST_AT_ONCE: usize = 1_000;
const BITE: i64 = 200;

/// All findings of one kind.
#[derive(Clone, Debug)]
pub struct Group {
    pub kind: &'static str,
    /// The problem, in words. Of several findings, how many there are.
    pub what: String,
    /// The action to take.
    pub todo: String,
    /// Something does not work until somebody acts. Otherwise it waits, or mends itself.
    pub is_broken: bool,
    /// [`retry`] acts on them. The words on its button.
    pub retry: Option<&'static str>,
    pub findings: Vec<Finding>,
}

/// Groups findings by their kinds, what is broken first. A finding that was dismissed is in the second list.
pub async fn groups(env: &Env, caller: &Caller, findings: Vec<Finding>) -> Result<(Vec<Group>, Vec<Group>), ActError> {
    let at = env.clock.sql();
    let dismissed = env.db.session(async |conn| alerts::dismissals(conn, at, caller.tenant_id).await).await?;
    let is_dismissed = |finding: &Finding| {
        dismissed.iter().any(|Dismissal { kind, subject }| *kind == finding.kind && *subject == finding.subject)
    };
    let (hidden, seen) = findings.into_iter().partition(is_dismissed);
    Ok((grouped(seen), grouped(hidden)))
}

fn grouped(findings: Vec<Finding>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for finding in findings {
        match groups.iter_mut().find(|group| group.kind == finding.kind) {
            Some(group) => group.findings.push(finding),
            None => groups.push(Group {
                kind: finding.kind,
                what: finding.what.clone(),
                todo: finding.todo.clone(),
                is_broken: is_broken(finding.kind),
                retry: match finding.kind {
                    "dead_items" | "dead_letters" | "sync_failed" => Some("Retry all"),
                    "mail_differs" => Some("Fetch them"),
                    _ => None,
                },
                findings: vec![finding],
            }),
        }
    }
    for group in &mut groups {
        if let Some(what) = of_several(group.kind, group.findings.len()) {
            group.what = what;
        }
    }
    groups.sort_by_key(|group| !group.is_broken);
    groups
}

/// Whether something does not work until somebody acts.
fn is_broken(kind: &str) -> bool {
    !matches!(
        kind,
        "budget_spent"
            | "embedding_price"
            | "activities_held"
            | "memory_model"
            | "long_transaction"
            | "worker_dead"
            | "schedule_late"
            | "schedule_failing"
    )
}

/// Says how many findings there are of a kind; none for one, which speaks for itself.
fn of_several(kind: &str, n: usize) -> Option<String> {
    let n = i64::try_from(n).ok().filter(|n| *n > 1)?;
    Some(match kind {
        "source_reconnect" => format!("{} need you to reconnect them", plural(n, "account", "accounts")),
        "source_error" => format!("{} cannot be read", plural(n, "account", "accounts")),
        "sync_failed" => format!("the last sync of {} was given up", plural(n, "account", "accounts")),
        "mail_differs" => format!("{} differ from what their providers count", plural(n, "mailbox", "mailboxes")),
        "dead_items" => format!("items were given up in {}", plural(n, "lane", "lanes")),
        "channel_refuses" => format!("{} refused many requests", plural(n, "webhook", "webhooks")),
        "worker_dead" => format!("{} went silent", plural(n, "worker", "workers")),
        "worker_stalled" => format!("{} get nowhere", plural(n, "worker", "workers")),
        "schedule_failing" => format!("{} failed", plural(n, "schedule", "schedules")),
        "schedule_late" => format!("{} are late", plural(n, "schedule", "schedules")),
        "provider_client" => format!("{} refuse our app", plural(n, "provider", "providers")),
        "embedder_blocked" => format!("{} make no vectors", plural(n, "embedder", "embedders")),
        "long_transaction" => format!("{} slow every queue down", plural(n, "transaction", "transactions")),
        _ => format!("{} of this kind", plural(n, "finding", "findings")),
    })
}

/// Hides what is found of a kind now, for a day. Another one of the kind is shown when it comes.
pub async fn dismiss(env: &Env, caller: &Caller, kind: &str) -> Result<(), ActError> {
    let found = health::overview(env, caller).await?.findings;
    let subjects: Vec<&str> = found.iter().filter(|f| f.kind == kind).map(|f| f.subject.as_str()).collect();
    if subjects.is_empty() {
        return Err(ActError::NotFound("alert"));
    }
    let (at, by) = (env.clock.sql(), clipped(&caller.key_name, 60));
    let dismissed =
        env.db.write(async |tx| alerts::dismiss(tx, at, caller.tenant_id, kind, &subjects, &by, DISMISSED_FOR).await);
    Ok(dismissed.await?)
}

/// Shows again what was dismissed of a kind.
pub async fn restore(env: &Env, caller: &Caller, kind: &str) -> Result<(), ActError> {
    let restored = env.db.session(async |conn| alerts::restore(conn, caller.tenant_id, kind).await).await?;
    if restored > 0 { Ok(()) } else { Err(ActError::NotFound("alert")) }
}

/// Retries what was given up, of one kind: items, activities or syncs; or fetches the letters of mailboxes that differ. Returns how many; after [`MOST_AT_ONCE`] there may be more.
pub async fn retry(env: &Env, caller: &Caller, kind: &str) -> Result<usize, ActError> {
    match kind {
        "dead_letters" => retry_letters(env, caller).await,
        "dead_items" => {
            let mut n = 0;
            for lane in found(env, caller, kind).await? {
                n += retry_items(env, caller, &lane, MOST_AT_ONCE.saturating_sub(n)).await?;
            }
            Ok(n)
        }
        "sync_failed" => {
            let mut n = 0;
            for job in found(env, caller, kind).await? {
                let Ok(id) = job.parse() else { continue };
                n += went(jobs::retry(env, caller, JobId(id)).await)?;
            }
            Ok(n)
        }
        "mail_differs" => {
            let mut n = 0;
            for mailbox in found(env, caller, kind).await? {
                let Ok(id) = mailbox.parse() else { continue };
                n += match check::fetch_all_missing(env, caller, SourceId(id)).await {
                    Ok(days) => days,
                    Err(error) => went(Err(error))?,
                };
            }
            Ok(n)
        }
        _ => Err(ActError::NotFound("alert")),
    }
}

/// The subjects of what is found of a kind now.
async fn found(env: &Env, caller: &Caller, kind: &str) -> Result<Vec<String>, ActError> {
    let found = health::overview(env, caller).await?.findings;
    Ok(found.into_iter().filter(|finding| finding.kind == kind).map(|finding| finding.subject).collect())
}

async fn retry_letters(env: &Env, caller: &Caller) -> Result<usize, ActError> {
    let (mut before, mut n) = (None, 0);
    while n < MOST_AT_ONCE {
        let (letters, next) = activities::dead_letters(env, caller, before, BITE).await?;
        let ids: Vec<_> = letters.iter().map(|letter| letter.activity.id).collect();
        n += activities::replay(env, caller, &ids).await?;
        before = next;
        if before.is_none() {
            break;
        }
    }
    Ok(n)
}

async fn retry_items(env: &Env, caller: &Caller, lane: &str, most: usize) -> Result<usize, ActError> {
    let lane = items::lane(lane)?;
    let (mut before, mut n): (Option<ItemId>, usize) = (None, 0);
    while n < most {
        let page = Page { state: Some(ItemState::Dead), before, limit: BITE };
        let (dead, next) = items::list(env, caller, lane, page).await?;
        for item in &dead {
            let Ok(id) = item.id.parse() else { continue };
            n += went(items::act(env, caller, lane, id, Action::Retry).await.map(|_| ()))?;
        }
        before = next.and_then(|id| id.parse().ok());
        if before.is_none() {
            break;
        }
    }
    Ok(n)
}

/// One, if it went; none, if it had moved on meanwhile.
fn went(done: Result<(), ActError>) -> Result<usize, ActError> {
    match done {
        Ok(()) => Ok(1),
        Err(ActError::Conflict(_) | ActError::NotFound(_)) => Ok(0),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_one_line_and_what_is_broken_comes_first() {
        let finding = |kind, subject: &str| Finding {
            kind,
            subject: subject.into(),
            what: format!("{subject} is odd"),
            todo: "look".into(),
        };
        let groups = grouped(vec![
            finding("budget_spent", "embeddings"),
            finding("source_reconnect", "a"),
            finding("source_reconnect", "b"),
            finding("no_worker", "all"),
        ]);
        let told: Vec<_> = groups.iter().map(|group| (group.what.as_str(), group.is_broken)).collect();
        assert_eq!(
            told,
            [("2 accounts need you to reconnect them", true), ("all is odd", true), ("embeddings is odd", false)]
        );
        assert_eq!(groups[0].findings.len(), 2);
    }

    #[test]
    fn what_waits_or_mends_itself_is_not_broken() {
        for kind in ["worker_dead", "budget_spent", "schedule_failing"] {
            assert!(!is_broken(kind), "{kind}");
        }
        for kind in ["no_worker", "source_reconnect", "dead_letters", "something new"] {
            assert!(is_broken(kind), "{kind}");
        }
    }
}
