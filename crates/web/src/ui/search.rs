//! Search: one field, and what memory has for it, with its filters, and the searches that were saved.

use std::collections::HashMap;
use std::time::Instant;

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use chrono::{DateTime, Utc};
use domain::shown::{clipped, counted, number, plural, shown};
use domain::text::Part;
use domain::{ClientId, ContactId, DocumentType, Scope};
use engine::memory::recall::{Copy, Facets, Hit, SearchAnswer};
use engine::searches::{self, Listed as Saved, SavedSearch};
use serde::Deserialize;
use store::memory::{Listed, Sort, Totals, documents};
use store::people::{self, Person};
use store::queue::MOST_COUNTED;
use store::sources::{self, AnySource};
use store::{clients, contacts};
use uuid::Uuid;

use super::layout::Layout;
use super::searches::Flash;
use super::text::When;
use super::{Visitor, html};
use crate::api::error::ApiError;
use crate::api::extract::{Query, blank_is_none};
use crate::api::search::{Moment, SearchQuery, ask, hold};
use crate::app::App;

const HITS: i64 = 20;
/// Examples are made from so many of the newest documents.
const NEWEST: i64 = 40;
/// The number of other documents with the same text that are named.
const MOST_COPIES: usize = 20;

#[derive(Template)]
#[template(path = "search.html")]
struct SearchPage {
    layout: Layout,
    flash: &'static str,
    q: String,
    shown_q: String,
    /// Their fields, folded away while none is set.
    filters: Fields,
    /// The filters in force, each with the address without it.
    chosen: Vec<Chosen>,
    /// The same search without any filter.
    without: String,
    /// The amount of searchable data.
    size: String,
    is_empty: bool,
    found: Option<FoundPart>,
    /// The saved search that is shown.
    shown_search: Option<ShownSearch>,
    saved: Vec<SavedRow>,
    examples: Vec<Example>,
    /// The providers that can be connected, in words.
    providers: String,
    may_save: bool,
    csrf: String,
}

