//! The results of a search as the page shows them: hits with their copies, facets, and the way to the next page.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use domain::DocumentType;
use domain::shown::{capitalised, clipped, number, plural, shown};
use domain::text::Part;
use engine::memory::recall::{Copy, Facets, Hit, SearchAnswer};
use engine::pull::words::facts::{document_type, type_in_words};
use engine::searches::SavedSearch;
use store::memory::Sort;
use uuid::Uuid;

use super::marked;
use super::reading::part;
use super::search::address;
use super::text::When;
use crate::api::search::{Moment, SearchQuery};

/// The number of other documents with the same text that are named.
const MOST_COPIES: usize = 20;

pub(super) struct FoundPart {
    /// The number of hits and the time the search took.
    pub(super) summary: String,
    pub(super) note: String,
    pub(super) hits: Vec<HitCard>,
    /// The nearest hits, if nothing fits.
    pub(super) closest: Vec<HitCard>,
    pub(super) facets: Vec<FacetList>,
    pub(super) next: Option<String>,
    /// The first page, on the others.
    pub(super) first: Option<String>,
}

pub(super) struct FacetList {
    pub(super) title: &'static str,
    pub(super) values: Vec<FacetLink>,
}

pub(super) struct FacetLink {
    pub(super) label: String,
    pub(super) n: String,
    pub(super) href: String,
}

pub(super) struct HitCard {
    pub(super) href: String,
    pub(super) title: String,
    pub(super) kind: String,
    pub(super) source: String,
    pub(super) at: When,
    /// Where in the document it is, if that has several parts.
    pub(super) place: String,
    pub(super) is_new: bool,
    pub(super) snippet: Vec<Part>,
    pub(super) why: String,
    /// The client that it is a record of.
    pub(super) client: Option<String>,
    pub(super) activity: Option<String>,
    /// The page of the message that it is.
    pub(super) message: Option<String>,
    pub(super) source_url: Option<String>,
    /// How often the text is there, if more than once.
    pub(super) times: String,
    pub(super) copies: Vec<CopyLine>,
    pub(super) more_copies: String,
}

pub(super) struct CopyLine {
    pub(super) href: String,
    pub(super) title: String,
    pub(super) source: String,
    pub(super) at: When,
}

/// The details that results are shown with.
pub(super) struct View<'a> {
    pub(super) clients: &'a HashMap<Uuid, String>,
    pub(super) query: &'a SearchQuery,
    pub(super) saved: Option<&'a SavedSearch>,
    pub(super) now: DateTime<Utc>,
}

impl FoundPart {
    pub(super) fn new(answer: SearchAnswer, view: &View<'_>, millis: u128) -> Self {
        let note = answer.note.as_deref().map(|note| capitalised(&clipped(note, 300)));
        let cards = |hits: Vec<Hit>| hits.into_iter().map(|hit| HitCard::new(hit, view)).collect();
        let is_first = view.query.cursor.is_none();
        Self {
            summary: format!("{} in {millis} ms", summary(&answer, is_first, view.query.sort == Some(Sort::Date))),
            note: note.unwrap_or_default(),
            facets: answer.facets.as_ref().map(|facets| facet_lists(facets, view.query)).unwrap_or_default(),
            next: answer.next.map(|cursor| address(&SearchQuery { cursor: Some(cursor), ..view.query.clone() })),
            first: (!is_first).then(|| address(&SearchQuery { cursor: None, ..view.query.clone() })),
            hits: cards(answer.hits),
            closest: cards(answer.closest),
        }
    }
}

/// The number of hits, and how many documents match.
fn summary(answer: &SearchAnswer, is_first: bool, is_by_date: bool) -> String {
    let first = if is_by_date { "newest" } else { "best" };
    let n = i64::try_from(answer.hits.len()).unwrap_or(i64::MAX);
    let facets = answer.facets.clone().unwrap_or_default();
    let (matches, plus) =
        (i64::try_from(facets.n_matches).unwrap_or(i64::MAX), if facets.is_at_least { "+" } else { "" });
    match (is_first, answer.next.is_some()) {
        (true, true) => format!("The {first} {n} of {}{plus}", number(matches)),
        (true, false) if matches < n && matches > 0 => {
            format!("{}, {} of them a good match,", plural(n, "result", "results"), number(matches))
        }
        (true, false) => plural(n, "result", "results"),
        (false, _) => format!("{n} more of {}{plus}", number(matches)),
    }
}

