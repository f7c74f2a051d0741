//! Forty things that somebody new wants to do, each done in a real browser from Home by what the pages say, and looked at from elsewhere: by the
//! API, in the database, in the file that was saved. The number of clicks of each is a promise.

mod connecting;
mod inbox;
mod knowing;
mod settings;
mod walk;

use domain::{Scope, Secret};
use serde_json::Value;
use testkit::wait_until;

use crate::app::client;
use crate::browser::Browser;
use crate::source_pages::House;
use walk::{SOON, Walk};

type Tasks = &'static [(&'static str, u32)];

/// Every task with its clicks, from Home. Enter, a choice in a list and a file that is chosen are a click each; typing is none.
const CONNECTING: Tasks = &[
    ("Sign in with a link", 1),
    ("Fill an empty house with sample data", 1),
    ("Connect a HubSpot account", 4),
    ("Sync an account now", 2),
    ("Pause an account and resume it", 3),
    ("Reconnect an account that was locked out", 1),
    ("Add a webhook for GitHub", 4),
    ("Copy a webhook's test command", 3),
    ("Give a webhook to somebody", 3),
    ("Replace a webhook's secrets", 3),
    ("See why a request was refused and disable the webhook", 2),
];
const SETTINGS: Tasks = &[
    ("Invite somebody", 3),
    ("Change somebody's role", 4),
    ("End somebody's session", 3),
    ("Make a key for a program", 3),
    ("Copy a command from the API's page", 3),
    ("Revoke a key", 4),
    ("Go to a page by keyboard", 2),
    ("See the cost on a phone", 3),
];
const KNOWING: Tasks = &[
    ("Narrow a search to a type and save it", 4),
    ("Ask who owes us money", 3),
    ("Upload a file", 4),
    ("Write a note about a client", 4),
    ("Add a task about a person", 3),
    ("Delete a document", 4),
    ("Let a deleted document in again", 3),
    ("Correct a client's industry", 3),
    ("Withdraw a correction", 3),
    ("Merge two clients and undo it", 4),
    ("Split a record off a client", 3),
    ("Correct a person's name", 5),
    ("Merge two people and undo it", 6),
    ("Forget a person", 5),
];
const INBOX: Tasks = &[
    ("Link an unrecognised sender to a person", 3),
    ("Make a new contact of a sender", 3),
    ("Ignore a sender", 3),
    ("Narrow the inbox and export it", 5),
    ("See why an event failed and skip it", 2),
    ("Retry all that failed", 1),
    ("Dismiss an alert", 1),
];

#[test]
fn there_are_forty_tasks() {
    let all: Vec<_> = [CONNECTING, SETTINGS, KNOWING, INBOX].concat();
    for (task, clicks) in &all {
        println!("{task}: {clicks}");
    }
    assert_eq!(all.len(), 40);
}

/// An installation with a worker and accounts at fake providers, a browser, and a key with which a test looks at what came of a task.
struct Day {
    house: House,
    browser: Browser,
    key: Secret,
    /// The tasks that are left.
    tasks: Tasks,
}

impl Day {
    /// The browser is signed in.
    async fn new(tasks: Tasks) -> Self {
        let house = House::new().await;
        let browser = Browser::signed_in(&house.app, &house.t.world).await;
        Self::with(house, browser, tasks).await
    }

    async fn with(house: House, browser: Browser, tasks: Tasks) -> Self {
        let key = house.t.world.caller(house.t.world.tenant_id, &[Scope::Service]).await.1;
        Self { house, browser, key, tasks }
    }

    /// Does the next task and counts.
    async fn task<T>(&mut self, task: &'static str, act: impl AsyncFnOnce(&Self, &mut Walk) -> T) -> T {
        let ((expected, clicks), left) = self.tasks.split_first().expect("a task that is in the table");
        assert_eq!(task, *expected, "the order of the table");
        self.tasks = left;
        let mut walk = Walk::begin(&self.browser, &self.house.app.url, task).await;
        let came_of_it = act(self, &mut walk).await;
        assert_eq!(walk.clicks(), *clicks, "the clicks of “{task}”");
        came_of_it
    }

    async fn end(self) {
        assert!(self.tasks.is_empty(), "these were not done: {:?}", self.tasks);
        self.browser.close().await;
    }

    async fn ask(&self, method: &str, path: &str, body: Value) -> Value {
        let url = format!("{}/api/v1{path}", self.house.app.url);
        let request = client().request(method.parse().expect("a method"), url).bearer_auth(self.key.reveal());
        let request = if body.is_null() { request } else { request.json(&body) };
        let answer = request.send().await.expect("an answer");
        assert!(answer.status().is_success(), "{method} {path}: {}", answer.status());
        answer.json().await.unwrap_or_default()
    }

    async fn get(&self, path: &str) -> Value {
        self.ask("GET", path, Value::Null).await
    }

    /// Waits until a count in the database is this one.
    async fn counts(&self, n: i64, sql: &str) {
        let is_so = wait_until(SOON, async || self.house.t.count(sql).await == n).await;
        assert!(is_so, "{} and not {n}: {sql}", self.house.t.count(sql).await);
    }
}

/// One of a list of the API's, by a field.
fn one<'a>(list: &'a Value, field: &str, value: &str) -> &'a Value {
    let found = list.as_array().into_iter().flatten().find(|one| one[field] == value);
    found.unwrap_or_else(|| panic!("no {field} is {value}: {list}"))
}
