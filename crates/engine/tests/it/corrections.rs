//! Corrections and additions by people: documents that stay deleted, contacts that are changed, merged and deleted, and notes.

use std::collections::BTreeMap;

use domain::{ActivityId, ActivityType, Caller, ContactId, DocumentId, DocumentType, TenantId};
use engine::activities::written::{self, Written};
use engine::contacts::corrected::{self, Change as ContactChange};
use engine::contacts::merges;
use engine::memory::Change;
use engine::{ActError, documents, lanes};
use store::contacts::NewContact;
use store::memory::Mode;
use testkit::World;
use uuid::Uuid;

use crate::memory::Memory;

fn caller(tenant_id: TenantId) -> Caller {
    Caller::local("ben", tenant_id, false)
}

fn is_missing<T>(done: Result<T, ActError>) -> bool {
    matches!(done, Err(ActError::NotFound(_)))
}

fn is_refused<T>(done: Result<T, ActError>) -> bool {
    matches!(done, Err(ActError::Invalid(_) | ActError::Conflict(_)))
}

#[tokio::test]
async fn a_deleted_document_is_gone_at_once_and_stays_deleted_until_it_is_let_in_again() {
    let memory = Memory::new().await;
    let (env, by) = (&memory.world.env, caller(memory.world.tenant_id));
    let kept =
        memory.remember(vec![memory.record("a", "The harbour closes early."), memory.record("b", "A winter ledger.")]);
    let id = kept.await[0].id;
    assert_eq!(memory.search("harbour", Mode::Hybrid).await.first().map(String::as_str), Some("a"));

    let stranger = caller(memory.world.other_tenant("somebody else").await);
    assert!(is_missing(documents::delete(env, &stranger, id).await), "S17: another tenant's document was deleted");
    documents::delete(env, &by, id).await.expect("deleted");
    documents::delete(env, &by, id).await.expect("once more");
    assert!(!memory.search("harbour", Mode::Hybrid).await.contains(&"a".to_owned()));
    let left = "select count(*) from document_chunks c join source_documents d on d.id = c.document_id where d.external_id = 'a'";
    assert_eq!(memory.number(left).await, 0, "chunks are left");
    let said = "select count(*) from source_documents where external_id = 'a' and (text <> '' or title is not null or raw_payload is not null)";
    assert_eq!(memory.number(said).await, 0, "its content is left");

    // Its source sends it again, changed and in a newer version.
    for (text, version) in [("The harbour closes early.", None), ("The harbour opens.", Some(9))] {
        let record = domain::Record { source_version: version, ..memory.record("a", text) };
        let again = memory.remember(vec![record, memory.record("b", "A winter ledger.")]).await;
        assert_eq!((again[0].id, again[0].change, again[1].change), (id, Change::KeptOut, Change::Unchanged));
    }
    assert_eq!(memory.search("harbour", Mode::Keyword).await, [] as [String; 0]);
    let listed = documents::removed(env, &by, 10).await.expect("a list");
    assert_eq!((listed.len(), listed[0].external_id.as_str(), listed[0].removed_by.as_str()), (1, "a", "ben"));
    assert!(documents::removed(env, &stranger, 10).await.expect("a list").is_empty(), "S17");

    assert!(is_missing(documents::restore(env, &stranger, id).await), "S17");
    documents::restore(env, &by, id).await.expect("let in");
    assert!(is_missing(documents::restore(env, &by, id).await), "it is let in already");
    let back = memory.remember(vec![memory.record("a", "The harbour opens.")]).await;
    assert_eq!((back[0].id, back[0].change), (id, Change::Updated));
    assert_eq!(memory.search("harbour", Mode::Hybrid).await.first().map(String::as_str), Some("a"));
}

