//! Tenants, for the operator of the installation: the list, and the page of one, where it can be forgotten.

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::shown::clipped;
use domain::{Scope, TenantId};
use engine::{ActError, forgetting, tenants};
use serde::Deserialize;
use store::tenants::Tenant;
use uuid::Uuid;

use super::flash::flashes;
use super::layout::Layout;
use super::text::When;
use super::{Posted, Visitor, forgotten, html};
use crate::api::error::ApiError;
use crate::api::extract::{Path, Query};
use crate::app::App;

const HERE: &str = "/settings/tenants";

#[derive(Template)]
#[template(path = "tenants.html")]
struct TenantsPage {
    layout: Layout,
    rows: Vec<Row>,
}

struct Row {
    href: String,
    name: String,
    state: &'static str,
    made: When,
}

fn state(tenant: &Tenant) -> &'static str {
    match (tenant.is_operator, tenant.forgetting_at) {
        (true, _) => "operates this installation",
        (false, Some(_)) => "being forgotten",
        (false, None) => "in service",
    }
}

/// Others are told that there is no such page.
pub(super) fn operating(visitor: &domain::Caller) -> Result<(), ApiError> {
    if visitor.operates() { Ok(()) } else { Err(ApiError::NotFound("page")) }
}

pub(crate) async fn list(State(app): State<App>, visitor: Visitor) -> Result<impl IntoResponse, ApiError> {
    operating(&visitor)?;
    let now = app.env.clock.now();
    let row = |tenant: &Tenant| Row {
        href: format!("{HERE}/{}", tenant.id),
        name: clipped(&tenant.name, 100),
        state: state(tenant),
        made: When::new(tenant.created_at, now),
    };
    html(&TenantsPage {
        layout: Layout::new(&visitor, now, "Tenants", HERE),
        rows: tenants::list(&app.env).await?.iter().map(row).collect(),
    })
}

flashes! {
    Flash {
        Refused = "refused": "This tenant operates the installation, so it cannot be forgotten.",
    }
}

#[derive(Deserialize)]
pub(crate) struct DoneQuery {
    #[serde(default)]
    done: Flash,
}

#[derive(Template)]
#[template(path = "tenant.html")]
struct TenantPage {
    layout: Layout,
    flash: &'static str,
    id: String,
    name: String,
    state: &'static str,
    made: When,
    /// Says how much forgetting it would remove.
    counted: String,
    may_forget: bool,
    csrf: String,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<Uuid>,
    Query(query): Query<DoneQuery>,
) -> Result<impl IntoResponse, ApiError> {
    operating(&visitor)?;
    let tenant = tenants::get(&app.env, TenantId(id)).await?;
    let counted = tenants::count(&app.env, TenantId(id)).await?;
    let now = app.env.clock.now();
    html(&TenantPage {
        layout: Layout::new(&visitor, now, clipped(&tenant.name, 60), HERE),
        flash: query.done.in_words(),
        id: id.to_string(),
        name: clipped(&tenant.name, 100),
        state: state(&tenant),
        made: When::new(tenant.created_at, now),
        counted: forgetting::counted(&counted),
        may_forget: !tenant.is_operator && tenant.forgetting_at.is_none(),
        csrf: visitor.csrf(),
    })
}

#[derive(Deserialize)]
pub(crate) struct Nothing {}

pub(crate) async fn forget(
    State(app): State<App>,
    Path(id): Path<Uuid>,
    posted: Posted<Nothing>,
) -> Result<Response, ApiError> {
    let Posted { caller, form: Nothing {} } = posted;
    caller.need(Scope::Service)?;
    operating(&caller)?;
    match tenants::forget(&app.env, &caller, TenantId(id)).await {
        Ok(_) => Ok(forgotten::Flash::Asked.back(forgotten::HERE)),
        Err(ActError::Conflict(_)) => Ok(Flash::Refused.back(&format!("{HERE}/{id}"))),
        Err(error) => Err(error.into()),
    }
}
