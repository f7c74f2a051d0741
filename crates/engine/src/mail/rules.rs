//! The rules of a mailbox: listed with what each left out, switched, added, and tried on the letters of the last days.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::mail::rules::{Changed, Conditions, Facts, MOST_RULES, Rule, Rules, SHIPPED};
use domain::shown::clipped;
use domain::{Caller, SourceId, TenantId};
use store::PgConnection;
use store::mail::processed::{self, FORGOTTEN, Past};
use store::mail::rules::{self, RuleRow};

use super::letters::TRIED_DAYS;
use super::settings::mailbox;
use crate::act::{OrMissing as _, checked_name};
use crate::{ActError, Env};

/// The letters that a preview looks at, the latest ones.
const MOST_TRIED: i64 = 5_000;
/// The letters that a preview names.
const MOST_NAMED: usize = 20;
/// A preview gives up after so long.
const TRY_LIMIT: Duration = Duration::from_secs(5);

/// A rule of a mailbox, and what it did.
#[derive(Clone, Debug)]
pub struct RuleLine {
    pub rule: Rule,
    /// Letters that it left out and that are still out.
    pub n_left_out: i64,
    /// The person who changed it last, and when. None: nobody did.
    pub changed: Option<(String, DateTime<Utc>)>,
}

/// The change of a rule. Parts that are none stay as they are.
#[derive(Clone, Debug, Default)]
pub struct Change {
    pub is_on: Option<bool>,
    /// Of a rule of the mailbox's own. A name that no rule has yet makes a new one.
    pub conditions: Option<Conditions>,
}

/// The effect that a change of rules would have had on the letters of the last days.
#[derive(Clone, Debug, Default)]
pub struct Preview {
    pub since: DateTime<Utc>,
    pub looked_at: usize,
    /// There were more letters than are looked at.
    pub is_partial: bool,
    /// Letters that came in, and that would be left out.
    pub would_leave_out: Counted,
    /// Letters that were left out, and that would come in.
    pub would_let_in: Counted,
    /// Letters that it fits and for which nothing changes, because another rule leaves them out as well: that rule, and how many.
    pub shared: BTreeMap<String, usize>,
}

/// Letters: how many, and the latest of them.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    pub letters: usize,
    pub latest: Vec<Example>,
}

/// A letter that a preview names.
#[derive(Clone, Debug)]
pub struct Example {
    pub message_id: String,
    pub sender: String,
    pub subject: String,
    pub received_at: DateTime<Utc>,
}

/// The rules that are asked in a mailbox.
pub(super) async fn of(conn: &mut PgConnection, tenant_id: TenantId, source_id: SourceId) -> store::Result<Rules> {
    Ok(Rules::of(rules::list(conn, tenant_id, source_id).await?.into_iter().filter_map(changed).collect()))
}

/// Reads a row. A rule whose conditions this program does not understand, such as one of a newer version, leaves nothing out.
fn changed(row: RuleRow) -> Option<Changed> {
    let conditions = match row.conditions {
        Some(conditions) => Some(serde_json::from_value(conditions).ok()?),
        None => None,
    };
    Some(Changed { name: row.name, is_on: row.is_on, conditions })
}

/// The rules of a mailbox, in the order in which they are asked.
pub async fn list(env: &Env, caller: &Caller, source_id: SourceId) -> Result<Vec<RuleLine>, ActError> {
    mailbox(env, caller, source_id).await?;
    let tenant_id = caller.tenant_id;
    let (rows, reasons) = env
        .db
        .read(caller, async |tx| {
            let rows = rules::list(tx, tenant_id, source_id).await?;
            Ok((rows, processed::reasons(tx, tenant_id, source_id).await?))
        })
        .await?;
    let changes: Vec<(String, String, DateTime<Utc>)> =
        rows.iter().map(|row| (row.name.clone(), row.changed_by.clone(), row.changed_at)).collect();
    let line = |rule: Rule| {
        let n_left_out =
            reasons.iter().find(|reason| reason.skip_reason == rule.name).map_or(0, |reason| reason.letters);
        let changed = changes.iter().find(|(name, ..)| *name == rule.name).map(|(_, by, at)| (by.clone(), *at));
        RuleLine { rule, n_left_out, changed }
    };
    Ok(Rules::of(rows.into_iter().filter_map(changed).collect()).0.into_iter().map(line).collect())
}

/// Switches a rule, or adds or changes one of the mailbox's own. Letters that were decided about stay as they are: switching a rule off lets
/// nothing in by itself.
pub async fn set(env: &Env, caller: &Caller, source_id: SourceId, name: &str, change: Change) -> Result<(), ActError> {
    let name = checked_name("a rule's", name)?;
    mailbox(env, caller, source_id).await?;
    if let Some(why) = change.conditions.as_ref().and_then(Conditions::refusal) {
        return Err(ActError::Invalid(why));
    }
    if name == FORGOTTEN {
        return Err(ActError::invalid(
            "a rule has another name than \"forgotten\", which marks letters of people who were forgotten",
        ));
    }
    let (tenant_id, by) = (caller.tenant_id, clipped(&caller.key_name, 60));
    let set = env.db.write(async |tx| -> Result<(), ActError> {
        let rows = rules::list(tx, tenant_id, source_id).await?;
        let n_own = rows.iter().filter(|row| row.conditions.is_some()).count();
        let stored = rows.into_iter().find(|row| row.name == name);
        let shipped = SHIPPED.iter().find(|shipped| shipped.name == name);
        let (is_on, conditions) = match (shipped, stored, &change.conditions) {
            (Some(_), _, Some(_)) => {
                return Err(ActError::conflict(
                    "the conditions of a shipped rule cannot be changed: switch it off and add one",
                ));
            }
            (Some(shipped), stored, None) => {
                (change.is_on.unwrap_or(stored.map_or(shipped.is_on, |stored| stored.is_on)), None)
            }
            (None, Some(stored), None) => (change.is_on.unwrap_or(stored.is_on), stored.conditions),
            (None, None, None) => return Err(ActError::NotFound("rule")),
            (None, stored, Some(conditions)) => {
                if stored.is_none() && n_own >= MOST_RULES {
                    return Err(ActError::conflict(format!("a mailbox has at most {MOST_RULES} rules of its own")));
                }
                let is_on = change.is_on.unwrap_or(stored.is_none_or(|stored| stored.is_on));
                (
                    is_on,
                    Some(
                        serde_json::to_value(conditions)
                            .map_err(|_| ActError::invalid("the conditions are no JSON"))?,
                    ),
                )
            }
        };
        rules::set(tx, env.clock.sql(), (tenant_id, source_id), name, (is_on, conditions.as_ref()), &by).await?;
        tx.notify(store::sources::changed(tenant_id, source_id));
        Ok(())
    });
    set.await
}

