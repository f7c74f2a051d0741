//! `tributary document`: lists, shows, corrects and deletes remembered documents.

use std::process::ExitCode;

use clap::Subcommand;
use domain::reading::Step;
use domain::shown::{clipped, dollars, plural, relative, shown, shown_lines};
use domain::{Caller, DocumentId, DocumentStatus, SourceId};
use engine::pull::words::facts::document_type;
use engine::{Config, Env, documents, files};
use store::files::fields::FieldRow;
use store::memory::Listed;
use store::memory::documents::Wanted;
use store::memory::removed::Removed;
use web::api::documents::FileField;

use super::pick::{Choice, Kind, pick};
use super::search::any_source;
use super::{Consent, Shared, caller, env, hinted, print_json, table};

/// The number of newest documents in which a title is looked up.
const NEWEST: i64 = 1_000;
/// The number of deleted documents in a list.
const MOST_DELETED: i64 = 1_000;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    shared: Shared,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the newest documents.
    List {
        /// Only documents of this source, by name or id.
        #[arg(long)]
        source: Option<String>,
        /// Only documents of this type, for example note.
        #[arg(long = "type")]
        kind: Option<String>,
        /// Only documents with a file that is read so far: pending, transcribing, completed, skipped, failed …
        #[arg(long)]
        status: Option<DocumentStatus>,
        /// The largest number of rows.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1_000))]
        limit: i64,
    },
    /// Show a document with its text. As JSON, also its chunks.
    Show {
        /// Its id, the beginning of it, its title, or its name at its source.
        document: String,
    },
    /// Have a document's file read again: also one that was skipped, or failed.
    Retry {
        /// Its id, the beginning of it, its title, or its name at its source.
        document: String,
        /// From its bytes (transcribe), or only its fields (extract).
        #[arg(long, default_value = "transcribe")]
        from: Step,
    },
    /// List the fields of a document's paper: an invoice's number, a contract's parties.
    Fields {
        /// Its id, the beginning of it, its title, or its name at its source.
        document: String,
    },
    /// Say what a field of a document's paper is. It stays when the file is read again.
    Correct {
        /// Its id, the beginning of it, its title, or its name at its source.
        document: String,
        /// The field's name, for example total.
        field: String,
        /// Its value, for example "805.00 EUR" or 2026-03-09.
        #[arg(allow_hyphen_values = true)]
        value: String,
        /// Which of several fields of this name, from 1.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..=10_000))]
        nth: i32,
    },
    /// Take back what a person said about a field. What stands in the file is looked for again.
    Withdraw {
        /// Its id, the beginning of it, its title, or its name at its source.
        document: String,
        /// The field's name, for example total.
        field: String,
        /// Which of several fields of this name, from 1.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..=10_000))]
        nth: i32,
    },
    /// Have all files of a source, or all files, read again. Says first how many that are, and what it costs.
    Redo {
        /// From their bytes (transcribe), or only their fields (extract).
        #[arg(long)]
        step: Step,
        /// Only documents of this source, by name or id.
        #[arg(long)]
        source: Option<String>,
        #[command(flatten)]
        consent: Consent,
    },
    /// Delete a document. Search does not find it any more, and it stays deleted when its source sends it again.
    Delete {
        /// Its id, the beginning of it, its title, or its name at its source.
        document: String,
        #[command(flatten)]
        consent: Consent,
    },
    /// List the documents that people deleted.
    Deleted,
    /// Let a document in again that a person deleted.
    Restore {
        /// Its id, the beginning of it, or its name at its source.
        document: String,
    },
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let env = env(&config).await?;
    let caller = caller(&env, args.shared.tenant.as_deref()).await?;
    let now = env.clock.now();
    match args.command {
        Command::List { source, kind, status, limit } => {
            let source_id = match source {
                Some(text) => Some(SourceId(any_source(&env, &caller, "source", &text, |_| true).await?)),
                None => None,
            };
            let wanted = Wanted { source_id, document_type: kind.as_deref(), status, before: None, limit };
            let listed = documents::list(&env, &caller, wanted).await?;
            if args.shared.json {
                print_json(&web::api::documents::Documents::from(listed))?;
                return Ok(ExitCode::SUCCESS);
            }
            let row = |listed: &Listed| {
                vec![
                    listed.id.to_string(),
                    clipped(listed.title.as_deref().unwrap_or(&listed.external_id), 50),
                    shown(&document_type(&listed.document_type)),
                    clipped(&listed.source_name, 30),
                    if listed.is_pending() { "waits for vectors".into() } else { "remembered".into() },
                    relative(listed.updated_at, now),
                ]
            };
            table::print(
                &["id", "title", "type", "source", "state", "changed"],
                &listed.0.iter().map(row).collect::<Vec<_>>(),
            );
        }
        Command::Show { document } => {
            let id = id_of(&env, &caller, &document).await?;
            let whole = documents::whole(&env, &caller, id, if args.shared.json { i64::MAX } else { 0 }).await;
            let whole = whole.map_err(|error| hinted(error, || missing(id)))?;
            if args.shared.json {
                print_json(&web::api::documents::Document::from(whole))?;
                return Ok(ExitCode::SUCCESS);
            }
            let document = whole.document;
            let vectors = match (&document.embedding_model, document.is_pending()) {
                (Some(model), _) => format!("by {model}"),
                (None, true) => "waits for them".into(),
                (None, false) => "none".into(),
            };
            let facts = [
                ("title", shown(document.title.as_deref().unwrap_or_default())),
                ("type", shown(&document_type(&document.document_type))),
                ("source", shown(&document.source_name)),
                ("name there", shown(&document.external_id)),
                ("language", document.lang.clone()),
                ("chunks", document.n_chunks.to_string()),
                ("vectors", vectors),
                ("version", document.revision.to_string()),
                ("remembered", relative(document.created_at, now)),
                ("changed", relative(document.updated_at, now)),
                ("deleted", document.deleted_at.map(|at| relative(at, now)).unwrap_or_default()),
                ("deleted by", shown(document.removed_by.as_deref().unwrap_or_default())),
            ];
            for (label, fact) in facts.iter().filter(|(_, fact)| !fact.is_empty()) {
                println!("{label:11} {fact}");
            }
            if !document.text.is_empty() {
                println!("\n{}", shown_lines(&document.text));
            }
        }
        Command::Retry { document, from } => {
            let id = id_of(&env, &caller, &document).await?;
            files::again(&env, &caller, id, from).await.map_err(|error| hinted(error, || missing(id)))?;
            println!("its file will be read again; `tributary document show {id}` says how far it is");
        }
        Command::Fields { document } => {
            let id = id_of(&env, &caller, &document).await?;
            let whole = documents::whole(&env, &caller, id, 0).await.map_err(|error| hinted(error, || missing(id)))?;
            let told = files::told(&env, &caller, &whole.document).await?;
            let fields = told.map(|told| told.fields).unwrap_or_default();
            if args.shared.json {
                print_json(&fields.into_iter().map(FileField::from).collect::<Vec<_>>())?;
                return Ok(ExitCode::SUCCESS);
            }
            table::print(
                &["field", "nth", "value", "page", "state", "why"],
                &fields.iter().map(field_row).collect::<Vec<_>>(),
            );
        }
        Command::Correct { document, field, value, nth } => {
            let id = id_of(&env, &caller, &document).await?;
            let said = files::say(&env, &caller, id, &field, nth - 1, &value).await;
            let said = said.map_err(|error| hinted(error, || missing(id)))?;
            println!("{} is now {}", said.name, shown(&said.value));
        }
        Command::Withdraw { document, field, nth } => {
            let id = id_of(&env, &caller, &document).await?;
            let missing = || {
                format!(
                    "nobody said anything about {} of document {id}\n\nhint: `tributary document fields {id}` lists its fields",
                    shown(&field)
                )
            };
            files::withdraw(&env, &caller, id, &field, nth - 1).await.map_err(|error| hinted(error, missing))?;
            println!("withdrawn; what stands in the file is looked for again");
        }
        Command::Redo { step, source, consent } => {
            let source_id = match source {
                Some(text) => Some(SourceId(any_source(&env, &caller, "source", &text, |_| true).await?)),
                None => None,
            };
            let estimate = files::estimate(&env, &caller, source_id).await?;
            let files = plural(estimate.documents, "file", "files");
            let pages = plural(estimate.pages, "page", "pages");
            eprintln!("{files} of {pages} will be read again. {}", price(estimate.asking.as_ref()));
            if estimate.documents == 0 || !consent.given("Read them again?")? {
                return Ok(ExitCode::FAILURE);
            }
            let n = files::again_all(&env, &caller, source_id, step).await?;
            println!("{} will be read again", plural(i64::try_from(n).unwrap_or(i64::MAX), "file", "files"));
        }
        Command::Delete { document, consent } => {
            let id = id_of(&env, &caller, &document).await?;
            let whole = documents::whole(&env, &caller, id, 0).await.map_err(|error| hinted(error, || missing(id)))?;
            let named = whole.document.title.unwrap_or(whole.document.external_id);
            eprintln!(
                "document {} ({id}) will be deleted, and stays deleted when its source sends it again.",
                shown(&named)
            );
            if !consent.given("Delete it?")? {
                return Ok(ExitCode::FAILURE);
            }
            documents::delete(&env, &caller, id).await.map_err(|error| hinted(error, || missing(id)))?;
            println!("deleted; `tributary document restore {id}` lets it in again");
        }
        Command::Deleted => {
            let removed = documents::removed(&env, &caller, MOST_DELETED).await?;
            if args.shared.json {
                print_json(&web::api::documents::DeletedDocuments::from(removed))?;
                return Ok(ExitCode::SUCCESS);
            }
            let row = |removed: &Removed| {
                vec![
                    removed.id.to_string(),
                    clipped(&removed.external_id, 50),
                    shown(&document_type(&removed.document_type)),
                    clipped(&removed.source_name, 30),
                    clipped(&removed.removed_by, 30),
                    relative(removed.removed_at, now),
                ]
            };
            table::print(
                &["id", "name there", "type", "source", "by", "deleted"],
                &removed.iter().map(row).collect::<Vec<_>>(),
            );
        }
        Command::Restore { document } => {
            let id = deleted_id_of(&env, &caller, &document).await?;
            let missing = || {
                format!(
                    "nobody deleted document {id}\n\nhint: `tributary document deleted` lists those that people deleted"
                )
            };
            documents::restore(&env, &caller, id).await.map_err(|error| hinted(error, missing))?;
            println!(
                "it may come in again: with the next event or full sync of its source, or when it is remembered again"
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The price of reading files again, in a sentence.
fn price(asking: Option<&files::Asking>) -> String {
    let Some(asking) = asking else { return format!("That costs {}.", dollars(0)) };
    let costs = match (asking.cost_micros, asking.is_as_before) {
        (0, _) => "costs nothing".to_owned(),
        (cost, true) => format!("costs about {}, as papers did so far", dollars(cost)),
        (cost, false) => format!("costs about {}, by their length and its price", dollars(cost)),
    };
    let papers = plural(asking.papers, "paper", "papers");
    format!("{} is asked for the fields of {papers}, which {costs}.", shown(&asking.model))
}

fn missing(id: DocumentId) -> String {
    format!("there is no document {id}\n\nhint: `tributary document list` shows the newest")
}

fn field_row(field: &FieldRow) -> Vec<String> {
    let why = match &field.said_by {
        Some(by) => format!("said by {}", clipped(by, 40)),
        None => clipped(field.note.as_deref().unwrap_or_default(), 60),
    };
    vec![
        shown(&field.name),
        (field.ordinal + 1).to_string(),
        clipped(&field.value, 60),
        field.page.map(|page| page.to_string()).unwrap_or_default(),
        field.state.to_string(),
        why,
    ]
}

/// The deleted document that is meant.
async fn deleted_id_of(env: &Env, caller: &Caller, text: &str) -> anyhow::Result<DocumentId> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let removed = documents::removed(env, caller, MOST_DELETED).await?;
    let choices =
        removed.into_iter().map(|removed| Choice::new(DocumentId(removed.id), removed.id, [Some(removed.external_id)]));
    let kind = Kind { noun: "deleted document", plural: "deleted documents", list: "tributary document deleted" };
    pick(kind, choices.collect(), text)
}

/// The document that is meant.
async fn id_of(env: &Env, caller: &Caller, text: &str) -> anyhow::Result<DocumentId> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let (newest, _) = documents::list(env, caller, Wanted { limit: NEWEST, ..Wanted::default() }).await?;
    let choices = newest.into_iter().map(|listed| {
        let names = [listed.title, Some(listed.external_id)];
        Choice::new(DocumentId(listed.id), listed.id, names)
    });
    pick(Kind { noun: "document", plural: "documents", list: "tributary document list" }, choices.collect(), text)
}
