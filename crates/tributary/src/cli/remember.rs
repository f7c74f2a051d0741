//! `tributary remember`: remembers files and notes.

use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use domain::shown::{plural, shown};
use engine::Config;
use engine::memory::door::{self, Incoming};
use engine::memory::{Change, Remembered};
use serde_json::json;

use super::{Shared, caller, env};

#[derive(clap::Args)]
pub struct Args {
    /// Text, markdown or html files; `-` reads a note from standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Its title. Default: the file name, or the title of a web page.
    #[arg(long)]
    title: Option<String>,
    /// Its id in memory. A text with the same id replaces the document. Default: a hash of its content.
    #[arg(long)]
    external_id: Option<String>,
    #[command(flatten)]
    shared: Shared,
}

/// Prints one line per file. A refused file is reported and the next one is read; the exit code then is not 0.
pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    if args.files.len() > 1 && (args.title.is_some() || args.external_id.is_some()) {
        bail!("one title or external id cannot name {} files\n\nhint: remember them one by one", args.files.len());
    }
    let env = env(&config).await?;
    let tenant_id = caller(&env, args.shared.tenant.as_deref()).await?.tenant_id;
    let (mut told, mut n_refused) = (Vec::new(), 0);
    for file in &args.files {
        let taken = match read(file, config.document_max_bytes) {
            Ok(incoming) => {
                let incoming =
                    Incoming { title: args.title.clone(), external_id: args.external_id.clone(), ..incoming };
                door::accept(&env, tenant_id, incoming).await.map_err(anyhow::Error::from)
            }
            Err(error) => Err(error),
        };
        match taken {
            Ok(taken) if args.shared.json => {
                let mut answer = serde_json::to_value(web::api::documents::Taken::from(taken))?;
                answer["file"] = json!(file);
                told.push(answer);
            }
            Ok(taken) => println!("{}", line(file, &taken)),
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
    Ok(if n_refused == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn line(file: &str, taken: &Remembered) -> String {
    let what = match taken.change {
        Change::Created => "remembered",
        Change::Updated => "updated",
        Change::Unchanged => "unchanged",
        Change::Superseded => "superseded",
        Change::Deleted => "deleted",
        Change::KeptOut => "kept out",
    };
    let mut about = match taken.n_chunks {
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