/// A writer of the document meanwhile either came before, and its document is deleted, or finds the mark.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_is_sent_again_while_it_is_deleted_ends_deleted() {
    let memory = Memory::new().await;
    let (env, by) = (&memory.world.env, caller(memory.world.tenant_id));
    for round in 0..8 {
        let name = format!("n{round}");
        let id = memory.remember(vec![memory.record(&name, "The first text.")]).await[0].id;
        let send = async |nth: usize| {
            // So few that nobody is planned again more often than `remember` tries.
            for more in 0..2 {
                memory.remember(vec![memory.record(&name, &format!("Text {nth} {more} of round {round}."))]).await;
            }
        };
        let delete = async { documents::delete(env, &by, id).await.expect("deleted") };
        tokio::join!(send(1), delete, send(2));
        let last = memory.remember(vec![memory.record(&name, "The last text.")]).await;
        assert_eq!(last[0].change, Change::KeptOut, "round {round}");
    }
    let alive = "select count(*) from source_documents where deleted_at is null or removed_at is null or n_chunks > 0";
    assert_eq!(memory.number(alive).await, 0);
    assert_eq!(memory.number("select count(*) from document_chunks").await, 0);
}

fn note(text: &str) -> Written {
    Written {
        id: None,
        r#type: ActivityType::Note,
        title: "A call with Ann".into(),
        text: text.into(),
        at: None,
        contact_id: None,
        client_id: None,
    }
}

async fn contact(world: &World, tenant_id: TenantId, email: &str, name: &str) -> ContactId {
    let new = NewContact { email: Some(email.into()), first_name: Some(name.into()), ..NewContact::default() };
    engine::contacts::create(&world.env, &caller(tenant_id), new).await.expect("a contact")
}

async fn number(world: &World, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(&mut *world.conn().await).await.expect("a number")
}

