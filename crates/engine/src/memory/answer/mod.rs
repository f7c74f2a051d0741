//! Answers to questions, in sentences that each cite what was found. A question goes through these steps:
//!
//! 1. `recall::search` finds documents, and `passages` reads the chunks that matched, with their neighbours. Texts that give orders to a machine
//!    are left out.
//! 2. `prompt`: question and passages go to the language model as data. It writes sentences, each with the words that it rests on.
//! 3. `draft`: the stream is cut into sentences as it arrives.
//! 4. `domain::evidence`: each sentence is checked against the passage that it cites. One that does not hold is dropped, and nobody sees it.
//! 5. `cost`: what was used is written down, under the month's cap.
//!
//! Without a language model, past the cap, or when it fails, the best sentences of the passages themselves are the answer. Where nothing holds,
//! the answer is that there is none.
//!
//! **Invariant:** nothing that a model wrote is shown before it was checked, and nothing that a text or a model says is carried out or fetched.

pub(crate) mod cost;
mod draft;
mod passages;
mod prompt;

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use connectors::models::{ChatClient, Ending, Trouble};
use domain::evidence::{self, Quotable};
use domain::text::Part;
use domain::{Caller, DocumentType};
use store::memory::Filters;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use uuid::Uuid;

pub use self::cost::Cost;
use self::cost::{Prices, Reserved};
use self::draft::{Draft, Sentences};
use self::passages::Passages;
use crate::memory::recall;
use crate::{ActError, Env, enrich};

/// The most sentences of an answer, and the most that are quoted.
const MOST_SENTENCES: usize = 20;
const MOST_QUOTED: usize = 5;
const MOST_CLOSEST: usize = 3;
const NOTHING_FITS: &str = "Nothing that is remembered fits this question.";
/// The wait for a model that is busy. A person waits too.
const MOST_WAIT: Duration = Duration::from_secs(3);

#[derive(Clone, Debug, Default)]
pub struct Asking {
    pub question: String,
    pub filters: Filters,
}

/// The way in which a question was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A language model wrote the sentences, and each was checked.
    Written,
    /// The sentences are the documents' own.
    Quoted,
    /// There is no answer, and `refusal` says why.
    Refused,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Quoted => "quoted",
            Self::Refused => "refused",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub kind: Kind,
    pub sentences: Vec<Sentence>,
    pub refusal: Option<String>,
    /// The passages that came nearest, where there is no answer.
    pub closest: Vec<Closest>,
    /// The reason why the answer may be poorer than it could be.
    pub note: Option<String>,
    /// The number of sentences that the model wrote and that were not shown.
    pub n_dropped: usize,
    /// None: no model was asked, or it did not answer.
    pub cost: Option<Cost>,
}

/// A sentence, and where it stands.
#[derive(Clone, Debug)]
pub struct Sentence {
    pub text: String,
    pub citations: Vec<Citation>,
}

/// Words of a document. Each citation of a sentence alone holds what the sentence says.
#[derive(Clone, Debug)]
pub struct Citation {
    pub place: Place,
    pub quote: String,
}

/// A passage that does not answer the question, but comes near.
#[derive(Clone, Debug)]
pub struct Closest {
    pub place: Place,
    pub snippet: Vec<Part>,
}

/// A passage, and the document that it is of.
#[derive(Clone, Debug)]
pub struct Place {
    pub document_id: Uuid,
    pub chunk_id: Uuid,
    pub title: Option<String>,
    pub document_type: DocumentType,
    pub source_id: Uuid,
    pub source_name: String,
    pub external_id: String,
    pub at: DateTime<Utc>,
}

/// An answer under way. Dropping it stops the model; what it has cost until then is counted all the same.
pub struct Running {
    sentences: mpsc::Receiver<Sentence>,
    task: JoinHandle<Answer>,
}

impl Running {
    /// The next sentence, as soon as it is known to hold; none when there are no more.
    pub async fn next(&mut self) -> Option<Sentence> {
        self.sentences.recv().await
    }

    /// Waits for the whole answer.
    pub async fn end(mut self) -> Result<Answer, ActError> {
        while self.next().await.is_some() {}
        match self.task.await {
            Ok(answer) => Ok(answer),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(ActError::conflict("the server stops; ask again")),
            },
        }
    }
}

/// Begins to answer a question from what the caller may read. A question that cannot be asked is refused at once.
pub async fn begin(env: &Env, caller: &Caller, asking: &Asking) -> Result<Running, ActError> {
    let (text, filters) = (asking.question.clone(), asking.filters.clone());
    let query = recall::Query { text, filters, k: passages::DOCUMENTS, ..recall::Query::default() };
    let found = recall::search(env, caller, &query).await?;
    let nearest = if found.hits.is_empty() { &found.closest } else { &found.hits };
    let asked = Asked {
        env: env.clone(),
        caller: caller.clone(),
        question: asking.question.clone(),
        is_fitting: !found.hits.is_empty(),
        passages: Passages::read(env, caller, nearest).await?,
        snippets: nearest.iter().map(|hit| (hit.chunk_id, hit.snippet.clone())).collect(),
        note: found.note,
    };
    // Few: a caller that does not read holds up the model, not the memory.
    let (told, sentences) = mpsc::channel(4);
    let task = tokio::spawn(async move { asked.answer(told).await });
    Ok(Running { sentences, task })
}

