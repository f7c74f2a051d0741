//! Clients are one: records of one company or person from several systems are one client in any order of arrival, with facts that are right; what
//! people decide is honoured, and undone without a trace; what people write is kept, found and never overwritten.

mod companies;

use std::collections::BTreeMap;

use companies::CASES;
use domain::{Caller, ClientId, JobKind, Scope, SourceId};
use engine::ActError;
use engine::clients::decide::{self, Part};
use engine::clients::{self, curated};
use engine::memory::recall::{self, Query};
use engine::pull::jobs;
use engine::pull::words::facts::in_words;
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use serde_json::{Value, json};
use testkit::Sources;
use testkit::sources::{DRIVE, HUBSPOT, QUICKBOOKS};
use uuid::Uuid;

async fn caller(t: &Sources) -> Caller {
    t.world.caller(t.world.tenant_id, &[Scope::Service]).await.0
}

/// A world that knows every company, with its caller.
async fn known() -> (Sources, Caller) {
    let t = Sources::empty().await;
    companies::fill(&t.fakes);
    for provider in [HUBSPOT, QUICKBOOKS, DRIVE] {
        t.connect(provider).await;
    }
    t.run().await;
    let caller = caller(&t).await;
    (t, caller)
}

/// Which records are one client: the names of their records, client by client.
async fn grouped(t: &Sources) -> Vec<Vec<String>> {
    let rows: Vec<(Uuid, String, Option<String>, Option<String>)> = sqlx::query_as(
        "select c.client_id, d.document_type, d.title, c.client_name from client_intelligence c
         join source_documents d on d.source_id = c.source_id and d.external_id = c.external_id",
    )
    .fetch_all(&mut *t.world.conn().await)
    .await
    .expect("records");
    let mut groups: BTreeMap<Uuid, Vec<String>> = BTreeMap::new();
    for (client, kind, title, name) in rows {
        let (word, name) = match kind.as_str() {
            "hubspot.company" => ("crm", name),
            "hubspot.contact" => ("person", title),
            _ => ("books", name),
        };
        groups.entry(client).or_default().push(format!("{word} {}", name.unwrap_or_default()));
    }
    let mut groups: Vec<Vec<String>> = groups.into_values().collect();
    groups.iter_mut().for_each(|group| group.sort());
    groups.sort();
    groups
}

fn expected() -> Vec<Vec<String>> {
    let clients = CASES.iter().flat_map(|case| case.clients);
    let mut groups: Vec<Vec<String>> =
        clients.map(|client| client.iter().map(|name| (*name).to_owned()).collect()).collect();
    groups.iter_mut().for_each(|group| group.sort());
    groups.sort();
    groups
}

