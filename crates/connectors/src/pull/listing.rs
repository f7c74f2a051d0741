//! Full passes over a transport that can list records and fetch some of them by id: MCP and the sample data. Neither tells what changed, so
//! there is no cursor, and every sync reads everything.

use std::collections::HashSet;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::record;
use super::spec::Provider;
use super::trail::{Trail, follow};
use super::{Account, Connector, Failed, Found, Identity, Item, Page, PullError, RawItem, last, more, read_place};

/// A transport below a [`Listing`]. A method's name has the provider in front.
pub(super) trait Lister: Send + Sync {
    /// One page of a method's records; the first when `page` is none.
    fn list<'a>(
        &'a self,
        account: &'a Account<'a>,
        method: &'static str,
        page: Option<&'a str>,
    ) -> BoxFuture<'a, Result<RawPage, PullError>>;

    /// These records, by the provider's own ids. A record that is missing is gone.
    fn get<'a>(
        &'a self,
        account: &'a Account<'a>,
        method: &'static str,
        ids: &'a [&'a str],
    ) -> BoxFuture<'a, Result<RawPage, PullError>>;
}

pub(super) struct RawPage {
    pub items: Vec<RawItem>,
    pub failed: Vec<Failed>,
    /// The token of the next page; none at the end.
    pub next: Option<String>,
}

impl RawPage {
    /// Reads records as the provider's own API spells them. A record that is a list is several: the parts of something that is listed whole.
    pub fn new(provider: Provider, object: &str, records: Vec<Value>, next: Option<String>) -> Self {
        let mut page = Self { items: Vec::new(), failed: Vec::new(), next };
        for record in records.into_iter().flat_map(apart) {
            match (provider.raw)(object, record) {
                Ok(item) => page.items.push(item),
                Err(failed) => page.failed.push(failed),
            }
        }
        page
    }
}

/// The records in a record.
pub(super) fn apart(record: Value) -> Vec<Value> {
    match record {
        Value::Array(records) => records,
        record => vec![record],
    }
}

/// The one [`Connector`] over every [`Lister`].
pub(super) struct Listing<L> {
    pub provider: Provider,
    pub lister: L,
    /// The account, where there is only one. Otherwise it is the one that the caller asks with.
    pub identity: Option<Identity>,
    /// The number of records that a first pass reads, where there is a cap.
    pub first_max: Option<usize>,
}

/// The position of a full pass.
#[derive(Default, Serialize, Deserialize)]
struct ListingPlace {
    /// The kind of record that is listed, by its number.
    kind: usize,
    trail: Option<Trail>,
    /// Records so far, for the cap on a first sync.
    n_taken: usize,
}

impl<L: Lister> Listing<L> {
    async fn page(&self, account: &Account<'_>, place: Option<&Value>, is_first: bool) -> Result<Page, PullError> {
        let ListingPlace { kind, trail, n_taken } = place.map(read_place).transpose()?.unwrap_or_default();
        let kinds = self.provider.kinds;
        let listed = kinds.get(kind).ok_or(PullError::CursorLost("our place in this account cannot be read"))?;
        let page = trail.as_ref().map(|trail| trail.after.as_str());
        let RawPage { mut items, failed, next } = self.lister.list(account, listed.list, page).await?;

        let most = self.first_max.filter(|_| is_first);
        let room = most.map_or(usize::MAX, |most| most.saturating_sub(n_taken));
        let is_capped = items.len() > room || (items.len() == room && next.is_some());
        items.truncate(room);
        let n_taken = n_taken + items.len();
        let items = self.items(items);
        if is_capped {
            let things = self.provider.first_sync.as_ref().map_or("records", |cap| cap.things);
            let note = Some(format!("The first {n_taken} {things} were taken; the others come with the next sync."));
            return Ok(Page { note, ..last(items, failed, Value::Null) });
        }
        Ok(match next {
            Some(token) => {
                let trail = Some(follow(self.provider.label, trail, token)?);
                more(items, failed, json!(ListingPlace { kind, trail, n_taken }))
            }
            None if kind + 1 < kinds.len() => {
                more(items, failed, json!(ListingPlace { kind: kind + 1, trail: None, n_taken }))
            }
            None => last(items, failed, Value::Null),
        })
    }

