//! Consent in a real browser: a person who is not signed in signs in, sees who asks, leaves a right out, and goes back to the program.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::Scope;
use fantoccini::Locator;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Desk, Elsewhere};
use crate::app::client;
use crate::browser::Browser;

const SOON: Duration = Duration::from_secs(10);
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

#[tokio::test(flavor = "multi_thread")]
async fn a_person_signs_in_reads_who_asks_and_goes_back_with_a_code() {
    let desk = Desk::new().await;
    let key = desk.key(&[Scope::Service]).await;
    // The program, which listens on this device.
    let mut program = Elsewhere::start("text/html", |_| "You may close this page.".into()).await;
    let back = format!("{}/cb", program.url);
    let wanted = json!({ "client_name": "Desk helper", "redirect_uris": [back] });
    let registered: Value = client()
        .post(format!("{}/assistants/register", desk.app.url))
        .json(&wanted)
        .send()
        .await
        .expect("an answer")
        .json()
        .await
        .expect("JSON");
    let id = registered["client_id"].as_str().expect("an id").to_owned();
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER));
    let mut address = reqwest::Url::parse(&format!("{}/assistants/authorize", desk.app.url)).expect("a url");
    address.query_pairs_mut().extend_pairs([
        ("response_type", "code"),
        ("client_id", &id),
        ("redirect_uri", &back),
        ("scope", "read write"),
        ("state", "7"),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
    ]);

    let browser = Browser::start().await;
    browser.goto(address.as_str()).await;
    assert!(browser.shows("Sign in to Tributary", SOON).await, "{}", browser.text().await);
    let field = browser.client.find(Locator::Css("#key")).await.expect("a field");
    field.send_keys(key.reveal()).await.expect("typed");
    browser.client.find(Locator::Css("#signin form button")).await.expect("a button").click().await.expect("pressed");
    assert!(browser.shows("Let Desk helper in?", SOON).await, "{}", browser.text().await);
    let text = browser.text().await;
    assert!(text.contains("a program on this device") && text.contains("Nobody has checked its name"), "{text}");
    browser.photograph("consent").await;
    browser.client.find(Locator::Css("input[name=write]")).await.expect("a right").click().await.expect("left out");
    let allow = browser.client.find(Locator::Css("button[value=allow]")).await.expect("a button");
    allow.click().await.expect("pressed");
    assert!(
        browser.shows("You may close this page", SOON).await,
        "the policy keeps the browser here: {}",
        browser.text().await
    );
    let asked = program.asked().await;
    let query = asked.strip_prefix("/cb?").expect("the address that it registered");
    let code = query.split('&').find_map(|part| part.strip_prefix("code=")).expect("a code").to_owned();
    assert!(query.contains("state=7") && query.contains("iss="), "{query}");
    let code = percent_encoding::percent_decode_str(&code).decode_utf8().expect("text").into_owned();
    let form = [
        ("grant_type", "authorization_code"),
        ("client_id", &id),
        ("code", &code),
        ("redirect_uri", &back),
        ("code_verifier", VERIFIER),
    ];
    let granted: Value = client()
        .post(format!("{}/assistants/token", desk.app.url))
        .form(&form)
        .send()
        .await
        .expect("an answer")
        .json()
        .await
        .expect("JSON");
    assert_eq!(granted["scope"], "read", "{granted}");

    browser.goto(&format!("{}/settings/assistants", desk.app.url)).await;
    assert!(browser.shows("Desk helper", SOON).await);
    browser.photograph("assistants").await;
    browser.goto(&format!("{}/settings/assistants/use", desk.app.url)).await;
    assert!(browser.shows("Claude Desktop", SOON).await);
    browser.photograph("use_with").await;
    browser.close().await;
}
