//! Fetching addresses that strangers name, from servers that redirect to private ones: only the allowed server is ever reached.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use connectors::Outside;
use connectors::outside::{Basic, FetchError, Limits, Lookup};
use domain::Secret;
use testkit::recordings::{Manner, wav};
use testkit::{Canary, FakeRecordings};

/// This machine, in the notations that filters forget; `{}` is the port.
const OURSELVES: &[&str] = &[
    "http://127.0.0.1:{}/",
    "http://127.1:{}/",
    "http://127.0.1:{}/",
    "http://127.0.0.1.:{}/",
    "http://127.127.127.127:{}/",
    "http://0:{}/",
    "http://0.0.0.0:{}/",
    "http://0x7f.1:{}/",
    "http://0x7f000001:{}/",
    "http://0177.0.0.1:{}/",
    "http://017700000001:{}/",
    "http://2130706433:{}/",
    "http://127。0。0。1:{}/",
    "http://１２７.０.０.１:{}/",
    "http://%31%32%37.0.0.1:{}/",
    "http://public.example@127.0.0.1:{}/",
    "http://user:secret@127.0.0.1:{}/",
    "http://127.0.0.1:{}\\@public.example/",
    "http://[::1]:{}/",
    "http://[0:0:0:0:0:0:0:1]:{}/",
    "http://[::]:{}/",
    "http://[::127.0.0.1]:{}/",
    "http://[::ffff:127.0.0.1]:{}/",
    "http://[::ffff:7f00:1]:{}/",
    "http://[64:ff9b::127.0.0.1]:{}/",
    "http://[2002:7f00:1::]:{}/",
    "http://localhost:{}/",
    "http://LOCALHOST.:{}/",
    "http://public.localhost:{}/",
];

fn at(notation: &str, port: u16) -> String {
    notation.replace("{}", &port.to_string())
}

fn limits() -> Limits {
    Limits {
        connect: Duration::from_secs(2),
        idle: Duration::from_secs(2),
        total: Duration::from_secs(5),
        bytes: 1 << 20,
    }
}

/// A client that may reach these servers beside public ones. A name is unknown unless `lookup` knows it.
fn way_out(allowed: &[&FakeRecordings], lookup: Lookup, limits: Limits) -> Outside {
    let allow: Vec<_> = allowed.iter().map(|server| server.network().parse().expect("a network")).collect();
    Outside::new(&allow, lookup, limits).expect("a client")
}

/// A name with one set of addresses per lookup; the last set stays. Also returns the count of lookups.
fn flipping(answers: &[&[&str]]) -> (Lookup, Arc<AtomicUsize>) {
    let address = |text: &&str| text.parse::<IpAddr>().expect("an address");
    let answers: Vec<Vec<IpAddr>> = answers.iter().map(|set| set.iter().map(address).collect()).collect();
    let asked = Arc::new(AtomicUsize::new(0));
    let counting = asked.clone();
    let lookup = move |_: &str| answers[counting.fetch_add(1, SeqCst).min(answers.len() - 1)].clone();
    (Lookup::Given(Arc::new(lookup)), asked)
}

/// Fetches everything, or returns why not, and checks that the message reveals no address.
async fn fetch(outside: &Outside, url: &str, basic: Option<&Basic>) -> Result<Vec<u8>, FetchError> {
    let fetched = async {
        let mut fetched = outside.fetch(url, basic).await?;
        let mut body = Vec::new();
        while let Some(piece) = fetched.next().await? {
            body.extend(piece);
        }
        Ok(body)
    };
    let fetched: Result<_, FetchError> = fetched.await;
    if let Err(error) = &fetched {
        let (words, debug) = (error.to_string(), format!("{error:?}"));
        for secret in ["127.", "localhost", "public.example", "canary", "secret"] {
            assert!(!words.contains(secret) && !debug.contains(secret), "{secret} is in {debug}");
        }
    }
    fetched
}

/// S10.
#[tokio::test]
async fn a_redirect_leads_nowhere_that_a_url_does_not() {
    let (server, canary) = (FakeRecordings::start(1).await, Canary::start().await);
    let outside = way_out(&[&server], Lookup::System, limits());
    for notation in OURSELVES {
        assert_eq!(fetch(&outside, &at(notation, canary.port), None).await, Err(FetchError::NotPublic), "{notation}");
    }
    let start = server.url("/start");
    for status in [301, 302, 303, 307, 308] {
        for notation in OURSELVES {
            server.answer_next(&[Manner::SendsOn(status, at(notation, canary.port))]);
            let refused = fetch(&outside, &start, None).await;
            assert_eq!(refused, Err(FetchError::NotPublic), "S10: {status} to {notation}");
        }
        let elsewhere = ["//127.0.0.1:{}/", "file:///etc/passwd", "gopher://127.0.0.1:{}/_", "http://[::1", ""];
        for location in elsewhere.map(|notation| at(notation, canary.port)) {
            server.answer_next(&[Manner::SendsOn(status, location.clone()), Manner::Status(404, "")]);
            assert!(fetch(&outside, &start, None).await.is_err(), "S10: {status} to {location}");
        }
        // Some hops over an honest server, and then home.
        let chain: Vec<Manner> = ["/a", "/b", "/c"].map(|path| Manner::SendsOn(status, path.into())).into();
        server.answer_next(&[&chain[..], &[Manner::SendsOn(status, at(OURSELVES[0], canary.port))]].concat());
        assert_eq!(fetch(&outside, &start, None).await, Err(FetchError::NotPublic), "S10: a chain of {status}");
        server.answer_next(&chain);
        assert_eq!(fetch(&outside, &start, None).await, Ok(wav(1)), "an honest chain of {status}");
    }
    assert_eq!(canary.visits(), 0, "S9, S10: somebody got in");
    tokio::net::TcpStream::connect(("127.0.0.1", canary.port)).await.expect("it listens");
    assert!(testkit::wait_until(Duration::from_secs(5), async || canary.visits() == 1).await, "it does not count");
}