    async fn lookup(&self, account: &Account<'_>, external_ids: &[String]) -> Result<Found, PullError> {
        let asked: HashSet<&str> = external_ids.iter().map(String::as_str).collect();
        let (mut items, mut failed) = (Vec::new(), Vec::new());
        for kind in self.provider.kinds {
            let of_kind = asked.iter().filter_map(|id| id.strip_prefix(kind.object)?.strip_prefix(':'));
            let mut ids: Vec<&str> = of_kind.filter(|id| record::is_plain_id(id)).collect();
            ids.sort_unstable();
            for batch in ids.chunks(kind.batch) {
                let found = self.lister.get(account, kind.get, batch).await?;
                // No other record was asked for, and one that is marked as deleted is gone like one that is missing.
                let is_there = |item: &RawItem| !item.is_deleted && asked.contains(item.external_id.as_str());
                items.extend(found.items.into_iter().filter(is_there));
                failed.extend(found.failed);
            }
        }
        Ok((self.items(items), failed))
    }

    fn items(&self, raw: Vec<RawItem>) -> Vec<Item> {
        raw.into_iter().map(self.provider.item).collect()
    }
}

impl<L: Lister> Connector for Listing<L> {
    /// The files of letters come and go with these.
    fn document_types(&self) -> &'static [&'static str] {
        match &self.provider.mailbox {
            Some(mailbox) => std::slice::from_ref(&mailbox.message_type),
            None => self.provider.document_types,
        }
    }

    fn cursor<'a>(&'a self, _: &'a Account<'a>) -> BoxFuture<'a, Result<Option<Value>, PullError>> {
        async { Ok(None) }.boxed()
    }

    fn full<'a>(
        &'a self,
        account: &'a Account<'a>,
        place: Option<&'a Value>,
        is_first: bool,
    ) -> BoxFuture<'a, Result<Page, PullError>> {
        self.page(account, place, is_first).boxed()
    }

    fn delta<'a>(
        &'a self,
        _: &'a Account<'a>,
        _: &'a Value,
        _: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Page, PullError>> {
        async { Err(PullError::CursorLost("this transport knows no changes")) }.boxed()
    }

    fn find_max(&self) -> usize {
        self.provider.find_max
    }

    fn find<'a>(
        &'a self,
        account: &'a Account<'a>,
        external_ids: &'a [String],
    ) -> BoxFuture<'a, Result<Found, PullError>> {
        self.lookup(account, external_ids).boxed()
    }

    fn identify<'a>(&'a self, account: &'a Account<'a>) -> BoxFuture<'a, Result<Identity, PullError>> {
        let asked = || Identity { account: account.account.to_owned(), name: account.account.to_owned() };
        let identity = self.identity.clone().unwrap_or_else(asked);
        async { Ok(identity) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Person, all, all_ids};
    use super::super::{drive, hubspot};
    use super::*;

    type Token = Option<&'static str>;
    /// A page of a method: where it begins, the ids on it, and the next token.
    type Written = (&'static str, Token, &'static [&'static str], Token);

    struct Paper(Provider, Vec<Written>);

    impl Lister for Paper {
        fn list<'a>(
            &'a self,
            _: &'a Account<'a>,
            method: &'static str,
            page: Option<&'a str>,
        ) -> BoxFuture<'a, Result<RawPage, PullError>> {
            let written = self.1.iter().find(|(of, at, ..)| *of == method && *at == page);
            let (ids, next) = written.map(|(_, _, ids, next)| (*ids, *next)).unwrap_or_default();
            let kind = self.0.kinds.iter().find(|kind| kind.list == method).expect("a method");
            let mime_type = "application/vnd.google-apps.document";
            let record = |id: &&str| json!({ "id": id, "properties": {}, "mimeType": mime_type, "text": "" });
            let records = ids.iter().map(record).collect();
            let page = RawPage::new(self.0, kind.object, records, next.map(str::to_owned));
            async { Ok(page) }.boxed()
        }

        fn get<'a>(
            &'a self,
            _: &'a Account<'a>,
            method: &'static str,
            ids: &'a [&'a str],
        ) -> BoxFuture<'a, Result<RawPage, PullError>> {
            assert!(ids.len() <= 100, "{} were asked for at once", ids.len());
            let kind = self.0.kinds.iter().find(|kind| kind.get == method).expect("a method");
            let there = ids.iter().filter(|id| **id != "404");
            let mut records: Vec<Value> = there.map(|id| json!({ "id": id, "properties": {} })).collect();
            records.push(json!({ "id": "stranger", "properties": {} }));
            let page = RawPage::new(self.0, kind.object, records, None);
            async { Ok(page) }.boxed()
        }
    }

    fn listing(provider: Provider, pages: &[Written]) -> Listing<Paper> {
        Listing {
            provider,
            lister: Paper(provider, pages.to_vec()),
            identity: None,
            first_max: provider.first_sync.as_ref().map(|_| 3),
        }
    }

    const CONTACTS: &str = "hubspot.crm.contacts.list";
    const DEALS: &str = "hubspot.crm.deals.list";
    const FILES: &str = "drive.files.list";

    #[tokio::test]
    async fn a_pass_reads_every_page_of_every_method_once() {
        let listing = listing(
            &hubspot::SPEC,
            &[
                (CONTACTS, None, &["1", "2"], Some("a")),
                (CONTACTS, Some("a"), &[], Some("b")),
                (CONTACTS, Some("b"), &["3"], None),
                (DEALS, None, &["1"], None),
            ],
        );
        let pages = all(&listing, &Person::new(), true).await.expect("a pass");
        assert_eq!(pages.len(), 5, "the companies have one page, which is empty");
        assert_eq!(all_ids(&pages), ["contact:1", "contact:2", "contact:3", "deal:1"]);
        assert_eq!(pages.last().map(|page| (&page.next, page.more)), Some((&Value::Null, false)));
    }

    #[tokio::test]
    async fn a_list_that_goes_in_a_circle_ends() {
        for circle in [&[("a", "a")][..], &[("a", "b"), ("b", "c"), ("c", "d"), ("d", "b")]] {
            let mut pages = vec![(CONTACTS, None, &["1"][..], Some("a"))];
            pages.extend(circle.iter().map(|(at, next)| (CONTACTS, Some(*at), &["2"][..], Some(*next))));
            let error = all(&listing(&hubspot::SPEC, &pages), &Person::new(), false).await.expect_err("no end");
            assert_eq!(error.to_string(), "HubSpot gave the same page again");
        }
    }

    #[tokio::test]
    async fn a_first_pass_over_a_drive_is_capped_and_says_so() {
        let pages = [(FILES, None, &["1", "2"][..], Some("a")), (FILES, Some("a"), &["3", "4"], None)];
        let drive = listing(&drive::SPEC, &pages);
        let read = all(&drive, &Person::new(), true).await.expect("a pass");
        assert_eq!(all_ids(&read), ["file:1", "file:2", "file:3"]);
        assert_eq!(read[1].note.as_deref(), Some("The first 3 files were taken; the others come with the next sync."));

        let read = all(&drive, &Person::new(), false).await.expect("a pass");
        assert_eq!(all_ids(&read).len(), 4);
        assert!(read.iter().all(|page| page.note.is_none()));

        let exactly = listing(&drive::SPEC, &[(FILES, None, &["1", "2", "3"], None)]);
        let read = all(&exactly, &Person::new(), true).await.expect("a pass");
        assert_eq!((read.len(), read[0].note.as_deref()), (1, None));
    }

    #[tokio::test]
    async fn records_are_found_by_kind_in_batches_and_strangers_are_not() {
        let listing = listing(&hubspot::SPEC, &[]);
        let person = Person::new();
        let mut asked: Vec<String> = (500..750).map(|id| format!("contact:{id}")).collect();
        asked.extend(["deal:7", "contact:404", "invoice:9", "contacts:1"].map(str::to_owned));
        let (items, failed) = listing.find(&person.account(), &asked).await.expect("an answer");
        assert!(failed.is_empty());
        let mut found: Vec<String> = items.into_iter().map(|item| item.raw.external_id).collect();
        found.sort();
        asked.truncate(251);
        asked.sort();
        assert_eq!(found, asked);
    }

    #[tokio::test]
    async fn there_is_no_cursor_and_a_place_of_another_transport_is_lost() {
        let listing = listing(&hubspot::SPEC, &[]);
        let person = Person::new();
        let account = person.account();
        assert!(matches!(listing.cursor(&account).await, Ok(None)));
        assert!(matches!(listing.delta(&account, &json!({}), None).await, Err(PullError::CursorLost(_))));
        for place in [json!({ "after": "5" }), json!({ "method": "hubspot.crm.quotes.list", "pages": 0, "records": 0 })]
        {
            let page = listing.full(&account, Some(&place), false).await;
            assert!(matches!(page, Err(PullError::CursorLost(_))), "{page:?}");
        }
        let identity = listing.identify(&account).await.expect("an identity");
        assert_eq!(identity.account, "123");
    }
}
