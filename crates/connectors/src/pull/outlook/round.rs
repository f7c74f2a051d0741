//! A round through the folders of a mailbox: a full pass begins with nothing, a delta with a link for each folder. New folders are read from
//! their beginning, and so are those that have another name or lie elsewhere; of those that are no longer read, the letters are told as
//! deleted. That a message left a folder says nothing yet: at the end of the round it is asked for by id.
//!
//! People go on working meanwhile. So for every letter that was told there is a link that tells of its leaving, and that is not younger than the
//! last look at the letter; where there is none, the letter is asked for again.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};
use domain::mail::Place;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::by_id;
use super::complaint::is_lost;
use super::files;
use super::folders::{self, Folder, Folders, rank};
use super::graph::{BATCH, Graph, IMMUTABLE, Part, Told, lasting};
use super::map::{self, Change, SELECT};
use super::wire::List;
use crate::pull::http::Refused;
use crate::pull::record::{self, plain_id};
use crate::pull::trail::{Trail, follow};
use crate::pull::{Account, Failed, Item, Page, PullError, Reach, last, more, read_place};

/// Messages of a page with their bodies, and of one that names them only.
const PAGE: usize = 100;
const IDS_PAGE: usize = 500;
/// Changes of one folder among many. More follow on pages of their own.
const SWEEP_PAGE: usize = 10;
const PAGE_MIN: usize = 5;
/// A message with its body. Exchange itself takes 150 MB, with files; these are fetched apart.
pub(super) const MESSAGE_MAX_BYTES: usize = 16 * 1024 * 1024;
/// So many messages wait to be asked for by id. Then they go first.
const WANTED_MAX: usize = 400;
/// A message that is not found is asked for in so many rounds. What is missing then is missed by the count of its day.
const TRIES_MAX: u32 = 3;
/// Graph's servers have clocks of their own.
const SKEW: TimeDelta = TimeDelta::seconds(30);
/// A folder whose links are lost so often is left to another time.
const RESTARTS_MAX: u32 = 3;

/// From where the next delta starts, for each folder that is read.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Cursor {
    folders: BTreeMap<String, Known>,
    /// Messages that were not found, or whose files were not, and how often they were asked for: Graph may only not find them yet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    again: BTreeMap<String, u32>,
    /// Those of them that their folder told as gone from it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    removed: BTreeSet<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Known {
    name: String,
    place: Place,
    link: String,
    /// It is no longer read, and its letters were told as deleted. Its changes may be late, so they are asked for as long as it is there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_left: bool,
}

/// The position in a round.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Round {
    folders: Folders,
    /// The folders that are done, and where their next delta starts.
    links: BTreeMap<String, String>,
    /// The folders that are no longer read.
    #[serde(default)]
    left: BTreeSet<String>,
    todo: Vec<Visit>,
    /// Messages of which only the id is known.
    wanted: BTreeSet<String>,
    /// Those that their folder tells as gone from it.
    #[serde(default)]
    removed: BTreeSet<String>,
    /// How often those were asked for that were not found in the rounds before.
    #[serde(default)]
    tries: BTreeMap<String, u32>,
    /// Those to ask for again in the next round.
    #[serde(default)]
    again: BTreeMap<String, u32>,
    /// Messages so far, for the cap on a first sync.
    n_taken: usize,
    is_capped: bool,
    /// When its first page was answered, by Graph's clock.
    #[serde(default)]
    began_at: Option<DateTime<Utc>>,
    size: usize,
}

/// A folder to go through.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Visit {
    folder: String,
    /// Where its changes begin. None: it is read from its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trail: Option<Trail>,
    #[serde(default)]
    reads: Reads,
    #[serde(default)]
    restarts: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Reads {
    #[default]
    Letters,
    /// Only the link at its end: there is no room for its letters.
    Nothing,
    /// Its letters are no longer read.
    Removals,
}

/// The things that one step found.
#[derive(Default)]
struct Found {
    messages: Vec<map::Message>,
    items: Vec<Item>,
    failed: Vec<Failed>,
}

