//! The post of the demonstration: every few seconds a letter comes into one of its mailboxes, or the office sends one.

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use fakes::Fakes;
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};

use self::At::{Gmail, Outlook};

/// The mailboxes by their providers' names.
pub const GMAIL: &str = "gmail";
pub const OUTLOOK: &str = "outlook";

const EVERY: Duration = Duration::from_secs(6);
/// The number of the first round of letters. It stands in their subjects.
const FIRST: usize = 4_101;
const OFFICE: Person = Person("Harrow Ridge Equipment", "office@harrowridge.example");

/// The name and the address of somebody who writes.
#[derive(Clone, Copy)]
pub struct Person(pub &'static str, pub &'static str);

pub const NORA: Person = Person("Nora Vickery", "nora.vickery@larkfield.example");
pub const MARISOL: Person = Person("Marisol Penhale", "m.penhale@stonebrook.example");
pub const PRIYA: Person = Person("Priya Hollowell", "priya.hollowell@bayview.example");
const TEO: Person = Person("Teo Brandvold", "teo.brandvold@larkfield.example");
const CORWIN: Person = Person("Corwin Mabey", "corwin@quarryroad.example");
const DAGNY: Person = Person("Dagny Oakes", "dagny@copperline.example");
const HEDDA: Person = Person("Hedda Lindqvist-Ray", "purchasing@millrace.example");

#[derive(Clone, Copy)]
enum At {
    Gmail,
    Outlook,
}

struct Letter {
    at: At,
    /// The subject of the conversation; `{n}` stands for the round.
    about: &'static str,
    from: Person,
    text: &'static str,
    file: Option<File>,
}

