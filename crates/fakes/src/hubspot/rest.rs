//! HubSpot's REST API, under its numbered paths and its dated ones.

use std::sync::Arc;

use axum::extract::{Extension, Path, Request, State};
use axum::http::Uri;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::clock::iso;
use crate::hubspot::answers::paging;
use crate::hubspot::fake::{HUBSPOT, hub_id, refused};
use crate::hubspot::search::Search;
use crate::hubspot::{Crm, TYPES};
use crate::manners::Manner;
use crate::oauth::grants::Caller;
use crate::request::pairs;
use crate::shapes::answer;
use crate::{Shared, lock};

const BASE: &str = "/hubspot";
const MOST_A_PAGE: usize = 100;

pub(crate) fn routes(_: &Arc<Shared>) -> Router<Arc<Shared>> {
    let mut crm = Router::new();
    for objects in ["/crm/v3/objects", "/crm/objects/{version}"] {
        crm = crm
            .route(&format!("{objects}/{{kind}}"), get(list))
            .route(&format!("{objects}/{{kind}}/{{id}}"), get(one))
            .route(&format!("{objects}/{{kind}}/search"), post(search))
            .route(&format!("{objects}/{{kind}}/batch/read"), post(read));
    }
    for associations in ["/crm/v4/associations", "/crm/associations/{version}"] {
        crm = crm.route(&format!("{associations}/{{from}}/{{to}}/batch/read"), post(read_associations));
    }
    let account = Router::new().route("/account-info/{version}/details", get(account_details));
    let guarded = crm.merge(account).route_layer(middleware::from_fn(guard));
    let open = Router::new().route("/oauth/{version}/access-tokens/{token}", get(token_details));
    Router::new().nest(BASE, guarded.merge(open))
}

#[derive(Deserialize)]
struct Kind {
    kind: String,
}

#[derive(Deserialize)]
struct One {
    kind: String,
    id: String,
}

#[derive(Deserialize)]
struct Ends {
    from: String,
    to: String,
}

