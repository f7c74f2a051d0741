use std::collections::HashMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use reqwest::header::LOCATION;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Browser, json as read};
use crate::{ALL, CLIENT_ID, CLIENT_SECRET, DRIVE, Fakes, HUBSPOT, Manner, Provider, QUICKBOOKS};

const BACK: &str = "http://127.0.0.1:9/callback";
const VERIFIER: &str = "a-verifier-that-is-long-enough-to-be-one-0123456789";

impl Browser {
    async fn authorize(&self, provider: Provider, more: &[(&str, &str)]) -> HashMap<String, String> {
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER));
        let mut pairs = vec![
            ("client_id", CLIENT_ID),
            ("redirect_uri", BACK),
            ("response_type", "code"),
            ("scope", "read"),
            ("state", "st&te"),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        pairs.extend(more);
        let url = format!("{}/oauth/{}/authorize", self.fakes.url(), provider.name);
        let url = Url::parse_with_params(&url, pairs).expect("a url");
        let response = self.client.get(url).send().await.expect("an answer");
        assert_eq!(response.status(), 302);
        let back = Url::parse(response.headers()[LOCATION].to_str().expect("text")).expect("a url");
        assert!(back.as_str().starts_with(BACK));
        back.query_pairs().into_owned().collect()
    }

    async fn token(&self, provider: Provider, fields: &[(&str, &str)]) -> (u16, Value) {
        let url = format!("{}/oauth/{}/token", self.fakes.url(), provider.name);
        let request = self.client.post(url);
        let response = match provider.oauth.is_basic {
            true => request.basic_auth(CLIENT_ID, Some(CLIENT_SECRET)).form(fields).send().await,
            false => {
                let client = [("client_id", CLIENT_ID), ("client_secret", CLIENT_SECRET)];
                request.form(&[&client, fields].concat()).send().await
            }
        };
        read(response.expect("an answer")).await
    }

    async fn exchange(&self, provider: Provider, code: &str, verifier: &str) -> (u16, Value) {
        let fields = [("grant_type", "authorization_code"), ("code", code), ("redirect_uri", BACK)];
        self.token(provider, &[&fields[..], &[("code_verifier", verifier)]].concat()).await
    }

    async fn refresh(&self, provider: Provider, token: &str) -> (u16, Value) {
        self.token(provider, &[("grant_type", "refresh_token"), ("refresh_token", token)]).await
    }
}

#[tokio::test]
async fn consent_leads_back_with_a_code_that_is_good_once() {
    for provider in ALL {
        let browser = Browser::of(provider, Fakes::start().await).await;
        browser.fakes.allow_redirect(BACK);
        let asked = [("access_type", "offline"), ("prompt", "consent"), ("scope", "offline_access")];
        let back = browser.authorize(provider, &asked).await;
        assert_eq!(back["state"], "st&te");
        assert_eq!(back.contains_key("realmId"), provider == QUICKBOOKS);
        let (status, pair) = browser.exchange(provider, &back["code"], VERIFIER).await;
        assert_eq!(status, 200, "{pair}");
        assert!(pair["access_token"].is_string() && pair["refresh_token"].is_string());
        let secs =
            [("hubspot", 1800), ("google_drive", 3599), ("quickbooks", 3600), ("gmail", 3599), ("outlook", 3736)];
        assert_eq!(Some(pair["expires_in"].as_i64().unwrap()), secs.iter().find(|s| s.0 == provider.name).map(|s| s.1));
        let (status, _) = browser.exchange(provider, &back["code"], VERIFIER).await;
        assert_eq!(status, 400);
        let counts = browser.fakes.counts(provider);
        assert_eq!((counts.exchanges, counts.invalid_grants, counts.token_requests), (1, 1, 2));
    }
}

