//! The inbox as a file: the activities that its filters show, whole, as CSV or JSON. Read page by page while it is sent.

use std::future::ready;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::IntoResponse;
use domain::Caller;
use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use store::activities::{Activity, Position, Wanted};

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
    let rows = |activities: Vec<Activity>, _is_first: bool| -> serde_json::Result<String> {
        Ok(activities.iter().map(line).collect())
    };
    Export { app, caller: visitor.clone(), query, rows, tail: "" }.answer(head, "text/csv; charset=utf-8", "csv").await
}

pub(crate) async fn json(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<FeedQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let rows = |activities: Vec<Activity>, is_first: bool| -> serde_json::Result<String> {
        let mut text = String::new();
        for (nth, activity) in activities.into_iter().enumerate() {
            text.push_str(if is_first && nth == 0 { "\n" } else { ",\n" });
            text.push_str(&serde_json::to_string(&api::activities::Activity::from(activity))?);
        }
        Ok(text)
    };
    Export { app, caller: visitor.clone(), query, rows, tail: "\n]\n" }
        .answer("[".into(), "application/json", "json")
        .await
}

/// A file that is being sent.
#[derive(Clone)]
struct Export {
    app: App,
    caller: Caller,
    query: FeedQuery,
    /// Writes a page of rows; the flag says that no row was written before.
    rows: fn(Vec<Activity>, bool) -> serde_json::Result<String>,
    tail: &'static str,
}

/// The place after which the file goes on, and whether no row was written before.
type Next = (Position, bool);

impl Export {
    async fn answer(
        self,
        head: String,
        kind: &'static str,
        ending: &'static str,
    ) -> Result<impl IntoResponse, ApiError> {
        // Before the answer begins: a refusal is an answer, not a file that breaks off.
        let (first, next) = self.piece(None, true).await?;
        let rest = stream::try_unfold(next, move |next| {
            let export = self.clone();
            async move {
                let Some((before, is_first)) = next else { return Ok(None) };
                let piece = export.piece(Some(before), is_first).await.map_err(|error| {
                    tracing::error!(error = ?error, "an export of the inbox broke off");
                    // The body is cut off without its end, so that whoever saves it sees a download that failed.
                    std::io::Error::other(error)
                });
                piece.map(|(text, next)| Some((Bytes::from(text), next)))
            }
        });
        let begun = stream::once(ready(Ok::<_, std::io::Error>(Bytes::from(head + &first))));
        let headers = [
            (CONTENT_TYPE, kind.to_owned()),
            (CONTENT_DISPOSITION, format!("attachment; filename=\"inbox.{ending}\"")),
        ];
        Ok((headers, Body::from_stream(begun.chain(rest))))
    }

    /// The rows of the next page, with the end of the file if it is the last.
    async fn piece(&self, before: Option<Position>, is_first: bool) -> Result<(String, Option<Next>), ApiError> {
        let wanted = Wanted { filter: self.query.filter(), before, limit: PAGE, is_whole: true };
        let (activities, next) = engine::activities::list(&self.app.env, &self.caller, wanted).await?;
        let is_first_still = is_first && activities.is_empty();
        let mut text = (self.rows)(activities, is_first).map_err(|error| ApiError::Internal(error.into()))?;
        if next.is_none() {
            text.push_str(self.tail);
        }
        Ok((text, next.map(|place| (place, is_first_still))))
    }
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
pub(crate) fn quoted(text: &str) -> String {
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