#[derive(Deserialize)]
struct TokenPath {
    token: String,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Batch {
    inputs: Vec<Input>,
    #[serde(default)]
    properties: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Input {
    id: String,
}

/// The parameters of a list, over REST and over MCP.
pub(crate) struct ListQuery {
    pub limit: usize,
    pub after: Option<String>,
    pub properties: Vec<String>,
    pub associations: Vec<String>,
    pub is_archived: bool,
    /// The next page is this one again.
    pub repeats: bool,
}

/// A refusal of a request: HubSpot's category for it, and its words.
pub(crate) struct Refused(pub u16, pub &'static str, pub String);

impl Refused {
    pub fn invalid(message: impl Into<String>) -> Self {
        Self(400, "VALIDATION_ERROR", message.into())
    }

    pub fn answer(self) -> Response {
        refused(self.0, self.1, &self.2)
    }
}

impl Crm {
    /// Lists objects by id. The token of a page is the id to go on from, so that a record that goes away moves no other.
    pub fn list(&self, kind: &str, asked: &ListQuery, link: &str) -> Result<Value, Refused> {
        let first_id = match &asked.after {
            None => 0,
            Some(after) => after.parse().map_err(|_| Refused::invalid("The paging cursor 'after' is not valid."))?,
        };
        let mut objects =
            self.from(kind, first_id).filter(|(_, object)| object.archived_at.is_some() == asked.is_archived);
        let mut results = Vec::new();
        let mut next = Some(first_id);
        for (id, object) in objects.by_ref().take(asked.limit) {
            results.push(self.record(kind, id, object, &asked.properties, &asked.associations));
            next = Some(id + 1);
        }
        let next = match asked.repeats {
            true => Some(first_id),
            false => next.filter(|_| objects.next().is_some()),
        };
        let mut answer = json!({"results": results});
        if let Some(paging) = paging(next.map(|next| next.to_string()), link) {
            answer["paging"] = paging;
        }
        Ok(answer)
    }

    /// Reads objects by id. `true`: all were found.
    pub fn read(&self, kind: &str, asked: &Batch, now: String) -> Result<(Value, bool), Refused> {
        if asked.inputs.len() > MOST_A_PAGE {
            return Err(Refused::invalid(format!("Batch reads are limited to {MOST_A_PAGE} inputs.")));
        }
        let mut results = Vec::new();
        let mut missing = Vec::new();
        for Input { id } in &asked.inputs {
            let found = id.parse().ok().and_then(|id| Some((id, self.get(kind, id)?)));
            match found.filter(|(_, object)| object.archived_at.is_none()) {
                Some((id, object)) => results.push(self.record(kind, id, object, &asked.properties, &[])),
                None => missing.push(id),
            }
        }
        let mut answer = json!({"status": "COMPLETE", "results": results, "startedAt": now, "completedAt": now});
        if !missing.is_empty() {
            let message =
                format!("Could not get some {} objects, they may be deleted or not exist.", kind.to_uppercase());
            answer["numErrors"] = json!(1);
            answer["errors"] = json!([{"status": "error", "category": "OBJECT_NOT_FOUND", "message": message,
                "context": {"ids": missing}}]);
        }
        Ok((answer, missing.is_empty()))
    }
}

/// The plural, which paths and tools may spell either way.
pub(crate) fn known_type(kind: &str) -> Result<&'static str, Refused> {
    let known = TYPES.iter().find(|(singular, plural)| kind == *singular || kind == *plural);
    known
        .map(|(_, plural)| *plural)
        .ok_or_else(|| Refused::invalid(format!("Unable to infer object type from: {kind}")))
}

async fn guard(request: Request, next: Next) -> Response {
    let caller = request.extensions().get::<Caller>().filter(|caller| caller.provider == HUBSPOT);
    match caller {
        Some(caller) if caller.is_valid && !has_scopes(caller, request.uri().path()) => {
            refused(403, "MISSING_SCOPES", "This app hasn't been granted all required scopes to make this call.")
        }
        Some(caller) if caller.is_valid => next.run(request).await,
        Some(_) => {
            refused(401, "EXPIRED_AUTHENTICATION", "The OAuth token used to make this call expired 1 second(s) ago.")
        }
        None => refused(401, "INVALID_AUTHENTICATION", "Authentication credentials not found."),
    }
}

/// Every type that a path names wants a scope of its own. A token that nobody consented to may do everything.
fn has_scopes(caller: &Caller, path: &str) -> bool {
    let granted = |kind: &str| caller.scope.split(' ').any(|scope| scope == format!("crm.objects.{kind}.read"));
    let mut named =
        TYPES.iter().map(|(_, plural)| *plural).filter(|plural| path.split('/').any(|part| part == *plural));
    caller.scope.is_empty() || named.all(granted)
}

async fn list(
    State(shared): State<Arc<Shared>>,
    Path(Kind { kind }): Path<Kind>,
    manner: Option<Extension<Manner>>,
    uri: Uri,
) -> Response {
    let asked = pairs(&uri);
    let value = |name: &str| asked.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let page = || {
        let kind = known_type(&kind)?;
        let limit = value("limit").map_or(Ok(10), str::parse).map_err(|_| Refused::invalid("limit is not a number"))?;
        if !(1..=MOST_A_PAGE).contains(&limit) {
            return Err(Refused::invalid(format!("limit must be from 1 to {MOST_A_PAGE}, but was {limit}")));
        }
        let asked = ListQuery {
            limit: manner.as_ref().map_or(limit, |Extension(manner)| manner.page_rows(limit)),
            after: value("after").map(str::to_owned),
            properties: listed(&asked, "properties"),
            associations: listed(&asked, "associations"),
            is_archived: value("archived") == Some("true"),
            repeats: manner.as_deref() == Some(&Manner::RepeatToken),
        };
        let kept: Vec<_> =
            uri.query().unwrap_or_default().split('&').filter(|pair| !pair.starts_with("after=")).collect();
        let link = format!("{}{BASE}{}?{}", shared.url, uri.path(), kept.join("&"));
        lock(shared.records::<Crm>()).list(kind, &asked, &link)
    };
    page().map_or_else(Refused::answer, |page| answer(200, page))
}

/// Reads a list that is written with commas, as several parameters, or both.
fn listed(asked: &[(String, String)], name: &str) -> Vec<String> {
    let values = asked.iter().filter(|(known, _)| known == name).flat_map(|(_, value)| value.split(','));
    values.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty()).collect()
}

async fn one(State(shared): State<Arc<Shared>>, Path(One { kind, id }): Path<One>, uri: Uri) -> Response {
    let asked = pairs(&uri);
    let is_archived = asked.iter().any(|(name, value)| name == "archived" && value == "true");
    let found = || {
        let kind = known_type(&kind)?;
        let crm = lock(shared.records::<Crm>());
        let found = id.parse().ok().and_then(|id| Some((id, crm.get(kind, id)?)));
        let found = found.filter(|(_, object)| object.archived_at.is_some() == is_archived);
        let (id, object) = found.ok_or_else(|| Refused(404, "OBJECT_NOT_FOUND", "Object not found.".to_owned()))?;
        Ok(crm.record(kind, id, object, &listed(&asked, "properties"), &listed(&asked, "associations")))
    };
    found().map_or_else(Refused::answer, |record| answer(200, record))
}

async fn search(
    State(shared): State<Arc<Shared>>,
    Path(Kind { kind }): Path<Kind>,
    manner: Option<Extension<Manner>>,
    Json(asked): Json<Search>,
) -> Response {
    let now = shared.clock.now();
    let page = || {
        let kind = known_type(&kind)?;
        lock(shared.records::<Crm>()).search(kind, &asked, manner.as_deref(), now).map_err(Refused::invalid)
    };
    page().map_or_else(Refused::answer, |page| answer(200, page))
}

async fn read(
    State(shared): State<Arc<Shared>>,
    Path(Kind { kind }): Path<Kind>,
    Json(asked): Json<Batch>,
) -> Response {
    let now = iso(shared.clock.now());
    let batch = known_type(&kind).and_then(|kind| lock(shared.records::<Crm>()).read(kind, &asked, now));
    batch.map_or_else(Refused::answer, |(batch, is_whole)| answer(if is_whole { 200 } else { 207 }, batch))
}

async fn read_associations(
    State(shared): State<Arc<Shared>>,
    Path(Ends { from, to }): Path<Ends>,
    Json(asked): Json<Batch>,
) -> Response {
    let batch = || {
        let (from, to) = (known_type(&from)?, known_type(&to)?);
        let crm = lock(shared.records::<Crm>());
        let mut results = Vec::new();
        let mut errors = Vec::new();
        for Input { id } in &asked.inputs {
            match id.parse().ok().and_then(|id| crm.associations(from, id, to)) {
                Some(result) => results.push(result),
                None => errors.push(json!({"status": "error", "category": "OBJECT_NOT_FOUND",
                    "subCategory": "crm.associations.NO_ASSOCIATIONS_FOUND",
                    "message": format!("No {to} is associated with {from} {id}."),
                    "context": {"fromObjectId": [id], "toObjectType": [to]}})),
            }
        }
        let mut batch = json!({"status": "COMPLETE", "results": results});
        if !errors.is_empty() {
            batch["numErrors"] = json!(errors.len());
            batch["errors"] = json!(errors);
        }
        Ok((batch, errors.is_empty()))
    };
    batch().map_or_else(Refused::answer, |(batch, is_whole)| answer(if is_whole { 200 } else { 207 }, batch))
}

async fn account_details(Extension(caller): Extension<Caller>) -> Response {
    answer(
        200,
        json!({
            "portalId": hub_id(&caller.account),
            "accountType": "STANDARD",
            "timeZone": "US/Eastern",
            "companyCurrency": "USD",
            "additionalCurrencies": [],
            "utcOffset": "-05:00",
            "utcOffsetMilliseconds": -18_000_000,
            "uiDomain": "app.hubspot.com",
            "dataHostingLocation": "na1",
        }),
    )
}

/// The holder of a token may ask whose it is.
async fn token_details(State(shared): State<Arc<Shared>>, Path(TokenPath { token }): Path<TokenPath>) -> Response {
    let caller = shared.grants.caller(&token, shared.clock.now());
    match caller.filter(|caller| caller.provider == HUBSPOT && caller.is_valid) {
        None => refused(404, "OBJECT_NOT_FOUND", "access token not found"),
        Some(caller) => answer(
            200,
            json!({
                "token": token,
                "token_type": "access",
                "hub_id": hub_id(&caller.account),
                "hub_domain": format!("{}.example", caller.account),
                "user": HUBSPOT.email(&caller.account),
                "user_id": 7_512_346,
                "app_id": 1_234_567,
                "scopes": caller.scope.split_whitespace().collect::<Vec<_>>(),
                "expires_in": caller.expires_in,
            }),
        ),
    }
}
