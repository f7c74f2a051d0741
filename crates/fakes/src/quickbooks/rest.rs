//! QuickBooks' REST API: statements, change data capture, and one record at a time.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, Path, Request, State};
use axum::http::Uri;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::get;
use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::manners::Manner;
use crate::oauth::grants::Caller;
use crate::quickbooks::fake::{QUICKBOOKS, fault, unauthorized};
use crate::quickbooks::query::{Statement, parse_time};
use crate::quickbooks::{Books, ENTITIES, Entity, local_ms};
use crate::request::pairs;
use crate::shapes::{answer, error};
use crate::{Shared, lock};

/// Change data capture looks back so long and tells so many changes at once, of all entities together and without a second page.
const LOOK_BACK: TimeDelta = TimeDelta::days(30);
const MOST_CHANGES: usize = 1000;

pub(crate) fn routes(shared: &Arc<Shared>) -> Router<Arc<Shared>> {
    let company = Router::new()
        .route("/query", get(by_address).post(by_body))
        .route("/cdc", get(changes))
        .route("/companyinfo/{id}", get(company_info))
        .route("/{entity}/{id}", get(one))
        .route_layer(middleware::from_fn_with_state(shared.clone(), guard));
    Router::new().nest("/quickbooks/v3/company/{realm}", company)
}

#[derive(Deserialize)]
struct Realm {
    realm: String,
}

#[derive(Deserialize)]
struct One {
    entity: String,
    id: String,
}

/// QuickBooks' code for it, and its words.
struct Refused(&'static str, String);

/// A token opens one company.
async fn guard(
    State(shared): State<Arc<Shared>>,
    Path(Realm { realm }): Path<Realm>,
    request: Request,
    next: Next,
) -> Response {
    let caller = request.extensions().get::<Caller>().filter(|caller| caller.provider == QUICKBOOKS);
    let now = shared.clock.now();
    match caller.filter(|caller| caller.is_valid) {
        None => unauthorized(now),
        Some(caller) if QUICKBOOKS.account_id(&caller.account) != realm => error("/quickbooks", 403, now),
        Some(_) => next.run(request).await,
    }
}

async fn by_address(State(shared): State<Arc<Shared>>, manner: Option<Extension<Manner>>, uri: Uri) -> Response {
    let asked = pairs(&uri);
    let statement = asked.iter().find(|(name, _)| name == "query").map(|(_, statement)| statement.as_str());
    query(&shared, statement.unwrap_or_default(), manner)
}

async fn by_body(State(shared): State<Arc<Shared>>, manner: Option<Extension<Manner>>, statement: String) -> Response {
    query(&shared, &statement, manner)
}

fn query(shared: &Shared, statement: &str, manner: Option<Extension<Manner>>) -> Response {
    let manner = manner.map(|Extension(manner)| manner);
    respond(shared, |books, _| {
        let mut statement = Statement::parse(statement).map_err(|wrong| Refused("4000", wrong))?;
        match manner {
            Some(Manner::RepeatToken) => statement.start = 1,
            Some(manner) => statement.most = manner.page_rows(statement.most),
            None => {}
        }
        Ok(json!({"QueryResponse": statement.run(books)}))
    })
}

async fn changes(State(shared): State<Arc<Shared>>, uri: Uri) -> Response {
    let asked = pairs(&uri);
    let value = |name: &str| asked.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.as_str());
    respond(&shared, |books, now| {
        let since = parse_time(value("changedSince"));
        let since =
            since.ok_or_else(|| Refused("2020", "Required parameter changedSince is missing or no time".to_owned()))?;
        if now - since > LOOK_BACK {
            return Err(Refused("2010", "changedSince is more than 30 days ago".to_owned()));
        }
        let mut n_left = MOST_CHANGES;
        let mut lists = Vec::new();
        for name in value("entities").split(',') {
            let entity = ENTITIES.into_iter().find(|entity| entity.eq_ignore_ascii_case(name.trim()));
            let entity = entity.ok_or_else(|| Refused("2010", format!("Invalid entity: {name}")))?;
            let mut changed: Vec<_> = books.all(entity).filter(|(_, row)| row.updated_at >= since).collect();
            changed.sort_by_key(|(_, row)| row.updated_at);
            changed.truncate(n_left);
            n_left -= changed.len();
            let rows: Vec<Value> = changed.into_iter().map(|(_, row)| changed_record(row)).collect();
            lists.push(match rows.len() {
                0 => json!({}),
                n_rows => json!({entity: rows, "startPosition": 1, "maxResults": n_rows}),
            });
        }
        Ok(json!({"CDCResponse": [{"QueryResponse": lists}]}))
    })
}

/// A deleted record tells only that it is deleted.
fn changed_record(row: &Entity) -> Value {
    match row.is_deleted {
        false => row.record.clone(),
        true => json!({"domain": "QBO", "status": "Deleted", "Id": row.record["Id"],
            "MetaData": {"LastUpdatedTime": row.record["MetaData"]["LastUpdatedTime"]}}),
    }
}

async fn one(State(shared): State<Arc<Shared>>, Path(One { entity, id }): Path<One>) -> Response {
    respond(&shared, |books, _| {
        let name = ENTITIES.into_iter().find(|name| name.eq_ignore_ascii_case(&entity));
        let name = name.ok_or_else(|| Refused("2010", format!("Unsupported operation on {entity}")))?;
        let found = books.live(name).find(|(known, _)| known.to_string() == id);
        let (_, row) = found.ok_or_else(|| Refused("610", format!("Object Not Found: {entity} {id}")))?;
        Ok(json!({name: row.record}))
    })
}

async fn company_info(State(shared): State<Arc<Shared>>) -> Response {
    respond(&shared, |_, _| {
        Ok(json!({"CompanyInfo": {
            "CompanyName": "Harrow Ridge Equipment",
            "LegalName": "Harrow Ridge Equipment LLC",
            "Country": "US",
            "Email": {"Address": "office@harrowridge.example"},
            "FiscalYearStartMonth": "January",
            "domain": "QBO",
            "sparse": false,
            "Id": "1",
            "SyncToken": "4",
            "MetaData": {"CreateTime": "2026-02-02T07:00:00-08:00", "LastUpdatedTime": "2026-03-01T07:00:00-08:00"},
        }}))
    })
}

fn respond(shared: &Shared, act: impl FnOnce(&Books, DateTime<Utc>) -> Result<Value, Refused>) -> Response {
    let now = shared.clock.now();
    let books = lock(shared.records::<Books>());
    match act(&books, now) {
        Ok(mut body) => {
            body["time"] = json!(local_ms(now));
            answer(200, body)
        }
        Err(Refused(code, message)) => {
            let status = if books.faults_with_200 { 200 } else { 400 };
            fault(status, "ValidationFault", code, &message, now)
        }
    }
}
