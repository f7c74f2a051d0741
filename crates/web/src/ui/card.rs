//! An activity as a card: its content, who may claim it, its result, and what a person may do about it.

use chrono::{DateTime, Utc};
use domain::activity::{self, AfterFailure};
use domain::shown::{clipped, number, plural, shown_lines, span};
use domain::{ActivityType, Direction, ProcessingStatus};
use engine::enrich::SURE;
use engine::waiting::{Overview, Turn};
use serde_json::Value;
use store::activities::Activity;
use store::contacts::Contact;

use super::activities::{badge, kind};
use super::document::{MOST_TEXT_CHARS, cut};
use super::file::percent;
use super::lane::Button;
use super::text::{Badge, When};

/// The number of characters of a transcript in a list (`store::activities`).
const LISTED_CHARS: usize = 3_000;
/// The number of characters of a text that stand for its subject when it has none.
const TITLE_CHARS: usize = 80;

pub(super) struct Card {
    pub id: String,
    pub href: String,
    /// Its type, for the icon.
    pub icon: &'static str,
    pub kind: &'static str,
    /// The style sheet's name for its colour.
    pub tone: &'static str,
    pub badge: Badge,
    /// Its state is worth a word: it failed, or nobody can process it.
    pub is_unusual: bool,
    /// It is one of a list, which has its details in a fold.
    pub is_listed: bool,
    pub at: When,
    pub title: String,
    /// One line about it: its summary, or the beginning of its text; empty when the title says it all.
    pub line: String,
    /// `from` or `to`; `about` for what a person wrote.
    pub way: &'static str,
    /// The person who wrote it; empty: it came by itself.
    pub written_by: String,
    /// The time that it is about, with a word before it.
    pub times: Vec<(&'static str, When)>,
    /// Sender or receiver; empty when it carries no address.
    pub party: String,
    /// The contact's page, if it matches one.
    pub contact: Option<String>,
    /// The channel that it came by; empty where that is not known.
    pub channel: String,
    /// The person who owns it; empty: everyone.
    pub owner: String,
    pub doing: Option<Doing>,
    pub failure: Option<Failure>,
    pub recording: Option<String>,
    pub found: Vec<String>,
    pub transcript: String,
    /// Its language, and whether to trust it.
    pub heard: String,
    /// The page that has the rest of the transcript.
    pub rest: Option<String>,
    pub actions: Vec<Button>,
}

/// The state of an activity that waits or that an agent has claimed.
pub(super) struct Doing {
    pub words: String,
    pub note: String,
    pub times: Vec<When>,
    /// An agent works on it, or will soon.
    pub is_moving: bool,
}

pub(super) struct Failure {
    pub words: String,
    /// The number of attempts, and what happens next.
    pub note: String,
    pub times: Vec<When>,
}

impl Card {
    pub fn new(activity: &Activity, contact: Option<&Contact>, overview: &Overview, now: DateTime<Utc>) -> Self {
        let said = |name: &str| text(&activity.raw_data, name).trim();
        let is_recording = said("source_type") == "url" && activity.r#type == ActivityType::Call;
        let content = if said("source_type") == "url" { "" } else { said("content") }; // an address says nothing to people
        let title = match (said("subject"), content) {
            ("", "") if is_recording => "A recording".to_owned(),
            ("", "") => "No text".to_owned(),
            ("", content) => clipped(content, TITLE_CHARS),
            (subject, _) => clipped(subject, 120),
        };
        let is_said = said("subject").is_empty() && content.chars().nth(TITLE_CHARS).is_none();
        let done =
            activity.processed_data.as_ref().filter(|_| activity.processing_status == ProcessingStatus::Completed);
        let result = |name: &str| done.map(|done| text(done, name)).unwrap_or_default();
        let facts = done.and_then(|done| done.get("facts")).and_then(Value::as_array).into_iter().flatten();
        let fact = |fact: &Value| clipped(&fact.as_str().map_or_else(|| fact.to_string(), str::to_owned), 200);
        let href = format!("/activities/{}", activity.id);
        let failure = (activity.processing_status == ProcessingStatus::Failed).then(|| Failure::new(activity, now));
        let owner = activity.person_id.and_then(|id| overview.person(id)).map(|owner| clipped(&owner.called(), 60));
        let doing = Doing::new(activity, owner.as_deref(), overview, now);
        // A sender's own fields may have these names, but such an activity comes by a channel.
        let is_written = activity.channel_id.is_none() && !text(&activity.metadata, "written_by").is_empty();
        let about_time = text(&activity.metadata, "at").parse::<DateTime<Utc>>().ok().filter(|_| is_written);
        let when = if activity.r#type == ActivityType::Task { "due" } else { "for" };
        let is_listed_whole = result("transcript").chars().nth(LISTED_CHARS - 1).is_none();
        Self {
            id: activity.id.to_string(),
            icon: activity.r#type.as_str(),
            kind: kind(activity.r#type),
            tone: tone(activity),
            badge: badge(activity),
            at: When::new(activity.created_at, now),
            line: match result("summary").trim() {
                "" if is_said => String::new(),
                "" => clipped(content, 300),
                summary if summary == title => String::new(),
                summary => clipped(beyond(&title, summary), 1_000),
            },
            title,
            is_listed: true,
            channel: String::new(),
            way: match activity.direction {
                _ if is_written => "about",
                Direction::Outbound => "to",
                Direction::Inbound => "from",
            },
            written_by: if is_written { clipped(text(&activity.metadata, "written_by"), 60) } else { String::new() },
            times: about_time.map(|at| (when, When::new(at, now))).into_iter().collect(),
            party: match contact {
                Some(contact) => clipped(&contact.called(), 80),
                None => clipped(activity.party().unwrap_or_default(), 80),
            },
            contact: contact.map(|contact| format!("/clients/people/{}", contact.id)),
            is_unusual: failure.is_some() || doing.as_ref().is_some_and(|doing| !doing.is_moving),
            doing,
            owner: owner.unwrap_or_default(),
            actions: if failure.is_some() { actions(activity, &href) } else { Vec::new() },
            failure,
            recording: is_recording.then(|| format!("{href}/recording")),
            found: facts.map(fact).collect(),
            heard: done.map(heard).unwrap_or_default(),
            transcript: shown_lines(&cut(result("transcript"), MOST_TEXT_CHARS)),
            rest: (!is_listed_whole).then(|| href.clone()),
            href,
        }
    }
}

/// The language of a transcript, and whether to trust it.
fn heard(done: &Value) -> String {
    let language = text(done, "language");
    let sure = done.get("confidence").and_then(Value::as_f64);
    let parts = [
        (!language.is_empty()).then(|| format!("Language: {}.", clipped(language, 40))),
        sure.filter(|sure| *sure < SURE).map(|sure| {
            format!(
                "Hard to hear, so only {} sure: compare it with the recording before you rely on it.",
                percent(sure)
            )
        }),
        (done.get("is_cut") == Some(&Value::Bool(true))).then(|| "The recording goes on: four hours are heard.".into()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The part of a summary that the title does not say: a summary by rules begins with the subject.
fn beyond<'a>(title: &str, summary: &'a str) -> &'a str {
    summary.strip_prefix(title).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(summary)
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn is_skipped(activity: &Activity) -> bool {
    activity.metadata.get("error").is_some_and(|error| text(error, "type") == activity::SKIPPED)
}

fn tone(activity: &Activity) -> &'static str {
    match activity.processing_status {
        ProcessingStatus::Raw | ProcessingStatus::Processing => "open",
        ProcessingStatus::Completed => "done",
        ProcessingStatus::Failed if is_skipped(activity) => "skipped",
        ProcessingStatus::Failed => "bad",
    }
}

fn actions(activity: &Activity, href: &str) -> Vec<Button> {
    let retry = Button { label: "Retry", href: format!("{href}/retry") };
    let skip = (!is_skipped(activity)).then(|| Button { label: "Skip", href: format!("{href}/skip") });
    std::iter::once(retry).chain(skip).collect()
}

impl Doing {
    fn new(activity: &Activity, owner: Option<&str>, overview: &Overview, now: DateTime<Utc>) -> Option<Self> {
        let moving = |words: String, note: String| Self { words, note, times: Vec::new(), is_moving: true };
        let waits = |note| moving("Waiting for an agent".into(), note);
        match activity.processing_status {
            ProcessingStatus::Processing => {
                let note = match overview.heard(activity.id) {
                    Some((heard, all)) => {
                        Some(format!("{} of the recording heard", percent(heard as f64 / all as f64)))
                    }
                    None => overview
                        .takes_secs(activity.r#type.as_str())
                        .map(|secs| format!("usually takes {}", about(secs))),
                };
                return Some(moving("Processing content…".into(), note.unwrap_or_default()));
            }
            ProcessingStatus::Raw => {}
            ProcessingStatus::Completed | ProcessingStatus::Failed => return None,
        }
        let Some(wait) = overview.wait(activity.id) else {
            // It is behind all that were looked at, or was claimed this moment.
            let more = format!("more than {} before it", number(engine::waiting::MOST));
            return Some(waits(if overview.claimable.is_more { more } else { String::new() }));
        };
        Some(match (wait.turn, wait.about_secs, wait.ahead) {
            (Turn::Now { .. }, Some(secs), _) => waits(format!("done in {}", about(secs))),
            (Turn::Now { .. }, None, 0) => waits("it is next".into()),
            (Turn::Now { .. }, None, ahead) => waits(format!("{} before it", number(ahead as i64))),
            (Turn::Later(at), ..) => Self {
                words: format!("Waiting for an agent of {}", owner.unwrap_or("its owner")),
                note: "others may take it".into(),
                times: vec![When::new(at, now)],
                is_moving: true,
            },
            (Turn::Nobody, ..) => Self {
                words: "No agent is online that could process it".into(),
                note: String::new(),
                times: Vec::new(),
                is_moving: false,
            },
        })
    }
}

/// Rounds an estimate to what can be known: to five seconds above ten.
fn about(secs: f64) -> String {
    let secs = secs.ceil().clamp(1.0, 1e9) as i64;
    format!("about {}", span(if secs > 10 { (secs + 4) / 5 * 5 } else { secs }))
}

impl Failure {
    fn new(activity: &Activity, now: DateTime<Utc>) -> Self {
        let error = activity.metadata.get("error").cloned().unwrap_or_default();
        let (what, message) = (in_words(text(&error, "type")), text(&error, "message").trim());
        let tries = match activity.tries {
            0 => String::new(),
            tries => format!("tried {}", plural(tries.into(), "time", "times")),
        };
        let (next, at) = next(activity, text(&error, "type"), text(&error, "timestamp"));
        let note = [tries.as_str(), next].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
        let words = match message {
            "" => what.to_owned(),
            // The message of a skip says "skipped" itself.
            message if message.starts_with("skipped by ") => format!("It was {message}"),
            message => format!("{what}: {message}"),
        };
        Self { words: clipped(&words, 500), note, times: at.map(|at| When::new(at, now)).into_iter().collect() }
    }
}

fn in_words(r#type: &str) -> &str {
    match r#type {
        "TranscriptionError" => "The recording could not be transcribed",
        "DownloadError" => "The recording could not be fetched",
        "LLMError" => "The language model could not be asked",
        "ValidationError" => "What it carries could not be read",
        activity::ABANDONED => "Every agent that took it went silent",
        activity::SKIPPED => "It was skipped",
        "" | activity::PLAIN_ERROR => "It failed",
        other => other,
    }
}

/// Says what happens to a failed activity by itself, and when.
fn next(activity: &Activity, error_type: &str, timestamp: &str) -> (&'static str, Option<DateTime<Utc>>) {
    if activity.is_dead {
        return ("given up", None);
    }
    let failed_at = DateTime::parse_from_rfc3339(timestamp).map_or(activity.updated_at, |at| at.with_timezone(&Utc));
    let retries = activity.metadata.get("retry_count").and_then(Value::as_i64).unwrap_or(0);
    match activity::after_failure(error_type, failed_at, activity.created_at, retries) {
        AfterFailure::Retried(at) => ("retried automatically", Some(at)),
        AfterFailure::GivenUp(at) => ("will be given up", Some(at)),
        AfterFailure::Nothing => ("", None),
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn failed(error: Value, retries: i64, hours: i64) -> Activity {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        Activity {
            id: Uuid::nil(),
            r#type: ActivityType::Call,
            direction: Direction::Inbound,
            processing_status: ProcessingStatus::Failed,
            raw_data: json!({ "source_type": "url", "content": "https://api.example/RE1" }),
            processed_data: None,
            metadata: json!({ "error": error, "retry_count": retries }),
            channel_id: None,
            contact_id: None,
            person_id: None,
            tries: 2,
            is_dead: false,
            created_at: now - TimeDelta::hours(hours),
            updated_at: now,
        }
    }

    #[test]
    fn a_failure_says_what_comes_next() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        let away = json!({ "type": "LLMError", "message": "503", "timestamp": now.to_rfc3339() });
        let told = |activity: &Activity| {
            let failure = Failure::new(activity, now);
            (failure.words, failure.note, failure.times.len())
        };
        let words = "The language model could not be asked: 503".to_owned();
        let again = (words.clone(), "tried 2 times, retried automatically".to_owned(), 1);
        let ends = (words.clone(), "tried 2 times, will be given up".to_owned(), 1);
        assert_eq!(told(&failed(away.clone(), 2, 22)), again);
        assert_eq!(told(&failed(away.clone(), 3, 1)), ends, "three times were enough");
        assert_eq!(told(&failed(away.clone(), 0, 23)), ends, "a day is over then");
        let buried = Activity { is_dead: true, ..failed(away, 3, 30) };
        assert_eq!(told(&buried), (words, "tried 2 times, given up".into(), 0));
        let skipped = failed(json!({ "type": "Skipped", "message": "skipped by Ann" }), 0, 1);
        assert_eq!(told(&skipped), ("It was skipped by Ann".into(), "tried 2 times".into(), 0));
        assert_eq!((tone(&skipped), actions(&skipped, "/x").len()), ("skipped", 1));
        let odd = failed(json!("out of paper"), 0, 1);
        assert_eq!(told(&odd).0, "It failed");
    }

    #[test]
    fn a_transcript_says_its_language_and_whether_to_trust_it() {
        for (done, expected) in [
            (json!({}), ""),
            (json!({ "language": "en", "confidence": 0.81 }), "Language: en."),
            (
                json!({ "language": "de", "confidence": 0.5 }),
                "Language: de. Hard to hear, so only 50 % sure: compare it with the recording before you rely on it.",
            ),
            (json!({ "is_cut": true, "confidence": "x" }), "The recording goes on: four hours are heard."),
        ] {
            assert_eq!(heard(&done), expected, "{done}");
        }
    }

    #[test]
    fn a_card_says_a_thing_once() {
        assert_eq!(beyond("Late parcel", "Late parcel: it is three days late."), "it is three days late.");
        for summary in ["Late parcels are sent back.", "A parcel is late.", ""] {
            assert_eq!(beyond("Late parcel", summary), summary);
        }
    }

    #[test]
    fn an_estimate_is_no_more_exact_than_it_can_be() {
        let cases = [
            (0.0, "about 1 s"),
            (9.2, "about 10 s"),
            (11.0, "about 15 s"),
            (97.0, "about 100 s"),
            (118.0, "about 2 min"),
            (7_300.0, "about 2 h"),
        ];
        for (secs, words) in cases {
            assert_eq!(about(secs), words);
        }
        assert_eq!(about(f64::INFINITY), "about 11574 d");
    }
}
