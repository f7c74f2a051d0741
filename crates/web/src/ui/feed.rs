//! Inbox: a timeline of cards, everybody's, one person's, what failed, or one contact's (on the contact's page); narrowed by filters that the
//! address keeps.

use std::collections::HashMap;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse as _, Redirect, Response};
use chrono::{Days, NaiveDate, NaiveTime};
use domain::shown::{clipped, counted};
use domain::{ActivityType, ChannelId, PersonId, ProcessingStatus, Scope};
use engine::waiting::Overview;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use store::activities::{self, Filter, Position, Wanted};
use store::queue::MOST_COUNTED;
use store::{contacts, dead_letters};
use uuid::Uuid;

use super::activities::{Flash, kind};
use super::card::Card;
use super::layout::Layout;
use super::{Visitor, html};
use crate::api::error::ApiError;
use crate::api::extract::{Query, blank_is_none};
use crate::app::App;

const PAGE: i64 = 50;

/// A page of cards.
pub(super) struct Timeline {
    pub cards: Vec<Card>,
    /// The place before which older ones follow.
    pub last: Option<Position>,
    pub overview: Overview,
    /// The channels, by id.
    pub channels: HashMap<Uuid, String>,
    /// Dead letters of the tenant's.
    pub dead: i64,
}

pub(super) async fn load(
    app: &App,
    visitor: &Visitor,
    filter: Filter<'_>,
    before: Option<Position>,
) -> Result<Timeline, ApiError> {
    let wanted = Wanted { filter, before, limit: PAGE, is_whole: false };
    let (listed, last) = engine::activities::list(&app.env, visitor, wanted).await?;
    let loaded = app.env.db.read(visitor, async |tx| {
        let ids: Vec<i64> = listed.iter().filter_map(|activity| activity.contact_id).collect();
        let known = contacts::get_all(tx, visitor.tenant_id, &ids).await?;
        Ok((known, dead_letters::count(tx, visitor.tenant_id).await?))
    });
    let (known, dead) = loaded.await?;
    let channels = engine::channels::list(&app.env, visitor).await?;
    let channels: HashMap<Uuid, String> =
        channels.into_iter().map(|channel| (channel.id, clipped(&channel.name, 60))).collect();
    let overview = engine::waiting::overview(&app.env, visitor).await?;
    let now = app.env.clock.now();
    let known: HashMap<i64, _> = known.iter().map(|contact| (contact.id, contact)).collect();
    let card = |activity: &activities::Activity| {
        let contact = activity.contact_id.and_then(|id| known.get(&id).copied());
        let channel = activity.channel_id.and_then(|id| channels.get(&id).cloned()).unwrap_or_default();
        Card { channel, ..Card::new(activity, contact, &overview, now) }
    };
    let cards = listed.iter().map(card).collect();
    Ok(Timeline { cards, last, overview, channels, dead })
}

#[derive(Template)]
#[template(path = "feed.html")]
struct FeedPage {
    layout: Layout,
    flash: &'static str,
    /// The page of the section that this is, and its address.
    heading: &'static str,
    href: &'static str,
    types: Vec<Choice>,
    channels: Vec<Choice>,
    /// Empty where the page is about one state.
    states: Vec<Choice>,
    /// Empty where the page is one person's.
    people: Vec<Choice>,
    since: String,
    until: String,
    q: String,
    is_unmatched: bool,
    is_narrow: bool,
    dead: String,
    cards: Vec<Card>,
    newest: Option<String>,
    older: Option<String>,
    /// The same activities as files.
    csv: String,
    json: String,
    /// The page to which an action returns.
    here: String,
    may_act: bool,
    csrf: String,
}

/// A value that a filter offers.
struct Choice {
    value: String,
    label: String,
    is_chosen: bool,
}

