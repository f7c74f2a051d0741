use std::sync::Arc;

use super::*;

/// Names have the address that the test says; `localhost` and the like have the system's.
fn outside(allow: &[&str], name_at: &str) -> Outside {
    let allow: Vec<IpNet> = allow.iter().map(|net| net.parse().expect("a network")).collect();
    let address: IpAddr = name_at.parse().expect("an address");
    let lookup = Lookup::Given(Arc::new(move |_: &str| vec![address]));
    Outside::new(&allow, lookup, Limits::default()).expect("a client")
}

/// This machine, its network, and nobody's addresses, in every notation that some parser somewhere takes.
const NOT_PUBLIC: &[&str] = &[
    "http://127.0.0.1/",
    "http://127.0.0.1:8080/",
    "https://127.0.0.1/",
    "HTTP://127.0.0.1/",
    "http:127.0.0.1/",
    "http:/127.0.0.1/",
    "http:///127.0.0.1/",
    "http:\\\\127.0.0.1\\",
    " http://127.0.0.1/ ",
    "ht\ntp://127.0\t.0.1/",
    "http://127.0.0.1./",
    "http://127.1/",
    "http://127.0.1/",
    "http://127.000.000.001/",
    "http://0177.0.0.1/",
    "http://0177.0.0.01/",
    "http://00000177.0.0.1/",
    "http://017700000001/",
    "http://0x7f.0.0.1/",
    "http://0x7f.0x0.0x0.0x1/",
    "http://0X7F.1/",
    "http://0x7f000001/",
    "http://0x7F.0.1/",
    "http://2130706433/",
    "http://2130706433./",
    "http://127.0x1/",
    "http://127.255.255.254/",
    "http://0/",
    "http://0x0/",
    "http://0.0.0.0/",
    "http://00.0/",
    "http://0.1.2.3/",
    "http://10.0.0.1/",
    "http://012.0.0.1/",
    "http://167772161/",
    "http://100.64.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://2852039166/",
    "http://0xa9fea9fe/",
    "http://0251.0376.0251.0376/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.1.1/",
    "http://192.0.2.1/",
    "http://198.18.0.1/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://4294967295/",
    "http://[::]/",
    "http://[::1]/",
    "http://[::1]:8080/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[0000:0000:0000:0000:0000:0000:0000:0001]/",
    "http://[::127.0.0.1]/",
    "http://[::7f00:1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::FFFF:7F00:0001]/",
    "http://[0:0:0:0:0:ffff:127.0.0.1]/",
    "http://[::ffff:0:127.0.0.1]/",
    "http://[::ffff:8.8.8.8]/",
    "http://[64:ff9b::127.0.0.1]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[64:ff9b:1::1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:7f00:1::]/",
    "http://[2001:db8::1]/",
    "http://[fc00::1]/",
    "http://[fd12:3456:789a::1]/",
    "http://[fe80::1]/",
    "http://[fec0::1]/",
    "http://[ff02::1]/",
    "http://public.example@127.0.0.1/",
    "http://public.example:80@127.0.0.1/",
    "http://public.example%2f@127.0.0.1/",
    "http://a:b@c@127.0.0.1/",
    "http://127.0.0.1\\@public.example/",
    "http://127.0.0.1#@public.example/",
    "http://127.0.0.1?@public.example/",
    "http://127。0。0。1/",
    "http://127.0．0｡1/",
    "http://１２７.０.０.１/",
    "http://①②⑦.⓪.⓪.①/",
    "http://%31%32%37.0.0.1/",
    "http://127%2e0%2e0%2e1/",
    "http://0x7f%2e1/",
    "http://1\u{ad}27.0.0.1/",
];

const NO_ADDRESS_OF_THE_WEB: &[&str] = &[
    "",
    "127.0.0.1",
    "//127.0.0.1/",
    "file:///etc/passwd",
    "ftp://127.0.0.1/",
    "gopher://127.0.0.1:6379/_FLUSHALL",
    "data:audio/wav;base64,UklGRg==",
    "javascript:alert(1)",
    "unix:///var/run/docker.sock",
    "jar:http://127.0.0.1!/",
    "http://",
    "http://256.256.256.256/",
    "http://127.0.0.0x100/",
    "http://[::1%5d/",
    "http://[fe80::1%25eth0]/",
    "http://[::1/",
    "http://a b/",
    "http://127.0.0.1:99999/",
];

#[tokio::test]
async fn nothing_but_public_addresses_is_asked_however_they_are_written() {
    let outside = outside(&[], "8.8.8.8");
    for url in NOT_PUBLIC {
        assert_eq!(outside.fetch(url, None).await.err(), Some(FetchError::NotPublic), "{url:?}");
    }
    for url in NO_ADDRESS_OF_THE_WEB {
        assert_eq!(outside.fetch(url, None).await.err(), Some(FetchError::Malformed), "{url:?}");
    }
    let long = format!("http://public.example/{}", "a".repeat(URL_MAX_BYTES));
    assert_eq!(outside.fetch(&long, None).await.err(), Some(FetchError::Malformed));
    assert!(NOT_PUBLIC.len() >= 60);
}

