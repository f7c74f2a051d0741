//! The sample data that ships with the program (`INTEGRATIONS_USE_FIXTURES`): pages as the providers' own APIs give them.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::listing::{Lister, Listing, RawPage, apart};
use super::records::id_of;
use super::spec::{Kind, Provider};
use super::{Account, Connector, Identity, PullError};

/// A provider whose only account is the sample data. Every token opens it. None: no sample data of it ships.
pub fn fixtures(provider: Provider) -> Option<Arc<dyn Connector>> {
    let identity = Identity { account: "fixtures".to_owned(), name: format!("{} sample data", provider.label) };
    let lister = Fixtures { provider };
    let listing = Listing { provider, lister, identity: Some(identity), first_max: None };
    provider.has_samples().then(|| Arc::new(listing) as Arc<dyn Connector>)
}

struct Fixtures {
    provider: Provider,
}

impl Lister for Fixtures {
    fn list<'a>(
        &'a self,
        _: &'a Account<'a>,
        method: &'static str,
        page: Option<&'a str>,
    ) -> BoxFuture<'a, Result<RawPage, PullError>> {
        let listed = self.kind(method).and_then(|kind| {
            let pages = pages(kind)?;
            let at: usize = page.and_then(|page| page.parse().ok()).unwrap_or(0);
            let records = pages.get(at).cloned().unwrap_or_default();
            let next = (at + 1 < pages.len()).then(|| (at + 1).to_string());
            Ok(self.raw(kind, records, next))
        });
        async { listed }.boxed()
    }

    fn get<'a>(
        &'a self,
        _: &'a Account<'a>,
        method: &'static str,
        ids: &'a [&'a str],
    ) -> BoxFuture<'a, Result<RawPage, PullError>> {
        let found = self.kind(method).and_then(|kind| {
            let is_asked = |record: &Value| id_of(record).is_some_and(|id| ids.contains(&id.as_str()));
            let records = pages(kind)?.into_iter().flatten().filter(is_asked).collect();
            Ok(self.raw(kind, records, None))
        });
        async { found }.boxed()
    }
}

impl Fixtures {
    fn kind(&self, method: &'static str) -> Result<&'static Kind, PullError> {
        let known = self.provider.kinds.iter().find(|kind| kind.list == method || kind.get == method);
        known.ok_or(PullError::CursorLost("the sample data has no such records"))
    }

    fn raw(&self, kind: &Kind, mut records: Vec<Value>, next: Option<String>) -> RawPage {
        records.retain(|record| !(self.provider.is_passed_over)(record));
        RawPage::new(self.provider, kind.object, records, next)
    }
}

/// The records of each page, complete.
fn pages(kind: &Kind) -> Result<Vec<Vec<Value>>, PullError> {
    let Some(sample) = &kind.sample else { return Ok(Vec::new()) };
    let unreadable = |_| PullError::Unreadable { what: "the sample data is not JSON".to_owned(), raw: String::new() };
    let pages: Vec<Value> = serde_json::from_str(sample.pages).map_err(unreadable)?;
    let complete = |mut record: Value| {
        if let Some(complete) = sample.complete {
            complete(&mut record);
        }
        apart(record)
    };
    let records = |page: &Value| page.pointer(sample.records).and_then(Value::as_array).cloned().unwrap_or_default();
    Ok(pages.iter().map(|page| records(page).into_iter().flat_map(complete).collect()).collect())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Person, all, all_ids};
    use super::super::{drive, gmail, hubspot, outlook, quickbooks};
    use super::*;

