//! Pigeonpost: a provider of mailboxes that exists in this test alone. What it has is in [`Loft`], which a test changes, with or without telling.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, LazyLock, Mutex};

use chrono::{DateTime, Utc};
use connectors::Http;
use connectors::guide::{Gives, Group, Mark, Step};
use connectors::pull::complaint::{Complaint, Meaning};
use connectors::pull::mailbox::{Address, Census, Counted, Mailbox, MailboxSpec, Push, Subscription, Unread};
use connectors::pull::record;
use connectors::pull::spec::{Guide, Key, Labels};
use connectors::pull::{
    Account, Connector, Failed, Found, Identity, Item, Limit, Page, Provider, ProviderSpec, PullError, RawItem, Reach,
    Setting, Settings, last, more, read_place,
};
use domain::mail::{Correspondent, Letter, Place};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

pub const PIGEONPOST: Provider = &SPEC;

static LIMIT: Limit = Limit { name: "pigeonpost", units: 4_000, per_secs: 10 };
static LOFT: Setting = Setting::text("PIGEONPOST_LOFT", None, "The loft that is asked");

/// Letters on a page.
const PAGE: usize = 3;

static SPEC: ProviderSpec = ProviderSpec {
    name: "pigeonpost",
    label: "Pigeonpost",
    brings: "Letters",
    settings: &[&LOFT],
    oauth: None,
    key: Some(Key { of: "a loft", hint: "It hangs by the door.", placeholder: "ring-…" }),
    limits: &[&LIMIT],
    document_types: &["pigeonpost.message", "pigeonpost.attachment"],
    kinds: &[],
    raw: |_, row| Err(record::failed("message", None, "it is read as a letter", row)),
    item: |raw| record::buried(raw, Vec::new()),
    is_passed_over: |_| false,
    link: |_| None,
    find_max: 5,
    first_sync: None,
    has_complete_deltas: true,
    hides_long_quota: false,
    clients: &[],
    labels: Labels {
        types: &[("pigeonpost.message", "Pigeonpost letter"), ("pigeonpost.attachment", "Pigeonpost file")],
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
    mailbox: Some(MailboxSpec {
        message_type: "pigeonpost.message",
        attachment_type: "pigeonpost.attachment",
        rest: |_, settings| Arc::new(Pigeons { loft: loft(settings.text(&LOFT)) }),
        hook: "pigeonpost",
        push: Push::Subscription,
        notices: |_| Err(Unread("pigeons bring no notices")),
    }),
    rest: |_: &Http, settings: &Settings| Arc::new(Pigeons { loft: loft(settings.text(&LOFT)) }),
    guide: Guide {
        group: Group::Other,
        mark: Mark(r#"<circle class="soft" cx="12" cy="12" r="8"/>"#),
        also: "birds",
        steps: &[],
        key_steps: &[Step { title: "Look by the door", text: "The ring hangs there.", gives: Gives::Nothing }],
        codes: &[],
        refusals: &[],
    },
};

/// The lofts of all tests of this process, by name.
static LOFTS: LazyLock<Mutex<HashMap<String, Arc<Mutex<Loft>>>>> = LazyLock::new(Mutex::default);

pub fn loft(name: &str) -> Arc<Mutex<Loft>> {
    LOFTS.lock().expect("the lofts").entry(name.to_owned()).or_default().clone()
}

type WhileCounting = Box<dyn FnOnce(&mut Loft) + Send>;

/// The provider's own truth.
#[derive(Default)]
pub struct Loft {
    letters: BTreeMap<String, Kept>,
    /// The ids of what changed, in order. What is not among them no delta tells of.
    changes: Vec<String>,
    pub n_counts: usize,
    /// Each happens after a count was answered, before we read our own rows.
    pub while_counting: VecDeque<WhileCounting>,
    /// Each is the answer to one count.
    pub refusals: VecDeque<PullError>,
    /// Deltas are answered so.
    pub is_mute: bool,
    /// Its counts do not say when letters came in.
    pub is_terse: bool,
    /// Its first sync is capped.
    pub read_from: Option<DateTime<Utc>>,
}

#[derive(Clone)]
struct Kept {
    received_at: DateTime<Utc>,
    place: Place,
    is_unreadable: bool,
}

impl Loft {
    /// A letter that came in, and that a delta tells of.
    pub fn put(&mut self, id: &str, received_at: DateTime<Utc>) {
        self.put_silently(id, received_at);
        self.changes.push(id.to_owned());
    }

    /// A letter that no delta tells of.
    pub fn put_silently(&mut self, id: &str, received_at: DateTime<Utc>) {
        self.letters.insert(id.to_owned(), Kept { received_at, place: Place::Inbox, is_unreadable: false });
    }

    pub fn received(&self, id: &str) -> &DateTime<Utc> {
        &self.letters[id].received_at
    }

    pub fn move_to(&mut self, id: &str, place: Place) {
        self.letters.get_mut(id).expect("a letter").place = place;
        self.changes.push(id.to_owned());
    }

    pub fn damage(&mut self, id: &str) {
        self.letters.get_mut(id).expect("a letter").is_unreadable = true;
    }

    pub fn remove(&mut self, id: &str) {
        self.remove_silently(id);
        self.changes.push(id.to_owned());
    }

    pub fn remove_silently(&mut self, id: &str) {
        self.letters.remove(id).expect("a letter");
    }

    fn read(&self, id: &str, places: &[Place]) -> Result<Item, Failed> {
        let external_id = format!("message:{id}");
        let Some(kept) = self.letters.get(id).filter(|kept| places.contains(&kept.place)) else {
            return Ok(record::buried(record::tombstone(external_id, "pigeonpost.message", None), Vec::new()));
        };
        if kept.is_unreadable {
            return Err(Failed { external_id, reason: "the rain got to it".into(), payload: json!({ "id": id }) });
        }
        let letter = Letter {
            from: Some(Correspondent { name: None, address: "ann@larkfield.example".into() }),
            to: vec![Correspondent { name: None, address: "us@pigeonpost.example".into() }],
            subject: Some(format!("Letter {id}")),
            received_at: Some(kept.received_at),
            place: kept.place,
            text: format!("The words of letter {id}."),
            ..Letter::default()
        };
        let raw = RawItem {
            external_id,
            document_type: "pigeonpost.message",
            payload: letter.payload(),
            source_created_at: letter.received_at,
            source_updated_at: None,
            is_deleted: false,
        };
        let (title, text) = (letter.subject.clone(), letter.in_words());
        Ok(Item { raw, title, text, mentions: Vec::new(), letter: Some(Box::new(letter)), file: None })
    }

    fn sorted<'a>(&self, ids: impl Iterator<Item = &'a String>, places: &[Place]) -> Found {
        let (mut items, mut failed) = (Vec::new(), Vec::new());
        for id in ids {
            match self.read(id, places) {
                Ok(item) => items.push(item),
                Err(unread) => failed.push(unread),
            }
        }
        (items, failed)
    }
}

struct Pigeons {
    loft: Arc<Mutex<Loft>>,
}

impl Pigeons {
    /// One request.
    async fn ask<T>(&self, account: &Account<'_>, of: impl FnOnce(&mut Loft) -> T) -> Result<T, PullError> {
        account.pace.turn(&LIMIT, 1).await?;
        Ok(of(&mut self.loft.lock().expect("the loft")))
    }
}

impl Connector for Pigeons {
    fn document_types(&self) -> &'static [&'static str] {
        &["pigeonpost.message"]
    }

    fn cursor<'a>(&'a self, account: &'a Account<'a>) -> BoxFuture<'a, Result<Option<Value>, PullError>> {
        Box::pin(async move { self.ask(account, |loft| Some(json!(loft.changes.len()))).await })
    }

    fn full<'a>(
        &'a self,
        account: &'a Account<'a>,
        place: Option<&'a Value>,
        is_first: bool,
    ) -> BoxFuture<'a, Result<Page, PullError>> {
        Box::pin(async move {
            let after: String = place.map(read_place).transpose()?.unwrap_or_default();
            let page = self.ask(account, |loft| {
                let cap = loft.read_from.filter(|_| is_first);
                let is_taken = |kept: &Kept| {
                    account.places.contains(&kept.place) && cap.is_none_or(|from| from <= kept.received_at)
                };
                let there = loft.letters.iter().filter(|(id, kept)| **id > after && is_taken(kept)).map(|(id, _)| id);
                let ids: Vec<String> = there.take(PAGE).cloned().collect();
                let (items, failed) = loft.sorted(ids.iter(), account.places);
                match ids.last().filter(|_| ids.len() == PAGE) {
                    Some(id) => more(items, failed, json!(id)),
                    None => Page { reach: cap.map_or(Reach::All, Reach::From), ..last(items, failed, Value::Null) },
                }
            });
            page.await
        })
    }

    fn delta<'a>(
        &'a self,
        account: &'a Account<'a>,
        cursor: &'a Value,
        _place: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Page, PullError>> {
        Box::pin(async move {
            let since: usize = read_place(cursor)?;
            let page = self.ask(account, |loft| {
                if loft.is_mute {
                    return Err(PullError::Passing("the pigeons are asleep".into()));
                }
                let (items, failed) = loft.sorted(loft.changes[since..].iter(), account.places);
                Ok(last(items, failed, json!(loft.changes.len())))
            });
            page.await?
        })
    }

    fn find_max(&self) -> usize {
        SPEC.find_max
    }

    fn find<'a>(
        &'a self,
        account: &'a Account<'a>,
        external_ids: &'a [String],
    ) -> BoxFuture<'a, Result<Found, PullError>> {
        Box::pin(async move {
            self.ask(account, |loft| {
                let ids = external_ids.iter().filter_map(|name| name.strip_prefix("message:"));
                let there: Vec<String> = ids.filter(|id| loft.letters.contains_key(*id)).map(str::to_owned).collect();
                loft.sorted(there.iter(), account.places)
            })
            .await
        })
    }

    fn identify<'a>(&'a self, account: &'a Account<'a>) -> BoxFuture<'a, Result<Identity, PullError>> {
        Box::pin(async move {
            self.ask(account, |_| Identity { account: "us@pigeonpost.example".into(), name: "Us".into() }).await
        })
    }
}