#[tokio::test]
async fn a_name_is_as_good_as_all_of_its_addresses() {
    let system = Outside::new(&[], Lookup::System, Limits::default()).expect("a client");
    for url in ["http://localhost/", "http://LOCALHOST./", "http://localhost:5432/", "http://a.localhost/"] {
        assert_eq!(system.fetch(url, None).await.err(), Some(FetchError::NotPublic), "{url}");
    }
    for address in ["127.0.0.1", "10.1.2.3", "::1", "::ffff:127.0.0.1", "fe80::1", "169.254.169.254"] {
        let outside = outside(&[], address);
        assert_eq!(outside.fetch("http://public.example/", None).await.err(), Some(FetchError::NotPublic), "{address}");
    }
    let mixed: Vec<IpAddr> = vec!["8.8.8.8".parse().expect("an address"), "127.0.0.1".parse().expect("an address")];
    let lookup = Lookup::Given(Arc::new(move |_: &str| mixed.clone()));
    let outside = Outside::new(&[], lookup, Limits::default()).expect("a client");
    assert_eq!(outside.fetch("http://public.example/", None).await.err(), Some(FetchError::NotPublic));
    let nobody = Outside::new(&[], Lookup::Given(Arc::new(|_: &str| vec![])), Limits::default()).expect("a client");
    let refused = nobody.fetch("http://public.example/", None).await.err();
    assert_eq!(refused, Some(FetchError::Unreachable(": its name has no address".into())));
}

#[test]
fn public_addresses_are_let_through_and_an_allowed_network_beside_them() {
    let outside = outside(&["10.1.0.0/16", "fd00::/64"], "8.8.8.8");
    for (url, expected) in [
        ("http://8.8.8.8/", true),
        ("https://134744072/", true),
        ("https://0x8.8.8.8/", true),
        ("https://[2606:4700::1111]/", true),
        ("https://10.1.2.3/", true),
        ("https://[fd00::7]/", true),
        ("https://10.2.0.1/", false),
        ("https://[fd00:0:0:1::7]/", false),
        ("https://[::ffff:10.1.2.3]/", false),
    ] {
        let url = parse(url).expect(url);
        assert_eq!(outside.gate.lets(address(&url).expect("an address")), expected, "{url}");
    }
}

#[test]
fn a_hop_never_leaves_https_and_carries_no_credentials_of_its_own() {
    let from = parse("https://one.example/a/b").expect("a URL");
    for (location, expected) in [
        ("c", Ok("https://one.example/a/c")),
        ("/c", Ok("https://one.example/c")),
        ("//two.example/c", Ok("https://two.example/c")),
        ("https://user:secret@two.example/", Ok("https://two.example/")),
        ("http://one.example/a/b", Err(FetchError::Downgraded)),
        ("http://127.0.0.1/", Err(FetchError::Downgraded)),
        ("file:///etc/passwd", Err(FetchError::Malformed)),
        ("gopher://one.example/", Err(FetchError::Malformed)),
    ] {
        assert_eq!(hop(&from, location).as_ref().map(Url::as_str).map_err(Clone::clone), expected, "{location}");
    }
    let plain = parse("http://one.example/").expect("a URL");
    assert!(hop(&plain, "https://one.example/").is_ok());
}

#[test]
fn credentials_are_for_one_server() {
    let outside = outside(&["10.1.0.0/16"], "8.8.8.8");
    let basic = Basic { user: "AC1".into(), password: Secret::new("canary"), domain: "twilio.com" };
    for (url, expected) in [
        ("https://api.twilio.com/a", true),
        ("https://api.dublin.ie1.twilio.com/a", true),
        ("https://twilio.com/", true),
        ("http://api.twilio.com/a", false),
        ("https://eviltwilio.com/", false),
        ("https://twilio.com.evil.example/", false),
        ("https://api.twilio.com@evil.example/", false),
        ("https://8.8.8.8/", false),
        ("http://10.1.2.3/", true),
    ] {
        assert_eq!(outside.is_meant_for(&basic, &parse(url).expect(url)), expected, "{url}");
    }
    let one = parse("https://one.example/").expect("a URL");
    for (other, expected) in [
        ("https://one.example:443/b?c", true),
        ("https://ONE.example/", true),
        ("https://one.example:444/", false),
        ("http://one.example/", false),
        ("https://two.example/", false),
        ("https://sub.one.example/", false),
    ] {
        assert_eq!(is_same_server(&one, &parse(other).expect(other)), expected, "{other}");
    }
    assert!(!format!("{basic:?}").contains("canary"));
}

#[test]
fn a_refusal_says_what_the_server_said() {
    assert_eq!(FetchError::Status(403).to_string(), "its server wants other credentials, or any (403)");
    assert_eq!(FetchError::Status(404).to_string(), "its server answered 404");
}
