//! The subset of PostgREST that an agent written with supabase-js uses: `/rest/v1/rpc/*`, select, update and insert of two tables, and its own row of
//! `sales`. Whoever may write can insert activities. Errors are PostgREST's object, not problems, because its clients read nothing else.

mod activities;
mod error;
mod query;

use axum::body::Bytes;
use axum::extract::{Path, RawQuery, State};
use axum::http::header::{ACCEPT, CONTENT_RANGE, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use domain::{Notice, Op, Scope};
use serde_json::{Map, Value};
use store::rest::{self, Condition, FUNCTIONS, Function, Table, Wanted, Written};
use uuid::Uuid;

pub(crate) use self::error::RestError;
pub(crate) use self::query::condition;
use self::query::parse;
use super::auth::{Caller, Credential};
use super::error::ApiError;
use crate::app::App;
use crate::server::CallerAddress;

const ONE: &str = "application/vnd.pgrst.object+json";

/// A key that may act as an agent; a browser's session is not enough, because any page may send requests here.
async fn agent(app: &App, headers: &HeaderMap, address: CallerAddress) -> Result<Caller, RestError> {
    agent_with(app, Credential::of(headers), address).await
}

/// The caller with this credential, if it may act as an agent.
pub(crate) async fn agent_with(
    app: &App,
    shown: Option<Credential>,
    address: CallerAddress,
) -> Result<Caller, RestError> {
    holder(app, shown, address, Scope::Agent).await
}

/// The caller with this credential, if it is a key with this scope.
async fn holder(
    app: &App,
    shown: Option<Credential>,
    address: CallerAddress,
    scope: Scope,
) -> Result<Caller, RestError> {
    let credential = shown.ok_or(ApiError::Unauthenticated)?;
    if matches!(credential, Credential::Session(_)) {
        return Err(ApiError::CrossSite.into());
    }
    let caller = Caller::with(credential, address, app).await?;
    caller.need(scope)?;
    Ok(caller)
}

fn object(body: &Bytes) -> Result<Map<String, Value>, RestError> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    let malformed = || RestError::bad("PGRST102", "the body is not a JSON object");
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
    Extension(address): Extension<CallerAddress>,
    Path(name): Path<String>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, RestError> {
    if method == Method::OPTIONS {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let caller = agent(&app, &headers, address).await?;
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
    Extension(address): Extension<CallerAddress>,
    Path(name): Path<String>,
    method: Method,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Result<Response, RestError> {
    if method == Method::OPTIONS {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    // Who adds activities need not be an agent.
    let is_insert = method == Method::POST && name == "activities";
    let scope = if is_insert { Scope::Write } else { Scope::Agent };
    let caller = holder(&app, Credential::of(&headers), address, scope).await?;
    let unknown = || RestError::new(StatusCode::NOT_FOUND, "PGRST205", format!("there is no table {name:?}"));
    let table = Table::find(&name).ok_or_else(unknown)?;
    let mut wanted = parse(table, query.as_deref().unwrap_or_default())?;
    if table.is_own {
        if !matches!(method, Method::GET | Method::HEAD) {
            return Err(RestError::new(
                StatusCode::FORBIDDEN,
                "42501",
                "people are changed on their page, by API or command",
            ));
        }
        wanted.conditions.extend(Condition::of_person(table, caller.person_id));
    }
    match method {
        Method::GET | Method::HEAD => select(&app, &caller, table, &wanted, &headers).await,
        Method::PATCH => update(&app, &caller, table, &wanted, &headers, object(&body)?).await,
        Method::POST if is_insert => activities::insert(&app, &caller, table, wanted, &headers, &body).await,
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
        let rows = rest::update(tx, table, &body, wanted).await?;
        // A row that is there and no longer matches is a lock that was lost; no row would look like success.
        let is_lost = rows.is_empty() && rest::is_there(tx, table, &wanted.conditions).await?;
        tx.notify_all(notices(table, caller, &rows));
        Ok::<_, RestError>((rows.into_iter().map(|written| written.row).collect(), is_lost))
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
    let is_upsert = prefers(headers, "resolution=merge-duplicates");
    let row = app.env.db.write_as(caller, async |tx| {
        let written = rest::insert(tx, table, &body, is_upsert, &wanted.columns).await?;
        tx.notify_all(notices(table, caller, std::slice::from_ref(&written)));
        Ok::<_, RestError>(written.row)
    });
    let row = row.await?;
    if !prefers(headers, "return=representation") {
        return Ok(StatusCode::CREATED.into_response());
    }
    shaped(StatusCode::CREATED, vec![row], headers)
}

/// The notices of what was written. All devices of a tenant share one.
fn notices(table: &Table, caller: &Caller, written: &[Written]) -> Vec<Notice> {
    let news = written.iter().filter(|written| written.is_news);
    match table.name {
        "activities" => {
            let ids: Vec<Uuid> = news.map(|written| written.id).collect();
            store::activities::notices(caller.tenant_id, &ids, Op::Update)
        }
        _ => news.take(1).map(|_| engine::nodes::changed(caller.tenant_id)).collect(),
    }
}

/// Answers with rows as an array, or with the one row that `.single()` asks for.
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

/// Allows pages of other sites to read the answer: agents may run there. They show a key; cookies are of no use here.
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
