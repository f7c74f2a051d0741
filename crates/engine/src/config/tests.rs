use clap::{CommandFactory as _, FromArgMatches as _, Parser};

use super::*;

#[derive(Parser)]
struct Settings {
    #[command(flatten)]
    config: Config,
}

/// Settings as flags set them.
pub(crate) fn of_flags(flags: &[&str]) -> Config {
    // Whatever is installed on this machine.
    let is_told = flags.iter().any(|flag| flag.starts_with("--transcribe"));
    let transcribe: &[&str] = if is_told { &[] } else { &["--transcribe", "off"] };
    Settings::parse_from([&["test"], transcribe, flags].concat()).config
}

#[test]
fn public_urls_are_plain_origins() {
    assert_eq!(public_url("https://hear.example.com/").as_deref(), Ok("https://hear.example.com"));
    for bad in ["", "hear.example.com", "https://", "javascript:alert(1)", "https://a b", "https://a?x=1"] {
        assert!(public_url(bad).is_err(), "{bad:?} was accepted");
    }
}

#[test]
fn providers_of_mailboxes_post_to_https_or_to_this_machine() {
    let base = |flags: &[&str]| of_flags(flags).hook_base().map(str::to_owned);
    assert_eq!(base(&[]), None);
    assert_eq!(base(&["--public-url", "http://hear.example.com"]), None, "providers refuse plain http");
    assert_eq!(base(&["--public-url", "https://hear.example.com/"]).as_deref(), Some("https://hear.example.com"));
    let own = ["--public-url", "https://hear.example.com", "--mailbox-hook-url", "http://127.0.0.1:7171/"];
    assert_eq!(base(&own).as_deref(), Some("http://127.0.0.1:7171"));
    for odd in ["http://hear.example.com", "http://127.0.0.1.example.com", "hear.example.com", "ftp://localhost"] {
        assert!(hook_url(odd).is_err(), "{odd}");
    }
}

#[test]
fn a_rate_is_more_than_none() {
    assert_eq!((rate_factor("1"), rate_factor("0.25")), (Ok(1.0), Ok(0.25)));
    for bad in ["", "0", "-1", "NaN", "inf", "fast"] {
        assert!(rate_factor(bad).is_err(), "{bad:?} was accepted");
    }
}

#[test]
fn origins_are_as_browsers_write_them() {
    for (given, meant) in [
        ("https://CRM.example.com/", "https://crm.example.com"),
        ("https://crm.example.com:443", "https://crm.example.com"),
        (" http://localhost:8080", "http://localhost:8080"),
    ] {
        assert_eq!(origin(given).as_deref(), Ok(meant));
    }
    for bad in [
        "",
        "*",
        "null",
        "crm.example.com",
        "https://crm.example.com/app",
        "https://*.example.com",
        "https://a b",
        "https://:443",
    ] {
        assert!(origin(bad).is_err(), "{bad:?} was accepted");
    }
}

#[test]
fn people_find_the_server_by_its_public_url_else_where_it_listens() {
    for (flags, expected) in [
        (&["--public-url", "https://hear.example.com/"][..], "https://hear.example.com"),
        (&["--listen", "127.0.0.1:4000"], "http://127.0.0.1:4000"),
        (&["--listen", "0.0.0.0:4000"], "http://127.0.0.1:4000"),
        (&["--listen", "[::]:4000"], "http://127.0.0.1:4000"),
        (&["--listen", "[::1]:4000"], "http://[::1]:4000"),
    ] {
        assert_eq!(of_flags(flags).base_url(), expected, "{flags:?}");
    }
}

