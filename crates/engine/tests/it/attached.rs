//! Files of events as documents: made in the commit of their event's own, once, and gone with it.

use bytes::Bytes;
use domain::{ActivityId, ActivityType, Caller, ChannelId, ContactId, Direction, DocumentId, DocumentStatus, TenantId};
use engine::channels::NewChannel;
use engine::files::attached;
use engine::{documents, lanes};
use serde_json::{Value, json};
use store::activities::{self, Arrival, Attachment, Original};
use store::contacts::NewContact;
use testkit::World;
use uuid::Uuid;

struct Desk {
    world: World,
    by: Caller,
    channel: ChannelId,
}

/// A file on its way in: name, kind, content id, content.
type File<'a> = (&'a str, &'a str, Option<&'a str>, &'a str);

impl Desk {
    async fn new() -> Self {
        let world = World::now().await;
        let by = Caller::local("ben", world.tenant_id, true);
        let new = NewChannel { provider: "generic".into(), name: "post".into(), ..NewChannel::default() };
        let channel = engine::channels::add(&world.env, &by, new).await.expect("a channel").id;
        Self { world, by, channel }
    }

    /// An event arrives, as the door stores it.
    async fn arrive(&self, raw: Value, files: &[File<'_>]) -> ActivityId {
        let (env, tenant_id) = (&self.world.env, self.world.tenant_id);
        let mut attachments = Vec::new();
        for (name, kind, content_id, content) in files {
            let content = Bytes::copy_from_slice(content.as_bytes());
            let bytes = content.len() as i64;
            let blob_key = env.blobs.put(&env.db, tenant_id, content).await.expect("a blob").to_string();
            let (content_type, content_id) = (Some((*kind).to_owned()), content_id.map(str::to_owned));
            attachments.push(Attachment { name: (*name).to_owned(), content_type, content_id, bytes, blob_key });
        }
        let mut metadata = json!({ "from": "ann@example.com" });
        if !attachments.is_empty() {
            metadata["attachments"] = json!(attachments);
        }
        let arrival = Arrival {
            id: ActivityId::new(),
            tenant_id,
            channel_id: self.channel,
            person_id: None,
            event_key: None,
            r#type: ActivityType::Email,
            direction: Direction::Inbound,
            raw_data: raw.to_string(),
            metadata: metadata.to_string(),
            content_type: None,
            sha256: [0; 32],
            original: Original::Body(Bytes::from_static(b"{}")),
            attachments,
            new_contact: None,
        };
        let mut tx = env.db.begin().await.expect("a transaction");
        activities::insert_beside(&mut tx, &[&arrival]).await.expect("stored");
        tx.commit().await.expect("committed");
        arrival.id
    }

    async fn mail(&self, files: &[File<'_>]) -> ActivityId {
        self.arrive(json!({ "source_type": "text", "subject": "Papers", "content": "See attached." }), files).await
    }

    async fn run(&self) {
        self.world.run_lanes(&lanes::ALL).await;
    }

    async fn sql(&self, sql: &str) -> u64 {
        let done = sqlx::query(sqlx::AssertSqlSafe(sql.to_owned())).execute(&mut *self.world.conn().await).await;
        done.expect(sql).rows_affected()
    }

    async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&mut *self.world.conn().await).await.expect(sql)
    }

    /// The names of an event's files, each with how far its document is.
    async fn told(&self, id: ActivityId) -> Vec<(String, Option<DocumentStatus>)> {
        let found = activities::attached(&mut *self.world.conn().await, self.world.tenant_id, id).await;
        found.expect("files").into_iter().map(|one| (one.file.name.clone(), one.status())).collect()
    }

    async fn document(&self, id: ActivityId) -> DocumentId {
        let found =
            store::memory::documents::of_activity(&mut *self.world.conn().await, self.world.tenant_id, id).await;
        DocumentId(found.expect("an answer").expect("a document"))
    }

    async fn contact(&self, name: &str) -> ContactId {
        let email = Some(format!("{name}@x.test"));
        let person = NewContact { email, first_name: Some(name.into()), ..NewContact::default() };
        engine::contacts::create(&self.world.env, &self.by, person).await.expect("a contact")
    }
}

const OFFER: File = ("offer.pdf", "application/pdf", None, "%PDF offer");
const PENDING: Option<DocumentStatus> = Some(DocumentStatus::Pending);
const ASKED: &str = "select count(*) from pgmq.q_document_queue";

