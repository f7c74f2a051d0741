//! A mailbox in the hands of its owner and of those who write to them.

use std::sync::{Arc, MutexGuard};

use chrono::{DateTime, Utc};

use super::{GMAIL, Mailbox, Mailboxes, Message, compose, pubsub};
use crate::{Fakes, Shared, lock};

/// A mailbox at Gmail, as its owner uses it. Every change is one of its history, and the topic is told.
#[derive(Clone)]
pub struct Gmail {
    shared: Arc<Shared>,
    account: String,
}

impl Fakes {
    /// The mailbox of the account that gives consent unless a test says otherwise.
    pub fn gmail(&self) -> Gmail {
        self.gmail_of(GMAIL.default_account())
    }

    /// The mailbox of an account.
    pub fn gmail_of(&self, account: &str) -> Gmail {
        Gmail { shared: self.shared.clone(), account: account.to_owned() }
    }

    /// Lets each mailbox spend so many quota units in a minute, as Gmail does with 6,000. None: as many as it likes.
    pub fn limit_gmail(&self, units_a_minute: Option<u32>) {
        lock(self.shared.records::<Mailboxes>()).units_a_minute = units_a_minute;
    }

    /// Refuses the parts of a batch beyond this number.
    pub fn limit_gmail_batches(&self, at_once: usize) {
        lock(self.shared.records::<Mailboxes>()).at_once = at_once;
    }
}

