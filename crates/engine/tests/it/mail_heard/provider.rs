//! Two providers of mailboxes that exist in these tests alone. Pigeon has a subscription for each mailbox; Lark tells one topic of all of them. Their
//! letters and subscriptions lie in a [`Loft`], which keeps count of what it was asked.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use chrono::{DateTime, TimeDelta, Utc};
use connectors::Http;
use connectors::guide::{Group, Mark};
use connectors::pull::complaint::{Complaint, Meaning};
use connectors::pull::mailbox::{
    Address, Census, Mailbox, MailboxSpec, Notice, Of, Push, Subscription, Tells, Topic, Unread,
};
use connectors::pull::spec::{Guide, Key, Labels};
use connectors::pull::{
    Account, Connector, Failed, Found, Identity, Item, Page, Provider, ProviderSpec, PullError, RawItem, Setting,
    Settings, last, more,
};
use domain::{Clock, Secret};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

pub const PIGEON: Provider = &PIGEON_SPEC;
pub const LARK: Provider = &LARK_SPEC;

/// The key of a test's loft among all.
pub static LOFT: Setting = Setting::text("MAIL_TEST_LOFT", None, "The loft");
pub static TOPIC: Setting = Setting::text("LARK_TOPIC", None, "The topic");
pub static PATH: Setting = Setting::text("LARK_SUBSCRIPTION", None, "The topic's subscription");
pub static TOKEN: Setting = Setting::secret("LARK_TOKEN", "The word");
pub static AUDIENCE: Setting = Setting::text("LARK_AUDIENCE", None, "The audience");
pub static SIGNER: Setting = Setting::text("LARK_SIGNER", None, "The signer");
pub static KEYS_URL: Setting = Setting::url("LARK_KEYS_URL", None, "The keys");

static SETTINGS: &[&Setting] = &[&LOFT, &TOPIC, &PATH, &TOKEN, &AUDIENCE, &SIGNER, &KEYS_URL];

static PIGEON_SPEC: ProviderSpec = spec("pigeon", "Pigeon", PIGEON_MAILBOX);
static LARK_SPEC: ProviderSpec = spec("lark", "Lark", LARK_MAILBOX);

const PIGEON_MAILBOX: MailboxSpec = mailbox("pigeon", Push::Subscription);
const LARK_MAILBOX: MailboxSpec = mailbox(
    "lark",
    Push::Topic(Topic {
        topic: &TOPIC,
        subscription: &PATH,
        token: &TOKEN,
        audience: &AUDIENCE,
        signer: &SIGNER,
        keys_url: &KEYS_URL,
        issuers: &["https://lark.example"],
    }),
);

const fn mailbox(hook: &'static str, push: Push) -> MailboxSpec {
    MailboxSpec {
        message_type: "pigeon.message",
        attachment_type: "pigeon.attachment",
        rest: |_: &Http, settings: &Settings| Arc::new(Flock(Loft::named(settings.text(&LOFT)))),
        hook,
        push,
        notices,
    }
}

