//! The client for embeddings against a service that does everything wrong that one can.

use std::time::Duration;

use connectors::Http;
use connectors::models::{EmbedClient, EmbedSettings, Side, services};
use domain::{Fault, Secret};
use engine::memory::embed::Embedder;
use testkit::embedder::{FakeEmbedder, KEY, Manner, Wire};

fn client(fake: &FakeEmbedder, dim: usize) -> EmbedClient {
    let settings = EmbedSettings {
        base_url: fake.url() + "/",
        key: Some(Secret::new(KEY)),
        model: "fake".into(),
        dim,
        call_texts: 256,
        text_tokens: None,
        prefixes: Default::default(),
        prompts: Default::default(),
    };
    EmbedClient::new(&Http::new().expect("a client"), &services::COMPATIBLE, settings)
}

/// The embedder of a fake's flags, with others instead of some.
fn embedder(fake: &FakeEmbedder, others: &[&str]) -> Embedder {
    let flags = fake.flags();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let kept = flags.chunks(2).filter(|flag| !others.contains(&flag[0])).flatten().copied();
    let flags: Vec<&str> = kept.chain(others.iter().copied()).collect();
    Embedder::from_config(&testkit::config(&flags), &Http::new().expect("a client")).expect("an embedder")
}

/// The error's message, which shows neither key nor address.
async fn words(client: &EmbedClient, fake: &FakeEmbedder) -> String {
    let fault = client.embed(Side::Document, &["one text", "another"]).await.expect_err("a fault");
    let (words, debug) = (fault.in_words(), format!("{fault:?}"));
    for secret in [KEY, "127.0.0.1", &fake.port.to_string()] {
        assert!(!words.contains(secret) && !debug.contains(secret), "{secret} is in {debug}");
    }
    words
}

