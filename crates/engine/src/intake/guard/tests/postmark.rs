//! Postmark's addresses, user and password.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;

#[test]
fn postmark_is_known_by_its_address_or_by_user_and_password() {
    let spec = &providers::postmark::SPEC;
    let proofs = one("basic", "postmark:a-password-of-24-characters");
    let channel = keys(spec, &proofs);
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
    let networks = vec!["10.1.0.0/16".into(), " 192.0.2.9 ".into(), "no network".into()];
    let settings = Settings { ranges: Some(networks), ..Settings::default() };
    let own = keys_of(spec, &proofs, &settings);
    for (address, passes) in [([10, 1, 2, 3], true), ([192, 0, 2, 9], true), ([3, 134, 147, 250], false)] {
        assert_eq!(sent(address, None).check(Some(&own)).is_ok(), passes, "{address:?}");
    }
    let hidden = keys_of(spec, &proofs, &Settings { require_ip: false, ..Settings::default() });
    assert_eq!(sent([203, 0, 113, 7], None).check(Some(&hidden)), Ok(()), "the URL alone is the secret");
}