const fn spec(name: &'static str, label: &'static str, mailbox: MailboxSpec) -> ProviderSpec {
    ProviderSpec {
        name,
        label,
        brings: "Letters",
        settings: SETTINGS,
        oauth: None,
        key: Some(Key { of: "a ring", hint: "It is on the leg.", placeholder: "ring-…" }),
        limits: &[],
        document_types: &["pigeon.message", "pigeon.attachment"],
        kinds: &[],
        raw: |_, row| Err(Failed { external_id: "message:?".into(), reason: "unread".into(), payload: row }),
        item,
        is_passed_over: |_| false,
        link: |_| None,
        find_max: 10,
        first_sync: None,
        has_complete_deltas: true,
        hides_long_quota: false,
        clients: &[],
        labels: Labels {
            types: &[("pigeon.message", "letter"), ("pigeon.attachment", "file of a letter")],
            facts: &[],
            value: |_, _| None,
        },
        address_fields: &[],
        complaint: |status, _| Complaint {
            meaning: Meaning::of_status(status),
            code: None,
            wait: std::time::Duration::from_secs(60),
            told_at: None,
        },
        hidden_complaint: None,
        mcp: None,
        mailbox: Some(mailbox),
        rest: |_: &Http, settings: &Settings| Arc::new(Flock(Loft::named(settings.text(&LOFT)))),
        guide: Guide {
            group: Group::Other,
            mark: Mark(r#"<circle class="soft" cx="12" cy="12" r="8"/>"#),
            also: "",
            steps: &[],
            key_steps: &[],
            codes: &[],
            refusals: &[],
        },
    }
}

/// `[{"of", "account", "state", "via", "tells"}]`.
fn notices(body: &[u8]) -> Result<Vec<Notice>, Unread> {
    let rows: Vec<Value> = serde_json::from_slice(body).map_err(|_| Unread("no list"))?;
    let said = |row: &Value, key: &str| row[key].as_str().map(str::to_owned);
    let notice = |row: &Value| {
        let of = match (said(row, "of"), said(row, "account")) {
            (Some(id), _) => Of::Subscription(id),
            (None, Some(account)) => Of::Account(account),
            (None, None) => return Err(Unread("a notice of nothing")),
        };
        let tells = match row["tells"].as_str() {
            Some("missed") => Tells::Missed,
            Some("reauthorize") => Tells::Reauthorize,
            Some("removed") => Tells::Removed,
            _ => Tells::Changed,
        };
        Ok(Notice { of, client_state: said(row, "state").map(Secret::new), via: said(row, "via"), tells })
    };
    rows.iter().map(notice).collect()
}

fn item(raw: RawItem) -> Item {
    let text = raw.payload["text"].as_str().unwrap_or_default().to_owned();
    Item { title: Some(text.clone()), text, raw, mentions: Vec::new(), letter: None, file: None }
}

/// A subscription that was made.
#[derive(Clone, Debug)]
pub struct Made {
    pub id: String,
    pub client_state: String,
    pub url: String,
    pub expires_at: DateTime<Utc>,
}

/// Letters and subscriptions, and what was asked.
pub struct Loft {
    pub clock: Clock,
    /// The account that a key opens.
    pub account: String,
    /// Texts by the number of their change.
    letters: Vec<String>,
    /// The subscriptions that are there.
    pub made: Vec<Made>,
    pub n_subscribed: usize,
    pub n_renewed: usize,
    pub n_removed: usize,
    pub n_deltas: usize,
    /// Every delta waits here, after it has looked for letters.
    pub gate: Arc<Semaphore>,
    /// The answers to the next requests, each given once.
    pub troubles: Vec<PullError>,
    pub is_down: bool,
    /// So many full passes lose their place after a page. A place that was lost stays so.
    pub n_losses: usize,
    /// The number of the place that is good.
    good_place: u64,
}

static LOFTS: LazyLock<Mutex<HashMap<String, Arc<Mutex<Loft>>>>> = LazyLock::new(Mutex::default);

impl Loft {
    /// A loft of its own for a test, and its name.
    pub fn build(clock: Clock) -> (String, Arc<Mutex<Self>>) {
        let name = uuid::Uuid::now_v7().to_string();
        let loft = Self {
            clock,
            account: "ann@acme.example".into(),
            letters: Vec::new(),
            made: Vec::new(),
            n_subscribed: 0,
            n_renewed: 0,
            n_removed: 0,
            n_deltas: 0,
            gate: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
            troubles: Vec::new(),
            is_down: false,
            n_losses: 0,
            good_place: 0,
        };
        let loft = Arc::new(Mutex::new(loft));
        LOFTS.lock().expect("the lofts").insert(name.clone(), loft.clone());
        (name, loft)
    }

    fn named(name: &str) -> Arc<Mutex<Self>> {
        LOFTS.lock().expect("the lofts").get(name).cloned().unwrap_or_else(|| Self::build(Clock::System).1)
    }

    pub fn write(&mut self, text: &str) {
        self.letters.push(text.to_owned());
    }

    fn answers(&self) -> Result<(), PullError> {
        if self.is_down { Err(PullError::Passing("Pigeon does not answer".into())) } else { Ok(()) }
    }

    fn trouble(&mut self) -> Result<(), PullError> {
        self.answers()?;
        if self.troubles.is_empty() { Ok(()) } else { Err(self.troubles.remove(0)) }
    }

    fn since(&self, from: usize) -> Vec<Item> {
        let made = |(n, text): (usize, &String)| {
            item(RawItem {
                external_id: format!("message:{n}"),
                document_type: "pigeon.message",
                payload: json!({ "text": text }),
                source_created_at: None,
                source_updated_at: None,
                is_deleted: false,
            })
        };
        self.letters.iter().enumerate().skip(from).map(made).collect()
    }
}

struct Flock(Arc<Mutex<Loft>>);

impl Flock {
    fn loft(&self) -> std::sync::MutexGuard<'_, Loft> {
        self.0.lock().expect("the loft")
    }
}

