//! Pigeonpost, a made-up mailbox whose letters lie in a file: several processes read the same mailbox, and a test changes it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use connectors::Http;
use connectors::guide::{Gives, Group, Mark, Step};
use connectors::pull::complaint::{Complaint, Meaning};
use connectors::pull::mailbox::{Address, Census, Mailbox, MailboxSpec, Push, Subscription, Unread};
use connectors::pull::record::{buried, tombstone};
use connectors::pull::spec::{Guide, Key, Labels};
use connectors::pull::{
    ALL, Account, Connector, Found, Identity, Item, Limit, Page, Provider, ProviderSpec, PullError, RawItem, Setting,
    Settings, last, more, read_place,
};
use domain::mail::{Letter, Place, files};
use engine::Env;
use engine::pull::Providers;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub const PIGEONPOST: Provider = &SPEC;
/// The setting that names the file.
pub const FILE: &str = "PIGEONPOST_FILE";
pub const OWNER: &str = "owner@acme.test";

const PAGE: usize = 3;

static LIMIT: Limit = Limit { name: "pigeonpost", units: 10_000, per_secs: 10 };
static PIGEONPOST_FILE: Setting = Setting::text(FILE, None, "The file with the letters");

/// The truth about a mailbox.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Loft {
    pub newest: u64,
    pub letters: BTreeMap<String, Kept>,
}

/// A letter, and the number of the change that made it what it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kept {
    pub change: u64,
    pub is_gone: bool,
    pub letter: Letter,
    /// The bytes of its files, as text, in the order of the files.
    pub contents: Vec<String>,
}

impl Loft {
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Another process reads the whole of one state, never half of it.
    pub fn write(&self, path: &Path) {
        let beside = path.with_extension("new");
        std::fs::write(&beside, serde_json::to_string(self).expect("JSON")).expect("written");
        std::fs::rename(beside, path).expect("in its place");
    }

    pub fn put(&mut self, id: &str, letter: Letter, contents: &[&str]) {
        self.newest += 1;
        let contents = contents.iter().map(|text| (*text).to_owned()).collect();
        self.letters.insert(id.into(), Kept { change: self.newest, is_gone: false, letter, contents });
    }

    pub fn change(&mut self, id: &str, change: impl FnOnce(&mut Kept)) {
        self.newest += 1;
        let kept = self.letters.get_mut(id).expect("a letter");
        kept.change = self.newest;
        change(kept);
    }
}

/// The providers of a process that also knows the mailbox in this file.
pub fn providers(env: &Env, file: &str) -> Arc<Providers> {
    let mut config = (*env.config).clone();
    config.providers.set(FILE, file);
    let known = [ALL, &[PIGEONPOST]].concat();
    Arc::new(Providers::new(&config, &env.http, &known).expect("providers"))
}

impl Kept {
    fn is_in(&self, places: &[Place]) -> bool {
        !self.is_gone && places.contains(&self.letter.place)
    }
}

