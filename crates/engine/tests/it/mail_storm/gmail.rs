//! A mailbox at Gmail in a storm.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use fakes::{Fakes, GMAIL, Gmail, GmailLetter, Manner, Pubsub, RetryAfter};
use rand::RngExt as _;
use rand::rngs::StdRng;

use super::letters::Written;
use super::mailbox::{Kept, Letters, Mailbox, Tally, Telling, came_in};

const LABELS: usize = 30;
/// Labels that are no folders.
const MARKS: [&str; 4] = ["UNREAD", "STARRED", "IMPORTANT", "CHAT"];
const ANA: &str = "Ana Quill <ana@larkfield.example>";

struct Label {
    id: String,
    /// Each name that it had, the latest last: no history tells of a new one.
    names: Vec<String>,
}

pub struct AtGmail {
    fakes: Fakes,
    gmail: Gmail,
    pubsub: Pubsub,
    letters: Letters,
    labels: Vec<Label>,
    drafts: Vec<String>,
}

impl AtGmail {
    pub fn open(fakes: &Fakes) -> Box<dyn Mailbox> {
        let (gmail, pubsub) = (fakes.gmail(), fakes.pubsub());
        let (letters, labels, drafts) = (Letters::default(), Vec::new(), Vec::new());
        Box::new(Self { fakes: fakes.clone(), gmail, pubsub, letters, labels, drafts })
    }

    fn make_label(&mut self) {
        let name = format!("Customers/{}", self.labels.len() + 1);
        let id = self.gmail.make_label(&name);
        self.labels.push(Label { id, names: vec![name] });
    }

    fn any_label(&self, dice: &mut StdRng) -> String {
        self.labels[dice.random_range(0..self.labels.len())].id.clone()
    }

    fn put(&mut self, written: &Written, labels: &[&str], at: Option<DateTime<Utc>>) {
        let raw = written.mime(&self.gmail.address(), at.unwrap_or_else(|| self.fakes.now()));
        let id = self.gmail.put(&raw, labels, None, at);
        self.letters.add(id, Some(written.clone()));
    }
}

impl Mailbox for AtGmail {
    fn fill(&mut self, dice: &mut StdRng, n: usize) {
        (0..LABELS).for_each(|_| self.make_label());
        let now = self.fakes.now();
        for number in 0..n {
            let written = self.letters.write(dice);
            let label = self.any_label(dice);
            let labels: &[&str] = match dice.random_range(0..10) {
                0..4 => &["INBOX", "UNREAD"],
                4..6 => &["INBOX", &label],
                6 if written.left_out.is_none() => &["SENT"],
                _ => &[&label],
            };
            self.put(&written, labels, Some(came_in(now, number, n)));
        }
    }

    fn act(&mut self, dice: &mut StdRng, tally: &mut Tally) {
        let label = self.any_label(dice);
        match dice.random_range(0..100) {
            0..32 => self.receive(dice),
            32..37 => {
                let written = self.letters.of(&self.letters.any(dice)).cloned();
                if let Some(written) = written {
                    self.put(&written, &["INBOX"], None); // the same letter once more
                }
            }
            37..52 => {
                tally.moves += 1;
                let other = self.any_label(dice);
                self.gmail.label(&self.letters.any(dice), &[&label], &["INBOX", &other]);
            }
            52..56 => self.gmail.label(&self.letters.any(dice), &[&label], &[]),
            56..61 => {
                tally.moves += 1;
                self.gmail.archive(&self.letters.recent(dice));
            }
            61..68 => {
                tally.deletions += 1;
                self.gmail.trash(&self.letters.any(dice));
            }
            68..72 => self.gmail.untrash(&self.letters.any(dice)),
            72..75 => self.gmail.mark_spam(&self.letters.recent(dice)),
            75..77 => self.gmail.label(&self.letters.any(dice), &["INBOX"], &["SPAM"]),
            77..83 => {
                if let Some(id) = self.letters.take(dice) {
                    tally.deletions += 1;
                    self.gmail.delete(&id);
                }
            }
            83..85 => {
                let fleeting = self.gmail.receive(ANA, "Never mind", "Never mind.");
                self.gmail.delete(&fleeting);
            }
            85..88 => self.drafts.push(self.gmail.draft(ANA, "The contract", "Dear Ana,")),
            88..91 => match self.drafts.pop() {
                Some(draft) if dice.random_bool(0.5) => {
                    let draft = self.gmail.edit_draft(&draft, ANA, "The contract", "Dear Ana, here it is.");
                    self.drafts.push(draft);
                }
                Some(draft) => self.letters.add(self.gmail.send_draft(&draft), None),
                None => self.letters.add(self.gmail.send(ANA, "Re: Two lifts", "Yes, from 2 March."), None),
            },
            91..96 => self.gmail.read(&self.letters.any(dice)),
            96..98 => {
                tally.folders += 1;
                let label = dice.random_range(0..self.labels.len());
                let label = &mut self.labels[label];
                let name = format!("{} renamed {}", label.names[0], label.names.len());
                self.gmail.rename_label(&label.id, &name);
                label.names.push(name);
            }
            _ => {
                tally.folders += 1;
                self.make_label();
            }
        }
    }

