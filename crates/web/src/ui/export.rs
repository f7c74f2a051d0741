//! The inbox as a file: the activities that its filters show, whole, as CSV or JSON. Read page by page while it is sent.

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::IntoResponse;
use domain::ActivityId;
use futures_util::stream;
use serde_json::Value;
use store::activities::{Activity, Wanted};

use super::Visitor;
use super::feed::FeedQuery;
use crate::api;
use crate::api::error::ApiError;
use crate::api::extract::Query;
use crate::app::App;

/// Activities that are read at once.
const PAGE: i64 = 100;
const COLUMNS: [&str; 13] = [
    "id",
    "received_at",
    "type",
    "direction",
    "state",
    "address",
    "contact_id",
    "channel_id",
    "person_id",
    "subject",
    "text",
    "summary",
    "error",
];

pub(crate) async fn csv(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<FeedQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let head = format!("{}\r\n", COLUMNS.join(","));
    let page = |activities: Vec<Activity>, _is_first: bool| activities.iter().map(line).collect::<String>();
    file(app, visitor, query, head, page, "", ("text/csv; charset=utf-8", "csv"))
}

pub(crate) async fn json(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<FeedQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let page = |activities: Vec<Activity>, is_first: bool| {
        let mut text = String::new();
        for (nth, activity) in activities.into_iter().enumerate() {
            text.push_str(if is_first && nth == 0 { "\n" } else { ",\n" });
            text.push_str(&serde_json::to_string(&api::activities::Activity::from(activity)).unwrap_or_default());
        }
        text
    };
    file(app, visitor, query, "[".into(), page, "\n]\n", ("application/json", "json"))
}

/// Where the sending is.
enum At {
    Head,
    Page { before: Option<ActivityId>, is_first: bool },
    Tail,
    Over,
}

fn file(
    app: App,
    visitor: Visitor,
    query: FeedQuery,
    head: String,
    page: fn(Vec<Activity>, bool) -> String,
    tail: &'static str,
    (kind, ending): (&'static str, &'static str),
) -> Result<impl IntoResponse, ApiError> {
    let pieces = stream::try_unfold(At::Head, move |at| {
        let (app, caller, query, head) = (app.clone(), visitor.clone(), query.clone(), head.clone());
        async move {
            Ok::<_, std::io::Error>(match at {
                At::Head => Some((Bytes::from(head), At::Page { before: None, is_first: true })),
                At::Page { before, is_first } => {
                    let wanted = Wanted { filter: query.filter(), before, limit: PAGE, is_whole: true };
                    let read = engine::activities::list(&app.env, &caller, wanted).await;
                    // Whoever saves the file sees that it ended early: it is cut off, not ended.
                    let (activities, next) = read.map_err(std::io::Error::other)?;
                    let is_first_still = is_first && activities.is_empty();
                    let next = match next {
                        Some(last) => At::Page { before: Some(ActivityId(last)), is_first: is_first_still },
                        None => At::Tail,
                    };
                    Some((Bytes::from(page(activities, is_first)), next))
                }
                At::Tail => Some((Bytes::from(tail), At::Over)),
                At::Over => None,
            })
        }
    });
    let headers =
        [(CONTENT_TYPE, kind.to_owned()), (CONTENT_DISPOSITION, format!("attachment; filename=\"inbox.{ending}\""))];
    Ok((headers, Body::from_stream(pieces)))
}

fn line(activity: &Activity) -> String {
    let said = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let number = |n: Option<i64>| n.map(|n| n.to_string()).unwrap_or_default();
    let error = activity.metadata.get("error").map(|error| said(error, "message")).unwrap_or_default();
    let cells = [
        activity.id.to_string(),
        activity.created_at.to_rfc3339(),
        activity.r#type.to_string(),
        activity.direction.to_string(),
        activity.processing_status.to_string(),
        activity.party().unwrap_or_default().to_owned(),
        number(activity.contact_id),
        activity.channel_id.map(|id| id.to_string()).unwrap_or_default(),
        number(activity.person_id),
        said(&activity.raw_data, "subject"),
        said(&activity.raw_data, "content"),
        activity.processed_data.as_ref().map(|done| said(done, "summary")).unwrap_or_default(),
        error,
    ];
    format!("{}\r\n", cells.map(|cell| quoted(&cell)).join(","))
}

/// A cell in quotation marks. What a spreadsheet would take for a formula is text: a sender may have written it.
fn quoted(text: &str) -> String {
    let guard =
        if text.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠', '\t', '\r', '\n']) { "'" } else { "" };
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_holds_any_text_and_no_formula() {
        for (text, cell) in [
            ("plain", "\"plain\""),
            ("a \"b\", c\nd", "\"a \"\"b\"\", c\nd\""),
            ("=HYPERLINK(1)", "\"'=HYPERLINK(1)\""),
            ("+15005550006", "\"'+15005550006\""),
            ("-1+1", "\"'-1+1\""),
            ("@SUM(1)", "\"'@SUM(1)\""),
            ("", "\"\""),
        ] {
            assert_eq!(quoted(text), cell);
        }
    }
}
