//! Letters of a made-up mailbox: kept, left out, let in, moved, deleted, with their files; and what a kill at any step leaves of it.

mod channel;
mod forgotten;
mod killed;
pub mod pigeon;
mod threads;

use std::path::PathBuf;

use chrono::{TimeDelta, Utc};
use domain::mail::rules::Conditions;
use domain::mail::{Attachment, Correspondent, LeftOut, Letter, Note, Place};
use domain::{Caller, DocumentStatus, DocumentType, JobKind, Record, Secret, SourceId, Transport};
use engine::ActError;
use engine::mail::left_out::{self, LetInAll};
use engine::mail::rules::{self, Change};
use engine::mail::settings;
use engine::pull::connect;
use serde_json::{Value, json};
use testkit::Sources;
use uuid::Uuid;

use self::pigeon::{Loft, OWNER, PIGEONPOST};

/// A world with a made-up mailbox.
pub struct Post {
    pub t: Sources,
    pub file: PathBuf,
    pub id: SourceId,
    pub caller: Caller,
}

impl Post {
    /// A mailbox with these letters, connected and not read yet.
    async fn with(fill: impl FnOnce(&mut Loft)) -> Self {
        Self::of(Sources::empty().await, fill).await
    }

    pub async fn of(mut t: Sources, fill: impl FnOnce(&mut Loft)) -> Self {
        let file = std::env::temp_dir().join(format!("tributary-loft-{}.json", Uuid::now_v7().simple()));
        let mut loft = Loft::default();
        fill(&mut loft);
        loft.write(&file);
        t.world.env.providers = pigeon::providers(&t.world.env, &file.display().to_string());
        let (env, tenant_id) = (&t.world.env, t.world.tenant_id);
        let connected =
            connect::with_key(env, tenant_id, PIGEONPOST, &Secret::new("loft-1"), None, Transport::Rest).await;
        let caller = Caller::local("test", tenant_id, true);
        Self { id: connected.expect("a source"), t, file, caller }
    }

    pub fn change(&self, change: impl FnOnce(&mut Loft)) {
        let mut loft = Loft::read(&self.file);
        change(&mut loft);
        loft.write(&self.file);
    }

    async fn sync(&self, kind: Option<JobKind>) {
        self.t.sync_as(self.id, kind).await;
        self.run().await;
    }

    async fn run(&self) {
        self.t.run().await;
        let job = self.t.jobs(self.id).await.remove(0);
        assert_eq!(job.status.as_str(), "completed", "{job:?}");
    }

    pub async fn documents(&self) -> Vec<String> {
        self.t.documents(self.id).await
    }

    /// A column of a document, as JSON.
    async fn said(&self, name: &str, column: &str) -> Value {
        let sql =
            format!("select to_jsonb(d.{column}) from source_documents d where source_id = $1 and external_id = $2");
        let said: Option<Value> = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
            .bind(self.id.0)
            .bind(name)
            .fetch_one(&mut *self.t.world.conn().await)
            .await
            .expect("a document");
        said.unwrap_or_default()
    }