/// Removes a rule of the mailbox's own. What it left out stays out.
pub async fn remove(env: &Env, caller: &Caller, source_id: SourceId, name: &str) -> Result<(), ActError> {
    mailbox(env, caller, source_id).await?;
    let tenant_id = caller.tenant_id;
    let removed = env.db.write(async |tx| -> Result<bool, ActError> {
        let removed = rules::remove(tx, tenant_id, source_id, name).await?;
        tx.notify(store::sources::changed(tenant_id, source_id));
        Ok(removed)
    });
    removed.await?.or_missing("rule of this mailbox's own")
}

/// Tells what a change of a rule would have done with the letters of the last 30 days. Nothing is changed.
pub async fn preview(
    env: &Env,
    caller: &Caller,
    source_id: SourceId,
    name: &str,
    change: Change,
) -> Result<Preview, ActError> {
    let name = checked_name("a rule's", name)?;
    mailbox(env, caller, source_id).await?;
    if let Some(why) = change.conditions.as_ref().and_then(Conditions::refusal) {
        return Err(ActError::Invalid(why));
    }
    let tenant_id = caller.tenant_id;
    let since = env.clock.now() - TimeDelta::days(TRIED_DAYS);
    let (rules, past) = env
        .db
        .read(caller, async |tx| {
            let rules = of(tx, tenant_id, source_id).await?;
            Ok((rules, processed::past(tx, tenant_id, source_id, since, MOST_TRIED).await?))
        })
        .await?;
    let (tried, changed) = (with_change(rules.clone(), name, change)?, name.to_owned());
    let mut rules = rules;
    if rules == tried {
        // It is so already: told is what would be without it.
        rules.0.iter_mut().filter(|rule| rule.name == changed).for_each(|rule| rule.is_on = !rule.is_on);
    }
    // Some thousand letters and some hundred patterns take a while: not on a thread that others wait for.
    let trying = tokio::task::spawn_blocking(move || tried_on(&rules, &tried, &changed, past, since));
    match tokio::time::timeout(TRY_LIMIT, trying).await {
        Ok(Ok(preview)) => Ok(preview),
        Ok(Err(_)) | Err(_) => Err(ActError::conflict("these rules took too long to try: use fewer patterns")),
    }
}

/// The rules as they would be.
fn with_change(mut rules: Rules, name: &str, change: Change) -> Result<Rules, ActError> {
    match (rules.0.iter_mut().find(|rule| rule.name == name), change) {
        (Some(rule), Change { is_on, conditions }) => {
            rule.is_on = is_on.unwrap_or(rule.is_on);
            rule.conditions = conditions.filter(|_| !rule.is_shipped).unwrap_or_else(|| rule.conditions.clone());
        }
        (None, Change { is_on, conditions: Some(conditions) }) => {
            let (name, is_on, sentence) = (name.to_owned(), is_on.unwrap_or(true), conditions.in_words());
            rules.0.insert(0, Rule { name, sentence, is_on, is_shipped: false, conditions });
        }
        (None, _) => return Err(ActError::NotFound("rule")),
    }
    Ok(rules)
}

/// Compares what the rules say with what they would say. Only what this change alone decides is counted: other rules may have come after the letters.
fn tried_on(rules: &Rules, tried: &Rules, changed: &str, past: Vec<Past>, since: DateTime<Utc>) -> Preview {
    let is_partial = i64::try_from(past.len()).is_ok_and(|n| n >= MOST_TRIED);
    let mut preview = Preview { since, looked_at: past.len(), is_partial, ..Preview::default() };
    for letter in past.into_iter().filter(|letter| !letter.is_let_in) {
        let Ok(facts) = serde_json::from_value::<Facts>(letter.facts) else { continue };
        let counted = match (letter.skip_reason.is_some(), rules.verdict(&facts), tried.verdict(&facts)) {
            (false, None, Some(_)) => &mut preview.would_leave_out,
            (true, Some(_), None) => &mut preview.would_let_in,
            (_, Some(before), Some(after)) => {
                let other = [after, before].into_iter().find(|name| *name != changed);
                let is_shared = tried.named(changed).is_some_and(|rule| rule.conditions.fit(&facts));
                if let Some(other) = other.filter(|_| is_shared) {
                    *preview.shared.entry(other.to_owned()).or_default() += 1;
                }
                continue;
            }
            _ => continue,
        };
        counted.letters += 1;
        if counted.latest.len() < MOST_NAMED {
            counted.latest.push(Example {
                message_id: letter.message_id,
                sender: facts.senders.into_iter().next().unwrap_or_default(),
                subject: facts.subject,
                received_at: letter.received_at,
            });
        }
    }
    preview
}
