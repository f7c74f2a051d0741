//! Acts of a person in the mailbox, and the ways in which a test makes Graph misbehave.

use std::time::Duration;

use chrono::TimeDelta;
use serde_json::{Value, json};

use super::notices::told;
use super::{Folder, Kind, Mail, Message, Outlook, ROOT, folder_id, message_id};
use crate::clock::{at_ms, iso};
use crate::lock;

impl Outlook {
    /// Adds a folder inside another, which is named by its id or as in paths (`inbox`). None: at the top. Returns its id.
    pub fn add_folder(&self, name: &str, parent: Option<&str>) -> String {
        let mut mail = lock(self.mail());
        let parent = parent.map_or(ROOT.to_owned(), |parent| mail.folder_id(parent).expect("a folder that is there"));
        mail.n_made += 1;
        let id = folder_id(&format!("{name} {}", mail.n_made));
        let folder = Folder { name: name.to_owned(), parent, is_hidden: false };
        mail.folders.insert(id.clone(), folder);
        mail.folder_events.push(id.clone());
        id
    }

    pub fn rename_folder(&self, folder: &str, name: &str) {
        self.change_folder(folder, |known| known.name = name.to_owned());
    }

    /// Moves a folder with all that is in it. Its messages keep their folder, so none of them changes.
    pub fn move_folder(&self, folder: &str, parent: &str) {
        let parent = lock(self.mail()).folder_id(parent).expect("a folder that is there");
        self.change_folder(folder, |known| known.parent = parent);
    }

    /// Deletes a folder as people do: it moves into Deleted Items.
    pub fn delete_folder(&self, folder: &str) {
        self.move_folder(folder, "deleteditems");
    }

    /// Deletes a folder for good, with all that is in it.
    pub fn purge_folder(&self, folder: &str) {
        let mut mail = lock(self.mail());
        let folder = mail.folder_id(folder).expect("a folder that is there");
        let inside: Vec<String> = mail.folders.keys().filter(|id| mail.is_inside(id, &folder)).cloned().collect();
        mail.messages.retain(|_, message| !inside.contains(&message.folder));
        mail.folders.retain(|id, _| !inside.contains(id));
        mail.folder_events.extend(inside);
    }

    /// Adds a message to a folder: `message` as Graph spells it, with defaults for what is missing, and files under `attachments` with their
    /// `contentBytes`. Returns its id.
    pub fn add(&self, folder: &str, message: Value) -> String {
        let mut mail = lock(self.mail());
        let folder = mail.folder_id(folder).expect("a folder that is there");
        let now = self.shared.clock.stamp();
        mail.n_made += 1;
        let (number, given) = (mail.n_made, message["id"].as_str().map(str::to_owned));
        let id = given.unwrap_or_else(|| message_id(number));
        let message = Message::new(message, &folder, now, number, &id);
        mail.messages.insert(id.clone(), message);
        mail.note(&folder, &id, Kind::Put, now);
        // One message is told as two changes.
        told(&self.shared, &mut mail, &id, &["created", "updated"]);
        id
    }

    /// A letter comes in: to the inbox, as plain text.
    pub fn receive(&self, from: &str, subject: &str, text: &str) -> String {
        let from = json!({"emailAddress": {"name": from, "address": from}});
        self.add("inbox", json!({"from": from, "subject": subject, "body": {"contentType": "text", "content": text}}))
    }

    /// A person begins a letter, and does not send it yet.
    pub fn draft(&self, subject: &str, text: &str) -> String {
        let body = json!({"contentType": "text", "content": text});
        self.add("drafts", json!({"subject": subject, "body": body, "isDraft": true}))
    }

    /// Sends a draft.
    pub fn send(&self, id: &str) {
        self.edit(id, json!({"isDraft": false}));
        self.move_to(id, "sentitems");
    }

    /// Moves a message. It keeps the time of its last change.
    pub fn move_to(&self, id: &str, folder: &str) {
        let mut mail = lock(self.mail());
        let folder = mail.folder_id(folder).expect("a folder that is there");
        let now = self.shared.clock.stamp();
        let message = mail.messages.get_mut(id).expect("a message that is there");
        let from = std::mem::replace(&mut message.folder, folder.clone());
        message.n_moves += 1;
        mail.note(&from, id, Kind::Moved, now);
        mail.note(&folder, id, Kind::Put, now);
        told(&self.shared, &mut mail, id, &["created", "updated"]);
    }

    /// Deletes a message as people do: it moves into Deleted Items.
    pub fn delete(&self, id: &str) {
        self.move_to(id, "deleteditems");
    }

    /// Deletes a message for good.
    pub fn purge(&self, id: &str) {
        let mut mail = lock(self.mail());
        let now = self.shared.clock.stamp();
        told(&self.shared, &mut mail, id, &["deleted"]);
        let message = mail.messages.remove(id).expect("a message that is there");
        mail.note(&message.folder, id, Kind::Deleted, now);
    }

    /// Sets these properties and leaves the others.
    pub fn edit(&self, id: &str, fields: Value) {
        let mut mail = lock(self.mail());
        let now = self.shared.clock.stamp();
        let message = mail.messages.get_mut(id).expect("a message that is there");
        message.fields.extend(fields.as_object().cloned().into_iter().flatten());
        message.modified_at = now;
        let folder = message.folder.clone();
        mail.note(&folder, id, Kind::Put, now);
        told(&self.shared, &mut mail, id, &["updated"]);
    }