    #[tokio::test]
    async fn a_pass_over_the_sample_data_reads_all_of_it_in_the_form_that_every_transport_gives() {
        for (provider, pages, counts) in [
            (&hubspot::SPEC as Provider, 6, &[("contact:", 12), ("company:", 6), ("deal:", 10)][..]),
            (&drive::SPEC, 2, &[("file:", 6)]),
            (&quickbooks::SPEC, 4, &[("customer:", 6), ("invoice:", 14)]),
            (&gmail::SPEC, 2, &[("message:", 15)]),
            (&outlook::SPEC, 2, &[("message:", 13)]),
        ] {
            let connector = fixtures(provider).expect("sample data");
            let read = all(&*connector, &Person::new(), true).await.expect("a pass");
            assert_eq!(read.len(), pages, "pages of {provider}");
            assert!(read.iter().all(|page| page.failed.is_empty() && page.note.is_none()));
            for (object, count) in counts {
                let found = all_ids(&read).iter().filter(|id| id.starts_with(object)).count();
                assert_eq!(found, *count, "{object}");
            }
            for item in read.iter().flat_map(|page| &page.items) {
                assert!(connector.document_types().contains(&item.raw.document_type), "{item:?}");
                assert!(!item.raw.is_deleted && item.title.is_some() && !item.text.is_empty(), "{item:?}");
            }
        }
    }

    #[tokio::test]
    async fn files_have_their_text_and_folders_and_the_bin_are_passed_over() {
        let read = all(&*fixtures(&drive::SPEC).expect("sample data"), &Person::new(), true).await.expect("a pass");
        let text = |title: &str| {
            let item = read.iter().flat_map(|page| &page.items).find(|item| item.title.as_deref() == Some(title));
            item.map(|item| item.text.as_str())
        };
        assert_eq!(
            text("Bayview site visit, notes"),
            Some(include_str!("../../../../fixtures/google_drive/gdoc-export-sample.txt"))
        );
        assert_eq!(
            text("Hospital parking structure, equipment estimate"),
            Some("Sheet\n\"Hospital parking structure, equipment estimate\"\n")
        );
        assert_eq!((text("Harrow Ridge shared"), text("Old price list 2025")), (None, None));
    }

    #[tokio::test]
    async fn letters_of_the_sample_data_belong_to_conversations() {
        let read = all(&*fixtures(&gmail::SPEC).expect("sample data"), &Person::new(), true).await.expect("a pass");
        let items: Vec<_> = read.iter().flat_map(|page| &page.items).collect();
        let threads: std::collections::BTreeSet<_> =
            items.iter().filter_map(|item| item.letter.as_ref()?.thread_id.as_deref()).collect();
        assert_eq!(threads.len(), 8);
        let of = |subject: &str| items.iter().find(|item| item.title.as_deref() == Some(subject)).expect("a letter");
        let letter = of("Certificate of insurance for the trencher").letter.as_ref().expect("a letter");
        assert_eq!(letter.from.as_ref().map(|from| from.address.as_str()), Some("dagny@copperline.example"));
        assert_eq!(
            letter.files.iter().map(|file| file.name.as_deref()).collect::<Vec<_>>(),
            [Some("certificate-2027.pdf")]
        );
        assert!(
            of("14-ton excavator: what we need before signing").letter.as_ref().is_some_and(|it| it.html.is_some())
        );
        assert!(of("Re: Aerial lifts: one contract for both").text.contains("7 ft 2 in"));
    }

    #[tokio::test]
    async fn what_is_in_the_sample_data_is_found_and_the_rest_is_gone() {
        let person = Person::new();
        for (provider, there) in [
            (&hubspot::SPEC as Provider, &["company:54", "contact:54", "deal:67"][..]),
            (&drive::SPEC, &["file:1dH2vBayviewSiteVisitNotesNovember12TqRe7yKo"]),
            (&quickbooks::SPEC, &["customer:1", "invoice:114"]),
            (&gmail::SPEC, &["message:19a1f3b7a8c60010", "message:19a37b44a1300070"]),
        ] {
            let connector = fixtures(provider).expect("sample data");
            let gone =
                ["contact:9999", "file:1gT4yOldPriceList2025XlCe60BsVr2hMwPu9kNaFiE", "customer:9999", "message:9"];
            let asked: Vec<String> = there.iter().chain(&gone).map(|id| (*id).to_owned()).collect();
            let (items, failed) = connector.find(&person.account(), &asked).await.expect("an answer");
            assert_eq!(failed, []);
            let mut found: Vec<&str> = items.iter().map(|item| item.raw.external_id.as_str()).collect();
            found.sort_unstable();
            assert_eq!(found, there);
            let identity = connector.identify(&person.account()).await.expect("an identity");
            assert_eq!(identity.name, format!("{} sample data", provider.label));
        }
    }
}
