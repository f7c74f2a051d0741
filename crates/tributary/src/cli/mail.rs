//! `tributary mail`: messages of connected mailboxes, as the pages show them.

use std::process::ExitCode;

use clap::Subcommand;
use domain::mail::{Correspondent, LeftOut, Place};
use domain::shown::{bytes, clipped, relative, shown, shown_lines};
use domain::{Caller, DocumentId, SourceId};
use engine::mail::reading::{self, Asked, File, Line, WholeLetter};
use engine::sources::Names;
use engine::{Config, Env};
use web::api::search::Moment;

use super::pick::{Choice, Kind, pick};
use super::search::any_source;
use super::{Shared, caller, client, contact, env, hinted, print_json, table};

/// The number of newest messages in which a subject is looked up.
const NEWEST: i64 = 500;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    shared: Shared,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the newest messages.
    List {
        /// Only messages with these words in their subject, people or text.
        words: Vec<String>,
        /// Only messages of this mailbox, by name or id.
        #[arg(long)]
        mailbox: Option<String>,
        /// inbox, sent, drafts, spam, deleted or other.
        #[arg(long, value_parser = web::api::mail::place)]
        place: Option<Place>,
        /// Only messages in this folder, or with this label.
        #[arg(long)]
        folder: Option<String>,
        /// Only messages of or to somebody with this in their name or address.
        #[arg(long)]
        person: Option<String>,
        /// Only messages of or to this contact, by number, name or address.
        #[arg(long)]
        contact: Option<String>,
        /// Only messages of or to this client, by name or id.
        #[arg(long)]
        client: Option<String>,
        /// Only messages with files.
        #[arg(long)]
        files: bool,
        /// Only messages from this time on, such as 2026-11-15.
        #[arg(long)]
        since: Option<Moment>,
        /// Only messages up to this time.
        #[arg(long)]
        until: Option<Moment>,
        /// The largest number of rows.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1_000))]
        limit: i64,
    },
    /// Show a message: its people, its text, its files.
    Show {
        /// Its id, the beginning of it, or its subject.
        message: String,
    },
    /// Show the conversation of a message, the oldest first.
    Thread {
        /// The id of one of its messages, the beginning of it, or its subject.
        message: String,
    },
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let env = env(&config).await?;
    let caller = caller(&env, args.shared.tenant.as_deref()).await?;
    let now = env.clock.now();
    match args.command {
        Command::List { words, mailbox, place, folder, person, contact, client, files, since, until, limit } => {
            let mut asked = Asked {
                place,
                folder,
                person,
                text: Some(words.join(" ")).filter(|words| !words.is_empty()),
                has_files: files,
                since: since.map(Moment::begins),
                until: until.map(Moment::ends),
                ..Asked::default()
            };
            if let Some(text) = &mailbox {
                let is_mailbox = |source: &store::sources::AnySource| reading::is_mailbox(&env, &source.provider);
                asked.mailbox = Some(SourceId(any_source(&env, &caller, "mailbox", text, is_mailbox).await?));
            }
            if let Some(text) = &contact {
                asked.contact = Some(contact::id_of(&env, &caller, text).await?);
            }
            if let Some(text) = &client {
                asked.client = Some(client::id_of(&env, &caller, text).await?);
            }
            let mut page = reading::list(&env, &caller, &asked, None, limit).await?;
            if args.shared.json {
                print_json(&web::api::mail::Mail::from(page))?;
                return Ok(ExitCode::SUCCESS);
            }
            let names = Names::load(&env, &caller).await?;
            page.letters.iter_mut().for_each(|line| names.tell_apart(line.source_id, &mut line.source_name));
            let row = |line: &Line| {
                vec![
                    line.id.to_string(),
                    clipped(&line.head.from.as_ref().map(Correspondent::shown).unwrap_or_default(), 30),
                    clipped(subject(line.head.subject.as_deref()), 50),
                    if line.head.n_files > 0 { line.head.n_files.to_string() } else { String::new() },
                    clipped(&line.source_name, 50),
                    relative(line.at, now),
                ]
            };
            let rows: Vec<Vec<String>> = page.letters.iter().map(row).collect();
            table::print(&["id", "from", "subject", "files", "mailbox", "came in"], &rows);
        }
        Command::Show { message } => {
            let id = id_of(&env, &caller, &message).await?;
            let whole = reading::whole(&env, &caller, id).await.map_err(|error| hinted(error, || missing(id)))?;
            if args.shared.json {
                print_json(&web::api::mail::Message::from(whole))?;
                return Ok(ExitCode::SUCCESS);
            }
            print(&whole, now);
        }
        Command::Thread { message } => {
            let id = id_of(&env, &caller, &message).await?;
            let found = reading::conversation(&env, &caller, id).await;
            let conversation = found.map_err(|error| hinted(error, || missing(id)))?;
            if args.shared.json {
                print_json(&web::api::mail::MailThread::from(conversation))?;
                return Ok(ExitCode::SUCCESS);
            }
            if conversation.is_cut {
                println!("(older messages are left out)\n");
            }
            for (nth, message) in conversation.letters.iter().enumerate() {
                let line = &message.line;
                let from = line.head.from.as_ref().map(Correspondent::shown).unwrap_or_default();
                let rule = if nth == 0 { "" } else { "\n" };
                println!("{rule}{} · {} · {}", shown(&from), relative(line.at, now), line.id);
                println!("{}\n", shown(subject(line.head.subject.as_deref())));
                println!("{}", shown_lines(message.letter.text.trim()));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print(whole: &WholeLetter, now: chrono::DateTime<chrono::Utc>) {
    let (letter, document) = (&whole.letter, &whole.stored.document);
    let people = |people: &[Correspondent]| people.iter().map(|one| shown(&one.shown())).collect::<Vec<_>>().join(", ");
    let facts = [
        ("subject", shown(subject(letter.subject.as_deref()))),
        ("from", people(letter.from.as_slice())),
        ("reply to", people(&letter.reply_to)),
        ("to", people(&letter.to)),
        ("cc", people(&letter.cc)),
        ("bcc", people(&letter.bcc)),
        ("mailbox", shown(&document.source_name)),
        ("folders", shown(&letter.folders.join(", "))),
        ("came in", relative(whole.stored.at, now)),
        ("deleted", document.deleted_at.map(|at| relative(at, now)).unwrap_or_default()),
        ("thread", if whole.n_in_thread > 1 { format!("{} messages", whole.n_in_thread) } else { String::new() }),
        ("at provider", shown(whole.url().unwrap_or_default())),
    ];
    for (label, fact) in facts.iter().filter(|(_, fact)| !fact.is_empty()) {
        println!("{label:11} {fact}");
    }
    for File { attachment, document } in &whole.files {
        let name = shown(attachment.name.as_deref().unwrap_or("(no name)"));
        let state = match (attachment.left_out, document) {
            (Some(why), _) => format!("not kept ({})", left_out(why)),
            (None, Some(document)) => format!("document {}", document.id),
            (None, None) => "not kept".into(),
        };
        println!("{:11} {name}, {}, {state}", "file", bytes(attachment.size_bytes));
    }
    if !letter.text.trim().is_empty() {
        println!("\n{}", shown_lines(letter.text.trim()));
    }
    if letter.quoted.is_some() {
        println!("\n(what it quotes is left out; `tributary mail show {} --json` has it)", document.id);
    }
}

fn left_out(why: LeftOut) -> &'static str {
    match why {
        LeftOut::Kind => "its kind",
        LeftOut::Inline => "inline",
        LeftOut::Machine => "for machines",
        LeftOut::TooLarge => "too large",
        LeftOut::Unreadable => "unreadable",
    }
}

fn subject(subject: Option<&str>) -> &str {
    subject.map(str::trim).filter(|subject| !subject.is_empty()).unwrap_or("(no subject)")
}

fn missing(id: DocumentId) -> String {
    format!("there is no message {id}\n\nhint: `tributary mail list` shows the newest")
}

/// The message that is meant.
async fn id_of(env: &Env, caller: &Caller, text: &str) -> anyhow::Result<DocumentId> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let newest = reading::list(env, caller, &Asked::default(), None, NEWEST).await?;
    let choices = newest.letters.into_iter();
    let choices = choices.map(|line| Choice::new(DocumentId(line.id), line.id, [line.head.subject]));
    pick(Kind { noun: "message", plural: "messages", list: "tributary mail list" }, choices.collect(), text)
}
