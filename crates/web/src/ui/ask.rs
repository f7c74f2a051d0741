//! Ask: a question, and an answer whose every sentence leads to where it stands. Without the script the form sends the question and gets the
//! whole page; with it, sentences appear as they are checked (ask.js).

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use domain::Scope;
use domain::shown::{capitalised, clipped, dollars, plural, shown};
use domain::text::Part;
use engine::config::LlmKind;
use engine::memory::answer::{Answer, Kind, Place, Sentence};
use engine::pull::words::facts::document_type;
use serde::Deserialize;
use store::memory::documents;

use super::layout::Layout;
use super::{Posted, Visitor, html};
use crate::api::answer::{Question, begin, path};
use crate::api::error::ApiError;
use crate::api::extract::Query;
use crate::app::App;

#[derive(Template)]
#[template(path = "ask.html")]
struct AskPage {
    layout: Layout,
    q: String,
    /// No language model is set, so that answers are quotations.
    is_quoting: bool,
    /// Nothing has been remembered yet.
    is_empty: bool,
    is_answered: bool,
    answer: AnswerPart,
}

/// Empty before something is asked; the script fills it.
#[derive(Default)]
struct AnswerPart {
    heading: &'static str,
    sentences: Vec<SentencePart>,
    refusal: String,
    closest: Vec<NearPart>,
    note: String,
    /// The number of sentences left out, and the cost.
    summary: String,
}

struct SentencePart {
    text: String,
    /// The sentence is the quotation.
    is_quote: bool,
    citations: Vec<CitationPart>,
}

struct CitationPart {
    place: PlacePart,
    quote: String,
}

struct NearPart {
    place: PlacePart,
    snippet: Vec<Part>,
}

struct PlacePart {
    href: String,
    title: String,
    /// Type and source.
    about: String,
}

#[derive(Deserialize)]
pub(crate) struct AskQuery {
    /// Fills the field. It is not asked before somebody presses the button: asking costs.
    #[serde(default)]
    q: String,
}

#[derive(Deserialize)]
pub(crate) struct AskForm {
    #[serde(default)]
    question: String,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<AskQuery>,
) -> Result<impl IntoResponse, ApiError> {
    page(&app, &visitor, query.q.trim().to_owned(), None).await
}

pub(crate) async fn ask(State(app): State<App>, posted: Posted<AskForm>) -> Result<impl IntoResponse, ApiError> {
    posted.caller.need(Scope::Read)?;
    let (visitor, question) = (Visitor(posted.caller), posted.form.question.trim().to_owned());
    if question.is_empty() {
        return page(&app, &visitor, question, None).await;
    }
    let (running, _hold) = begin(&app, &visitor, Question { question: question.clone(), filters: None }).await?;
    let answer = running.end().await?;
    page(&app, &visitor, question, Some(AnswerPart::new(answer))).await
}

async fn page(
    app: &App,
    visitor: &Visitor,
    q: String,
    answer: Option<AnswerPart>,
) -> Result<axum::response::Html<String>, ApiError> {
    let totals = app.env.db.read(visitor, async |tx| documents::totals(tx).await).await?;
    let title = if q.is_empty() { "Ask".to_owned() } else { format!("{} · Ask", clipped(&q, 60)) };
    html(&AskPage {
        layout: Layout::new(visitor, app.env.clock.now(), title, "/ask"),
        is_quoting: app.env.config.llm == LlmKind::None,
        is_empty: totals.documents == 0,
        is_answered: answer.is_some(),
        answer: answer.unwrap_or_default(),
        q,
    })
}

impl AnswerPart {
    fn new(answer: Answer) -> Self {
        let is_quoted = answer.kind == Kind::Quoted;
        let mut summary: Vec<String> = Vec::new();
        if answer.n_dropped > 0 {
            let n = i64::try_from(answer.n_dropped).unwrap_or(i64::MAX);
            let (one, many) =
                ("sentence was left out: nothing supports it", "sentences were left out: nothing supports them");
            summary.push(plural(n, one, many));
        }
        if let Some(cost) = &answer.cost {
            summary.push(format!("{}, {}", clipped(&cost.model, 60), dollars(cost.micros)));
        }
        let near = |near: engine::memory::answer::Closest| NearPart {
            place: PlacePart::new(&near.place),
            snippet: near.snippet.into_iter().map(|part| Part { text: shown(&part.text), ..part }).collect(),
        };
        Self {
            sentences: answer.sentences.iter().map(|sentence| SentencePart::new(sentence, is_quoted)).collect(),
            heading: match answer.kind {
                Kind::Written => "Answer",
                Kind::Quoted => "Quotations",
                Kind::Refused => "No answer",
            },
            refusal: answer.refusal.unwrap_or_default(),
            closest: answer.closest.into_iter().map(near).collect(),
            note: answer.note.map(|note| capitalised(&clipped(&note, 400))).unwrap_or_default(),
            summary: summary.join(" · "),
        }
    }
}

impl SentencePart {
    fn new(sentence: &Sentence, is_quote: bool) -> Self {
        let citations = sentence
            .citations
            .iter()
            .map(|cited| CitationPart { place: PlacePart::new(&cited.place), quote: shown(&cited.quote) });
        Self { text: shown(&sentence.text), is_quote, citations: citations.collect() }
    }
}

impl PlacePart {
    fn new(place: &Place) -> Self {
        Self {
            href: path(place),
            title: clipped(place.title.as_deref().unwrap_or(&place.external_id), 120),
            about: format!("{} · {}", shown(&document_type(&place.document_type)), shown(&place.source_name)),
        }
    }
}
