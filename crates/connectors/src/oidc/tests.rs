//! Tokens that are signed here, and an issuer on this machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

const AUDIENCE: &str = "https://hear.example.com/webhooks/gmail";
const SIGNER: &str = "push@acme-mail.iam.gserviceaccount.com";
const ISSUERS: &[&str] = &["https://accounts.google.com", "accounts.google.com"];

fn pair() -> RsaKeyPair {
    let pem = include_str!("../../../../fixtures/gmail/test-signer.pem");
    let text: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    RsaKeyPair::from_pkcs8(&BASE64_STANDARD.decode(text).expect("base64")).expect("a key")
}

fn key(id: &str) -> Value {
    let parts: PublicKeyComponents<Vec<u8>> = pair().public_key().into();
    let spelled = |number: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(number);
    json!({ "kty": "RSA", "alg": "RS256", "use": "sig", "kid": id, "n": spelled(&parts.n), "e": spelled(&parts.e) })
}

fn signed(head: &Value, claims: &Value) -> String {
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", part(head), part(claims));
    let pair = pair();
    let mut signature = vec![0; pair.public().modulus_len()];
    pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature).expect("a signature");
    format!("{text}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
}

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_793_527_200, 0).expect("a time")
}

fn claims() -> Value {
    let iat = now().timestamp() - 30;
    json!({
        "iss": "https://accounts.google.com", "aud": AUDIENCE, "azp": "1", "sub": "1", "email": SIGNER,
        "email_verified": true, "iat": iat, "exp": iat + 3_600,
    })
}

fn head(id: &str) -> Value {
    json!({ "alg": "RS256", "kid": id, "typ": "JWT" })
}

/// An issuer whose n-th answer is made by `answer`: the status line's end and a body. Returns its address and the number of its answers.
async fn issuer(answer: impl Fn(usize) -> (&'static str, Value) + Send + 'static) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/certs", listener.local_addr().expect("an address"));
    let count = Arc::new(AtomicUsize::new(0));
    let asked = count.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 4_096];
            let _ = stream.read(&mut head).await;
            let (status, body) = answer(asked.fetch_add(1, Ordering::SeqCst));
            let body = body.to_string();
            let head = "Connection: close\r\nCache-Control: public, max-age=19000\r\nContent-Length:";
            let text = format!("HTTP/1.1 {status}\r\n{head} {}\r\n\r\n{body}", body.len());
            let _ = stream.write_all(text.as_bytes()).await;
        }
    });
    (url, count)
}

fn verifier(url: &str) -> Verifier {
    Verifier::new(&Http::new().expect("a client"), url, ISSUERS, AUDIENCE, SIGNER)
}