impl Gmail {
    fn boxes(&self) -> MutexGuard<'_, Mailboxes> {
        lock(self.shared.records())
    }

    pub(super) fn with<T>(&self, act: impl FnOnce(&mut Mailbox) -> T) -> T {
        act(self.boxes().of(&self.account))
    }

    /// Does something that changes the mailbox, and tells the topic if it did.
    fn change<T>(&self, act: impl FnOnce(&mut Mailbox) -> T) -> T {
        let mut boxes = self.boxes();
        let mailbox = boxes.of(&self.account);
        let before = mailbox.history_id;
        let done = act(mailbox);
        if mailbox.history_id != before {
            pubsub::tell(&mut boxes, &self.account, &self.address(), self.shared.clock.now());
        }
        done
    }

    /// The address of its owner.
    pub fn address(&self) -> String {
        GMAIL.email(&self.account)
    }

    /// A letter comes in. Returns its id.
    pub fn receive(&self, from: &str, subject: &str, text: &str) -> String {
        self.receive_with(from, subject, text, &[])
    }

    /// The same with files: name, type and bytes of each.
    pub fn receive_with(&self, from: &str, subject: &str, text: &str, files: &[(&str, &str, &[u8])]) -> String {
        let to = self.address();
        self.compose((from, &to), subject, text, files, &["INBOX", "UNREAD"], None)
    }

    /// An answer to a letter comes in.
    pub fn receive_reply(&self, to: &str, from: &str, subject: &str, text: &str) -> String {
        let thread = self.with(|mailbox| mailbox.messages[to].thread_id.clone());
        let owner = self.address();
        self.compose((from, &owner), subject, text, &[], &["INBOX", "UNREAD"], Some(&thread))
    }

    /// The owner answers a letter that came in.
    pub fn send_reply(&self, to: &str, subject: &str, text: &str) -> String {
        let first = self.with(|mailbox| mailbox.messages[to].clone());
        let (owner, sender) = (self.address(), compose::header(&first.raw, "From").unwrap_or_default());
        self.compose((&owner, &sender), subject, text, &[], &["SENT"], Some(&first.thread_id))
    }

    /// The owner sends a letter.
    pub fn send(&self, to: &str, subject: &str, text: &str) -> String {
        let from = self.address();
        self.compose((&from, to), subject, text, &[], &["SENT"], None)
    }

    /// The owner begins to write a letter.
    pub fn draft(&self, to: &str, subject: &str, text: &str) -> String {
        let from = self.address();
        self.compose((&from, to), subject, text, &[], &["DRAFT"], None)
    }

    /// The owner goes on writing. The letter has another id from now on.
    pub fn edit_draft(&self, id: &str, to: &str, subject: &str, text: &str) -> String {
        self.delete(id);
        self.draft(to, subject, text)
    }

    /// The owner sends what they wrote. The letter has another id from now on.
    pub fn send_draft(&self, id: &str) -> String {
        let Message { thread_id, raw, .. } = self.with(|mailbox| mailbox.messages[id].clone());
        self.delete(id);
        self.put(&raw, &["SENT"], Some(&thread_id), None)
    }

    /// A message with these bytes and labels comes into the mailbox. None: a conversation of its own, at this moment.
    pub fn put(&self, raw: &[u8], labels: &[&str], thread_id: Option<&str>, at: Option<DateTime<Utc>>) -> String {
        let received_at = at.unwrap_or_else(|| self.shared.clock.stamp());
        self.change(|mailbox| {
            let id = mailbox.new_id();
            mailbox.add(&id, message(&id, raw.to_vec(), labels, thread_id, received_at));
            id
        })
    }

    fn compose(
        &self,
        people: (&str, &str),
        subject: &str,
        text: &str,
        files: &[(&str, &str, &[u8])],
        labels: &[&str],
        thread_id: Option<&str>,
    ) -> String {
        let now = self.shared.clock.stamp();
        self.change(|mailbox| {
            let id = mailbox.new_id();
            let raw = compose::letter(people, subject, text, files, (&id, now));
            mailbox.add(&id, message(&id, raw, labels, thread_id, now));
            id
        })
    }

    /// Adds so many letters at once, without telling anybody: they were there before.
    pub fn fill(&self, n_letters: usize) {
        let (now, owner) = (self.shared.clock.now(), self.address());
        self.with(|mailbox| {
            for n in 0..n_letters {
                let id = mailbox.new_id();
                let at = now - chrono::TimeDelta::minutes(7 * i64::try_from(n_letters - n).unwrap_or_default());
                let from = format!("Sender {} <sender{}@firm{}.example>", n % 97, n % 97, n % 31);
                let text =
                    format!("Letter number {n}.\n\nThe machine with the number {} is due on day {}.\n", n * 13, n % 28);
                let raw = compose::letter((&from, &owner), &format!("About machine {}", n * 13), &text, &[], (&id, at));
                mailbox.add(&id, message(&id, raw, &["INBOX"], None, at));
            }
        });
    }

    /// Adds and removes labels of a letter.
    pub fn label(&self, id: &str, add: &[&str], remove: &[&str]) {
        self.change(|mailbox| mailbox.relabel(id, add, remove));
    }

    /// The owner has read a letter.
    pub fn read(&self, id: &str) {
        self.label(id, &[], &["UNREAD"]);
    }

    pub fn archive(&self, id: &str) {
        self.label(id, &[], &["INBOX"]);
    }

    /// Throws a letter away.
    pub fn trash(&self, id: &str) {
        self.label(id, &["TRASH"], &["INBOX"]);
    }

    /// Takes a letter out of the bin.
    pub fn untrash(&self, id: &str) {
        self.label(id, &["INBOX"], &["TRASH"]);
    }

    pub fn mark_spam(&self, id: &str) {
        self.label(id, &["SPAM"], &["INBOX"]);
    }

    /// Deletes a letter for good.
    pub fn delete(&self, id: &str) {
        self.change(|mailbox| mailbox.delete(id));
    }

    /// Makes a label. Returns its id.
    pub fn make_label(&self, name: &str) -> String {
        self.with(|mailbox| {
            let id = format!("Label_{}", mailbox.labels.len() + 1);
            mailbox.labels.insert(id.clone(), name.to_owned());
            id
        })
    }

    /// Renames a label, which no history tells.
    pub fn rename_label(&self, id: &str, name: &str) {
        self.with(|mailbox| mailbox.labels.insert(id.to_owned(), name.to_owned()));
    }

    /// Forgets the history until now: a cursor from before is too old.
    pub fn expire_history(&self) {
        self.with(|mailbox| {
            // Whoever stands at this number missed nothing; another change makes it an old one.
            mailbox.history_id += 1;
            mailbox.oldest = mailbox.history_id;
            mailbox.changes.clear();
        });
    }

    /// Lets the history lag: changes from now on are told of, and cannot be read until this is taken back.
    pub fn lag_history(&self, lags: bool) {
        self.with(|mailbox| mailbox.visible = lags.then_some(mailbox.history_id));
    }

    /// Lets the next so many look-ups of a message fail, as they do soon after it came in.
    pub fn hide(&self, id: &str, n_times: u32) {
        self.with(|mailbox| mailbox.hidden.insert(id.to_owned(), n_times));
    }

    /// Refuses so many parts of the next batches with this status.
    pub fn refuse_parts(&self, n_parts: usize, status: u16) {
        self.with(|mailbox| mailbox.refused_parts.extend(std::iter::repeat_n(status, n_parts)));
    }

    /// Ends the watch, as after seven days.
    pub fn end_watch(&self) {
        self.with(|mailbox| mailbox.watch = None);
    }

    /// The end of the watch; none: nobody is told.
    pub fn watched_until(&self) -> Option<DateTime<Utc>> {
        let now = self.shared.clock.now();
        self.with(|mailbox| mailbox.watch.as_ref().map(|watch| watch.until).filter(|until| *until > now))
    }

    /// The quota units that were spent so far.
    pub fn units(&self) -> u64 {
        self.with(|mailbox| mailbox.n_units)
    }
}

impl Mailbox {
    pub(super) fn new_id(&mut self) -> String {
        self.n_made += 1;
        format!("{:016x}", 0x19a4_0000_0000_0000_u64 + self.n_made * 0x1_0003)
    }
}

/// A message as it comes in. The first one of a conversation gives it its id.
pub(super) fn message(
    id: &str,
    raw: Vec<u8>,
    labels: &[&str],
    thread_id: Option<&str>,
    received_at: DateTime<Utc>,
) -> Message {
    let text = String::from_utf8_lossy(&raw);
    let body = text.split("\r\n\r\n").nth(1).unwrap_or_default();
    let snippet: String = body.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(120).collect();
    let labels = labels.iter().map(|label| (*label).to_owned()).collect();
    let thread_id = thread_id.unwrap_or(id).to_owned();
    Message { thread_id, labels, snippet, history_id: 0, received_at, raw }
}
