//! The agents that could claim a waiting activity, and an estimate of its wait. The rules are those of the claim functions
//! (`domain::activity`; a test compares both).

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use domain::Caller;
use domain::activity::open_to_others_at;
use store::nodes::{self, Node, State};
use store::people::{self, Person};
use store::waiting::{self, Hearing, Pace, Waiting};
use uuid::Uuid;

use crate::{Env, enrich};

/// The number of waiting activities that are examined, the oldest first.
pub const MOST: i64 = 1_000;

/// The tenant's people and devices, and the activities that wait.
#[derive(Clone, Debug)]
pub struct Overview {
    pub people: Vec<Person>,
    pub nodes: Vec<Node>,
    pub is_built_in_on: bool,
    pub claimable: Claimable,
    waits: HashMap<Uuid, Wait>,
    paces: Vec<Pace>,
    hearing: Vec<Hearing>,
}

/// The number of activities waiting for each group of agents, among the oldest [`MOST`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claimable {
    /// Activities for an agent of their owner, which is online.
    pub own: usize,
    /// Activities for any agent: they have no owner.
    pub global: usize,
    /// Activities for other agents: they waited so long for their owner's that others may claim them.
    pub stale: usize,
    /// Their owner's agents are offline, and others may not claim them yet.
    pub later: usize,
    /// Activities for agents that are not online.
    pub nobody: usize,
    /// Whether more wait than were looked at.
    pub is_more: bool,
}

impl Claimable {
    pub fn now(&self) -> usize {
        self.own + self.global + self.stale
    }
}

/// The agents that may claim a waiting activity, and from when on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Agents that are online may claim it now; together they work on so many activities at once (`hands`).
    Now { hands: i32, is_own: bool },
    /// Its owner's agents are offline; others may claim it from then on.
    Later(DateTime<Utc>),
    /// No agent that may claim it is online.
    Nobody,
}

/// The wait of one activity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wait {
    pub turn: Turn,
    /// The number of activities that are claimed before it.
    pub ahead: usize,
    /// The estimated seconds until its result; none when nothing of its type was completed lately.
    pub about_secs: Option<f64>,
}

/// An agent that is online.
struct Agent<'a> {
    /// None: the built-in agent of a tenant in which it has not worked yet.
    person_id: Option<i64>,
    is_built_in: bool,
    processes: &'a [String],
    concurrency: i32,
}

/// Loads the overview of the caller's tenant.
pub async fn overview(env: &Env, caller: &Caller) -> store::Result<Overview> {
    let roles = env.db.session(async |conn| store::workers::live_roles(conn).await).await?;
    let loaded = env.db.read(caller, async |tx| {
        let people = people::list(tx, caller.tenant_id).await?;
        let nodes = nodes::list(tx, env.clock.sql(), caller.tenant_id).await?;
        let waiting = waiting::oldest(tx, caller.tenant_id, MOST).await?;
        let (paces, hearing) =
            (waiting::paces(tx, caller.tenant_id).await?, waiting::hearing(tx, caller.tenant_id).await?);
        Ok((people, nodes, waiting, paces, hearing))
    });
    let (people, nodes, waiting, paces, hearing) = loaded.await?;
    // Workers decide it the same way, by the same settings.
    let is_built_in_on = roles.iter().any(|role| env.config.builtin_agent.unwrap_or(role == "up"));
    let built_in_processes: Vec<String> = enrich::source_types(enrich::Hearing::of(&env.config).can_hear())
        .iter()
        .map(|kind| (*kind).to_owned())
        .collect();
    let mut agents: Vec<Agent<'_>> = nodes
        .iter()
        .filter(|node| node.enabled && node.state() != State::Offline)
        .filter_map(|node| {
            let person = people.iter().find(|person| person.id == node.person_id)?;
            Some(Agent {
                person_id: Some(person.id),
                is_built_in: person.is_built_in(),
                processes: &person.processes,
                concurrency: node.concurrency,
            })
        })
        .collect();
    // Where the built-in agent has worked before it is a node, which is online or switched off; elsewhere there is no node yet.
    let is_known = |node: &Node| {
        people.iter().any(|person| person.id == node.person_id && person.is_built_in())
            && (!node.enabled || node.state() != State::Offline)
    };
    if is_built_in_on && !nodes.iter().any(is_known) {
        let concurrency = i32::try_from(env.config.agent_concurrency).unwrap_or(1);
        agents.push(Agent { person_id: None, is_built_in: true, processes: &built_in_processes, concurrency });
    }
    let found = waits(&waiting, &agents, &people, &paces, env.clock.now());
    let mut claimable = Claimable { is_more: waiting.len() as i64 == MOST, ..Claimable::default() };
    for (waiting, wait) in waiting.iter().zip(&found) {
        *match wait.turn {
            Turn::Now { .. } if waiting.person_id.is_none() => &mut claimable.global,
            Turn::Now { is_own: true, .. } => &mut claimable.own,
            Turn::Now { is_own: false, .. } => &mut claimable.stale,
            Turn::Later(_) => &mut claimable.later,
            Turn::Nobody => &mut claimable.nobody,
        } += 1;
    }
    let waits = waiting.iter().map(|waiting| waiting.id).zip(found).collect();
    Ok(Overview { people, nodes, is_built_in_on, claimable, waits, paces, hearing })
}