static SPEC: ProviderSpec = ProviderSpec {
    name: "pigeonpost",
    label: "Pigeonpost",
    brings: "Letters",
    settings: &[&PIGEONPOST_FILE],
    oauth: None,
    key: Some(Key { of: "a loft", hint: "It is painted on the loft.", placeholder: "loft-…" }),
    limits: &[&LIMIT],
    document_types: &["pigeonpost.message", "pigeonpost.attachment"],
    kinds: &[],
    raw: |_, row| Err(connectors::pull::record::failed("message", None, "it has none", row)),
    item: |raw| buried(raw, Vec::new()),
    is_passed_over: |_| false,
    link: |_| None,
    find_max: 10,
    first_sync: None,
    has_complete_deltas: true,
    hides_long_quota: false,
    clients: &[],
    labels: Labels {
        types: &[("pigeonpost.message", "Letter"), ("pigeonpost.attachment", "File of a letter")],
        facts: &[],
        value: |_, _| None,
    },
    address_fields: &[],
    complaint: |status, _| Complaint {
        meaning: Meaning::of_status(status),
        code: None,
        wait: std::time::Duration::from_secs(1),
        told_at: None,
    },
    hidden_complaint: None,
    mcp: None,
    mailbox: Some(MailboxSpec {
        message_type: "pigeonpost.message",
        attachment_type: "pigeonpost.attachment",
        rest: |_, settings| Arc::new(Pigeonpost { file: settings.text(&PIGEONPOST_FILE).to_owned() }),
        hook: "pigeonpost",
        push: Push::Subscription,
        notices: |_| Err(Unread("pigeons tell nothing")),
    }),
    rest: |_: &Http, settings: &Settings| Arc::new(Pigeonpost { file: settings.text(&PIGEONPOST_FILE).to_owned() }),
    guide: Guide {
        group: Group::Other,
        mark: Mark(r#"<circle class="soft" cx="12" cy="12" r="8"/>"#),
        also: "birds",
        steps: &[],
        key_steps: &[Step { title: "Look at the loft", text: "The key is painted on it.", gives: Gives::Nothing }],
        codes: &[],
        refusals: &[],
    },
};

struct Pigeonpost {
    file: String,
}

impl Pigeonpost {
    fn loft(&self) -> Loft {
        Loft::read(Path::new(&self.file))
    }
}

fn item(id: &str, kept: &Kept, places: &[Place]) -> Item {
    let external_id = format!("message:{id}");
    if !kept.is_in(places) {
        return buried(tombstone(external_id, "pigeonpost.message", None), Vec::new());
    }
    let mut letter = kept.letter.clone();
    for (file, content) in letter.files.iter_mut().zip(&kept.contents) {
        file.left_out = files::verdict(file);
        file.content = file.left_out.is_none().then(|| content.clone().into());
    }
    let raw = RawItem {
        external_id,
        document_type: "pigeonpost.message",
        payload: letter.payload(),
        source_created_at: letter.received_at,
        source_updated_at: DateTime::from_timestamp(1_700_000_000 + i64::try_from(kept.change).unwrap_or(0), 0),
        is_deleted: false,
    };
    let (title, text) = (letter.subject.clone(), letter.in_words());
    Item { raw, title, text, mentions: Vec::new(), letter: Some(Box::new(letter)), file: None }
}

impl Connector for Pigeonpost {
    fn document_types(&self) -> &'static [&'static str] {
        SPEC.document_types
    }

    fn find_max(&self) -> usize {
        SPEC.find_max
    }

    fn cursor<'a>(&'a self, _: &'a Account<'a>) -> BoxFuture<'a, Result<Option<Value>, PullError>> {
        Box::pin(async move { Ok(Some(json!(self.loft().newest))) })
    }

    fn full<'a>(
        &'a self,
        account: &'a Account<'a>,
        place: Option<&'a Value>,
        _is_first: bool,
    ) -> BoxFuture<'a, Result<Page, PullError>> {
        Box::pin(async move {
            let after: String = place.map(read_place).transpose()?.unwrap_or_default();
            let loft = self.loft();
            let rest: Vec<(&String, &Kept)> =
                loft.letters.iter().filter(|(id, kept)| **id > after && kept.is_in(account.places)).collect();
            let items: Vec<Item> = rest.iter().take(PAGE).map(|(id, kept)| item(id, kept, account.places)).collect();
            Ok(match rest.get(PAGE - 1).filter(|_| rest.len() > PAGE) {
                Some((id, _)) => more(items, Vec::new(), json!(id)),
                None => last(items, Vec::new(), Value::Null),
            })
        })
    }

    fn delta<'a>(
        &'a self,
        account: &'a Account<'a>,
        cursor: &'a Value,
        _place: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Page, PullError>> {
        Box::pin(async move {
            let since: u64 = read_place(cursor)?;
            let loft = self.loft();
            let changed = loft.letters.iter().filter(|(_, kept)| kept.change > since);
            let items = changed.map(|(id, kept)| item(id, kept, account.places)).collect();
            Ok(last(items, Vec::new(), json!(loft.newest)))
        })
    }

    fn find<'a>(
        &'a self,
        account: &'a Account<'a>,
        external_ids: &'a [String],
    ) -> BoxFuture<'a, Result<Found, PullError>> {
        Box::pin(async move {
            let loft = self.loft();
            let wanted = external_ids.iter().filter_map(|name| name.strip_prefix("message:"));
            let found = wanted.filter_map(|id| loft.letters.get_key_value(id));
            let there = found.filter(|(_, kept)| kept.is_in(account.places));
            Ok((there.map(|(id, kept)| item(id, kept, account.places)).collect(), Vec::new()))
        })
    }

    fn identify<'a>(&'a self, _: &'a Account<'a>) -> BoxFuture<'a, Result<Identity, PullError>> {
        Box::pin(async move { Ok(Identity { account: OWNER.into(), name: OWNER.into() }) })
    }
}

impl Mailbox for Pigeonpost {
    fn subscribe<'a>(
        &'a self,
        _: &'a Account<'a>,
        _: &'a Address<'a>,
    ) -> BoxFuture<'a, Result<Subscription, PullError>> {
        Box::pin(async move { Ok(Subscription { id: None, expires_at: Utc::now() + TimeDelta::days(7) }) })
    }

    fn renew<'a>(
        &'a self,
        _: &'a Account<'a>,
        subscription: &'a Subscription,
    ) -> BoxFuture<'a, Result<Option<Subscription>, PullError>> {
        Box::pin(async move { Ok(Some(subscription.clone())) })
    }

    fn unsubscribe<'a>(&'a self, _: &'a Account<'a>, _: &'a Subscription) -> BoxFuture<'a, Result<(), PullError>> {
        Box::pin(async move { Ok(()) })
    }

    fn census<'a>(
        &'a self,
        _: &'a Account<'a>,
        _: DateTime<Utc>,
        _: DateTime<Utc>,
        _: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Census, PullError>> {
        Box::pin(async move { Ok(Census { letters: Vec::new(), next: Value::Null, more: false }) })
    }
}