/// I1, I2.
#[tokio::test(flavor = "multi_thread")]
async fn each_file_of_an_event_is_one_document_whatever_becomes_of_the_event() {
    let desk = Desk::new().await;
    let logo = ("logo.png", "image/png", Some("logo@x"), "picture");
    let id = desk.mail(&[OFFER, ("copy.pdf", "application/pdf", None, "%PDF offer"), logo]).await;
    desk.run().await;
    let of_file = |name: &str, status| (name.to_owned(), status);
    let expected = [of_file("offer.pdf", PENDING), of_file("copy.pdf", PENDING), of_file("logo.png", None)];
    assert_eq!(desk.told(id).await, expected);
    assert_eq!(desk.count(ASKED).await, 2, "each is asked for once");
    let (title, metadata): (String, Value) = sqlx::query_as(
        "select title, source_metadata from source_documents where external_id like 'attachment:%/1' and document_type = 'file'",
    )
    .fetch_one(&mut *desk.world.conn().await)
    .await
    .expect("a document");
    assert_eq!((title.as_str(), &metadata["activity_id"]), ("offer.pdf", &json!(id.to_string())));
    assert_eq!((&metadata["subject"], &metadata["media_type"]), (&json!("Papers"), &json!("application/pdf")));

    // An agent completes it, and it is remembered again: its files stay as they are.
    desk.sql("update source_documents set status = 'transcribing' where document_type = 'file'").await;
    desk.sql(
        "update activities set processing_status = 'processing', locked_at = now(), locked_by = gen_random_uuid()",
    )
    .await;
    desk.sql("update activities set processing_status = 'completed', locked_at = null, locked_by = null, processed_data = '{\"summary\": \"An offer.\"}'")
        .await;
    desk.run().await;
    let reading = Some(DocumentStatus::Transcribing);
    let expected = [of_file("offer.pdf", reading), of_file("copy.pdf", reading), of_file("logo.png", None)];
    assert_eq!(desk.told(id).await, expected);
    assert_eq!(desk.count(ASKED).await, 2);

    // It is linked to a contact, and its files are that contact's.
    let ann = desk.contact("Ann").await;
    engine::activities::link(&desk.world.env, &desk.by, id, ann, false).await.expect("linked");
    desk.run().await;
    assert_eq!(desk.count("select count(*) from source_documents where contact_id is not null").await, 3);
    assert_eq!(desk.count("select count(*) from tributary.activity_attachments where remembered_at is null").await, 0);

    // A recording of which nothing is known, with a file: the file is read all the same, and at once.
    let silent = desk.arrive(json!({ "source_type": "url", "content": "https://example.com/a.wav" }), &[OFFER]).await;
    desk.run().await;
    assert_eq!(desk.told(silent).await, [of_file("offer.pdf", PENDING)]);
    desk.arrive(json!({ "source_type": "url", "content": "https://example.com/b.wav" }), &[]).await;
    desk.run().await;
    assert_eq!(desk.count("select count(*) from source_documents").await, 5, "without a file it waits to be heard");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_deleted_with_their_events_document_and_let_in_with_it() {
    let desk = Desk::new().await;
    let (env, by) = (&desk.world.env, &desk.by);
    let (ann, bob) = (desk.contact("Ann").await, desk.contact("Bob").await);
    let id = desk.mail(&[OFFER, ("plan.docx", "", None, "plan")]).await;
    desk.run().await;
    engine::activities::link(env, by, id, ann, false).await.expect("linked");
    desk.run().await;
    let files: Vec<Uuid> =
        sqlx::query_scalar("select id from source_documents where document_type = 'file' order by external_id")
            .fetch_all(&mut *desk.world.conn().await)
            .await
            .expect("documents");
    let document = desk.document(id).await;

    // One of them alone: it stays deleted when the event is remembered again, and moves with it to another contact.
    documents::delete(env, by, DocumentId(files[1])).await.expect("deleted");
    engine::activities::link(env, by, id, bob, false).await.expect("linked");
    desk.run().await;
    engine::contacts::forget(env, by, ann).await.expect("asked");
    desk.run().await;
    let kept = "select count(*) from source_documents where removed_at is not null";
    assert_eq!(desk.count(kept).await, 1, "Ann is gone, and the tombstone is Bob's now");
    let of_one = |status| [("offer.pdf".to_owned(), status), ("plan.docx".to_owned(), None)];
    assert_eq!(desk.told(id).await, of_one(PENDING));

    documents::delete(env, by, document).await.expect("deleted");
    assert_eq!(desk.told(id).await, of_one(None));
    assert_eq!(desk.count(kept).await, 3);
    // A file that had no document by then stays out as well, and one is not let in alone.
    desk.sql("update activities set updated_at = now()").await;
    desk.sql("insert into tributary.activity_attachments (tenant_id, activity_id, ordinal, name, bytes, blob_key) select tenant_id, activity_id, 3, 'late.pdf', 1, blob_key from tributary.activity_attachments where ordinal = 1")
        .await;
    engine::activities::link(env, by, id, bob, false).await.expect("linked");
    desk.run().await;
    assert_eq!(desk.count("select count(*) from source_documents where deleted_at is null").await, 0);
    assert!(documents::restore(env, by, DocumentId(files[0])).await.is_err(), "its event's document is deleted");

    documents::restore(env, by, document).await.expect("let in");
    desk.run().await;
    let told = desk.told(id).await;
    assert!(told.len() == 3 && told.iter().all(|(_, status)| *status == PENDING), "{told:?}");
    assert_eq!(desk.count(kept).await, 0);

    // One alone is let in too.
    documents::delete(env, by, DocumentId(files[0])).await.expect("deleted");
    documents::restore(env, by, DocumentId(files[0])).await.expect("let in");
    desk.run().await;
    assert_eq!(desk.told(id).await[0].1, PENDING);
}

/// Files that came before an upgrade.
#[tokio::test(flavor = "multi_thread")]
async fn files_that_came_before_they_were_read_are_read_while_nothing_else_waits() {
    let desk = Desk::new().await;
    let env = &desk.world.env;
    let mut ids = Vec::new();
    for nth in 0..3 {
        let name = format!("{nth}.pdf");
        ids.push(desk.mail(&[(&name, "application/pdf", None, "%PDF")]).await);
    }
    // As an older program left them.
    desk.sql("delete from pgmq.q_remember_activity").await;
    desk.sql("update activities set created_at = now() - interval '1 day'").await;
    desk.sql("insert into pgmq.a_remember_activity (msg_id, read_ct, enqueued_at, vt, message, headers) select 1000000, 8, now(), now(), jsonb_build_object('tenant_id', tenant_id, 'activity_id', id), '{\"state\": \"dead\"}' from activities order by id limit 1")
        .await;
    let waiting = "select count(*) from pgmq.q_remember_activity";

    let live = desk.mail(&[]).await;
    attached::keep(env).await.expect("kept");
    assert_eq!(desk.count(waiting).await, 1, "what is live goes first");
    desk.run().await;
    assert_eq!(desk.told(live).await, []);
    for _ in 0..2 {
        attached::keep(env).await.expect("kept");
        assert_eq!(desk.count(waiting).await, 2, "each is sent once, and what was given up is left to people");
    }
    desk.run().await;
    assert_eq!(desk.told(ids[0]).await[0].1, None);
    assert_eq!((desk.told(ids[1]).await[0].1, desk.told(ids[2]).await[0].1), (PENDING, PENDING));
    // Files wait to be read: more of the past waits for them.
    desk.sql("delete from pgmq.a_remember_activity").await;
    attached::keep(env).await.expect("kept");
    assert_eq!(desk.count(waiting).await, 0);
    desk.sql("delete from pgmq.q_document_queue").await;
    attached::keep(env).await.expect("kept");
    desk.run().await;
    assert_eq!(desk.told(ids[0]).await[0].1, PENDING);
    desk.sql("delete from pgmq.q_document_queue").await;
    attached::keep(env).await.expect("kept");
    assert_eq!(desk.count(waiting).await, 0, "all are looked at");
}

/// S17: another tenant's activity is none of this one's.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_shown_to_its_tenant_alone() {
    let desk = Desk::new().await;
    let id = desk.mail(&[OFFER]).await;
    desk.run().await;
    let elsewhere: TenantId = desk.world.other_tenant("somebody else").await;
    let stranger = Caller::local("eve", elsewhere, false);
    let read = async |caller: &Caller, tenant_id| {
        desk.world.env.db.read(caller, async |tx| activities::attached(tx, tenant_id, id).await).await.expect("files")
    };
    assert_eq!(read(&desk.by, desk.world.tenant_id).await.len(), 1);
    assert!(read(&stranger, desk.world.tenant_id).await.is_empty() && read(&stranger, elsewhere).await.is_empty());
}