    fn trouble(&mut self, dice: &mut StdRng, tally: &mut Tally) {
        tally.troubles += 1;
        let retry_after = RetryAfter::Seconds(dice.random_range(0..=2));
        let nth = dice.random_range(1..=6);
        match dice.random_range(0..11) {
            0 => self.fakes.nth("/gmail", nth, Manner::RateLimited { retry_after }),
            1 => self.fakes.nth("/batch", nth, Manner::RateLimited { retry_after }),
            2 => self.fakes.nth("/gmail", nth, Manner::Status(503)),
            3 => self.fakes.nth("/batch", nth, Manner::Status(503)),
            4 => self.fakes.nth("/batch", nth, Manner::Reset),
            5 => self.fakes.nth("/gmail", nth, Manner::Truncated),
            6 => self.fakes.nth("/gmail/v1/users/me/messages", nth, Manner::ShortPage),
            7 => self.fakes.nth("/batch", nth, Manner::Delay(Duration::from_millis(300))),
            8 => {
                let status = if dice.random_bool(0.5) { 429 } else { 503 };
                self.gmail.refuse_parts(dice.random_range(1..=12), status);
            }
            9 => self.gmail.lag_history(true),
            _ => self.fakes.expire_access(GMAIL),
        }
    }

    fn expire(&mut self) {
        self.gmail.expire_history();
    }

    fn unsubscribe(&mut self) {
        self.gmail.end_watch();
    }

    fn tell(&mut self, telling: Telling) {
        let all = |is_so| if is_so { u32::MAX } else { 0 };
        self.pubsub.lose_next(all(telling == Telling::NotAtAll));
        self.pubsub.double_next(all(telling == Telling::Twice));
        if telling == Telling::Late {
            self.pubsub.hold();
        }
        self.gmail.lag_history(false);
    }

    fn release(&mut self) {
        self.pubsub.release();
    }

    fn calm(&mut self) {
        self.tell(Telling::Plainly);
        self.release();
        self.fakes.behave();
    }

    fn receive(&mut self, dice: &mut StdRng) {
        let written = self.letters.write(dice);
        let label = self.any_label(dice);
        let labels: &[&str] = if dice.random_bool(0.7) { &["INBOX", "UNREAD"] } else { &["INBOX", "UNREAD", &label] };
        self.put(&written, labels, None);
    }

    fn n_letters(&self) -> usize {
        self.letters.count()
    }

    fn truth(&self) -> BTreeMap<String, Kept> {
        let read = self.gmail.letters().into_iter().filter(GmailLetter::is_read_by_default);
        let kept = read.map(|letter| {
            let has = |label: &str| letter.labels.iter().any(|known| known == label);
            let place = if has("INBOX") {
                "inbox"
            } else if has("SENT") {
                "sent"
            } else {
                "other"
            };
            let folders = letter.labels.iter().filter(|label| !MARKS.contains(&label.as_str()));
            let named = |label: &String| match label.as_str() {
                "INBOX" => vec!["Inbox".to_owned()],
                "SENT" => vec!["Sent".to_owned()],
                own => self.labels.iter().find(|label| label.id == own).map_or(Vec::new(), |label| label.names.clone()),
            };
            let kept = Kept {
                place,
                folders: folders.map(named).collect(),
                files: self.letters.files(&letter.id),
                left_out: self.letters.left_out(&letter.id),
                received_at: letter.received_at,
            };
            (letter.id, kept)
        });
        kept.collect()
    }
}
