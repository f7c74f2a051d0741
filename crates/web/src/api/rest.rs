//! The subset of PostgREST that an agent written with supabase-js uses: `/rest/v1/rpc/*`, and select, update and insert of two tables. Errors are
//! PostgREST's object, not problems, because its clients read nothing else.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, RawQuery, State};
use axum::http::header::{ACCEPT, CONTENT_RANGE, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use domain::text::has_nul;
use domain::{Notice, Op, Scope};
use serde_json::{Map, Value, json};
use store::nodes::Drawn;
use store::rest::{self, Condition, FUNCTIONS, Function, Operator, Table, Wanted};
use uuid::Uuid;

use super::auth::{Caller, Credential};
use super::error::ApiError;
use super::nodes;
use crate::app::App;

const MOST_ROWS: i64 = 1_000;
const ONE: &str = "application/vnd.pgrst.object+json";

/// What PostgREST's clients read of an error.
#[derive(Debug)]
pub(crate) struct RestError {
    status: StatusCode,
    code: String,
    message: String,
    details: Option<String>,
}

impl std::fmt::Display for RestError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl RestError {
    pub fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        Self { status, code: code.to_owned(), message: message.into(), details: None }
    }

    pub fn bad(code: &str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }
}

impl IntoResponse for RestError {
    fn into_response(self) -> Response {
        let body = json!({ "code": self.code, "message": self.message, "details": self.details, "hint": null });
        (self.status, Json(body)).into_response()
    }
}

impl From<store::Error> for RestError {
    fn from(error: store::Error) -> Self {
        let message = error.told();
        match (error.code().as_deref(), &error) {
            (Some("PT409"), _) => Self::new(StatusCode::CONFLICT, "PT409", message),
            (Some("42501"), _) => Self::new(StatusCode::FORBIDDEN, "42501", message),
            (Some(code @ ("23505" | "23503")), _) => Self::new(StatusCode::CONFLICT, code, message),
            (Some(code), _) if ["22", "23", "P0"].contains(&&code[..2]) => Self::bad(code, message),
            (None, store::Error::Refused { what }) => Self::bad("PGRST204", what),
            _ if error.is_passing() => Self::new(StatusCode::SERVICE_UNAVAILABLE, "PGRST000", "the database is away"),
            _ => {
                tracing::error!(error = ?error, "request failed");
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "XX000", "something went wrong here")
            }
        }
    }
}

impl From<ApiError> for RestError {
    fn from(error: ApiError) -> Self {
        match error {
            ApiError::Unauthenticated => Self::new(StatusCode::UNAUTHORIZED, "PGRST301", "the key is not accepted"),
            ApiError::Forbidden(what) => Self::new(StatusCode::FORBIDDEN, "42501", what),
            ApiError::CrossSite => Self::new(StatusCode::FORBIDDEN, "42501", "use a key, not a session"),
            ApiError::DatabaseAway(_) => Self::new(StatusCode::SERVICE_UNAVAILABLE, "PGRST000", "the database is away"),
            other => {
                tracing::error!(error = ?other, "request failed");
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "XX000", "something went wrong here")
            }
        }
    }
}

/// A key that may act as an agent; a browser's session is not enough, because any page may send requests here.
async fn agent(app: &App, headers: &HeaderMap) -> Result<Caller, RestError> {
    agent_with(app, Credential::of(headers)).await
}

/// The same for whoever shows this.
pub(crate) async fn agent_with(app: &App, shown: Option<Credential>) -> Result<Caller, RestError> {
    let credential = shown.ok_or(ApiError::Unauthenticated)?;
    if matches!(credential, Credential::Session(_)) {
        return Err(ApiError::CrossSite.into());
    }
    let caller = Caller::with(credential, app).await?;
    caller.need(Scope::Agent)?;
    Ok(caller)
}

fn object(body: &Bytes) -> Result<Map<String, Value>, RestError> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    let malformed = || RestError::bad("PGRST102", "the body is no JSON object");
    match serde_json::from_slice(body).map_err(|_| malformed())? {
        Value::Object(fields) => Ok(fields),
        // A list of one, as `insert([row])` sends it.
        Value::Array(mut rows) if rows.len() == 1 => match rows.pop() {
            Some(Value::Object(fields)) => Ok(fields),
            _ => Err(malformed()),
        },
        _ => Err(malformed()),
    }
}

