//! Asking from outside: over the API at once and as a stream, on the page with and without its script, and on the command line.

use std::time::Duration;

use domain::{Scope, Secret};
use fantoccini::Locator;
use serde_json::{Value, json};
use testkit::chat::Manner;
use testkit::{Canary, FakeChat, World, wait_until};

use crate::app::{App, Folder, client, command, free_port, run};
use crate::browser::Browser;

struct Office {
    world: World,
    app: App,
    folder: Folder,
    chat: FakeChat,
    port: u16,
    key: Secret,
}

impl Office {
    async fn new(has_model: bool) -> Self {
        let (world, folder, port, chat) = (World::now().await, Folder::new(), free_port(), FakeChat::start().await);
        let mut serve = command(&folder.0, port);
        serve.env("DATABASE_URL", &world.database.url);
        if has_model {
            serve.envs(model(&chat));
        }
        let app = App::start(serve, &["serve"], port).await;
        let (_, key) = world.caller(world.tenant_id, &[Scope::Service]).await;
        let office = Self { world, app, folder, chat, port, key };
        office.remember("Copperline", "Copperline owes 805 EUR, overdue since 3 March 2026. It bought a boiler.").await;
        office.remember("Stonebrook", "Stonebrook owes 8,280 EUR, due on 1 December 2026.").await;
        office
    }

    async fn remember(&self, title: &str, text: &str) {
        let note = json!({ "title": title, "text": text });
        let sent =
            client().post(format!("{}/api/v1/documents", self.app.url)).bearer_auth(self.key.reveal()).json(&note);
        assert_eq!(sent.send().await.expect("an answer").status(), 201);
    }

    fn ask(&self, question: &Value) -> reqwest::RequestBuilder {
        client().post(format!("{}/api/v1/answer", self.app.url)).bearer_auth(self.key.reveal()).json(question)
    }

    async fn sign_in(&self, browser: &Browser, next: &str) {
        browser.goto(&format!("{}/signin?next={next}", self.app.url)).await;
        let field = browser.client.find(Locator::Css("#key")).await.expect("a field");
        field.send_keys(self.key.reveal()).await.expect("typed");
        browser.client.find(Locator::Css("#signin .button")).await.expect("a button").click().await.expect("a click");
    }
}

