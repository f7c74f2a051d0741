//! The cost of services' vectors and answers, by month and model.

use axum::Json;
use axum::extract::State;
use chrono::NaiveDate;
use domain::Caller;
use serde::Serialize;
use store::spend::{self, Month};
use utoipa::ToSchema;

use super::auth::Reading;
use super::error::ApiError;
use crate::app::App;

/// Rows shown: a year, also of somebody who tries several models.
const MOST_ROWS: i64 = 24;

#[derive(Serialize, ToSchema)]
pub struct Usage {
    /// The newest first. Vectors that are made on this machine cost nothing and are not among them. Answers have
    /// no documents.
    months: Vec<UsedMonth>,
    /// The largest cost of a month (`EMBED_MONTHLY_CAP`), in millionths of a dollar; none: no cap.
    cap_micros: Option<i64>,
}

#[derive(Serialize, ToSchema)]
pub struct UsedMonth {
    /// Its first day; months are UTC's.
    month: NaiveDate,
    model: String,
    calls: i64,
    documents: i64,
    texts: i64,
    tokens: i64,
    /// Millionths of a dollar.
    cost_micros: i64,
    cost_micros_per_1000_documents: Option<i64>,
}

/// Lists the cost of vectors and answers by month and model.
#[utoipa::path(get, path = "/api/v1/usage", tag = "sources", responses((status = 200, body = Usage)))]
pub(crate) async fn show(State(app): State<App>, Reading(caller): Reading) -> Result<Json<Usage>, ApiError> {
    let months = load(&app, &caller).await?.into_iter().map(UsedMonth::from).collect();
    Ok(Json(Usage { months, cap_micros: app.env.config.embed_cap_micros() }))
}

pub(crate) async fn load(app: &App, caller: &Caller) -> Result<Vec<Month>, ApiError> {
    Ok(app.env.db.read(caller, async |tx| spend::months(tx, caller.tenant_id, MOST_ROWS).await).await?)
}

impl From<Month> for UsedMonth {
    fn from(month: Month) -> Self {
        Self {
            cost_micros_per_1000_documents: month.per_thousand(),
            month: month.month,
            model: month.model,
            calls: month.calls,
            documents: month.documents,
            texts: month.texts,
            tokens: month.tokens,
            cost_micros: month.cost_micros,
        }
    }
}
