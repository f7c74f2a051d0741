//! Mail: the messages of all mailboxes, the newest first, narrowed by filters that the address keeps.

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use chrono::{DateTime, Days, NaiveDate, NaiveTime, Utc};
use domain::mail::{Correspondent, Place};
use domain::shown::{clipped, plural};
use domain::{ClientId, ContactId, DocumentType, SourceId};
use engine::mail::reading::{self, Asked, Head, Line};
use engine::sources::Names;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use store::activities::Position;
use uuid::Uuid;

use super::layout::Layout;
use super::text::{Badge, When};
use super::{Visitor, html};
use crate::api::error::ApiError;
use crate::api::extract::{Query, blank_is_none};
use crate::api::mail::place;
use crate::app::App;

pub(super) const HERE: &str = "/mail";
const PAGE: i64 = 50;
/// The recipients that a line names.
const NAMED: usize = 3;
const PLACES: [(Place, &str); 6] = [
    (Place::Inbox, "Inbox"),
    (Place::Sent, "Sent"),
    (Place::Drafts, "Drafts"),
    (Place::Spam, "Spam"),
    (Place::Deleted, "Deleted items"),
    (Place::Other, "Other folders"),
];

#[derive(Template)]
#[template(path = "mail.html")]
struct MailPage {
    layout: Layout,
    q: String,
    person: String,
    mailboxes: Vec<Choice>,
    places: Vec<Choice>,
    since: String,
    until: String,
    has_files: bool,
    /// Filters that links of other pages have set.
    chosen: Vec<Chosen>,
    is_narrow: bool,
    /// Whether there is a mailbox at all.
    has_mailbox: bool,
    rows: Vec<MailRow>,
    newest: Option<String>,
    older: Option<String>,
}

/// A value that a filter offers.
struct Choice {
    value: String,
    label: String,
    is_chosen: bool,
}

struct Chosen {
    field: &'static str,
    value: String,
    words: String,
    /// The page of the client or contact.
    href: Option<String>,
}

/// A message in a list.
pub(super) struct MailRow {
    pub id: String,
    pub href: String,
    pub people: String,
    pub subject: String,
    pub snippet: String,
    /// Where it lies, and how many files it has.
    pub marks: String,
    /// Something is still to be done about it.
    pub badge: Option<Badge>,
    pub at: When,
}

impl MailRow {
    pub fn new(line: &Line, now: DateTime<Utc>) -> Self {
        Self {
            id: line.id.to_string(),
            href: format!("{HERE}/{}", line.id),
            people: people(&line.head),
            subject: subject(line.head.subject.as_deref()),
            snippet: clipped(&line.snippet, 200),
            marks: marks(line),
            badge: line.is_pending.then_some(Badge("pending")),
            at: When::new(line.at, now),
        }
    }
}

/// The page of the message that a document is; none for other documents.
pub(super) fn page_of(document_type: &DocumentType, id: Uuid) -> Option<String> {
    is_message(document_type).then(|| format!("{HERE}/{id}"))
}

pub(super) fn is_message(document_type: &DocumentType) -> bool {
    matches!(document_type, DocumentType::Record { kind, .. } if kind == "message")
}

/// The subject of a message, or words for none.
pub(super) fn subject(subject: Option<&str>) -> String {
    match subject.map(str::trim) {
        Some(subject) if !subject.is_empty() => clipped(subject, 300),
        _ => "(no subject)".into(),
    }
}

/// A person by name, else by address.
pub(super) fn called(person: &Correspondent) -> String {
    let name = person.name.as_deref().map(str::trim).filter(|name| !name.is_empty());
    clipped(name.unwrap_or(&person.address), 80)
}

/// The person who matters: the sender, or those to whom the mailbox's owner wrote.
fn people(head: &Head) -> String {
    let is_ours = matches!(head.place, Place::Sent | Place::Drafts);
    if is_ours && !head.to.is_empty() {
        let mut names: Vec<String> = head.to.iter().take(NAMED).map(called).collect();
        let n_more = head.to.len() + head.cc.len() - names.len();
        if n_more > 0 {
            names.push(format!("{n_more} more"));
        }
        return format!("To {}", names.join(", "));
    }
    head.from.as_ref().map_or_else(|| "Nobody".into(), called)
}