    /// The letters that are out, with their reasons.
    async fn left_out(&self) -> Vec<(String, String)> {
        let page = left_out::list(&self.t.world.env, &self.caller, self.id, None, None, 200).await.expect("a list");
        page.letters.into_iter().map(|letter| (letter.message_id, letter.skip_reason)).collect()
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

pub fn somebody(address: &str) -> Correspondent {
    Correspondent { name: None, address: address.into() }
}

/// A letter to the owner that came an hour ago.
pub fn letter(from: &str, subject: &str, text: &str) -> Letter {
    Letter {
        thread_id: Some("t1".into()),
        internet_message_id: Some(format!("{subject}@mail.test")),
        from: Some(somebody(from)),
        to: vec![somebody(OWNER)],
        subject: Some(subject.into()),
        received_at: Some(Utc::now() - TimeDelta::hours(1)),
        place: Place::Inbox,
        folders: vec!["Inbox".into()],
        text: text.into(),
        ..Letter::default()
    }
}

pub fn file(part: &str, name: &str, media_type: &str, size_bytes: u64) -> Attachment {
    Attachment {
        part: part.into(),
        name: Some(name.into()),
        media_type: media_type.into(),
        size_bytes,
        content_id: None,
        is_inline: false,
        content: None,
        left_out: None,
    }
}

/// Mass mail, which the shipped rules leave out.
pub fn mass_mail(subject: &str) -> Letter {
    let headers = [("List-Unsubscribe", "<mailto:stop@shop.example>"), ("Precedence", "bulk")];
    Letter {
        headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        ..letter("no-reply@shop.example", subject, "Everything must go.")
    }
}

fn with_files(files: Vec<Attachment>, letter: Letter) -> Letter {
    Letter { files, ..letter }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_and_its_files_become_documents() {
    let contents = ["%PDF-1", "name,sum\nAda,12", "BEGIN:VCALENDAR"];
    let files = || {
        vec![
            file("2", "plan.pdf", "application/pdf", 6),
            file("3", "sums.csv", "text/csv", 15),
            file("4", "invite.ics", "text/calendar", 15),
        ]
    };
    let post = Post::with(|loft| {
        loft.put("a", with_files(files(), letter("Ann@Shop.example", "The plan", "Here it is.")), &contents);
        loft.put(
            "b",
            with_files(vec![file("2", "again.pdf", "application/pdf", 6)], letter("bob@x.test", "Again", "The same.")),
            &contents[..1],
        );
        let sent = Letter {
            place: Place::Sent,
            from: Some(somebody(OWNER)),
            to: vec![somebody("nobody@x.test"), somebody("ann@shop.example")],
            ..letter("", "Reply", "Thanks.")
        };
        loft.put("c", sent, &[]);
    })
    .await;
    let env = &post.t.world.env;
    let ann = store::contacts::NewContact { email: Some("ann@shop.example".into()), ..Default::default() };
    let ann = engine::contacts::create(env, &post.caller, ann).await.expect("a contact");
    post.run().await;

    let (pdf, csv) = ("attachment:a/2", "attachment:a/3");
    assert_eq!(post.documents().await, [pdf, csv, "attachment:b/2", "message:a", "message:b", "message:c"]);
    for (name, column, expected) in [
        ("message:a", "document_type", json!("pigeonpost.message")),
        ("message:a", "title", json!("The plan")),
        ("message:a", "status", json!("completed")),
        ("message:a", "thread_id", json!("t1")),
        ("message:a", "contact_id", json!(ann.0)),
        ("message:b", "contact_id", Value::Null),
        ("message:c", "contact_id", json!(ann.0)),
        (pdf, "document_type", json!("pigeonpost.attachment")),
        (pdf, "status", json!("pending")),
        (pdf, "title", json!("plan.pdf")),
        (pdf, "text", json!("")),
        (pdf, "thread_id", json!("t1")),
        (pdf, "contact_id", json!(ann.0)),
        (csv, "status", json!("completed")),
        (csv, "text", json!("name,sum\nAda,12")),
    ] {
        assert_eq!(post.said(name, column).await, expected, "{column} of {name}");
    }
    let told = post.said("message:a", "source_metadata").await;
    for (name, expected) in [
        ("provider", json!("pigeonpost")),
        ("message_id", json!("a")),
        ("internet_message_id", json!("The plan@mail.test")),
        ("from", json!("Ann@Shop.example")),
        ("to", json!([OWNER])),
        ("place", json!("inbox")),
        ("folders", json!(["Inbox"])),
        ("n_files", json!(2)),
    ] {
        assert_eq!(told[name], expected, "{name} in {told}");
    }
    let of_file = post.said(pdf, "source_metadata").await;
    assert_eq!((&of_file["attachment_filename"], &of_file["message_id"]), (&json!("plan.pdf"), &json!("a")));

    // A contact of later has its letters, too.
    let bob = store::contacts::NewContact { email: Some("bob@x.test".into()), ..Default::default() };
    let bob = engine::contacts::create(env, &post.caller, bob).await.expect("a contact");
    for name in ["message:b", "attachment:b/2"] {
        assert_eq!(post.said(name, "contact_id").await, json!(bob.0), "{name}");
    }
    assert_eq!(post.said("message:a", "contact_id").await, json!(ann.0));

    // The same bytes are stored once.
    assert_eq!(post.said(pdf, "blob_key").await, post.said("attachment:b/2", "blob_key").await);
    assert_eq!(post.t.count("select count(*) from tributary.blobs").await, 2);
    let key = post.said(pdf, "blob_key").await;
    let key = key.as_str().expect("a key").parse().expect("a hash");
    let bytes = env.blobs.get(post.t.world.tenant_id, &key).await.expect("an answer").expect("a blob");
    assert_eq!(&bytes[..], b"%PDF-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_rule_leaves_out_stays_out_until_somebody_lets_it_in() {
    let post = Post::with(|loft| {
        loft.put("a", letter("ann@shop.example", "Offer", "Twelve loaves."), &[]);
        loft.put("b", mass_mail("Sale"), &[]);
        loft.put("c", mass_mail("Last chance"), &[]);
    })
    .await;
    let (env, caller, id) = (&post.t.world.env, &post.caller, post.id);
    post.run().await;
    assert_eq!(post.documents().await, ["message:a"]);
    let bulk = |name: &str| (name.to_owned(), "bulk".to_owned());
    let mut out = post.left_out().await;
    out.sort();
    assert_eq!(out, [bulk("b"), bulk("c")]);
    let counted = left_out::count_by_reason(env, caller, id).await.expect("counts");
    assert_eq!((counted.len(), counted[0].skip_reason.as_str(), counted[0].letters), (1, "bulk", 2));
    let first = left_out::list(env, caller, id, Some("bulk"), None, 1).await.expect("a page");
    let rest = left_out::list(env, caller, id, Some("bulk"), first.next.as_deref(), 5).await.expect("a page");
    assert_eq!((first.letters.len(), rest.letters.len(), rest.next), (1, 1, None));
    let one = &first.letters[0];
    assert_eq!(one.sender.as_deref(), Some("no-reply@shop.example"));
    assert_ne!(one.message_id, rest.letters[0].message_id);

    // Switching the rule off lets nothing in by itself, and lets in what comes.
    rules::set(env, caller, id, "bulk", Change { is_on: Some(false), conditions: None }).await.expect("switched");
    post.change(|loft| {
        loft.change("b", |kept| kept.letter.folders = vec!["Read".into()]);
        loft.put("d", mass_mail("Another sale"), &[]);
    });
    post.sync(None).await;
    assert_eq!(post.documents().await, ["message:a", "message:d"]);
    rules::set(env, caller, id, "bulk", Change { is_on: Some(true), conditions: None }).await.expect("switched");

    left_out::let_in(env, caller, id, "b").await.expect("let in");
    assert_eq!(
        left_out::list(env, caller, id, None, None, 5).await.expect("a page").letters.len(),
        2,
        "it is on its way"
    );
    post.run().await;
    assert_eq!(post.documents().await, ["message:a", "message:b", "message:d"]);
    assert_eq!(post.left_out().await, [bulk("c")]);
    assert!(matches!(left_out::let_in(env, caller, id, "b").await, Err(ActError::NotFound(_))));

    // What was let in stays, also when it is moved or when everything is read again.
    post.change(|loft| loft.change("b", |kept| kept.letter.folders = vec!["Archive".into()]));
    post.sync(Some(JobKind::Full)).await;
    assert_eq!(post.documents().await, ["message:a", "message:b", "message:d"]);
    assert_eq!(post.said("message:b", "source_metadata").await["folders"], json!(["Archive"]));

    let all = left_out::let_in_all(env, caller, id, "bulk").await.expect("let in");
    assert_eq!(all, LetInAll { asked: 1, left: 0 });
    post.run().await;
    assert_eq!(post.documents().await.len(), 4);
    assert_eq!(post.left_out().await, []);
    assert!(matches!(left_out::let_in_all(env, caller, id, "bulk").await, Err(ActError::NotFound(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_is_a_change_and_a_deletion_takes_the_files_with_it() {
    let post = Post::with(|loft| {
        let files = vec![file("2", "a.pdf", "application/pdf", 4), file("3", "b.txt", "text/plain", 4)];
        loft.put("a", with_files(files, letter("ann@shop.example", "Offer", "Twelve loaves.")), &["%PDF", "text"]);
        loft.put("b", mass_mail("Sale"), &[]);
    })
    .await;
    post.run().await;
    let all = ["attachment:a/2", "attachment:a/3", "message:a"];
    assert_eq!(post.documents().await, all);
    let before = post.said("message:a", "id").await;

    let moved = |place, folder: &str| {
        let folder = folder.to_owned();
        move |kept: &mut pigeon::Kept| (kept.letter.place, kept.letter.folders) = (place, vec![folder])
    };
    post.change(|loft| loft.change("a", moved(Place::Other, "Orders")));
    post.sync(None).await;
    assert_eq!(post.documents().await, all);
    assert_eq!(post.said("message:a", "id").await, before);
    for name in all {
        assert_eq!(post.said(name, "source_metadata").await["folders"], json!(["Orders"]), "{name}");
    }

    // A file whose bytes the provider does not give this time.
    post.change(|loft| loft.change("a", |kept| kept.letter.files[1].left_out = Some(LeftOut::Unreadable)));
    post.sync(None).await;
    assert_eq!(post.documents().await, all);

    // A file of a changed letter that is gone.
    post.change(|loft| {
        loft.change("a", |kept| {
            kept.letter.files.remove(1);
            kept.contents.remove(1);
        });
    });
    post.sync(None).await;
    assert_eq!(post.documents().await, ["attachment:a/2", "message:a"]);

    // To a place that is not read, and back.
    post.change(|loft| {
        loft.change("a", moved(Place::Deleted, "Trash"));
        loft.change("b", moved(Place::Deleted, "Trash"));
    });
    post.sync(None).await;
    assert_eq!(post.documents().await, [] as [&str; 0]);
    assert_eq!(post.left_out().await, []);
    assert_eq!(post.t.count("select count(*) from processed_messages").await, 0);
    post.change(|loft| loft.change("a", moved(Place::Inbox, "Inbox")));
    post.sync(None).await;
    assert_eq!(post.documents().await, ["attachment:a/2", "message:a"]);
    assert_eq!(post.said("message:a", "id").await, before);
    assert_eq!(post.said("attachment:a/2", "status").await, json!("pending"));

    // Its files are not listed this time.
    post.change(|loft| {
        loft.change("a", |kept| {
            kept.letter.files.clear();
            kept.contents.clear();
            kept.letter.notes.push(Note::FilesUnread);
        });
    });
    post.sync(None).await;
    assert_eq!(post.documents().await, ["attachment:a/2", "message:a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_that_a_person_deletes_takes_its_files_with_it_and_brings_them_back() {
    let post = Post::with(|loft| {
        let files = vec![file("2", "a.pdf", "application/pdf", 4), file("3", "b.txt", "text/plain", 4)];
        loft.put("a", with_files(files, letter("ann@shop.example", "Offer", "Twelve loaves.")), &["%PDF", "text"]);
    })
    .await;
    post.run().await;
    let all = ["attachment:a/2", "attachment:a/3", "message:a"];
    assert_eq!(post.documents().await, all);
    let id: domain::DocumentId = serde_json::from_value(post.said("message:a", "id").await).expect("an id");
    let (env, by) = (&post.t.world.env, domain::Caller::local("test", post.t.world.tenant_id, true));
    engine::documents::delete(env, &by, id).await.expect("deleted");
    assert_eq!(post.documents().await, [] as [&str; 0]);

    post.change(|loft| loft.change("a", |kept| kept.letter.folders = vec!["Orders".into()]));
    post.sync(None).await;
    assert_eq!(post.documents().await, [] as [&str; 0], "it came back by itself");

    engine::documents::restore(env, &by, id).await.expect("let in");
    post.run().await;
    assert_eq!(post.documents().await, all);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_somebody_has_read_stays_read_when_its_letter_comes_again() {
    let post = Post::with(|loft| {
        let files = vec![file("2", "a.pdf", "application/pdf", 4)];
        loft.put("a", with_files(files, letter("ann@shop.example", "Offer", "Twelve loaves.")), &["%PDF"]);
    })
    .await;
    post.run().await;
    let name = "attachment:a/2";
    let kind = DocumentType::Record { provider: "pigeonpost".into(), kind: "attachment".into() };
    let read = Record {
        title: Some("a.pdf".into()),
        blob_key: post.said(name, "blob_key").await.as_str().map(str::to_owned),
        source_metadata: post.said(name, "source_metadata").await,
        thread_id: Some("t1".into()),
        status: DocumentStatus::Completed,
        ..Record::new(post.id, name, kind, "Marzipan for the harvest supper.")
    };
    let env = &post.t.world.env;
    let begin = || async { Ok(env.db.begin().await?) };
    let (tx, _) = engine::memory::remember(env, post.t.world.tenant_id, vec![read], begin).await.expect("remembered");
    tx.commit().await.expect("committed");

    post.change(|loft| loft.change("a", |kept| kept.letter.folders = vec!["Orders".into()]));
    post.sync(None).await;
    assert_eq!(post.said(name, "status").await, json!("completed"));
    assert_eq!(post.said(name, "text").await, json!("Marzipan for the harvest supper."));
    assert_eq!(post.said(name, "source_metadata").await["folders"], json!(["Orders"]));

    // Other bytes under the same name wait to be read.
    post.change(|loft| loft.change("a", |kept| kept.contents = vec!["%PDF-2".into()]));
    post.sync(None).await;
    assert_eq!((post.said(name, "status").await, post.said(name, "text").await), (json!("pending"), json!("")));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_places_are_read_after_everything_was_read_again() {
    let at = |place, subject: &str| Letter { place, ..letter("ann@shop.example", subject, "Words.") };
    let post = Post::with(|loft| {
        for (id, place) in
            [("a", Place::Inbox), ("b", Place::Sent), ("c", Place::Spam), ("d", Place::Drafts), ("e", Place::Other)]
        {
            loft.put(id, at(place, id), &[]);
        }
    })
    .await;
    let (env, caller) = (&post.t.world.env, &post.caller);
    post.run().await;
    assert_eq!(post.documents().await, ["message:a", "message:b", "message:e"]);
    assert_eq!(settings::get(env, caller, post.id).await.expect("settings").places, settings::USUAL);

    let chosen = [Place::Spam, Place::Inbox];
    settings::set(env, caller, post.id, &chosen).await.expect("changed");
    post.run().await;
    assert_eq!(post.documents().await, ["message:a", "message:c"]);
    assert_eq!(settings::get(env, caller, post.id).await.expect("settings").places, [Place::Inbox, Place::Spam]);
    let jobs = post.t.jobs(post.id).await.len();
    settings::set(env, caller, post.id, &chosen).await.expect("the same");
    assert_eq!(post.t.jobs(post.id).await.len(), jobs, "nothing has changed");
    assert!(matches!(settings::set(env, caller, post.id, &[]).await, Err(ActError::Invalid(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_pass_forgets_what_was_left_out_and_is_gone() {
    let post = Post::with(|loft| {
        loft.put("a", letter("ann@shop.example", "Offer", "Twelve loaves."), &[]);
        loft.put("b", mass_mail("Sale"), &[]);
        loft.put("c", mass_mail("Another"), &[]);
    })
    .await;
    post.run().await;
    assert_eq!(post.left_out().await.len(), 2);
    // No delta tells of it.
    post.change(|loft| {
        for id in ["a", "b"] {
            loft.letters.get_mut(id).expect("a letter").is_gone = true;
        }
    });
    post.sync(Some(JobKind::Full)).await;
    assert_eq!(post.documents().await, [] as [&str; 0]);
    assert_eq!(post.left_out().await, [("c".to_owned(), "bulk".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_is_tried_on_the_letters_of_the_last_days() {
    let post = Post::with(|loft| {
        loft.put("a", letter("ann@shop.example", "Offer", "Twelve loaves."), &[]);
        loft.put("b", letter("bob@x.test", "Lunch", "At noon?"), &[]);
        loft.put("c", mass_mail("Sale"), &[]);
        let old = Some(Utc::now() - TimeDelta::days(90));
        loft.put("d", Letter { received_at: old, ..letter("ann@shop.example", "Old offer", "Ten.") }, &[]);
    })
    .await;
    let (env, caller, id) = (&post.t.world.env, &post.caller, post.id);
    post.run().await;
    let shop = Conditions { senders: vec!["shop.example".into()], ..Conditions::default() };
    let new = Change { is_on: None, conditions: Some(shop.clone()) };
    let tried = rules::preview(env, caller, id, "the shop", new.clone()).await.expect("a preview");
    assert_eq!((tried.looked_at, tried.is_partial), (3, false), "the old one is not looked at");
    let named: Vec<&str> = tried.would_leave_out.latest.iter().map(|letter| letter.message_id.as_str()).collect();
    assert_eq!((tried.would_leave_out.letters, named, tried.would_let_in.letters), (1, vec!["a"], 0));
    let off = Change { is_on: Some(false), conditions: None };
    let tried = rules::preview(env, caller, id, "bulk", off.clone()).await.expect("a preview");
    assert_eq!((tried.would_leave_out.letters, tried.would_let_in.letters), (0, 1));
    assert_eq!(tried.would_let_in.latest[0].subject, "Sale");
    assert_eq!(post.left_out().await.len(), 1, "nothing was changed");

    rules::set(env, caller, id, "the shop", new).await.expect("added");
    let listed = rules::list(env, caller, id).await.expect("rules");
    assert_eq!(
        (listed[0].rule.name.as_str(), listed[0].rule.is_on, listed[0].rule.is_shipped),
        ("the shop", true, false)
    );
    assert!(listed[0].changed.as_ref().is_some_and(|(by, _)| by == &caller.key_name));
    // What one rule does is not said of another: it is neither blamed for letters that the shop's rule fits, nor praised for those that both leave out.
    let on = Change { is_on: Some(true), conditions: None };
    let tried = rules::preview(env, caller, id, "bulk", on.clone()).await.expect("a preview");
    assert_eq!((tried.would_leave_out.letters, tried.would_let_in.letters), (0, 0));
    assert_eq!(tried.shared, [("the shop".to_owned(), 1)].into());
    let tried = rules::preview(env, caller, id, "the shop", on).await.expect("a preview");
    assert_eq!(tried.would_leave_out.letters, 1, "of a rule that is on it is told what it adds");
    let sales = Conditions { subjects: vec!["Sale".into()], ..Conditions::default() };
    rules::set(env, caller, id, "sales", Change { is_on: None, conditions: Some(sales) }).await.expect("added");
    let tried = rules::preview(env, caller, id, "bulk", off.clone()).await.expect("a preview");
    assert_eq!((tried.would_let_in.letters, tried.shared), (0, [("sales".to_owned(), 1)].into()));
    rules::remove(env, caller, id, "sales").await.expect("removed");
    let bulk = listed.iter().find(|line| line.rule.name == "bulk").expect("a shipped rule");
    assert_eq!((bulk.n_left_out, bulk.changed.is_none()), (1, true));

    let own = Change { is_on: None, conditions: Some(Conditions::default()) };
    assert!(matches!(rules::set(env, caller, id, "everything", own).await, Err(ActError::Invalid(_))));
    let shipped = Change { is_on: None, conditions: Some(shop) };
    assert!(matches!(rules::set(env, caller, id, "bulk", shipped).await, Err(ActError::Conflict(_))));
    assert!(matches!(rules::set(env, caller, id, "unknown", off).await, Err(ActError::NotFound(_))));
    rules::remove(env, caller, id, "the shop").await.expect("removed");
    assert!(matches!(rules::remove(env, caller, id, "bulk").await, Err(ActError::NotFound(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_mailbox_has_no_rules() {
    let t = Sources::new().await;
    let id = t.connect(testkit::sources::HUBSPOT).await;
    let caller = Caller::local("test", t.world.tenant_id, true);
    assert!(matches!(rules::list(&t.world.env, &caller, id).await, Err(ActError::Conflict(_))));
    assert!(matches!(settings::get(&t.world.env, &caller, id).await, Err(ActError::Conflict(_))));
}
