//! Subscriptions, and what their subscribers are told. Graph asks an address to repeat a token before it accepts it, tells of changes soon after
//! them, and tries again where nobody takes the news.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::time::sleep;
use uuid::Uuid;

use super::fake::said;
use super::reading::{Ask, Said, seconds};
use super::{Mail, Outlook};
use crate::clock::parse_iso;
use crate::post::post;
use crate::{Shared, lock};

/// Changes of so long a time are told together.
const SOON: Duration = Duration::from_millis(40);
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
const ANSWER_WITHIN: Duration = Duration::from_secs(3);
const TRIES: u32 = 4;
const POST_MOST: usize = 100;
const SHORTEST: TimeDelta = TimeDelta::minutes(45);
const LONGEST: TimeDelta = TimeDelta::minutes(10_080);
const TENANT: &str = "84bd8158-6d4d-4958-8b9f-9d6445542f95";

/// The way in which the news are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NoticeDelivery {
    #[default]
    Normal,
    /// Nobody is told.
    Lost,
    /// Everything is told twice, in posts of their own.
    Doubled,
    /// Nothing is told until [`Outlook::release_notices`], and then in the other order.
    Held,
}

/// The news about a subscription itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifecycle {
    ReauthorizationRequired,
    SubscriptionRemoved,
    Missed,
    /// A word that nobody knows yet.
    Unheard,
}

#[derive(Default)]
pub(super) struct Notices {
    subscriptions: BTreeMap<String, Subscription>,
    delivery: NoticeDelivery,
    /// The posts that wait: their address and what they say.
    waiting: Vec<(String, Value)>,
    is_sending: bool,
    n_posted: u64,
    n_refused: u64,
    /// The next handshakes fail.
    refuses_handshakes: bool,
}

struct Subscription {
    account: String,
    change_types: String,
    resource: String,
    url: String,
    lifecycle_url: Option<String>,
    client_state: Value,
    expires_at: DateTime<Utc>,
    is_immutable: bool,
}

impl Subscription {
    fn shown(&self, id: &str) -> Value {
        json!({"id": id, "resource": self.resource, "changeType": self.change_types, "notificationUrl": self.url,
            "lifecycleNotificationUrl": self.lifecycle_url, "expirationDateTime": seconds(self.expires_at),
            "clientState": self.client_state, "applicationId": TENANT, "creatorId": self.account,
            "includeResourceData": null, "notificationQueryOptions": null, "encryptionCertificate": null})
    }
}

/// Notes that a message changed, for everybody who has subscribed to such a change.
pub(super) fn told(shared: &Arc<Shared>, mail: &mut Mail, id: &str, changes: &[&str]) {
    let now = shared.clock.now();
    let Some(message) = mail.messages.get(id) else { return };
    let mut news = Vec::new();
    for (name, subscription) in &mail.notices.subscriptions {
        if subscription.expires_at <= now {
            continue;
        }
        let shown = Mail::shown_id(id, message, subscription.is_immutable);
        let resource = format!("Users/{TENANT}/Messages/{shown}");
        for change in
            changes.iter().filter(|change| subscription.change_types.split(',').any(|wanted| wanted == **change))
        {
            let notice = json!({"subscriptionId": name, "clientState": subscription.client_state, "changeType": change,
                "subscriptionExpirationDateTime": seconds(subscription.expires_at), "tenantId": TENANT,
                "resource": resource, "resourceData": {"@odata.type": "#Microsoft.Graph.Message", "id": shown,
                    "@odata.id": resource, "@odata.etag": "W/\"CQAAABYAAA\""}});
            news.push((subscription.url.clone(), notice));
        }
    }
    match mail.notices.delivery {
        NoticeDelivery::Lost => {}
        NoticeDelivery::Doubled => {
            mail.notices.waiting.extend(news.clone());
            mail.notices.waiting.extend(news);
        }
        NoticeDelivery::Normal | NoticeDelivery::Held => mail.notices.waiting.extend(news),
    }
    if mail.notices.delivery != NoticeDelivery::Held {
        send_soon(shared, mail);
    }
}