/// One page of a round. `first_max` is the cap on a first sync.
pub(super) async fn page(
    graph: &Graph,
    account: &Account<'_>,
    cursor: Option<&Value>,
    place: Option<&Value>,
    first_max: Option<usize>,
) -> Result<Page, PullError> {
    let mut round = match place {
        Some(place) => read_place(place)?,
        None => {
            let cursor: Cursor = cursor.map(read_place).transpose()?.unwrap_or_default();
            Round::begin(folders::read(graph, account).await?, cursor, account.places, first_max)?
        }
    };
    let mut found = Found::default();
    let room = first_max.map_or(usize::MAX, |most| most.saturating_sub(round.n_taken));
    if round.wanted.len() >= WANTED_MAX || (round.todo.is_empty() && !round.wanted.is_empty()) {
        round.look_up(graph, account, &mut found).await?;
    } else if round.todo.first().is_some_and(Visit::is_sweep) {
        round.sweep(graph, account, &mut found).await?;
    } else if !round.todo.is_empty() {
        round.walk(graph, account, room, &mut found).await?;
    }
    let Found { messages, mut items, failed } = found;
    round.n_taken += messages.len();
    let completed = files::complete(graph, account, messages).await?;
    round.n_taken -= completed.left.len();
    round.wanted.extend(completed.left);
    completed.unsure.into_iter().for_each(|id| round.ask_again(id));
    items.extend(completed.messages.into_iter().map(|message| message.item(account.places)));

    if !round.todo.is_empty() || !round.wanted.is_empty() {
        return Ok(more(items, failed, json!(round)));
    }
    let note = round.is_capped.then(|| {
        format!(
            "The newest {} messages were taken; older ones come in when they change.",
            first_max.unwrap_or_default()
        )
    });
    // Folder after folder: a folder that came late may have had no room at all.
    let reach = if round.is_capped { Reach::Part } else { Reach::All };
    Ok(Page { note, reach, ..last(items, failed, json!(round.cursor())) })
}

impl Visit {
    fn new(folder: &str, since: Option<String>, reads: Reads) -> Self {
        Self { folder: folder.to_owned(), since, trail: None, reads, restarts: 0 }
    }

    /// Whether its changes are asked for together with those of others.
    fn is_sweep(&self) -> bool {
        self.since.is_some() && self.trail.is_none()
    }
}

impl Round {
    /// Compares the folders with those of the last round.
    fn begin(
        folders: Folders,
        mut cursor: Cursor,
        places: &[Place],
        first_max: Option<usize>,
    ) -> Result<Self, PullError> {
        let is_read = |folder: &Folder| places.contains(&folder.place);
        let (mut todo, mut left) = (Vec::new(), BTreeSet::new());
        let mut in_order: Vec<(&String, &Folder)> = folders.iter().collect();
        in_order.sort_by_key(|(id, folder)| (rank(folder.place), *id));
        for (id, folder) in in_order {
            let Some(known) = cursor.folders.remove(id) else {
                if is_read(folder) {
                    todo.push(Visit::new(id, None, Reads::Letters));
                }
                continue;
            };
            // Its changes are asked for in any case: nothing else tells of what left it.
            todo.push(Visit::new(id, Some(known.link), Reads::Letters));
            if !is_read(folder) {
                left.insert(id.clone());
                if !known.is_left {
                    todo.push(Visit::new(id, None, Reads::Removals));
                }
            } else if known.is_left || known.name != folder.name || known.place != folder.place {
                todo.push(Visit::new(id, None, Reads::Letters));
            }
        }
        // Nobody can be asked for the letters of a folder that is gone.
        if cursor.folders.values().any(|known| !known.is_left) {
            return Err(PullError::CursorLost("Outlook no longer has a folder of this mailbox"));
        }
        // What a folder has that is no longer read comes before its changes: whatever leaves it in between is told by these. Then changes come first,
        // because they are what people wait for.
        todo.sort_by_key(|visit| (visit.reads != Reads::Removals, !visit.is_sweep()));
        let is_capped = first_max == Some(0);
        let (wanted, tries, removed) = (cursor.again.keys().cloned().collect(), cursor.again, cursor.removed);
        Ok(Self { folders, left, todo, wanted, tries, removed, size: PAGE, is_capped, ..Self::default() })
    }

    fn cursor(self) -> Cursor {
        let Self { folders, mut links, left, again, mut removed, .. } = self;
        let known = |(id, Folder { name, place })| {
            let (link, is_left) = (links.remove(&id)?, left.contains(&id));
            Some((id, Known { name, place, link, is_left }))
        };
        removed.retain(|id| again.contains_key(id));
        Cursor { folders: folders.into_iter().filter_map(known).collect(), again, removed }
    }

