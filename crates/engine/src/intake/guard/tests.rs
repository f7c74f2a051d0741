use domain::{ChannelId, TenantId};
use http::{HeaderName, HeaderValue};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use store::channels::{Retiring, Secrets, Settings};

use super::*;

const SECRET: &str = "a-secret-of-more-than-24-characters";
const NOW: i64 = 1_800_000_000;
const U: &str = "/myapp.php?foo=1&bar=2";
const P: &str = "CallSid=CA1234567890ABCDE&Caller=%2B14158675309&Digits=1234&From=%2B14158675309&To=%2B18005551212";

/// A channel with the secrets given.
fn keys(provider: Provider, proofs: Proofs) -> Arc<Keys> {
    keys_of(provider, proofs, None, Settings::default())
}

fn keys_of(provider: Provider, proofs: Proofs, retiring: Option<Retiring>, settings: Settings) -> Arc<Keys> {
    let opened = Opened {
        id: ChannelId::new(),
        tenant_id: TenantId::new(),
        provider,
        is_active: true,
        person_id: None,
        max_per_minute: None,
        auto_create_contacts: false,
        settings,
        secrets: Secrets { ingestion_key: Secret::new("k"), proofs, retiring },
    };
    Arc::new(Keys::of(&opened, at(NOW)))
}

fn generic(secret: &str) -> Arc<Keys> {
    let bearer = Some(Secret::new("ak_live_0123456789"));
    keys(Provider::Generic, Proofs { webhook_secret: Some(Secret::new(secret)), bearer, ..Proofs::default() })
}

fn twilio_with(token: &str) -> Arc<Keys> {
    keys(Provider::Twilio, Proofs { auth_token: Some(Secret::new(token)), ..Proofs::default() })
}

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).expect("a time")
}

/// A request, ready to be checked and changed.
#[derive(Clone, Debug)]
struct Sent {
    base_url: String,
    target: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    now: i64,
    address: IpAddr,
}

impl Sent {
    fn new(base_url: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Self {
        Self {
            base_url: base_url.into(),
            target: target.into(),
            headers: headers.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect(),
            body: body.to_vec(),
            now: NOW,
            address: [203, 0, 113, 7].into(),
        }
    }

    fn check(&self, keys: Option<&Arc<Keys>>) -> Result<(), Why> {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let (Ok(name), Ok(value)) = (HeaderName::try_from(name.as_str()), HeaderValue::from_bytes(value)) else {
                continue;
            };
            headers.append(name, value);
        }
        let (base_url, target) = (&self.base_url, &self.target);
        let request = Request { headers: &headers, target, base_url, address: self.address, now: at(self.now) };
        let mut check = Check::begin(keys, request);
        for chunk in self.body.chunks(7) {
            check.update(chunk);
        }
        check.passes(&self.body)
    }
}

fn by_header(keys: Option<&Arc<Keys>>, headers: &[(&str, &str)], body: &[u8]) -> bool {
    Sent::new("https://in.example", "/ingest/k", headers, body).check(keys).is_ok()
}

