//! The changes of one folder. The first round lists what is in it, newest first; its last link, and each one after it, leads to what changed
//! since. What the first request asks for is part of every link.

use std::cmp::Reverse;
use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::reading::{Ask, Said, selected};
use super::{Event, Kind, Mail, Message};
use crate::manners::Manner;

const PAGE: usize = 10;
const PAGE_MOST: usize = 1_000;

#[derive(Serialize, Deserialize)]
struct Token {
    folder: String,
    generation: u64,
    /// Where the round began: what a message went through since then is told as one change.
    since: usize,
    /// The changes from here on are not told yet.
    from: usize,
    select: Option<String>,
    /// In a first round: the message that the page before ended with.
    after: Option<(i64, String)>,
    is_first: bool,
}

impl Token {
    fn text(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    fn read(text: &str) -> Option<Self> {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
    }
}

impl Mail {
    pub(super) fn delta(&self, ask: &Ask<'_>, folder: &str) -> Said {
        let given = ask.value("$skiptoken").or_else(|| ask.value("$deltatoken"));
        let token = match given {
            None if ["$filter", "$search"].iter().any(|name| ask.value(name).is_some()) => return ask.refuse(400),
            None => Token {
                folder: folder.to_owned(),
                generation: self.generation,
                since: self.n_known(ask.now),
                from: self.n_known(ask.now),
                select: ask.value("$select").map(str::to_owned),
                after: None,
                is_first: true,
            },
            Some(text) => match Token::read(text) {
                Some(token) if token.generation == self.generation && token.folder == folder => token,
                _ => return ask.refuse(410),
            },
        };
        let size = ask.page_size().unwrap_or(PAGE).min(PAGE_MOST);
        let has_bodies = token.select.as_deref().is_none_or(|select| select.split(',').any(|name| name == "body"));
        if has_bodies && self.switches.page_max.is_some_and(|most| size > most) {
            return ask.refuse(504);
        }
        let rows = ask.manner.map_or(size, |manner| manner.page_rows(size));
        let (values, next) = match token.is_first {
            true => self.first_round(ask, &token, rows),
            false => self.changes(ask, &token, rows),
        };
        let mut answer =
            json!({"@odata.context": format!("{}/$metadata#Collection(message)", ask.base), "value": values});
        let link = |token: &Token, name: &str| {
            json!(format!("{}/me/mailFolders('{folder}')/messages/delta?${name}={}", ask.base, token.text()))
        };
        match next {
            _ if ask.manner == Some(&Manner::RepeatToken) && given.is_some() => {
                answer["@odata.nextLink"] = link(&token, "skiptoken");
            }
            Some(next) => answer["@odata.nextLink"] = link(&next, "skiptoken"),
            None => {
                // A first round ends where it began to look: what changed meanwhile comes again.
                let from = if token.is_first { token.from } else { self.n_known(ask.now).max(token.from) };
                let next = Token { since: from, from, after: None, is_first: false, ..token };
                answer["@odata.deltaLink"] = link(&next, "deltatoken");
            }
        }
        (200, answer).into()
    }

    /// The number of changes that a delta knows by now.
    fn n_known(&self, now: DateTime<Utc>) -> usize {
        let Some(newest) = now.checked_sub_signed(self.switches.lag) else { return 0 };
        let n_young = self.events.iter().rev().take_while(|event| event.at > newest).count();
        self.events.len() - n_young
    }

    fn first_round(&self, ask: &Ask<'_>, token: &Token, rows: usize) -> (Vec<Value>, Option<Token>) {
        let mut inside: Vec<(&String, &Message)> =
            self.messages.iter().filter(|(_, message)| message.folder == token.folder).collect();
        inside.sort_by_key(|(id, message)| (Reverse(message.received_at), *id));
        let place =
            |(id, message): &(&String, &Message)| (Reverse(message.received_at.timestamp_millis()), (*id).clone());
        let after = token.after.as_ref().map(|(ms, id)| (Reverse(*ms), id.clone()));
        let mut left = inside.iter().filter(|row| after.as_ref().is_none_or(|after| place(row) > *after)).peekable();
        let page: Vec<&(&String, &Message)> = left.by_ref().take(rows).collect();
        let values = page.iter().map(|(id, message)| self.whole(ask, token, id, message)).collect();
        let last = page.last().map(|row| place(row)).or_else(|| after.clone());
        let next = left.peek().is_some().then(|| Token {
            after: last.map(|(Reverse(ms), id)| (ms, id)),
            folder: token.folder.clone(),
            select: token.select.clone(),
            ..*token
        });
        (values, next)
    }

