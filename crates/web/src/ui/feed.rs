//! Activity: a timeline of cards, everybody's, one person's, or one contact's (on the contact's page).

use std::collections::HashMap;

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use domain::shown::{clipped, counted};
use domain::{ActivityId, PersonId, Scope};
use engine::waiting::Overview;
use serde::Deserialize;
use store::activities::{self, Of, Wanted};
use store::queue::MOST_COUNTED;
use store::{contacts, dead_letters};
use uuid::Uuid;

use super::activities::Flash;
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
    /// The last of a full page: older ones follow.
    pub last: Option<Uuid>,
    pub overview: Overview,
    /// Dead letters of the tenant's.
    pub dead: i64,
}

pub(super) async fn load(
    app: &App,
    visitor: &Visitor,
    of: Of,
    before: Option<ActivityId>,
) -> Result<Timeline, ApiError> {
    let loaded = app.env.db.read(visitor, async |tx| {
        let listed = activities::list(tx, visitor.tenant_id, Wanted { of, before, limit: PAGE }).await?;
        let ids: Vec<i64> = listed.iter().filter_map(|activity| activity.contact_id).collect();
        let known = contacts::get_all(tx, visitor.tenant_id, &ids).await?;
        Ok((listed, known, dead_letters::count(tx, visitor.tenant_id).await?))
    });
    let (listed, known, dead) = loaded.await?;
    let overview = engine::waiting::overview(&app.env, visitor).await?;
    let now = app.env.clock.now();
    let known: HashMap<i64, _> = known.iter().map(|contact| (contact.id, contact)).collect();
    let card = |activity: &activities::Activity| {
        let contact = activity.contact_id.and_then(|id| known.get(&id).copied());
        Card::new(activity, contact, &overview, now)
    };
    Ok(Timeline {
        cards: listed.iter().map(card).collect(),
        last: listed.last().filter(|_| listed.len() as i64 == PAGE).map(|activity| activity.id),
        overview,
        dead,
    })
}

#[derive(Template)]
#[template(path = "feed.html")]
struct FeedPage {
    layout: Layout,
    flash: &'static str,
    tabs: Vec<Tab>,
    people: Vec<Choice>,
    dead: String,
    cards: Vec<Card>,
    newest: Option<String>,
    older: Option<String>,
    /// The page to which an action returns.
    here: String,
    may_act: bool,
    csrf: String,
}

struct Tab {
    href: String,
    label: String,
    is_current: bool,
}

struct Choice {
    id: i64,
    name: String,
    is_chosen: bool,
}

#[derive(Deserialize)]
pub(crate) struct FeedQuery {
    #[serde(default, deserialize_with = "blank_is_none")]
    person: Option<PersonId>,
    #[serde(default, deserialize_with = "blank_is_none")]
    before: Option<ActivityId>,
    #[serde(default)]
    done: Flash,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<FeedQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let of = query.person.map_or(Of::All, Of::Person);
    let Timeline { cards, last, overview, dead } = load(&app, &visitor, of, query.before).await?;
    if query.person.is_some_and(|chosen| overview.person(chosen.0).is_none()) {
        return Err(ApiError::NotFound("person"));
    }
    html(&FeedPage {
        layout: Layout::new(&visitor, app.env.clock.now(), "Activity", "/activities"),
        flash: query.done.in_words(),
        tabs: tabs(&overview, visitor.person_id, query.person),
        people: choices(&overview, query.person),
        dead: match dead {
            0 => String::new(),
            1 => "1 dead letter".into(),
            dead => format!("{} dead letters", counted(dead, MOST_COUNTED)),
        },
        cards,
        newest: query.before.map(|_| address(query.person, None)),
        older: last.map(|last| address(query.person, Some(ActivityId(last)))),
        here: address(query.person, query.before),
        may_act: visitor.may(Scope::Write),
        csrf: visitor.csrf(),
    })
}

fn address(person: Option<PersonId>, before: Option<ActivityId>) -> String {
    let person = person.map(|person| format!("person={person}"));
    let before = before.map(|before| format!("before={before}"));
    let query: Vec<String> = person.into_iter().chain(before).collect();
    if query.is_empty() { "/activities".into() } else { format!("/activities?{}", query.join("&")) }
}

/// The views: everyone's, the visitor's own where the key is a person's, the chosen person's, and what is nobody's.
fn tabs(overview: &Overview, mine: Option<PersonId>, chosen: Option<PersonId>) -> Vec<Tab> {
    let of = |person: Option<PersonId>, label: String| Tab {
        href: address(person, None),
        label,
        is_current: person == chosen,
    };
    let name = |id: PersonId| overview.person(id.0).map(|person| clipped(&person.called(), 40)).unwrap_or_default();
    let mut tabs = vec![of(None, "Everyone's".into())];
    tabs.extend(mine.map(|mine| of(Some(mine), "Mine".into())));
    tabs.extend(chosen.filter(|chosen| mine != Some(*chosen)).map(|chosen| of(Some(chosen), name(chosen))));
    tabs.push(Tab { href: "/unmatched".into(), label: "Unmatched".into(), is_current: false });
    tabs
}

fn choices(overview: &Overview, chosen: Option<PersonId>) -> Vec<Choice> {
    let people = overview.people.iter().filter(|person| !person.is_built_in());
    people
        .map(|person| Choice {
            id: person.id,
            name: clipped(&person.called(), 60),
            is_chosen: chosen == Some(PersonId(person.id)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_keep_the_person_and_the_place() {
        let id = ActivityId(Uuid::nil());
        assert_eq!(address(None, None), "/activities");
        assert_eq!(address(Some(PersonId(7)), None), "/activities?person=7");
        assert_eq!(address(Some(PersonId(7)), Some(id)), format!("/activities?person=7&before={id}"));
    }
}