/// Name, type and content.
pub type File = (&'static str, &'static str, &'static str);

/// A price list. Files of text are read at once.
pub const PRICES: File = (
    "winter-rates.csv",
    "text/csv",
    "machine,month,deposit\nsnow pusher 10 ft,1900,500\nsalt spreader 2 yd,640,200\nlight tower,410,150\n",
);
const HOURS: File = (
    "meter-readings.csv",
    "text/csv",
    "machine,serial,hours\nskid steer,SK-2207,1388\ncompact track loader,CT-0914,1204\n14-ton excavator,EX-3310,4975\n",
);

const INSURED: File = (
    "insurer.txt",
    "text/plain",
    "Crane mats, to be named one by one: 12 of oak, 16 ft by 4 ft, numbers CM-01 to CM-12. Cover from the first day of the lift.\n",
);

const LETTERS: [Letter; 12] = [
    letter(
        Gmail,
        "Pickup {n}: skid steer at the feed yard",
        HEDDA,
        "The skid steer is washed and stands by the silo. The gate is open until four.",
    ),
    letter(
        Outlook,
        "Dewatering pump, job {n}",
        MARISOL,
        "We hit water at two metres. Can a six inch pump be at Route 100 tomorrow morning, with 30 m of hose?",
    ),
    letter(
        Gmail,
        "Pickup {n}: skid steer at the feed yard",
        OFFICE,
        "Thank you. Our driver comes at half past two, and brings the bucket teeth back.",
    ),
    letter(
        Outlook,
        "Dewatering pump, job {n}",
        OFFICE,
        "One is in the yard. It leaves at six, with the hose and a float switch.",
    ),
    letter(
        Gmail,
        "Meter readings, week {n}",
        TEO,
        "The hours of all three machines are in the list. The track loader is due for its service at 1,250.",
    )
    .with(HOURS),
    letter(
        Outlook,
        "Scissor lift {n} stops on the ramp",
        PRIYA,
        "The lift cuts out on the ramp of the east garage. The display says tilt, code 18. Nobody is on it.",
    ),
    letter(
        Gmail,
        "Quote {n}: wheel loader for the gravel haul",
        CORWIN,
        "Eleven days with the loader, and a bucket of three yards. What would that be with delivery to the quarry road?",
    ),
    letter(
        Outlook,
        "Dewatering pump, job {n}",
        MARISOL,
        "It runs since seven and the pit is dry. Please leave it until Friday.",
    ),
    letter(
        Outlook,
        "Scissor lift {n} stops on the ramp",
        OFFICE,
        "Code 18 is the slope: more than three degrees. Please wait for our technician before you move it.",
    ),
    letter(
        Gmail,
        "Quote {n}: wheel loader for the gravel haul",
        OFFICE,
        "4,620 for eleven days, delivery both ways included. The machine is free from Monday.",
    ),
    letter(
        Outlook,
        "Certificate {n} for the crane mats",
        DAGNY,
        "Attached is what our insurer asks for. They want the mats named one by one.",
    )
    .with(INSURED),
    letter(
        Gmail,
        "Meter readings, week {n}",
        OFFICE,
        "Noted, and the service is booked for Thursday. A mechanic comes to your yard.",
    ),
];

const fn letter(at: At, about: &'static str, from: Person, text: &'static str) -> Letter {
    Letter { at, about, from, text, file: None }
}

impl Letter {
    const fn with(mut self, file: File) -> Self {
        self.file = Some(file);
        self
    }
}

pub struct Post {
    fakes: Fakes,
    /// Taken while a letter is on its way.
    going: Mutex<()>,
}

impl Post {
    pub fn new(fakes: &Fakes) -> Self {
        Self { fakes: fakes.clone(), going: Mutex::default() }
    }

    /// Keeps the mailboxes as they are for as long as this is held.
    pub async fn held(&self) -> MutexGuard<'_, ()> {
        self.going.lock().await
    }

    /// Brings letters for ever.
    pub async fn keep_coming(&self) -> Infallible {
        let mut number = FIRST;
        loop {
            // The first letter of each conversation at Gmail, which those after it answer.
            let mut begun = HashMap::new();
            for letter in &LETTERS {
                tokio::time::sleep(EVERY).await;
                let _going = self.going.lock().await;
                let about = letter.about.replace("{n}", &number.to_string());
                match letter.at {
                    Gmail => {
                        let id = self.to_gmail(letter, &about, begun.get(letter.about));
                        begun.entry(letter.about).or_insert(id);
                    }
                    Outlook if letter.from.1 == OFFICE.1 => {
                        let asked = LETTERS.iter().find(|first| first.about == letter.about);
                        self.answer_at_outlook(asked.map_or(OFFICE, |asked| asked.from), &about, letter.text);
                    }
                    Outlook => {
                        self.to_outlook(letter.from, &about, letter.text, letter.file);
                    }
                }
            }
            number += 1;
        }
    }

    /// Returns the letter's id.
    fn to_gmail(&self, letter: &Letter, about: &str, first: Option<&String>) -> String {
        let gmail = self.fakes.gmail();
        let is_ours = letter.from.1 == OFFICE.1;
        match first {
            Some(first) if is_ours => gmail.send_reply(first, &format!("Re: {about}"), letter.text),
            Some(first) => gmail.receive_reply(first, &from(letter.from), &format!("Re: {about}"), letter.text),
            None => {
                let file = letter.file.map(|(name, kind, content)| (name, kind, content.as_bytes()));
                gmail.receive_with(&from(letter.from), about, letter.text, file.as_slice())
            }
        }
    }

    /// A letter to the office about something, at Outlook. Those about the same are one conversation. Returns its id.
    pub fn to_outlook(&self, from: Person, about: &str, text: &str, file: Option<File>) -> String {
        self.add_at_outlook((from, OFFICE), about, text, file, self.fakes.now())
    }

    /// Somebody asks, the office answers, and so on, at Outlook: a minute between two letters, the last one now.
    pub fn talk_at_outlook(&self, with: Person, about: &str, texts: [&str; 3]) {
        for (text, minutes_ago) in texts.into_iter().zip([2, 1, 0]) {
            let people = if minutes_ago == 1 { (OFFICE, with) } else { (with, OFFICE) };
            self.add_at_outlook(people, about, text, None, self.fakes.now() - TimeDelta::minutes(minutes_ago));
        }
    }

    fn add_at_outlook(
        &self,
        (from, to): (Person, Person),
        about: &str,
        text: &str,
        file: Option<File>,
        at: DateTime<Utc>,
    ) -> String {
        let is_ours = from.1 == OFFICE.1;
        let somebody = |person: Person| json!({ "emailAddress": { "name": person.0, "address": person.1 } });
        let message = json!({
            "subject": if is_ours { format!("Re: {about}") } else { about.to_owned() },
            "from": somebody(from),
            "toRecipients": [somebody(to)],
            "body": { "contentType": "text", "content": text },
            "conversationId": format!("AAQkDemo{}", about.replace(' ', "-")),
            "receivedDateTime": at.to_rfc3339_opts(SecondsFormat::Secs, true),
            "attachments": file.iter().map(attached).collect::<Vec<_>>(),
        });
        self.fakes.outlook().add(if is_ours { "sentitems" } else { "inbox" }, message)
    }

    /// The office answers at Outlook.
    pub fn answer_at_outlook(&self, to: Person, about: &str, text: &str) {
        self.add_at_outlook((OFFICE, to), about, text, None, self.fakes.now());
    }

    /// A newsletter comes in at Gmail, with what programs for campaigns put into its head.
    pub fn newsletter(&self, number: usize) {
        let (now, gmail) = (self.fakes.now(), self.fakes.gmail());
        let head = format!(
            "From: Equipment Weekly <news@equipment-weekly.example>\r\nTo: {}\r\nSubject: This week: ten machines under 40,000 ({number})\r\n\
             Date: {}\r\nMessage-ID: <{number}.{}@equipment-weekly.example>\r\nList-Unsubscribe: <mailto:stop@equipment-weekly.example>\r\n\
             List-Id: <weekly.equipment-weekly.example>\r\nPrecedence: bulk\r\nX-Campaign: weekly-{number}\r\nMIME-Version: 1.0\r\n\
             Content-Type: text/plain; charset=utf-8\r\n\r\n",
            gmail.address(),
            now.to_rfc2822(),
            now.timestamp_millis(),
        );
        let body = "Used excavators hold their price. Subscribe to our premium letter for the list.\r\n";
        gmail.put(format!("{head}{body}").as_bytes(), &["INBOX", "UNREAD", "CATEGORY_PROMOTIONS"], None, None);
    }
}

/// A sender as a letter's head has it.
pub fn from(Person(name, address): Person) -> String {
    format!("{name} <{address}>")
}

fn attached((name, kind, content): &File) -> Value {
    json!({ "name": name, "contentType": kind, "contentBytes": BASE64_STANDARD.encode(content) })
}