/// Sends what waits, in a task of its own. Outside of a runtime nobody is told.
fn send_soon(shared: &Arc<Shared>, mail: &mut Mail) {
    if mail.notices.waiting.is_empty() || mail.notices.is_sending {
        return;
    }
    let Ok(runtime) = Handle::try_current() else { return };
    mail.notices.is_sending = true;
    // Weakly: the fakes end with their last handle.
    let shared = Arc::downgrade(shared);
    runtime.spawn(async move {
        sleep(SOON).await;
        let Some(kept) = shared.upgrade() else { return };
        let waiting = {
            let mut mail = lock(kept.records::<Mail>());
            mail.notices.is_sending = false;
            std::mem::take(&mut mail.notices.waiting)
        };
        drop(kept);
        let mut by_url: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for (url, notice) in waiting {
            by_url.entry(url).or_default().push(notice);
        }
        for (url, notices) in by_url {
            for some in notices.chunks(POST_MOST) {
                let body = json!({"value": some}).to_string();
                let is_taken = deliver(&url, &body).await;
                let Some(kept) = shared.upgrade() else { return };
                let mut mail = lock(kept.records::<Mail>());
                mail.notices.n_posted += 1;
                mail.notices.n_refused += u64::from(!is_taken);
            }
        }
    });
}

/// Posts until somebody takes it, a few times.
async fn deliver(url: &str, body: &str) -> bool {
    for attempt in 0..TRIES {
        let answer = post(url, "application/json", body, ANSWER_WITHIN).await;
        if answer.is_some_and(|answer| (200..300).contains(&answer.status)) {
            return true;
        }
        sleep(Duration::from_millis(200 << attempt)).await;
    }
    false
}

/// The routes of subscriptions.
pub(super) async fn handle(shared: &Arc<Shared>, ask: &Ask<'_>, method: &str, rest: &[&str], body: &Value) -> Said {
    match (method, rest) {
        ("POST", []) => create(shared, ask, body).await,
        ("GET", []) => {
            let mail = lock(shared.records::<Mail>());
            let own = mail.notices.subscriptions.iter().filter(|(_, one)| one.account == ask.caller.account);
            let own: Vec<Value> =
                own.filter(|(_, one)| one.expires_at > ask.now).map(|(id, one)| one.shown(id)).collect();
            (200, json!({"value": own})).into()
        }
        ("PATCH", [id]) => {
            let expires_at = match life(body, ask.now) {
                Ok(expires_at) => expires_at,
                Err(words) => return (400, said("InvalidRequest", words, ask.now)).into(),
            };
            let mut mail = lock(shared.records::<Mail>());
            match mail.own(ask, id) {
                Some(one) => {
                    one.expires_at = expires_at;
                    (200, one.shown(id)).into()
                }
                None => gone(ask),
            }
        }
        ("POST", [id, "reauthorize"]) => match lock(shared.records::<Mail>()).own(ask, id) {
            Some(_) => (204, Value::Null).into(),
            None => gone(ask),
        },
        ("DELETE", [id]) => {
            let mut mail = lock(shared.records::<Mail>());
            if mail.own(ask, id).is_none() {
                return gone(ask);
            }
            mail.notices.subscriptions.remove(*id);
            (204, Value::Null).into()
        }
        ("GET", [id]) => match lock(shared.records::<Mail>()).own(ask, id) {
            Some(one) => (200, one.shown(id)).into(),
            None => gone(ask),
        },
        _ => ask.refuse(405),
    }
}

impl Mail {
    fn own(&mut self, ask: &Ask<'_>, id: &str) -> Option<&mut Subscription> {
        let one = self.notices.subscriptions.get_mut(id)?;
        (one.account == ask.caller.account && one.expires_at > ask.now).then_some(one)
    }
}

fn gone(ask: &Ask<'_>) -> Said {
    (404, said("ResourceNotFound", "The object was not found.", ask.now)).into()
}

/// The end of a life that is asked for: never very soon, and never later than Graph allows.
fn life(body: &Value, now: DateTime<Utc>) -> Result<DateTime<Utc>, &'static str> {
    let asked = body["expirationDateTime"].as_str().and_then(parse_iso).ok_or("expirationDateTime is not a time.")?;
    if asked > now + LONGEST {
        return Err("Subscription expiration can only be 10080 minutes in the future.");
    }
    Ok(asked.max(now + SHORTEST))
}