/// Calls a function.
pub(crate) async fn rpc(
    State(app): State<App>,
    Path(name): Path<String>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, RestError> {
    if method == Method::OPTIONS {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let caller = agent(&app, &headers).await?;
    let unknown = || RestError::new(StatusCode::NOT_FOUND, "PGRST202", format!("there is no function {name:?}"));
    let function: &Function = FUNCTIONS.iter().find(|function| function.name == name).ok_or_else(unknown)?;
    if method != Method::POST {
        return Err(RestError::new(StatusCode::METHOD_NOT_ALLOWED, "PGRST117", "call it with POST"));
    }
    let arguments = object(&body)?;
    let value = app.env.db.write_as(&caller, async |tx| {
        let called = rest::call(tx, function, &arguments).await?;
        tx.notify_all(Notice::activities(caller.tenant_id, &called.changed, Op::Update));
        Ok::<_, RestError>(called.value)
    });
    let value = value.await?;
    // Of functions that give locks back, how many: those that claim return rows.
    match value.as_u64() {
        Some(n) => metrics::counter!("tributary_activity_recoveries_total").increment(n),
        None => {
            let agent = caller.person_id.map_or_else(|| "nobody".to_owned(), |person| person.to_string());
            metrics::counter!("tributary_claim_calls_total", "agent" => agent).increment(1);
        }
    }
    Ok(Json(value).into_response())
}

/// Selects, updates or inserts.
pub(crate) async fn table(
    State(app): State<App>,
    Path(name): Path<String>,
    method: Method,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Result<Response, RestError> {
    if method == Method::OPTIONS {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let caller = agent(&app, &headers).await?;
    let unknown = || RestError::new(StatusCode::NOT_FOUND, "PGRST205", format!("there is no table {name:?}"));
    let table = Table::find(&name).ok_or_else(unknown)?;
    let wanted = parse(table, query.as_deref().unwrap_or_default())?;
    match method {
        Method::GET | Method::HEAD => select(&app, &caller, table, &wanted, &headers).await,
        Method::PATCH => update(&app, &caller, table, &wanted, &headers, object(&body)?).await,
        Method::POST => insert(&app, &caller, table, &wanted, &headers, object(&body)?).await,
        _ => Err(RestError::new(StatusCode::METHOD_NOT_ALLOWED, "PGRST117", "this table takes GET, PATCH and POST")),
    }
}

async fn select(
    app: &App,
    caller: &Caller,
    table: &Table,
    wanted: &Wanted,
    headers: &HeaderMap,
) -> Result<Response, RestError> {
    let is_counted = prefers(headers, "count=exact");
    let found = app.env.db.read(caller, async |tx| {
        let rows = rest::select(tx, table, wanted).await?;
        let count = match is_counted {
            true => Some(rest::count(tx, table, &wanted.conditions).await?),
            false => None,
        };
        Ok((rows, count))
    });
    let (rows, count) = found.await?;
    let total = count.map_or("*".to_owned(), |count| count.to_string());
    let range = match rows.len() as i64 {
        0 => format!("*/{total}"),
        n => format!("{}-{}/{total}", wanted.offset, wanted.offset + n - 1),
    };
    let mut response = shaped(StatusCode::OK, rows, headers)?;
    if let Ok(range) = HeaderValue::try_from(range) {
        response.headers_mut().insert(CONTENT_RANGE, range);
    }
    Ok(response)
}

async fn update(
    app: &App,
    caller: &Caller,
    table: &Table,
    wanted: &Wanted,
    headers: &HeaderMap,
    body: Map<String, Value>,
) -> Result<Response, RestError> {
    if wanted.conditions.is_empty() {
        return Err(RestError::bad("21000", "an update needs a filter"));
    }
    if body.is_empty() {
        return Err(RestError::bad("PGRST102", "an update needs columns"));
    }
    let updated = app.env.db.write_as(caller, async |tx| {
        let before = drawn(tx, table, caller).await?;
        let rows = rest::update(tx, table, &body, wanted).await?;
        // A row that is there and no longer matches is a lock that was lost; no row would look like success.
        let is_lost = rows.is_empty() && {
            let by_id: Vec<Condition> =
                wanted.conditions.iter().filter(|condition| condition.column.0 == "id").cloned().collect();
            !by_id.is_empty() && rest::count(tx, table, &by_id).await? > 0
        };
        let (ids, rows): (Vec<Uuid>, Vec<Value>) = rows.into_iter().unzip();
        if table.name == "activities" {
            tx.notify_all(store::activities::notices(caller.tenant_id, &ids, Op::Update));
        }
        if drawn(tx, table, caller).await? != before {
            tx.notify(nodes::notice(caller));
        }
        Ok::<_, RestError>((rows, is_lost))
    });
    let (rows, is_lost) = updated.await?;
    if is_lost {
        return Err(RestError::new(
            StatusCode::CONFLICT,
            "PT409",
            "lock lost: the row is no longer as the filter says",
        ));
    }
    if !prefers(headers, "return=representation") {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    shaped(StatusCode::OK, rows, headers)
}

async fn insert(
    app: &App,
    caller: &Caller,
    table: &Table,
    wanted: &Wanted,
    headers: &HeaderMap,
    body: Map<String, Value>,
) -> Result<Response, RestError> {
    if table.name != "crm_processing_nodes" {
        return Err(RestError::new(StatusCode::FORBIDDEN, "42501", "rows of this table come in by their channels"));
    }
    let is_upsert = prefers(headers, "resolution=merge-duplicates");
    let row = app.env.db.write_as(caller, async |tx| {
        let before = drawn(tx, table, caller).await?;
        let row = rest::insert(tx, table, &body, is_upsert, &wanted.columns).await?;
        if drawn(tx, table, caller).await? != before {
            tx.notify(nodes::notice(caller));
        }
        Ok::<_, RestError>(row)
    });
    let row = row.await?;
    if !prefers(headers, "return=representation") {
        return Ok(StatusCode::CREATED.into_response());
    }
    shaped(StatusCode::CREATED, vec![row], headers)
}

/// What pages draw of the devices that this caller may beat for. Most heartbeats change nothing of it, and nobody need be told.
async fn drawn(tx: &mut store::Tx, table: &Table, caller: &Caller) -> store::Result<Vec<Drawn>> {
    if table.name != "crm_processing_nodes" {
        return Ok(Vec::new());
    }
    store::nodes::drawn(tx, caller.person_id.filter(|_| !caller.may(Scope::Service))).await
}

/// Rows as an array, or the one row that `.single()` asks for.
fn shaped(status: StatusCode, mut rows: Vec<Value>, headers: &HeaderMap) -> Result<Response, RestError> {
    let is_one = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).is_some_and(|accept| accept.contains(ONE));
    if !is_one {
        return Ok((status, Json(Value::Array(rows))).into_response());
    }
    match (rows.pop(), rows.is_empty()) {
        (Some(row), true) => Ok((status, Json(row)).into_response()),
        (row, _) => {
            let n = rows.len() + usize::from(row.is_some());
            let message = "Cannot coerce the result to a single JSON object";
            let mut error = RestError::new(StatusCode::NOT_ACCEPTABLE, "PGRST116", message);
            error.details = Some(format!("The result contains {n} rows"));
            Err(error)
        }
    }
}

/// `Prefer` may come several times, be joined by commas, or be empty.
fn prefers(headers: &HeaderMap, what: &str) -> bool {
    let all = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|line| line.split(',')).any(|one| one.trim() == what)
}

/// `select=`, `order=`, `limit=`, `offset=`, and filters `column=operator.value`.
fn parse(table: &Table, query: &str) -> Result<Wanted, RestError> {
    let mut wanted = Wanted { limit: MOST_ROWS, ..Wanted::default() };
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decoded = |text: &str| {
            let spaced = text.replace('+', " ");
            percent_encoding::percent_decode_str(&spaced).decode_utf8().map(|text| text.into_owned())
        };
        let malformed = |_| RestError::bad("PGRST100", "the query is not UTF-8");
        let (name, value) = (decoded(name).map_err(malformed)?, decoded(value).map_err(malformed)?);
        if has_nul(&value) {
            return Err(RestError::bad("PGRST100", "the query has a NUL character"));
        }
        let number = || value.parse::<i64>().map_err(|_| RestError::bad("PGRST100", format!("{name} is a number")));
        let column = |name: &str| {
            let known = table.column(name.trim().trim_matches('"'));
            known.ok_or_else(|| RestError::bad("42703", format!("there is no column {name:?} in {}", table.name)))
        };
        match name.as_str() {
            "select" => {
                for name in value.split(',').filter(|name| !name.is_empty() && *name != "*") {
                    wanted.columns.push(column(name)?.0);
                }
            }
            "order" => {
                for part in value.split(',') {
                    let mut words = part.split('.');
                    let name = column(words.next().unwrap_or_default())?.0;
                    wanted.order.push((name, words.any(|word| word == "desc")));
                }
            }
            "limit" => wanted.limit = number()?.clamp(0, MOST_ROWS),
            "offset" => wanted.offset = number()?.max(0),
            "columns" | "on_conflict" => {}
            filter => wanted.conditions.push(condition(column(filter)?, &value)?),
        }
    }
    Ok(wanted)
}

/// `operator.value`, or `not.operator.value`.
pub(crate) fn condition(column: (&'static str, &'static str), text: &str) -> Result<Condition, RestError> {
    let malformed = || RestError::bad("PGRST100", format!("{text:?} is no filter such as eq.value"));
    let (is_not, rest) = text.strip_prefix("not.").map_or((false, text), |rest| (true, rest));
    let (operator, value) = rest.split_once('.').ok_or_else(malformed)?;
    let operator = match operator {
        "eq" => Operator::Eq,
        "neq" => Operator::Neq,
        "gt" => Operator::Gt,
        "gte" => Operator::Gte,
        "lt" => Operator::Lt,
        "lte" => Operator::Lte,
        "like" => Operator::Like,
        "ilike" => Operator::Ilike,
        "match" => Operator::Match,
        "imatch" => Operator::Imatch,
        "in" => Operator::In,
        "is" => Operator::Is,
        "isdistinct" => Operator::IsDistinct,
        _ => return Err(malformed()),
    };
    let values = match operator {
        Operator::In => listed(value).ok_or_else(malformed)?,
        _ => vec![value.to_owned()],
    };
    Ok(Condition { column, is_not, operator, values })
}

/// `(a,"b,c")`
fn listed(text: &str) -> Option<Vec<String>> {
    let inner = text.strip_prefix('(')?.strip_suffix(')')?;
    let (mut values, mut value, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => is_quoted = !is_quoted,
            '\\' if is_quoted => value.extend(chars.next()),
            ',' if !is_quoted => values.push(std::mem::take(&mut value)),
            _ => value.push(c),
        }
    }
    if is_quoted {
        return None;
    }
    if !inner.is_empty() {
        values.push(value);
    }
    Some(values)
}

/// Agents may run in a page of somewhere else: whoever shows a key may ask, cookies are of no use here.
pub(crate) fn open_to_pages(headers: &mut HeaderMap) {
    const FIXED: [(&str, &str); 4] = [
        ("access-control-allow-origin", "*"),
        ("access-control-allow-methods", "GET,HEAD,POST,PATCH,OPTIONS"),
        (
            "access-control-allow-headers",
            "authorization,x-client-info,apikey,content-type,accept,accept-profile,content-profile,prefer,x-retry-count",
        ),
        ("access-control-expose-headers", "content-range"),
    ];
    for (name, value) in FIXED {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("cross-origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> &'static Table {
        Table::find("activities").expect("a table")
    }

    #[test]
    fn queries_are_read_as_the_client_writes_them() {
        let query = "select=id%2Cprocessing_status&processing_status=in.%28raw%2C%22b%2Cc%22%29&locked_by=is.null&lock_epoch=not.gte.3&order=created_at.desc&offset=0&limit=10";
        let wanted = parse(table(), query).expect("a query");
        assert_eq!(wanted.columns, ["id", "processing_status"]);
        assert_eq!(wanted.order, [("created_at", true)]);
        assert_eq!((wanted.limit, wanted.offset), (10, 0));
        let values: Vec<&[String]> = wanted.conditions.iter().map(|condition| condition.values.as_slice()).collect();
        assert_eq!(values, [&["raw".to_owned(), "b,c".to_owned()][..], &["null".to_owned()], &["3".to_owned()]]);
        assert!(wanted.conditions[2].is_not);
        assert_eq!(parse(table(), "select=*").expect("a query").columns.len(), 0);
    }

    #[test]
    fn what_is_no_column_or_filter_is_refused() {
        for bad in [
            "nothing=eq.1",
            "id=1",
            "id=regexp.x",
            "select=id,tenant_id",
            "order=1;drop table x",
            "id=in.(a",
            "limit=many",
            "id=eq.%00",
            "tenant_id=eq.x",
        ] {
            assert!(parse(table(), bad).is_err(), "{bad}");
        }
        assert_eq!(listed("()"), Some(vec![]));
        assert_eq!(listed(r#"("a\"b",c)"#), Some(vec!["a\"b".into(), "c".into()]));
        assert_eq!(listed(r#"("a)"#), None);
    }
}