    /// The first changes of up to twenty folders at once.
    async fn sweep(&mut self, graph: &Graph, account: &Account<'_>, found: &mut Found) -> Result<(), PullError> {
        let n_now = self.todo.iter().take_while(|visit| visit.is_sweep()).count().min(BATCH);
        let visits: Vec<Visit> = self.todo.drain(..n_now).collect();
        let prefer = format!("odata.maxpagesize={SWEEP_PAGE}, {IMMUTABLE}");
        let part = |visit: &Visit| Part { path: visit.since.clone().unwrap_or_default(), prefer: prefer.clone() };
        let answers = graph.all(account, &visits.iter().map(part).collect::<Vec<_>>()).await?;
        for (visit, told) in visits.into_iter().zip(answers) {
            match told {
                Told::Body(body) => {
                    let list: List = graph.parsed(&body)?;
                    self.take(graph, visit, list, usize::MAX, found)?;
                }
                Told::Refused { status, code } if is_lost(status, code.as_deref()) => return Err(lost()),
                Told::Refused { status: 404, .. } => return Err(lost()),
                Told::Refused { status, code } => return Err(refused(graph, status, code)),
            }
        }
        Ok(())
    }

    /// One page of one folder.
    async fn walk(
        &mut self,
        graph: &Graph,
        account: &Account<'_>,
        room: usize,
        found: &mut Found,
    ) -> Result<(), PullError> {
        let mut visit = self.todo.remove(0);
        if room == 0 && visit.trail.is_none() && visit.reads == Reads::Letters {
            visit.reads = Reads::Nothing;
        }
        loop {
            let path = match (&visit.trail, &visit.since) {
                (Some(trail), _) => trail.after.clone(),
                (None, Some(since)) => since.clone(),
                (None, None) => beginning(&visit),
            };
            let size = if visit.reads == Reads::Letters { self.size } else { IDS_PAGE };
            let prefer = format!("odata.maxpagesize={size}, {IMMUTABLE}");
            match graph.get::<List>(account, &path, &prefer).await {
                Ok(answer) => {
                    self.began_at = self.began_at.or(answer.answered_at);
                    return self.take(graph, visit, answer.body, room, found);
                }
                Err(Refused::Lasting { status: 504, .. } | Refused::TooLarge { .. }) if self.size > PAGE_MIN => {
                    self.size = (self.size / 2).max(PAGE_MIN);
                }
                Err(Refused::Lasting { status, code, .. }) if is_lost(status, code.as_deref()) => {
                    // A letter that was met on an earlier page may be gone by now, and no later page tells so. Only the link of the folder's changes does.
                    let is_met = visit.reads == Reads::Letters && visit.trail.is_some();
                    let is_missed = is_met && !self.links.contains_key(&visit.folder);
                    if visit.since.is_some() || is_missed || visit.restarts == RESTARTS_MAX {
                        return Err(lost());
                    }
                    (visit.trail, visit.restarts) = (None, visit.restarts + 1);
                    self.todo.insert(0, visit);
                    return Ok(());
                }
                // The folder went away during the round.
                Err(Refused::Lasting { status: 404, .. }) if visit.since.is_none() => {
                    self.folders.remove(&visit.folder);
                    // Its letters may be known, and nothing would tell of them any more.
                    let is_known = self.links.remove(&visit.folder).is_some() || visit.trail.is_some();
                    return if is_known || visit.reads == Reads::Removals { Err(lost()) } else { Ok(()) };
                }
                Err(Refused::Lasting { status: 404, .. }) => return Err(lost()),
                Err(refused) => return Err(lasting(graph, refused)),
            }
        }
    }

    /// Takes a page of a folder, and remembers where it goes on.
    fn take(
        &mut self,
        graph: &Graph,
        mut visit: Visit,
        list: List,
        room: usize,
        found: &mut Found,
    ) -> Result<(), PullError> {
        self.sort(&visit, &list, room, found);
        match (list.next, list.delta) {
            (Some(link), _) => {
                visit.trail = Some(follow(graph.who(), visit.trail, graph.below(&link)?)?);
                self.todo.insert(0, visit);
            }
            (None, Some(_)) if visit.reads == Reads::Removals => {}
            // Where its changes were asked for before it was read again, their link stays: that of the second look says nothing of what left in between.
            (None, Some(link)) => {
                let link = graph.below(&link)?;
                self.links.entry(visit.folder).or_insert(link);
            }
            (None, None) => {
                let what = format!("{} did not say where the next changes begin", graph.who());
                return Err(PullError::Unreadable { what, raw: String::new() });
            }
        }
        Ok(())
    }

