//! The form of every request, and the meaning of every answer.

use serde_json::json;

use super::super::http::{Api, ApiAnswer, Bounds};
use super::*;

static LIMIT: Limit = Limit { name: "test", units: 1, per_secs: 1 };

#[derive(Debug, serde::Deserialize)]
struct Told {
    n: u32,
}

/// Short, or the test would be long.
fn api(url: &str, provider: Provider) -> Api {
    let mut api = Api::new(&Http::new().expect("a client"), url, provider);
    api.json = Bounds { total: Duration::from_secs(2), idle: Duration::from_millis(200), bytes: 4_096 };
    api
}

/// Returns the result of one answer.
async fn asked(
    provider: Provider,
    reply: impl Fn() -> Reply + Send + Sync + 'static,
) -> Result<ApiAnswer<Told>, PullError> {
    let server = Server::start(move |_| reply()).await;
    let person = Person::new();
    let answer = api(&server.url, provider).get(&person.account(), &[&LIMIT], "/a", &[]).await;
    answer.map_err(PullError::from)
}

async fn outcome(reply: impl Fn() -> Reply + Send + Sync + 'static) -> String {
    match asked(&hubspot::SPEC, reply).await {
        Ok(answer) => format!("{}", answer.body.n),
        Err(error) => short(&error),
    }
}

#[tokio::test]
async fn a_request_carries_the_bearer_and_asks_for_nothing_packed_after_its_turn() {
    let server = Server::start(|_| ok(json!({ "n": 7 }))).await;
    let person = Person::new();
    let api = api(&server.url, &hubspot::SPEC);
    let limits = [&LIMIT, &LIMIT];
    let query = [("q", "a b&c='d'"), ("after", "%~!")];
    let answer: ApiAnswer<Told> = api.get(&person.account(), &limits, "/a", &query).await.expect("an answer");
    assert_eq!(answer.body.n, 7);
    assert_eq!(answer.answered_at.map(|time| time.to_rfc3339()).as_deref(), Some("2026-11-15T12:00:00+00:00"));
    let _: ApiAnswer<Told> = api.post(&person.account(), &[], "/b", &json!({ "x": 1 })).await.expect("an answer");

    let asked = server.asked();
    assert_eq!(asked[0].line, "GET /a?q=a b&c='d'&after=%~!");
    let head = asked[0].head.to_ascii_lowercase();
    assert!(head.contains("authorization: bearer canary-token-7f3a\r\n"), "{head}");
    assert!(head.contains("accept-encoding: identity\r\n") && !head.contains("gzip"), "{head}");
    assert_eq!((asked[1].line.as_str(), asked[1].json()), ("POST /b", json!({ "x": 1 })));
    assert_eq!(*person.pace.0.lock().expect("the count"), ["test", "test"]);
}

