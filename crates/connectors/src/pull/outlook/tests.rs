//! Against the fake Graph for what a mailbox does over time, and against a scripted server for what is said byte by byte.

mod histories;
mod mailbox;
mod over_time;
mod said;

use std::collections::BTreeMap;

use domain::Secret;
use domain::mail::Place;
use fakes::{Fakes, OUTLOOK};
use serde_json::Value;

use super::*;
use crate::Http;
use crate::pull::tests::Counted;
use crate::pull::{Page, Settings, more};

/// The places that are read unless a person says otherwise.
const READ: [Place; 3] = [Place::Inbox, Place::Sent, Place::Other];

/// A mailbox at the fake, and what somebody who reads it knows.
struct Reader {
    fakes: Fakes,
    connector: Outlook,
    token: Secret,
    pace: Counted,
    places: Vec<Place>,
    /// The subject and the folder of every letter that was told, by id.
    known: BTreeMap<String, (String, String)>,
    cursor: Value,
    n_pages: usize,
    notes: Vec<String>,
    /// Happens after each page.
    meanwhile: Box<dyn FnMut()>,
}

impl Reader {
    fn of(fakes: Fakes) -> Self {
        Self::with(fakes, "OUTLOOK_INITIAL_SYNC_MAX_MESSAGES", "100000")
    }

    fn with(fakes: Fakes, env: &str, value: &str) -> Self {
        let mut settings = Settings::default();
        fakes.settings().iter().for_each(|(env, value)| settings.set(env, value.as_str()));
        settings.set(env, value);
        let connector = spec::outlook(&Http::new().expect("a client"), &settings);
        let token = Secret::new(fakes.issue(OUTLOOK).access_token);
        Self {
            fakes,
            connector,
            token,
            pace: Counted::default(),
            places: READ.to_vec(),
            known: BTreeMap::new(),
            cursor: Value::Null,
            n_pages: 0,
            notes: Vec::new(),
            meanwhile: Box::new(|| ()),
        }
    }

    fn account(&self) -> Account<'_> {
        Account { token: &self.token, account: "office@harrowridge.example", pace: &self.pace, places: &self.places }
    }

    /// A full pass as the engine makes it: what was not met is looked for, and is gone where it is not found.
    async fn full(&mut self) -> Result<(), PullError> {
        let before: Vec<String> = self.known.keys().cloned().collect();
        let is_first = before.is_empty();
        let pinned = self.connector.cursor(&self.account()).await?;
        assert_eq!(pinned, Some(json!({ "folders": {} })));
        let met = self.pages(None, is_first).await?;
        let unseen: Vec<String> =
            before.into_iter().filter(|id| !met.contains(id)).map(|id| format!("message:{id}")).collect();
        for unseen in unseen.chunks(self.connector.find_max()) {
            let (items, failed) = self.connector.find(&self.account(), unseen).await?;
            assert_eq!(failed, []);
            unseen.iter().for_each(|name| drop(self.known.remove(&name["message:".len()..])));
            self.remember(more(items, failed, Value::Null));
        }
        Ok(())
    }

    /// Lets this happen after the next page.
    fn once(&mut self, act: impl FnOnce() + 'static) {
        let mut act = Some(act);
        self.meanwhile = Box::new(move || act.take().into_iter().for_each(|act| act()));
    }

    async fn delta(&mut self) -> Result<(), PullError> {
        self.pages(Some(self.cursor.clone()), false).await.map(|_| ())
    }

    /// A delta, or a full pass where that is not possible.
    async fn sync(&mut self) {
        let mut read = if self.cursor.is_null() { self.full().await } else { self.delta().await };
        for _ in 0..20 {
            match read {
                Ok(()) => return,
                Err(PullError::CursorLost(_)) => read = self.full().await,
                Err(error) => panic!("{error}"),
            }
        }
        panic!("no pass comes to its end");
    }

    /// Reads page by page, each from a place that was stored. Returns the letters that were met.
    async fn pages(&mut self, cursor: Option<Value>, is_first: bool) -> Result<Vec<String>, PullError> {
        let (mut place, mut met): (Option<Value>, Vec<String>) = (None, Vec::new());
        for _ in 0..1_000 {
            let page = match &cursor {
                None => self.connector.full(&self.account(), place.as_ref(), is_first).await?,
                Some(cursor) => self.connector.delta(&self.account(), cursor, place.as_ref()).await?,
            };
            self.n_pages += 1;
            let (next, more) = (page.next.clone(), page.more);
            met.extend(page.items.iter().map(|item| item.raw.external_id["message:".len()..].to_owned()));
            self.notes.extend(page.note.clone());
            self.remember(page);
            (self.meanwhile)();
            if !more {
                self.cursor = next;
                return Ok(met);
            }
            place = Some(next);
        }
        panic!("a round without an end");
    }

    fn remember(&mut self, page: Page) {
        assert_eq!(page.failed, []);
        for item in page.items {
            let id = item.raw.external_id.strip_prefix("message:").expect("a message").to_owned();
            assert_eq!(item.raw.document_type, "outlook.message");
            match (item.raw.is_deleted, item.letter) {
                (true, None) => drop(self.known.remove(&id)),
                (false, Some(letter)) => {
                    assert!(self.places.contains(&letter.place), "{:?}", letter.place);
                    assert_eq!(letter.payload(), item.raw.payload);
                    let folder = letter.folders.first().cloned().unwrap_or_default();
                    self.known.insert(id, (letter.subject.unwrap_or_default(), folder));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Memory is what the mailbox says of itself.
    fn assert_equal(&self) {
        let kept = self.fakes.outlook().read_truth().into_iter();
        let truth: BTreeMap<String, (String, String)> =
            kept.map(|kept| (kept.id, (kept.subject, kept.folder))).collect();
        let missing: Vec<_> = truth.iter().filter(|(id, _)| !self.known.contains_key(*id)).collect();
        let surplus: Vec<_> = self.known.iter().filter(|(id, _)| !truth.contains_key(*id)).collect();
        assert!(missing.is_empty() && surplus.is_empty(), "missing {missing:?}, surplus {surplus:?}");
        assert_eq!(self.known, truth);
    }
}
