//! Answers: whatever a language model writes, each sentence that is shown stands in the document that it cites, and what does not is refused. A
//! scripted model does everything wrong that one can, over both services' wires.

mod cost;
mod scripted;

use domain::{Caller, Record};
use engine::memory::answer::{self, Answer, Asking, Kind};
use engine::memory::recall::{self, Query};
use serde_json::{Value, json};
use store::memory::Mode;
use store::queue::Queue;
use testkit::chat::Manner;
use testkit::sources::QUICKBOOKS;
use testkit::{FakeChat, Sources, World, cluster};

use crate::memory::Memory;

/// The tenant's documents: name, title and text of each.
const DOCUMENTS: [(&str, &str, &str); 10] = [
    (
        "copperline",
        "Copperline Plumbing & Heating",
        "Copperline Plumbing & Heating owes 805 USD, overdue since 3 March 2026.\nInvoice 1037 of Copperline is unpaid: 805 USD of 1,200 USD, overdue since 3 March 2026.",
    ),
    (
        "larkfield",
        "Larkfield Landscaping",
        "Larkfield Landscaping owes 2,450 USD, due on 1 December 2026. Nora Vickery pays its invoices by bank transfer.",
    ),
    ("list", "Who owes what", "Larkfield owes 2,450 USD, Stonebrook owes 8,280 USD and Copperline owes 805 USD."),
    (
        "call",
        "Call with Dagny Oakes",
        "Dagny Oakes called about the boiler in 402 River Street. She does not want it repaired before Friday, and prefers calls after five. Her new address is dagny@copperline.example.",
    ),
    (
        "contract",
        "Carrier contract",
        "The contract with Brackwater Freight ends on 30 June 2027. Notice must be given 90 days before that. The price is 12.5% above last year's.",
    ),
    (
        "delivery",
        "Complaint",
        "Two pallets of copper pipe were delivered late to the yard in Barre. The customer will not pay for 3 broken lengths.",
    ),
    (
        "meeting",
        "Meeting of 12 November",
        "Marisol Penhale agreed to the rental of two excavators at 1,450.00 EUR a week. The deposit of 500 EUR was waived.",
    ),
    ("german", "Lieferung", "Die Lieferung nach Köln kommt am 24. November 2026. Herr Weiß erhält 12 Paletten."),
    ("password", "Wifi", "The guest network is called Tributary-Guest. Ask the front desk for its password."),
    (
        "prices",
        "Price list 2026",
        "A compact loader costs 310 USD a day. A trencher costs 185 USD a day. Delivery within 20 miles is free.",
    ),
];

struct Office {
    memory: Memory,
    chat: FakeChat,
    caller: Caller,
}

impl Office {
    async fn new(is_anthropic: bool, flags: &[&str]) -> Self {
        let chat = FakeChat::start().await;
        let url = chat.url(is_anthropic);
        Self { chat, ..Self::at(&url, is_anthropic, flags).await }
    }

    /// With another model than the fake one.
    async fn at(url: &str, is_anthropic: bool, flags: &[&str]) -> Self {
        let dialect = if is_anthropic { "anthropic" } else { "openai" };
        let mut all = vec!["--llm", dialect, "--llm-base-url", url, "--llm-model", "wise-1", "--llm-api-key", "k"];
        all.extend(flags);
        let world = World::with_flags(cluster::cloned(), domain::Clock::System, &all).await;
        let memory = Memory::of(world).await;
        let records = DOCUMENTS.map(|(name, title, text)| record(&memory, name, title, text));
        memory.remember(records.into()).await;
        let caller = Caller::local("test", memory.world.tenant_id, true);
        Self { memory, chat: FakeChat::start().await, caller }
    }

    async fn ask(&self, question: &str) -> Answer {
        ask(&self.memory.world, &self.caller, question).await
    }
}

fn record(memory: &Memory, name: &str, title: &str, text: &str) -> Record {
    Record { title: Some(title.to_owned()), ..memory.record(name, text) }
}

