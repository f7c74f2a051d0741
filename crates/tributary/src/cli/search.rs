//! `tributary search`: searches memory, like the Search page.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use chrono::NaiveDate;
use domain::Caller;
use domain::papers::{Decimal, PaperKind};
use domain::shown::{clipped, relative, shown};
use engine::memory::recall::{self, Facets, Hit};
use engine::pull::words::facts::document_type;
use engine::{Config, Env};
use store::memory::{Filters, Mode, PaperFilters, Sort};
use store::sources::{self, AnySource};
use uuid::Uuid;
use web::api::search::Moment;

use super::pick::{Choice, Kind, meant, pick};
use super::{Shared, caller, client, contact, env, print_json};

#[derive(clap::Args)]
pub struct Args {
    /// The text to look for, in any words. A phrase in quotation marks must be there as it is.
    #[arg(required = true)]
    query: Vec<String>,
    /// The largest number of hits.
    #[arg(short, long, default_value_t = 10, value_parser = clap::value_parser!(u8).range(1..=100))]
    k: u8,
    /// hybrid, keyword or vector.
    #[arg(long, default_value = "hybrid")]
    mode: Mode,
    /// Only documents of this type, such as `note`.
    #[arg(long = "type")]
    kind: Option<String>,
    /// Only documents of this source, by name or id.
    #[arg(long)]
    source: Option<String>,
    /// Only what came through this channel, by name or id.
    #[arg(long)]
    channel: Option<String>,
    /// Only from this time on: 2026-11-15T12:00:00Z, or a day (UTC).
    #[arg(long, value_name = "TIME")]
    since: Option<Moment>,
    /// Only before this time; a day counts whole.
    #[arg(long, value_name = "TIME")]
    until: Option<Moment>,
    /// Only what is from or to this contact, by number, name or address.
    #[arg(long)]
    contact: Option<String>,
    /// Only what is known of this client, by name or id.
    #[arg(long)]
    client: Option<String>,
    /// Only activities of this person and documents of their contacts, by number or e-mail address.
    #[arg(long)]
    person: Option<String>,
    /// Only papers of this kind: invoice, credit_note, receipt, contract, letter or statement.
    #[arg(long)]
    paper: Option<PaperKind>,
    /// Only papers of suppliers whose name has this in it.
    #[arg(long)]
    supplier: Option<String>,
    /// Only papers whose total is at least this: 1234.50.
    #[arg(long, value_name = "AMOUNT", allow_negative_numbers = true)]
    amount_min: Option<Decimal>,
    /// Only papers whose total is at most this.
    #[arg(long, value_name = "AMOUNT", allow_negative_numbers = true)]
    amount_max: Option<Decimal>,
    /// Only papers that were issued, or begin, on this day or later: 2026-11-15.
    #[arg(long, value_name = "DAY")]
    paper_since: Option<NaiveDate>,
    /// Only papers that were issued, or begin, on this day or earlier.
    #[arg(long, value_name = "DAY")]
    paper_until: Option<NaiveDate>,
    /// relevance, or date: the newest of the matching documents first.
    #[arg(long, default_value = "relevance")]
    sort: Sort,
    /// The next page: what the page before named, with the same question and filters.
    // A cursor may begin with a hyphen.
    #[arg(long, value_name = "CURSOR", allow_hyphen_values = true)]
    more: Option<String>,
    /// Also count the matching documents by source, type, time, channel, kind of paper and supplier.
    #[arg(long)]
    facets: bool,
    #[command(flatten)]
    shared: Shared,
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let env = env(&config).await?;
    let caller = caller(&env, args.shared.tenant.as_deref()).await?;
    let filters = filters(&env, &caller, &args).await?;
    let query = recall::Query {
        text: args.query.join(" "),
        filters,
        k: args.k.into(),
        mode: args.mode,
        sort: args.sort,
        cursor: args.more,
        with_facets: args.facets,
    };
    let answer = recall::search(&env, &caller, &query).await?;
    if let Some(note) = &answer.note {
        eprintln!("note: {}", shown(note));
    }
    let (is_found, has_closest) = (!answer.hits.is_empty(), !answer.closest.is_empty());
    if args.shared.json {
        print_json(&web::api::search::Found::new(answer, &config.base_url()))?;
    } else {
        if has_closest {
            eprintln!("nothing here fits; the closest:\n");
        }
        let (now, is_bold) = (env.clock.now(), std::io::stdout().is_terminal());
        for (nth, hit) in answer.hits.iter().chain(&answer.closest).enumerate() {
            print(nth + 1, hit, now, is_bold);
        }
        if let Some(facets) = &answer.facets {
            print_facets(facets);
        }
        if let Some(next) = &answer.next {
            eprintln!("hint: the same command with `--more {next}` shows the next page");
        }
    }
    if !is_found {
        if !has_closest {
            eprintln!("nothing found");
        }
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// The filters, with names looked up.
async fn filters(env: &Env, caller: &Caller, args: &Args) -> anyhow::Result<Filters> {
    let (mut source, mut channel, mut person, mut contact, mut client) = (None, None, None, None, None);
    if let Some(text) = &args.source {
        source = Some(any_source(env, caller, "source", text, |_| true).await?);
    }
    if let Some(text) = &args.channel {
        channel = Some(any_source(env, caller, "channel", text, |source| source.provider == "channel").await?);
    }
    if let Some(text) = &args.contact {
        contact = Some(contact::id_of(env, caller, text).await?.0);
    }
    if let Some(text) = &args.client {
        client = Some(client::id_of(env, caller, text).await?.0);
    }
    if let Some(named) = &args.person {
        person = Some(super::person::find(env, caller, named).await?.id);
    }
    Ok(Filters {
        source,
        r#type: args.kind.clone(),
        since: args.since.map(Moment::begins),
        until: args.until.map(Moment::ends),
        contact,
        client,
        person,
        channel,
        says: PaperFilters {
            paper: args.paper,
            supplier: args.supplier.clone(),
            amount_min: args.amount_min,
            amount_max: args.amount_max,
            paper_since: args.paper_since,
            paper_until: args.paper_until,
        },
        stored_after: None,
        stored_by: None,
    })
}

/// A source of documents that is meant; also one that was disconnected, and a channel that was deleted.
pub(super) async fn any_source(
    env: &Env,
    caller: &Caller,
    noun: &'static str,
    text: &str,
    is_one: impl Fn(&AnySource) -> bool,
) -> anyhow::Result<Uuid> {
    let known = env.db.read(caller, async |tx| sources::all(tx).await).await?;
    let choices = known.into_iter().filter(is_one).map(|source| Choice::new(source.id, source.id, [Some(source.name)]));
    let choices: Vec<Choice<Uuid>> = choices.collect();
    if meant(&choices, text).is_empty() {
        // No command lists them all: the notes are a source too.
        let names: Vec<String> =
            choices.iter().flat_map(|choice| choice.names.iter().map(|name| shown(name))).collect();
        let known =
            if names.is_empty() { "there are none yet".into() } else { format!("{noun}s are {}", names.join(", ")) };
        anyhow::bail!("there is no {noun} {text:?}\n\nhint: {known}");
    }
    let (plural, list) = match noun {
        "channel" => ("channels", "tributary channel list"),
        _ => ("sources", "tributary source list"),
    };
    pick(Kind { noun, plural, list }, choices, text)
}

fn print_facets(facets: &Facets) {
    let plus = if facets.is_at_least { "+" } else { "" };
    let verb = if facets.n_matches == 1 { "document matches" } else { "documents match" };
    println!("{}{plus} {verb}", facets.n_matches);
    let types = facets.types.iter().map(|facet| (&facet.name, facet.n)).collect::<Vec<_>>();
    let sources = facets.sources.iter().map(|facet| (&facet.name, facet.n)).collect();
    let channels = facets.channels.iter().map(|facet| (&facet.name, facet.n)).collect();
    let times = facets.times.iter().map(|period| (&period.name, period.n)).collect();
    let papers = facets.papers.iter().map(|facet| (&facet.name, facet.n)).collect();
    let suppliers = facets.suppliers.iter().map(|facet| (&facet.name, facet.n)).collect();
    let lists = [
        ("type", types),
        ("source", sources),
        ("channel", channels),
        ("paper", papers),
        ("supplier", suppliers),
        ("time", times),
    ];
    for (label, values) in lists {
        let values: Vec<String> = values.iter().map(|(name, n)| format!("{} {n}{plus}", clipped(name, 40))).collect();
        if !values.is_empty() {
            println!("   {label}: {}", values.join(", "));
        }
    }
}

fn print(number: usize, hit: &Hit, now: chrono::DateTime<chrono::Utc>, is_bold: bool) {
    let title = hit.title.as_deref().unwrap_or(&hit.external_id);
    let about = [shown(&document_type(&hit.document_type)), shown(&hit.source_name), relative(hit.at, now)].join(" · ");
    let part = |part: &domain::text::Part| match part.is_match && is_bold {
        true => format!("\x1b[1m{}\x1b[0m", shown(&part.text)),
        false => shown(&part.text),
    };
    let snippet: String = hit.snippet.iter().map(part).collect();
    println!("{number}. {}\n   {about}\n   {}", clipped(title, 120), snippet.trim());
    if !hit.others.is_empty() {
        println!("   {} times; this is the newest", hit.others.len() + 1);
    }
    println!("   {}\n   {}\n", shown(&hit.why), hit.document_id);
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        search: super::Args,
    }

    #[test]
    fn a_cursor_that_begins_with_a_hyphen_is_no_option() {
        let typed = Typed::try_parse_from(["search", "ferry", "--more", "-Xab_c", "-k", "3"]).expect("a search");
        assert_eq!(typed.search.more.as_deref(), Some("-Xab_c"));
    }
}