#[tokio::test]
async fn a_note_is_complete_at_once_found_by_search_and_written_once_however_often_it_is_sent() {
    let memory = Memory::of(World::now().await).await; // triggers send by the database's clock
    let (world, by) = (&memory.world, caller(memory.world.tenant_id));
    let ann = contact(world, world.tenant_id, "ann@example.com", "Ann").await;
    let new = Written {
        id: Some(ActivityId::new()),
        at: "2026-05-03T14:00:00Z".parse().ok(),
        contact_id: Some(ann),
        ..note("She wants the copper window for 300 EUR.")
    };
    let first = written::add(&world.env, &by, new.clone()).await.expect("written");
    let again = written::add(&world.env, &by, new.clone()).await.expect("known");
    assert_eq!((first.is_new, again.is_new, again.activity.id), (true, false, first.activity.id));
    let activity = first.activity;
    assert_eq!(activity.processing_status.as_str(), "completed");
    assert_eq!(activity.contact_id, Some(ann.0));
    assert_eq!(activity.processed_data.expect("a result")["facts"][0], "names the amount 300 EUR");
    let claimed = number(world, "select count(*) from activities where processing_status = 'raw'").await;
    assert_eq!(claimed, 0, "nobody has to process it");
    world.run_lanes(&lanes::ALL).await;
    let name = ActivityId(activity.id).external_id();
    assert_eq!(memory.search("copper window", Mode::Hybrid).await, std::slice::from_ref(&name));
    assert_eq!(memory.search("3 May 2026", Mode::Keyword).await, std::slice::from_ref(&name), "by when it is");

    // Other tenants' ids are nobody's here.
    let elsewhere = world.other_tenant("somebody else").await;
    let stranger = caller(elsewhere);
    assert!(
        is_refused(written::add(&world.env, &stranger, Written { contact_id: None, ..new.clone() }).await),
        "S17: an id"
    );
    assert!(
        is_missing(written::add(&world.env, &stranger, Written { contact_id: Some(ann), ..note("x") }).await),
        "S17"
    );
    for odd in
        [note("\0"), Written { title: String::new(), ..note(" ") }, Written { r#type: ActivityType::Sms, ..note("x") }]
    {
        assert!(is_refused(written::add(&world.env, &by, odd).await));
    }
    assert_eq!(number(world, "select count(*) from activities").await, 1);

    // Its document is deleted like any other, and made anew when it is let in again.
    let id: Uuid = sqlx::query_scalar("select id from source_documents where external_id = $1")
        .bind(&name)
        .fetch_one(&mut *world.conn().await)
        .await
        .expect("a document");
    documents::delete(&world.env, &by, DocumentId(id)).await.expect("deleted");
    corrected::change(&world.env, &by, ann, ContactChange { company: Some("Lark".into()), ..ContactChange::default() })
        .await
        .expect("changed");
    world.run_lanes(&lanes::ALL).await;
    assert_eq!(memory.search("copper window", Mode::Hybrid).await, [] as [String; 0]);
    documents::restore(&world.env, &by, DocumentId(id)).await.expect("let in");
    world.run_lanes(&lanes::ALL).await;
    assert_eq!(memory.search("copper window", Mode::Hybrid).await, [name]);
}

#[tokio::test]
async fn a_clients_text_is_not_deleted_alone() {
    let memory = Memory::new().await;
    let record = domain::Record { document_type: DocumentType::Client, ..memory.record("client:1", "Owes nothing.") };
    let id = memory.remember(vec![record]).await[0].id;
    let refused = documents::delete(&memory.world.env, &caller(memory.world.tenant_id), id).await;
    assert!(refused.is_err_and(|error| error.to_string().contains("correct the client instead")));
}

#[tokio::test]
async fn a_contact_is_changed_and_its_new_addresses_find_their_events() {
    let world = World::now().await;
    let by = caller(world.tenant_id);
    let ann = contact(&world, world.tenant_id, "ann@example.com", "Ann").await;
    event(&world, world.tenant_id, "ann@home.example").await;
    let some = |text: &str| Some(text.to_owned());
    let change = ContactChange {
        first_name: some(" Anna "),
        email: some("ANNA@example.com"),
        company: some("Larkfield"),
        add_addresses: vec!["ann@home.example".into()],
        ..ContactChange::default()
    };
    let changed = corrected::change(&world.env, &by, ann, change).await.expect("changed");
    assert_eq!(
        (changed.first_name, changed.email, changed.company),
        (some("Anna"), some("anna@example.com"), some("Larkfield"))
    );
    assert_eq!(
        number(&world, "select count(*) from activities where contact_id is not null").await,
        1,
        "its event is linked"
    );
    event(&world, world.tenant_id, "anna@example.com").await;
    event(&world, world.tenant_id, "ann@example.com").await;
    assert_eq!(
        number(&world, "select count(*) from activities where contact_id is null").await,
        1,
        "the old address is nobody's"
    );

    let remove = |address: &str| ContactChange { remove_addresses: vec![address.into()], ..ContactChange::default() };
    assert!(is_missing(corrected::change(&world.env, &by, ann, remove("x@y.example")).await));
    corrected::change(&world.env, &by, ann, remove("ann@home.example")).await.expect("removed");
    let all = engine::contacts::addresses(&world.env, &by, ann).await.expect("addresses");
    assert_eq!(all, ["anna@example.com"]);
    let empty = ContactChange { first_name: some(""), email: some(""), ..ContactChange::default() };
    assert!(is_refused(corrected::change(&world.env, &by, ann, empty).await), "nothing would be left of it");
    let stranger = caller(world.other_tenant("somebody else").await);
    assert!(is_missing(corrected::change(&world.env, &stranger, ann, ContactChange::default()).await), "S17");
}

async fn event(world: &World, tenant_id: TenantId, from: &str) {
    sqlx::query(
        "insert into activities (tenant_id, type, raw_data, metadata)
         values ($1, 'email', '{\"source_type\": \"text\", \"content\": \"hello\"}', jsonb_build_object('from', $2::text))",
    )
    .bind(tenant_id.0)
    .bind(from)
    .execute(&mut *world.conn().await)
    .await
    .expect("an event");
}

/// The rows that a merge touches, without the times and versions that only grow.
async fn state(world: &World) -> BTreeMap<&'static str, Vec<String>> {
    let mut state = BTreeMap::new();
    for (name, sql) in [
        ("contacts", "select c::text from contacts c order by id"),
        ("keys", "select concat_ws(' ', kind, key, contact_id, origin, address) from contact_keys order by 1"),
        ("activities", "select concat_ws(' ', id, contact_id) from activities order by 1"),
        ("documents", "select concat_ws(' ', external_id, contact_id) from source_documents order by 1"),
        ("decisions", "select d::text from client_decisions d order by 1"),
        ("searches", "select query::text from saved_searches order by 1"),
        ("merges", "select m::text from contact_merges m order by 1"),
    ] {
        let rows = sqlx::query_scalar(sql).fetch_all(&mut *world.conn().await).await.expect(sql);
        state.insert(name, rows);
    }
    state
}

#[tokio::test]
async fn a_merge_moves_everything_and_is_undone_without_a_trace() {
    let world = World::now().await;
    let (tenant_id, by) = (world.tenant_id, caller(world.tenant_id));
    let ann = contact(&world, tenant_id, "ann@example.com", "Ann").await;
    let second = contact(&world, tenant_id, "a.lark@work.example", "A.").await;
    let third = contact(&world, tenant_id, "annie@old.example", "Annie").await;
    let more = ContactChange {
        phone_number: Some("+14158675309".into()),
        company: Some("Larkfield".into()),
        tags: Some(vec!["vip".into()]),
        add_addresses: vec!["lark@home.example".into()],
        ..ContactChange::default()
    };
    corrected::change(&world.env, &by, second, more).await.expect("changed");
    for from in ["ann@example.com", "a.lark@work.example", "lark@home.example", "+14158675309", "annie@old.example"] {
        event(&world, tenant_id, from).await;
    }
    sqlx::query(
        "insert into client_decisions (id, tenant_id, kind, record, other, said_by) values (gen_random_uuid(), $1, 'merge', $2, 'x/company:1', 'ben')",
    )
    .bind(tenant_id.0)
    .bind(format!("contact/{second}"))
    .execute(&mut *world.conn().await)
    .await
    .expect("a decision");
    sqlx::query("insert into saved_searches (id, tenant_id, name, query, created_by) values (gen_random_uuid(), $1, 'hers', jsonb_build_object('filters', jsonb_build_object('contact', $2::bigint)), 'ben')")
        .bind(tenant_id.0)
        .bind(second.0)
        .execute(&mut *world.conn().await)
        .await
        .expect("a search");
    world.run_lanes(&lanes::ALL).await;

    // A merge that is part of what is merged comes back with it.
    merges::merge(&world.env, &by, second, third).await.expect("merged");
    world.run_lanes(&lanes::ALL).await;
    let before = state(&world).await;
    let one = merges::merge(&world.env, &by, ann, second).await.expect("merged");
    world.run_lanes(&lanes::ALL).await;
    assert_eq!((one.company.as_deref(), one.phone_number.as_deref()), (Some("Larkfield"), Some("+14158675309")));
    assert_eq!(
        (one.email.as_deref(), one.first_name.as_deref()),
        (Some("ann@example.com"), Some("Ann")),
        "its own stay"
    );
    assert_eq!(number(&world, "select count(distinct contact_id) from activities").await, 1);
    assert_eq!(number(&world, "select count(*) from source_documents where contact_id is null").await, 0);
    assert_eq!(number(&world, "select count(distinct contact_id) from source_documents").await, 1);
    assert!(is_missing(engine::contacts::get(&world.env, &by, second).await));
    event(&world, tenant_id, "lark@home.example").await;
    assert_eq!(number(&world, "select count(distinct contact_id) from activities").await, 1, "new events go to it");
    let of_new =
        "delete from activities where id = (select id from activities order by created_at desc, id desc limit 1)";
    sqlx::query(of_new).execute(&mut *world.conn().await).await.expect("gone");

    let merged = merges::list(&world.env, &by, ann).await.expect("merges");
    let stranger = caller(world.other_tenant("somebody else").await);
    assert!(is_missing(merges::undo(&world.env, &stranger, ann, merged[0].id).await), "S17");
    assert!(is_missing(merges::merge(&world.env, &stranger, ann, third).await), "S17");
    assert!(is_missing(merges::merge(&world.env, &by, ann, ContactId(999_999)).await));
    assert!(is_refused(merges::merge(&world.env, &by, ann, ann).await));
    let back = merges::undo(&world.env, &by, ann, merged[0].id).await.expect("undone");
    assert_eq!(back.id, second.0);
    world.run_lanes(&lanes::ALL).await;
    assert_eq!(state(&world).await, before);
    let inner = merges::list(&world.env, &by, second).await.expect("merges");
    merges::undo(&world.env, &by, second, inner[0].id).await.expect("undone");
    assert!(engine::contacts::get(&world.env, &by, third).await.is_ok());
}

#[tokio::test]
async fn a_deleted_contact_leaves_its_activities_and_a_forgotten_one_nothing_of_its_merges() {
    let world = World::now().await;
    let (tenant_id, by) = (world.tenant_id, caller(world.tenant_id));
    let ann = contact(&world, tenant_id, "ann@example.com", "Ann").await;
    let bob = contact(&world, tenant_id, "bob@example.com", "Bobsecret").await;
    let eve = contact(&world, tenant_id, "eve@example.com", "Eve").await;
    for from in ["ann@example.com", "bob@example.com", "eve@example.com"] {
        event(&world, tenant_id, from).await;
    }
    world.run_lanes(&lanes::ALL).await;
    let stranger = caller(world.other_tenant("somebody else").await);
    assert!(is_missing(corrected::delete(&world.env, &stranger, eve).await), "S17");
    corrected::delete(&world.env, &by, eve).await.expect("deleted");
    assert!(is_missing(corrected::delete(&world.env, &by, eve).await));
    world.run_lanes(&lanes::ALL).await;
    assert_eq!(number(&world, "select count(*) from activities").await, 3);
    assert_eq!(number(&world, "select count(*) from activities where contact_id is null").await, 1);
    assert_eq!(number(&world, "select count(*) from source_documents where contact_id is null").await, 1);
    event(&world, tenant_id, "eve@example.com").await;
    assert_eq!(
        number(&world, "select count(*) from activities where contact_id is null").await,
        2,
        "nobody has the address"
    );

    merges::merge(&world.env, &by, ann, bob).await.expect("merged");
    let removed: Uuid = sqlx::query_scalar("select id from source_documents where contact_id = $1 order by id limit 1")
        .bind(ann.0)
        .fetch_one(&mut *world.conn().await)
        .await
        .expect("a document");
    documents::delete(&world.env, &by, DocumentId(removed)).await.expect("deleted");
    engine::contacts::forget(&world.env, &by, ann).await.expect("asked");
    assert_eq!(number(&world, "select count(*) from contact_merges").await, 0, "names go at once");
    assert!(
        is_refused(corrected::change(&world.env, &by, ann, ContactChange::default()).await),
        "it is being forgotten"
    );
    world.run_lanes(&lanes::ALL).await;
    let of_anybody = "select count(*) from source_documents where contact_id is not null or removed_at is not null";
    assert_eq!(number(&world, of_anybody).await, 0, "a tombstone of a forgotten contact is left");
    assert_eq!(number(&world, "select count(*) from contacts").await, 0);
}

/// The state that a crash leaves: the first commit of a merge is there, or that of its undoing, and the rest is not.
async fn stopped(world: &World, state: &str) {
    let sql = "update contact_merges set state = $1";
    sqlx::query(sql).bind(state).execute(&mut *world.conn().await).await.expect("a state");
}

#[tokio::test]
async fn while_a_merge_is_unfinished_neither_contact_is_forgotten_deleted_or_changed() {
    let world = World::now().await;
    let (tenant_id, by) = (world.tenant_id, caller(world.tenant_id));
    let ann = contact(&world, tenant_id, "ann@example.com", "Ann").await;
    let bob = contact(&world, tenant_id, "bob@example.com", "Bob").await;
    event(&world, tenant_id, "bob@example.com").await;
    merges::merge(&world.env, &by, ann, bob).await.expect("merged");
    let merge = merges::list(&world.env, &by, ann).await.expect("merges")[0].id;

    for state in ["merging", "undoing"] {
        stopped(&world, state).await;
        assert!(
            is_refused(engine::contacts::forget(&world.env, &by, ann).await),
            "{state}: what still moves would stay"
        );
        assert!(is_refused(corrected::delete(&world.env, &by, ann).await), "{state}");
        assert!(is_refused(corrected::change(&world.env, &by, ann, ContactChange::default()).await), "{state}");
        let other = contact(&world, tenant_id, "eve@example.com", state).await;
        assert!(is_refused(merges::merge(&world.env, &by, ann, other).await), "{state}");
    }
    // A merge that goes on after somebody has begun to undo it would take the addresses from the contact that is back.
    let back = merges::undo(&world.env, &by, ann, merge).await.expect("undone");
    assert_eq!((back.id, back.email.as_deref()), (bob.0, Some("bob@example.com")));
    assert_eq!(number(&world, "select count(*) from contact_merges").await, 0);
    merges::merge(&world.env, &by, ann, bob).await.expect("merged once more");
    let again = merges::list(&world.env, &by, ann).await.expect("merges");
    assert_eq!(again[0].activities.len(), 1, "a merge of its own, with what it moved");
    engine::contacts::forget(&world.env, &by, ann).await.expect("asked");
    let late = Written { contact_id: Some(ann), ..note("late") };
    assert!(is_refused(written::add(&world.env, &by, late).await), "I1: it would go with the contact");
}

/// The first commit of a deletion is there, and the rest is not: what is merged into the contact now would go with it.
#[tokio::test]
async fn nothing_is_merged_with_a_contact_that_is_being_deleted() {
    let world = World::now().await;
    let (tenant_id, by) = (world.tenant_id, caller(world.tenant_id));
    let ann = contact(&world, tenant_id, "ann@example.com", "Ann").await;
    let bob = contact(&world, tenant_id, "bob@example.com", "Bob").await;
    event(&world, tenant_id, "bob@example.com").await;
    store::contacts::blank(&mut *world.conn().await, tenant_id, ann).await.expect("blank");

    assert!(is_refused(merges::merge(&world.env, &by, ann, bob).await));
    assert!(is_refused(merges::merge(&world.env, &by, bob, ann).await));
    corrected::delete(&world.env, &by, ann).await.expect("deleted to its end");
    let of_bob = "select count(*) from activities a join contacts c on c.id = a.contact_id where c.first_name = 'Bob'";
    assert_eq!(number(&world, of_bob).await, 1, "I1: what Bob has is still his");
}

#[tokio::test]
async fn a_tombstone_follows_its_activity_to_another_contact_and_is_not_forgotten_with_the_first() {
    let memory = Memory::of(World::now().await).await;
    let (world, by) = (&memory.world, caller(memory.world.tenant_id));
    let ann = contact(world, world.tenant_id, "ann@example.com", "Ann").await;
    let bob = contact(world, world.tenant_id, "bob@example.com", "Bob").await;
    event(world, world.tenant_id, "ann@example.com").await;
    world.run_lanes(&lanes::ALL).await;
    let (document, activity): (Uuid, Uuid) = sqlx::query_as("select d.id, a.id from source_documents d, activities a")
        .fetch_one(&mut *world.conn().await)
        .await
        .expect("a document");
    documents::delete(&world.env, &by, DocumentId(document)).await.expect("deleted");
    engine::activities::link(&world.env, &by, ActivityId(activity), bob, false).await.expect("linked");
    world.run_lanes(&lanes::ALL).await;
    engine::contacts::forget(&world.env, &by, ann).await.expect("asked");
    world.run_lanes(&lanes::ALL).await;
    assert_eq!(number(world, "select count(*) from contacts").await, 1, "Ann is gone");
    let kept = "select count(*) from source_documents where removed_at is not null and contact_id = $1";
    let n: i64 = sqlx::query_scalar(kept).bind(bob.0).fetch_one(&mut *world.conn().await).await.expect("a number");
    assert_eq!(n, 1, "it would come back with the next change of its activity");
}

#[tokio::test]
async fn an_id_that_is_taken_by_what_somebody_else_wrote_shows_nothing_of_it() {
    let world = World::now().await;
    let by = caller(world.tenant_id);
    let first = Written { id: Some(ActivityId::new()), ..note("A secret of Ben's.") };
    written::add(&world.env, &by, first.clone()).await.expect("written");
    let other = Caller::local("eve", world.tenant_id, false);
    assert!(is_refused(written::add(&world.env, &other, first.clone()).await));
    assert!(!written::add(&world.env, &by, first).await.expect("known").is_new);
}
