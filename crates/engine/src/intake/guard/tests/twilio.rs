//! Twilio's signatures.

use super::*;

const U: &str = "/myapp.php?foo=1&bar=2";
const P: &str = "CallSid=CA1234567890ABCDE&Caller=%2B14158675309&Digits=1234&From=%2B14158675309&To=%2B18005551212";

/// Twilio's own test vectors: base URL, target, content type, body, signature.
pub const VECTORS: &[(&str, &str, &str, &str, &str)] = &[
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

pub fn twilio_sent(base_url: &str, target: &str, kind: &str, body: &str, signature: &str) -> Sent {
    let media = if kind == "form" { "application/x-www-form-urlencoded; charset=UTF-8" } else { "application/json" };
    Sent::new(base_url, target, &[("x-twilio-signature", signature), ("content-type", media)], body.as_bytes())
}

#[test]
fn twilios_own_vectors_pass_with_their_token_alone() {
    for (nth, (base_url, target, kind, body, signature)) in VECTORS.iter().enumerate() {
        let sent = twilio_sent(base_url, target, kind, body, signature);
        assert_eq!(sent.check(Some(&twilio_with("12345"))), Ok(()), "vector {nth}");
        assert!(sent.check(Some(&twilio_with("12346"))).is_err(), "vector {nth} with another token");
        assert!(sent.check(Some(&generic_with(SECRET))).is_err(), "vector {nth} at a generic channel");
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
    let mut proofs = one("auth_token", "another-token");
    proofs.shared_keys.insert("webhooks_sharedkey_1".to_owned(), Secret::new("12345"));
    let channel = keys(&providers::twilio::SPEC, &proofs);
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