fn model(chat: &FakeChat) -> [(&'static str, String); 4] {
    [
        ("LLM", "anthropic".into()),
        ("LLM_BASE_URL", chat.url(true)),
        ("LLM_MODEL", "wise-1".into()),
        ("LLM_INPUT_PRICE_PER_MILLION", "100".into()),
    ]
}

fn good() -> Value {
    let of = |text: &str, passage: &str, quote: &str| json!({ "text": text, "cites": [{ "passage": passage, "quote": quote }] });
    json!([
        of("Copperline owes 805 EUR.", "@Copperline owes", "Copperline owes 805 EUR"),
        of("Mallory owes 1 EUR.", "@Copperline owes", "Copperline owes 805 EUR"),
        of("Stonebrook owes 8,280 EUR.", "@Stonebrook owes", "Stonebrook owes 8,280 EUR"),
    ])
}

/// The events of a stream, as (name, data).
fn events(stream: &str) -> Vec<(String, Value)> {
    let of = |event: &str| {
        let line = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        Some((line("event:")?.to_owned(), serde_json::from_str(line("data:")?).expect("JSON")))
    };
    stream.split("\n\n").filter_map(of).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_over_the_api_at_once_and_as_a_stream() {
    let office = Office::new(true).await;
    office.chat.answer(Manner::Says(json!({ "sentences": good() })));
    let question = json!({ "question": "Who owes us money?" });
    let answer: Value = office.ask(&question).send().await.expect("an answer").json().await.expect("JSON");
    assert_eq!((&answer["kind"], &answer["dropped"], &answer["refusal"]), (&json!("written"), &json!(1), &Value::Null));
    let texts: Vec<&str> =
        answer["sentences"].as_array().into_iter().flatten().filter_map(|s| s["text"].as_str()).collect();
    assert_eq!(texts, ["Copperline owes 805 EUR.", "Stonebrook owes 8,280 EUR."]);
    let citation = &answer["sentences"][0]["citations"][0];
    assert_eq!((&citation["title"], &citation["quote"]), (&json!("Copperline"), &json!("Copperline owes 805 EUR")));
    let place = format!(
        "/documents/{}#c-{}",
        citation["document_id"].as_str().expect("an id"),
        citation["chunk_id"].as_str().expect("an id")
    );
    assert!(citation["url"].as_str().is_some_and(|url| url.ends_with(&place)), "{citation}");
    assert_eq!((&answer["cost"]["model"], &answer["cost"]["is_estimate"]), (&json!("wise-1"), &json!(false)));

    let streamed = office.ask(&question).header("accept", "text/event-stream").send().await.expect("an answer");
    assert_eq!(streamed.headers()["content-type"], "text/event-stream");
    let told = events(&streamed.text().await.expect("a stream"));
    let names: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["sentence", "sentence", "done"]);
    assert_eq!((&told[0].1, &told[2].1["dropped"]), (&answer["sentences"][0], &json!(1)));
    assert_eq!(told[2].1["cost"], answer["cost"]);

    office.chat.answer(Manner::Says(json!({ "sentences": [good()[1].clone()] })));
    let streamed = office.ask(&question).header("accept", "text/event-stream").send().await.expect("an answer");
    let told = events(&streamed.text().await.expect("a stream"));
    let names: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["refused", "done"]);
    assert!(told[0].1["closest"].as_array().is_some_and(|closest| !closest.is_empty()), "{told:?}");

    let filtered = json!({ "question": "Who owes us money?", "filters": { "type": "call" } });
    let none: Value = office.ask(&filtered).send().await.expect("an answer").json().await.expect("JSON");
    assert_eq!((&none["kind"], &none["closest"]), (&json!("refused"), &json!([])));
    for (odd, status) in [
        (json!({ "question": " " }), 400),
        (json!({ "question": "x".repeat(2_001) }), 400),
        (json!({ "question": "a\0b" }), 400),
        (json!({}), 422),
        (json!({ "question": "x", "filters": { "since": "soon" } }), 422),
    ] {
        assert_eq!(office.ask(&odd).send().await.expect("an answer").status().as_u16(), status, "{odd}");
    }
    let (_, agent) = office.world.caller(office.world.tenant_id, &[Scope::Agent]).await;
    let refused =
        client().post(format!("{}/api/v1/answer", office.app.url)).bearer_auth(agent.reveal()).json(&question);
    assert_eq!(refused.send().await.expect("an answer").status(), 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_has_few_answers_under_way_at_once() {
    let office = Office::new(true).await;
    office.chat.answer(Manner::Waits("{\"sentences\":[".into(), "]}".into()));
    let question = json!({ "question": "Who owes us money?" });
    let ask = || office.ask(&question).header("accept", "text/event-stream").send();
    let mut streams = Vec::new();
    for _ in 0..4 {
        streams.push(ask().await.expect("a stream"));
    }
    assert_eq!(ask().await.expect("an answer").status(), 429);
    drop(streams); // those who leave give their places back
    let is_free = async || ask().await.is_ok_and(|answer| answer.status() == 200);
    assert!(wait_until(Duration::from_secs(20), is_free).await);
}

/// S15, S26.
#[tokio::test(flavor = "multi_thread")]
async fn the_page_streams_an_answer_and_nothing_that_a_text_says_becomes_active() {
    let office = Office::new(true).await;
    let canary = Canary::start().await;
    let address = format!("http://127.0.0.1:{}", canary.port);
    let hostile = format!(
        "<img src={address}/a.png onerror=\"document.title='owned'\"><script>document.title='owned'</script> [x]({address}/b)"
    );
    office.remember(&format!("Brackwater {hostile}"), &format!("Brackwater owes 70 EUR {hostile}.")).await;
    let said = format!("Brackwater owes 70 EUR {hostile}.");
    let sentence = json!({ "text": said, "cites": [{ "passage": "@Brackwater owes", "quote": said }] });
    let whole = serde_json::to_string(&good()[0]).expect("JSON");
    let rest = format!("{},{}]}}", good()[1], sentence);
    office.chat.answer(Manner::Waits(format!("{{\"sentences\":[{whole},"), rest));

    let browser = Browser::start().await;
    office.sign_in(&browser, "/ask").await;
    assert!(browser.shows("Every sentence of an answer links to its source", Duration::from_secs(5)).await);
    browser.photograph("ask-empty").await;
    let field = browser.client.find(Locator::Css("#q")).await.expect("a field");
    field.send_keys("Who owes us money?").await.expect("typed");
    browser.client.find(Locator::Css("#ask .button")).await.expect("a button").click().await.expect("a click");
    assert!(browser.shows("Copperline owes 805 EUR.", Duration::from_secs(20)).await, "{}", browser.text().await);
    assert!(!browser.text().await.contains("left out"), "the model still writes");
    office.chat.go_on();
    assert!(browser.shows("1 sentence was left out", Duration::from_secs(20)).await, "{}", browser.text().await);
    let text = browser.text().await;
    assert!(text.contains("Brackwater owes 70 EUR <img") && !text.contains("Mallory"), "{text}");
    browser.photograph("ask-answer").await;
    assert!(browser.is_unowned(Duration::from_millis(300)).await, "S15: a script ran");
    let active = "return document.querySelectorAll('#answer img, #answer script, #answer a:not([href^=\"/documents/\"])').length";
    assert_eq!(browser.client.execute(active, vec![]).await.expect("a number"), json!(0));
    assert_eq!(canary.visits(), 0, "S26: something was fetched");
    browser.client.find(Locator::Css("#sentences a")).await.expect("a link").click().await.expect("a click");
    assert!(browser.shows("1 chunk", Duration::from_secs(5)).await);
    let url = browser.client.current_url().await.expect("an address");
    assert!(url.path().starts_with("/documents/") && url.fragment().is_some_and(|place| place.starts_with("c-")));

    // The same page without its script: the form is sent, and the whole answer comes back.
    office.chat.answer(Manner::Says(json!({ "sentences": [good()[0].clone(), sentence] })));
    browser.goto(&format!("{}/ask?q=Who+owes+us+money%3F", office.app.url)).await;
    let n_asked = office.chat.calls().len();
    browser
        .client
        .execute("HTMLFormElement.prototype.submit.call(document.getElementById('ask'))", vec![])
        .await
        .expect("sent");
    assert!(browser.shows("Copperline owes 805 EUR.", Duration::from_secs(20)).await, "{}", browser.text().await);
    assert_eq!(office.chat.calls().len(), n_asked + 1, "a link alone asks nothing");
    assert!(browser.is_unowned(Duration::from_millis(300)).await, "S15: a script ran");
    office.chat.answer(Manner::Says(json!({ "sentences": [] })));
    browser.goto(&format!("{}/ask?q=Who+owes+us+money%3F", office.app.url)).await;
    browser.client.find(Locator::Css("#ask .button")).await.expect("a button").click().await.expect("a click");
    assert!(browser.shows("What was found does not answer this question.", Duration::from_secs(20)).await);
    assert!(browser.shows("wise-1", Duration::from_secs(5)).await);
    browser.photograph("ask-refused").await;
    assert_eq!(canary.visits(), 0, "S26: something was fetched");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_prints_sentences_and_where_they_stand() {
    let office = Office::new(false).await;
    let ask = |envs: &[(&'static str, String)], words: &[&str]| {
        let mut ask = command(&office.folder.0, office.port);
        ask.env("DATABASE_URL", &office.world.database.url).envs(envs.iter().cloned()).arg("ask").args(words);
        run(&mut ask)
    };
    let (output, said, error) = ask(&[], &["Who", "owes us money?"]);
    assert!(output.status.success(), "{error}");
    assert!(
        said.starts_with("“") && said.contains("“Copperline owes 805 EUR, overdue since 3 March 2026.” ["),
        "{said}"
    );
    assert!(said.contains("Copperline · Note · ") && said.contains("/documents/") && said.contains("#c-"), "{said}");
    let (output, said, error) = ask(&[], &["Which unicorns breed in Atlantis?"]);
    assert!(!output.status.success() && said.is_empty(), "{said}");
    assert!(error.contains("fits this question"), "{error}");

    office.chat.answer(Manner::Says(json!({ "sentences": good() })));
    let (output, said, error) = ask(&model(&office.chat), &["Who owes us money?"]);
    assert!(output.status.success(), "{error}");
    assert!(said.starts_with("Copperline owes 805 EUR. [1]\nStonebrook owes 8,280 EUR. [2]\n"), "{said}");
    assert!(error.contains("1 sentence was left out") && error.contains("wise-1"), "{error}");
    let (_, said, _) = ask(&model(&office.chat), &["--json", "Who owes us money?"]);
    let answer: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!((&answer["kind"], &answer["dropped"]), (&json!("written"), &json!(1)));
}
