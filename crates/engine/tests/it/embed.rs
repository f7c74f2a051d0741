//! The client for embeddings against a service that does everything wrong that one can.

use std::time::Duration;

use connectors::Http;
use connectors::models::EmbedClient;
use domain::{Fault, Secret};
use testkit::embedder::{FakeEmbedder, Manner};

const KEY: &str = "sk-canary-4711";

fn client(fake: &FakeEmbedder, dim: usize) -> EmbedClient {
    let http = Http::new().expect("a client");
    EmbedClient::new(&http, &fake.url(), Some(Secret::new(KEY)), "fake-model", dim, false, 256)
}

/// The error's message, which shows neither key nor address.
async fn words(client: &EmbedClient, fake: &FakeEmbedder) -> String {
    let fault = client.embed(&["one text", "another"]).await.expect_err("a fault");
    let (words, debug) = (fault.in_words(), format!("{fault:?}"));
    for secret in [KEY, "127.0.0.1", &fake.port.to_string()] {
        assert!(!words.contains(secret) && !debug.contains(secret), "{secret} is in {debug}");
    }
    words
}

#[tokio::test]
async fn vectors_come_in_the_order_of_their_texts_and_one_long() {
    let fake = FakeEmbedder::start(16).await;
    let http = Http::new().expect("a client");
    let client = EmbedClient::new(&http, &(fake.url() + "/"), Some(Secret::new(KEY)), "fake-model", 16, true, 256);
    let texts: Vec<String> = (0..300).map(|n| format!("text number {n}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let vectors = client.embed(&texts).await.expect("vectors").vectors;
    assert_eq!(fake.texts(), texts, "in two calls");
    let calls = fake.calls();
    assert_eq!(calls.iter().map(|call| call.texts.len()).collect::<Vec<_>>(), [256, 44]);
    assert_eq!(calls[0].authorization.as_deref(), Some("Bearer sk-canary-4711"));
    assert_eq!((calls[0].model.as_str(), calls[0].dimensions), ("fake-model", Some(16)));
    for (text, vector) in texts.iter().zip(&vectors) {
        let length = vector.iter().map(|n| n * n).sum::<f32>().sqrt();
        assert!((length - 1.0).abs() < 1e-5, "{text} is {length} long");
        let alone = client.embed(&[text]).await.expect("a vector").vectors;
        assert_eq!(alone, std::slice::from_ref(vector), "of {text}");
    }
    assert!(client.embed(&[]).await.expect("nothing").vectors.is_empty());
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
        (Manner::Infinite, "numbers that are none"),
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
            Manner::Status(400, "", r#"{"error":{"code":"context_length_exceeded","message":"sk-canary-4711"}}"#),
            "answered 400 Bad Request (context_length_exceeded)",
        ),
        (Manner::Status(404, "", r#"{"error":{"code":"sk-canary-4711"}}"#), "answered 404 Not Found"),
        (Manner::Status(302, "location: http://127.0.0.1:1/\r\n", ""), "answered 302 Found"),
    ] {
        fake.answer_next(std::slice::from_ref(&manner));
        let before = fake.calls().len();
        let words = words(&client, &fake).await;
        assert!(words.contains(expected) && words.starts_with("could not be done now"), "{manner:?}: {words}");
        assert_eq!(fake.calls().len() - before, 1, "{manner:?} was asked again");
    }
    assert_eq!(client.embed(&["one text"]).await.expect("all is well again").vectors.len(), 1);
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
        match client.embed(&["a text"]).await {
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
    assert_eq!(client.embed(&["a text"]).await.expect("a vector").vectors.len(), 1);
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
    assert_eq!(client.embed(&["a text"]).await.expect("a vector").vectors.len(), 1);
}

#[tokio::test]
async fn the_settings_choose_the_embedder_and_it_counts() {
    let fake = FakeEmbedder::start(8).await;
    let flags = fake.flags();
    let config = testkit::config(&flags.iter().map(String::as_str).collect::<Vec<_>>());
    let embedder =
        engine::memory::embed::Embedder::from_config(&config, &Http::new().expect("a client")).expect("an embedder");
    assert_eq!((embedder.model().name.as_str(), embedder.model().dim), ("fake_8", 8));
    embedder.clone().embed_documents(&["one", "two"]).await.expect("vectors");
    fake.answer(Manner::Zeros);
    embedder.embed_query("three").await.expect_err("a fault");
    embedder.embed_documents(&[]).await.expect("nothing to do");
    assert_eq!((embedder.calls(), embedder.texts()), (2, 2));

    let config = testkit::config(&["--embedder", "openai"]);
    let refused = engine::memory::embed::Embedder::from_config(&config, &Http::new().expect("a client"));
    assert!(refused.err().expect("no key").to_string().contains("EMBED_API_KEY is not set"));
}