    /// A person reads a message. A delta tells only that.
    pub fn mark_read(&self, id: &str, is_read: bool) {
        let mut mail = lock(self.mail());
        let now = self.shared.clock.stamp();
        let message = mail.messages.get_mut(id).expect("a message that is there");
        message.fields.insert("isRead".to_owned(), json!(is_read));
        message.modified_at = now;
        let folder = message.folder.clone();
        mail.note(&folder, id, Kind::State, now);
        told(&self.shared, &mut mail, id, &["updated"]);
    }

    /// Fills this many folders with so many messages, which came in one a minute until now. Nobody is told. Returns the folders.
    pub fn fill(&self, n_messages: usize, n_folders: usize) -> Vec<String> {
        let folders: Vec<String> = (0..n_folders.max(1))
            .map(|number| match number {
                0 => folder_id("inbox"),
                1 => folder_id("sentitems"),
                number => self.add_folder(&format!("Project {number}"), (number % 3 == 0).then_some("inbox")),
            })
            .collect();
        let now_ms = self.shared.clock.stamp().timestamp_millis();
        let mut mail = lock(self.mail());
        for number in 0..n_messages {
            mail.n_made += 1;
            let made = mail.n_made;
            let (id, folder) = (message_id(made), &folders[number % folders.len()]);
            let at = at_ms(now_ms - 60_000 * i64::try_from(n_messages - number).unwrap_or_default());
            let (sender, topic) = (format!("person{}@bulk.example", number % 97), number % 211);
            let html = format!(
                "<html><body><p>Message {number} about project {topic}: the machine {} is needed in week {}.</p></body></html>",
                number % 31,
                number % 52
            );
            let given = json!({
                "subject": format!("Project {topic}, message {number}"),
                "from": {"emailAddress": {"name": format!("Person {}", number % 97), "address": sender}},
                "body": {"contentType": "html", "content": html},
                "conversationId": format!("AAQkADBulk{topic}"),
                "receivedDateTime": iso(at), "sentDateTime": iso(at), "lastModifiedDateTime": iso(at),
            });
            let message = Message::new(given, folder, at, made, &id);
            mail.messages.insert(id.clone(), message);
            mail.note(folder, &id, Kind::Put, at);
        }
        folders
    }

    /// Forgets every link and token that was given so far.
    pub fn expire_cursors(&self) {
        lock(self.mail()).generation += 1;
    }

    /// A delta learns of a change seconds after it; here at once, unless set.
    pub fn set_delta_lag(&self, lag: Duration) {
        lock(self.mail()).switches.lag = TimeDelta::from_std(lag).unwrap_or(TimeDelta::MAX);
    }

    /// Answers 504 to a page of messages with their bodies that is larger than this.
    pub fn set_page_max(&self, most: Option<usize>) {
        lock(self.mail()).switches.page_max = most;
    }

    /// Refuses so many parts of the batches that follow, each with this wait.
    pub fn throttle_parts(&self, n_parts: u64, retry_after_secs: u64) {
        let mut mail = lock(self.mail());
        (mail.switches.throttled_parts, mail.switches.throttled_secs) = (n_parts, retry_after_secs);
    }

    /// Tells a message that left its folder and came back between two deltas only as gone, as Graph has done with immutable ids.
    pub fn forget_returns(&self, forgets: bool) {
        lock(self.mail()).switches.forgets_returns = forgets;
    }

    /// Tells of a message that changed some properties only: the others have to be asked for.
    pub fn tell_parts(&self, tells: bool) {
        lock(self.mail()).switches.tells_parts = tells;
    }

    /// Lets the next so many requests that name this message, or its files, not find it, as it happens soon after a change.
    pub fn hide(&self, id: &str, n_times: u32) {
        lock(self.mail()).switches.hidden.get_mut().insert(id.to_owned(), n_times);
    }

    /// Finds again what was hidden.
    pub fn find_everything(&self) {
        lock(self.mail()).switches.hidden.get_mut().clear();
    }

    /// Lets every request take this long. More than four at a time are refused.
    pub fn take_time(&self, work: Duration) {
        lock(self.mail()).switches.work = work;
    }

    /// The units of the limit that were spent: requests to the mailbox, and parts of batches.
    pub fn units(&self) -> u64 {
        lock(self.mail()).n_units
    }

    fn change_folder(&self, folder: &str, change: impl FnOnce(&mut Folder)) {
        let mut mail = lock(self.mail());
        let id = mail.folder_id(folder).expect("a folder that is there");
        change(mail.folders.get_mut(&id).expect("a folder that is there"));
        mail.folder_events.push(id);
    }

    /// Adds a message of a fixture, with its own times. Nobody is told.
    pub(super) fn load(&self, message: Value) {
        let Some(id) = message["id"].as_str().map(str::to_owned) else { return };
        let now = self.shared.clock.stamp();
        let mut mail = lock(self.mail());
        let Some(folder) = message["parentFolderId"].as_str().and_then(|folder| mail.folder_id(folder)) else { return };
        mail.n_made += 1;
        let message = Message::new(message, &folder, now, mail.n_made, &id);
        mail.messages.insert(id.clone(), message);
        mail.note(&folder, &id, Kind::Put, now);
    }
}

impl Mail {
    /// Counts a request, or a part of a batch.
    pub fn spend(&mut self, units: usize) {
        self.n_units += units as u64;
    }
}
