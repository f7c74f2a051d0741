//! Files that are handed in over HTTP and read by a worker, beside the bare reader over the same bytes; and the time from a file's arrival until it is found.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use domain::reading::Models;
use domain::{Caller, DocumentStatus, Scope, Secret};
use engine::bench::{Case, Round, quantile};
use engine::lanes;
use engine::memory::recall::{self, Query};
use engine::work::{Runtime, Stop};
use reader::{Limits, Source};
use store::memory::Mode;
use store::{files, keys};

use super::client::Client;
use super::pull::resident_mib;
use super::scratch::Scratch;

#[derive(clap::Args)]
pub struct Args {
    /// The number of PDFs with text.
    #[arg(long, default_value_t = 100)]
    files: usize,
    /// The pages of each of them.
    #[arg(long, default_value_t = 10)]
    pages: usize,
    /// The number of scanned pages.
    #[arg(long, default_value_t = 12)]
    scans: usize,
    /// The number of files that are dropped one by one.
    #[arg(long, default_value_t = 40)]
    arrivals: usize,
}

const LINES: usize = 45;
const WORDS: [&str; 24] = [
    "invoice", "delivery", "garden", "fence", "quote", "roof", "payment", "Friday", "truck", "gravel", "hedge",
    "permit", "winter", "contract", "pump", "the", "of", "and", "is", "with", "before", "under", "paid", "agreed",
];
/// A file that is not read by then never is.
const PATIENCE: Duration = Duration::from_secs(900);
/// So many readers of the limit run at once.
const CORES: usize = 2;

pub async fn run(scratch: &Scratch, args: &Args) -> anyhow::Result<Vec<Case>> {
    eprintln!("measuring; about three minutes");
    let mut conn = scratch.env.db.acquire().await?;
    let (_, key) = keys::create(&mut conn, scratch.tenant_id, None, "bench", &[Scope::Read, Scope::Write]).await?;
    drop(conn);
    let serving = scratch.serve().await?;
    let door = Door { to: serving.address, key };
    let (stop, runtime) = (Stop::default(), Runtime::new(scratch.env.clone(), &lanes::ALL, lanes::SCHEDULES));
    let running = tokio::spawn({
        let stop = stop.clone();
        async move { runtime.run("bench", stop).await }
    });
    let cases = async {
        let warm = vec![pdf(usize::MAX, 1)];
        through(scratch, &door, &warm, "pdf").await?;
        let texts: Vec<Vec<u8>> = (0..args.files).map(|nth| pdf(nth, args.pages)).collect();
        let text = beside_bare(scratch, &door, &texts, args.pages, "pdf", &Models::default()).await?;
        let arrivals = arrivals(scratch, &door, args).await?;
        let mut cases = vec![text, arrivals];
        let models = engine::files::reading::models(&scratch.env.config);
        match models.ocr {
            None => eprintln!("scans are not measured: no models that recognise letters are set up"),
            Some(_) => {
                let scans = scans(scratch, &door, args).await?;
                cases.push(beside_bare(scratch, &door, &scans, 1, "jpg", &models).await?);
            }
        }
        anyhow::Ok(cases)
    }
    .await;
    stop.stop();
    running.await?;
    serving.stop().await?;
    cases
}

/// The way in.
struct Door {
    to: SocketAddr,
    key: Secret,
}

impl Door {
    /// Hands a file in, and returns the id of its document.
    async fn hand_in(&self, client: &mut Client, bytes: &[u8], ending: &str) -> anyhow::Result<String> {
        let head = format!(
            "POST /api/v1/documents HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nX-File-Name: bench.{ending}\r\n\
             Content-Type: application/octet-stream\r\nContent-Length: {}\r\n\r\n",
            self.to,
            self.key.reveal(),
            bytes.len()
        );
        let answer = client.ask(&[head.as_bytes(), bytes].concat()).await?;
        ensure!(answer.status == 201, "it was refused ({}): {}", answer.status, String::from_utf8_lossy(answer.body));
        let answer: serde_json::Value = serde_json::from_slice(answer.body)?;
        Ok(answer["id"].as_str().context("no id")?.to_owned())
    }

