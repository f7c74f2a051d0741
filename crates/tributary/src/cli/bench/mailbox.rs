//! Mailboxes at fake providers that answer as late as real ones: a first sync and a delta, beside what the provider's own limits allow; the time from a
//! letter's arrival until it is found; and the memory of mailboxes that are connected and silent.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use domain::{Caller, JobId, SourceId, Transport};
use engine::bench::{Case, Round, quantile};
use engine::memory::recall::{self, Query};
use engine::pull::Provider;
use engine::pull::connect::{self, Returned};
use engine::pull::jobs::{self, Asked};
use engine::work::{Runtime, Stop};
use engine::{Config, lanes};
use fakes::Fakes;
use store::memory::Mode;

use super::pull::resident_mib;
use super::scratch::Scratch;

#[derive(clap::Args)]
pub struct Args {
    /// The number of letters of each mailbox.
    #[arg(long, default_value_t = 2_000)]
    letters: usize,
    /// The time that a provider takes for each request, in milliseconds.
    #[arg(long, default_value_t = 100)]
    request_ms: u64,
    /// The number of letters that come in one by one.
    #[arg(long, default_value_t = 60)]
    arrivals: usize,
    /// The number of silent mailboxes.
    #[arg(long, default_value_t = 1_000)]
    mailboxes: usize,
}

/// No limit of a provider's is met: its share is computed.
const RATE_FACTOR: f64 = 1_000_000.0;
const WORD: &str = "the-word-of-a-bench";
const TOPIC: &str = "projects/bench/topics/mail";
const SESSION: &[u8] = b"a bench";
/// A letter that is not found by then never is.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long silent mailboxes are watched.
const SILENCE: Duration = Duration::from_secs(15);

/// A fake mailbox, in the words that this bench needs.
struct Subject {
    provider: Provider,
    /// The paths of its API.
    paths: &'static [&'static str],
    fill: fn(&Fakes, usize),
    receive: fn(&Fakes, &str),
    /// The units of its limit that were spent.
    units: fn(&Fakes) -> u64,
}

const SUBJECTS: [Subject; 2] = [
    Subject {
        provider: &connectors::pull::gmail::SPEC,
        paths: &["/gmail", "/batch"],
        fill: |fakes, n| fakes.gmail().fill(n),
        receive: |fakes, word| {
            fakes.gmail().receive(
                "Ann <ann@larkfield.example>",
                &format!("About {word}"),
                &format!("Where is {word}?"),
            );
        },
        units: |fakes| fakes.gmail().units(),
    },
    Subject {
        provider: &connectors::pull::outlook::SPEC,
        paths: &["/outlook"],
        fill: |fakes, n| drop(fakes.outlook().fill(n, 10)),
        receive: |fakes, word| {
            fakes.outlook().receive("ann@larkfield.example", &format!("About {word}"), &format!("Where is {word}?"));
        },
        units: |fakes| fakes.outlook().units(),
    },
];

/// Providers on this machine, and the settings that lead to them.
pub async fn providers(config: &Config) -> (Fakes, Config) {
    let fakes = Fakes::start().await;
    let mut config = Config { pull_rate_factor: RATE_FACTOR, ..config.clone() };
    let subscription = fakes.pubsub().subscription();
    let ours = [
        ("GMAIL_INITIAL_SYNC_MAX_THREADS", "1000000".to_owned()),
        ("OUTLOOK_INITIAL_SYNC_MAX_MESSAGES", "1000000".to_owned()),
        ("GMAIL_PUBSUB_TOPIC", TOPIC.to_owned()),
        ("GMAIL_PUBSUB_SUBSCRIPTION", subscription),
        ("GMAIL_PUBSUB_TOKEN", WORD.to_owned()),
    ];
    for (name, value) in fakes.settings().into_iter().chain(ours) {
        config.providers.set(name, value);
    }
    (fakes, config)
}

pub async fn run(scratch: &Scratch, fakes: &Fakes, args: &Args) -> anyhow::Result<Vec<Case>> {
    eprintln!("measuring; about two minutes");
    let embedder = scratch.env.embedders.configured();
    embedder.embed_query("warm").await.map_err(|fault| anyhow::anyhow!(fault.in_words()))?;
    let mut cases = Vec::new();
    let mut found = None;
    for subject in &SUBJECTS {
        (subject.fill)(fakes, args.letters);
        let latency = Duration::from_millis(args.request_ms);
        subject.paths.iter().for_each(|path| fakes.set_latency(path, latency));
        let source_id = connected(scratch, fakes, subject.provider, "office").await?;
        cases.extend(passes(scratch, fakes, subject, source_id, args).await?);
        found = found.or(Some(subject));
    }
    if let Some(subject) = found {
        cases.push(arrivals(scratch, fakes, subject, args).await?);
    }
    fakes.behave();
    cases.push(silent(scratch, fakes, args).await?);
    Ok(cases)
}

