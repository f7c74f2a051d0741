//! axe looks at every page in a real browser, in the light, in the dark and on a phone, and finds nothing.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::looks::office::Office;

/// The rules of WCAG 2.2 up to AA, and what is good practice beside.
const RUN: &str = "
    const done = arguments[arguments.length - 1];
    const values = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
    axe.run(document, { runOnly: { type: 'tag', values }, resultTypes: ['violations'] }).then(
        ({ violations }) => done(violations.flatMap(({ id, nodes }) =>
            nodes.map(({ html, any, all, none }) => `${id}: ${html.slice(0, 160)} ${[...any, ...all, ...none].map((check) => check.message).join('; ')}`))),
        (error) => done([String(error)]));
";

fn axe() -> String {
    let folder = std::env::var_os("NODE_PACKAGES_DIR").map(PathBuf::from).expect("NODE_PACKAGES_DIR; ./test sets it");
    std::fs::read_to_string(folder.join("node_modules/axe-core/axe.min.js")).expect("axe; ./test fetches it")
}

impl Browser {
    async fn findings(&self) -> Vec<String> {
        let found = self.client.execute_async(RUN, Vec::new()).await.expect("axe ran");
        found.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn axe_finds_nothing_on_any_page() {
    let office = Office::new().await;
    let browser = Browser::start().await;
    let source = axe();
    let mut pages = office.pages().await;
    pages.push(("connections_none", "/connections?q=zebra".into()));
    pages.push(("connect_drive", "/connections/accounts/new/google_drive".into()));
    pages.push(("channel_new_github", "/connections/webhooks/new/generic?sender=github".into()));
    pages.push(("search_none", "/search?q=zebra&type=note".into()));
    pages.push(("lane_all", "/system/queues/embed".into()));
    let mut wrong = Vec::new();
    // The pages for nobody first, because a visitor who is signed in does not see them.
    pages.sort_by_key(|(name, _)| *name != "signin");
    for (name, path) in &pages {
        browser.goto(&format!("{}{path}", office.app.url)).await;
        if *name != "signin" && browser.client.current_url().await.expect("a URL").path() == "/signin" {
            browser.typed("#key", office.key.reveal()).await;
            browser.click("#signin .button").await;
            assert!(browser.shows("Sign out", Duration::from_secs(8)).await, "{}", browser.text().await);
            browser.goto(&format!("{}{path}", office.app.url)).await;
        }
        browser.client.execute(&source, Vec::new()).await.expect("axe");
        for (scheme, is_phone) in [("light", false), ("dark", false), ("light", true), ("dark", true)] {
            let features = json!([{ "name": "prefers-color-scheme", "value": scheme }, { "name": "prefers-reduced-motion", "value": "reduce" }]);
            browser.devtools("Emulation.setEmulatedMedia", json!({ "features": features })).await;
            match is_phone {
                true => browser.on_a_phone().await,
                false => browser.devtools("Emulation.clearDeviceMetricsOverride", json!({})).await,
            }
            let place = format!("{name} ({scheme}{})", if is_phone { ", phone" } else { "" });
            wrong.extend(browser.findings().await.into_iter().map(|finding| format!("{place}: {finding}")));
        }
        browser.devtools("Emulation.clearDeviceMetricsOverride", json!({})).await;
    }
    // What opens over a page.
    browser.goto(&format!("{}/", office.app.url)).await;
    browser.script("document.querySelector('[data-opens=palette]').click()").await;
    browser.client.execute(&source, Vec::new()).await.expect("axe");
    wrong.extend(browser.findings().await.into_iter().map(|finding| format!("palette: {finding}")));
    browser.close().await;
    wrong.sort();
    assert!(wrong.is_empty(), "axe found {} things on {} pages:\n{}", wrong.len(), pages.len(), wrong.join("\n"));
}