    /// The first page of a document as it looks.
    async fn picture(&self, client: &mut Client, id: &str) -> anyhow::Result<Vec<u8>> {
        let (to, key) = (self.to, self.key.reveal());
        let request = format!(
            "GET /documents/{id}/pages/1/picture HTTP/1.1\r\nHost: {to}\r\nAuthorization: Bearer {key}\r\n\r\n"
        );
        let answer = client.ask(request.as_bytes()).await?;
        ensure!(answer.status == 200, "no picture ({}): {}", answer.status, String::from_utf8_lossy(answer.body));
        Ok(answer.body.to_vec())
    }
}

/// The rate of pages from the first file's arrival until the last one is read, beside two bare readers in this process.
async fn beside_bare(
    scratch: &Scratch,
    door: &Door,
    files: &[Vec<u8>],
    pages: usize,
    ending: &str,
    models: &Models,
) -> anyhow::Result<Case> {
    let n_pages = files.len() * pages;
    let before = resident_mib();
    let ours = through(scratch, door, files, ending).await?;
    let after = resident_mib();
    let bare = bare(files, models).await?;
    let rate = |took: Duration| n_pages as f64 / took.as_secs_f64();
    let of = if models.ocr.is_some() { "scanned pages" } else { "pages of PDFs with text" };
    let mut case = Case::new(
        format!("{n_pages} {of} from arrival to completed, beside {CORES} bare readers"),
        "pages/s",
        &Round { rate: rate(ours), times_ms: vec![ours.as_secs_f64() * 1_000.0 / n_pages as f64] },
        rate(bare),
    );
    case.note = format!("resident memory of the server {before:.0} MiB before, {after:.0} after");
    Ok(case)
}

/// Hands the files in and waits until all are read.
async fn through(scratch: &Scratch, door: &Door, files: &[Vec<u8>], ending: &str) -> anyhow::Result<Duration> {
    let done = n_completed(scratch).await?;
    let began = Instant::now();
    let mut client = Client::connect(door.to).await?;
    for bytes in files {
        door.hand_in(&mut client, bytes, ending).await?;
    }
    completed(scratch, done + files.len()).await?;
    Ok(began.elapsed())
}

/// Waits until so many files are read.
async fn completed(scratch: &Scratch, n: usize) -> anyhow::Result<()> {
    let began = Instant::now();
    while n_completed(scratch).await? < n {
        ensure!(began.elapsed() < PATIENCE, "not all files are read");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

async fn n_completed(scratch: &Scratch) -> anyhow::Result<usize> {
    let mut conn = scratch.env.db.acquire().await?;
    let counts = files::by_status(&mut conn).await?;
    let of = |status: DocumentStatus| counts.iter().find(|(name, _)| name == status.as_str()).map_or(0, |(_, n)| *n);
    ensure!(of(DocumentStatus::Failed) + of(DocumentStatus::Skipped) == 0, "not all files could be read: {counts:?}");
    Ok(usize::try_from(of(DocumentStatus::Completed))?)
}

/// Pictures of pages that are full of text.
async fn scans(scratch: &Scratch, door: &Door, args: &Args) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut client = Client::connect(door.to).await?;
    let mut pictures = Vec::new();
    for nth in 0..args.scans {
        let done = n_completed(scratch).await?;
        let id = door.hand_in(&mut client, &pdf(args.files + args.arrivals + nth, 1), "pdf").await?;
        completed(scratch, done + 1).await?;
        pictures.push(door.picture(&mut client, &id).await?);
    }
    Ok(pictures)
}

/// Reads the files without a jail, a database or a memory.
async fn bare(files: &[Vec<u8>], models: &Models) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let share = files.len().div_ceil(CORES).max(1);
    let mut threads = tokio::task::JoinSet::new();
    for files in files.chunks(share) {
        let (files, models) = (files.to_vec(), models.clone());
        threads.spawn_blocking(move || {
            files.into_iter().try_for_each(|bytes| {
                let source = Source { bytes, ..Source::default() };
                reader::read(source, Limits::default(), &models, &[], &mut std::io::sink())
            })
        });
    }
    while let Some(ended) = threads.join_next().await {
        ended.context("a bare reader")??;
    }
    Ok(began.elapsed())
}