#[tokio::test]
async fn a_server_that_sends_us_in_circles_is_left() {
    let server = FakeRecordings::start(1).await;
    let outside = way_out(&[&server], Lookup::System, limits());
    server.answer(Manner::SendsOn(302, "/round".into()));
    assert_eq!(fetch(&outside, &server.url("/"), None).await, Err(FetchError::TooManyHops));
    assert_eq!(server.visits().len(), 6, "the first and five hops");
    let hops: Vec<Manner> = (0..5).map(|nth| Manner::SendsOn(302, format!("/{nth}"))).collect();
    server.answer(Manner::Well);
    server.answer_next(&hops);
    assert_eq!(fetch(&outside, &server.url("/"), None).await, Ok(wav(1)), "five hops are allowed");
    server.answer_next(&[Manner::Status(304, ""), Manner::Status(300, "")]);
    for status in [304, 300] {
        assert_eq!(fetch(&outside, &server.url("/"), None).await, Err(FetchError::Status(status)));
    }
}

/// S9, S10.
#[tokio::test]
async fn a_name_that_changes_its_address_does_not_change_ours() {
    let server = FakeRecordings::start(1).await;
    let canary = Canary::start_at(server.port).await;
    let url = format!("http://public.example:{}/", server.port);
    let (ours, home): (&[&str], &[&str]) = (&["127.77.0.1"], &["127.0.0.1"]);

    let (lookup, asked) = flipping(&[ours, home]);
    let outside = way_out(&[&server], lookup, limits());
    assert_eq!(fetch(&outside, &url, None).await, Ok(wav(1)));
    assert_eq!(asked.load(SeqCst), 1, "what was checked is what is connected to: nobody asks again");
    assert_eq!(fetch(&outside, &url, None).await, Err(FetchError::NotPublic), "S10: another address the second time");

    let (lookup, _) = flipping(&[ours, home]);
    let outside = way_out(&[&server], lookup, limits());
    server.answer_next(&[Manner::SendsOn(302, "/again".into())]);
    assert_eq!(fetch(&outside, &url, None).await, Err(FetchError::NotPublic), "S10: another address at the next hop");

    for mixed in
        [&["127.77.0.1", "127.0.0.1"][..], &["127.0.0.1", "127.77.0.1"], &["127.77.0.1", "::1"], &["::ffff:127.77.0.1"]]
    {
        let outside = way_out(&[&server], flipping(&[mixed]).0, limits());
        assert_eq!(fetch(&outside, &url, None).await, Err(FetchError::NotPublic), "S9: {mixed:?}");
    }
    for address in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::", "10.0.0.1", "169.254.169.254", "fe80::1"] {
        let outside = way_out(&[&server], flipping(&[&[address]]).0, limits());
        assert_eq!(fetch(&outside, &url, None).await, Err(FetchError::NotPublic), "S9: {address}");
    }
    assert_eq!(canary.visits(), 0, "S9, S10: somebody got in");
}

