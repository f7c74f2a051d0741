//! Retention: what is removed after a while, and what stays until somebody removes it.

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use domain::shown::{capitalised, plural};
use store::retention::{RULES, Rule};

use super::layout::Layout;
use super::{Visitor, html};
use crate::api::error::ApiError;
use crate::app::App;

#[derive(Template)]
#[template(path = "retention.html")]
struct RetentionPage {
    layout: Layout,
    rows: Vec<Row>,
}

struct Row {
    what: String,
    table: &'static str,
    kept: String,
}

pub(crate) async fn show(State(app): State<App>, visitor: Visitor) -> Result<impl IntoResponse, ApiError> {
    html(&RetentionPage {
        layout: Layout::new(&visitor, app.env.clock.now(), "Retention", "/settings/retention"),
        rows: RULES.iter().map(Row::new).collect(),
    })
}

impl Row {
    fn new(rule: &Rule) -> Self {
        Self { what: capitalised(rule.what), table: rule.table, kept: plural(rule.keep_days.into(), "day", "days") }
    }
}