#[tokio::test]
async fn a_code_wants_its_verifier_its_minute_and_its_address() {
    let browser = Browser::of(HUBSPOT, Fakes::start().await).await;
    let back = browser.authorize(HUBSPOT, &[]).await;
    let (_, refused) = browser.exchange(HUBSPOT, &back["code"], "another").await;
    assert_eq!(refused["message"], "missing or unknown auth code");
    let back = browser.authorize(HUBSPOT, &[]).await;
    browser.fakes.advance(Duration::from_secs(61));
    assert_eq!(browser.exchange(HUBSPOT, &back["code"], VERIFIER).await.0, 400);

    browser.fakes.allow_redirect("http://127.0.0.1:9/other");
    let (status, _) = {
        let url = format!("{}/oauth/hubspot/authorize?client_id={CLIENT_ID}&redirect_uri={BACK}", browser.fakes.url());
        let response = browser.client.get(url).send().await.expect("an answer");
        (response.status().as_u16(), response.text().await)
    };
    assert_eq!(status, 400);
    browser.fakes.allow_redirect(BACK);
    browser.fakes.deny_next();
    let back = browser.authorize(HUBSPOT, &[]).await;
    assert_eq!(back["error"], "access_denied");
}

#[tokio::test]
async fn google_gives_a_second_refresh_token_only_after_a_seen_consent() {
    let browser = Browser::of(DRIVE, Fakes::start().await).await;
    browser.fakes.revoke(DRIVE);
    let mut has_refresh = Vec::new();
    for more in [
        &[][..],
        &[("access_type", "offline")],
        &[("access_type", "offline")],
        &[("access_type", "offline"), ("prompt", "consent")],
    ] {
        let back = browser.authorize(DRIVE, more).await;
        let (_, pair) = browser.exchange(DRIVE, &back["code"], VERIFIER).await;
        has_refresh.push(pair["refresh_token"].is_string());
    }
    assert_eq!(has_refresh, [false, true, false, true]);
}

#[tokio::test]
async fn a_spent_refresh_token_ends_every_grant_of_the_account() {
    let provider = QUICKBOOKS;
    let browser = Browser::of(provider, Fakes::start().await).await;
    browser.fakes.as_account(provider, "other");
    let other = browser.fakes.issue(provider).refresh_token.expect("one");
    browser.fakes.as_account(provider, "harrowridge");
    let first = browser.fakes.issue(provider).refresh_token.expect("one");
    let (status, pair) = browser.refresh(provider, &first).await;
    let second = pair["refresh_token"].as_str().expect("a new one");
    assert_eq!(status, 200);
    assert_ne!(second, first);

    let (status, error) = browser.refresh(provider, &first).await;
    assert_eq!((status, &error["error"]), (400, &json!("invalid_grant")));
    assert_eq!(browser.refresh(provider, second).await.0, 400);
    assert_eq!(browser.refresh(provider, &other).await.0, 200);
    let counts = browser.fakes.counts_of(provider, "harrowridge");
    assert_eq!((counts.refreshes, counts.invalid_grants, counts.reuses), (1, 2, 1));
    assert_eq!(browser.fakes.counts(provider).refreshes, 2);
}

#[tokio::test]
async fn a_refresh_token_that_does_not_rotate_goes_on_until_it_is_revoked() {
    let provider = HUBSPOT;
    let browser = Browser::of(provider, Fakes::start().await).await;
    let token = browser.fakes.issue(provider).refresh_token.expect("one");
    for _ in 0..2 {
        assert_eq!(browser.refresh(provider, &token).await.1["refresh_token"], token);
    }
    browser.fakes.reject_client(true);
    assert_eq!(browser.refresh(provider, &token).await, (401, json!({"error": "invalid_client"})));
    browser.fakes.reject_client(false);
    browser.fakes.rotate(provider, true);
    let (_, pair) = browser.refresh(provider, &token).await;
    let token = pair["refresh_token"].as_str().expect("one");
    browser.fakes.revoke(provider);
    let (status, refused) = browser.refresh(provider, token).await;
    assert_eq!((status, &refused["category"]), (400, &json!("VALIDATION_ERROR")));
    assert_eq!(refused["message"], "missing or invalid refresh token");
}

