//! The sample data that ships with us (`INTEGRATIONS_USE_FIXTURES`): pages as the providers' own APIs give them, read from the binary.

use std::sync::Arc;

use domain::Provider;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::listing::{Kind, Lister, Listing, RawPage, is_passed_over, kinds};
use super::{Account, Connector, Identity, PullError};

const CONTACTS: &str = include_str!("../../../../fixtures/hubspot/contacts.json");
const COMPANIES: &str = include_str!("../../../../fixtures/hubspot/companies.json");
const DEALS: &str = include_str!("../../../../fixtures/hubspot/deals.json");
const FILES: &str = include_str!("../../../../fixtures/google_drive/files.json");
const DOCUMENT: &str = include_str!("../../../../fixtures/google_drive/gdoc-export-sample.txt");
const CUSTOMERS: &str = include_str!("../../../../fixtures/quickbooks/customers.json");
const INVOICES: &str = include_str!("../../../../fixtures/quickbooks/invoices.json");

/// A provider whose only account is the sample data. Every token opens it.
pub fn fixtures(provider: Provider) -> Arc<dyn Connector> {
    let identity = Identity { account: "fixtures".to_owned(), name: format!("{} sample data", provider.label()) };
    let lister = Fixtures { provider };
    Arc::new(Listing { provider, lister, identity: Some(identity), first_max_files: None })
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
            let is_asked = |record: &Value| {
                let id = record.get("id").or_else(|| record.get("Id")).and_then(Value::as_str);
                id.is_some_and(|id| ids.contains(&id))
            };
            let records = pages(kind)?.into_iter().flatten().filter(is_asked).collect();
            Ok(self.raw(kind, records, None))
        });
        async { found }.boxed()
    }
}

impl Fixtures {
    fn kind(&self, method: &'static str) -> Result<&'static Kind, PullError> {
        let known = kinds(self.provider).iter().find(|kind| kind.list == method || kind.get == method);
        known.ok_or(PullError::CursorLost("the sample data has no such records"))
    }

    fn raw(&self, kind: &Kind, mut records: Vec<Value>, next: Option<String>) -> RawPage {
        records.retain(|record| !is_passed_over(self.provider, record));
        if self.provider == Provider::GoogleDrive {
            records.iter_mut().for_each(add_text);
        }
        RawPage::new(self.provider, kind.object, records, next)
    }
}

/// The records of each page.
fn pages(kind: &Kind) -> Result<Vec<Vec<Value>>, PullError> {
    let (file, records) = match kind.object {
        "contact" => (CONTACTS, "/results"),
        "company" => (COMPANIES, "/results"),
        "deal" => (DEALS, "/results"),
        "file" => (FILES, "/files"),
        "customer" => (CUSTOMERS, "/QueryResponse/Customer"),
        _ => (INVOICES, "/QueryResponse/Invoice"),
    };
    let unreadable = |_| PullError::Unreadable { what: "the sample data is no JSON".to_owned(), raw: String::new() };
    let pages: Vec<Value> = serde_json::from_str(file).map_err(unreadable)?;
    let records = |page: &Value| page.pointer(records).and_then(Value::as_array).cloned().unwrap_or_default();
    Ok(pages.iter().map(records).collect())
}

/// What an export would give: every document says the same, a sheet only what it is called.
fn add_text(file: &mut Value) {
    let name = file.get("name").and_then(Value::as_str).unwrap_or_default();
    let text = match file.get("mimeType").and_then(Value::as_str) {
        Some("application/vnd.google-apps.spreadsheet") => format!("Sheet\n\"{}\"\n", name.replace('"', "\"\"")),
        _ => DOCUMENT.to_owned(),
    };
    file["text"] = Value::String(text);
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Person, all, all_ids};
    use super::*;

    #[tokio::test]
    async fn a_pass_over_the_sample_data_reads_all_of_it_in_the_form_that_every_transport_gives() {
        for (provider, pages, counts) in [
            (Provider::Hubspot, 6, &[("contact:", 12), ("company:", 6), ("deal:", 10)][..]),
            (Provider::GoogleDrive, 2, &[("file:", 6)]),
            (Provider::Quickbooks, 4, &[("customer:", 6), ("invoice:", 14)]),
        ] {
            let connector = fixtures(provider);
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
        let read = all(&*fixtures(Provider::GoogleDrive), &Person::new(), true).await.expect("a pass");
        let text = |title: &str| {
            let item = read.iter().flat_map(|page| &page.items).find(|item| item.title.as_deref() == Some(title));
            item.map(|item| item.text.as_str())
        };
        assert_eq!(text("Bayview site visit, notes"), Some(DOCUMENT));
        assert_eq!(
            text("Hospital parking structure, equipment estimate"),
            Some("Sheet\n\"Hospital parking structure, equipment estimate\"\n")
        );
        assert_eq!((text("Harrow Ridge shared"), text("Old price list 2025")), (None, None));
    }

    #[tokio::test]
    async fn what_is_in_the_sample_data_is_found_and_the_rest_is_gone() {
        let person = Person::new();
        for (provider, there) in [
            (Provider::Hubspot, &["company:54", "contact:54", "deal:67"][..]),
            (Provider::GoogleDrive, &["file:1dH2vBayviewSiteVisitNotesNovember12TqRe7yKo"]),
            (Provider::Quickbooks, &["customer:1", "invoice:114"]),
        ] {
            let connector = fixtures(provider);
            let gone = ["contact:9999", "file:1gT4yOldPriceList2025XlCe60BsVr2hMwPu9kNaFiE", "customer:9999"];
            let asked: Vec<String> = there.iter().chain(&gone).map(|id| (*id).to_owned()).collect();
            let (items, failed) = connector.find(&person.account(), &asked).await.expect("an answer");
            assert_eq!(failed, []);
            let mut found: Vec<&str> = items.iter().map(|item| item.raw.external_id.as_str()).collect();
            found.sort_unstable();
            assert_eq!(found, there);
            let identity = connector.identify(&person.account()).await.expect("an identity");
            assert_eq!(identity.name, format!("{} sample data", provider.label()));
        }
    }
}