    /// Tells letters from removals, and from what has to be asked for by id.
    fn sort(&mut self, visit: &Visit, list: &List, room: usize, found: &mut Found) {
        let here = self.folders.get(&visit.folder).cloned();
        for value in list.value.each_within(map::OBJECT, MESSAGE_MAX_BYTES) {
            let value = match value {
                Ok(value) => value,
                Err(behind) => {
                    found.failed.push(behind);
                    continue;
                }
            };
            let id = value.get("id").and_then(plain_id);
            let change = map::change(&value);
            if let (Reads::Letters, Some(id)) = (visit.reads, id.as_ref().filter(|_| change != Change::Removed)) {
                self.removed.remove(id);
            }
            match (visit.reads, change, id) {
                (Reads::Nothing, _, Some(id)) if self.is_new(&value) => {
                    self.wanted.insert(id);
                }
                (Reads::Nothing, ..) => self.is_capped = true,
                (Reads::Removals, Change::Removed, _) => {}
                (Reads::Removals, _, Some(id)) => found.items.push(map::gone(&id)),
                (Reads::Letters, Change::Removed, Some(id)) => {
                    self.removed.insert(id.clone());
                    self.wanted.insert(id);
                }
                (Reads::Letters, Change::Part, Some(id)) => {
                    self.wanted.insert(id);
                }
                // It says nothing new, unless it is the first that we hear of it.
                (Reads::Letters, Change::State, Some(id)) => {
                    if visit.since.is_none() {
                        self.wanted.insert(id);
                    }
                }
                (Reads::Letters, Change::Whole, Some(_)) if found.messages.len() >= room && !self.is_new(&value) => {
                    self.is_capped = true;
                }
                (_, _, id) => match map::message(value, &self.folders, here.as_ref()) {
                    Ok(message) => {
                        if let Some(id) = &id {
                            self.wanted.remove(id);
                            self.again.remove(id);
                        }
                        found.messages.push(message);
                    }
                    Err(behind) => found.failed.push(behind),
                },
            }
        }
    }

    /// Whether a letter came in since the round began. It is taken however many there are: no delta tells of it once its folder was gone through.
    fn is_new(&self, value: &Value) -> bool {
        let received_at = record::time(value.get("receivedDateTime"));
        received_at.zip(self.began_at).is_some_and(|(received_at, began_at)| received_at > began_at - SKEW)
    }

    /// Asks for messages by id: what is found in a place that is read is a letter. What is not found is gone if its folder says so too. In either case the
    /// next rounds ask for it again: for a moment Graph may not find what is there. So they do for what is found in a folder that has come up meanwhile.
    /// It may be gone before anybody asks for the folder's changes.
    async fn look_up(&mut self, graph: &Graph, account: &Account<'_>, found: &mut Found) -> Result<(), PullError> {
        let ids: Vec<String> = self.wanted.iter().take(BATCH).cloned().collect();
        let read = by_id::read(graph, account, &mut self.folders, &ids).await?;
        self.wanted.retain(|id| !ids.contains(id));
        for message in &read.messages {
            let is_followed = message.folder_id.as_ref().is_some_and(|folder| self.links.contains_key(folder));
            if is_followed || !account.places.contains(&message.letter.place) {
                self.removed.remove(&message.id);
            } else if self.removed.contains(&message.id) {
                self.ask_again(message.id.clone());
            }
        }
        found.messages.extend(read.messages);
        found.failed.extend(read.failed);
        let is_gone = |id: &&String| self.removed.contains(*id);
        found.items.extend(read.hidden.iter().chain(read.not_found.iter().filter(is_gone)).map(|id| map::gone(id)));
        read.not_found.into_iter().for_each(|id| self.ask_again(id));
        Ok(())
    }

    fn ask_again(&mut self, id: String) {
        let tries = self.tries.get(&id).map_or(1, |tries| tries + 1);
        if tries < TRIES_MAX {
            self.again.insert(id, tries);
        }
    }
}

/// The first request for a folder. What it asks for stays part of every link that follows.
fn beginning(visit: &Visit) -> String {
    let id = &visit.folder;
    match visit.reads {
        Reads::Letters => {
            format!("/me/mailFolders/{id}/messages/delta?$select={SELECT}&$orderby=receivedDateTime%20desc")
        }
        Reads::Nothing | Reads::Removals => {
            format!("/me/mailFolders/{id}/messages/delta?$select=id,receivedDateTime")
        }
    }
}

fn lost() -> PullError {
    PullError::CursorLost("Outlook no longer knows our place in a folder")
}

fn refused(graph: &Graph, status: u16, code: Option<String>) -> PullError {
    PullError::Forbidden { who: graph.who(), code: code.unwrap_or_else(|| format!("http_{status}")) }
}
