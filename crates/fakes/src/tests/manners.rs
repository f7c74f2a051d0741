use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Browser;
use crate::{Fakes, HUBSPOT, Manner, RetryAfter};

const CONTACTS: &str = "/hubspot/crm/v3/objects/contacts";

async fn start() -> Browser {
    Browser::of(HUBSPOT, Fakes::with_fixtures().await).await
}

impl Browser {
    /// The bytes of the next list, answered in this manner.
    async fn bytes(&self, manner: Manner) -> Vec<u8> {
        self.fakes.next(CONTACTS, manner);
        let response = self.get(CONTACTS).send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        response.bytes().await.expect("a body").to_vec()
    }
}

#[tokio::test]
async fn rules_come_in_turn_and_end() {
    let browser = start().await;
    let fakes = &browser.fakes;
    fakes.nth(CONTACTS, 4, Manner::Status(404));
    fakes.next(CONTACTS, Manner::Status(500));
    fakes.next_n(CONTACTS, 2, Manner::Status(502));
    fakes.always("/hubspot/crm", Some(Manner::Status(503)));
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(browser.get_json(CONTACTS).await.0);
    }
    fakes.always("/hubspot/crm", None);
    statuses.push(browser.get_json(CONTACTS).await.0);
    assert_eq!(statuses, [500, 502, 502, 404, 503, 200]);
    assert_eq!(fakes.requests("/hubspot/crm"), 6);
    assert_eq!(fakes.requests("/hubspot/account"), 0);
    fakes.wait_for_requests(CONTACTS, 6).await;
}

#[tokio::test]
async fn limits_ask_to_wait_in_every_way() {
    let browser = start().await;
    let ways = [
        (RetryAfter::Seconds(30), Some("30")),
        (RetryAfter::Absent, None),
        (RetryAfter::Huge, Some("99999999999999999999")),
        (RetryAfter::Garbage, Some("soon; very")),
        (RetryAfter::Negative, Some("-30")),
    ];
    for (retry_after, header) in ways {
        browser.fakes.next(CONTACTS, Manner::RateLimited { retry_after });
        let response = browser.get(CONTACTS).send().await.expect("an answer");
        assert_eq!(response.headers().get("retry-after").map(|value| value.to_str().expect("text")), header);
        let (status, body) = super::json(response).await;
        assert_eq!((status, &body["policyName"]), (429, &json!("TEN_SECONDLY_ROLLING")));
    }
    browser.fakes.next(CONTACTS, Manner::DailyLimit { retry_after: RetryAfter::Date(60) });
    let response = browser.get(CONTACTS).send().await.expect("an answer");
    let date = response.headers()["retry-after"].to_str().expect("text").to_owned();
    let secs = chrono::DateTime::parse_from_rfc2822(&date).expect("a date").to_utc() - browser.fakes.now();
    assert!((55..=60).contains(&secs.num_seconds()));
    assert_eq!(super::json(response).await.1["policyName"], "DAILY");
    browser.fakes.next(CONTACTS, Manner::RateLimited { retry_after: RetryAfter::Absent });
    let (_, body) = browser.post_json("/hubspot/crm/v3/objects/contacts/search", json!({})).await;
    assert_eq!(body["message"], "You have reached your secondly limit.");
}