#[test]
fn a_proxys_word_is_taken_only_where_somebody_said_so() {
    let (local, other) = ("127.0.0.1", "203.0.113.9");
    let public = ["--public-url", "https://hear.example.com"];
    let named = ["--trusted-proxies", "10.0.0.0/8,203.0.113.9"];
    for (flags, peer, is_trusted) in [
        (&[][..], local, false),
        (&public, local, true),
        (&public, "::1", true),
        (&public, "::ffff:127.0.0.1", true),
        (&public, other, false),
        (&named, other, true),
        (&named, "10.1.2.3", true),
        (&named, "::ffff:10.1.2.3", true),
        (&named, "11.0.0.1", false),
        (&[public, named].concat(), local, false), // a list says all of them
    ] {
        let peer: IpAddr = peer.parse().expect("an address");
        assert_eq!(of_flags(flags).is_trusted_proxy(peer), is_trusted, "{flags:?} {peer}");
    }
}

#[test]
fn a_network_is_a_range_or_one_address() {
    for (text, expected) in [
        ("10.0.0.0/8", "10.0.0.0/8"),
        (" 192.168.1.2 ", "192.168.1.2/32"),
        ("::1", "::1/128"),
        ("2001:db8::/32", "2001:db8::/32"),
    ] {
        assert_eq!(network(text).map(|network| network.to_string()).as_deref(), Ok(expected));
    }
    for bad in ["", "10.0.0.0/33", "example.com", "10.0.0", "10.0.0.0/8/8"] {
        assert!(network(bad).is_err(), "{bad:?} was accepted");
    }
}

#[test]
fn dollars_are_kept_as_millionths() {
    for (text, expected) in [("0", 0), ("5", 5_000_000), ("0.50", 500_000), ("0.0000001", 0), ("0.02", 20_000)] {
        assert_eq!(dollars(text).map(micros), Ok(expected), "{text}");
    }
    for bad in ["", "-1", "NaN", "inf", "1e12", "$5", "5 dollars"] {
        assert!(dollars(bad).is_err(), "{bad:?} was accepted");
    }
    let config = of_flags(&["--embed-monthly-cap", "12.34", "--embed-alert-per-1000", "0.1"]);
    assert_eq!((config.embed_cap_micros(), config.embed_alert_micros()), (Some(12_340_000), Some(100_000)));
    assert_eq!((of_flags(&[]).embed_cap_micros(), of_flags(&[]).embed_alert_micros()), (None, None));
}

#[test]
fn blobs_lie_in_a_folder_or_a_bucket() {
    for good in ["file:///srv/blobs", "s3://bucket", "s3://bucket/prefix/more"] {
        assert_eq!(blob_url(good).as_deref(), Ok(good));
    }
    for bad in ["", "/srv/blobs", "file://srv/blobs", "s3://", "s3:///prefix", "https://bucket"] {
        assert!(blob_url(bad).is_err(), "{bad:?} was accepted");
    }
}

#[test]
fn a_language_is_a_plain_name() {
    assert_eq!(text_lang("simple").as_deref(), Ok("simple"));
    for bad in ["", "English", "en-GB", "english; drop table x", "english\0", &"a".repeat(41)] {
        assert!(text_lang(bad).is_err(), "{bad:?} was accepted");
    }
}

#[test]
fn the_list_says_where_a_value_is_from_and_hides_every_secret() {
    let command = Settings::command();
    let given =
        ["test", "--listen", "127.0.0.1:4000", "--llm-api-key", "canary-key", "--database-url", "postgres://canary"];
    let matches = command.clone().get_matches_from(given);
    assert!(Settings::from_arg_matches(&matches).is_ok());
    let all = in_force(&command, &matches);
    let of =
        |name: &str| all.iter().find(|setting| setting.name == name).map(|found| (found.value.as_str(), found.from));
    assert_eq!(of("LISTEN"), Some(("127.0.0.1:4000", "flag")));
    assert_eq!(of("LLM_API_KEY"), Some(("***", "flag")));
    assert_eq!(of("DATABASE_URL"), Some(("***", "flag")));
    assert_eq!(of("HUBSPOT_CLIENT_SECRET").map(|(value, _)| value), Some("(not set)"));
    assert!(all.iter().all(|setting| !setting.value.contains("canary") && !setting.help.is_empty()));
}
