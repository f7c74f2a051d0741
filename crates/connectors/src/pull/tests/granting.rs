//! OAuth's calls on the wire.

use serde_json::json;

use super::super::oauth::{GrantError, OauthApp};
use super::*;

fn app(url: &str, provider: Provider) -> OauthApp {
    OauthApp::new(provider, &settings(provider, url)).expect("an app")
}

#[tokio::test]
async fn a_code_and_a_refresh_token_are_sent_once_the_way_each_provider_wants() {
    let server = Server::start(|_| ok(json!({ "access_token": "a", "refresh_token": "r2", "expires_in": 1800 }))).await;
    let http = Http::new().expect("a client");
    let (verifier, token) = (Secret::new("v"), Secret::new("r1"));
    for provider in ALL {
        let app = app(&server.url, provider);
        let grant = app.exchange(&http, "c&1", "https://app.example/cb", &verifier).await.expect("a grant");
        let scopes = provider.oauth.as_ref().expect("OAuth").scopes;
        assert_eq!((grant.access_token.reveal(), grant.scopes == scopes), ("a", true));
        let grant = app.refresh(&http, &token).await.expect("a grant");
        assert_eq!(grant.refresh_token.map(|token| token.reveal().to_owned()).as_deref(), Some("r2"));
        assert!(grant.scopes.is_empty());
    }
    let asked = server.asked();
    let sent = "&client_id=client-7&client_secret=canary-secret";
    let exchange =
        "grant_type=authorization_code&code=c%261&redirect_uri=https%3A%2F%2Fapp.example%2Fcb&code_verifier=v";
    let refresh = "grant_type=refresh_token&refresh_token=r1";
    assert_eq!(asked.len(), 2 * ALL.len());
    for (provider, asked) in ALL.iter().zip(asked.chunks(2)) {
        let is_basic = asked.iter().all(|asked| {
            asked.head.to_ascii_lowercase().contains("authorization: basic y2xpzw50ltc6y2fuyxj5lxnly3jlda==\r\n")
        });
        assert_eq!(is_basic, **provider == quickbooks::SPEC);
        let sent = if is_basic { "" } else { sent };
        assert_eq!(
            (asked[0].body.clone(), asked[1].body.clone()),
            (format!("{exchange}{sent}"), format!("{refresh}{sent}"))
        );
    }
}

#[tokio::test]
async fn what_was_sent_and_not_answered_may_have_happened_and_what_was_not_sent_has_not() {
    let http = Http::new().expect("a client");
    let token = Secret::new("canary-token");
    let outcome = async |app: OauthApp| match app.refresh(&http, &token).await {
        Err(GrantError::Passing(words)) => format!("passing: {words}"),
        Err(GrantError::Unknown(words)) => format!("unknown: {words}"),
        other => panic!("{other:?}"),
    };
    let gone = Server::start(|_| Reply { bytes: Vec::new(), is_silent: false }).await;
    assert!(outcome(app(&gone.url, &hubspot::SPEC)).await.starts_with("unknown: the connection to HubSpot broke"));
    let cut = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"access_token\":\"a\"";
    let cut = Server::start(move |_| Reply { bytes: cut.to_vec(), is_silent: false }).await;
    assert!(outcome(app(&cut.url, &hubspot::SPEC)).await.starts_with("unknown: the connection to HubSpot broke"));
    let ill = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 99\r\n\r\n<html>";
    let ill = Server::start(move |_| Reply { bytes: ill.to_vec(), is_silent: false }).await;
    assert_eq!(outcome(app(&ill.url, &hubspot::SPEC)).await, "passing: HubSpot is not well (502)");
    let page = Server::start(|_| raw_reply("200 OK", "Content-Type: text/html\r\n", b"<html>")).await;
    assert_eq!(outcome(app(&page.url, &hubspot::SPEC)).await, "unknown: HubSpot gave an answer without a token");
    let endless = Server::start(|_| raw_reply("200 OK", "", &[b' '; 100_000])).await;
    assert_eq!(outcome(app(&endless.url, &hubspot::SPEC)).await, "unknown: HubSpot gave an answer without an end");
    let nobody = outcome(app("http://127.0.0.1:1", &hubspot::SPEC)).await;
    assert_eq!(nobody, "passing: HubSpot could not be reached: connection refused");
    let nowhere = outcome(app("not a url", &hubspot::SPEC)).await;
    assert_eq!(nowhere, "passing: HubSpot cannot be asked: check its token address in the settings");
    for server in [&gone, &cut, &ill, &page, &endless] {
        assert_eq!(server.asked().len(), 1, "asked again");
    }
}

#[tokio::test]
async fn a_token_follows_no_redirect() {
    let elsewhere = Server::start(|_| ok(json!({ "access_token": "a" }))).await;
    let location = format!("Location: {}/token\r\n", elsewhere.url);
    let server = Server::start(move |_| raw_reply("307 Moved", &location, b"")).await;
    let http = Http::new().expect("a client");
    let moved = app(&server.url, &drive::SPEC).refresh(&http, &Secret::new("canary-token")).await;
    assert!(matches!(moved, Err(GrantError::Passing(_))) && elsewhere.asked().is_empty());
}