#[tokio::test]
async fn a_good_status_is_not_yet_a_good_answer() {
    let page = "Content-Type: text/html; charset=utf-8\r\n";
    let json = "Content-Type: application/json\r\n";
    for (headers, body, expected) in [
        (json, &br#"{"n":7}"#[..], "7"),
        (json, br#"{"n":7,"m":[1]}"#, "7"),
        ("", br#"{"n":7}"#, "7"),
        (page, b"<html>Log in</html>", "unreadable: HubSpot gave a web page instead of data"),
        (json, b"<html>Log in</html>", "unreadable: HubSpot gave an answer that is not JSON"),
        (json, b"", "unreadable: HubSpot gave an answer that is cut off"),
        (json, br#"{"n":7"#, "unreadable: HubSpot gave an answer that is cut off"),
        (json, br#"{"n":"7"}"#, "unreadable: HubSpot gave an answer of another form"),
        (json, br#"[]"#, "unreadable: HubSpot gave an answer of another form"),
        (json, b"{\"n\":7,\"m\":\"\xff\xfe\"}", "unreadable: HubSpot gave an answer that is no UTF-8"),
        (json, b"\0\0\0\0", "unreadable: HubSpot gave an answer that is not JSON"),
        (
            "Content-Encoding: gzip\r\n",
            b"\x1f\x8b\x08\0\0\0\0\0",
            "unreadable: HubSpot gave a packed answer, which nobody asked for",
        ),
        ("Content-Encoding: identity\r\n", br#"{"n":7}"#, "7"),
        (json, &[b' '; 5_000], "unreadable: HubSpot gave an answer of more than 4096 bytes"),
    ] {
        assert_eq!(outcome(move || raw_reply("200 OK", headers, body)).await, expected);
    }
}

/// F18.
#[tokio::test]
async fn a_connection_that_is_slow_silent_endless_or_cut_passes() {
    let cut = || Reply { bytes: b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"n\":".to_vec(), is_silent: false };
    assert_eq!(outcome(cut).await, "passing: the connection to HubSpot broke: unexpected end of file");
    let silent = || Reply { bytes: b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"n\":".to_vec(), is_silent: true };
    assert_eq!(outcome(silent).await, "passing: HubSpot fell silent in the middle of an answer");
    let mute = || Reply { bytes: Vec::new(), is_silent: true };
    assert_eq!(outcome(mute).await, "passing: HubSpot did not answer in time");
    let gone = || Reply { bytes: Vec::new(), is_silent: false };
    assert!(outcome(gone).await.starts_with("passing: the connection to HubSpot broke"));
    let endless = || {
        let body = format!("1000\r\n{}\r\n", " ".repeat(0x1000)).repeat(3);
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        Reply { bytes: format!("{head}{body}").into_bytes(), is_silent: true }
    };
    assert_eq!(outcome(endless).await, "unreadable: HubSpot gave an answer of more than 4096 bytes");
    let nobody = api("http://127.0.0.1:1", &hubspot::SPEC);
    let person = Person::new();
    let refused = nobody.get::<Told>(&person.account(), &[], "/a", &[]).await.map_err(PullError::from);
    assert_eq!(short(&refused.expect_err("nobody")), "passing: HubSpot could not be reached: connection refused");
    let nowhere = api("not a url", &hubspot::SPEC).get::<Told>(&person.account(), &[], "/a", &[]).await;
    let words = "passing: HubSpot cannot be asked: check its address in the settings";
    assert_eq!(short(&PullError::from(nowhere.expect_err("no URL"))), words);
}

#[tokio::test]
async fn a_refusal_says_what_to_do_and_never_what_the_provider_wrote() {
    let body = r#"{"category":"MISSING_SCOPES","message":"canary"}"#;
    for (line, headers, body, expected) in [
        ("401 Unauthorized", "", body, "token: HubSpot refused the token"),
        ("403 Forbidden", "", body, "refused: HubSpot refused what we asked for (MISSING_SCOPES)"),
        ("403 Forbidden", "", "<html>canary</html>", "refused: HubSpot refused what we asked for (http_403)"),
        ("400 Bad Request", "", "{}", "refused: HubSpot refused what we asked for (http_400)"),
        ("404 Not Found", "", "", "refused: HubSpot refused what we asked for (http_404)"),
        ("302 Found", "Location: /elsewhere\r\n", "", "refused: HubSpot refused what we asked for (http_302)"),
        // A word that is in the token may be a piece of it.
        ("403 Forbidden", "", r#"{"category":"7f3a"}"#, "refused: HubSpot refused what we asked for (http_403)"),
        ("500 Oops", "", "", "passing: HubSpot is not well (500)"),
        ("503 Busy", "Retry-After: 7\r\n", "canary", "wait: HubSpot asked us to wait 7 s"),
        ("503 Busy", "Retry-After: soon\r\n", "canary", "passing: HubSpot is not well (503)"),
        ("500 Oops", "Retry-After: 7\r\n", "", "passing: HubSpot is not well (500)"),
        ("423 Locked", "", body, "passing: HubSpot is not well (423, MISSING_SCOPES)"),
        ("477 Moving", "", "", "passing: HubSpot is not well (477)"),
        ("408 Late", "", "", "passing: HubSpot is not well (408)"),
        ("429 Slow", "Retry-After: 7\r\n", "", "wait: HubSpot asked us to wait 7 s"),
        ("429 Slow", "Retry-After: 0\r\n", "", "wait: HubSpot asked us to wait 0 s"),
        ("429 Slow", "Retry-After: -7\r\n", "", "wait: HubSpot asked us to wait 10 s"),
        ("429 Slow", "Retry-After: soon\r\n", "", "wait: HubSpot asked us to wait 10 s"),
        ("429 Slow", "Retry-After: 99999999999999999999\r\n", "", "wait: HubSpot asked us to wait 86400 s"),
        ("429 Slow", "", "", "wait: HubSpot asked us to wait 10 s"),
        (
            "429 Slow",
            "",
            r#"{"message":"You have reached your secondly limit."}"#,
            "wait: HubSpot asked us to wait 1 s",
        ),
        (
            "429 Slow",
            "Date: Sun, 15 Nov 2026 12:00:00 GMT\r\nRetry-After: Sun, 15 Nov 2026 12:02:00 GMT\r\n",
            "",
            "wait: HubSpot asked us to wait 120 s",
        ),
        (
            "429 Slow",
            "Date: Sun, 15 Nov 2026 12:00:00 GMT\r\n",
            r#"{"policyName":"DAILY"}"#,
            "wait: HubSpot asked us to wait 3600 s",
        ),
    ] {
        assert_eq!(outcome(move || raw_reply(line, headers, body.as_bytes())).await, expected, "{line} {headers}");
    }
    let fault = r#"{"Fault":{"Error":[{"code":"610","Message":"canary"}],"type":"ValidationFault"}}"#;
    for (provider, line, body, expected) in [
        (&quickbooks::SPEC, "200 OK", fault, "refused: QuickBooks refused what we asked for (610)"),
        (&quickbooks::SPEC, "429 Slow", "", "wait: QuickBooks asked us to wait 60 s"),
        (
            &drive::SPEC,
            "403 Forbidden",
            r#"{"error":{"errors":[{"reason":"userRateLimitExceeded"}]}}"#,
            "wait: Google Drive asked us to wait 30 s",
        ),
    ] {
        let error = asked(provider, move || raw_reply(line, "", body.as_bytes())).await.expect_err("a refusal");
        assert_eq!(short(&error), expected);
    }
}

#[tokio::test]
async fn the_bearer_follows_no_redirect_and_comes_back_in_nothing_kept() {
    let elsewhere = Server::start(|_| ok(json!({ "n": 7 }))).await;
    let location = format!("Location: {}/b\r\n", elsewhere.url);
    let server = Server::start(move |_| raw_reply("307 Moved", &location, b"")).await;
    let person = Person::new();
    let answer = api(&server.url, &hubspot::SPEC).get::<Told>(&person.account(), &[], "/a", &[]).await;
    assert!(answer.is_err() && elsewhere.asked().is_empty());

    let echo = asked(&hubspot::SPEC, || raw_reply("200 OK", "", b"you sent canary-token-7f3a\0")).await;
    let Err(PullError::Unreadable { raw, .. }) = echo else { panic!("{echo:?}") };
    assert_eq!(raw, "you sent ***\u{fffd}");
}

#[tokio::test]
async fn of_what_cannot_be_read_the_beginning_is_kept() {
    let server = Server::start(|_| raw_reply("200 OK", "", "ü".repeat(20_000).as_bytes())).await;
    let api = Api::new(&Http::new().expect("a client"), &server.url, &hubspot::SPEC);
    let person = Person::new();
    let answer = api.get::<Told>(&person.account(), &[], "/a", &[]).await.map_err(PullError::from);
    let Err(PullError::Unreadable { raw, .. }) = answer else { panic!("{answer:?}") };
    assert_eq!(raw.len(), 16 * 1024);
}

#[tokio::test]
async fn a_pace_that_holds_requests_back_is_heard() {
    struct Never;
    impl Pace for Never {
        fn turn<'a>(&'a self, _: &'static Limit, _: u32) -> BoxFuture<'a, Result<(), PullError>> {
            Box::pin(async { Err(PullError::RateLimited { who: "us", retry_after: Duration::from_secs(5) }) })
        }
    }
    let server = Server::start(|_| ok(json!({ "n": 7 }))).await;
    let token = Secret::new("canary-token-7f3a");
    let account = Account { token: &token, account: "123", pace: &Never, places: &[] };
    let answer = api(&server.url, &hubspot::SPEC).get::<Told>(&account, &[&LIMIT], "/a", &[]).await;
    assert_eq!(short(&PullError::from(answer.expect_err("not yet"))), "wait: us asked us to wait 5 s");
    assert!(server.asked().is_empty());
}
