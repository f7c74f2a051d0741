//! `tributary person`: the people who own work.

use std::process::ExitCode;

use clap::Subcommand;
use domain::shown::{clipped, relative, shown};
use domain::{Caller, PersonId, Role};
use engine::people::{self, Fields, Person};
use engine::sessions::{self, Session};
use engine::{Config, Env};
use uuid::Uuid;
use web::api::people::{People, PersonInFull, RemovedPerson, SignInLink};
use web::api::sessions::Sessions;

use super::pick::{Choice, Kind, pick};
use super::{Consent, Shared, caller, env, hinted, print_json, table};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    shared: Shared,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the people of a tenant.
    List,
    /// Add a person, by e-mail address. No mail is sent.
    Add {
        /// Their e-mail address.
        email: String,
        #[command(flatten)]
        fields: FieldArgs,
    },
    /// Show a person, and how much belongs to them.
    Show {
        /// By e-mail address, name or number.
        person: String,
    },
    /// Change a person.
    Set {
        /// By e-mail address, name or number.
        person: String,
        /// A new e-mail address.
        #[arg(long)]
        email: Option<String>,
        #[command(flatten)]
        fields: FieldArgs,
    },
    /// Print a link that signs a person in, once. It is good for three days; a link that was not used stops working.
    Invite {
        /// By e-mail address, name or number.
        person: String,
    },
    /// List signed-in browsers and links that nobody has used yet: of everybody, or of one person.
    Sessions {
        /// By e-mail address, name or number.
        person: Option<String>,
    },
    /// End a session, or make a link useless.
    EndSession {
        /// Its id, as `sessions` lists it.
        id: Uuid,
    },
    /// Remove a person: their keys are revoked, their sessions end, and their channels, activities and contacts become everyone's. Shows how
    /// much that is, and asks.
    Remove {
        /// By e-mail address, name or number.
        person: String,
        #[command(flatten)]
        consent: Consent,
    },
}

#[derive(clap::Args)]
struct FieldArgs {
    /// The first name.
    #[arg(long)]
    first_name: Option<String>,
    /// The last name.
    #[arg(long)]
    last_name: Option<String>,
    /// The minutes that their activities wait before others may claim them.
    #[arg(long, value_name = "MINUTES")]
    stale_threshold_minutes: Option<i32>,
    /// Whether others may claim their activities at all.
    #[arg(long, value_name = "true|false")]
    allow_remote_processing: Option<bool>,
    /// Whether the built-in agent works for them: it claims their activities at once.
    #[arg(long, value_name = "true|false")]
    built_in_agent: Option<bool>,
    /// Their rights after signing in: owner (everything), member (the daily work) or read-only.
    #[arg(long)]
    role: Option<Role>,
}