/// The facets that a reader can still choose from: a list with one value says nothing new.
fn facet_lists(facets: &Facets, query: &SearchQuery) -> Vec<FacetList> {
    let plus = if facets.is_at_least { "+" } else { "" };
    let link = |label: &str, n: usize, change: SearchQuery| FacetLink {
        label: clipped(label, 40),
        n: format!("{}{plus}", number(i64::try_from(n).unwrap_or(i64::MAX))),
        href: address(&SearchQuery { cursor: None, ..change }),
    };
    let types = facets
        .types
        .iter()
        .map(|f| link(&type_in_words(&f.name), f.n, SearchQuery { r#type: Some(f.value.clone()), ..query.clone() }));
    let sources =
        facets.sources.iter().map(|f| link(&f.name, f.n, SearchQuery { source: Some(f.value), ..query.clone() }));
    let channels =
        facets.channels.iter().map(|f| link(&f.name, f.n, SearchQuery { channel: Some(f.value), ..query.clone() }));
    let times = facets.times.iter().map(|f| {
        let (since, until) = (Some(Moment::Day(f.since)), Some(Moment::Day(f.until)));
        link(&f.name, f.n, SearchQuery { since, until, ..query.clone() })
    });
    let papers = facets.papers.iter().filter_map(|f| {
        let paper = Some(f.value.parse().ok()?);
        Some(link(&capitalised(&f.name.replace('_', " ")), f.n, SearchQuery { paper, ..query.clone() }))
    });
    let suppliers = facets
        .suppliers
        .iter()
        .map(|f| link(&f.name, f.n, SearchQuery { supplier: Some(f.value.clone()), ..query.clone() }));
    let lists = [
        ("Type", types.collect::<Vec<_>>(), query.r#type.is_some()),
        ("Source", sources.collect(), query.source.is_some()),
        ("Channel", channels.collect(), query.channel.is_some() || query.source.is_some()),
        ("Paper", papers.collect(), query.paper.is_some()),
        ("Supplier", suppliers.collect(), query.supplier.is_some()),
        ("Time", times.collect(), false),
    ];
    lists
        .into_iter()
        .filter(|(_, values, is_chosen)| !is_chosen && values.len() > 1)
        .map(|(title, values, _)| FacetList { title, values })
        .collect()
}

/// Where in the document the hit is: its page, else which of several parts.
fn place(hit: &Hit) -> String {
    match (&hit.page_label, hit.page, hit.part) {
        (Some(label), ..) => clipped(label, 60),
        (None, Some(page), _) => format!("{} {}", part(hit.file_kind), number(page.into())),
        (None, None, (nth, n)) if n > 1 => format!("part {nth} of {n}"),
        _ => String::new(),
    }
}

/// Where the document's page shows it: at the page of its file, else at its chunk.
pub(crate) fn address_of(hit: &Hit) -> String {
    match hit.page {
        Some(page) => marked::of_hit(hit, page),
        None => format!("/documents/{}#c-{}", hit.document_id, hit.chunk_id),
    }
}

impl HitCard {
    fn new(hit: Hit, view: &View<'_>) -> Self {
        let client = view.clients.get(&hit.document_id).cloned();
        // A client's own text is its page in few words.
        let (href, client) = match client {
            Some(page) if hit.document_type == DocumentType::Client => (page, None),
            client => (address_of(&hit), client),
        };
        let activity = domain::ActivityId::from_external_id(&hit.external_id)
            .filter(|_| matches!(hit.document_type, DocumentType::Activity(_)));
        let n = hit.others.len();
        let place = place(&hit);
        Self {
            href,
            client,
            activity: activity.map(|id| format!("/activities/{id}")),
            message: super::mail::page_of(&hit.document_type, hit.document_id),
            source_url: hit.source_url,
            title: title(hit.title.as_deref(), &hit.external_id),
            kind: clipped(&document_type(&hit.document_type), 60),
            source: clipped(&hit.source_name, 60),
            at: When::new(hit.at, view.now),
            place,
            is_new: view.saved.is_some_and(|saved| hit.stored_at > saved.seen_at),
            snippet: hit.snippet.into_iter().map(|part| Part { text: shown(&part.text), ..part }).collect(),
            why: shown(&capitalised(&hit.why)),
            times: if n > 0 { format!("{} times; this is the newest", number(n as i64 + 1)) } else { String::new() },
            copies: hit.others.iter().take(MOST_COPIES).map(|copy| CopyLine::new(copy, view.now)).collect(),
            more_copies: match n.saturating_sub(MOST_COPIES) {
                0 => String::new(),
                more => format!("{} more; the API has them all", number(more as i64)),
            },
        }
    }
}

impl CopyLine {
    fn new(copy: &Copy, now: DateTime<Utc>) -> Self {
        Self {
            href: format!("/documents/{}", copy.document_id),
            title: title(copy.title.as_deref(), "Without a title"),
            source: clipped(&copy.source_name, 60),
            at: When::new(copy.at, now),
        }
    }
}

fn title(title: Option<&str>, otherwise: &str) -> String {
    match title.map(str::trim) {
        Some(title) if !title.is_empty() => clipped(title, 200),
        _ => clipped(otherwise, 80),
    }
}

#[cfg(test)]
mod tests {
    use domain::reading::FileKind;
    use store::memory::How;

    use super::*;

    fn hit(title: Option<&str>, document_type: &str) -> Hit {
        Hit {
            document_id: Uuid::from_u128(1),
            chunk_id: Uuid::from_u128(2),
            title: title.map(str::to_owned),
            document_type: document_type.parse().expect("a type"),
            source_id: Uuid::nil(),
            source_name: "Files".into(),
            external_id: "sha256:abc".into(),
            at: DateTime::UNIX_EPOCH,
            stored_at: DateTime::UNIX_EPOCH,
            part: (1, 1),
            page: None,
            page_label: None,
            file_kind: None,
            source_url: None,
            others: Vec::new(),
            score: 1.0,
            keyword_rank: Some(1),
            vector_rank: None,
            similarity: None,
            why: "has “late”".into(),
            snippet: vec![Part { text: "a\u{202e}b".into(), is_match: true }],
        }
    }

    fn card(hit: Hit, clients: &[(u128, &str)]) -> HitCard {
        let clients = clients.iter().map(|(id, page)| (Uuid::from_u128(*id), (*page).to_owned())).collect();
        let query = SearchQuery::default();
        HitCard::new(hit, &View { clients: &clients, query: &query, saved: None, now: DateTime::UNIX_EPOCH })
    }

    #[test]
    fn a_result_is_called_by_its_title_else_by_its_name_and_leads_to_its_chunk() {
        assert_eq!(card(hit(Some("Lease"), "note"), &[]).title, "Lease");
        for none in [None, Some(""), Some("  ")] {
            assert_eq!(card(hit(none, "note"), &[]).title, "sha256:abc");
        }
        let made = card(hit(Some("Lease"), "note"), &[]);
        assert_eq!(made.href, format!("/documents/{}#c-{}", Uuid::from_u128(1), Uuid::from_u128(2)));
        assert_eq!((made.snippet[0].text.as_str(), made.why.as_str()), ("a⟨U+202E⟩b", "Has “late”"));
        assert_eq!((made.place.as_str(), made.times.as_str()), ("", ""));
        let part = card(Hit { part: (3, 12), ..hit(None, "note") }, &[]);
        assert_eq!(part.place, "part 3 of 12");
    }

    #[test]
    fn a_result_in_a_file_leads_to_its_page_and_says_which() {
        let of = |page, label: Option<&str>| {
            let page_label = label.map(str::to_owned);
            let made = card(Hit { page: Some(page), page_label, part: (9, 12), ..hit(None, "file") }, &[]);
            (made.place, made.href.split_once("0001").expect("an id").1.to_owned())
        };
        let mark = format!("&hit={}&words=a%E2%80%AEb#mark", Uuid::from_u128(2));
        assert_eq!(of(7, None), ("page 7".into(), format!("?page=7{mark}")));
        let slide = Hit { page: Some(4), file_kind: Some(FileKind::Pptx), ..hit(None, "file") };
        assert_eq!(card(slide, &[]).place, "slide 4");
        assert_eq!(of(2, Some("Prices")), ("Prices".into(), format!("?page=2{mark}")));
        assert_eq!(of(1_350, None), ("page 1,350".into(), format!("?page=1350{mark}")));
    }

    #[test]
    fn copies_are_counted_and_the_first_of_them_named() {
        let copy = Copy {
            document_id: Uuid::from_u128(7),
            title: None,
            source_name: "Files".into(),
            at: DateTime::UNIX_EPOCH,
        };
        let made = card(Hit { others: vec![copy; 25], ..hit(None, "note") }, &[]);
        assert_eq!(made.times, "26 times; this is the newest");
        assert_eq!((made.copies.len(), made.more_copies.as_str()), (20, "5 more; the API has them all"));
    }

    #[test]
    fn a_clients_own_text_leads_to_its_page_and_a_record_names_it() {
        let clients = [(1, "/clients/7")];
        let own = card(hit(None, "client"), &clients);
        assert_eq!((own.href.as_str(), own.client), ("/clients/7", None));
        let record = card(hit(None, "hubspot.deal"), &clients);
        assert_eq!(record.client.as_deref(), Some("/clients/7"));
        assert!(record.href.starts_with("/documents/"));
    }

    #[test]
    fn how_many_and_how_long_is_said() {
        let found = |n: usize, matches: usize, is_more: bool, note: Option<&str>| {
            let facets = Facets { n_matches: matches, is_at_least: matches >= 200, ..Facets::default() };
            let answer = SearchAnswer {
                hits: vec![hit(None, "note"); n],
                is_nothing_fitting: false,
                closest: Vec::new(),
                facets: Some(facets),
                next: is_more.then(|| "next".to_owned()),
                how: How::Exact,
                note: note.map(Into::into),
            };
            let (clients, query) = (HashMap::new(), SearchQuery::default());
            let view = View { clients: &clients, query: &query, saved: None, now: DateTime::UNIX_EPOCH };
            FoundPart::new(answer, &view, 12)
        };
        for (n, matches, is_more, words) in [
            (0, 0, false, "0 results in 12 ms"),
            (1, 1, false, "1 result in 12 ms"),
            (20, 3, false, "20 results, 3 of them a good match, in 12 ms"),
            (20, 57, true, "The best 20 of 57 in 12 ms"),
            (20, 200, true, "The best 20 of 200+ in 12 ms"),
        ] {
            assert_eq!(found(n, matches, is_more, None).summary, words);
        }
        assert_eq!(found(20, 57, true, None).next.as_deref(), Some("/search?cursor=next"));
        assert_eq!(
            (found(1, 1, false, Some("by keyword alone")).note.as_str(), found(1, 1, false, None).note.as_str()),
            ("By keyword alone", "")
        );
    }
}