/// S10.
#[tokio::test]
async fn credentials_stay_with_the_server_they_are_for() {
    let (first, second) = (FakeRecordings::start(1).await, FakeRecordings::start(2).await);
    let outside = way_out(&[&first, &second], Lookup::System, limits());
    let basic = Basic { user: "AC1".into(), password: Secret::new("canary-7"), domain: "twilio.com" };
    const HEADER: &str = "Basic QUMxOmNhbmFyeS03";
    first.want(HEADER);

    assert_eq!(fetch(&outside, &first.url("/a"), Some(&basic)).await, Ok(wav(1)));
    assert_eq!(fetch(&outside, &first.url("/a"), None).await, Err(FetchError::Status(401)));
    let inside = first.url("/a").replace("http://", "http://AC1:canary-7@");
    assert_eq!(fetch(&outside, &inside, None).await, Err(FetchError::Status(401)), "credentials in a URL were used");

    // To another host, and back again: gone for good.
    first.answer_next(&[Manner::SendsOn(302, "/same".into()), Manner::SendsOn(302, second.url("/b"))]);
    second.answer_next(&[Manner::SendsOn(302, first.url("/c"))]);
    assert_eq!(fetch(&outside, &first.url("/a"), Some(&basic)).await, Err(FetchError::Status(401)));
    let seen = |server: &FakeRecordings| -> Vec<(String, bool)> {
        let visits = server.visits().into_iter();
        visits.map(|visit| (visit.line, visit.authorization.as_deref() == Some(HEADER))).collect()
    };
    let expected = [
        ("GET /a", true),
        ("GET /a", false),
        ("GET /a", false),
        ("GET /a", true),
        ("GET /same", true),
        ("GET /c", false),
    ];
    assert_eq!(seen(&first), expected.map(|(line, is_told)| (line.to_owned(), is_told)));
    assert_eq!(seen(&second), [("GET /b".to_owned(), false)], "S10: another host was told");
    assert!(second.visits()[0].authorization.is_none());

    // The same host at another port is another server; so is one that is neither the provider's nor ours.
    let third = FakeRecordings::start(1).await;
    first.answer_next(&[Manner::SendsOn(302, third.url("/d"))]);
    assert_eq!(fetch(&outside, &first.url("/a"), Some(&basic)).await, Ok(wav(1)));
    let named = way_out(&[&third], flipping(&[&["127.77.0.1"]]).0, limits());
    let url = format!("http://public.example:{}/e", third.port);
    assert_eq!(fetch(&named, &url, Some(&basic)).await, Ok(wav(1)));
    assert_eq!(seen(&third), [("GET /d".to_owned(), false), ("GET /e".to_owned(), false)]);
    let visit = &third.visits()[1];
    assert_eq!(visit.host.as_deref(), Some(format!("public.example:{}", third.port).as_str()));
    assert_eq!(visit.accept_encoding.as_deref(), Some("identity"));
}

#[tokio::test]
async fn size_and_time_are_bounded() {
    let server = FakeRecordings::start(1).await;
    let small = Limits { bytes: 10_000, idle: Duration::from_millis(400), total: Duration::from_secs(2), ..limits() };
    let outside = way_out(&[&server], Lookup::System, small);
    let too_large = FetchError::TooLarge { most: 10_000 };
    let long = Duration::from_secs(30);
    for (manner, expected) in [
        (Manner::Well, too_large.clone()),
        (Manner::Endless, too_large.clone()),
        (Manner::Claims(10_001), too_large.clone()),
        (Manner::Claims(1 << 60), too_large),
        (Manner::Stalls(long), FetchError::TooSlow),
        (Manner::Trickles(Duration::from_millis(100)), FetchError::TooSlow),
        (Manner::Silent(long), FetchError::TooSlow),
        (Manner::Status(404, "canary"), FetchError::Status(404)),
        (Manner::Status(403, "canary"), FetchError::Status(403)),
        (Manner::Status(503, "canary"), FetchError::Status(503)),
    ] {
        server.answer_next(std::slice::from_ref(&manner));
        let begun = Instant::now();
        assert_eq!(fetch(&outside, &server.url("/"), None).await, Err(expected), "{manner:?}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{manner:?} took {:?}", begun.elapsed());
    }
    server.answer_next(&[Manner::Half]);
    assert!(
        matches!(fetch(&outside, &server.url("/"), None).await, Err(FetchError::Broken(_))),
        "half of it was taken"
    );
    server.answer_next(&[Manner::HangsUp]);
    assert!(matches!(fetch(&outside, &server.url("/"), None).await, Err(FetchError::Unreachable(_))));
    server.go_away().await;
    let refused = fetch(&outside, &server.url("/"), None).await;
    // Refused; or reset, when it was in the queue of a server that just went.
    assert!(matches!(&refused, Err(FetchError::Unreachable(why)) if why.starts_with(": connection re")), "{refused:?}");
    let unknown = way_out(&[], flipping(&[&[]]).0, limits());
    let refused = fetch(&unknown, "http://public.example/", None).await;
    assert_eq!(refused, Err(FetchError::Unreachable(": its name has no address".into())));
}

#[tokio::test]
async fn a_request_waits_while_all_turns_are_taken() {
    let server = FakeRecordings::start(1).await;
    let outside = way_out(&[&server], Lookup::System, limits());
    server.answer(Manner::Stalls(Duration::from_secs(60)));
    let held: Arc<Mutex<Vec<_>>> = Arc::default();
    for _ in 0..16 {
        let fetched = outside.fetch(&server.url("/"), None).await.expect("a head");
        held.lock().expect("held").push(fetched);
    }
    let url = server.url("/");
    let waiting = outside.fetch(&url, None);
    let mut waiting = std::pin::pin!(waiting);
    assert!(tokio::time::timeout(Duration::from_millis(200), &mut waiting).await.is_err(), "a seventeenth at once");
    held.lock().expect("held").pop();
    assert!(waiting.await.is_ok(), "its turn has come");
}