    fn changes(&self, ask: &Ask<'_>, token: &Token, rows: usize) -> (Vec<Value>, Option<Token>) {
        let known = self.n_known(ask.now).max(token.from);
        let mine = self.events.get(token.since..known).unwrap_or_default().iter().enumerate();
        let mut of: HashMap<&str, Vec<(usize, &Event)>> = HashMap::new();
        for (index, event) in mine.filter(|(_, event)| event.folder == token.folder) {
            of.entry(&event.id).or_default().push((token.since + index, event));
        }
        // Each message once, at its latest change.
        let mut latest: Vec<(usize, Vec<(usize, &Event)>)> =
            of.into_values().map(|events| (events.last().map_or(0, |(index, _)| *index), events)).collect();
        latest.retain(|(index, _)| *index >= token.from);
        latest.sort_by_key(|(index, _)| *index);
        let mut left = latest.into_iter().peekable();
        let (mut values, mut from) = (Vec::new(), token.from);
        for (index, events) in left.by_ref().take(rows) {
            values.push(self.changed(ask, token, &events));
            from = index + 1;
        }
        let next = left.peek().is_some().then(|| Token {
            from,
            after: None,
            folder: token.folder.clone(),
            select: token.select.clone(),
            ..*token
        });
        (values, next)
    }

    fn changed(&self, ask: &Ask<'_>, token: &Token, events: &[(usize, &Event)]) -> Value {
        let id = events.first().map(|(_, event)| event.id.as_str()).unwrap_or_default();
        let message = self.messages.get(id).filter(|message| message.folder == token.folder);
        let left = |(_, event): &&(usize, &Event)| matches!(event.kind, Kind::Moved | Kind::Deleted);
        let has_left = events.iter().any(|event| left(&event));
        match message {
            Some(message) if !(has_left && self.switches.forgets_returns) => {
                if events.iter().all(|(_, event)| event.kind == Kind::State) {
                    return self.some(ask, id, message, &["isRead", "parentFolderId"]);
                }
                if self.switches.tells_parts {
                    return self.some(ask, id, message, &["subject", "parentFolderId"]);
                }
                self.whole(ask, token, id, message)
            }
            found => {
                let is_deleted = events.iter().rev().find(left).is_some_and(|(_, event)| event.kind == Kind::Deleted);
                let reason = if is_deleted { "deleted" } else { "changed" };
                // The mutable id of what left is the one that it had here.
                let id = found.map_or_else(|| id.to_owned(), |message| Self::shown_id(id, message, ask.is_immutable()));
                json!({"@odata.type": "#microsoft.graph.message", "id": id, "@removed": {"reason": reason}})
            }
        }
    }

    fn whole(&self, ask: &Ask<'_>, token: &Token, id: &str, message: &Message) -> Value {
        let mut fields = selected(self.message_fields(id, message, ask.is_immutable()), token.select.as_deref());
        fields.entry("@odata.type").or_insert(json!("#microsoft.graph.message"));
        Value::Object(fields)
    }

    /// The little that a delta tells of a message that was only read, or only changed: not all that was selected.
    fn some(&self, ask: &Ask<'_>, id: &str, message: &Message, kept: &[&str]) -> Value {
        let fields = self.message_fields(id, message, ask.is_immutable());
        let is_kept = |key: &str| matches!(key, "@odata.etag" | "id") || kept.contains(&key);
        let fields: Map<String, Value> = fields.into_iter().filter(|(key, _)| is_kept(key)).collect();
        Value::Object(fields)
    }
}