#[tokio::test]
async fn bodies_are_spoiled_as_named() {
    let browser = start().await;
    let whole = browser.bytes(Manner::Delay(Duration::ZERO)).await;
    let parses = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).is_ok();
    assert!(parses(&whole));
    assert!(!parses(&browser.bytes(Manner::Garbage).await));
    assert!(browser.bytes(Manner::Html).await.starts_with(b"<!DOCTYPE html>"));
    assert!(browser.bytes(Manner::Empty200).await.is_empty());
    assert_eq!(browser.bytes(Manner::CutJson).await, whole[..whole.len() / 2]);
    let wrong: Value = serde_json::from_slice(&browser.bytes(Manner::WrongJson).await).expect("JSON");
    assert!(!wrong["results"].is_array());
    let twice = String::from_utf8(browser.bytes(Manner::DuplicateKeys).await).expect("text");
    assert!(twice.contains(r#""id":"another","id":"51""#) && parses(twice.as_bytes()));
    assert!(String::from_utf8(browser.bytes(Manner::InvalidUtf8).await).is_err());
    let nul: Value = serde_json::from_slice(&browser.bytes(Manner::NulInStrings).await).expect("JSON");
    assert_eq!(nul["results"][0]["properties"]["firstname"], "\0Nora");
    assert_eq!(nul["results"][0]["id"], "51");
    browser.fakes.next("/hubspot/crm", Manner::Slow { per_byte: Duration::from_micros(10) });
    let (status, company) = browser.get_json("/hubspot/crm/v3/objects/companies/59").await;
    assert_eq!((status, &company["id"]), (200, &json!("59")));
}

#[tokio::test]
async fn connections_break_as_named() {
    let browser = start().await;
    for manner in [Manner::Reset, Manner::DropReply] {
        browser.fakes.next(CONTACTS, manner);
        assert!(browser.get(CONTACTS).send().await.is_err());
    }
    assert_eq!(browser.fakes.ledger().iter().map(|seen| seen.status).collect::<Vec<_>>(), [None, None]);

    browser.fakes.next(CONTACTS, Manner::Truncated);
    let mut response = browser.get(CONTACTS).send().await.expect("a head");
    let promised = response.content_length().expect("a length");
    let half = response.chunk().await.expect("half").expect("half");
    assert_eq!(half.len() as u64, promised / 2);
    assert!(response.chunk().await.is_err());

    browser.fakes.next(CONTACTS, Manner::Endless);
    let mut response = browser.get(CONTACTS).send().await.expect("a head");
    let mut n_bytes = 0;
    while n_bytes < 1_000_000 {
        n_bytes += response.chunk().await.expect("more").expect("more").len();
    }
}

#[tokio::test]
async fn page_tokens_are_repeated_and_lost() {
    let browser = start().await;
    let next = |page: &Value| page.pointer("/paging/next/after").and_then(Value::as_str).expect("a token").to_owned();
    browser.fakes.always(CONTACTS, Some(Manner::RepeatToken));
    let token = next(&browser.get_json(&format!("{CONTACTS}?limit=50&after=55")).await.1);
    assert_eq!(token, "55");
    assert_eq!(next(&browser.get_json(CONTACTS).await.1), "0");
    let (_, page) = browser.post_json(&format!("{CONTACTS}/search"), json!({"after": "5", "limit": 100})).await;
    assert_eq!(next(&page), "5");

    browser.fakes.always(CONTACTS, Some(Manner::LostToken));
    let (status, page) = browser.get_json(&format!("{CONTACTS}?limit=5")).await;
    assert_eq!(status, 200);
    assert_eq!(browser.get_json(&format!("{CONTACTS}?limit=5&after={}", next(&page))).await.0, 400);
    assert_eq!(browser.post_json(&format!("{CONTACTS}/search"), json!({"after": 5})).await.0, 400);
}

#[tokio::test]
async fn a_page_with_few_rows_or_none_is_not_the_last() {
    let browser = start().await;
    let rows = |page: &Value| page["results"].as_array().map(Vec::len);
    let next = |page: &Value| page.pointer("/paging/next/after").and_then(Value::as_str).map(str::to_owned);
    browser.fakes.next_n(CONTACTS, 2, Manner::ShortPage);
    browser.fakes.next(CONTACTS, Manner::EmptyPage);
    let (_, page) = browser.get_json(&format!("{CONTACTS}?limit=12")).await;
    assert_eq!((rows(&page), next(&page).as_deref()), (Some(4), Some("55")));
    let (_, page) = browser.post_json(&format!("{CONTACTS}/search"), json!({"limit": 12})).await;
    assert_eq!((rows(&page), next(&page).as_deref()), (Some(4), Some("4")));
    let (_, page) = browser.get_json(&format!("{CONTACTS}?limit=12&after=60")).await;
    assert_eq!((rows(&page), next(&page).as_deref()), (Some(0), Some("60")));
    let (_, page) = browser.get_json(&format!("{CONTACTS}?limit=12&after=60")).await;
    assert_eq!((rows(&page), next(&page)), (Some(3), None));
}

#[tokio::test]
async fn answers_take_as_long_as_set() {
    let browser = start().await;
    browser.fakes.set_latency("/hubspot", Duration::from_millis(30));
    let began = Instant::now();
    assert_eq!(browser.get_json(CONTACTS).await.0, 200);
    assert!(began.elapsed() >= Duration::from_millis(30));
    browser.fakes.behave();
    browser.fakes.next(CONTACTS, Manner::Delay(Duration::from_secs(60)));
    let late = browser.get(CONTACTS).timeout(Duration::from_millis(50)).send().await;
    assert!(late.expect_err("too late").is_timeout());
}

#[tokio::test]
async fn the_server_ends_with_its_last_handle() {
    let browser = start().await;
    let url = format!("{}{CONTACTS}", browser.fakes.url());
    let copy = browser.fakes.clone();
    let Browser { fakes, client, token } = browser;
    drop(fakes);
    assert!(client.get(&url).bearer_auth(&token).send().await.is_ok());
    drop(copy);
    tokio::task::yield_now().await;
    assert!(client.get(&url).bearer_auth(&token).send().await.is_err());
}