/// Every client as people see it: its name, the reasons why its records are one, its facts in words, and its files.
async fn seen(t: &Sources, caller: &Caller) -> Vec<Value> {
    let env = &t.world.env;
    let page = clients::list(env, caller, None, None, 200).await.expect("clients");
    let mut all = Vec::new();
    for client in page.clients {
        let whole = clients::whole(env, caller, client.id).await.expect("a client");
        let facts: Vec<Value> = whole
            .facts
            .iter()
            .map(|fact| json!([fact.name, in_words(&fact.name, &fact.value), fact.sources.len(), fact.documents.len()]))
            .collect();
        let mut why: Vec<String> =
            whole.records.iter().chain(&whole.people).filter_map(|one| clients::why(one.matched_by.as_ref())).collect();
        why.sort();
        let (files, _) = clients::timeline(env, caller, client.id, true, None, 50).await.expect("files");
        let files: Vec<Option<String>> = files.into_iter().map(|file| file.title).collect();
        all.push(json!({ "name": whole.name, "why": why, "facts": facts, "files": files, "people": whole.n_people }));
    }
    all.sort_by_key(Value::to_string); // two clients of one name are listed by their ids
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_companies_in_three_systems_are_one_client_each_in_any_order_of_arrival() {
    let (first, who) = known().await;
    assert_eq!(grouped(&first).await, expected());
    let wanted = seen(&first, &who).await;
    let of = |name: &str| wanted.iter().find(|client| client["name"] == name).unwrap_or_else(|| panic!("no {name}"));
    let fact = |client: &Value, name: &str| {
        let facts = client["facts"].as_array().expect("facts").iter();
        facts.filter(|fact| fact[0] == name).map(|fact| fact[1].clone()).next().unwrap_or_default()
    };
    // Facts of both systems, in words and with their money.
    let alder = of("Alder Joinery");
    assert_eq!(fact(alder, "industry"), "Facilities services");
    assert_eq!(fact(alder, "ar_balance"), "120.50 USD");
    assert_eq!(alder["files"], json!(["Alder Joinery: frame contract"]));
    assert_eq!(alder["people"], 1);
    assert!(
        alder["why"].as_array().expect("reasons").contains(&json!("matched by domain alderjoinery.test")),
        "{alder}"
    );
    assert_eq!(fact(of("Siskin Export"), "ar_balance"), "100.10 EUR and 50 USD");
    assert_eq!(of("Wagtail Weavers")["files"], json!(["Frame contract - Wagtail Weavers"]));
    assert_eq!(of("Cedarbrook Nurseries")["why"], json!(["matched by a name that is nearly the same"]));
    assert_eq!(of("FALCON-FOODS GmbH")["why"], json!(["matched by name"]));

    let seed = rand::random();
    println!("seed {seed}");
    let mut rng = rand::rngs::StdRng::seed_from_u64(seed);
    for turn in 0..3 {
        // Source after source, in another order each time; in the last turns a few records at a time, and some of them twice.
        let t = Sources::empty().await;
        let mut providers = [HUBSPOT, QUICKBOOKS, DRIVE];
        providers.shuffle(&mut rng);
        if turn == 0 {
            companies::fill(&t.fakes);
            for provider in providers {
                t.connect(provider).await;
                t.run().await;
            }
        } else {
            let mut sources = Vec::new();
            for provider in providers {
                sources.push((provider, t.connect(provider).await));
            }
            t.run().await;
            companies::fill(&t.fakes);
            let mut names: Vec<(SourceId, String)> = Vec::new();
            for (provider, id) in sources {
                names.extend(crate::pull::expected(&t, provider).into_iter().map(|name| (id, name)));
            }
            names.extend(names.clone().into_iter().step_by(7));
            names.shuffle(&mut rng);
            for some in names.chunks(12) {
                let mut by_source: BTreeMap<Uuid, Vec<String>> = BTreeMap::new();
                some.iter().for_each(|(id, name)| by_source.entry(id.0).or_default().push(name.clone()));
                for (id, names) in by_source {
                    let (env, tenant) = (&t.world.env, t.world.tenant_id);
                    jobs::retry_failures(env, tenant, SourceId(id), &names, "test").await.expect("a job");
                }
                t.run().await;
            }
        }
        let who = caller(&t).await;
        assert_eq!(grouped(&t).await, expected(), "turn {turn}");
        assert_eq!(seen(&t, &who).await, wanted, "turn {turn}");
    }
}

/// Everything that is derived, as it stands in the tables.
async fn dump(t: &Sources) -> Value {
    let sql = "select jsonb_build_object(
                   'records', (select jsonb_agg(to_jsonb(c) order by c.id) from client_intelligence c),
                   'decisions', (select count(*) from client_decisions),
                   'documents', (select jsonb_agg(to_jsonb(d) order by d.id) from source_documents d),
                   'mentions', (select count(*) from document_mentions),
                   'dirty', (select count(*) from tributary.dirty_clients))";
    sqlx::query_scalar(sql).fetch_one(&mut *t.world.conn().await).await.expect("a dump")
}