#[derive(Clone, Default, Deserialize)]
pub(crate) struct FeedQuery {
    #[serde(default, deserialize_with = "blank_is_none")]
    r#type: Option<ActivityType>,
    #[serde(default, deserialize_with = "blank_is_none")]
    channel: Option<ChannelId>,
    #[serde(default, deserialize_with = "blank_is_none")]
    state: Option<ProcessingStatus>,
    #[serde(default, deserialize_with = "blank_is_none")]
    person: Option<PersonId>,
    /// Days, in UTC; both are included.
    #[serde(default, deserialize_with = "blank_is_none")]
    since: Option<NaiveDate>,
    #[serde(default, deserialize_with = "blank_is_none")]
    until: Option<NaiveDate>,
    #[serde(default, deserialize_with = "blank_is_none")]
    q: Option<String>,
    /// Only activities that match no contact.
    #[serde(default, deserialize_with = "blank_is_none")]
    unmatched: Option<String>,
    #[serde(default, deserialize_with = "blank_is_none")]
    before: Option<Position>,
    #[serde(default)]
    done: Flash,
}

impl FeedQuery {
    pub fn filter(&self) -> Filter<'_> {
        let begins = |day: NaiveDate| day.and_time(NaiveTime::MIN).and_utc();
        Filter {
            channel_id: self.channel,
            contact_id: None,
            person_id: self.person,
            r#type: self.r#type,
            status: self.state,
            is_unmatched: self.unmatched.is_some(),
            since: self.since.map(begins),
            until: self.until.and_then(|day| day.checked_add_days(Days::new(1))).map(begins),
            text: self.q.as_deref().map(str::trim).filter(|text| !text.is_empty()),
        }
    }

    /// The filters as an address has them.
    fn fields(&self) -> Vec<String> {
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let fields = [
            self.r#type.map(|kind| format!("type={kind}")),
            self.channel.map(|id| format!("channel={id}")),
            self.state.map(|state| format!("state={state}")),
            self.person.map(|id| format!("person={id}")),
            self.since.map(|day| format!("since={day}")),
            self.until.map(|day| format!("until={day}")),
            self.q.as_deref().map(|text| format!("q={}", encoded(text))),
            self.unmatched.as_ref().map(|_| "unmatched=1".to_owned()),
        ];
        fields.into_iter().flatten().collect()
    }
}

/// The pages of the section.
#[derive(Clone, Copy, PartialEq, Eq)]
enum View {
    All,
    Mine,
    Failed,
}

impl View {
    fn href(self) -> &'static str {
        match self {
            Self::All => "/inbox",
            Self::Mine => "/inbox/mine",
            Self::Failed => "/inbox/failed",
        }
    }

    fn heading(self) -> &'static str {
        match self {
            Self::All => "Inbox",
            Self::Mine => "Mine",
            Self::Failed => "Failed",
        }
    }
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<FeedQuery>,
) -> Result<Response, ApiError> {
    page(&app, &visitor, View::All, query).await
}

/// The work of the visitor's own person; everybody's for a visitor whose key is nobody's.
pub(crate) async fn mine(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<FeedQuery>,
) -> Result<Response, ApiError> {
    match visitor.person_id {
        Some(_) => page(&app, &visitor, View::Mine, query).await,
        None => Ok(Redirect::to(View::All.href()).into_response()),
    }
}

pub(crate) async fn failed(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<FeedQuery>,
) -> Result<Response, ApiError> {
    page(&app, &visitor, View::Failed, query).await
}