/// Runs the tasks that have clients told anew, and what they send.
async fn renew_client_words(t: &Sources) {
    let queue = Queue::new("upkeep").expect("a queue");
    for task in ["client_texts", "syncs"] {
        let mut tx = t.world.env.db.begin().await.expect("a transaction");
        queue.send(&mut tx, t.world.tenant_id, &[json!({ "task": task })]).await.expect("sent");
        tx.commit().await.expect("committed");
        t.run().await;
    }
}

fn asking() -> Asking {
    Asking { question: "Who owes us money?".into(), ..Asking::default() }
}

async fn ask(world: &World, caller: &Caller, question: &str) -> Answer {
    let asking = Asking { question: question.into(), ..Asking::default() };
    let running = Box::pin(answer::begin(&world.env, caller, &asking)).await.expect("a question");
    running.end().await.expect("an answer")
}

/// A sentence of a scripted answer. `@words` is the passage that has these words.
fn said(text: &str, passage: &str, quote: &str) -> Value {
    json!({ "text": text, "cites": [{ "passage": passage, "quote": quote }] })
}

fn says(sentences: &[Value]) -> Manner {
    Manner::Says(json!({ "sentences": sentences }))
}

/// True sentences with the words that say so.
fn good() -> Vec<(&'static str, Value)> {
    let table = [
        (
            "Who owes us money?",
            "Copperline Plumbing & Heating owes 805 USD.",
            "@Copperline Plumbing & Heating owes",
            "Copperline Plumbing & Heating owes 805 USD",
        ),
        (
            "Since when is Copperline overdue?",
            "Invoice 1037 of Copperline with 805 USD is overdue since 3 March 2026.",
            "@Invoice 1037",
            "Invoice 1037 of Copperline is unpaid: 805 USD of 1,200 USD, overdue since 3 March 2026",
        ),
        (
            "What does Larkfield owe?",
            "Larkfield Landscaping owes 2,450 USD, due on 1 December 2026.",
            "@Nora Vickery",
            "Larkfield Landscaping owes 2,450 USD, due on 1 December 2026.",
        ),
        (
            "How does Larkfield pay?",
            "Nora Vickery pays its invoices by bank transfer.",
            "@Nora Vickery",
            "Nora Vickery pays its invoices by bank transfer.",
        ),
        ("What does Stonebrook owe?", "Stonebrook owes 8,280 USD.", "@Stonebrook", "Stonebrook owes 8,280 USD"),
        (
            "Who called about the boiler?",
            "Dagny Oakes called about the boiler in 402 River Street.",
            "@boiler",
            "Dagny Oakes called about the boiler in 402 River Street.",
        ),
        ("When does Dagny Oakes want calls?", "She prefers calls after five.", "@boiler", "prefers calls after five"),
        (
            "When may the boiler of Dagny Oakes be repaired?",
            "She does not want it repaired before Friday.",
            "@boiler",
            "She does not want it repaired before Friday",
        ),
        (
            "What is the address of Dagny Oakes?",
            "Her new address is dagny@copperline.example.",
            "@boiler",
            "Her new address is dagny@copperline.example.",
        ),
        (
            "When does the carrier contract end?",
            "The contract with Brackwater Freight ends on 30 June 2027.",
            "@Brackwater",
            "The contract with Brackwater Freight ends on 30 June 2027.",
        ),
        (
            "When must notice be given to the carrier?",
            "Notice must be given 90 days before the end of the contract.",
            "@Brackwater",
            "The contract with Brackwater Freight ends on 30 June 2027. Notice must be given 90 days before that.",
        ),
        (
            "How much dearer is the carrier?",
            "The price is 12.5% above last year's.",
            "@Brackwater",
            "The price is 12.5% above last year's.",
        ),
        (
            "What came late to Barre?",
            "Two pallets of copper pipe were delivered late to the yard in Barre.",
            "@pallets",
            "Two pallets of copper pipe were delivered late to the yard in Barre.",
        ),
        (
            "Will the customer pay for broken lengths?",
            "The customer will not pay for 3 broken lengths.",
            "@pallets",
            "The customer will not pay for 3 broken lengths.",
        ),
        (
            "What did Marisol Penhale agree to?",
            "Marisol Penhale agreed to the rental of two excavators at 1,450 EUR a week.",
            "@Marisol",
            "Marisol Penhale agreed to the rental of two excavators at 1,450.00 EUR a week.",
        ),
        (
            "Was the deposit of the excavators waived?",
            "The deposit of 500 EUR was waived.",
            "@Marisol",
            "The deposit of 500 EUR was waived.",
        ),
        (
            "Wann kommt die Lieferung nach Köln?",
            "Die Lieferung nach Köln kommt am 24. November 2026.",
            "@Köln",
            "Die Lieferung nach Köln kommt am 24. November 2026.",
        ),
        (
            "Wie viele Paletten erhält Herr Weiß?",
            "Herr Weiß erhält 12 Paletten.",
            "@Köln",
            "Herr Weiß erhält 12 Paletten.",
        ),
        (
            "What is the guest network called?",
            "The guest network is called Tributary-Guest.",
            "@guest network",
            "The guest network is called Tributary-Guest.",
        ),
        (
            "What does a trencher cost?",
            "A trencher costs 185 USD a day.",
            "@trencher",
            "A trencher costs 185 USD a day.",
        ),
    ];
    table.into_iter().map(|(question, text, passage, quote)| (question, said(text, passage, quote))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_holds_is_shown_and_what_does_not_is_left_out_of_the_same_answer() {
    let office = Office::new(true, &[]).await;
    let owes = "Copperline Plumbing & Heating owes 805 USD, overdue since 3 March 2026.";
    let both = json!({ "text": "Copperline owes 805 USD.", "cites": [
        { "passage": "p77", "quote": owes }, { "passage": "@Invoice 1037", "quote": owes }, { "passage": "@boiler", "quote": owes },
    ] });
    let wrong = said("Copperline owes 8,050 USD.", "@Invoice 1037", owes);
    let long = said(&"Copperline owes 805 USD. ".repeat(40), "@Invoice 1037", owes);
    office.chat.answer(says(&[wrong.clone(), both, json!({ "text": 5 }), long, wrong]));
    let answer = office.ask("Who owes us money?").await;
    assert_eq!((answer.kind, answer.n_dropped), (Kind::Written, 4), "{answer:?}");
    let [sentence] = answer.sentences.as_slice() else { panic!("{answer:?}") };
    assert_eq!(sentence.text, "Copperline owes 805 USD.");
    let cited: Vec<&str> = sentence.citations.iter().map(|cited| cited.place.external_id.as_str()).collect();
    assert_eq!(cited, ["copperline"], "only the citation that holds it is shown");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_away_or_busy_leaves_the_documents_own_sentences() {
    let office = Office::new(false, &[]).await;
    for (manner, why) in [
        (Manner::Status(429, "retry-after: 60\r\n", ""), "asked us to wait 60 s"),
        (Manner::Status(401, "", ""), "refused the key"),
        (Manner::Status(500, "", ""), "answered 500"),
        (Manner::HangsUp, "the connection to the language model broke"),
        (Manner::NoJson, "does not parse"),
        (Manner::BreaksOff("{".into()), "broke off"),
        (Manner::CutOff, "was cut off"),
    ] {
        office.chat.answer(manner.clone());
        let answer = office.ask("Who owes us money?").await;
        assert_eq!(answer.kind, Kind::Quoted, "{manner:?}: {answer:?}");
        assert!(answer.note.as_deref().is_some_and(|note| note.contains(why)), "{manner:?}: {:?}", answer.note);
        assert!(answer.sentences.iter().any(|sentence| sentence.text.contains("Copperline")), "{answer:?}");
    }
    office.chat.answer_next(&[Manner::Status(429, "retry-after: 1\r\n", ""), says(&[good()[0].1.clone()])]);
    assert_eq!(office.ask("Who owes us money?").await.kind, Kind::Written, "a short wait is waited");
    office.chat.go_away().await;
    let answer = office.ask("Who owes us money?").await;
    assert_eq!(answer.kind, Kind::Quoted);
    assert!(answer.note.is_some_and(|note| note.contains("could not be reached")));
    assert!(answer.cost.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sentence_is_told_while_the_model_still_writes() {
    let office = Office::new(true, &[]).await;
    let sentence = |(_, sentence): &(&str, Value)| sentence.to_string();
    let good = good();
    let first = format!("{{\"sentences\":[{},", sentence(&good[0]));
    office.chat.answer(Manner::Waits(first, format!("{}]}}", sentence(&good[4]))));
    let mut running =
        Box::pin(answer::begin(&office.memory.world.env, &office.caller, &asking())).await.expect("begun");
    let told = running.next().await.expect("the first sentence");
    assert_eq!(told.text, "Copperline Plumbing & Heating owes 805 USD.");
    assert_eq!(office.chat.n_tokens(), 0, "the model has not ended");
    office.chat.go_on();
    assert_eq!(running.next().await.map(|told| told.text).as_deref(), Some("Stonebrook owes 8,280 USD."));
    let answer = running.end().await.expect("an answer");
    assert_eq!((answer.kind, answer.sentences.len()), (Kind::Written, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_model_the_best_sentences_are_quoted_with_their_places() {
    let memory = Memory::new().await;
    let records = DOCUMENTS.map(|(name, title, text)| record(&memory, name, title, text));
    memory.remember(records.into()).await;
    let caller = Caller::local("test", memory.world.tenant_id, true);
    let answer = ask(&memory.world, &caller, "When does the contract with the carrier end?").await;
    assert_eq!((answer.kind, answer.n_dropped), (Kind::Quoted, 0));
    let first = &answer.sentences[0];
    assert_eq!(first.text, "The contract with Brackwater Freight ends on 30 June 2027.");
    assert_eq!(
        (first.citations[0].quote.as_str(), first.citations[0].place.external_id.as_str()),
        (first.text.as_str(), "contract")
    );
    let nothing = ask(&memory.world, &caller, "Which unicorns breed in Atlantis during winter?").await;
    assert_eq!(nothing.kind, Kind::Refused, "{nothing:?}");
    assert!(nothing.refusal.is_some() && nothing.sentences.is_empty());
    let empty = Memory::new().await;
    let caller = Caller::local("test", empty.world.tenant_id, true);
    let none = ask(&empty.world, &caller, "Who owes us money?").await;
    assert_eq!((none.kind, none.closest.len()), (Kind::Refused, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_owes_money_is_found_in_the_words_of_the_question() {
    let t = Sources::new().await;
    let source = t.connect(QUICKBOOKS).await;
    t.run().await;
    let caller = t.world.operator().await;
    let query = Query { text: "who owes us money".into(), k: 10, mode: Mode::Hybrid, ..Query::default() };
    let found = Box::pin(recall::search(&t.world.env, &caller, &query)).await.expect("hits");
    let titles: Vec<&str> = found.hits.iter().filter_map(|hit| hit.title.as_deref()).collect();
    let debtors = ["Larkfield Landscaping", "Copperline Plumbing & Heating", "Stonebrook Excavating"];
    assert!(debtors.iter().all(|debtor| titles.contains(debtor)), "{titles:?}");
    let answer = ask(&t.world, &caller, "Who owes us money?").await;
    assert_eq!(answer.kind, Kind::Quoted);
    let said: Vec<&str> = answer.sentences.iter().map(|sentence| sentence.text.as_str()).collect();
    assert!(
        said.iter().any(|text| text.starts_with("Copperline Plumbing & Heating owes us money: it owes 805 USD, ")),
        "{said:?}"
    );

    // A text in the words of an older version, and one that speaks of a day that has passed, are made anew.
    let sql = "update source_documents set source_metadata = '{\"client\":\"x\"}' where document_type = 'client' and source_id = $1";
    sqlx::query(sql).bind(source.0).execute(&mut *t.world.conn().await).await.expect("older ones");
    let outdated =
        "select count(*) from source_documents where document_type = 'client' and source_metadata ->> 'words' is null";
    assert!(t.count(outdated).await > 3);
    renew_client_words(&t).await;
    assert_eq!(t.count(outdated).await, 0);
    let due = "select count(*) from source_documents where document_type = 'client' and source_metadata ? 'next_due'";
    assert!(t.count(due).await > 0);
    t.world.env.clock.advance(chrono::TimeDelta::days(400));
    renew_client_words(&t).await;
    assert_eq!(t.count(due).await, 0, "after a year everything is overdue");
    let text = "select count(*) from source_documents where document_type = 'client' and text like '%owes%' and text like '%due on%'";
    assert_eq!(t.count(text).await, 0);
}