/// Connects an account over the provider's own pages.
async fn connected(scratch: &Scratch, fakes: &Fakes, provider: Provider, account: &str) -> anyhow::Result<SourceId> {
    let (env, tenant_id) = (&scratch.env, scratch.tenant_id);
    let fake = fakes::ALL.iter().find(|fake| fake.name == provider.name).context("a fake provider")?;
    fakes.as_account(fake, account);
    let url = connect::authorize(env, tenant_id, SESSION, provider, None, Transport::Rest).await?;
    let answer = env.http.sent_to(&url).await.map_err(|fault| anyhow::anyhow!(fault.in_words()))?;
    let answer = answer.context("a way back")?;
    let (_, query) = answer.split_once('?').context("what it is sent back with")?;
    let plain = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().replace('+', " ");
    let pairs: Vec<(String, String)> = query
        .split('&')
        .filter_map(|part| part.split_once('=').map(|(name, value)| (plain(name), plain(value))))
        .collect();
    let returned = Returned::read(provider, pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    Ok(connect::returned(env, tenant_id, SESSION, provider, &returned).await?)
}

/// A first sync, and a delta of a quarter as many letters.
async fn passes(
    scratch: &Scratch,
    fakes: &Fakes,
    subject: &Subject,
    source_id: SourceId,
    args: &Args,
) -> anyhow::Result<[Case; 2]> {
    let at = format!("{}, {} letters, {} ms a request", subject.provider.label, args.letters, args.request_ms);
    let mut conn = scratch.env.db.acquire().await?;
    let first = store::jobs::live(&mut conn, scratch.tenant_id, source_id).await?.context("its first sync")?;
    drop(conn);
    let first = measured(scratch, fakes, subject, first, format!("first sync ({at})"), args.letters).await?;
    let n_new = args.letters / 4;
    (0..n_new).for_each(|n| (subject.receive)(fakes, &format!("crate{n}")));
    let asked = jobs::sync(&scratch.env, scratch.tenant_id, source_id, None, "bench").await?;
    let Some(Asked::Started(delta) | Asked::Running(delta)) = asked else { bail!("no delta began: {asked:?}") };
    let delta = measured(scratch, fakes, subject, delta, format!("delta of {n_new} new letters ({at})"), n_new).await?;
    Ok([first, delta])
}

/// Runs a job to its end. The limit is the rate at which its units would be used up exactly.
async fn measured(
    scratch: &Scratch,
    fakes: &Fakes,
    subject: &Subject,
    id: JobId,
    case: String,
    n_letters: usize,
) -> anyhow::Result<Case> {
    let (env, units) = (&scratch.env, (subject.units)(fakes));
    let (before, began) = (resident_mib(), Instant::now());
    let runtime = Runtime::new(env.clone(), &lanes::ALL, &[]);
    let mut times_ms = Vec::new();
    let job = loop {
        let turn = Instant::now();
        runtime.run_due().await?;
        times_ms.push(turn.elapsed().as_secs_f64() * 1_000.0);
        let mut conn = env.db.acquire().await?;
        let job = store::jobs::get(&mut conn, scratch.tenant_id, id).await?.context("the job is gone")?;
        drop(conn);
        if job.status.is_over() {
            break job;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let took = began.elapsed().as_secs_f64();
    ensure!(job.error_message.is_none(), "the sync ended as {}: {:?}", job.status, job.error_message);
    let n_read = usize::try_from(job.items_processed)?;
    ensure!(n_read >= n_letters, "it read {n_read} of {n_letters} letters");
    let spent = (subject.units)(fakes).saturating_sub(units).max(1);
    let limit = subject.provider.limits.first().context("a limit")?;
    let per_letter = spent as f64 / n_letters as f64;
    let allowed = f64::from(limit.units) / f64::from(limit.per_secs) / per_letter;
    let mut case = Case::new(
        format!("{case}, beside what its limits allow"),
        "letters/s",
        &Round { rate: n_letters as f64 / took, times_ms },
        allowed,
    );
    case.note = format!(
        "{per_letter:.2} units a letter of {} in {} s; above 1 the provider's limits are what holds it back; resident memory {before:.0} MiB before, {:.0} after",
        limit.units,
        limit.per_secs,
        resident_mib()
    );
    Ok(case)
}

/// From the moment a letter is there to the moment a search finds it, with everything running: server, lanes and schedules.
async fn arrivals(scratch: &Scratch, fakes: &Fakes, subject: &Subject, args: &Args) -> anyhow::Result<Case> {
    let serving = scratch.serve().await?;
    fakes.pubsub().push_to(&format!("http://{}/webhooks/gmail", serving.address), WORD);
    let (stop, env) = (Stop::default(), scratch.env.clone());
    let runtime = Runtime::new(env.clone(), &lanes::ALL, lanes::SCHEDULES);
    let running = tokio::spawn({
        let stop = stop.clone();
        async move { runtime.run("bench", stop).await }
    });
    engine::mail::subscriptions::keep(&env).await.map_err(|fault| anyhow::anyhow!(fault.in_words()))?;
    let caller = Caller::local("bench", scratch.tenant_id, false);
    let mut times_ms = Vec::new();
    for n in 0..=args.arrivals {
        let word = format!("parcel{n}x");
        let began = Instant::now();
        (subject.receive)(fakes, &word);
        let query = Query { text: word.clone(), k: 1, mode: Mode::Keyword, ..Query::default() };
        while Box::pin(recall::search(&env, &caller, &query)).await?.hits.is_empty() {
            ensure!(began.elapsed() < PATIENCE, "the letter about {word} is not found");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // The first one waits for the watch, and for what else was left over.
        if n > 0 {
            times_ms.push(began.elapsed().as_secs_f64() * 1_000.0);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    stop.stop();
    running.await?;
    serving.stop().await?;
    times_ms.sort_by(f64::total_cmp);
    let (p50, p99) = (quantile(&times_ms, 0.50), quantile(&times_ms, 0.99));
    let n_requests = 2.0; // its history, and the letter
    let least = n_requests * args.request_ms as f64;
    Ok(Case {
        case: format!(
            "a letter's arrival at {} until a search finds it, by a notice, beside two requests alone",
            subject.provider.label
        ),
        ours: p50,
        limit: least,
        ratio: least / p50.max(f64::MIN_POSITIVE),
        unit: "ms (p50)",
        p50_ms: p50,
        p99_ms: p99,
        note: format!("{} letters, one after the other, {} ms a request", times_ms.len(), args.request_ms),
    })
}

/// The memory of this process by mailboxes that are connected, read and silent.
async fn silent(scratch: &Scratch, fakes: &Fakes, args: &Args) -> anyhow::Result<Case> {
    let env = &scratch.env;
    let provider = SUBJECTS[0].provider;
    let runtime = Runtime::new(env.clone(), &lanes::ALL, &[]);
    runtime.run_due().await?;
    let before = resident_mib();
    for n in 0..args.mailboxes {
        connected(scratch, fakes, provider, &format!("person{n}")).await?;
    }
    runtime.run_due().await?;
    let (stop, running) = (Stop::default(), Runtime::new(env.clone(), &lanes::ALL, lanes::SCHEDULES));
    let running = tokio::spawn({
        let stop = stop.clone();
        async move { running.run("bench", stop).await }
    });
    tokio::time::sleep(SILENCE).await;
    let after = resident_mib();
    stop.stop();
    running.await?;
    let each_kib = (after - before).max(0.0) * 1_024.0 / args.mailboxes.max(1) as f64;
    Ok(Case {
        case: format!("resident memory of a silent mailbox, beside 1 MiB ({} of them)", args.mailboxes),
        ours: each_kib,
        limit: 1_024.0,
        ratio: each_kib / 1_024.0,
        unit: "KiB",
        p50_ms: 0.0,
        p99_ms: 0.0,
        note: format!("{before:.0} MiB before, {after:.0} after, with the fake provider's own memory"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_is_a_mailbox_with_a_fake() {
        for subject in &SUBJECTS {
            assert!(subject.provider.mailbox.is_some(), "{}", subject.provider);
            assert!(fakes::ALL.iter().any(|fake| fake.name == subject.provider.name), "{}", subject.provider);
            assert!(!subject.provider.limits.is_empty(), "{}", subject.provider);
        }
    }
}
