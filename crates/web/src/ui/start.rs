//! The first steps of an owner who is new here: a list on Home that stays until all of it is done.

use domain::Scope;
use engine::{channels, keys};
use store::claims::BUILT_IN;
use store::keys::Key;

use super::Visitor;
use crate::api::error::ApiError;
use crate::app::App;

pub(super) struct Steps {
    pub steps: Vec<Step>,
    pub n_done: usize,
    /// There is no account yet, so sample data can stand in for one.
    pub offers_samples: bool,
}

pub(super) struct Step {
    pub is_done: bool,
    pub title: &'static str,
    pub text: String,
    pub href: &'static str,
    pub label: &'static str,
}

impl Steps {
    /// The steps; none when all are done, and for visitors who may not take them.
    pub async fn load(app: &App, visitor: &Visitor, known: Known) -> Result<Option<Self>, ApiError> {
        if !visitor.may(Scope::Service) {
            return Ok(None);
        }
        let has_channel = !channels::list(&app.env, visitor).await?.is_empty();
        let has_key = keys::list(&app.env, visitor).await?.iter().any(is_programs);
        let Known { has_account, has_event, has_document, providers } = known;
        let step = |is_done, title, text: String, href, label| Step { is_done, title, text, href, label };
        let steps = vec![
            step(
                has_account,
                "Connect an account",
                format!("{providers}. It is read now, then kept up to date."),
                "/connections#add",
                "Connect",
            ),
            step(
                has_channel,
                "Receive webhooks",
                "Calls, texts, e-mails, a shop, a form: each sender gets an address of its own.".into(),
                "/connections#add",
                "Add a webhook",
            ),
            step(
                has_event,
                "See the first event arrive",
                "Open the webhook and press Send test event. It shows up here within a second.".into(),
                "/connections/webhooks",
                "Open Webhooks",
            ),
            step(
                has_document,
                "Find something",
                "Add a file, or wait for the first records. Then search for them, or ask a question.".into(),
                if has_document { "/search" } else { "/connections/files" },
                if has_document { "Search" } else { "Add a file" },
            ),
            step(
                has_key,
                "Let a program in",
                "Everything on these pages is in the API too. Each program gets a key of its own.".into(),
                "/settings/keys#new-title",
                "Create a key",
            ),
        ];
        let n_done = steps.iter().filter(|step| step.is_done).count();
        let is_done = n_done == steps.len();
        Ok((!is_done).then_some(Self { steps, n_done, offers_samples: !has_account }))
    }
}

/// The facts that Home has loaded anyway.
pub(super) struct Known {
    pub has_account: bool,
    pub has_event: bool,
    pub has_document: bool,
    /// The providers that can be connected, in words.
    pub providers: String,
}

/// Whether somebody made it: not the pages' own key, the built-in agent's, or a frame's.
fn is_programs(key: &Key) -> bool {
    let is_own = key.name == "dashboard" && key.person.is_none();
    !is_own && key.person.as_deref() != Some(BUILT_IN) && !key.name.starts_with("frame ") && key.revoked_at.is_none()
}
