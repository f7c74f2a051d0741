//! `tributary remember`: remembers files and notes.

use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use domain::reading::Unreadable;
use domain::shown::{number, plural, shown};
use domain::{Caller, DocumentId, DocumentStatus};
use engine::memory::door::{self, Incoming};
use engine::memory::{Change, Remembered};
use engine::{Config, Env, documents, files};
use serde_json::json;

use super::{Shared, caller, env};

#[derive(clap::Args)]
pub struct Args {
    /// Files of any kind; `-` reads a note from standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Its title. Default: the file name, or the title of a web page.
    #[arg(long)]
    title: Option<String>,
    /// Its id in memory. A text with the same id replaces the document. Default: a hash of its content.
    #[arg(long)]
    external_id: Option<String>,
    /// Wait until the files are read, and say how far they are.
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    shared: Shared,
}

/// Prints one line per file. A refused file is reported and the next one is read; the exit code then is not 0.
pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    if args.files.len() > 1 && (args.title.is_some() || args.external_id.is_some()) {
        bail!("one title or external id cannot name {} files\n\nhint: remember them one by one", args.files.len());
    }
    let env = env(&config).await?;
    let caller = caller(&env, args.shared.tenant.as_deref()).await?;
    let tenant_id = caller.tenant_id;
    let (mut told, mut awaited, mut n_refused) = (Vec::new(), Vec::new(), 0);
    for file in &args.files {
        let taken = match read(file, config.document_max_bytes) {
            Ok(incoming) => {
                let incoming =
                    Incoming { title: args.title.clone(), external_id: args.external_id.clone(), ..incoming };
                door::accept(&env, tenant_id, incoming).await.map_err(anyhow::Error::from)
            }
            Err(error) => Err(error),
        };
        if let Ok(taken) = &taken
            && taken.status.is_under_way()
        {
            awaited.push((taken.id, file));
        }
        match taken {
            Ok(taken) if args.shared.json => {
                let mut answer = serde_json::to_value(web::api::documents::Taken::from(taken))?;
                answer["file"] = json!(file);
                told.push(answer);
            }
            Ok(taken) => println!("{}", line(file, &taken, args.wait)),
            Err(error) => {
                n_refused += 1;
                let why = format!("{error:#}");
                eprintln!("error: {}: {}", shown(file), shown(&why));
                if args.shared.json {
                    told.push(json!({ "file": file, "error": why }));
                }
            }
        }
    }
    if args.shared.json {
        println!("{}", serde_json::to_string_pretty(&told)?);
    }
    for (id, file) in awaited.into_iter().filter(|_| args.wait) {
        n_refused += usize::from(!wait(&env, &caller, id, file).await?);
    }
    Ok(if n_refused == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn line(file: &str, taken: &Remembered, is_awaited: bool) -> String {
    let what = match taken.change {
        Change::Created => "remembered",
        Change::Updated => "updated",
        Change::Unchanged => "unchanged",
        Change::Superseded => "superseded",
        Change::Deleted => "deleted",
        Change::KeptOut => "kept out",
    };
    let mut about = match taken.n_chunks {
        0 if taken.status.is_under_way() && !is_awaited => "a worker reads it now".into(),
        0 => String::new(),
        n => plural(i64::try_from(n).unwrap_or(i64::MAX), "chunk", "chunks"),
    };
    if taken.change == Change::KeptOut {
        about = format!("a person deleted it; `tributary document restore {}` lets it in again", taken.id);
    }
    if taken.is_pending {
        about.push_str(", found by its words until it has its vectors");
    }
    format!("{what:10}  {}  {}  {about}", taken.id, shown(file)).trim_end().to_owned()
}

/// The time after which somebody who waits is told that nobody reads.
const NOBODY: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Waits until a file is read, and prints how far it is whenever that changes. `false`: it failed.
async fn wait(env: &Env, caller: &Caller, id: DocumentId, file: &str) -> anyhow::Result<bool> {
    let (begun, mut last, mut is_warned) = (Instant::now(), String::new(), false);
    loop {
        let document = documents::whole(env, caller, id, 0).await?.document;
        let told = files::told(env, caller, &document).await?;
        let now = progress(document.status, document.skip_reason.as_deref(), told.as_ref());
        if now != last {
            eprintln!("{}: {now}", shown(file));
            last = now;
        }
        if !document.status.is_under_way() {
            return Ok(document.status != DocumentStatus::Failed);
        }
        if document.status == DocumentStatus::Pending && begun.elapsed() > NOBODY && !is_warned {
            eprintln!("nobody has begun to read it. Is a worker running? `tributary up`, or `tributary worker`");
            is_warned = true;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Says how far a file is read.
fn progress(status: DocumentStatus, reason: Option<&str>, told: Option<&files::Told>) -> String {
    let why = || {
        let words = reason.and_then(|reason| reason.parse::<Unreadable>().ok()).map(Unreadable::in_words);
        words.or(reason).unwrap_or("the reason is in its steps").to_owned()
    };
    let n_pages = told.map_or(0, |told| told.n_pages);
    let of = told.and_then(|told| told.file.as_ref()).and_then(|file| file.n_pages).map(i64::from);
    match status {
        DocumentStatus::Pending => "waits to be read".into(),
        DocumentStatus::Classifying => "being looked at".into(),
        DocumentStatus::Transcribing => match of {
            Some(of) if of > n_pages => format!("being read, {} of {}", number(n_pages), plural(of, "page", "pages")),
            _ => "being read".into(),
        },
        DocumentStatus::Extracting => "its fields are being found".into(),
        DocumentStatus::Completed => format!("read, {}", plural(n_pages.max(1), "page", "pages")),
        DocumentStatus::Skipped => format!("skipped: {}", why()),
        DocumentStatus::Failed => format!("failed: {}", why()),
    }
}

fn read(file: &str, most: usize) -> anyhow::Result<Incoming> {
    let mut content = Vec::new();
    let at_most = most as u64 + 1;
    if file == "-" {
        std::io::stdin().take(at_most).read_to_end(&mut content).context("standard input cannot be read")?;
    } else {
        let opened = std::fs::File::open(file).context("it cannot be opened")?;
        if opened.metadata().is_ok_and(|about| about.is_dir()) {
            bail!("it is a folder; name its files");
        }
        opened.take(at_most).read_to_end(&mut content).context("it cannot be read")?;
    }
    if content.len() > most {
        bail!("it has more than {most} bytes (DOCUMENT_MAX_BYTES)");
    }
    let file_name = match file {
        "-" => None,
        path => Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned()),
    };
    Ok(Incoming { content: content.into(), file_name, ..Incoming::default() })
}