fn marks(line: &Line) -> String {
    let place = match line.head.place {
        Place::Inbox | Place::Other => None,
        _ => PLACES.iter().find(|(place, _)| *place == line.head.place).map(|(_, label)| (*label).to_owned()),
    };
    let files = (line.head.n_files > 0).then(|| plural(line.head.n_files, "file", "files"));
    let marks: Vec<String> = [files, place, Some(clipped(&line.source_name, 60))].into_iter().flatten().collect();
    marks.join(" · ")
}

#[derive(Clone, Default, Deserialize)]
pub(crate) struct MailQuery {
    #[serde(default, deserialize_with = "blank_is_none")]
    mailbox: Option<Uuid>,
    #[serde(default, deserialize_with = "blank_is_none")]
    place: Option<String>,
    #[serde(default, deserialize_with = "blank_is_none")]
    folder: Option<String>,
    #[serde(default, deserialize_with = "blank_is_none")]
    person: Option<String>,
    #[serde(default, deserialize_with = "blank_is_none")]
    contact: Option<i64>,
    #[serde(default, deserialize_with = "blank_is_none")]
    client: Option<Uuid>,
    #[serde(default, deserialize_with = "blank_is_none")]
    q: Option<String>,
    #[serde(default, deserialize_with = "blank_is_none")]
    files: Option<String>,
    /// Days, in UTC; both are included.
    #[serde(default, deserialize_with = "blank_is_none")]
    since: Option<NaiveDate>,
    #[serde(default, deserialize_with = "blank_is_none")]
    until: Option<NaiveDate>,
    #[serde(default, deserialize_with = "blank_is_none")]
    before: Option<Position>,
}

impl MailQuery {
    /// A place that is none narrows nothing, like a value that is not offered.
    fn place(&self) -> Option<Place> {
        place(self.place.as_deref()?).ok()
    }

    fn asked(&self) -> Asked {
        let begins = |day: NaiveDate| day.and_time(NaiveTime::MIN).and_utc();
        Asked {
            mailbox: self.mailbox.map(SourceId),
            place: self.place(),
            folder: self.folder.clone(),
            person: self.person.clone(),
            contact: self.contact.map(ContactId),
            client: self.client.map(ClientId),
            text: self.q.clone(),
            has_files: self.files.is_some(),
            since: self.since.map(begins),
            until: self.until.and_then(|day| day.checked_add_days(Days::new(1))).map(begins),
        }
    }

    /// The filters as an address has them.
    fn fields(&self) -> Vec<String> {
        let text = |name: &str, text: &Option<String>| {
            text.as_deref().map(|text| format!("{name}={}", utf8_percent_encode(text, NON_ALPHANUMERIC)))
        };
        let fields = [
            self.mailbox.map(|id| format!("mailbox={id}")),
            text("place", &self.place),
            text("folder", &self.folder),
            text("person", &self.person),
            self.contact.map(|id| format!("contact={id}")),
            self.client.map(|id| format!("client={id}")),
            text("q", &self.q),
            self.files.as_ref().map(|_| "files=1".to_owned()),
            self.since.map(|day| format!("since={day}")),
            self.until.map(|day| format!("until={day}")),
        ];
        fields.into_iter().flatten().collect()
    }