impl Mailbox for Pigeons {
    fn subscribe<'a>(
        &'a self,
        _account: &'a Account<'a>,
        _address: &'a Address<'a>,
    ) -> BoxFuture<'a, Result<Subscription, PullError>> {
        Box::pin(async { Err(PullError::Passing("pigeons take no orders".into())) })
    }

    fn renew<'a>(
        &'a self,
        _account: &'a Account<'a>,
        _subscription: &'a Subscription,
    ) -> BoxFuture<'a, Result<Option<Subscription>, PullError>> {
        Box::pin(async { Ok(None) })
    }

    fn unsubscribe<'a>(
        &'a self,
        _account: &'a Account<'a>,
        _subscription: &'a Subscription,
    ) -> BoxFuture<'a, Result<(), PullError>> {
        Box::pin(async { Ok(()) })
    }

    fn census<'a>(
        &'a self,
        account: &'a Account<'a>,
        from: DateTime<Utc>,
        to: DateTime<Utc>,
        place: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Census, PullError>> {
        Box::pin(async move {
            let after: String = place.map(read_place).transpose()?.unwrap_or_default();
            let counted = self.ask(account, |loft| {
                loft.n_counts += 1;
                if let Some(refusal) = loft.refusals.pop_front() {
                    return Err(refusal);
                }
                let is_meant = |id: &String, kept: &Kept| {
                    *id > after
                        && account.places.contains(&kept.place)
                        && from <= kept.received_at
                        && kept.received_at < to
                };
                let counted = loft.letters.iter().filter(|(id, kept)| is_meant(id, kept)).take(PAGE);
                let letters: Vec<(String, Kept)> = counted.map(|(id, kept)| (id.clone(), kept.clone())).collect();
                let more = letters.len() == PAGE;
                if !more && let Some(happens) = loft.while_counting.pop_front() {
                    happens(loft);
                }
                let is_terse = loft.is_terse;
                let next = letters.last().map_or(Value::Null, |(id, _)| json!(id));
                let letters = letters.into_iter().map(|(id, kept)| Counted {
                    external_id: format!("message:{id}"),
                    received_at: Some(kept.received_at).filter(|_| !is_terse),
                    place: kept.place,
                });
                Ok(Census { letters: letters.collect(), next, more })
            });
            counted.await?
        })
    }
}
