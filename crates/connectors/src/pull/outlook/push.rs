//! Subscriptions, by which Graph tells of changes, and what it posts.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use domain::Secret;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::graph::{Graph, IMMUTABLE, lasting};
use super::wire::{List, Made, Me};
use crate::pull::http::{ApiAnswer, Refused};
use crate::pull::mailbox::{Address, Notice, Of, Subscription, Tells, Unread};
use crate::pull::records::Rows;
use crate::pull::{Account, PullError, record};

/// All folders together: one subscription is enough for a mailbox.
const RESOURCE: &str = "/me/messages";
const CHANGES: &str = "created,updated,deleted";
/// Graph gives less than seven days.
const LIFE: TimeDelta = TimeDelta::hours(6 * 24 + 20);
const ID_MAX_BYTES: usize = 200;

/// Makes a subscription. Graph asks the address to repeat a token before it answers. There can be one only: an older one goes.
pub(super) async fn subscribe(
    graph: &Graph,
    account: &Account<'_>,
    address: &Address<'_>,
) -> Result<Subscription, PullError> {
    let until = until(graph, account).await?;
    let question = json!({
        "changeType": CHANGES,
        "resource": RESOURCE,
        "notificationUrl": address.url,
        "lifecycleNotificationUrl": address.url,
        "expirationDateTime": spelled(until),
        "clientState": address.client_state.reveal(),
        "latestSupportedTlsVersion": "v1_2",
    });
    let made = match graph.send::<Made>(account, Method::POST, "/subscriptions", &question).await {
        Err(Refused::Lasting { status: 409, .. }) => {
            remove_others(graph, account).await?;
            graph.send::<Made>(account, Method::POST, "/subscriptions", &question).await
        }
        made => made,
    };
    read(graph, made.map_err(|refused| lasting(graph, refused))?, until)
}

/// Asks for a longer life. None: Graph has lost it.
pub(super) async fn renew(
    graph: &Graph,
    account: &Account<'_>,
    subscription: &Subscription,
) -> Result<Option<Subscription>, PullError> {
    let Some(id) = subscription.id.as_deref().filter(|id| record::is_plain_id(id)) else { return Ok(None) };
    let until = until(graph, account).await?;
    let question = json!({ "expirationDateTime": spelled(until) });
    match graph.send::<Made>(account, Method::PATCH, &format!("/subscriptions/{id}"), &question).await {
        Ok(made) => read(graph, made, until).map(Some),
        Err(Refused::Lasting { status: 404 | 410, .. }) => Ok(None),
        Err(refused) => Err(lasting(graph, refused)),
    }
}

pub(super) async fn unsubscribe(
    graph: &Graph,
    account: &Account<'_>,
    subscription: &Subscription,
) -> Result<(), PullError> {
    let Some(id) = subscription.id.as_deref().filter(|id| record::is_plain_id(id)) else { return Ok(()) };
    remove(graph, account, id).await
}

async fn remove(graph: &Graph, account: &Account<'_>, id: &str) -> Result<(), PullError> {
    match graph.delete(account, &format!("/subscriptions/{id}")).await {
        Ok(()) | Err(Refused::Lasting { status: 404 | 410, .. }) => Ok(()),
        Err(refused) => Err(lasting(graph, refused)),
    }
}

/// Removes the subscriptions of our app to this mailbox. One from before has a secret that nobody knows any more.
async fn remove_others(graph: &Graph, account: &Account<'_>) -> Result<(), PullError> {
    let answer = graph.get::<List>(account, "/subscriptions", IMMUTABLE).await;
    let list = answer.map_err(|refused| lasting(graph, refused))?.body;
    let is_ours = |made: &Made| {
        let resource = made.resource.as_deref().unwrap_or_default().trim_matches('/').to_ascii_lowercase();
        resource == RESOURCE.trim_matches('/') && record::is_plain_id(&made.id)
    };
    let ours: Vec<String> = list.value.heads(|made: Made| is_ours(&made).then_some(made.id)).collect();
    for id in ours {
        remove(graph, account, &id).await?;
    }
    Ok(())
}