impl FieldArgs {
    fn with(self, email: Option<String>) -> Fields {
        Fields {
            email,
            first_name: self.first_name,
            last_name: self.last_name,
            stale_threshold_minutes: self.stale_threshold_minutes,
            allow_remote_processing: self.allow_remote_processing,
            built_in_agent: self.built_in_agent,
            role: self.role,
        }
    }
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let (env, json) = (env(&config).await?, args.shared.json);
    let caller = &caller(&env, args.shared.tenant.as_deref()).await?;
    match args.command {
        Command::List => list(&env, caller, json).await?,
        Command::Add { email, fields } => {
            let person = people::create(&env, caller, fields.with(Some(email))).await?;
            print_one(person, "added", json)?;
        }
        Command::Show { person } => show(&env, caller, find(&env, caller, &person).await?, json).await?,
        Command::Set { person, email, fields } => {
            let id = PersonId(find(&env, caller, &person).await?.id);
            print_one(people::change(&env, caller, id, fields.with(email)).await?, "changed", json)?;
        }
        Command::Invite { person } => {
            let id = PersonId(find(&env, caller, &person).await?.id);
            let link = sessions::invite(&env, caller, id).await?;
            if json {
                print_json(&SignInLink::from(link))?;
            } else {
                eprintln!("It signs that person in, once, and ends in 3 days. Give it to nobody else.");
                println!("{}", link.url.reveal());
            }
        }
        Command::Sessions { person } => {
            let id = match person {
                Some(person) => Some(PersonId(find(&env, caller, &person).await?.id)),
                None => None,
            };
            let listed = sessions::list(&env, caller, None, id).await?;
            print_sessions(&env, listed, json)?;
        }
        Command::EndSession { id } => {
            let missing = || format!("there is no session {id}\n\nhint: `tributary person sessions` shows them");
            sessions::end(&env, caller, id).await.map_err(|error| hinted(error, missing))?;
            println!("ended; servers know within 5 s");
        }
        Command::Remove { person, consent } => {
            let person = find(&env, caller, &person).await?;
            return remove(&env, caller, &person, &consent, json).await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Finds the person who is meant: by number, e-mail address or name.
pub async fn find(env: &Env, caller: &Caller, text: &str) -> anyhow::Result<Person> {
    meant(people::list(env, caller).await?, text)
}

fn meant(listed: Vec<Person>, text: &str) -> anyhow::Result<Person> {
    let choices = listed.into_iter().map(|person| {
        let (id, names) = (person.id, [person.email.clone(), Some(person.called())]);
        Choice::new(person, id, names)
    });
    pick(Kind { noun: "person", plural: "people", list: "tributary person list" }, choices.collect(), text)
}

async fn list(env: &Env, caller: &Caller, json: bool) -> anyhow::Result<()> {
    let listed = people::list(env, caller).await?;
    if json {
        return print_json(&People::from(listed));
    }
    let row = |person: &Person| {
        let said = |is_so: bool| if is_so { "yes" } else { "no" }.to_owned();
        vec![
            person.id.to_string(),
            clipped(&person.called(), 40),
            clipped(person.email.as_deref().unwrap_or_default(), 40),
            person.role.to_string(),
            said(person.built_in_agent),
            said(person.allow_remote_processing),
            format!("{} min", person.stale_threshold_minutes),
        ]
    };
    let rows: Vec<_> = listed.iter().map(row).collect();
    table::print(&["id", "name", "email", "role", "built-in agent", "others", "after"], &rows);
    Ok(())
}

fn print_one(person: Person, done: &str, json: bool) -> anyhow::Result<()> {
    if json {
        return print_json(&web::api::people::Person::from(person));
    }
    println!("person {} was {done}", person.id);
    Ok(())
}

async fn show(env: &Env, caller: &Caller, person: Person, json: bool) -> anyhow::Result<()> {
    let owned = people::owned(env, caller, PersonId(person.id)).await?;
    if json {
        return print_json(&PersonInFull::from((person, owned)));
    }
    println!("{}", shown(&person.called()));
    for (label, n) in people::counts(&owned) {
        println!("  {:<12}{n}", label.to_lowercase());
    }
    Ok(())
}

fn print_sessions(env: &Env, listed: Vec<Session>, json: bool) -> anyhow::Result<()> {
    if json {
        return print_json(&Sessions::from(listed));
    }
    let now = env.clock.now();
    let row = |session: &Session| {
        let device = session.device.as_deref().unwrap_or("an unknown browser");
        vec![
            session.id.to_string(),
            clipped(&session.whose(), 40),
            if session.is_link { "a link, not used yet".into() } else { clipped(device, 40) },
            clipped(session.address.as_deref().unwrap_or_default(), 40),
            session.last_used_at.map_or("never".into(), |at| relative(at, now)),
            relative(session.expires_at, now),
        ]
    };
    let rows: Vec<_> = listed.iter().map(row).collect();
    table::print(&["id", "who", "device", "where", "used", "ends"], &rows);
    Ok(())
}

async fn remove(
    env: &Env,
    caller: &Caller,
    person: &Person,
    consent: &Consent,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let id = PersonId(person.id);
    eprintln!("{} will be removed, and this cannot be undone.", shown(&person.called()));
    for line in people::fate(&people::owned(env, caller, id).await?) {
        eprintln!("  {line}");
    }
    if !consent.given("Remove them?")? {
        return Ok(ExitCode::FAILURE);
    }
    let removed = people::remove(env, caller, id).await?;
    if json {
        print_json(&RemovedPerson::from((id, removed.owned)))?;
    } else {
        println!("removed; servers refuse their keys and sessions within 5 s");
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(id: i64, first: &str, last: &str, email: &str) -> Person {
        let text = |text: &str| Some(text.to_owned());
        Person {
            id,
            user_id: None,
            email: text(email),
            first_name: text(first),
            last_name: text(last),
            stale_threshold_minutes: 15,
            allow_remote_processing: true,
            built_in_agent: false,
            processes: Vec::new(),
            role: Role::Member,
            created_at: chrono::DateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_person_is_meant_by_number_address_or_name() {
        let found = |text: &str| {
            let listed = vec![
                person(7, "Ann", "Lee", "ann@office.test"),
                person(8, "Bob", "", "bob@office.test"),
                person(9, "Bob", "", "robert@office.test"),
            ];
            meant(listed, text).map(|person| person.id).map_err(|error| error.to_string())
        };
        for (text, expected) in [("7", 7), ("ANN@office.test", 7), ("ann lee", 7), ("robert@office.test", 9)] {
            assert_eq!(found(text), Ok(expected), "{text:?}");
        }
        let told = |text: &str| found(text).expect_err(text);
        assert!(told("Bob").starts_with("2 people are meant by \"Bob\"\n\nhint: give the id: 8, 9"), "{}", told("Bob"));
        assert!(told("Ann").contains("did you mean `Ann Lee`"), "{}", told("Ann"));
        assert_eq!(told(""), "there is no person \"\"\n\nhint: `tributary person list` shows them");
    }
}
