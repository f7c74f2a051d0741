//! Counts the letters of a mailbox: ids, times and folders alone, a thousand at a time.

use chrono::{DateTime, SecondsFormat, Utc};
use domain::mail::Place;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

use super::complaint::is_lost;
use super::folders;
use super::graph::{Graph, IMMUTABLE, lasting};
use super::map;
use super::wire::{List, Listed};
use crate::pull::http::Refused;
use crate::pull::mailbox::{Census, Counted};
use crate::pull::trail::{Trail, follow};
use crate::pull::{Account, PullError, read_place, record};

#[derive(Serialize, Deserialize)]
struct Position {
    places: BTreeMap<String, Place>,
    trail: Option<Trail>,
}

pub(super) async fn page(
    graph: &Graph,
    account: &Account<'_>,
    from: DateTime<Utc>,
    to: DateTime<Utc>,
    place: Option<&Value>,
) -> Result<Census, PullError> {
    let Position { places, trail } = match place {
        Some(place) => read_place(place)?,
        None => {
            let folders = folders::read(graph, account).await?;
            let places = folders.into_iter().map(|(id, folder)| (id, folder.place)).collect();
            Position { places, trail: None }
        }
    };
    let path = match &trail {
        Some(trail) => trail.after.clone(),
        None => format!(
            "/me/messages?$filter=receivedDateTime%20ge%20{}%20and%20receivedDateTime%20lt%20{}\
             &$orderby=receivedDateTime%20desc&$select=id,receivedDateTime,parentFolderId,isDraft&$top=1000",
            spelled(from),
            spelled(to)
        ),
    };
    let list = match graph.get::<List>(account, &path, IMMUTABLE).await {
        Ok(answer) => answer.body,
        Err(Refused::Lasting { status, code, .. }) if trail.is_some() && is_lost(status, code.as_deref()) => {
            return Err(PullError::CursorLost("Outlook no longer knows our place in its list"));
        }
        Err(refused) => return Err(lasting(graph, refused)),
    };
    // A letter in a folder that nobody sees is one that was deleted.
    let counted = |listed: Listed| {
        let folder = places.get(listed.parent_folder_id.as_deref()?)?;
        let place = if listed.is_draft == Some(true) { Place::Drafts } else { *folder };
        Some(Counted {
            external_id: map::external_id(&record::plain_id(&listed.id)?),
            received_at: record::time(listed.received_date_time.as_ref()),
            place,
        })
    };
    let letters = list.value.heads(counted).filter(|letter| account.places.contains(&letter.place)).collect();
    Ok(match list.next {
        Some(link) => {
            let trail = Some(follow(graph.who(), trail, graph.below(&link)?)?);
            Census { letters, next: json!(Position { places, trail }), more: true }
        }
        None => Census { letters, next: Value::Null, more: false },
    })
}

fn spelled(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}
