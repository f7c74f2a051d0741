//! 50 invoices whose fields are known, read with a language model over HTTP that answers well, badly, with wrong sums, with prose, or not at all.

use std::collections::BTreeMap;
use std::path::Path;

use domain::papers::{self, Field, FieldName, FieldState, FieldValue, PaperKind};
use domain::reading::Page;
use serde_json::{Map, Value, json};
use testkit::chat::{FakeChat, Manner};
use testkit::{World, pdf};

use crate::files::{Desk, id_of};

/// An invoice of `fixtures/invoices`.
struct Invoice {
    name: String,
    kind: PaperKind,
    /// As it is printed.
    fields: Value,
    pages: Vec<Page>,
}

fn invoices() -> Vec<Invoice> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/invoices");
    (0..50)
        .map(|nth| {
            let text = std::fs::read_to_string(folder.join(format!("{nth:02}.json"))).expect("a fixture");
            let mut made: Value = serde_json::from_str(&text).expect("JSON");
            Invoice {
                name: format!("{nth:02}.pdf"),
                kind: made["kind"].as_str().expect("a kind").parse().expect("a known kind"),
                fields: made["fields"].take(),
                pages: serde_json::from_value(made["pages"].take()).expect("pages"),
            }
        })
        .collect()
}

/// The way in which the model answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mood {
    Good,
    /// The number and the total are made up, with quotes that stand on the page.
    Bad,
    /// The total is another sum of the paper.
    WrongSums,
    Prose,
    /// It hangs up once.
    Away,
}

const MOODS: [Mood; 5] = [Mood::Good, Mood::Bad, Mood::WrongSums, Mood::Prose, Mood::Away];

fn plain(value: &FieldValue) -> String {
    match value {
        FieldValue::Text { text } => text.clone(),
        FieldValue::Date { date } => date.to_string(),
        FieldValue::Money { amount, .. } => amount.as_money(),
        FieldValue::Number { number } => number.to_string(),
    }
}

/// An answer in the form of the schema with these fields alone.
fn answer(kind: PaperKind, fields: &[&Field]) -> Value {
    let schema = papers::schema(kind);
    let mut answer = Map::new();
    for (key, shape) in schema["properties"].as_object().expect("properties") {
        let field = fields.iter().find(|field| field.name.as_str() == key);
        let said = field.map(|field| json!({ "value": plain(&field.value), "page": field.page, "quote": field.quote }));
        let nothing = if shape["type"] == "array" { json!([]) } else { Value::Null };
        answer.insert(key.clone(), said.unwrap_or(nothing));
    }
    Value::Object(answer)
}

/// S26, F19: no field is wrong and unmarked, whatever the model answers, and no trouble of the model's loses a paper.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_model_answers_no_field_is_wrong_and_unmarked() {
    let (desk, chat) = (Desk::new(World::now().await).await, FakeChat::start().await);
    let url = chat.url(false);
    let llm = [("LLM", "openai"), ("LLM_BASE_URL", url.as_str()), ("LLM_MODEL", "m-1"), ("LLM_API_KEY", "sk-x")];
    let _app = desk.up_with(&llm).await;
    let (mut wrong, mut right): (Vec<String>, BTreeMap<Mood, usize>) = (Vec::new(), BTreeMap::new());
    for (nth, invoice) in invoices().into_iter().enumerate() {
        let mood = MOODS[nth % MOODS.len()];
        let texts: Vec<&str> = invoice.pages.iter().map(|page| page.text.as_str()).collect();
        let found = papers::read(invoice.kind, &invoice.pages);
        let sure: Vec<&Field> =
            found.iter().filter(|field| field.nth == 0 && field.state != FieldState::Doubtful).collect();
        let mut said = answer(invoice.kind, &sure);
        match mood {
            Mood::Good | Mood::Prose | Mood::Away => {}
            Mood::Bad => {
                said["number"]["value"] = json!("X-999");
                said["total"]["value"] = json!("123456.78");
            }
            Mood::WrongSums => {
                let of = |name| found.iter().find(|field| field.name == name);
                if let Some(other) = of(FieldName::Net).or_else(|| of(FieldName::LineAmount)) {
                    said["total"] = json!({ "value": plain(&other.value), "page": other.page, "quote": other.quote });
                }
            }
        }
        chat.answer(if mood == Mood::Prose { Manner::Prose } else { Manner::Says(said.clone()) });
        if mood == Mood::Away {
            chat.answer_next(&[Manner::HangsUp]);
        }
        let taken = desk.hand_in(&invoice.name, &pdf(&texts)).await.expect("an answer");
        let document = desk.read(&id_of(&taken)).await;
        assert_eq!(document["status"], "completed", "{mood:?} {}: {document}", invoice.name);
        for field in document["file"]["fields"].as_array().expect("fields") {
            let (name, state) = (field["name"].as_str().expect("a name"), &field["state"]);
            let Some(printed) = invoice.fields[name].as_str() else { continue };
            let value = field["value"].as_str().expect("a value");
            let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
            let is_right = match field["amount"].as_str() {
                Some(amount) => amount.parse::<f64>().ok() == printed.parse::<f64>().ok(),
                None => letters(&printed.replace(" MWST", "")) == letters(value),
            };
            match state.as_str() {
                Some("doubtful") => {}
                _ if is_right => *right.entry(mood).or_default() += 1,
                _ => wrong.push(format!("{mood:?} {}: {name} is {value} ({state}), not {printed}", invoice.name)),
            }
        }
    }
    println!("right, by the model's mood: {right:?}");
    assert_eq!(wrong, Vec::<String>::new());
    for mood in MOODS {
        let least = if mood == Mood::Prose { 30 } else { 40 };
        assert!(right.get(&mood).copied().unwrap_or_default() >= least, "{mood:?}: {right:?}");
    }
    // Each was asked: ten good ones once, the bad ones and prose a second time, and those that were hung up on once more.
    assert!(chat.calls().len() >= 50 + 10 + 10 + 10, "{} calls", chat.calls().len());
}
