//! `fail_activity`: why a claimed activity was not processed. It is tried again later, by the usual rules.

use domain::{ActivityId, Scope};
use engine::activities::processed;
use futures_util::FutureExt as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::complete_activity::{ended, output};
use super::{Hints, Spec, read, text};
use crate::mcp::Asking;
use crate::mcp::answer::{Answer, Refusal};

pub(super) static SPEC: Spec = Spec {
    name: "fail_activity",
    title: "Fail an activity",
    description: "Says that you could not process a claimed activity, and why. It is tried again later, a few times. Only with the lock_epoch of your own claim.",
    scope: Scope::Agent,
    hints: Hints::Acts,
    input,
    output,
    run: |asking, arguments| run(asking, arguments).boxed(),
};

fn input() -> (Value, &'static [&'static str]) {
    let properties = json!({
        "id": text("The activity's id"),
        "lock_epoch": { "type": "integer", "description": "As claim_activity gave it" },
        "reason": text("Why, in a sentence for the people who look into it"),
    });
    (properties, &["id", "lock_epoch", "reason"])
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    id: ActivityId,
    lock_epoch: i32,
    reason: String,
}

async fn run(asking: &Asking, arguments: Value) -> Result<Answer, Refusal> {
    let Arguments { id, lock_epoch, reason } = read(arguments)?;
    processed::fail(&asking.app.env, &asking.caller, id, lock_epoch, &reason).await?;
    ended(asking, id, "failed")
}
