//! A mailbox at Outlook in a storm.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use fakes::{Fakes, Lifecycle, Manner, NoticeDelivery, OUTLOOK, Outlook, RetryAfter};
use rand::RngExt as _;
use rand::rngs::StdRng;
use serde_json::json;

use super::letters::Written;
use super::mailbox::{Kept, Letters, Mailbox, Tally, Telling, came_in};

const FOLDERS: usize = 30;
/// Folders that are deleted for good in one storm. Each has everything read again.
const MOST_PURGED: usize = 2;
const API: &str = "/outlook/v1.0";

pub struct AtOutlook {
    fakes: Fakes,
    outlook: Outlook,
    letters: Letters,
    /// The owner's own folders.
    folders: Vec<String>,
    drafts: Vec<String>,
    n_folders: usize,
    n_purged: usize,
}

impl AtOutlook {
    pub fn open(fakes: &Fakes) -> Box<dyn Mailbox> {
        // As Microsoft has it: a refresh token that was used stays good. A worker may die before it has stored the new one.
        fakes.rotate(OUTLOOK, false);
        Box::new(Self {
            fakes: fakes.clone(),
            outlook: fakes.outlook(),
            letters: Letters::default(),
            folders: Vec::new(),
            drafts: Vec::new(),
            n_folders: 0,
            n_purged: 0,
        })
    }

    fn add_folder(&mut self, dice: &mut StdRng) {
        self.n_folders += 1;
        let above = self.folders.get(dice.random_range(0..=2 * self.folders.len())).cloned();
        let above = above.or_else(|| dice.random_bool(0.4).then(|| "inbox".to_owned()));
        self.folders.push(self.outlook.add_folder(&format!("Project {}", self.n_folders), above.as_deref()));
    }

    fn any_folder(&self, dice: &mut StdRng) -> String {
        let at = dice.random_range(0..self.folders.len() + 2);
        self.folders.get(at).cloned().unwrap_or_else(|| ["inbox", "archive"][at % 2].to_owned())
    }

    fn add(&mut self, folder: &str, written: &Written, at: DateTime<Utc>) {
        let id = self.outlook.add(folder, written.graph(at));
        self.letters.add(id, Some(written.clone()));
    }

    /// A folder and all that is in it goes for good.
    fn purge_folder(&mut self, folder: &str) {
        self.outlook.purge_folder(folder);
        let left: Vec<String> = self.outlook.folders().into_iter().map(|(id, _)| id).collect();
        self.folders.retain(|id| left.contains(id));
        let drafts = std::mem::take(&mut self.drafts);
        let ids = self.outlook.ids();
        self.drafts = drafts.into_iter().filter(|id| ids.contains(id)).collect();
        self.letters.set(ids.into_iter().filter(|id| !self.drafts.contains(id)).collect());
        self.n_purged += 1;
    }

    fn change_folders(&mut self, dice: &mut StdRng) {
        let folder = self.folders[dice.random_range(0..self.folders.len())].clone();
        match dice.random_range(0..10) {
            0..4 => {
                self.n_folders += 1;
                self.outlook.rename_folder(&folder, &format!("Renamed {}", self.n_folders));
            }
            4..7 => self.add_folder(dice),
            7 => self.outlook.move_folder(&folder, "inbox"),
            8 => self.outlook.delete_folder(&folder),
            _ if self.n_purged < MOST_PURGED && self.folders.len() > FOLDERS => self.purge_folder(&folder),
            _ => self.outlook.move_folder(&folder, "archive"),
        }
    }
}

impl Mailbox for AtOutlook {
    fn fill(&mut self, dice: &mut StdRng, n: usize) {
        (0..FOLDERS).for_each(|_| self.add_folder(dice));
        let now = self.fakes.now();
        for number in 0..n {
            let written = self.letters.write(dice);
            let folder = if dice.random_bool(0.3) { "inbox".to_owned() } else { self.any_folder(dice) };
            self.add(&folder, &written, came_in(now, number, n));
        }
    }

