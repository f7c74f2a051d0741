//! Counts a mailbox's letters between two moments, by id alone. Gmail's search knows whole seconds and does not say which side of one it
//! means, so the letters next to both ends are looked at one by one.

use std::collections::HashSet;

use chrono::{DateTime, TimeDelta, Utc};
use domain::mail::Place;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::fetch::Got;
use super::query::Query;
use super::wire::Messages;
use super::{AT_ONCE, Gmail, map};
use crate::pull::mailbox::{Census, Counted};
use crate::pull::trail::{Trail, follow};
use crate::pull::{Account, PullError, read_place, record};

/// The width of an end, to both sides.
const EDGE: TimeDelta = TimeDelta::seconds(2);

/// The position of a count: first the ends, then place by place.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct CensusPlace {
    /// The letters next to the ends, which have been counted or passed over.
    edge: Option<Vec<String>>,
    /// The place that is counted, by its number among those that are read.
    number: usize,
    trail: Option<Trail>,
}

impl Gmail {
    pub(super) async fn count(
        &self,
        account: &Account<'_>,
        from: DateTime<Utc>,
        to: DateTime<Utc>,
        place: Option<&Value>,
    ) -> Result<Census, PullError> {
        let mut at: CensusPlace = place.map(read_place).transpose()?.unwrap_or_default();
        let Some(edge) = at.edge.take() else {
            let (letters, edge) = self.ends(account, from, to).await?;
            return Ok(Census { letters, next: json!(CensusPlace { edge: Some(edge), ..at }), more: true });
        };
        let Some(place) = account.places.get(at.number).copied() else {
            return Ok(Census { letters: Vec::new(), next: Value::Null, more: false });
        };
        // Either way of counting a second is within the ends.
        let query = Query::of(&[place]).between(from + EDGE / 2, to - EDGE / 2);
        let list = self.list(account, &query, at.trail.as_ref()).await?;
        let known: HashSet<&String> = edge.iter().collect();
        let ids = plain(&list).filter(|id| !known.contains(id));
        let letters = ids.map(|id| Counted { external_id: map::external_id(id), received_at: None, place }).collect();
        let next = match list.next_page_token.filter(|token| !token.is_empty()) {
            Some(token) => (at.number, Some(follow(self.api.who(), at.trail, token)?)),
            None => (at.number + 1, None),
        };
        let (number, trail) = next;
        let more = number < account.places.len();
        Ok(Census { letters, next: json!(CensusPlace { edge: Some(edge), number, trail }), more })
    }

    /// The letters next to both ends that are between them, and the ids of all that are next to an end.
    async fn ends(
        &self,
        account: &Account<'_>,
        from: DateTime<Utc>,
        to: DateTime<Utc>,
    ) -> Result<(Vec<Counted>, Vec<String>), PullError> {
        let mut edge = Vec::new();
        for end in [from, to] {
            let mut trail = None;
            loop {
                let query = Query::of(account.places).between(end - EDGE, end + EDGE);
                let list = self.list(account, &query, trail.as_ref()).await?;
                edge.extend(plain(&list).cloned());
                let Some(token) = list.next_page_token.filter(|token| !token.is_empty()) else { break };
                trail = Some(follow(self.api.who(), trail, token)?);
            }
        }
        edge.sort_unstable();
        edge.dedup();
        let mut letters = Vec::new();
        for ids in edge.chunks(AT_ONCE) {
            for (id, got) in self.get(account, ids, "minimal").await? {
                let Got::Message(message) = got else { continue };
                let received_at = map::received_at(&message);
                if received_at.is_none_or(|at| from <= at && at < to)
                    && map::is_read(&message.label_ids, account.places)
                {
                    let place: Place = map::place(&message.label_ids);
                    letters.push(Counted { external_id: map::external_id(&id), received_at, place });
                }
            }
        }
        Ok((letters, edge))
    }
}

fn plain(list: &Messages) -> impl Iterator<Item = &String> {
    list.listed().map(|listed| &listed.id).filter(|id| record::is_plain_id(id))
}