async fn page(app: &App, visitor: &Visitor, view: View, query: FeedQuery) -> Result<Response, ApiError> {
    let whole = match view {
        View::All => query.clone(),
        View::Mine => FeedQuery { person: visitor.person_id, ..query.clone() },
        View::Failed => FeedQuery { state: Some(ProcessingStatus::Failed), ..query.clone() },
    };
    let timeline = load(app, visitor, whole.filter(), query.before).await?;
    if query.person.is_some_and(|chosen| timeline.overview.person(chosen.0).is_none()) {
        return Err(ApiError::NotFound("person"));
    }
    let address = |before| address(view.href(), &query, before);
    let file = |ending: &str| self::address(&format!("/inbox/export.{ending}"), &whole, None);
    let day = |day: Option<NaiveDate>| day.map(|day| day.to_string()).unwrap_or_default();
    let page = FeedPage {
        layout: Layout::new(visitor, app.env.clock.now(), view.heading(), view.href()),
        flash: query.done.in_words(),
        heading: view.heading(),
        href: view.href(),
        types: types(query.r#type),
        channels: channels(&timeline.channels, query.channel),
        states: if view == View::Failed { Vec::new() } else { states(query.state) },
        people: if view == View::Mine { Vec::new() } else { people(&timeline.overview, query.person) },
        since: day(query.since),
        until: day(query.until),
        q: query.q.clone().unwrap_or_default(),
        is_unmatched: query.unmatched.is_some(),
        is_narrow: !query.fields().is_empty(),
        dead: match timeline.dead {
            0 => String::new(),
            1 => "1 dead letter".into(),
            dead => format!("{} dead letters", counted(dead, MOST_COUNTED)),
        },
        cards: timeline.cards,
        newest: query.before.map(|_| address(None)),
        older: timeline.last.map(|last| address(Some(last))),
        csv: file("csv"),
        json: file("json"),
        here: address(query.before),
        may_act: visitor.may(Scope::Write),
        csrf: visitor.csrf(),
    };
    Ok(html(&page)?.into_response())
}

fn address(path: &str, query: &FeedQuery, before: Option<Position>) -> String {
    let mut fields = query.fields();
    fields.extend(before.map(|before| format!("before={before}")));
    if fields.is_empty() { path.to_owned() } else { format!("{path}?{}", fields.join("&")) }
}

fn types(chosen: Option<ActivityType>) -> Vec<Choice> {
    let choice = |one: ActivityType| Choice {
        value: one.to_string(),
        label: kind(one).to_owned(),
        is_chosen: chosen == Some(one),
    };
    ActivityType::ALL.into_iter().map(choice).collect()
}

fn states(chosen: Option<ProcessingStatus>) -> Vec<Choice> {
    let words = |state| match state {
        ProcessingStatus::Raw => "Waiting",
        ProcessingStatus::Processing => "In progress",
        ProcessingStatus::Completed => "Done",
        ProcessingStatus::Failed => "Failed",
    };
    let choice = |one: ProcessingStatus| Choice {
        value: one.to_string(),
        label: words(one).to_owned(),
        is_chosen: chosen == Some(one),
    };
    ProcessingStatus::ALL.into_iter().map(choice).collect()
}

fn channels(known: &HashMap<Uuid, String>, chosen: Option<ChannelId>) -> Vec<Choice> {
    let choice = |(id, name): (&Uuid, &String)| Choice {
        value: id.to_string(),
        label: name.clone(),
        is_chosen: chosen == Some(ChannelId(*id)),
    };
    let mut choices: Vec<Choice> = known.iter().map(choice).collect();
    choices.sort_by_key(|choice| choice.label.to_lowercase());
    choices
}

fn people(overview: &Overview, chosen: Option<PersonId>) -> Vec<Choice> {
    let people = overview.people.iter().filter(|person| !person.is_built_in());
    people
        .map(|person| Choice {
            value: person.id.to_string(),
            label: clipped(&person.called(), 60),
            is_chosen: chosen == Some(PersonId(person.id)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    #[test]
    fn addresses_keep_the_filters_and_the_place() {
        let place = Position { created_at: DateTime::UNIX_EPOCH, id: Uuid::nil() };
        let query = FeedQuery {
            person: Some(PersonId(7)),
            state: Some(ProcessingStatus::Failed),
            q: Some("late & \"lost\"".into()),
            until: NaiveDate::from_ymd_opt(2026, 11, 17),
            ..FeedQuery::default()
        };
        assert_eq!(address("/inbox", &FeedQuery::default(), None), "/inbox");
        assert_eq!(
            address("/inbox/mine", &query, Some(place)),
            format!("/inbox/mine?state=failed&person=7&until=2026-11-17&q=late%20%26%20%22lost%22&before={place}")
        );
    }

    #[test]
    fn both_days_are_included_and_blanks_filter_nothing() {
        let day = NaiveDate::from_ymd_opt(2026, 11, 17);
        let query = FeedQuery { since: day, until: day, q: Some("  ".into()), ..FeedQuery::default() };
        let filter = query.filter();
        assert_eq!(filter.until.zip(filter.since).map(|(until, since)| (until - since).num_hours()), Some(24));
        assert_eq!(filter.text, None);
    }
}
