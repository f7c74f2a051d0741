//! Spend: what vectors and answers of a paid service cost, and the model that search uses.

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use chrono::NaiveTime;
use domain::shown::dollars;
use engine::memory::moves::{self, Status};
use store::spend::Month;

use super::layout::Layout;
use super::text::{Figure, Form, Moment};
use super::{Visitor, html};
use crate::api::error::ApiError;
use crate::api::usage;
use crate::app::App;

#[derive(Template)]
#[template(path = "spend.html")]
struct SpendPage {
    layout: Layout,
    /// The model that search uses; none before anything was remembered.
    model: Option<ModelPanel>,
    /// The newest month first; none: nothing was paid for.
    months: Vec<MonthRow>,
    /// The most that a month may cost; empty: there is no cap.
    cap: String,
}

pub(crate) async fn show(State(app): State<App>, visitor: Visitor) -> Result<impl IntoResponse, ApiError> {
    let months = usage::load(&app, &visitor).await?;
    let memory = moves::own(&app.env, &visitor).await?;
    html(&SpendPage {
        layout: Layout::new(&visitor, app.env.clock.now(), "Spend", "/settings/spend"),
        model: memory.as_ref().map(ModelPanel::new),
        months: months.iter().map(MonthRow::new).collect(),
        cap: app.env.config.embed_cap_micros().map(dollars).unwrap_or_default(),
    })
}

/// The model that search uses, and how far the memory is on its way to another one.
struct ModelPanel {
    /// Whole sentences.
    story: String,
    percent: Option<i64>,
}

impl ModelPanel {
    fn new(status: &Status) -> Self {
        let model = &status.placed.model;
        let mut story = match &status.moving {
            Some(moving) => format!("This memory {}.", moves::in_words(moving)),
            None if status.can_be_asked => format!("Search uses the model {model}."),
            None => format!("Search goes by keyword alone: no embedder here has the model {model} of its vectors."),
        };
        if let Some(lang) = &status.placed.lang {
            story += &format!(" The language of its texts is {lang}.");
        }
        Self { story, percent: status.moving.as_ref().and_then(moves::percent) }
    }
}

/// One month of one model.
struct MonthRow {
    key: String,
    month: Moment,
    model: String,
    documents: Figure,
    tokens: Figure,
    cost: String,
    per_thousand: String,
}

impl MonthRow {
    fn new(month: &Month) -> Self {
        Self {
            key: format!("{} {}", month.month, month.model),
            month: Moment { at: month.month.and_time(NaiveTime::MIN).and_utc(), form: Form::Month },
            model: month.model.clone(),
            documents: Figure::new(month.documents),
            tokens: Figure::new(month.tokens),
            cost: dollars(month.cost_micros),
            per_thousand: month.per_thousand().map(dollars).unwrap_or_default(),
        }
    }
}
