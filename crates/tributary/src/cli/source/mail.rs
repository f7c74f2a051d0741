//! `tributary source mail`: which places of a mailbox are read, its rules, and what these left out.

use std::process::ExitCode;

use clap::Subcommand;
use domain::mail::Place;
use domain::shown::{clipped, counted, relative};
use domain::{Caller, SourceId};
use engine::Env;
use engine::mail::rules::{Change, Counted};
use engine::mail::settings::{self, PLACES, word};
use engine::mail::{left_out, rules};
use store::queue::MOST_COUNTED;
use web::api::mailbox::{LeftOut, MailRules, Mailbox, RulePreview};

use super::with_hint;
use crate::cli::{print_json, table};

/// The messages of one list.
const MOST: i64 = 50;

#[derive(Subcommand)]
pub(super) enum Act {
    /// Show or choose the places that are read: inbox, other (folders), sent, drafts, spam, deleted.
    Places {
        /// The places to be read. Everything is read again then. Without any, those that are read now are shown.
        #[arg(value_parser = place)]
        places: Vec<Place>,
    },
    /// List the rules that leave messages out, with what each left out.
    Rules,
    /// Switch a rule, or add one of the mailbox's own.
    Rule {
        /// Its name, as the list of rules has it.
        name: String,
        /// Ask it about messages that come from now on.
        #[arg(long, conflicts_with = "off")]
        on: bool,
        /// Do not ask it. What it left out stays out.
        #[arg(long)]
        off: bool,
        /// The conditions of a rule of its own, as JSON, such as '{"senders":["shop.example"]}'.
        #[arg(long)]
        conditions: Option<String>,
        /// Change nothing; say what it would have done in the last 30 days.
        #[arg(long)]
        preview: bool,
        /// Remove a rule of its own.
        #[arg(long, conflicts_with_all = ["on", "off", "conditions", "preview"])]
        remove: bool,
    },
    /// List messages that rules left out, the latest first.
    LeftOut {
        /// Only those of this rule.
        #[arg(long)]
        rule: Option<String>,
    },
    /// Let in a message that a rule left out, or all that one rule did.
    LetIn {
        /// The message's id, as the list has it.
        #[arg(required_unless_present = "rule", conflicts_with = "rule")]
        letter: Option<String>,
        /// Everything that this rule left out, up to 500 messages at a time.
        #[arg(long)]
        rule: Option<String>,
    },
}

fn place(text: &str) -> Result<Place, String> {
    PLACES.iter().copied().find(|place| word(*place) == text).ok_or_else(|| {
        let words: Vec<&str> = PLACES.iter().copied().map(word).collect();
        format!("{text:?} is none of {}", words.join(", "))
    })
}

pub(super) async fn run(env: &Env, caller: &Caller, id: SourceId, act: Act, is_json: bool) -> anyhow::Result<ExitCode> {
    match act {
        Act::Places { places } => {
            let settings = match places.is_empty() {
                true => settings::get(env, caller, id).await,
                false => settings::set(env, caller, id, &places).await,
            };
            let settings = settings.map_err(|error| with_hint(error, id))?;
            let words: Vec<&str> = settings.places.iter().copied().map(word).collect();
            match is_json {
                true => print_json(&Mailbox::from(settings))?,
                false => println!("{}", words.join(" ")),
            }
        }
        Act::Rules => {
            let listed = rules::list(env, caller, id).await.map_err(|error| with_hint(error, id))?;
            if is_json {
                print_json(&MailRules::from(listed))?;
                return Ok(ExitCode::SUCCESS);
            }
            let row = |line: &rules::RuleLine| {
                let state = if line.rule.is_on { "on" } else { "off" };
                let sentence = clipped(&line.rule.sentence, 120);
                vec![clipped(&line.rule.name, 40), state.into(), counted(line.n_left_out, MOST_COUNTED), sentence]
            };
            table::print(&["rule", "", "left out", "messages"], &listed.iter().map(row).collect::<Vec<_>>());
        }
        Act::Rule { name, remove: true, .. } => {
            rules::remove(env, caller, id, &name).await.map_err(|error| with_hint(error, id))?;
            println!("removed; what it left out stays out");
        }
        Act::Rule { name, on, off, conditions, preview, .. } => {
            let conditions = conditions.as_deref().map(serde_json::from_str).transpose();
            let conditions = conditions.map_err(|error| anyhow::anyhow!("the conditions cannot be read: {error}"))?;
            let change = Change { is_on: (on || off).then_some(on), conditions };
            if preview {
                // A rule that is off does nothing: it is tried as if it was on, unless it is asked what its end would do.
                let change = Change { is_on: change.is_on.or(Some(true)), ..change };
                let tried =
                    rules::preview(env, caller, id, &name, change).await.map_err(|error| with_hint(error, id))?;
                return print_preview(tried, is_json);
            }
            rules::set(env, caller, id, &name, change).await.map_err(|error| with_hint(error, id))?;
            println!("changed; it is asked about messages that come from now on");
        }
        Act::LeftOut { rule } => {
            let page = left_out::list(env, caller, id, rule.as_deref(), None, MOST).await;
            let page = page.map_err(|error| with_hint(error, id))?;
            if is_json {
                let reasons = left_out::count_by_reason(env, caller, id).await?;
                print_json(&LeftOut::from((page, reasons)))?;
                return Ok(ExitCode::SUCCESS);
            }
            let now = env.clock.now();
            let row = |letter: &store::mail::processed::LeftOutLetter| {
                let sender = letter.sender.as_deref().map(|sender| clipped(sender, 40)).unwrap_or_default();
                let subject = letter.subject.as_deref().map(|subject| clipped(subject, 60)).unwrap_or_default();
                let came = relative(letter.received_at, now);
                vec![clipped(&letter.message_id, 80), came, letter.skip_reason.clone(), sender, subject]
            };
            let rows: Vec<_> = page.letters.iter().map(row).collect();
            table::print(&["message", "came", "rule", "from", "subject"], &rows);
            if page.next.is_some() {
                eprintln!("there are more; the API has all of them");
            }
        }
        Act::LetIn { letter: Some(letter), .. } => {
            left_out::let_in(env, caller, id, &letter).await.map_err(|error| with_hint(error, id))?;
            println!("it is asked for again");
        }
        Act::LetIn { letter: None, rule } => {
            let rule = rule.unwrap_or_default();
            let done = left_out::let_in_all(env, caller, id, &rule).await.map_err(|error| with_hint(error, id))?;
            println!("{} messages are asked for again", done.asked);
            if done.left > 0 {
                println!("{} more are too many for one job; run this again when it has ended", done.left);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print_preview(tried: rules::Preview, is_json: bool) -> anyhow::Result<ExitCode> {
    if is_json {
        print_json(&RulePreview::from(tried))?;
        return Ok(ExitCode::SUCCESS);
    }
    println!("of {} messages of the last 30 days:", tried.looked_at);
    for (rule, letters) in &tried.shared {
        println!("{letters} it fits, and {} leaves them out as well", clipped(rule, 40));
    }
    for (what, Counted { letters, latest }) in
        [("would have been left out", tried.would_leave_out), ("would have come in", tried.would_let_in)]
    {
        println!("{letters} {what}");
        for letter in latest {
            println!("  {}  {}", clipped(&letter.sender, 40), clipped(&letter.subject, 60));
        }
    }
    Ok(ExitCode::SUCCESS)
}