#[test]
fn a_signature_as_openssl_makes_it_passes_and_nothing_near_it() {
    let channel = generic(SECRET);
    let body = br#"{"content":"hello"}"#;
    // printf %s '{"content":"hello"}' | openssl dgst -sha256 -hmac a-secret-of-more-than-24-characters
    let good = "sha256=ad233a7097e7151710e96fac4ca88b1b94a7e1ed53a36d16228db8338235b72a";
    let sign = |text: &str| by_header(Some(&channel), &[("x-webhook-signature", text)], body);
    assert!(sign(good));
    assert!(sign(&good.to_uppercase().replace("SHA256", "sha256")));
    for at in 7..good.len() {
        let mut forged = good.as_bytes().to_vec();
        forged[at] = if forged[at] == b'0' { b'1' } else { b'0' };
        assert!(!sign(std::str::from_utf8(&forged).expect("text")), "one digit changed at {at}");
    }
    let bad =
        ["", "sha256=", &good[..70], &good[7..], &format!("{good}00"), "sha1=00", "sha256=zz", &format!(" {good}")];
    for bad in bad {
        assert!(!sign(bad), "{bad:?} passed");
    }
    assert!(!by_header(Some(&channel), &[("x-webhook-signature", good)], br#"{"content":"hellp"}"#));
    assert!(!by_header(Some(&channel), &[("x-webhook-signature", good)], b""));
    assert!(!by_header(None, &[("x-webhook-signature", good)], body), "nobody's channel took something");
    assert!(!by_header(Some(&channel), &[], body));
    // GitHub's own example.
    let github = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let channel = generic("It's a Secret to Everybody");
    assert!(by_header(Some(&channel), &[("x-hub-signature-256", github)], b"Hello, World!"));
}

#[test]
fn a_bearer_key_passes_whole_and_with_its_channel_alone() {
    let channel = generic(SECRET);
    let bearer = |text: &str| by_header(Some(&channel), &[("authorization", text)], b"x");
    for good in ["Bearer ak_live_0123456789", "bearer ak_live_0123456789", "BEARER  ak_live_0123456789 "] {
        assert!(bearer(good), "{good:?}");
    }
    let bad =
        ["", "Bearer", "Bearer ", "Bearer ak_live_012345678", "Bearer ak_live_01234567890", "Basic ak_live_0123456789"];
    for bad in bad {
        assert!(!bearer(bad), "{bad:?} passed");
    }
    assert!(!by_header(None, &[("authorization", "Bearer ak_live_0123456789")], b"x"));
    let forged_beside = [("authorization", "Bearer ak_live_0123456789"), ("x-webhook-signature", "sha256=00")];
    assert!(by_header(Some(&channel), &forged_beside, b"x"), "one proof is enough");
}

#[test]
fn standard_webhooks_pass_in_their_window_alone() {
    let channel = generic("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    let body = br#"{"test": 2432232314}"#;
    let sent = |id: &str, timestamp: &str, signature: &str, now: i64| {
        let headers = [("webhook-id", id), ("webhook-timestamp", timestamp), ("webhook-signature", signature)];
        Sent { now, ..Sent::new("https://in.example", "/ingest/k", &headers, body) }.check(Some(&channel))
    };
    let (id, ts, good) =
        ("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    for now in [ts, ts + 300, ts - 300] {
        assert_eq!(sent(id, "1614265330", good, now), Ok(()), "at {now}");
    }
    for now in [ts + 301, ts - 301, 0] {
        assert!(sent(id, "1614265330", good, now).is_err_and(|why| why.contains("timestamp")), "at {now}");
    }
    let among = format!("v1a,AAAA v2,xx v1,AAAA {good}");
    assert_eq!(sent(id, "1614265330", &among, ts), Ok(()));
    for (id, timestamp, signature) in [
        ("msg_x", "1614265330", good),
        (id, "1614265331", good),
        (id, "", good),
        (id, "1614265330.0", good),
        ("", "1614265330", good),
        (id, "1614265330", ""),
        (id, "1614265330", &good[3..]),
        (id, "1614265330", &good.replace("v1,", "v2,")),
    ] {
        assert!(sent(id, timestamp, signature, ts).is_err(), "{id} {timestamp} {signature} passed");
    }
    // An id with a dot: what was signed as another id, time and body.
    let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    let shifted = sign_standard(&secret, "a.b", ts, body);
    assert!(sent("a.b", "1614265330", &shifted, ts).is_err());
    // The same scheme under its other name.
    let headers = [("svix-id", id), ("svix-timestamp", "1614265330"), ("svix-signature", good)];
    assert_eq!(Sent { now: ts, ..Sent::new("https://in.example", "/", &headers, body) }.check(Some(&channel)), Ok(()));
}

#[test]
fn stripes_and_slacks_signatures_pass_in_their_window_alone() {
    let sent = |headers: &[(&str, &str)], body: &str, now: i64| Sent {
        now,
        ..Sent::new("https://in.example", "/", headers, body.as_bytes())
    };
    let stripe = generic("whsec_test_secret");
    let (body, good) =
        (r#"{"id":"evt_1","object":"event"}"#, "0c8670ed117751cc551a20e35839447075c42800ea3cf3e8a2fbda99cd1e6edd");
    let by_stripe = |header: &str, now: i64| sent(&[("stripe-signature", header)], body, now).check(Some(&stripe));
    assert_eq!(by_stripe(&format!("t=1700000000,v1={good}"), 1_700_000_000), Ok(()));
    assert_eq!(by_stripe(&format!("t=1700000000,v1={},v1={good},v0=aa", "0".repeat(64)), 1_700_000_300), Ok(()));
    for (header, now) in [
        (format!("t=1700000000,v1={good}"), 1_700_000_301),
        (format!("t=1700000001,v1={good}"), 1_700_000_000),
        (format!("t=1700000000,v0={good}"), 1_700_000_000),
        (format!("v1={good}"), 1_700_000_000),
        ("t=1700000000".into(), 1_700_000_000),
    ] {
        assert!(by_stripe(&header, now).is_err(), "{header} at {now}");
    }
    let slack = generic("8f742231b10e8888abcd99yyyzzz85a5");
    let good = "v0=af20f4280ae8a242c8b86ff31bb3b78b22919d137c384584e67c7495c6e5d9de";
    let by_slack = |timestamp: &str, signature: &str, now: i64| {
        let headers = [("x-slack-request-timestamp", timestamp), ("x-slack-signature", signature)];
        sent(&headers, "token=x&text=hi", now).check(Some(&slack))
    };
    assert_eq!(by_slack("1531420618", good, 1_531_420_618), Ok(()));
    assert!(
        by_slack("1531420618", good, 1_531_420_919).is_err() && by_slack("1531420619", good, 1_531_420_618).is_err()
    );
    assert!(by_slack("1531420618", &good[3..], 1_531_420_618).is_err() && by_slack("", good, 1_531_420_618).is_err());
}

/// Vectors of the facts file: base URL, target, content type, body, signature.
const TWILIO: &[(&str, &str, &str, &str, &str)] = &[
    ("https://mycompany.com", U, "form", P, "RSOYDt4T1cUTdK1PDd93/VVr8B8="),
    ("https://mycompany.com:1234", U, "form", P, "RSOYDt4T1cUTdK1PDd93/VVr8B8="),
    ("https://mycompany.com:443", U, "form", P, "kvajT1Ptam85bY51eRf/AJRuM3w="),
    ("https://mycompany.com", U, "form", P, "kvajT1Ptam85bY51eRf/AJRuM3w="),
    ("http://mycompany.com:80", U, "form", P, "0ZXoZLH/DfblKGATFgpif+LLRf4="),
    ("http://mycompany.com:1234", U, "form", P, "Zmvh+3yNM1Phv2jhDCwEM3q5ebU="),
    (
        "https://mycompany.com",
        U,
        "form",
        "Sid=CA123&SidAccount=AC123&Digits=5678&Digits=1234&Digits=1234",
        "IK+Dwps556ElfBT0I3Rgjkr1wJU=",
    ),
    (
        "https://mycompany.com",
        U,
        "form",
        "MessagingBinding.Address=%2B1415xxxxxxx&MessagingBinding.Address=%2B1325xxxxxxx",
        "83O6e2vORAoJHUNzJjDWN1jz+BA=",
    ),
    (
        "https://mycompany.com",
        U,
        "form",
        "MessagingBinding.Address=%2B1325xxxxxxx&MessagingBinding.Address=%2B1415xxxxxxx",
        "83O6e2vORAoJHUNzJjDWN1jz+BA=",
    ),
    (
        "https://mycompany.com",
        "/myapp.php?foo=1&bar=2&bodySHA256=0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620",
        "json",
        r#"{"property": "value", "boolean": true}"#,
        "a9nBmqA0ju/hNViExpshrM61xv4=",
    ),
    (
        "https://mycompany.com",
        "/myapp.php?bodySHA256=0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620",
        "json",
        r#"{"property": "value", "boolean": true}"#,
        "y77kIzt2vzLz71DgmJGsen2scGs=",
    ),
    (
        "https://mycompany.com:443",
        "/myapp.php?foo=1&bar=2&bodySHA256=44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
        "json",
        "{}",
        "Ldidvp12m26NI7eqEvxnEpkd9Hc=",
    ),
    (
        "https://mycompany.com",
        "/myapp.php?foo=1&bar=2&bodySHA256=44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
        "json",
        "{}",
        "rw/jVviOgicj2+kHZULvebnA4ag=",
    ),
    ("https://mycompany.com", "/myapp.php?foo=1&bar=2&Body=It's+amazing", "form", P, "dsq4Ehbj6cs+KdTkpF5sSSplOWw="),
    ("https://mycompany.com", "/myapp.php?foo=1&bar=2&Body=It's+amazing", "form", P, "TfZzewPq8wqrGlMfyAud8+/IvJ0="),
    (
        "https://example.com",
        U,
        "form",
        "CallSid=CA1234567890ABCDE&Caller=%2B14158675310&Digits=1234&From=%2B14158675310&To=%2B18005551212",
        "L/OH5YylLD5NRKLltdqwSvS0BnU=",
    ),
];

fn twilio_sent(base_url: &str, target: &str, kind: &str, body: &str, signature: &str) -> Sent {
    let media = if kind == "form" { "application/x-www-form-urlencoded; charset=UTF-8" } else { "application/json" };
    Sent::new(base_url, target, &[("x-twilio-signature", signature), ("content-type", media)], body.as_bytes())
}

#[test]
fn twilios_own_vectors_pass_with_their_token_alone() {
    for (nth, (base_url, target, kind, body, signature)) in TWILIO.iter().enumerate() {
        let sent = twilio_sent(base_url, target, kind, body, signature);
        assert_eq!(sent.check(Some(&twilio_with("12345"))), Ok(()), "vector {nth}");
        assert!(sent.check(Some(&twilio_with("12346"))).is_err(), "vector {nth} with another token");
        assert!(sent.check(Some(&generic(SECRET))).is_err(), "vector {nth} at a generic channel");
        assert!(sent.check(None).is_err(), "vector {nth} at nobody's channel");
    }
    // With user and password in the URL, which come as a header.
    for (port, signature) in [("", "CukzLTc1tT5dXEDIHm/tKBanW10="), (":443", "ZQFR1PTIZXF2MXB8ZnKCvnnA+rI=")] {
        let mut sent = twilio_sent(&format!("https://mycompany.com{port}"), U, "form", P, signature);
        assert!(sent.check(Some(&twilio_with("12345"))).is_err());
        sent.headers.push(("authorization".into(), b"Basic dXNlcjpwYXNz".to_vec()));
        assert_eq!(sent.check(Some(&twilio_with("12345"))), Ok(()));
    }
    // Our own: UTF-8, an empty value, a plus, a WhatsApp address.
    let body = "AccountSid=ACtest&Body=Ol%C3%A1+%2B+caf%C3%A9&From=whatsapp%3A%2B5511999990000&FromZip=&NumMedia=0&To=%2B15550100";
    let sent =
        twilio_sent("https://ingest.example.com", "/hooks/twilio/t1", "form", body, "UGEpGg32VlEHhzANFBsdNwj5vQw=");
    assert_eq!(sent.check(Some(&twilio_with("secret-token"))), Ok(()));
}

#[test]
fn a_shared_key_signs_only_where_the_channel_has_it() {
    let shared = [("webhooks_sharedkey_1".to_owned(), Secret::new("12345"))].into();
    let proofs = Proofs { auth_token: Some(Secret::new("another-token")), shared_keys: shared, ..Proofs::default() };
    let channel = keys(Provider::Twilio, proofs);
    let sent = |settings: &str, signature: &str| {
        let mut sent = twilio_sent("https://mycompany.com", U, "form", P, signature);
        sent.headers.push(("x-twilio-webhooks-signature-settings".into(), settings.into()));
        sent.check(Some(&channel))
    };
    let (sha1, sha256) = ("RSOYDt4T1cUTdK1PDd93/VVr8B8=", "033hgUJA9M/hXIZsYjwkerEP/DBm35nEri5FhCYjA5s=");
    assert_eq!(sent("key=webhooks_sharedkey_1,algorithm=HMAC_SHA256", sha256), Ok(()));
    assert_eq!(sent("key=webhooks_sharedkey_1, algorithm=HMAC_SHA1", sha1), Ok(()));
    for (settings, signature) in [
        ("key=webhooks_sharedkey_1,algorithm=HMAC_SHA256", sha1),
        ("key=webhooks_sharedkey_2,algorithm=HMAC_SHA256", sha256),
        ("key=webhooks_sharedkey_1,algorithm=HMAC_MD5", sha256),
        ("algorithm=HMAC_SHA256", sha256),
        ("", sha256),
        ("", sha1),
    ] {
        assert!(sent(settings, signature).is_err(), "{settings:?} passed");
    }
}

#[test]
fn postmark_is_known_by_its_address_or_by_user_and_password() {
    let basic = Some(Secret::new("postmark:a-password-of-24-characters"));
    let proofs = Proofs { basic, ..Proofs::default() };
    let channel = keys(Provider::Postmark, proofs.clone());
    let sent = |address: [u8; 4], authorization: Option<&str>| {
        let encoded = authorization.map(|given| format!("Basic {}", STANDARD.encode(given)));
        let headers: Vec<(&str, &str)> = encoded.iter().map(|text| ("authorization", text.as_str())).collect();
        Sent { address: address.into(), ..Sent::new("https://in.example", "/ingest/k", &headers, b"{}") }
    };
    assert_eq!(sent([3, 134, 147, 250], None).check(Some(&channel)), Ok(()));
    assert_eq!(sent([203, 0, 113, 7], Some("postmark:a-password-of-24-characters")).check(Some(&channel)), Ok(()));
    let mapped = Sent { address: "::ffff:3.134.147.250".parse().expect("an address"), ..sent([0; 4], None) };
    assert_eq!(mapped.check(Some(&channel)), Ok(()));
    for (address, given) in
        [([3, 134, 147, 251], None), ([203, 0, 113, 7], Some("postmark:a-password")), ([203, 0, 113, 7], Some(""))]
    {
        assert!(sent(address, given).check(Some(&channel)).is_err(), "{address:?} {given:?} passed");
    }
    let settings = Settings {
        require_ip: true,
        ranges: Some(vec!["10.1.0.0/16".into(), " 192.0.2.9 ".into(), "no network".into()]),
    };
    let own = keys_of(Provider::Postmark, proofs.clone(), None, settings);
    for (address, passes) in [([10, 1, 2, 3], true), ([192, 0, 2, 9], true), ([3, 134, 147, 250], false)] {
        assert_eq!(sent(address, None).check(Some(&own)).is_ok(), passes, "{address:?}");
    }
    let hidden = keys_of(Provider::Postmark, proofs, None, Settings { require_ip: false, ranges: None });
    assert_eq!(sent([203, 0, 113, 7], None).check(Some(&hidden)), Ok(()), "the URL alone is the secret");
}

#[test]
fn secrets_before_a_rotation_are_good_until_their_time() {
    let old = Proofs { webhook_secret: Some(Secret::new(SECRET)), ..Proofs::default() };
    let new = Proofs { webhook_secret: Some(Secret::new("another-secret-of-24-characters")), ..Proofs::default() };
    let signature = sign(&Secret::new(SECRET), b"x");
    let passes = |until: i64| {
        let retiring = Some(Retiring { proofs: old.clone(), until: at(until) });
        let channel = keys_of(Provider::Generic, new.clone(), retiring, Settings::default());
        by_header(Some(&channel), &[("x-webhook-signature", &signature)], b"x")
    };
    assert!(passes(NOW + 1) && !passes(NOW) && !passes(NOW - 1));
}

#[test]
fn a_closed_channel_takes_nothing_however_good_the_signature() {
    let proofs = Proofs { webhook_secret: Some(Secret::new(SECRET)), ..Proofs::default() };
    let opened = Keys { is_open: false, ..Keys::new(Some(Provider::Generic), &proofs, None, Vec::new(), true) };
    let headers = [("x-webhook-signature", sign(&Secret::new(SECRET), b"x"))];
    let sent = Sent::new("https://in.example", "/", &[("x-webhook-signature", &headers[0].1)], b"x");
    assert_eq!(sent.check(Some(&Arc::new(opened))), Err("the channel is disabled"));
}

/// One change that a forger could make. Returns what it was, or none where this request has nothing of the kind.
fn mutate(sent: &mut Sent, rng: &mut StdRng) -> Option<&'static str> {
    fn flip(bytes: &mut [u8], rng: &mut StdRng) -> Option<()> {
        let at = rng.random_range(0..bytes.len().max(1));
        *bytes.get_mut(at)? ^= 1 << rng.random_range(0..7);
        Some(())
    }
    fn proof<'a>(sent: &'a mut Sent, rng: &mut StdRng) -> Option<&'a mut Vec<u8>> {
        let names = ["x-webhook-signature", "webhook-signature", "x-twilio-signature", "authorization"];
        let proofs: Vec<usize> =
            (0..sent.headers.len()).filter(|at| names.contains(&sent.headers[*at].0.as_str())).collect();
        let at = *proofs.choose(rng)?;
        Some(&mut sent.headers[at].1)
    }
    const KINDS: [&str; 13] = [
        "a bit of the body",
        "body cut",
        "body longer",
        "a byte out of the body",
        "a bit of the proof",
        "proof cut",
        "proof longer",
        "proof missing",
        "proof empty",
        "proof of another secret",
        "time of a signature",
        "id of a signature",
        "the URL",
    ];
    let kind = *KINDS.choose(rng)?;
    let is_bearer = sent.headers.iter().any(|(name, _)| name == "authorization");
    let is_json = sent.target.contains("bodySHA256");
    match kind {
        // A bearer key says nothing of the body.
        _ if is_bearer && kind.contains("body") => return None,
        "a bit of the body" => flip(&mut sent.body, rng)?,
        "body cut" => sent.body.truncate(rng.random_range(0..sent.body.len().max(1))),
        "body longer" => sent.body.extend((0..rng.random_range(1..9)).map(|_| rng.random_range(b'a'..=b'z'))),
        "a byte out of the body" => drop(sent.body.remove(rng.random_range(0..sent.body.len()))),
        "a bit of the proof" => flip(proof(sent, rng)?, rng)?,
        "proof cut" => {
            let n = rng.random_range(1..20);
            let proof = proof(sent, rng)?;
            proof.truncate(proof.len().saturating_sub(n));
        }
        "proof longer" => proof(sent, rng)?.extend(b"A"),
        "proof missing" => sent.headers.retain(|(name, _)| !name.ends_with("signature") && name != "authorization"),
        "proof empty" => proof(sent, rng)?.clear(),
        "proof of another secret" => {
            let other = Secret::new("the-secret-of-another-tenant-is-long");
            let (url, body) = (format!("{}{}", sent.base_url, sent.target), sent.body.clone());
            for (name, value) in &mut sent.headers {
                match name.as_str() {
                    "x-webhook-signature" => *value = sign(&other, &body).into_bytes(),
                    "webhook-signature" => *value = sign_standard(&other, "msg_1", NOW, &body).into_bytes(),
                    "x-twilio-signature" => *value = sign_twilio(&other, &url, &body).into_bytes(),
                    "authorization" => *value = b"Bearer ak_live_of_another_tenant_x".to_vec(),
                    _ => {}
                }
            }
        }
        "time of a signature" => {
            let off = rng.random_range(1..1_000);
            let at = sent.headers.iter_mut().find(|(name, _)| name == "webhook-timestamp")?;
            at.1 = (NOW + off).to_string().into_bytes();
        }
        "id of a signature" => sent.headers.iter_mut().find(|(name, _)| name == "webhook-id")?.1.push(b'x'),
        "the URL" => {
            sent.headers.iter().find(|(name, _)| name == "x-twilio-signature")?;
            sent.target.push_str(if is_json { "1" } else { "x" });
        }
        _ => return None,
    }
    Some(kind)
}

/// Requests that pass, with the channels that take them.
fn good_requests() -> Vec<(Arc<Keys>, Sent)> {
    let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    let channel = generic(secret.reveal());
    let body = br#"{"type":"note","content":"A body of some length, as they come.","metadata":{"n":1}}"#;
    let (plain, standard) = (sign(&secret, body), sign_standard(&secret, "msg_1", NOW, body));
    let now = NOW.to_string();
    let of = |headers: &[(&str, &str)]| Sent::new("https://in.example", "/ingest/k", headers, body);
    let mut good = vec![
        (channel.clone(), of(&[("x-webhook-signature", &plain)])),
        (
            channel.clone(),
            of(&[("webhook-id", "msg_1"), ("webhook-timestamp", &now), ("webhook-signature", &standard)]),
        ),
        (channel, of(&[("authorization", "Bearer ak_live_0123456789")])),
    ];
    for (base_url, target, kind, body, signature) in [TWILIO[0], TWILIO[9]] {
        good.push((twilio_with("12345"), twilio_sent(base_url, target, kind, body, signature)));
    }
    good
}

/// S1. A million in `./test --slow`.
#[test]
fn no_mutated_request_is_accepted() {
    let n = if std::env::var_os("TRIBUTARY_SLOW").is_some() { 1_000_000 } else { 20_000 };
    let good = good_requests();
    for (keys, sent) in &good {
        assert_eq!(sent.check(Some(keys)), Ok(()), "{sent:?}");
    }
    let seed = 20_261_115;
    let mut rng = StdRng::seed_from_u64(seed);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut done = 0;
    while done < n {
        let (keys, sent) = good.choose(&mut rng).expect("requests");
        let mut mutated = sent.clone();
        let Some(kind) = mutate(&mut mutated, &mut rng) else { continue };
        if same(&mutated, sent) {
            continue;
        }
        assert!(mutated.check(Some(keys)).is_err(), "seed {seed}: accepted after {kind}: {mutated:?}");
        *counts.entry(kind).or_default() += 1;
        done += 1;
    }
    println!("{n} mutated requests, none accepted: {counts:?}");
    assert_eq!(counts.len(), 13);
    assert!(counts.values().all(|count| count * 100 > n), "a kind is under 1%: {counts:?}");
}

/// Two writings of the same: base64's last bits, hex in capitals, a form's `+` and `%20`, whitespace around a key.
fn same(mutated: &Sent, sent: &Sent) -> bool {
    let proofs = |sent: &Sent| -> Vec<Vec<u8>> {
        let of = |(name, value): &(String, Vec<u8>)| match name.as_str() {
            "x-webhook-signature" => value.to_ascii_lowercase(),
            "authorization" => value.get(7..).unwrap_or_default().trim_ascii().to_vec(),
            "webhook-signature" => {
                STANDARD.decode(value.get(3..).unwrap_or_default()).unwrap_or_else(|_| value.clone())
            }
            _ => value.clone(),
        };
        sent.headers.iter().map(of).collect()
    };
    let scheme_is_lost = mutated.headers.iter().any(|(name, value)| {
        name == "authorization" && !value.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer "))
    });
    let is_prefixed = mutated.headers.iter().all(|(name, value)| match name.as_str() {
        "x-webhook-signature" => value.starts_with(b"sha256="),
        "webhook-signature" => value.starts_with(b"v1,"),
        _ => true,
    });
    let is_form = sent.headers.iter().any(|(_, value)| value.starts_with(b"application/x-www-form"));
    let read = |body: &[u8]| if is_form { parameters_of(body) } else { body.to_vec() };
    !scheme_is_lost
        && is_prefixed
        && proofs(mutated) == proofs(sent)
        && mutated.target == sent.target
        && read(&mutated.body) == read(&sent.body)
}

/// What Twilio signs of a form: two forms of the same parameters are the same request.
fn parameters_of(body: &[u8]) -> Vec<u8> {
    twilio::parameters(body).unwrap_or_default()
}

/// A guard with a bug, to see that the suite would notice.
#[test]
fn planted_bugs_are_caught() {
    let good = good_requests();
    let mut rng = StdRng::seed_from_u64(7);
    // Compares only as far as the shorter goes.
    let loosely = |sent: &Sent| {
        let (_, said) = sent.headers.iter().find(|(name, _)| name == "x-webhook-signature")?;
        let made = sign(&Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), &sent.body);
        Some(made.bytes().zip(said).all(|(made, said)| made == *said))
    };
    // Trusts a timestamp that is not signed.
    let timeless = |sent: &Sent| {
        let header = |name: &str| sent.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let id = String::from_utf8(header("webhook-id")?).ok()?;
        let made = sign_standard(&Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), &id, NOW, &sent.body);
        Some(made.into_bytes() == header("webhook-signature")?)
    };
    let mut caught = [0, 0];
    for _ in 0..20_000 {
        let (_, sent) = good.choose(&mut rng).expect("requests");
        let mut mutated = sent.clone();
        if mutate(&mut mutated, &mut rng).is_none() || same(&mutated, sent) {
            continue;
        }
        caught[0] += usize::from(loosely(&mutated) == Some(true));
        caught[1] += usize::from(timeless(&mutated) == Some(true));
    }
    assert!(caught[0] > 0, "a comparison that stops early was not noticed");
    assert!(caught[1] > 0, "an unsigned timestamp was not noticed");
}