/// From the moment a file is handed in to the moment a search finds a word in the middle of it, one file after the other.
async fn arrivals(scratch: &Scratch, door: &Door, args: &Args) -> anyhow::Result<Case> {
    let caller = Caller::local("bench", scratch.tenant_id, false);
    let mut client = Client::connect(door.to).await?;
    let mut times_ms = Vec::new();
    for nth in 0..args.arrivals {
        let nth = args.files + nth;
        let bytes = pdf(nth, args.pages);
        let query = Query { text: word(nth, args.pages / 2), k: 1, mode: Mode::Keyword, ..Query::default() };
        let began = Instant::now();
        door.hand_in(&mut client, &bytes, "pdf").await?;
        while Box::pin(recall::search(&scratch.env, &caller, &query)).await?.hits.is_empty() {
            ensure!(began.elapsed() < PATIENCE, "{} is not found", query.text);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        times_ms.push(began.elapsed().as_secs_f64() * 1_000.0);
    }
    let alone = bare(&[pdf(0, args.pages)], &Models::default()).await?.as_secs_f64() * 1_000.0;
    times_ms.sort_by(f64::total_cmp);
    let (p50, p99) = (quantile(&times_ms, 0.50), quantile(&times_ms, 0.99));
    Ok(Case {
        case: format!("a PDF of {} pages from its arrival until a search finds it, beside a bare reader", args.pages),
        ours: p50,
        limit: alone,
        ratio: alone / p50.max(f64::MIN_POSITIVE),
        unit: "ms (p50)",
        p50_ms: p50,
        p99_ms: p99,
        note: format!("{} files, one after the other", times_ms.len()),
    })
}

/// A word of one page alone.
fn word(file: usize, page: usize) -> String {
    format!("shelf{file}x{page}")
}

/// A PDF whose pages are full of text that no other file has.
fn pdf(file: usize, pages: usize) -> Vec<u8> {
    let mut objects = vec!["<< /Type /Catalog /Pages 2 0 R >>".to_owned(), String::new()];
    objects.push("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".into());
    let mut kids = String::new();
    for page in 0..pages {
        let content = content(file, page);
        let _ = write!(kids, "{} 0 R ", objects.len() + 1);
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> /Contents {} 0 R >>",
            objects.len() + 2
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{content}endstream", content.len()));
    }
    objects[1] = format!("<< /Type /Pages /Kids [{kids}] /Count {pages} >>");
    let (mut text, mut places) = ("%PDF-1.4\n".to_owned(), String::new());
    for (nth, object) in objects.iter().enumerate() {
        let _ = writeln!(places, "{:010} 00000 n ", text.len());
        let _ = write!(text, "{} 0 obj\n{object}\nendobj\n", nth + 1);
    }
    let (begin, n) = (text.len(), objects.len() + 1);
    let _ = write!(
        text,
        "xref\n0 {n}\n0000000000 65535 f \n{places}trailer\n<< /Size {n} /Root 1 0 R >>\nstartxref\n{begin}\n%%EOF\n"
    );
    text.into_bytes()
}

fn content(file: usize, page: usize) -> String {
    let mut content = format!("BT /F1 11 Tf 14 TL 60 780 Td (Sheet {}) Tj T*\n", word(file, page));
    for line in 0..LINES {
        let words =
            (0..11).map(|nth| WORDS[(file % 97 * 31 + page * 17 + line * 7 + nth * (3 + line % 4)) % WORDS.len()]);
        let _ = writeln!(content, "({}) Tj T*", words.collect::<Vec<_>>().join(" "));
    }
    content + "ET\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reader_reads_the_pages_of_a_pdf_of_ours() {
        let mut out = Vec::new();
        let source = Source { bytes: pdf(7, 3), ..Source::default() };
        reader::read(source, Limits::default(), &Models::default(), &[], &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        for page in 0..3 {
            assert!(out.contains(&word(7, page)), "page {page} is missing: {out}");
        }
    }
}