#[tokio::test]
async fn vectors_come_in_the_order_of_their_texts_and_one_long() {
    let fake = FakeEmbedder::start(16).await;
    let client = client(&fake, 16);
    let texts: Vec<String> = (0..300).map(|n| format!("text number {n}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let vectors = client.embed(Side::Document, &texts).await.expect("vectors").vectors;
    assert_eq!(fake.texts(), texts, "in two calls");
    let calls = fake.calls();
    assert_eq!(calls.iter().map(|call| call.texts.len()).collect::<Vec<_>>(), [256, 44]);
    assert_eq!(calls[0].authorization.as_deref(), Some("Bearer sk-canary-4711"));
    assert_eq!(calls[0].fields["model"], "fake");
    for (text, vector) in texts.iter().zip(&vectors) {
        let length = vector.iter().map(|n| n * n).sum::<f32>().sqrt();
        assert!((length - 1.0).abs() < 1e-5, "{text} is {length} long");
        let alone = client.embed(Side::Document, &[text]).await.expect("a vector").vectors;
        assert_eq!(alone, std::slice::from_ref(vector), "of {text}");
    }
    assert!(client.embed(Side::Document, &[]).await.expect("nothing").vectors.is_empty());
}

/// F34.
#[tokio::test]
async fn a_wrong_answer_is_refused_in_its_own_words() {
    let fake = FakeEmbedder::start(8).await;
    let client = client(&fake, 8);
    for (manner, expected) in [
        (Manner::WrongDim, "a vector of 9 dimensions where 8 are set: check EMBED_DIM"),
        (Manner::Nan, "numbers that are none"),
        (Manner::Null, "numbers that are none"),
        (Manner::NanText, "numbers that are none"),
        (Manner::Infinite, "numbers that are none"),
        (Manner::Huge, "numbers that are none"),
        (Manner::CutJson, "does not parse"),
        (Manner::Zeros, "a vector of zeros"),
        (Manner::TooFew, "1 vectors for 2 texts"),
        (Manner::TooMany, "3 vectors for 2 texts"),
        (Manner::SameIndex, "two for one (index 0)"),
        (Manner::NoJson, "does not parse"),
        (Manner::Endless, "more than 67108864 bytes"),
        (
            Manner::Status(401, "", r#"{"error":{"message":"Incorrect API key provided: sk-canary-4711"}}"#),
            "refused the key (401",
        ),
        (Manner::Status(403, "", ""), "refused the key (403"),
        (
            Manner::Status(400, "", r#"{"error":{"code":"invalid_request_error","message":"sk-canary-4711"}}"#),
            "answered 400 Bad Request (invalid_request_error)",
        ),
        (
            Manner::Status(404, "", r#"{"error":{"code":"sk-canary-4711"}}"#),
            "answered 404 Not Found: check EMBED_BASE_URL and EMBED_MODEL",
        ),
        (
            Manner::Status(429, "", r#"{"error":{"code":"insufficient_quota","message":"sk-canary-4711"}}"#),
            "until it is paid (insufficient_quota)",
        ),
        (Manner::Status(402, "", ""), "until it is paid"),
        (Manner::Status(498, "", r#"{"message":"invalid token"}"#), "refused the key (498"),
        (Manner::Status(302, "location: http://127.0.0.1:1/\r\n", ""), "answered 302 Found"),
    ] {
        fake.answer_next(std::slice::from_ref(&manner));
        let before = fake.calls().len();
        let words = words(&client, &fake).await;
        let is_begun = words.starts_with("could not be done now: ") || words.starts_with("blocked: ");
        assert!(words.contains(expected) && is_begun, "{manner:?}: {words}");
        assert_eq!(fake.calls().len() - before, 1, "{manner:?} was asked again");
    }
    assert_eq!(client.embed(Side::Document, &["one text"]).await.expect("all is well again").vectors.len(), 1);
}

#[tokio::test]
async fn who_asks_us_to_wait_is_not_asked_again() {
    let fake = FakeEmbedder::start(8).await;
    let client = client(&fake, 8);
    for (status, headers, expected) in [
        (429, "retry-after: 30\r\n", 30),
        (429, "Retry-After: 999999\r\n", 3_600),
        (429, "", 10),
        (503, "retry-after: 7\r\n", 7),
        (429, "date: Sun, 15 Nov 2026 12:00:00 GMT\r\nretry-after: Sun, 15 Nov 2026 12:02:00 GMT\r\n", 120),
    ] {
        fake.answer_next(&[Manner::Status(status, headers, "")]);
        let before = fake.calls().len();
        match client.embed(Side::Document, &["a text"]).await {
            Err(Fault::RateLimited { retry_after }) => {
                assert_eq!(retry_after, Duration::from_secs(expected), "{headers:?}")
            }
            other => panic!("{headers:?}: {other:?}"),
        }
        assert_eq!(fake.calls().len() - before, 1);
    }
}

#[tokio::test]
async fn a_hiccup_is_tried_three_times() {
    let fake = FakeEmbedder::start(8).await;
    let client = client(&fake, 8);
    fake.answer_next(&[Manner::HangsUp, Manner::Status(502, "", "")]);
    assert_eq!(client.embed(Side::Document, &["a text"]).await.expect("a vector").vectors.len(), 1);
    assert_eq!(fake.calls().len(), 3);
    for (manner, expected) in [
        (Manner::Status(500, "", ""), "the embedder answered 500 Internal Server Error"),
        (Manner::Status(503, "", ""), "the embedder answered 503 Service Unavailable"),
        (Manner::HangsUp, "the connection to the embedder broke"),
    ] {
        fake.answer(manner.clone());
        let before = fake.calls().len();
        let words = words(&client, &fake).await;
        assert!(words.contains(expected), "{manner:?}: {words}");
        assert_eq!(fake.calls().len() - before, 3, "{manner:?}");
    }
}

/// F34.
#[tokio::test]
async fn an_embedder_that_is_away_or_slow_is_found_again() {
    let fake = FakeEmbedder::start(8).await;
    let client = client(&fake, 8);
    fake.go_away().await;
    let words = words(&client, &fake).await;
    assert!(words.contains("the embedder could not be reached: connection refused"), "{words}");
    assert!(fake.calls().is_empty());
    fake.come_back().await;
    fake.answer(Manner::Slow(Duration::from_millis(300)));
    assert_eq!(client.embed(Side::Document, &["a text"]).await.expect("a vector").vectors.len(), 1);
}

#[tokio::test]
async fn the_settings_choose_the_embedder_and_it_counts() {
    let fake = FakeEmbedder::start(8).await;
    let embedder = embedder(&fake, &[]);
    assert_eq!((embedder.model().name.as_str(), embedder.model().dim), ("fake_8", 8));
    embedder.clone().embed_documents(&["one", "two"]).await.expect("vectors");
    fake.answer(Manner::Zeros);
    embedder.embed_query("three").await.expect_err("a fault");
    embedder.embed_documents(&[]).await.expect("nothing to do");
    assert_eq!((embedder.calls(), embedder.texts()), (2, 2));

    let config = testkit::config(&["--embedder", "openai"]);
    let refused = Embedder::from_config(&config, &Http::new().expect("a client"));
    assert!(refused.err().expect("no key").to_string().contains("EMBED_API_KEY is not set"));
}

#[tokio::test]
async fn every_service_is_asked_as_it_wants_for_questions_and_for_documents() {
    for wire in Wire::ALL {
        let fake = FakeEmbedder::of(wire, 256).await;
        let embedder = embedder(&fake, &[]);
        let texts: Vec<String> = (0..70).map(|n| format!("text number {n}")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let embedded = embedder.embed_documents(&texts).await.expect("vectors");
        assert!(embedded.fault.is_none() && embedded.vectors.len() == 70, "{wire:?}: {:?}", embedded.fault);
        let calls = fake.calls();
        assert_eq!(calls.iter().map(|call| call.texts.len()).collect::<Vec<_>>(), [32, 32, 6], "{wire:?}");
        let alone = embedder.embed_documents(&[texts[40]]).await.expect("a vector").vectors;
        assert_eq!(alone[0], embedded.vectors[40], "{wire:?}: in the order of the texts");
        let length = alone[0].iter().map(|n| n * n).sum::<f32>().sqrt();
        assert!((length - 1.0).abs() < 1e-5, "{wire:?}: {length} long");

        embedder.embed_query("a question").await.expect("a vector");
        let (document, query) = (&calls[0], fake.calls().pop().expect("a call"));
        let told = |name: &str| (document.fields.get(name), query.fields.get(name)).into();
        let sides: [Option<&serde_json::Value>; 2] = match wire {
            Wire::Voyage | Wire::Cohere => told("input_type"),
            Wire::Tei => told("prompt_name"),
            _ => [None, None],
        };
        let expected = match wire {
            Wire::Voyage => [Some("document"), Some("query")],
            Wire::Cohere => [Some("search_document"), Some("search_query")],
            Wire::Tei => [Some("document"), Some("query")],
            _ => [None, None],
        };
        assert_eq!(sides.map(|side| side.and_then(|side| side.as_str())), expected, "{wire:?}");
        let begin = if wire == Wire::Ollama { ["search_document: ", "search_query: "] } else { ["", ""] };
        assert_eq!(document.texts[0], format!("{}text number 0", begin[0]), "{wire:?}");
        assert_eq!(query.texts, [format!("{}a question", begin[1])], "{wire:?}");
        assert!(fake.complaints().is_empty(), "{wire:?}: {:?}", fake.complaints());
    }
}

/// F34.
#[tokio::test]
async fn a_wrong_answer_is_refused_in_every_wire_format() {
    for wire in Wire::ALL {
        let fake = FakeEmbedder::of(wire, 256).await;
        let embedder = embedder(&fake, &[]);
        for (manner, expected) in [
            (Manner::WrongDim, "a vector of 257 dimensions where 256 are set"),
            (Manner::Nan, "numbers that are none"),
            (Manner::NanText, "numbers that are none"),
            (Manner::Null, "numbers that are none"),
            (Manner::Infinite, "numbers that are none"),
            (Manner::Huge, "numbers that are none"),
            (Manner::Zeros, "a vector of zeros"),
            (Manner::TooFew, "1 vectors for 2 texts"),
            (Manner::TooMany, "3 vectors for 2 texts"),
            (Manner::CutJson, "does not parse"),
            (Manner::NoJson, "does not parse"),
        ] {
            fake.answer_next(std::slice::from_ref(&manner));
            let fault = embedder.embed_documents(&["one text", "another"]).await.expect_err("a fault").in_words();
            assert!(fault.contains(expected), "{wire:?} {manner:?}: {fault}");
        }
        embedder.embed_documents(&["one text", "another"]).await.expect("all is well again");
        assert!(fake.complaints().is_empty(), "{wire:?}: {:?}", fake.complaints());
    }
}

#[tokio::test]
async fn what_is_too_large_is_sent_in_smaller_calls_and_no_text_is_cut() {
    for wire in Wire::ALL {
        let fake = FakeEmbedder::of(wire, 256).await;
        fake.refuse_above(4, 2_000, 400);
        let embedder = embedder(&fake, &[]);
        let long: String = (0..200).map(|n| format!("word{n} ")).collect();
        let texts = ["one", "two", "three", "four", "five", "six", &long, "eight", "nine"];
        let embedded = embedder.embed_documents(&texts).await.expect("vectors");
        assert!(embedded.fault.is_none() && embedded.vectors.len() == 9, "{wire:?}: {:?}", embedded.fault);
        let begin = if wire == Wire::Ollama { "search_document: " } else { "" };
        let made: Vec<String> = fake.embedded().iter().map(|text| text.replacen(begin, "", 1)).collect();
        assert_eq!(made.concat(), texts.concat(), "{wire:?}: each part once, in order, none left out");
        assert!(made.len() > texts.len() && made.iter().all(|text| text.chars().count() <= 400), "{wire:?}: {made:?}");
        let near = |text: &str, vector: &[f32]| {
            let (text, embedder) = (text.to_owned(), embedder.clone());
            let vector = vector.to_vec();
            async move {
                let other = embedder.embed_documents(&[&text]).await.expect("a vector").vectors.remove(0);
                other.iter().zip(&vector).map(|(a, b)| a * b).sum::<f32>()
            }
        };
        let (own, other) =
            (near("word7 word150", &embedded.vectors[6]).await, near("seventeen", &embedded.vectors[6]).await);
        assert!(own > other, "{wire:?}: the mean is near the words of all parts: {own} and {other}");

        let before = fake.calls().len();
        embedder.embed_documents(&[&long]).await.expect("a vector");
        let is_whole = |text: &String| text.ends_with(&long);
        let again = &fake.calls()[before..];
        assert!(!again.iter().any(|call| call.texts.iter().any(is_whole)), "{wire:?}: its length is known by now");
        assert!(fake.complaints().is_empty(), "{wire:?}: {:?}", fake.complaints());
    }
}

#[tokio::test]
async fn a_service_that_refuses_everything_as_too_large_is_given_up_soon() {
    let fake = FakeEmbedder::start(8).await;
    fake.refuse_above(0, 0, 0);
    let long = "word ".repeat(400);
    let texts: Vec<&str> = (0..100).map(|_| long.as_str()).collect();
    let words = embedder(&fake, &[]).embed_documents(&texts).await.expect_err("a fault").in_words();
    assert!(words.contains("too large"), "{words}");
    assert!(fake.calls().len() < 20, "{} calls", fake.calls().len());
}

#[tokio::test]
async fn a_known_limit_of_a_text_is_kept_without_asking() {
    let fake = FakeEmbedder::start(8).await;
    let embedder = embedder(&fake, &["--embed-text-tokens", "100"]);
    let long = "word ".repeat(400);
    embedder.embed_documents(&["short", &long]).await.expect("vectors");
    assert_eq!((fake.calls().len(), fake.texts().concat()), (1, format!("short{long}")));
    assert!(fake.texts().iter().all(|text| text.len() <= 300));
}

#[tokio::test]
async fn a_brain_with_another_model_is_refused() {
    let fake = FakeEmbedder::of(Wire::Brain, 256).await;
    let words = embedder(&fake, &["--embed-model", "other"]).embed_query("a question").await.expect_err("a fault");
    let words = words.in_words();
    assert!(words.contains("answered with the model fake where other is set: check EMBED_MODEL"), "{words}");
}