    fn act(&mut self, dice: &mut StdRng, tally: &mut Tally) {
        match dice.random_range(0..100) {
            0..32 => self.receive(dice),
            32..37 => {
                let (folder, written) = (self.any_folder(dice), self.letters.of(&self.letters.any(dice)).cloned());
                if let Some(written) = written {
                    self.add(&folder, &written, self.fakes.now()); // the same letter once more
                }
            }
            37..57 => {
                tally.moves += 1;
                self.outlook.move_to(&self.letters.any(dice), &self.any_folder(dice));
            }
            57..60 => {
                // It leaves and comes back at once.
                let (id, folder) = (self.letters.recent(dice), self.any_folder(dice));
                tally.moves += 2;
                self.outlook.move_to(&id, &folder);
                self.outlook.move_to(&id, "deleteditems");
                self.outlook.move_to(&id, &folder);
            }
            60..67 => {
                tally.deletions += 1;
                self.outlook.delete(&self.letters.any(dice));
            }
            67..70 => self.outlook.move_to(&self.letters.recent(dice), "junkemail"),
            70..77 => {
                if let Some(id) = self.letters.take(dice) {
                    tally.deletions += 1;
                    self.outlook.purge(&id);
                }
            }
            77..80 => self.drafts.push(self.outlook.draft("The contract", "Dear Ana,")),
            80..83 => match self.drafts.pop() {
                Some(draft) if dice.random_bool(0.5) => {
                    self.outlook.edit(&draft, json!({ "subject": "The contract, at last" }));
                    self.drafts.push(draft);
                }
                Some(draft) => {
                    self.outlook.send(&draft);
                    self.letters.add(draft, None);
                }
                None => {}
            },
            83..90 => self.outlook.mark_read(&self.letters.any(dice), true),
            90..95 => {
                let id = self.letters.recent(dice);
                self.outlook.edit(&id, json!({ "categories": ["Red"], "importance": "high" }));
            }
            _ => {
                tally.folders += 1;
                self.change_folders(dice);
            }
        }
    }

    fn trouble(&mut self, dice: &mut StdRng, tally: &mut Tally) {
        tally.troubles += 1;
        let retry_after = RetryAfter::Seconds(dice.random_range(0..=2));
        let nth = dice.random_range(1..=6);
        match dice.random_range(0..13) {
            0 => self.outlook.hide(&self.letters.any(dice), 1),
            1 => self.outlook.hide(&self.letters.recent(dice), 1),
            12 => self.fakes.nth(API, nth, Manner::RateLimited { retry_after }),
            2 => self.fakes.nth(API, nth, Manner::Status(503)),
            3 => self.fakes.nth(API, nth, Manner::Reset),
            4 => self.fakes.nth(API, nth, Manner::Truncated),
            5 => self.fakes.nth(API, nth, Manner::ShortPage),
            6 => self.fakes.nth(API, nth, Manner::Delay(Duration::from_millis(300))),
            7 => self.outlook.throttle_parts(dice.random_range(1..=12), dice.random_range(0..=1)),
            8 => self.outlook.set_delta_lag(Duration::from_millis(dice.random_range(100..1_500))),
            9 => self.outlook.forget_returns(true),
            10 => self.outlook.tell([Lifecycle::Missed, Lifecycle::ReauthorizationRequired][dice.random_range(0..2)]),
            _ => self.fakes.expire_access(OUTLOOK),
        }
    }

    fn expire(&mut self) {
        self.outlook.expire_cursors();
    }

    fn unsubscribe(&mut self) {
        self.outlook.remove_subscriptions();
    }

    fn tell(&mut self, telling: Telling) {
        self.outlook.deliver(match telling {
            Telling::Plainly => NoticeDelivery::Normal,
            Telling::NotAtAll => NoticeDelivery::Lost,
            Telling::Twice => NoticeDelivery::Doubled,
            Telling::Late => NoticeDelivery::Held,
        });
    }

    fn release(&mut self) {
        self.outlook.release_notices();
    }

    fn calm(&mut self) {
        self.tell(Telling::Plainly);
        self.release();
        self.fakes.behave();
        self.outlook.throttle_parts(0, 0);
        self.outlook.set_delta_lag(Duration::ZERO);
        self.outlook.forget_returns(false);
        self.outlook.find_everything();
    }

    fn receive(&mut self, dice: &mut StdRng) {
        let written = self.letters.write(dice);
        let folder = if dice.random_bool(0.7) { "inbox".to_owned() } else { self.any_folder(dice) };
        self.add(&folder, &written, self.fakes.now());
    }

    fn n_letters(&self) -> usize {
        self.letters.count()
    }

    fn truth(&self) -> BTreeMap<String, Kept> {
        let kept = self.outlook.read_truth().into_iter().map(|letter| {
            let kept = Kept {
                place: letter.place,
                folders: vec![vec![letter.folder]],
                files: self.letters.files(&letter.id),
                left_out: self.letters.left_out(&letter.id),
                received_at: letter.received_at,
            };
            (letter.id, kept)
        });
        kept.collect()
    }
}