async fn create(shared: &Arc<Shared>, ask: &Ask<'_>, body: &Value) -> Said {
    let text = |key: &str| body[key].as_str().unwrap_or_default().to_owned();
    let refuse = |words: &str| Said::from((400, said("InvalidRequest", words, ask.now)));
    let expires_at = match life(body, ask.now) {
        Ok(expires_at) => expires_at,
        Err(words) => return refuse(words),
    };
    let (resource, url) = (text("resource"), text("notificationUrl"));
    let lifecycle_url = body["lifecycleNotificationUrl"].as_str().map(str::to_owned);
    if !resource.trim_matches('/').starts_with("me/") || url.is_empty() || text("clientState").len() > 128 {
        return refuse("The resource, an address or the client state is not valid.");
    }
    let is_same = |one: &Subscription| {
        let is_alive = one.expires_at > ask.now;
        one.account == ask.caller.account
            && one.resource == resource
            && one.change_types == text("changeType")
            && is_alive
    };
    {
        let mut mail = lock(shared.records::<Mail>());
        if let Some((id, _)) = mail.notices.subscriptions.iter().find(|(_, one)| is_same(one)) {
            let words = format!("Subscription Id {id} already exists for the requested combination");
            return (409, said("Conflict", &words, ask.now)).into();
        }
        if std::mem::take(&mut mail.notices.refuses_handshakes) {
            return refuse("Subscription validation request timed out.");
        }
    }
    for address in [Some(&url), lifecycle_url.as_ref()].into_iter().flatten() {
        if let Err(words) = shake_hands(address).await {
            return refuse(words);
        }
    }
    let id = Uuid::new_v4().to_string();
    let one = Subscription {
        account: ask.caller.account.clone(),
        change_types: text("changeType"),
        resource,
        url,
        lifecycle_url,
        client_state: body["clientState"].clone(),
        expires_at,
        is_immutable: ask.is_immutable(),
    };
    let answer = one.shown(&id);
    lock(shared.records::<Mail>()).notices.subscriptions.insert(id, one);
    (201, answer).into()
}

/// Asks an address to repeat a token, which has characters that are easily spoiled.
async fn shake_hands(address: &str) -> Result<(), &'static str> {
    let token = format!("Validation: Testing client application reachability for subscription+{} 100%", Uuid::new_v4());
    let joint = if address.contains('?') { '&' } else { '?' };
    let encoded = utf8_percent_encode(&token, NON_ALPHANUMERIC).to_string().replace("%20", "+");
    let url = format!("{address}{joint}validationToken={encoded}");
    let Some(answer) = post(&url, "text/plain; charset=utf-8", "", HANDSHAKE_WITHIN).await else {
        return Err("Subscription validation request timed out.");
    };
    if answer.status != 200 || !answer.content_type.starts_with("text/plain") {
        return Err("Notification endpoint must respond with 200 OK to validation request.");
    }
    if answer.body != token {
        return Err("The validation token was not repeated as it was.");
    }
    Ok(())
}

impl Outlook {
    /// Sets how news are told from now on.
    pub fn deliver(&self, delivery: NoticeDelivery) {
        lock(self.mail()).notices.delivery = delivery;
    }

    /// Tells what was held back, the latest first.
    pub fn release_notices(&self) {
        let mut mail = lock(self.mail());
        mail.notices.waiting.reverse();
        send_soon(&self.shared, &mut mail);
    }

    /// The subscriptions that are alive: their ids and when they end.
    pub fn subscriptions(&self) -> Vec<(String, DateTime<Utc>)> {
        let now = self.shared.clock.now();
        let mail = lock(self.mail());
        let alive = mail.notices.subscriptions.iter().filter(|(_, one)| one.expires_at > now);
        alive.map(|(id, one)| (id.clone(), one.expires_at)).collect()
    }

    /// Ends all subscriptions without telling anybody, as after a change of password.
    pub fn drop_subscriptions(&self) {
        lock(self.mail()).notices.subscriptions.clear();
    }

    /// Ends all subscriptions and tells their subscribers.
    pub fn remove_subscriptions(&self) {
        self.tell(Lifecycle::SubscriptionRemoved);
        self.drop_subscriptions();
    }

    /// Posts news about each subscription to the address for these.
    pub fn tell(&self, event: Lifecycle) {
        let word = match event {
            Lifecycle::ReauthorizationRequired => "reauthorizationRequired",
            Lifecycle::SubscriptionRemoved => "subscriptionRemoved",
            Lifecycle::Missed => "missed",
            Lifecycle::Unheard => "somethingUnheardOf",
        };
        let mut mail = lock(self.mail());
        let news = mail.notices.subscriptions.iter().filter_map(|(id, one)| {
            let notice = json!({"subscriptionId": id, "clientState": one.client_state, "lifecycleEvent": word,
                "subscriptionExpirationDateTime": seconds(one.expires_at), "tenantId": TENANT});
            Some((one.lifecycle_url.clone()?, notice))
        });
        let news: Vec<(String, Value)> = news.collect();
        mail.notices.waiting.extend(news);
        send_soon(&self.shared, &mut mail);
    }

    /// Lets the next check of an address fail, as if nobody had answered.
    pub fn refuse_next_handshake(&self) {
        lock(self.mail()).notices.refuses_handshakes = true;
    }

    /// Posts to subscribers so far, and how many of them nobody took.
    pub fn posts(&self) -> (u64, u64) {
        let mail = lock(self.mail());
        (mail.notices.n_posted, mail.notices.n_refused)
    }
}
