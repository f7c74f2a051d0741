//! Signatures and bearer keys of generic senders.

use super::*;
use crate::intake::providers::generic::sign_standard;

#[test]
fn a_signature_as_openssl_makes_it_passes_and_nothing_near_it() {
    let channel = generic_with(SECRET);
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
    let channel = generic_with("It's a Secret to Everybody");
    assert!(by_header(Some(&channel), &[("x-hub-signature-256", github)], b"Hello, World!"));
}

#[test]
fn a_bearer_key_passes_whole_and_with_its_channel_alone() {
    let channel = generic_with(SECRET);
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

/// S5.
#[test]
fn standard_webhooks_pass_in_their_window_alone() {
    let channel = generic_with("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
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

/// S5.
#[test]
fn stripes_and_slacks_signatures_pass_in_their_window_alone() {
    let sent = |headers: &[(&str, &str)], body: &str, now: i64| Sent {
        now,
        ..Sent::new("https://in.example", "/", headers, body.as_bytes())
    };
    let stripe = generic_with("whsec_test_secret");
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
    let slack = generic_with("8f742231b10e8888abcd99yyyzzz85a5");
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

/// S5: a request that Stripe, Slack or Standard Webhooks signed, time included, cannot be sent again as a body that is signed alone.
#[test]
fn what_another_scheme_signs_is_no_body_of_its_own() {
    let (secret, channel) = (Secret::new(SECRET), generic_with(SECRET));
    let passes = |body: &str| {
        let signature = sign(&secret, body.as_bytes());
        by_header(Some(&channel), &[("x-webhook-signature", &signature)], body.as_bytes())
    };
    let longest = format!("{}.1700000000.{{}}", "x".repeat(500));
    for signed in [r#"1700000000.{"id":"evt_1"}"#, "v0:1700000000:token=x&text=hi", "msg_1.1700000000.{}", &longest] {
        assert!(!passes(signed), "{signed}");
    }
    for own in [
        r#"{"id":"msg.1700000000.x"}"#,
        "id=msg.1700000000.x",
        "1700000000",
        "v0: a draft",
        "12. buy milk",
        "version 1.2.3",
        "",
    ] {
        assert!(passes(own), "{own:?}");
    }
}