#[tokio::test]
async fn a_token_counts_only_if_every_claim_is_right() {
    let (url, asked) = issuer(|_| ("200 OK", json!({ "keys": [key("k1")] }))).await;
    let verifier = verifier(&url);
    let with = |name: &str, value: Value| {
        let mut claims = claims();
        claims[name] = value;
        signed(&head("k1"), &claims)
    };
    let at = |secs: i64| json!(now().timestamp() + secs);
    let elsewhere = "https://elsewhere.example.com/webhooks/gmail";
    for (token, outcome) in [
        (signed(&head("k1"), &claims()), Ok(())),
        (with("iss", json!("accounts.google.com")), Ok(())),
        (with("iss", json!("https://accounts.evil.example")), Err(Refused::Issuer)),
        (with("aud", json!(elsewhere)), Err(Refused::Audience)),
        (with("aud", json!(AUDIENCE.to_uppercase())), Err(Refused::Audience)),
        (with("aud", json!([AUDIENCE])), Err(Refused::Malformed)),
        (with("email", json!("push@evil.iam.gserviceaccount.com")), Err(Refused::Email)),
        (with("email_verified", json!(false)), Err(Refused::Email)),
        (with("email_verified", Value::Null), Err(Refused::Email)),
        (with("exp", at(-59)), Ok(())),
        (with("exp", at(-60)), Err(Refused::Expired)),
        (with("iat", at(60)), Ok(())),
        (with("iat", at(61)), Err(Refused::Early)),
        (with("exp", json!("soon")), Err(Refused::Malformed)),
        (with("exp", json!(i64::MAX)), Err(Refused::Malformed)),
        (signed(&json!({ "alg": "none", "kid": "k1" }), &claims()), Err(Refused::Algorithm)),
        (signed(&json!({ "alg": "HS256", "kid": "k1" }), &claims()), Err(Refused::Algorithm)),
        (signed(&json!({ "alg": "RS256" }), &claims()), Err(Refused::Malformed)),
        (signed(&json!({ "alg": "RS256", "kid": "k1", "crit": ["b64"] }), &claims()), Err(Refused::Malformed)),
    ] {
        assert_eq!(verifier.verify(&token, now()).await, outcome, "{token}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1, "the keys are kept");
}

/// S1.
#[tokio::test]
async fn a_token_that_was_changed_or_is_none_proves_nothing() {
    let (url, asked) = issuer(|_| ("200 OK", json!({ "keys": [key("k1")] }))).await;
    let verifier = verifier(&url);
    let good = signed(&head("k1"), &claims());
    let parts: Vec<&str> = good.split('.').collect();
    let mut other = claims();
    other["email"] = json!("push@evil.iam.gserviceaccount.com");
    let other = signed(&head("k1"), &other);
    let swapped = format!("{}.{}.{}", parts[0], other.split('.').nth(1).expect("claims"), parts[2]);
    for (token, refused) in [
        (swapped, Refused::Signature),
        (format!("{}.{}.", parts[0], parts[1]), Refused::Signature),
        (format!("{}.{}", parts[0], parts[1]), Refused::Malformed),
        (format!("{good}."), Refused::Signature),
        (format!("{good}="), Refused::Malformed),
        (String::new(), Refused::Malformed),
        ("canary".into(), Refused::Malformed),
        ("a.b.c".into(), Refused::Malformed),
        ("x".repeat(9_000), Refused::Malformed),
    ] {
        assert_eq!(verifier.verify(&token, now()).await, Err(refused), "{token}");
    }
    assert!(asked.load(Ordering::SeqCst) <= 1, "a text that is no token asks nobody");
}

#[tokio::test]
async fn a_key_that_nobody_knows_is_looked_for_once_a_minute() {
    let rolled = |n: usize| json!({ "keys": [key(["k1", "k2"][n.min(1)])] });
    let (url, asked) = issuer(move |n| ("200 OK", rolled(n))).await;
    let verifier = verifier(&url);
    assert_eq!(verifier.verify(&signed(&head("k1"), &claims()), now()).await, Ok(()));
    for _ in 0..20 {
        assert_eq!(verifier.verify(&signed(&head("forged"), &claims()), now()).await, Err(Refused::Key));
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    verifier.keys.wait().await;
    assert_eq!(verifier.verify(&signed(&head("k2"), &claims()), now()).await, Ok(()));
    assert_eq!(verifier.verify(&signed(&head("k1"), &claims()), now()).await, Err(Refused::Key), "it is withdrawn");
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn without_the_keys_nothing_is_proved_and_the_sender_may_come_again() {
    for (status, body) in [
        ("503 Busy", json!({})),
        ("200 OK", json!({ "keys": [] })),
        ("200 OK", json!("<html>")),
        ("200 OK", json!({ "keys": [{ "kty": "EC", "kid": "k1" }] })),
    ] {
        let (url, asked) = issuer(move |_| (status, body.clone())).await;
        let verifier = verifier(&url);
        let token = signed(&head("k1"), &claims());
        for _ in 0..3 {
            let refused = verifier.verify(&token, now()).await.expect_err("no keys");
            assert!(refused == Refused::NoKeys && refused.is_passing());
        }
        assert_eq!(asked.load(Ordering::SeqCst), 1, "and the issuer is left alone for a while");
    }
    let nobody = verifier("http://127.0.0.1:1/certs");
    assert_eq!(nobody.verify(&signed(&head("k1"), &claims()), now()).await, Err(Refused::NoKeys));
}

#[tokio::test]
async fn keys_that_were_good_stay_good_while_their_issuer_is_away() {
    let answer = |n: usize| if n == 0 { ("200 OK", json!({ "keys": [key("k1")] })) } else { ("500 Oops", json!({})) };
    let (url, asked) = issuer(answer).await;
    let verifier = verifier(&url);
    let token = signed(&head("k1"), &claims());
    assert_eq!(verifier.verify(&token, now()).await, Ok(()));
    verifier.keys.age();
    verifier.keys.wait().await;
    assert_eq!(verifier.verify(&token, now()).await, Ok(()));
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}