async fn client(t: &Sources, caller: &Caller, name: &str) -> ClientId {
    clients::find_one(&t.world.env, caller, name).await.unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_and_a_split_are_honoured_and_undone_without_a_trace() {
    let (t, who) = known().await;
    let env = &t.world.env;
    let before = dump(&t).await;
    let (alder, tern) = (client(&t, &who, "Alder Joinery").await, client(&t, &who, "Tern Tiles").await);

    // Two clients are one.
    let merged = decide::merge(env, &who, tern, alder).await.expect("merged");
    let whole = clients::whole(env, &who, tern).await.expect("the client by the other's id");
    assert_eq!((merged, whole.id, whole.records.len()), (alder, alder, 3));
    let owes = whole.facts.iter().find(|fact| fact.name == "ar_balance").expect("a balance");
    assert_eq!(in_words("ar_balance", &owes.value), "138.50 USD");
    let again = decide::merge(env, &who, alder, tern).await.expect_err("they are one");
    assert!(matches!(again, ActError::Conflict(_)), "{again:?}");
    // It holds when everything is read again.
    for provider in [HUBSPOT, QUICKBOOKS] {
        let id: Uuid = sqlx::query_scalar("select id from connected_sources where provider = $1")
            .bind(provider.name)
            .fetch_one(&mut *t.world.conn().await)
            .await
            .expect("a source");
        t.sync_as(SourceId(id), Some(JobKind::Full)).await;
    }
    t.run().await;
    assert_eq!(clients::whole(env, &who, tern).await.expect("a client").id, alder);
    let decision = whole.decisions[0].decision.id;
    let stays = decide::split(env, &who, alder, Part::Record(tern.0)).await.expect_err("a person joined it");
    assert!(matches!(stays, ActError::Conflict(_)), "{stays:?}");
    decide::undo(env, &who, alder, decision).await.expect("undone");
    assert_eq!(dump(&t).await, before, "a merge left something behind");

    // A record is not of its client, nor is a person.
    let whole = clients::whole(env, &who, alder).await.expect("a client");
    let books = whole.records.iter().find(|record| record.id != alder.0).expect("a record");
    let apart = decide::split(env, &who, alder, Part::Record(books.id)).await.expect("split").expect("a client");
    assert_eq!(apart.0, books.id);
    let person = whole.people[0].id;
    decide::split(env, &who, alder, Part::Record(person)).await.expect("split");
    let left = clients::whole(env, &who, alder).await.expect("a client");
    assert_eq!((left.records.len(), left.people.len()), (1, 0));
    for id in [apart, ClientId(person)] {
        let whole = clients::whole(env, &who, id).await.expect("a client of its own");
        assert_eq!(whole.decisions.len(), 1);
        decide::undo(env, &who, id, whole.decisions[0].decision.id).await.expect("undone");
    }
    assert_eq!(dump(&t).await, before, "a split left something behind");

    // Another tenant's decisions are nobody's business.
    let other = t.world.other_tenant("somebody else").await;
    let (stranger, _) = t.world.caller(other, &[Scope::Service]).await;
    for refused in [
        decide::merge(env, &stranger, alder, tern).await.map(drop),
        decide::split(env, &stranger, alder, Part::Record(books.id)).await.map(drop),
        curated::say(env, &stranger, alder, "industry", "Spying").await.map(drop),
    ] {
        assert!(matches!(refused, Err(ActError::NotFound(_))), "{refused:?}");
    }
    assert_eq!(dump(&t).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn contacts_belong_to_the_client_of_their_address_or_company() {
    let (t, who) = known().await;
    let env = &t.world.env;
    let mut ids = Vec::new();
    for (email, company, of) in [
        ("new@alderjoinery.test", None, Some("Alder Joinery")),
        ("pat@gmail.com", Some("cedarbrook nurseries ltd"), Some("Cedarbrook Nurseries")),
        ("office@ledgerhouse.test", None, None),
        ("somebody@gmail.com", None, None),
        ("nell.osprey@gmail.com", None, Some("Osprey Works")),
        ("x@alderjoinery.test", Some("Tern Tiles"), Some("Alder Joinery")),
    ] {
        let new = store::contacts::NewContact {
            email: Some(email.into()),
            company: company.map(str::to_owned),
            ..Default::default()
        };
        let id = engine::contacts::create(env, &who, new).await.expect("a contact");
        let found = clients::of_contact(env, &who, id).await.expect("an answer").client.map(|of| of.client_name);
        assert_eq!(found.as_deref(), of, "{email}");
        ids.push(id);
    }
    let alder = client(&t, &who, "Alder Joinery").await;
    let contacts = async || clients::whole(env, &who, alder).await.expect("a client").contacts;
    assert_eq!(contacts().await.len(), 2);
    decide::split(env, &who, alder, Part::Contact(ids[0])).await.expect("split");
    assert_eq!(contacts().await.iter().map(|contact| contact.id).collect::<Vec<_>>(), [ids[5].0]);
    decide::add_contact(env, &who, alder, ids[3]).await.expect("added");
    assert_eq!(contacts().await.len(), 2);
    // Their documents are the client's.
    sqlx::query("update source_documents set contact_id = $1 where title = 'Wagtails of Europe'")
        .bind(ids[3].0)
        .execute(&mut *t.world.conn().await)
        .await
        .expect("written");
    let (timeline, _) = clients::timeline(env, &who, alder, false, None, 50).await.expect("a timeline");
    assert!(timeline.iter().any(|one| one.title.as_deref() == Some("Wagtails of Europe")), "{timeline:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn people_say_to_which_client_a_contact_belongs_and_take_it_back() {
    let (t, who) = known().await;
    let env = &t.world.env;
    let of = async |contact| {
        let of = clients::of_contact(env, &who, contact).await.expect("an answer");
        let why = of.client.as_ref().and_then(|client| clients::why(Some(&client.matched_by)));
        (of.client.map(|client| client.client_name), why, of.said.map(|said| said.in_words()))
    };
    let contact = async |name: &str, email: &str| {
        let new = store::contacts::NewContact {
            first_name: Some(name.into()),
            email: Some(email.into()),
            ..Default::default()
        };
        engine::contacts::create(env, &who, new).await.expect("a contact")
    };
    let some = |text: &str| Some(text.to_owned());
    let (alder, tern) = (client(&t, &who, "Alder Joinery").await, client(&t, &who, "Tern Tiles").await);
    let (nobodys, alders) = (contact("Pat", "pat@gmail.com").await, contact("Kim", "kim@alderjoinery.test").await);
    let before = dump(&t).await;
    assert_eq!(of(nobodys).await, (None, None, None));
    let matched = of(alders).await;
    assert_eq!(matched, (some("Alder Joinery"), some("matched by domain alderjoinery.test"), None));
    let refused = decide::add_contact(env, &who, alder, alders).await.expect_err("it is there");
    assert!(matches!(refused, ActError::Conflict(_)), "{refused}");

    // One that matches nothing, and one that matches another client.
    for id in [nobodys, alders] {
        decide::add_contact(env, &who, tern, id).await.expect("added");
        let (client, why, said) = of(id).await;
        assert_eq!((client, why), (some("Tern Tiles"), some("joined by a person")));
        assert!(said.is_some_and(|said| said.contains(" belongs to Tern Tiles")));
    }
    // Said otherwise, the last word counts.
    decide::add_contact(env, &who, alder, nobodys).await.expect("moved");
    assert_eq!(of(nobodys).await.0, some("Alder Joinery"));
    // A contact joins no records: the one that it was added to can still be set apart.
    decide::split(env, &who, alder, Part::Record(alder.0)).await.expect("split");
    let whole = clients::whole(env, &who, alder).await.expect("a client");
    let split = whole.decisions.iter().find(|decided| decided.decision.kind == "split").expect("a decision");
    decide::undo(env, &who, alder, split.decision.id).await.expect("undone");

    // Taken back on the client's page, or at the contact, also where it was set apart.
    let whole = clients::whole(env, &who, alder).await.expect("a client");
    let said = whole.decisions.iter().find(|decided| decided.in_words().starts_with("Pat ")).expect("a decision");
    decide::undo(env, &who, alder, said.decision.id).await.expect("undone");
    decide::undo_contact(env, &who, alders).await.expect("undone");
    assert_eq!((of(nobodys).await, of(alders).await), ((None, None, None), matched.clone()));
    decide::split(env, &who, alder, Part::Contact(alders)).await.expect("split");
    assert_eq!(of(alders).await, (None, None, some("Kim belongs to no client")));
    decide::undo_contact(env, &who, alders).await.expect("undone");
    assert_eq!(of(alders).await, matched);
    assert!(matches!(decide::undo_contact(env, &who, alders).await, Err(ActError::NotFound(_))));
    assert_eq!(dump(&t).await, before, "undone without a trace");

    let other = t.world.other_tenant("somebody else").await;
    let (stranger, _) = t.world.caller(other, &[Scope::Service]).await;
    for refused in [
        decide::add_contact(env, &stranger, alder, nobodys).await.map(drop),
        decide::undo_contact(env, &stranger, alders).await,
    ] {
        assert!(matches!(refused, Err(ActError::NotFound(_))), "S17: {refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_people_write_is_found_kept_corrected_and_withdrawn() {
    let (t, who) = known().await;
    let env = &t.world.env;
    let before = dump(&t).await;
    let alder = client(&t, &who, "Alder Joinery").await;
    curated::say(env, &who, alder, "industry", "Fine joinery").await.expect("said");
    curated::say(env, &who, alder, "Opening hours", "Closed on Wednesdays for the zeppelin").await.expect("said");
    let whole = curated::say(env, &who, alder, "summary", "Makes stairs.").await.expect("said");
    let fact = |whole: &clients::WholeClient, name: &str| {
        whole.facts.iter().find(|fact| fact.name == name).cloned().unwrap_or_else(|| panic!("no {name}"))
    };
    let industry = fact(&whole, "industry");
    assert_eq!(
        (industry.value.as_str(), industry.said.as_ref().map(|said| said.by.as_str())),
        (Some("Fine joinery"), Some("test"))
    );
    assert_eq!(industry.also[0].value, "FACILITIES_SERVICES", "what records say is not lost");
    assert_eq!(whole.name, "Alder Joinery");

    // It is searched like everything, and leads to the client.
    let found = async |words: &str| {
        let query = Query { text: words.into(), k: 5, ..Query::default() };
        let hits = Box::pin(recall::search(env, &who, &query)).await.expect("an answer").hits;
        let ids: Vec<Uuid> = hits.iter().map(|hit| hit.document_id).collect();
        let of = env.db.read(&who, async |tx| store::clients::of_documents(tx, &ids).await).await.expect("clients");
        of.into_iter().any(|(document, client)| Some(&document) == ids.first() && client == alder.0)
    };
    assert!(found("closed for the zeppelin on Wednesdays").await);
    let provenance = "select count(*) from client_intelligence c join source_documents d on d.id = c.document_id
        where (c.embedding_model, c.embedding_text_sha256) is distinct from (d.embedding_model, d.embedding_text_sha256)
            or d.embedding_model is null";
    assert_eq!(t.count(provenance).await, 0, "the provenance of a client is not its document's");
    assert!(t.count("select count(*) from client_intelligence where embedding_model is not null").await > 1);

    // A sync overwrites none of it; neither does a merge.
    let company = t.fakes.hubspot().ids("companies").remove(0);
    t.fakes.hubspot().patch("companies", &company, json!({ "industry": "CONSTRUCTION", "description": "Other words" }));
    let hubspot: Uuid = sqlx::query_scalar("select id from connected_sources where provider = 'hubspot'")
        .fetch_one(&mut *t.world.conn().await)
        .await
        .expect("a source");
    t.sync(SourceId(hubspot)).await;
    t.run().await;
    let whole = clients::whole(env, &who, alder).await.expect("a client");
    assert_eq!(fact(&whole, "industry").value, "Fine joinery");
    assert_eq!(fact(&whole, "industry").also[0].value, "CONSTRUCTION");
    assert_eq!((fact(&whole, "summary").value, fact(&whole, "summary").also.len()), (json!("Makes stairs."), 1));

    // Corrected, then withdrawn, each by its name.
    curated::say(env, &who, alder, "opening_hours", "Open every day").await.expect("said");
    assert!(!found("closed for the zeppelin on Wednesdays").await);
    let missing = curated::withdraw(env, &who, alder, "employees").await.expect_err("nobody said so");
    assert!(matches!(missing, ActError::NotFound(_)));
    for name in ["opening_hours", "industry"] {
        curated::withdraw(env, &who, alder, name).await.expect("withdrawn");
    }
    let whole = curated::withdraw(env, &who, alder, "summary").await.expect("withdrawn");
    assert_eq!(fact(&whole, "industry").value, "CONSTRUCTION");
    assert_eq!(t.count("select count(*) from client_intelligence where source_id is null").await, 0);
    let texts = "select count(*) from source_documents where external_id like 'client:hand/%' and deleted_at is null";
    assert_eq!(t.count(texts).await, 0, "a withdrawn fact is still found");
    assert_eq!(before["decisions"], 0);
    for odd in ["", " ", &"x".repeat(5_001)] {
        let refused = curated::say(env, &who, alder, "summary", odd).await.expect_err("no text");
        assert!(matches!(refused, ActError::Invalid(_)));
    }
}

/// Has upkeep match what waits.
async fn upkeep(t: &Sources) {
    let mut tx = t.world.env.db.begin().await.expect("a transaction");
    let queue = store::queue::Queue::new("upkeep").expect("a queue");
    queue.send(&mut tx, t.world.tenant_id, &[json!({ "task": "syncs" })]).await.expect("sent");
    tx.commit().await.expect("committed");
    t.run().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_was_shared_is_one_clients_when_the_other_goes() {
    let (t, who) = known().await;
    let env = &t.world.env;
    let new = store::contacts::NewContact { email: Some("office@ledgerhouse.test".into()), ..Default::default() };
    let contact = engine::contacts::create(env, &who, new).await.expect("a contact");
    let none = clients::of_contact(env, &who, contact).await.expect("an answer").client;
    assert!(none.is_none(), "it is a bookkeeper's");
    let gone = "delete from client_intelligence where client_name = 'Jasper Masonry' and external_id like 'customer:%'";
    sqlx::query(gone).execute(&mut *t.world.conn().await).await.expect("gone");
    upkeep(&t).await;
    let found = clients::of_contact(env, &who, contact).await.expect("an answer").client.map(|of| of.client_name);
    assert_eq!(found.as_deref(), Some("Iris Bakery"));
}

/// A client that somebody wrote with SQL, as it was possible before, has no authors.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_was_written_by_hand_keeps_its_name_and_its_facts() {
    let (t, who) = known().await;
    let env = &t.world.env;
    sqlx::query(
        "insert into client_intelligence (id, tenant_id, client_name, key_facts, identity, keys)
         select gen_random_uuid(), $1, 'Alder Joinery Ltd.', '{\"parking\": \"in the yard\"}', i, tributary.client_keys('hand/x', i)
         from (select '{\"kind\": \"organisation\", \"names\": [\"Alder Joinery Ltd.\"]}'::jsonb as i) w",
    )
    .bind(t.world.tenant_id.0)
    .execute(&mut *t.world.conn().await)
    .await
    .expect("written");
    upkeep(&t).await;
    let alder = client(&t, &who, "Alder Joinery").await;
    let whole = curated::say(env, &who, alder, "summary", "Makes stairs.").await.expect("said");
    assert!(whole.facts.iter().any(|fact| fact.value == "in the yard"), "{:?}", whole.facts);
    let whole = curated::withdraw(env, &who, alder, "summary").await.expect("withdrawn");
    assert!(whole.facts.iter().any(|fact| fact.value == "in the yard"), "{:?}", whole.facts);
    let named = "select count(*) from client_intelligence
        where source_id is null and client_name = 'Alder Joinery Ltd.' and identity ->> 'kind' = 'organisation'";
    assert_eq!(t.count(named).await, 1, "it lost its name");
}

/// As during a first sync, when the people of a company come before it is matched.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_is_listed_when_it_is_matched_and_counted_before() {
    let (t, who) = known().await;
    let env = &t.world.env;
    let listed = async || {
        let page = clients::list(env, &who, None, None, 200).await.expect("clients");
        (page.n, page.clients.len() as i64, page.n_unmatched)
    };
    let before = listed().await;
    assert_eq!((before.0, before.2), (before.1, 0));
    sqlx::query(
        "insert into client_intelligence (id, tenant_id, source_id, external_id, client_name, identity, keys)
         select gen_random_uuid(), $1, s.id, 'contact:new' || n, 'Person ' || n, i, tributary.client_keys(s.id || '/contact:new' || n, i)
         from connected_sources s, generate_series(1, 3) n, lateral (select jsonb_build_object('kind', 'person', 'names', '[]'::jsonb,
             'emails', jsonb_build_array('p' || n || case n when 3 then '@gmail.com' else '@alderjoinery.test' end)) as i) w
         where s.provider = 'hubspot'",
    )
    .bind(t.world.tenant_id.0)
    .execute(&mut *t.world.conn().await)
    .await
    .expect("written");
    assert_eq!(listed().await, (before.0, before.1, 3), "nobody knows yet whose people they are");
    assert!(clients::find(env, &who, "Person 1").await.expect("an answer").is_empty());
    // One that is matched again stays where it is meanwhile.
    let marked = "update client_intelligence set marks = marks + 1 where matched_marks > 0";
    sqlx::query(marked).execute(&mut *t.world.conn().await).await.expect("marked");
    assert_eq!(listed().await, (before.0, before.1, 3));
    upkeep(&t).await;
    assert_eq!(listed().await, (before.0 + 1, before.1 + 1, 0), "two are of a company, one is a client");
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_go_leave_the_rest_of_their_client() {
    let (t, who) = known().await;
    let env = &t.world.env;
    let alder = client(&t, &who, "Alder Joinery").await;
    curated::say(env, &who, alder, "industry", "Fine joinery").await.expect("said");
    let company = t.fakes.hubspot().ids("companies").remove(0);
    t.fakes.hubspot().archive("companies", &company);
    let hubspot: Uuid = sqlx::query_scalar("select id from connected_sources where provider = 'hubspot'")
        .fetch_one(&mut *t.world.conn().await)
        .await
        .expect("a source");
    t.sync(SourceId(hubspot)).await;
    t.run().await;
    // The customer and the person are one client still, by their domain, and what a person wrote is theirs.
    let left = client(&t, &who, "Alder Joinery").await;
    let whole = clients::whole(env, &who, left).await.expect("a client");
    assert_eq!((whole.records.len(), whole.people.len()), (2, 1), "{whole:?}");
    assert!(whole.facts.iter().any(|fact| fact.value == "Fine joinery"));

    // A source that is forgotten takes its records; upkeep matches the rest.
    let rest = "delete from client_intelligence where source_id = (select id from connected_sources where provider = 'quickbooks')";
    sqlx::query(rest).execute(&mut *t.world.conn().await).await.expect("gone");
    let waiting = "select count(*) from client_intelligence where marks <> matched_marks";
    assert!(t.count(waiting).await > 0, "nobody knows that they must be matched again");
    let dangling = "select count(*) from client_intelligence c
        where not exists (select from client_intelligence l where l.id = c.client_id and l.client_id = l.id)";
    upkeep(&t).await;
    assert_eq!((t.count(waiting).await, t.count(dangling).await), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_page_say_how_many_and_are_filtered_by_text() {
    let (t, who) = known().await;
    let env = &t.world.env;
    let (mut after, mut names, mut n_pages) = (None, Vec::new(), 0);
    let n = i64::try_from(expected().len()).expect("a count");
    loop {
        let page = clients::list(env, &who, None, after, 7).await.expect("a page");
        assert_eq!(page.n, n);
        names.extend(page.clients.iter().map(|client| client.id));
        n_pages += 1;
        after = page.next_after;
        if after.is_none() {
            break;
        }
    }
    let mut once = names.clone();
    once.sort();
    once.dedup();
    assert_eq!((names.len(), once.len(), n_pages), (n as usize, n as usize, n as usize / 7 + 1));
    for (text, found) in [
        ("alder", &["Alder Joinery"][..]),
        ("cedarbrok", &["Cedarbrook Nurseries"]),
        ("siskin.test", &["Siskin Export"]),
        ("NELL.OSPREY", &["Osprey Works"]),
        ("nobody", &[]),
    ] {
        let page = clients::list(env, &who, Some(text), None, 50).await.expect("a page");
        let names: Vec<&str> = page.clients.iter().map(|client| client.name.as_str()).collect();
        assert_eq!((names.as_slice(), page.n), (found, found.len() as i64), "{text}");
    }
}