/// S3: 100,000 samples a class in `./test --slow`, the classes taken in turn. How often one class takes longer than another, ties halved:
/// 0.5 when nothing tells them apart.
#[test]
fn a_wrong_key_and_a_wrong_signature_take_the_same_time() {
    if std::env::var_os("TRIBUTARY_SLOW").is_none() {
        return; // a matter of statistics, which a busy machine disturbs
    }
    let wrong = |mut sent: Sent| {
        for (name, value) in &mut sent.headers {
            if ["x-webhook-signature", "webhook-signature", "x-twilio-signature", "authorization"]
                .contains(&name.as_str())
            {
                let at = value.len() - 5;
                value[at] = if value[at] == b'1' { b'2' } else { b'1' };
            }
        }
        sent
    };
    let channels: Vec<Option<Arc<Keys>>> =
        vec![None, Some(generic(SECRET)), Some(twilio_with(SECRET)), Some(keys(Provider::Postmark, Proofs::default()))];
    for (_, sent) in good_requests() {
        let sent = wrong(sent);
        let mut headers = HeaderMap::new();
        for (name, value) in &sent.headers {
            headers.append(
                HeaderName::try_from(name.as_str()).expect("a name"),
                HeaderValue::from_bytes(value).expect("a value"),
            );
        }
        let sample = |keys: &Option<Arc<Keys>>| {
            let (base_url, target) = (&sent.base_url, &sent.target);
            let request = Request { headers: &headers, target, base_url, address: sent.address, now: at(sent.now) };
            let begun = std::time::Instant::now();
            let mut check = Check::begin(keys.as_ref(), request);
            check.update(&sent.body);
            assert!(std::hint::black_box(check.passes(&sent.body)).is_err());
            begun.elapsed().as_nanos()
        };
        let mut rng = StdRng::seed_from_u64(3);
        let mut worst = 0.0_f64;
        for attempt in 0.. {
            let mut times = vec![Vec::with_capacity(100_000); channels.len()];
            for _ in 0..100_000 {
                let first = rng.random_range(0..channels.len()); // none is always the one with a warm cache
                for nth in 0..channels.len() {
                    let class = (first + nth) % channels.len();
                    times[class].push(sample(&channels[class]));
                }
            }
            worst = (1..channels.len()).map(|class| (longer(&times[0], &times[class]) - 0.5).abs()).fold(0.0, f64::max);
            if worst < 0.05 || attempt == 2 {
                break;
            }
        }
        println!("{}: told apart by {worst:.4} at worst", sent.headers[0].0);
        assert!(worst < 0.05, "S3: {}: {worst:.4}", sent.headers[0].0);
    }
}

/// How often a value of `a` is larger than one of `b`.
fn longer(a: &[u128], b: &[u128]) -> f64 {
    let mut all: Vec<(u128, bool)> =
        a.iter().map(|time| (*time, true)).chain(b.iter().map(|time| (*time, false))).collect();
    all.sort_unstable();
    let (mut at, mut rank_sum) = (0, 0.0);
    while at < all.len() {
        let alike = all[at..].iter().take_while(|(time, _)| *time == all[at].0).count();
        let rank = at as f64 + (alike as f64 + 1.0) / 2.0;
        rank_sum += rank * all[at..at + alike].iter().filter(|(_, is_a)| *is_a).count() as f64;
        at += alike;
    }
    let (n, m) = (a.len() as f64, b.len() as f64);
    (rank_sum - n * (n + 1.0) / 2.0) / (n * m)
}