impl Connector for Flock {
    fn document_types(&self) -> &'static [&'static str] {
        &["pigeon.message"]
    }

    fn cursor<'a>(&'a self, _: &'a Account<'a>) -> BoxFuture<'a, Result<Option<Value>, PullError>> {
        Box::pin(async { Ok(Some(json!(self.loft().letters.len()))) })
    }

    fn full<'a>(
        &'a self,
        _: &'a Account<'a>,
        place: Option<&'a Value>,
        _: bool,
    ) -> BoxFuture<'a, Result<Page, PullError>> {
        Box::pin(async move {
            let mut loft = self.loft();
            loft.trouble()?;
            if place.is_some_and(|place| *place != json!(loft.good_place)) {
                return Err(PullError::CursorLost("Pigeon no longer knows our place in its list"));
            }
            if loft.n_losses > 0 {
                let page = more(loft.since(0), Vec::new(), json!(loft.good_place));
                (loft.n_losses, loft.good_place) = (loft.n_losses - 1, loft.good_place + 1);
                return Ok(page);
            }
            Ok(last(loft.since(0), Vec::new(), Value::Null))
        })
    }

    fn delta<'a>(
        &'a self,
        _: &'a Account<'a>,
        cursor: &'a Value,
        _: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Page, PullError>> {
        Box::pin(async move {
            let from = cursor.as_u64().and_then(|from| usize::try_from(from).ok()).unwrap_or_default();
            let (page, gate) = {
                let mut loft = self.loft();
                loft.n_deltas += 1;
                loft.trouble()?;
                (last(loft.since(from), Vec::new(), json!(loft.letters.len())), loft.gate.clone())
            };
            gate.acquire().await.expect("an open gate").forget();
            self.loft().answers()?;
            Ok(page)
        })
    }

    fn find<'a>(&'a self, _: &'a Account<'a>, names: &'a [String]) -> BoxFuture<'a, Result<Found, PullError>> {
        Box::pin(async move {
            let items = self.loft().since(0).into_iter().filter(|item| names.contains(&item.raw.external_id));
            Ok((items.collect(), Vec::new()))
        })
    }

    fn identify<'a>(&'a self, _: &'a Account<'a>) -> BoxFuture<'a, Result<Identity, PullError>> {
        Box::pin(async {
            let account = self.loft().account.clone();
            Ok(Identity { name: account.clone(), account })
        })
    }
}

impl Mailbox for Flock {
    fn subscribe<'a>(
        &'a self,
        account: &'a Account<'a>,
        address: &'a Address<'a>,
    ) -> BoxFuture<'a, Result<Subscription, PullError>> {
        Box::pin(async move {
            let mut loft = self.loft();
            loft.trouble()?;
            loft.n_subscribed += 1;
            let expires_at = loft.clock.now() + TimeDelta::days(7);
            let id = format!("s{}-{}", loft.n_subscribed, account.account);
            loft.made.push(Made {
                id: id.clone(),
                client_state: address.client_state.reveal().to_owned(),
                url: address.url.to_owned(),
                expires_at,
            });
            Ok(Subscription { id: Some(id), expires_at })
        })
    }

    fn renew<'a>(
        &'a self,
        _: &'a Account<'a>,
        subscription: &'a Subscription,
    ) -> BoxFuture<'a, Result<Option<Subscription>, PullError>> {
        Box::pin(async move {
            let mut loft = self.loft();
            loft.trouble()?;
            let expires_at = loft.clock.now() + TimeDelta::days(7);
            let is_there = loft.made.iter().any(|made| Some(&made.id) == subscription.id.as_ref());
            loft.n_renewed += usize::from(is_there);
            Ok(is_there.then(|| Subscription { id: subscription.id.clone(), expires_at }))
        })
    }

    fn unsubscribe<'a>(
        &'a self,
        _: &'a Account<'a>,
        subscription: &'a Subscription,
    ) -> BoxFuture<'a, Result<(), PullError>> {
        Box::pin(async move {
            let mut loft = self.loft();
            loft.trouble()?;
            loft.n_removed += 1;
            loft.made.retain(|made| Some(&made.id) != subscription.id.as_ref());
            Ok(())
        })
    }

    fn census<'a>(
        &'a self,
        _: &'a Account<'a>,
        _: DateTime<Utc>,
        _: DateTime<Utc>,
        _: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Census, PullError>> {
        Box::pin(async { Ok(Census { letters: Vec::new(), next: Value::Null, more: false }) })
    }
}