impl Overview {
    /// The wait of an activity. None: it does not wait any more, or is behind those that were looked at (`claimable.is_more`).
    pub fn wait(&self, activity_id: Uuid) -> Option<&Wait> {
        self.waits.get(&activity_id)
    }

    /// The processing time of a claimed activity of this type; none when none was completed lately.
    pub fn takes_secs(&self, r#type: &str) -> Option<f64> {
        pace(&self.paces, r#type).map(|pace| pace.took_secs)
    }

    /// The part of a claimed call that is heard: so many of its pages, and all of them. None: it is short, or heard elsewhere.
    pub fn heard(&self, activity_id: Uuid) -> Option<(i64, i64)> {
        let call = self.hearing.iter().find(|call| call.activity_id == activity_id)?;
        let n_pages = i64::from(call.n_pages?);
        (n_pages > 1).then_some((call.n_heard.min(n_pages), n_pages))
    }

    pub fn person(&self, id: i64) -> Option<&Person> {
        self.people.iter().find(|person| person.id == id)
    }
}

fn pace<'a>(paces: &'a [Pace], r#type: &str) -> Option<&'a Pace> {
    paces.iter().find(|pace| pace.r#type == r#type)
}

/// Estimates the waits of activities, the oldest first. It takes the oldest to be claimed first: that agents prefer their own person's work changes
/// the estimate little.
fn waits(
    waiting: &[Waiting],
    agents: &[Agent<'_>],
    people: &[Person],
    paces: &[Pace],
    now: DateTime<Utc>,
) -> Vec<Wait> {
    let (mut ahead, mut ahead_secs) = (0, Some(0.0));
    let mut found = Vec::with_capacity(waiting.len());
    for waiting in waiting {
        let turn = turn(waiting, agents, people, now);
        let Turn::Now { hands, .. } = turn else {
            found.push(Wait { turn, ahead, about_secs: None });
            continue;
        };
        let pace = pace(paces, &waiting.r#type);
        let about_secs = pace.zip(ahead_secs).map(|(pace, secs): (&Pace, f64)| secs + pace.took_secs);
        found.push(Wait { turn, ahead, about_secs });
        ahead += 1;
        ahead_secs = pace.zip(ahead_secs).map(|(pace, secs)| secs + each_secs(pace, hands));
    }
    found
}

/// Estimates by how many seconds an activity delays those behind it. While agents are mostly idle, results come as rarely as events do, so the time
/// one activity takes is the better figure; while they are busy that time includes waiting, so the time between two results is.
fn each_secs(pace: &Pace, hands: i32) -> f64 {
    let alone = pace.took_secs / f64::from(hands.max(1));
    pace.gap_secs.map_or(alone, |gap| gap.min(alone))
}

/// Says who may claim a waiting activity, as the claim functions decide it.
fn turn(waiting: &Waiting, agents: &[Agent<'_>], people: &[Person], now: DateTime<Utc>) -> Turn {
    let hands = |is_meant: &dyn Fn(&Agent<'_>) -> bool| -> i32 {
        let able = agents.iter().filter(|agent| agent.processes.contains(&waiting.source_type));
        able.filter(|agent| is_meant(agent)).map(|agent| agent.concurrency).sum()
    };
    let Some(owner_id) = waiting.person_id else {
        return match hands(&|_| true) {
            0 => Turn::Nobody,
            hands => Turn::Now { hands, is_own: false },
        };
    };
    let owner = people.iter().find(|person| person.id == owner_id);
    let open_at = owner.and_then(|owner| {
        open_to_others_at(waiting.created_at, owner.stale_threshold_minutes, owner.allow_remote_processing)
    });
    let is_served = owner.is_some_and(|owner| owner.built_in_agent);
    let is_own = |agent: &Agent<'_>| agent.person_id == Some(owner_id) || (agent.is_built_in && is_served);
    let own = hands(&is_own);
    let others = hands(&|agent| !is_own(agent));
    match (own, open_at) {
        (own, Some(at)) if at <= now && own + others > 0 => Turn::Now { hands: own + others, is_own: own > 0 },
        (0, Some(at)) if at > now && others > 0 => Turn::Later(at),
        (0, _) => Turn::Nobody,
        (own, _) => Turn::Now { hands: own, is_own: true },
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    const ANN: i64 = 1;
    const BOB: i64 = 2;

    fn now() -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::days(20_000)
    }

    fn person(id: i64, minutes: i32, is_shared: bool) -> Person {
        Person {
            id,
            user_id: None,
            email: None,
            first_name: None,
            last_name: None,
            stale_threshold_minutes: minutes,
            allow_remote_processing: is_shared,
            built_in_agent: false,
            created_at: now(),
            processes: vec!["text".into(), "url".into()],
            role: domain::Role::Member,
        }
    }

    fn waiting(person_id: Option<i64>, source_type: &str, minutes: i64) -> Waiting {
        Waiting {
            id: Uuid::nil(),
            r#type: if source_type == "url" { "call" } else { "note" }.into(),
            person_id,
            source_type: source_type.into(),
            created_at: now() - TimeDelta::minutes(minutes),
        }
    }

    #[test]
    fn it_is_the_turn_of_those_to_whom_the_claim_functions_hand_it() {
        let (both, text) = (["text".to_owned(), "url".into()], ["text".to_owned()]);
        let ann = Agent { person_id: Some(ANN), is_built_in: false, processes: &both, concurrency: 2 };
        let built_in = Agent { person_id: None, is_built_in: true, processes: &text, concurrency: 32 };
        let agents = [ann, built_in];
        let served = Person { built_in_agent: true, ..person(5, 15, false) };
        let people = [person(ANN, 15, true), person(BOB, 2, true), person(3, 15, true), person(4, 15, false), served];
        let now_by = |hands, is_own| Turn::Now { hands, is_own };
        let cases = [
            (None, "text", 0, now_by(34, false)),
            (None, "url", 0, now_by(2, false)),
            (None, "", 0, Turn::Nobody),
            (Some(ANN), "text", 0, now_by(2, true)),
            (Some(ANN), "text", 6, now_by(34, true)),
            (Some(BOB), "text", 1, Turn::Later(now() + TimeDelta::minutes(1))),
            (Some(BOB), "text", 3, now_by(34, false)),
            (Some(3), "url", 4, Turn::Later(now() + TimeDelta::minutes(1))),
            (Some(3), "url", 6, now_by(2, false)),
            (Some(4), "text", 900, Turn::Nobody),
            (Some(5), "text", 0, now_by(32, true)),
            (Some(5), "url", 900, Turn::Nobody),
        ];
        for (owner, source_type, minutes, expected) in cases {
            let of = waiting(owner, source_type, minutes);
            assert_eq!(turn(&of, &agents, &people, now()), expected, "{owner:?}, {source_type}, {minutes} min old");
            assert_eq!(turn(&of, &[], &people, now()), Turn::Nobody, "nobody is there");
        }
    }

    #[test]
    fn a_wait_is_told_by_how_fast_those_before_were_done() {
        let pace = |took_secs, gap_secs| Pace { r#type: "call".into(), took_secs, gap_secs };
        // Quiet: a call every half hour, each done after a minute. Busy: all lay for an hour, and one is done every minute.
        assert_eq!(each_secs(&pace(60.0, Some(1_800.0)), 2), 30.0);
        assert_eq!(each_secs(&pace(3_600.0, Some(60.0)), 2), 60.0);
        assert_eq!(each_secs(&pace(60.0, None), 0), 60.0);

        let both = ["url".to_owned()];
        let agents = [Agent { person_id: Some(ANN), is_built_in: false, processes: &both, concurrency: 2 }];
        let line =
            [waiting(None, "url", 3), waiting(None, "text", 2), waiting(None, "url", 1), waiting(None, "url", 0)];
        let found = waits(&line, &agents, &[], &[pace(60.0, None)], now());
        let told: Vec<_> = found.iter().map(|wait| (wait.ahead, wait.about_secs)).collect();
        assert_eq!(told, [(0, Some(60.0)), (1, None), (1, Some(90.0)), (2, Some(120.0))]);
        let unknown = waits(&line, &agents, &[], &[], now());
        assert!(unknown.iter().all(|wait| wait.about_secs.is_none()));
    }
}