/// A question, and what was found for it.
struct Asked {
    env: Env,
    caller: Caller,
    question: String,
    /// Whether the search found something that fits. The passages may be the nearest of what does not.
    is_fitting: bool,
    passages: Passages,
    /// By chunk, as the search shows them.
    snippets: HashMap<Uuid, Vec<Part>>,
    note: Option<String>,
}

/// The sentences that a model made of a question.
struct Written {
    sentences: Vec<Sentence>,
    n_dropped: usize,
    cost: Option<Cost>,
    end: Result<Ending, Trouble>,
}

impl Asked {
    async fn answer(self, told: mpsc::Sender<Sentence>) -> Answer {
        if self.passages.is_empty() {
            return self.refused(NOTHING_FITS);
        }
        let model = match enrich::language_model(&self.env.config, &self.env.http) {
            Ok(Some(model)) => model,
            Ok(None) => return self.quoted(&told, None).await,
            Err(error) => return self.quoted(&told, Some(format!("the language model is not set up: {error}"))).await,
        };
        if self.passages.citable().is_empty() {
            return self.refused("What was found gives orders to a machine, and does not answer the question.");
        }
        let prices = Prices::of(&self.env.config, model.model());
        let (data, schema) = (prompt::data(&self.question, &self.passages), prompt::schema());
        let most_bytes = prompt::SYSTEM.len() + data.len() + schema.to_string().len();
        let reserved = cost::reserve(&self.env, self.caller.tenant_id, prices, most_bytes, prompt::MOST_TOKENS).await;
        let reserved = match reserved {
            Ok(Some(reserved)) => reserved,
            Ok(None) => {
                let spent = "what answers may cost this month is spent, so the documents' own sentences are quoted";
                return self.quoted(&told, Some(spent.into())).await;
            }
            Err(error) => {
                tracing::error!(error = ?error, "the cost of an answer could not be reserved");
                let unknown = "it could not be found out whether an answer may be paid for";
                return self.quoted(&told, Some(unknown.into())).await;
            }
        };
        let written = self.write(&model, &data, &schema, reserved, &told).await;
        self.checked(written, &told).await
    }

    /// Has the model write, and tells each sentence that holds as soon as it is complete.
    async fn write(
        &self,
        model: &ChatClient,
        data: &str,
        schema: &serde_json::Value,
        reserved: Reserved,
        told: &mpsc::Sender<Sentence>,
    ) -> Written {
        let mut written = Written { sentences: Vec::new(), n_dropped: 0, cost: None, end: Ok(Ending::Complete) };
        let open = || model.stream(prompt::SYSTEM, data, prompt::NAME, schema, prompt::MOST_TOKENS);
        let opening = async {
            match open().await {
                Err(Trouble::Wait { retry_after, .. }) if retry_after <= MOST_WAIT => {
                    tokio::time::sleep(retry_after).await;
                    open().await
                }
                settled => settled,
            }
        };
        let n_asked = prompt::SYSTEM.len() + data.len();
        let opened = tokio::select! {
            opened = opening => opened,
            () = told.closed() => {
                // The service has the question and may answer it to nobody, so it is counted.
                written.cost = Some(reserved.settle(&self.env, model.model(), None, n_asked, 0).await);
                return Written { end: Ok(Ending::CutOff), ..written };
            }
        };
        let mut stream = match opened {
            Ok(stream) => stream,
            // Whether a call that failed is billed, only the service knows: the reservation stays until it expires.
            Err(trouble) => return Written { end: Err(trouble), ..written },
        };
        let (mut sentences, mut n_received) = (Sentences::default(), 0);
        written.end = loop {
            let piece = tokio::select! {
                piece = stream.next() => piece,
                () = told.closed() => break Ok(Ending::CutOff),
            };
            let piece = match piece {
                Ok(Some(piece)) => piece,
                Ok(None) => break Ok(stream.ending()),
                Err(trouble) => break Err(trouble),
            };
            n_received += piece.len();
            for draft in sentences.push(&piece) {
                match draft.and_then(|draft| self.sentence(&draft)) {
                    Some(sentence) if written.sentences.len() < MOST_SENTENCES => {
                        written.sentences.push(sentence.clone());
                        let _ = told.send(sentence).await; // nobody listens: the next turn of the loop ends it
                    }
                    _ => written.n_dropped += 1,
                }
            }
        };
        written.n_dropped += usize::from(sentences.has_begun_another());
        written.cost = Some(reserved.settle(&self.env, model.model(), stream.usage(), n_asked, n_received).await);
        let outcomes = [("shown", written.sentences.len()), ("dropped", written.n_dropped)];
        for (outcome, n) in outcomes {
            metrics::counter!("tributary_answer_sentences_total", "outcome" => outcome).increment(n as u64);
        }
        written
    }

