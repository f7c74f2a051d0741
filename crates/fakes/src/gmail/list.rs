//! Listings of messages, conversations and changes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::rest::{Said, bad, not_found};
use super::search::Search;
use super::{Mailbox, Message};
use crate::manners::Manner;

const MOST_A_PAGE: usize = 500;

/// The parameters of a request, some of them several times.
pub(super) struct Asked<'a> {
    pub pairs: &'a [(String, String)],
    pub manner: Option<&'a Manner>,
}

impl Asked<'_> {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.pairs.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The rows of a page. None: that many cannot be had.
    fn rows(&self) -> Option<usize> {
        let rows = self.get("maxResults").map_or(Some(100), |rows| rows.parse().ok())?;
        let is_sound = (1..=MOST_A_PAGE).contains(&rows);
        is_sound.then(|| self.manner.map_or(rows, |manner| manner.page_rows(rows)))
    }

    /// Everything that makes a question another one, so that a token is good only for its own.
    fn question(&self) -> String {
        let words = self.pairs.iter().filter(|(name, _)| !["pageToken", "maxResults"].contains(&name.as_str()));
        words.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
    }

    /// The row at which the page begins. None: the token is not one.
    fn start(&self) -> Option<usize> {
        let Some(token) = self.get("pageToken").filter(|token| !token.is_empty()) else { return Some(0) };
        let inside = String::from_utf8(URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
        let (start, question) = inside.split_once(' ')?;
        (question == self.question()).then(|| start.parse().ok())?
    }

    /// A page of these rows, under this name; an empty one has no list.
    fn page(&self, name: &str, rows: &[Value], mut answer: Value) -> Said {
        let (Some(n_rows), Some(start)) = (self.rows(), self.start()) else {
            return bad("Invalid value");
        };
        let page: Vec<&Value> = rows.iter().skip(start).take(n_rows).collect();
        if !page.is_empty() {
            answer[name] = json!(page);
        }
        let repeats = self.manner == Some(&Manner::RepeatToken);
        let next = if repeats { start } else { start + n_rows };
        if repeats || next < rows.len() {
            answer["nextPageToken"] = json!(URL_SAFE_NO_PAD.encode(format!("{next} {}", self.question())));
        }
        (200, answer)
    }
}

impl Mailbox {
    /// The messages that a question means, newest first.
    fn found(&self, asked: &Asked<'_>) -> Option<Vec<(&String, &Message)>> {
        let search = Search::parse(asked.get("q").unwrap_or_default())?;
        let with_all = asked.get("includeSpamTrash") == Some("true");
        let has = |message: &Message, label: &str| message.labels.iter().any(|known| known == label);
        let is_meant = |message: &Message| {
            (with_all || !(has(message, "SPAM") || has(message, "TRASH")))
                && asked.all("labelIds").all(|label| has(message, label))
                && search.holds(message)
        };
        let mut found: Vec<_> = self.messages.iter().filter(|(_, message)| is_meant(message)).collect();
        found.sort_by(|(one, a), (other, b)| (b.received_at, other).cmp(&(a.received_at, one)));
        Some(found)
    }

    pub(super) fn list_messages(&self, asked: &Asked<'_>) -> Said {
        let Some(found) = self.found(asked) else { return bad("Invalid query") };
        let rows: Vec<Value> =
            found.iter().map(|(id, message)| json!({"id": id, "threadId": message.thread_id})).collect();
        asked.page("messages", &rows, json!({"resultSizeEstimate": rows.len()}))
    }

    pub(super) fn list_threads(&self, asked: &Asked<'_>) -> Said {
        let Some(found) = self.found(asked) else { return bad("Invalid query") };
        let mut rows: Vec<Value> = Vec::new();
        for (_, message) in found {
            if !rows.iter().any(|row| row["id"] == json!(message.thread_id)) {
                let history_id = message.history_id.to_string();
                rows.push(json!({"id": message.thread_id, "snippet": message.snippet, "historyId": history_id}));
            }
        }
        asked.page("threads", &rows, json!({"resultSizeEstimate": rows.len()}))
    }

    pub(super) fn list_changes(&self, asked: &Asked<'_>) -> Said {
        let start: Option<u64> = asked.get("startHistoryId").and_then(|id| id.parse().ok());
        let Some(start) = start.filter(|start| *start > 0) else { return bad("Invalid startHistoryId") };
        if start < self.oldest || start > self.history_id {
            return not_found();
        }
        let kinds: Vec<&str> = asked.all("historyTypes").collect();
        let until = self.visible.unwrap_or(u64::MAX);
        let is_meant = |change: &&super::history::Change| {
            let (_, kind) = change.kind.names();
            change.id > start && change.id <= until && (kinds.is_empty() || kinds.contains(&kind))
        };
        let rows: Vec<Value> = self.changes.iter().filter(is_meant).map(super::history::Change::shown).collect();
        asked.page("history", &rows, json!({"historyId": self.history_id.to_string()}))
    }
}