    fn address(&self, before: Option<Position>) -> String {
        let mut fields = self.fields();
        fields.extend(before.map(|before| format!("before={before}")));
        if fields.is_empty() { HERE.to_owned() } else { format!("{HERE}?{}", fields.join("&")) }
    }
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<MailQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let mut page = reading::list(&app.env, &visitor, &query.asked(), query.before, PAGE).await?;
    let mut mailboxes = reading::mailboxes(&app.env, &visitor).await?;
    let names = Names::load(&app.env, &visitor).await?;
    page.letters.iter_mut().for_each(|line| names.tell_apart(line.source_id, &mut line.source_name));
    mailboxes.iter_mut().for_each(|mailbox| names.tell_apart(mailbox.id, &mut mailbox.name));
    let (now, chosen_place) = (app.env.clock.now(), query.place());
    let day = |day: Option<NaiveDate>| day.map(|day| day.to_string()).unwrap_or_default();
    html(&MailPage {
        layout: Layout::new(&visitor, now, "Mail", HERE),
        q: query.q.clone().unwrap_or_default(),
        person: query.person.clone().unwrap_or_default(),
        mailboxes: mailboxes
            .iter()
            .map(|mailbox| Choice {
                value: mailbox.id.to_string(),
                label: clipped(&mailbox.name, 60),
                is_chosen: query.mailbox == Some(mailbox.id),
            })
            .collect(),
        places: PLACES
            .iter()
            .map(|(place, label)| Choice {
                value: serde_json::to_value(place)
                    .ok()
                    .and_then(|word| Some(word.as_str()?.to_owned()))
                    .unwrap_or_default(),
                label: (*label).to_owned(),
                is_chosen: chosen_place == Some(*place),
            })
            .collect(),
        since: day(query.since),
        until: day(query.until),
        has_files: query.files.is_some(),
        chosen: chosen(&app, &visitor, &query).await?,
        is_narrow: !query.fields().is_empty(),
        has_mailbox: !mailboxes.is_empty() || !page.letters.is_empty(),
        rows: page.letters.iter().map(|line| MailRow::new(line, now)).collect(),
        newest: query.before.map(|_| query.address(None)),
        older: page.next.map(|next| query.address(Some(next))),
    })
}

/// The filters that other pages have chosen, by name.
async fn chosen(app: &App, visitor: &Visitor, query: &MailQuery) -> Result<Vec<Chosen>, ApiError> {
    let mut chosen = Vec::new();
    if let Some(id) = query.contact {
        let contact = engine::contacts::get(&app.env, visitor, ContactId(id)).await?;
        let (words, href) = (format!("of and to {}", clipped(&contact.called(), 80)), format!("/clients/people/{id}"));
        chosen.push(Chosen { field: "contact", value: id.to_string(), words, href: Some(href) });
    }
    if let Some(id) = query.client {
        let named = app.env.db.read(visitor, async |tx| store::clients::name_of(tx, ClientId(id)).await).await?;
        let name = named.ok_or(ApiError::NotFound("client"))?;
        let (words, href) = (format!("of and to {}", clipped(&name, 80)), format!("/clients/{id}"));
        chosen.push(Chosen { field: "client", value: id.to_string(), words, href: Some(href) });
    }
    if let Some(folder) = &query.folder {
        let words = format!("in the folder {}", clipped(folder, 80));
        chosen.push(Chosen { field: "folder", value: folder.clone(), words, href: None });
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(name: &str, address: &str) -> Correspondent {
        Correspondent { name: Some(name.to_owned()).filter(|name| !name.is_empty()), address: address.into() }
    }

    #[test]
    fn a_line_names_who_matters() {
        let head = Head {
            from: Some(person("Ann", "ann@acme.test")),
            to: vec![person("", "bob@mill.test")],
            ..Head::default()
        };
        assert_eq!(people(&head), "Ann");
        assert_eq!(people(&Head { place: Place::Sent, ..head.clone() }), "To bob@mill.test");
        let to = (0..5).map(|n| person(&format!("P{n}"), "p@mill.test")).collect();
        assert_eq!(people(&Head { place: Place::Sent, to, ..head }), "To P0, P1, P2, 2 more");
        assert_eq!(people(&Head::default()), "Nobody");
        assert_eq!((subject(None).as_str(), subject(Some(" ")).as_str()), ("(no subject)", "(no subject)"));
    }

    #[test]
    fn addresses_keep_the_filters_and_the_place_in_the_list() {
        let place = Position { created_at: DateTime::UNIX_EPOCH, id: Uuid::nil() };
        let query = MailQuery {
            q: Some("late & \"lost\"".into()),
            files: Some("1".into()),
            contact: Some(7),
            ..MailQuery::default()
        };
        assert_eq!(MailQuery::default().address(None), "/mail");
        assert_eq!(
            query.address(Some(place)),
            format!("/mail?contact=7&q=late%20%26%20%22lost%22&files=1&before={place}")
        );
        assert!(query.asked().has_files && query.asked().contact == Some(ContactId(7)));
    }
}
