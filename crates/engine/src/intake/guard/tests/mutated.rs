//! Requests that a forger could make of good ones.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use super::twilio::{VECTORS, twilio_sent};
use super::*;
use crate::intake::providers::generic::sign_standard;
use crate::intake::providers::twilio::sign as sign_twilio;

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
pub fn good_requests() -> Vec<(Arc<Keys>, Sent)> {
    let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    let channel = generic_with(secret.reveal());
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
    for (base_url, target, kind, body, signature) in [VECTORS[0], VECTORS[9]] {
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

/// The part of a form that Twilio signs: two forms with the same parameters are the same request.
fn parameters_of(body: &[u8]) -> Vec<u8> {
    providers::twilio::parameters(body).unwrap_or_default()
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
