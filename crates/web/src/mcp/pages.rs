//! Documents as programs name them: by id, by the address of a resource, by our page, each with a page of its text.

use domain::shown::clipped;
use engine::Config;
use engine::memory::recall::Hit;
use serde_json::Value;
use uuid::Uuid;

use crate::ui::found::address_of;

const SCHEME: &str = "tributary://document/";

/// A page of a document, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub id: Uuid,
    pub page: usize,
}

impl Place {
    /// Reads `7f3a…`, `7f3a…#2`, `tributary://document/7f3a…?page=2` or the address of our page.
    pub fn of(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some((_, name)) = text.split_once("/documents/") {
            let id = name.split(['?', '#']).next()?; // the rest is a place on our page
            return Some(Self { id: Uuid::parse_str(id).ok()?, page: 1 });
        }
        let name = text.strip_prefix(SCHEME).unwrap_or(text);
        let (id, page) = match name.split_once("?page=").or_else(|| name.split_once('#')) {
            Some((id, page)) => (id, page.parse().ok()?),
            None => (name, 1),
        };
        let is_page = (1..=100_000).contains(&page);
        Some(Self { id: Uuid::parse_str(id).ok().filter(|_| is_page)?, page })
    }
}

/// The address of a page of a document as a resource.
pub(super) fn uri(id: Uuid, page: usize) -> String {
    if page == 1 { format!("{SCHEME}{id}") } else { format!("{SCHEME}{id}?page={page}") }
}

/// The name of a page for `fetch`, which takes nothing but an id.
pub(super) fn name(id: Uuid, page: usize) -> String {
    if page == 1 { id.to_string() } else { format!("{id}#{page}") }
}

/// A title for people and models: never empty, never long.
pub(super) fn title_of(title: Option<&str>, external_id: &str) -> String {
    match title.map(str::trim) {
        Some(title) if !title.is_empty() => clipped(title, 200),
        _ => clipped(external_id, 80),
    }
}

/// The address at which a person sees a hit: the record at its provider, else its place on our page.
pub(super) fn link_of(config: &Config, hit: &Hit) -> String {
    match hit.source_url.as_deref().filter(is_web) {
        Some(url) => url.to_owned(),
        None => place_url(config, hit),
    }
}

/// The place of a hit on our page of its document.
pub(super) fn place_url(config: &Config, hit: &Hit) -> String {
    format!("{}{}", config.base_url(), address_of(hit))
}

/// The address at which a person sees the document: the record at its provider, else our page.
pub(super) fn link(config: &Config, id: Uuid, source_url: Option<&str>) -> String {
    match source_url.filter(is_web) {
        Some(url) => url.to_owned(),
        None => page_url(config, id),
    }
}

fn is_web(url: &&str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

pub(super) fn page_url(config: &Config, id: Uuid) -> String {
    format!("{}/documents/{id}", config.base_url())
}

/// The address that a document's source gave it.
pub(super) fn source_url(metadata: &Value) -> Option<&str> {
    metadata.get("url").and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_found_by_every_name_that_we_give_it() {
        let id = Uuid::from_u128(7);
        let place = |page| Some(Place { id, page });
        for (text, expected) in [
            (id.to_string(), place(1)),
            (name(id, 1), place(1)),
            (name(id, 3), place(3)),
            (uri(id, 1), place(1)),
            (uri(id, 2), place(2)),
            (format!("https://hear.example.com/documents/{id}"), place(1)),
            (format!(" https://hear.example.com/documents/{id}#c-{id} "), place(1)),
            (format!("https://hear.example.com/documents/{id}?x=y#page-7"), place(1)),
            ("https://hear.example.com/documents/new".into(), None),
            (format!("{id}#0"), None),
            (format!("{id}#x"), None),
            (format!("{id}#999999999999999999999"), None),
            (String::new(), None),
            ("tributary://document/".into(), None),
            ("tributary://client/7".into(), None),
        ] {
            assert_eq!(Place::of(&text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_link_opens_in_a_browser() {
        let id = Uuid::from_u128(7);
        let metadata = serde_json::json!({ "url": "javascript:alert(1)" });
        assert_eq!(source_url(&metadata), Some("javascript:alert(1)"));
        assert_eq!((title_of(Some(" "), "note:7"), title_of(Some("Late"), "x")), ("note:7".into(), "Late".into()));
        assert!(uri(id, 1).ends_with("000007"));
    }
}