    /// A sentence that at least one of its citations holds, with those that do.
    fn sentence(&self, draft: &Draft) -> Option<Sentence> {
        let text = draft.text()?;
        let cited = draft.cites.iter().take(draft::MOST_CITES);
        let held = cited.filter_map(|cite| {
            let passage = self.passages.cited(&cite.passage)?;
            let quote = draft::line(&cite.quote)?;
            passage.evidence.holds(&text, &quote).ok()?;
            Some(Citation { place: passage.place.clone(), quote })
        });
        let mut citations: Vec<Citation> = Vec::new();
        for citation in held {
            if citations.iter().all(|other| other.place.chunk_id != citation.place.chunk_id) {
                citations.push(citation);
            }
        }
        (!citations.is_empty()).then_some(Sentence { text, citations })
    }

    /// Makes an answer of what the model wrote.
    async fn checked(&self, written: Written, told: &mpsc::Sender<Sentence>) -> Answer {
        let Written { sentences, n_dropped, cost, end } = written;
        let mut answer = match (&end, sentences.is_empty()) {
            (Err(trouble), true) => {
                let why = format!("{trouble}, so the documents' own sentences are quoted");
                self.quoted(told, Some(why)).await
            }
            (Ok(Ending::CutOff), true) => {
                let why = "the language model's answer was cut off, so the documents' own sentences are quoted";
                self.quoted(told, Some(why.into())).await
            }
            (Ok(Ending::Refused), true) => self.refused("The language model declined to answer this question."),
            (_, true) if n_dropped > 0 => {
                self.refused("Nothing that the language model wrote is supported by what was found.")
            }
            (_, true) => self.refused("What was found does not answer this question."),
            (end, false) => {
                let why = match end {
                    Ok(Ending::Complete) => None,
                    Ok(Ending::Refused) => Some("the language model did not go on".to_owned()),
                    Ok(Ending::CutOff) => Some("it became too long".to_owned()),
                    Err(trouble) => Some(trouble.to_string()),
                };
                let note = why.map(|why| format!("the answer may be incomplete: {why}"));
                Answer { kind: Kind::Written, sentences, note: self.noted(note), ..self.blank() }
            }
        };
        (answer.n_dropped, answer.cost) = (n_dropped, cost);
        answer
    }

    /// The best sentences of what was found, as they stand there.
    async fn quoted(&self, told: &mpsc::Sender<Sentence>, note: Option<String>) -> Answer {
        let sentences = self.best();
        if sentences.is_empty() {
            let none = "No sentence of what was found answers this question.";
            let refused = self.refused(if self.is_fitting { none } else { NOTHING_FITS });
            return Answer { note: self.noted(note), ..refused };
        }
        for sentence in &sentences {
            let _ = told.send(sentence.clone()).await; // the caller is gone, and nothing was spent
        }
        Answer { kind: Kind::Quoted, sentences, note: self.noted(note), ..self.blank() }
    }

    /// The documents' own sentences that have the question's words.
    fn best(&self) -> Vec<Sentence> {
        let passages = self.passages.citable();
        let quotable: Vec<Quotable<'_>> = passages
            .iter()
            .map(|passage| Quotable { title: passage.place.title.as_deref(), text: &passage.text })
            .collect();
        let sentence = |chosen: evidence::Quoted<'_>| {
            let (place, quote) = (passages[chosen.passage].place.clone(), draft::line(chosen.sentence)?);
            Some(Sentence { text: quote.clone(), citations: vec![Citation { place, quote }] })
        };
        evidence::best(&self.question, &quotable, MOST_QUOTED).into_iter().filter_map(sentence).collect()
    }

    fn refused(&self, why: &str) -> Answer {
        let closest = self.passages.closest().take(MOST_CLOSEST).map(|passage| Closest {
            place: passage.place.clone(),
            snippet: self.snippets.get(&passage.place.chunk_id).cloned().unwrap_or_default(),
        });
        Answer { refusal: Some(why.to_owned()), closest: closest.collect(), note: self.noted(None), ..self.blank() }
    }

    fn blank(&self) -> Answer {
        Answer {
            kind: Kind::Refused,
            sentences: Vec::new(),
            refusal: None,
            closest: Vec::new(),
            note: None,
            n_dropped: 0,
            cost: None,
        }
    }

    /// Remarks beside the answer: on the search, and on the answer.
    fn noted(&self, more: Option<String>) -> Option<String> {
        let all: Vec<String> = self.note.iter().cloned().chain(more).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}
