//! `tributary ask`: answers a question from memory, like the Ask page.

use std::process::ExitCode;

use domain::shown::{clipped, dollars, plural, shown};
use engine::Config;
use engine::memory::answer::{self, Asking, Place, Sentence};
use engine::pull::words::facts::document_type;
use store::memory::Filters;
use web::api::answer::{Answered, path};

use super::{Shared, caller, env, print_json};

#[derive(clap::Args)]
pub struct Args {
    /// The question, in any words.
    #[arg(required = true)]
    question: Vec<String>,
    /// Only documents of this type, such as `note`.
    #[arg(long = "type")]
    kind: Option<String>,
    #[command(flatten)]
    shared: Shared,
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let env = env(&config).await?;
    let caller = caller(&env, args.shared.tenant.as_deref()).await?;
    let filters = Filters { r#type: args.kind, ..Filters::default() };
    let mut running = answer::begin(&env, &caller, &Asking { question: args.question.join(" "), filters }).await?;
    let mut cited = Cited { base: config.base_url(), passages: Vec::new() };
    if !args.shared.json {
        while let Some(sentence) = running.next().await {
            println!("{}", cited.line(&sentence));
        }
    }
    let answer = running.end().await?;
    if let Some(note) = &answer.note {
        eprintln!("note: {}", shown(note));
    }
    let is_answered = answer.refusal.is_none();
    if args.shared.json {
        print_json(&Answered::new(answer, &config.base_url()))?;
    } else if let Some(refusal) = &answer.refusal {
        eprintln!("{refusal}");
        for near in &answer.closest {
            let snippet: String = near.snippet.iter().map(|part| shown(&part.text)).collect();
            eprintln!("\n{}\n  {}\n  {}", about(&near.place), snippet.trim(), cited.url(&near.place));
        }
    } else {
        cited.print();
        let n_dropped = i64::try_from(answer.n_dropped).unwrap_or(i64::MAX);
        if n_dropped > 0 {
            let (one, many) =
                ("sentence was left out: nothing supports it", "sentences were left out: nothing supports them");
            eprintln!("\n{}", plural(n_dropped, one, many));
        }
        if let Some(cost) = &answer.cost {
            eprintln!("\n{}: {}", shown(&cost.model), dollars(cost.micros));
        }
    }
    Ok(if is_answered { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The passages that sentences cite, numbered in the order in which they are cited.
struct Cited {
    base: String,
    passages: Vec<(Place, Vec<String>)>,
}

impl Cited {
    /// A sentence with the numbers of its passages.
    fn line(&mut self, sentence: &Sentence) -> String {
        let mut numbers = String::new();
        let mut is_quotation = false;
        for citation in &sentence.citations {
            let known = self.passages.iter().position(|(place, _)| place.chunk_id == citation.place.chunk_id);
            let nth = known.unwrap_or_else(|| {
                self.passages.push((citation.place.clone(), Vec::new()));
                self.passages.len() - 1
            });
            if citation.quote == sentence.text {
                is_quotation = true;
            } else if !self.passages[nth].1.contains(&citation.quote) {
                self.passages[nth].1.push(citation.quote.clone());
            }
            numbers += &format!(" [{}]", nth + 1);
        }
        let text = shown(&sentence.text);
        if is_quotation { format!("“{text}”{numbers}") } else { format!("{text}{numbers}") }
    }

    fn url(&self, place: &Place) -> String {
        format!("{}{}", self.base, path(place))
    }

    fn print(&self) {
        for (nth, (place, quotes)) in self.passages.iter().enumerate() {
            println!("\n[{}] {}", nth + 1, about(place));
            for quote in quotes {
                println!("    “{}”", shown(quote));
            }
            println!("    {}", self.url(place));
        }
    }
}

fn about(place: &Place) -> String {
    let title = clipped(place.title.as_deref().unwrap_or(&place.external_id), 120);
    [title, shown(&document_type(&place.document_type)), shown(&place.source_name)].join(" · ")
}