struct Fields {
    sources: Vec<Choice>,
    types: Vec<Choice>,
    channels: Vec<Choice>,
    people: Vec<Choice>,
    since: String,
    until: String,
    is_by_date: bool,
    /// Fields that have no control of their own.
    hidden: Vec<(&'static str, String)>,
    /// All fields, for saving the search.
    all: Vec<(&'static str, String)>,
}

struct Choice {
    value: String,
    label: String,
    is_chosen: bool,
}

struct Chosen {
    label: String,
    href: String,
}

struct FoundPart {
    /// The number of hits and the time the search took.
    summary: String,
    note: String,
    hits: Vec<HitCard>,
    /// The nearest hits, if nothing fits.
    closest: Vec<HitCard>,
    facets: Vec<FacetList>,
    next: Option<String>,
    /// The first page, on the others.
    first: Option<String>,
}

struct FacetList {
    title: &'static str,
    values: Vec<FacetLink>,
}

struct FacetLink {
    label: String,
    n: String,
    href: String,
}

struct HitCard {
    href: String,
    title: String,
    kind: String,
    source: String,
    at: When,
    /// Where in the document it is, if that has several parts.
    place: String,
    is_new: bool,
    snippet: Vec<Part>,
    why: String,
    /// The client that it is a record of.
    client: Option<String>,
    activity: Option<String>,
    source_url: Option<String>,
    /// How often the text is there, if more than once.
    times: String,
    copies: Vec<CopyLine>,
    more_copies: String,
}

struct CopyLine {
    href: String,
    title: String,
    source: String,
    at: When,
}

struct ShownSearch {
    id: Uuid,
    name: String,
    news: String,
    since: When,
    has_news: bool,
}

struct SavedRow {
    id: Uuid,
    href: String,
    name: String,
    q: String,
    news: String,
    has_news: bool,
}

struct Example {
    q: String,
    href: String,
    says: &'static str,
}

#[derive(Deserialize)]
pub(crate) struct PageQuery {
    #[serde(default, deserialize_with = "blank_is_none")]
    saved: Option<Uuid>,
    #[serde(default)]
    done: Flash,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<SearchQuery>,
    Query(page): Query<PageQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let query = SearchQuery { q: query.q.trim().to_owned(), ..query };
    let known = Known::load(&app, &visitor, &query).await?;
    let (now, q) = (app.env.clock.now(), query.q.clone());
    let filters = Fields::new(&query, &known);
    let shown_search = match page.saved.filter(|_| !q.is_empty()) {
        Some(id) => Some(searches::get(&app.env, &visitor, id).await?),
        None => None,
    };
    let found = if q.is_empty() {
        None
    } else {
        let begun = Instant::now();
        let asked = SearchQuery { k: Some(HITS), facets: Some(true), ..query.clone() };
        let answer = ask(&app, &visitor, asked).await?;
        let millis = begun.elapsed().as_millis();
        let ids: Vec<Uuid> = answer.hits.iter().chain(&answer.closest).map(|hit| hit.document_id).collect();
        let view = View {
            clients: &clients_of(&app, &visitor, &ids).await?,
            query: &query,
            saved: shown_search.as_ref(),
            now,
        };
        Some(FoundPart::new(answer, &view, millis))
    };
    let shown_search = match &shown_search {
        Some(search) => Some(ShownSearch::new(search, searches::news(&app.env, &visitor, search).await?, now)),
        None => None,
    };
    let (mut saved, mut examples) = (Vec::new(), Vec::new());
    if q.is_empty() {
        let _hold = hold(&app, &visitor)?;
        saved = searches::list(&app.env, &visitor).await?.into_iter().map(SavedRow::new).collect();
        let newest = app.env.db.read(&visitor, async |tx| documents::newest(tx, NEWEST).await).await?;
        examples = examples_of(&newest);
    }
    let title = if q.is_empty() { "Search".to_owned() } else { format!("{} · Search", clipped(&q, 60)) };
    html(&SearchPage {
        providers: super::sources::providers(&app),
        layout: Layout::new(&visitor, now, title, "/search"),
        flash: page.done.in_words(),
        chosen: chosen(&query, &known),
        without: address(&SearchQuery { q: q.clone(), ..SearchQuery::default() }),
        filters,
        size: size(known.totals),
        is_empty: known.totals.documents == 0,
        found,
        shown_search,
        saved,
        examples,
        may_save: visitor.may(Scope::Write) && !visitor.csrf().is_empty(),
        csrf: visitor.csrf(),
        shown_q: clipped(&q, 200),
        q,
    })
}

/// The names of the controls and filters.
struct Known {
    totals: Totals,
    types: Vec<String>,
    sources: Vec<AnySource>,
    people: Vec<Person>,
    contact: Option<String>,
    client: Option<String>,
}

impl Known {
    async fn load(app: &App, visitor: &Visitor, query: &SearchQuery) -> Result<Self, ApiError> {
        let loaded = app.env.db.read(visitor, async |tx| {
            let contact = match query.contact {
                Some(id) => contacts::get(tx, visitor.tenant_id, ContactId(id)).await?,
                None => None,
            };
            let client = match query.client {
                Some(id) => {
                    let only = clients::Filter { only: Some(ClientId(id)), limit: 1, ..clients::Filter::default() };
                    clients::list(tx, only).await?.pop()
                }
                None => None,
            };
            Ok(Self {
                totals: documents::totals(tx).await?,
                types: documents::types(tx).await?,
                sources: sources::all(tx).await?,
                people: people::list(tx, visitor.tenant_id).await?,
                contact: contact.map(|contact| contact.called()),
                client: client.map(|client| client.client_name),
            })
        });
        Ok(loaded.await?)
    }

    fn source(&self, id: Uuid) -> String {
        let known = self.sources.iter().find(|source| source.id == id);
        known.map_or_else(|| "unknown".to_owned(), |source| clipped(&source.name, 60))
    }

    fn person(&self, id: i64) -> String {
        let known = self.people.iter().find(|person| person.id == id);
        known.map_or_else(|| "unknown".to_owned(), |person| clipped(&person.called(), 60))
    }
}

/// The pages of clients that documents are of, by document.
pub(super) async fn clients_of(
    app: &App,
    visitor: &Visitor,
    documents: &[Uuid],
) -> Result<HashMap<Uuid, String>, ApiError> {
    let found = app.env.db.read(visitor, async |tx| clients::of_documents(tx, documents).await).await?;
    Ok(found.into_iter().map(|(document, client)| (document, format!("/clients/{client}"))).collect())
}

fn size(totals: Totals) -> String {
    let documents = match totals.documents {
        1 => "1 document".into(),
        n if totals.is_of_last_count() => format!("about {} documents", number(n)),
        n => format!("{} documents", counted(n, MOST_COUNTED)),
    };
    match totals.pending {
        0 => documents,
        pending => {
            let pending = counted(pending, MOST_COUNTED);
            format!("{documents}, of which {pending} are found only by keyword until they have their vectors")
        }
    }
}

/// The fields of a search that are set, as its address has them.
fn fields(query: &SearchQuery) -> Vec<(&'static str, String)> {
    let id = |id: Option<Uuid>| id.map(|id| id.to_string());
    let moment = |moment: Option<Moment>| moment.map(|moment| moment.to_string());
    [
        ("q", Some(query.q.clone()).filter(|q| !q.is_empty())),
        ("mode", query.mode.map(|mode| mode.to_string())),
        ("source", id(query.source)),
        ("type", query.r#type.clone()),
        ("channel", id(query.channel)),
        ("person", query.person.map(|id| id.to_string())),
        ("contact", query.contact.map(|id| id.to_string())),
        ("client", id(query.client)),
        ("since", moment(query.since)),
        ("until", moment(query.until)),
        ("sort", query.sort.filter(|sort| *sort != Sort::Relevance).map(|sort| sort.to_string())),
        ("cursor", query.cursor.clone()),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value?)))
    .collect()
}

/// The address of a search.
pub(super) fn address(query: &SearchQuery) -> String {
    let encoded =
        |text: &str| percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string();
    let fields: Vec<String> =
        fields(query).into_iter().map(|(name, value)| format!("{name}={}", encoded(&value))).collect();
    if fields.is_empty() { "/search".to_owned() } else { format!("/search?{}", fields.join("&")) }
}

/// The filters in force, each with the same search without it.
fn chosen(query: &SearchQuery, known: &Known) -> Vec<Chosen> {
    let plain = || SearchQuery { cursor: None, ..query.clone() };
    let some = |name: &Option<String>| name.as_deref().map_or_else(|| "unknown".to_owned(), |name| clipped(name, 60));
    let filters = [
        query.source.map(|id| (known.source(id), SearchQuery { source: None, ..plain() })),
        query.r#type.as_ref().map(|kind| (clipped(kind, 60), SearchQuery { r#type: None, ..plain() })),
        query.channel.map(|id| (format!("by {}", known.source(id)), SearchQuery { channel: None, ..plain() })),
        query.person.map(|id| (format!("of {}", known.person(id)), SearchQuery { person: None, ..plain() })),
        query.contact.map(|_| (format!("with {}", some(&known.contact)), SearchQuery { contact: None, ..plain() })),
        query.client.map(|_| (format!("about {}", some(&known.client)), SearchQuery { client: None, ..plain() })),
        query.since.map(|since| (format!("since {since}"), SearchQuery { since: None, ..plain() })),
        query.until.map(|until| (format!("until {until}"), SearchQuery { until: None, ..plain() })),
    ];
    filters.into_iter().flatten().map(|(label, query)| Chosen { label, href: address(&query) }).collect()
}

impl Fields {
    fn new(query: &SearchQuery, known: &Known) -> Self {
        let mut types = known.types.clone();
        // What is asked for is chosen, also when no document has it.
        types.extend(query.r#type.iter().filter(|kind| !known.types.contains(kind)).cloned());
        let source = |source: &AnySource, chosen: Option<Uuid>| Choice {
            value: source.id.to_string(),
            label: clipped(&source.name, 60),
            is_chosen: chosen == Some(source.id),
        };
        let kind = |kind: String| Choice {
            label: clipped(&kind, 60),
            is_chosen: query.r#type.as_ref() == Some(&kind),
            value: kind,
        };
        let person = |person: &Person| Choice {
            value: person.id.to_string(),
            label: clipped(&person.called(), 60),
            is_chosen: query.person == Some(person.id),
        };
        let day = |moment: Option<Moment>| moment.map(|moment| moment.to_string()).unwrap_or_default();
        let channels = known.sources.iter().filter(|source| source.provider == "channel");
        let people = known.people.iter().filter(|person| !person.is_built_in());
        let all = fields(&SearchQuery { cursor: None, ..query.clone() });
        Self {
            sources: known.sources.iter().map(|known| source(known, query.source)).collect(),
            types: types.into_iter().map(kind).collect(),
            channels: channels.map(|known| source(known, query.channel)).collect(),
            people: people.map(person).collect(),
            since: day(query.since),
            until: day(query.until),
            is_by_date: query.sort == Some(Sort::Date),
            hidden: all.iter().filter(|(name, _)| ["mode", "contact", "client"].contains(name)).cloned().collect(),
            all,
        }
    }
}

/// The details that results are shown with.
struct View<'a> {
    clients: &'a HashMap<Uuid, String>,
    query: &'a SearchQuery,
    saved: Option<&'a SavedSearch>,
    now: DateTime<Utc>,
}

impl FoundPart {
    fn new(answer: SearchAnswer, view: &View<'_>, millis: u128) -> Self {
        let note = answer.note.as_deref().map(|note| {
            let mut note = clipped(note, 300);
            if let Some(first) = note.get_mut(..1) {
                first.make_ascii_uppercase();
            }
            note
        });
        let cards = |hits: Vec<Hit>| hits.into_iter().map(|hit| HitCard::new(hit, view)).collect();
        let is_first = view.query.cursor.is_none();
        Self {
            summary: format!("{} in {millis} ms", summary(&answer, is_first)),
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
fn summary(answer: &SearchAnswer, is_first: bool) -> String {
    let n = i64::try_from(answer.hits.len()).unwrap_or(i64::MAX);
    let facets = answer.facets.clone().unwrap_or_default();
    let (matches, plus) =
        (i64::try_from(facets.n_matches).unwrap_or(i64::MAX), if facets.is_at_least { "+" } else { "" });
    match (is_first, answer.next.is_some()) {
        (true, true) => format!("The best {n} of {}{plus}", number(matches)),
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
    let types =
        facets.types.iter().map(|f| link(&f.name, f.n, SearchQuery { r#type: Some(f.value.clone()), ..query.clone() }));
    let sources =
        facets.sources.iter().map(|f| link(&f.name, f.n, SearchQuery { source: Some(f.value), ..query.clone() }));
    let channels =
        facets.channels.iter().map(|f| link(&f.name, f.n, SearchQuery { channel: Some(f.value), ..query.clone() }));
    let times = facets.times.iter().map(|f| {
        let (since, until) = (Some(Moment::Day(f.since)), Some(Moment::Day(f.until)));
        link(&f.name, f.n, SearchQuery { since, until, ..query.clone() })
    });
    let lists = [
        ("Type", types.collect::<Vec<_>>(), query.r#type.is_some()),
        ("Source", sources.collect(), query.source.is_some()),
        ("Channel", channels.collect(), query.channel.is_some() || query.source.is_some()),
        ("Time", times.collect(), false),
    ];
    lists
        .into_iter()
        .filter(|(_, values, is_chosen)| !is_chosen && values.len() > 1)
        .map(|(title, values, _)| FacetList { title, values })
        .collect()
}

impl HitCard {
    fn new(hit: Hit, view: &View<'_>) -> Self {
        let client = view.clients.get(&hit.document_id).cloned();
        // A client's own text is its page in few words.
        let (href, client) = match client {
            Some(page) if hit.document_type == DocumentType::Client => (page, None),
            client => (format!("/documents/{}#c-{}", hit.document_id, hit.chunk_id), client),
        };
        let activity = domain::ActivityId::from_external_id(&hit.external_id)
            .filter(|_| matches!(hit.document_type, DocumentType::Activity(_)));
        let n = hit.others.len();
        let mut why = hit.why;
        if let Some(first) = why.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        Self {
            href,
            client,
            activity: activity.map(|id| format!("/activities/{id}")),
            source_url: hit.source_url,
            title: title(hit.title.as_deref(), &hit.external_id),
            kind: clipped(&hit.document_type.to_string(), 60),
            source: clipped(&hit.source_name, 60),
            at: When::new(hit.at, view.now),
            place: match hit.part {
                (nth, n) if n > 1 => format!("part {nth} of {n}"),
                _ => String::new(),
            },
            is_new: view.saved.is_some_and(|saved| hit.stored_at > saved.seen_at),
            snippet: hit.snippet.into_iter().map(|part| Part { text: shown(&part.text), ..part }).collect(),
            why: shown(&why),
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

impl ShownSearch {
    fn new(search: &SavedSearch, news: searches::News, now: DateTime<Utc>) -> Self {
        Self {
            id: search.id,
            name: clipped(&search.name, 100),
            news: new(news),
            since: When::new(search.seen_at, now),
            has_news: news.n > 0,
        }
    }
}

impl SavedRow {
    fn new(Saved { search, news }: Saved) -> Self {
        Self {
            id: search.id,
            href: format!("/searches/{}", search.id),
            name: clipped(&search.name, 100),
            q: clipped(&search.asked.text, 100),
            news: news.map(new).unwrap_or_default(),
            has_news: news.is_some_and(|news| news.n > 0),
        }
    }
}

fn new(news: searches::News) -> String {
    match (news.n, news.is_at_least) {
        (0, _) => "nothing new".into(),
        (n, is_at_least) => format!("{}{} new", number(n as i64), if is_at_least { "+" } else { "" }),
    }
}

/// Questions that the newest documents answer.
fn examples_of(newest: &[Listed]) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut add = |q: Option<String>, says| {
        if let Some(q) = q.filter(|q| examples.iter().all(|known| known.q != *q)) {
            let href = address(&SearchQuery { q: q.clone(), ..SearchQuery::default() });
            examples.push(Example { q: shown(&q), href, says });
        }
    };
    let titles = || newest.iter().filter_map(|document| document.title.as_deref()).map(str::trim);
    let is_short = |title: &&str| (8..=60).contains(&title.chars().count()) && title.contains(' ');
    add(titles().find(is_short).map(str::to_owned), "finds texts with that meaning, in any words");
    let words = newest.iter().flat_map(|document| {
        let title = document.title.as_deref().unwrap_or_default().split_whitespace();
        title.chain(document.text.split_whitespace())
    });
    let trimmed = words.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    let id = trimmed.filter(|word| is_id(word)).map(str::to_owned).next();
    add(id, "finds a number or an id in any spelling");
    let phrase = newest.iter().find_map(|document| {
        let words: Vec<&str> = document.text.split_whitespace().skip(2).take(3).collect();
        let is_plain = |word: &&str| word.chars().all(char::is_alphabetic) && word.chars().count() > 1;
        (words.len() == 3 && words.iter().all(is_plain)).then(|| format!("\"{}\"", words.join(" ")))
    });
    add(phrase, "finds exactly these words");
    examples
}

/// Whether a word has letters, a joint and digits, as INV-2041 has.
fn is_id(word: &str) -> bool {
    word.split_once('-').is_some_and(|(letters, digits)| {
        (1..=6).contains(&letters.len())
            && letters.chars().all(|c| c.is_ascii_uppercase())
            && (2..=8).contains(&digits.len())
            && digits.chars().all(|c| c.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
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
        for (documents, pending, words) in [
            (0, 0, "0 documents"),
            (1, 0, "1 document"),
            (999, 3, "999 documents, of which 3 "),
            (1_000, 1_000, "1,000+ documents, of which 1,000+ "),
            (12_345, 0, "about 12,345 documents"),
        ] {
            let size = size(Totals { documents, pending });
            assert!(size.starts_with(words), "{size}");
        }
    }

    #[test]
    fn an_address_keeps_every_field_that_is_set_and_quotes_it() {
        let query = SearchQuery {
            q: "a&b \"c\"".into(),
            r#type: Some("note".into()),
            since: Some("2026-11-01".parse().expect("a day")),
            person: Some(7),
            sort: Some(Sort::Date),
            ..SearchQuery::default()
        };
        assert_eq!(address(&query), "/search?q=a%26b%20%22c%22&type=note&person=7&since=2026%2D11%2D01&sort=date");
        assert_eq!(address(&SearchQuery::default()), "/search");
    }

    #[test]
    fn examples_come_from_the_newest_documents() {
        let document = |title: &str, text: &str| Listed {
            id: Uuid::nil(),
            source_id: Uuid::nil(),
            source_name: String::new(),
            external_id: String::new(),
            document_type: DocumentType::Note,
            title: Some(title.into()),
            text: text.into(),
            n_chunks: 1,
            is_embedded: true,
            created_at: DateTime::UNIX_EPOCH,
            updated_at: DateTime::UNIX_EPOCH,
        };
        let newest = [
            document("Hi", "Please pay (INV-2041) by Friday."),
            document("Late delivery", "The parcel is three days late."),
        ];
        let asked: Vec<String> = examples_of(&newest).into_iter().map(|example| example.q).collect();
        assert_eq!(asked, ["Late delivery", "INV-2041", "\"is three days\""]);
        assert!(examples_of(&[]).is_empty());
        for (word, expected) in
            [("INV-2041", true), ("A-1007", true), ("x-ray", false), ("GPT-4", false), ("2026-11", false)]
        {
            assert_eq!(is_id(word), expected, "{word}");
        }
    }
}
