//! `complete_activity`: the result of a claimed activity. A late one overwrites nothing.

use domain::{ActivityId, Scope};
use engine::activities::processed;
use futures_util::FutureExt as _;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Hints, Spec, read, text};
use crate::mcp::Asking;
use crate::mcp::answer::{Answer, Refusal};

pub(super) static SPEC: Spec = Spec {
    name: "complete_activity",
    title: "Complete an activity",
    description: "Stores what you made of a claimed activity, such as {\"summary\": \"…\", \"facts\": […]}, and ends it. Only with the lock_epoch of your own claim; \
                  if others have it meanwhile, nothing is changed.",
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
        "result": { "type": "object", "description": "What you made of it, up to 256 KiB; `summary` and `transcript` are searched" },
    });
    (properties, &["id", "lock_epoch", "result"])
}

/// The answer of this tool and of `fail_activity`.
pub(super) fn output() -> (Value, &'static [&'static str]) {
    let properties = json!({
        "id": text("The activity's id"),
        "status": text("completed or failed"),
        "link": text("Its page"),
    });
    (properties, &["id", "status"])
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    id: ActivityId,
    lock_epoch: i32,
    result: Map<String, Value>,
}

async fn run(asking: &Asking, arguments: Value) -> Result<Answer, Refusal> {
    let Arguments { id, lock_epoch, result } = read(arguments)?;
    processed::complete(&asking.app.env, &asking.caller, id, lock_epoch, Value::Object(result)).await?;
    ended(asking, id, "completed")
}

pub(super) fn ended(asking: &Asking, id: ActivityId, status: &str) -> Result<Answer, Refusal> {
    let link = format!("{}/activities/{id}", asking.app.env.config.base_url());
    Answer::new(&json!({ "id": id, "status": status, "link": link }), None)
}