#[tokio::test]
async fn hubspot_shows_what_was_consented_to_and_nothing_else() {
    let browser = Browser::of(HUBSPOT, Fakes::with_fixtures().await).await;
    let scope = "crm.objects.contacts.read crm.objects.companies.read oauth";
    let back = browser.authorize(HUBSPOT, &[("scope", scope)]).await;
    let (_, pair) = browser.exchange(HUBSPOT, &back["code"], VERIFIER).await;
    let browser = Browser { token: pair["access_token"].as_str().expect("one").to_owned(), ..browser };
    for (kind, status) in [("contacts", 200), ("companies", 200), ("deals", 403)] {
        let (answered, page) = browser.get_json(&format!("/hubspot/crm/objects/2026-03/{kind}")).await;
        assert_eq!(answered, status, "{kind}: {page}");
        assert_eq!(page["category"] == "MISSING_SCOPES", status == 403, "{kind}: {page}");
    }
}

#[tokio::test]
async fn an_access_token_ends_with_its_time_by_order_and_with_the_grant() {
    let browser = Browser::of(HUBSPOT, Fakes::with_fixtures().await).await;
    let path = "/hubspot/crm/v3/objects/contacts";
    assert_eq!(browser.get_json(path).await.0, 200);
    browser.fakes.expire_access(HUBSPOT);
    let (status, error) = browser.get_json(path).await;
    assert_eq!((status, &error["category"]), (401, &json!("EXPIRED_AUTHENTICATION")));

    browser.fakes.set_token_secs(HUBSPOT, 5);
    let browser = Browser { token: browser.fakes.issue(HUBSPOT).access_token, ..browser };
    assert_eq!(browser.get_json(path).await.0, 200);
    browser.fakes.advance(Duration::from_secs(6));
    assert_eq!(browser.get_json(path).await.0, 401);

    let browser = Browser { token: browser.fakes.hubspot_private_app_token().to_owned(), ..browser };
    assert_eq!(browser.get_json(path).await.0, 200);
    browser.fakes.revoke(HUBSPOT);
    assert_eq!(browser.get_json(path).await.0, 401);
}

#[tokio::test]
async fn a_lost_reply_has_still_spent_the_refresh_token() {
    let provider = QUICKBOOKS;
    let browser = Browser::of(provider, Fakes::start().await).await;
    let token = browser.fakes.issue(provider).refresh_token.expect("one");
    browser.fakes.next("/oauth/quickbooks/token", Manner::DropReply);
    let url = format!("{}/oauth/quickbooks/token", browser.fakes.url());
    let request = browser.client.post(url).basic_auth(CLIENT_ID, Some(CLIENT_SECRET));
    let lost = request.form(&[("grant_type", "refresh_token"), ("refresh_token", &token)]).send().await;
    assert!(lost.is_err());
    assert_eq!(browser.fakes.counts(provider).refreshes, 1);
    assert_eq!(browser.refresh(provider, &token).await.0, 400);
    assert_eq!(browser.fakes.counts(provider).reuses, 1);
}

#[tokio::test]
async fn the_ledger_keeps_no_secret() {
    let browser = Browser::of(HUBSPOT, Fakes::with_fixtures().await).await;
    let back = browser.authorize(HUBSPOT, &[]).await;
    browser.exchange(HUBSPOT, &back["code"], VERIFIER).await;
    browser.get_json("/hubspot/crm/v3/objects/deals?limit=5").await;
    let (_, whose) = browser.get_json(&format!("/hubspot/oauth/v1/access-tokens/{}", browser.token)).await;
    assert_eq!(whose["hub_id"], 24_317_905);
    let ledger = browser.fakes.ledger();
    let printed = format!("{ledger:?}");
    for secret in [&browser.token, &back["code"], CLIENT_SECRET, VERIFIER] {
        assert!(!printed.contains(secret));
    }
    let lines: Vec<_> = ledger.iter().map(|seen| format!("{} {} {:?}", seen.method, seen.path, seen.status)).collect();
    assert_eq!(
        lines,
        [
            "GET /oauth/hubspot/authorize Some(302)",
            "POST /oauth/hubspot/token Some(200)",
            "GET /hubspot/crm/v3/objects/deals Some(200)",
            "GET /hubspot/oauth/v1/access-tokens/*** Some(200)",
        ]
    );
    assert_eq!(ledger[2].account.as_deref(), Some("harrowridge"));
    assert_eq!(ledger[2].query, "limit=5");
}