/// The end of a subscription that is made now, by Graph's clock.
async fn until(graph: &Graph, account: &Account<'_>) -> Result<DateTime<Utc>, PullError> {
    let answer: Result<ApiAnswer<Me>, Refused> = graph.get(account, "/me?$select=id", IMMUTABLE).await;
    let now = answer.map_err(|refused| lasting(graph, refused))?.answered_at.ok_or_else(|| {
        let what = format!("{} did not say what time it is", graph.who());
        PullError::Unreadable { what, raw: String::new() }
    })?;
    Ok(now + LIFE)
}

fn spelled(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

fn read(graph: &Graph, made: Made, asked: DateTime<Utc>) -> Result<Subscription, PullError> {
    if !record::is_plain_id(&made.id) {
        let what = format!("{} gave a subscription without a name", graph.who());
        return Err(PullError::Unreadable { what, raw: String::new() });
    }
    let expires_at = record::time(made.expiration_date_time.as_ref()).unwrap_or(asked);
    Ok(Subscription { id: Some(made.id), expires_at })
}

#[derive(Deserialize)]
struct Posted {
    value: Rows<Value>,
}

/// Reads what Graph posts: notices of several mailboxes at once, and of their subscriptions.
pub(super) fn notices(body: &[u8]) -> Result<Vec<Notice>, Unread> {
    let posted: Posted = serde_json::from_slice(body).map_err(|_| Unread("it is no list of notices"))?;
    let read: Vec<Notice> = posted.value.0.iter().filter_map(notice).collect();
    if read.is_empty() && !posted.value.0.is_empty() {
        return Err(Unread("none of its notices names a subscription"));
    }
    Ok(read)
}

fn notice(value: &Value) -> Option<Notice> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let id = text("subscriptionId").filter(|id| id.len() <= ID_MAX_BYTES)?;
    let tells = match text("lifecycleEvent") {
        Some("reauthorizationRequired") => Tells::Reauthorize,
        Some("subscriptionRemoved") => Tells::Removed,
        Some("missed") => Tells::Missed,
        // A word that we do not know: looking is never wrong.
        _ => Tells::Changed,
    };
    Some(Notice {
        of: Of::Subscription(id.to_owned()),
        client_state: text("clientState").map(Secret::new),
        via: None,
        tells,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_may_mix_mailboxes_and_events_and_says_no_more_than_that_something_changed() {
        let body = json!({ "value": [
            { "id": "lsgT", "subscriptionId": "s-1", "clientState": "secret-1", "changeType": "created",
              "resource": "Users/u/Messages/m", "resourceData": { "id": "m" } },
            { "subscriptionId": "s-2", "clientState": "secret-2", "lifecycleEvent": "reauthorizationRequired" },
            { "subscriptionId": "s-3", "lifecycleEvent": "subscriptionRemoved" },
            { "subscriptionId": "s-4", "clientState": null, "lifecycleEvent": "missed" },
            { "subscriptionId": "s-5", "lifecycleEvent": "somethingNew" },
            { "changeType": "created" },
            "odd",
        ] });
        let read = notices(body.to_string().as_bytes()).expect("notices");
        let told: Vec<_> = read
            .iter()
            .map(|notice| {
                let Of::Subscription(id) = &notice.of else { panic!("{notice:?}") };
                (id.as_str(), notice.client_state.as_ref().map(Secret::reveal), notice.tells)
            })
            .collect();
        assert_eq!(
            told,
            [
                ("s-1", Some("secret-1"), Tells::Changed),
                ("s-2", Some("secret-2"), Tells::Reauthorize),
                ("s-3", None, Tells::Removed),
                ("s-4", None, Tells::Missed),
                ("s-5", None, Tells::Changed),
            ]
        );
    }

    #[test]
    fn what_is_no_list_of_notices_is_said() {
        assert_eq!(notices(br#"{"value":[]}"#), Ok(Vec::new()));
        for body in ["", "<html>", "[]", r#"{"value":{}}"#, r#"{"value":[{"subscriptionId":7}]}"#, r#"{"value":[1]}"#] {
            assert!(notices(body.as_bytes()).is_err(), "{body}");
        }
    }
}
