//! Sources, read from providers that answer as the real ones do: what lands in memory, what it costs, what is taken away again.

use chrono::TimeDelta;
use connectors::pull::ALL;
use domain::{Clock, JobKind, SourceId, Transport};
use engine::pull::{connect, jobs};
use fakes::Fakes;
use serde_json::{Value, json};
use testkit::sources::{DRIVE, HUBSPOT, QUICKBOOKS};
use testkit::{Sources, cluster};

#[tokio::test(flavor = "multi_thread")]
async fn every_record_of_every_provider_lands_once_and_a_second_sync_changes_nothing() {
    let t = Sources::new().await;
    // Letters bring documents of their own, and rules leave some of them out: `gmail` and `outlook` count those.
    for provider in ALL.iter().copied().filter(|provider| provider.mailbox.is_none()) {
        let id = t.connect(provider).await;
        t.run().await;
        let (source, job) = (t.source(id).await, t.jobs(id).await.remove(0));
        let ended = (source.status.as_str(), job.status.as_str(), job.kind.as_str());
        assert_eq!(ended, ("active", "completed", "full"), "{job:?}");
        assert!(source.next_sync_at.is_some() && source.last_successful_sync_at.is_some() && source.cursors.is_some());
        let expected = expected(&t, provider);
        assert_eq!(t.documents(id).await, expected, "{provider}");
        assert_eq!(job.n_created, i64::try_from(expected.len()).expect("a count"));
        assert!(job.embed_texts > 0 && job.embed_calls > 0, "{job:?}");

        let (calls, rows) = (t.world.env.embedders.configured().calls(), counts(&t).await);
        let job_id = t.sync_as(id, Some(JobKind::Full)).await;
        t.run().await;
        let again = t.jobs(id).await.remove(0);
        assert_eq!((again.id, again.status.as_str()), (job_id.0, "completed"));
        assert_eq!((again.n_created, again.n_updated, again.n_deleted), (0, 0, 0), "{again:?}");
        assert_eq!(again.n_unchanged, job.n_created);
        assert_eq!(t.world.env.embedders.configured().calls(), calls, "{provider}: the same texts were embedded again");
        assert_eq!(counts(&t).await, rows, "{provider}");
    }
}

/// The names of the provider's records, as we call them.
pub fn expected(t: &Sources, provider: engine::pull::Provider) -> Vec<String> {
    let named = |kind: &str, ids: Vec<String>| ids.iter().map(|id| format!("{kind}:{id}")).collect::<Vec<_>>();
    let (crm, books) = (t.fakes.hubspot(), t.fakes.quickbooks());
    let mut all = match provider.name {
        "hubspot" => [
            named("contact", crm.ids("contacts")),
            named("company", crm.ids("companies")),
            named("deal", crm.ids("deals")),
        ]
        .concat(),
        "google_drive" => named("file", t.fakes.drive().readable_ids()),
        _ => [named("customer", books.ids("Customer")), named("invoice", books.ids("Invoice"))].concat(),
    };
    all.sort();
    all
}

async fn counts(t: &Sources) -> Vec<i64> {
    let mut counts = Vec::new();
    for table in ["source_documents", "document_chunks", "client_intelligence", "document_mentions"] {
        counts.push(t.count(&format!("select count(*) from {table}")).await);
    }
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_is_embedded_when_it_changes_and_only_then() {
    let t = Sources::empty().await;
    let crm = t.fakes.hubspot();
    let contact = crm.put("contacts", json!({ "properties": { "firstname": "Ada", "email": "ada@example.com" } }));
    let id = t.connect(HUBSPOT).await;
    t.run().await;
    assert_eq!(t.world.env.embedders.configured().calls(), 1, "one record, one call");

    t.sync_as(id, Some(JobKind::Full)).await;
    t.run().await;
    assert_eq!(t.world.env.embedders.configured().calls(), 1, "the same text again");

    // Its time moves and its text does not: the row says so, without another call.
    let row = "from source_documents where external_id like 'contact:%'";
    let updated = format!("select (extract(epoch from updated_at) * 1000000)::bigint {row}");
    let (before, revision) = (t.count(&updated).await, t.count(&format!("select revision::bigint {row}")).await);
    crm.patch("contacts", &contact, json!({ "firstname": "Ada" }));
    t.sync(id).await;
    t.run().await;
    assert_eq!(t.world.env.embedders.configured().calls(), 1, "only its time moved");
    assert!(t.count(&updated).await > before, "its time moved, and nobody can tell");
    assert_eq!(t.count(&format!("select revision::bigint {row}")).await, revision);

    crm.patch("contacts", &contact, json!({ "jobtitle": "Owner" }));
    t.sync(id).await;
    t.run().await;
    assert_eq!(t.world.env.embedders.configured().calls(), 2, "a new text");
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_land_where_the_map_says() {
    let t = Sources::empty().await;
    let crm = t.fakes.hubspot();
    let company = crm.put(
        "companies",
        json!({ "properties": { "name": "Larkfield Grounds", "domain": "larkfield.example", "industry": "LANDSCAPING",
            "numberofemployees": "42", "annualrevenue": "3100000", "description": "Keeps parks." } }),
    );
    let contact = crm.put(
        "contacts",
        json!({ "properties": { "firstname": "Ada", "lastname": "Quill", "email": "ada@larkfield.example",
            "company": "Larkfield Grounds", "jobtitle": "Buyer", "lifecyclestage": "customer" } }),
    );
    crm.associate("contacts", &contact, "companies", &company);
    let deal = |name: &str, stage: &str, amount: &str, close: &str| {
        let deal = json!({ "properties": { "dealname": name, "dealstage": stage, "amount": amount, "closedate": close,
            "pipeline": "default" } });
        let id = crm.put("deals", deal);
        crm.associate("deals", &id, "companies", &company);
        id
    };
    let late = deal("Mowers", "contractsent", "900.50", "2026-12-24T00:00:00.000Z");
    let soon = deal("Ploughs", "qualifiedtobuy", "100", "2026-12-01T00:00:00.000Z");
    deal("Old", "closedwon", "5", "2026-01-01T00:00:00.000Z");
    deal("Lost, of another pipeline", "189340027", "7", "2026-11-01T00:00:00.000Z");
    let books = t.fakes.quickbooks();
    let customer = books.put(
        "Customer",
        json!({ "DisplayName": "Larkfield", "CompanyName": "Larkfield Grounds", "Balance": 250.25,
            "PrimaryEmailAddr": { "Address": "pay@larkfield.example" }, "BillAddr": { "Line1": "1 Mill Lane", "City": "Harrow" } }),
    );
    for (n, total) in [("1", 100.10), ("2", 200.20), ("3", 300.30), ("4", 1.0), ("5", 2.0), ("6", 3.0)] {
        let invoice = json!({ "CustomerRef": { "value": customer }, "TotalAmt": total, "Balance": 0,
            "DocNumber": format!("INV-{n}"), "TxnDate": format!("2026-0{n}-01"), "DueDate": format!("2026-0{n}-28") });
        books.put("Invoice", invoice);
    }
    let (hubspot, quickbooks) = (t.connect(HUBSPOT).await, t.connect(QUICKBOOKS).await);
    t.run().await;

    let known = t.client(hubspot, &format!("contact:{contact}")).await.expect("the contact");
    let facts = json!({ "contact_role": "Buyer", "lifecycle": "customer" });
    let expected = json!({ "name": "Larkfield Grounds", "industry": "LANDSCAPING", "summary": null, "facts": facts });
    assert_eq!(known, expected);
    let known = t.client(hubspot, &format!("company:{company}")).await.expect("the company");
    assert_eq!(known["industry"], "LANDSCAPING");
    assert_eq!(known["summary"], "Keeps parks.");
    let facts = &known["facts"];
    assert_eq!((&facts["employees"], &facts["domain"]), (&json!("42"), &json!("larkfield.example")));
    let deals = facts["open_deals"].as_array().expect("deals").iter();
    assert_eq!(deals.filter_map(|deal| deal["id"].as_str()).collect::<Vec<_>>(), [&soon, &late], "{facts}");
    assert_eq!((&facts["deal_stage"], &facts["deal_amount"]), (&json!("qualifiedtobuy"), &json!("100")), "{facts}");
    let known = t.client(quickbooks, &format!("customer:{customer}")).await.expect("the customer");
    let facts = &known["facts"];
    let invoices = facts["invoice_history"].as_array().expect("invoices").iter();
    let numbers: Vec<&str> = invoices.filter_map(|invoice| invoice["doc_number"].as_str()).collect();
    assert_eq!(numbers, ["INV-6", "INV-5", "INV-4", "INV-3", "INV-2"]);
    assert_eq!(
        (facts["ar_balance"].as_f64(), facts["total_lifetime_value"].as_f64()),
        (Some(250.25), Some(606.6)),
        "{facts}"
    );

    let orphans =
        "select count(*) from client_intelligence c, jsonb_each(c.evidence) e, jsonb_array_elements_text(e.value) d
                   where not exists (select from source_documents s where s.id = d::uuid and s.deleted_at is null)";
    assert_eq!(t.count(orphans).await, 0, "a fact cites what is not there");
    let uncited =
        "select count(*) from client_intelligence c, jsonb_object_keys(c.key_facts) f where not c.evidence ? f";
    assert_eq!(t.count(uncited).await, 0, "a fact cites nothing");
    let spoken = "select count(*) from source_documents where document_type = 'client' and deleted_at is null";
    assert_eq!(t.count(spoken).await, 2, "clients with roll-ups are found by them, others by their own record");
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_and_deletions_follow_and_facts_are_withdrawn() {
    let t = Sources::new().await;
    let (hubspot, quickbooks) = (t.connect(HUBSPOT).await, t.connect(QUICKBOOKS).await);
    let drive = t.connect(DRIVE).await;
    t.run().await;
    let company: String = sqlx::query_scalar(
        "select external_id from client_intelligence where source_id = $1 and key_facts ? 'open_deals' order by 1 limit 1",
    )
    .bind(hubspot.0)
    .fetch_one(&mut *t.world.conn().await)
    .await
    .expect("a company with a deal");

    let crm = t.fakes.hubspot();
    crm.ids("deals").iter().for_each(|deal| crm.archive("deals", deal));
    let files = t.fakes.drive().readable_ids();
    t.fakes.drive().trash(&files[0], true);
    t.fakes.drive().remove(&files[1]);
    t.fakes.drive().set_text(&files[2], "# Rewritten\n\nThe yard moves to Mill Lane in spring.");
    let invoice = t.fakes.quickbooks().ids("Invoice").remove(0);
    t.fakes.quickbooks().delete("Invoice", &invoice);
    for id in [hubspot, quickbooks, drive] {
        t.sync(id).await;
    }
    t.run().await;
    for (id, provider) in [(hubspot, HUBSPOT), (quickbooks, QUICKBOOKS), (drive, DRIVE)] {
        let job = t.jobs(id).await.remove(0);
        assert_eq!((job.kind.as_str(), job.status.as_str()), ("delta", "completed"), "{job:?}");
        assert_eq!(t.documents(id).await, expected(&t, provider), "{provider}");
    }
    let after = t.client(hubspot, &company).await.expect("a client");
    for fact in ["open_deals", "deal_stage", "deal_amount"] {
        assert!(after["facts"].get(fact).is_none(), "{fact} of deleted deals is still told: {after}");
    }
    let text: String =
        sqlx::query_scalar("select text from source_documents where source_id = $1 and external_id = $2")
            .bind(drive.0)
            .bind(format!("file:{}", files[2]))
            .fetch_one(&mut *t.world.conn().await)
            .await
            .expect("a text");
    assert!(text.contains("Mill Lane"), "{text}");

    t.fakes.drive().trash(&files[0], false);
    t.sync(drive).await;
    t.run().await;
    assert_eq!(t.documents(drive).await, expected(&t, DRIVE), "what came back is not there");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_pass_takes_away_what_the_provider_no_longer_has() {
    let t = Sources::new().await;
    let id = t.connect(HUBSPOT).await;
    t.run().await;
    let crm = t.fakes.hubspot();
    let gone = crm.ids("contacts").remove(0);
    crm.purge("contacts", &gone); // no archive tells of it
    t.sync_as(id, Some(JobKind::Full)).await;
    t.run().await;
    let job = t.jobs(id).await.remove(0);
    assert_eq!((job.status.as_str(), job.n_deleted), ("completed", 1), "{job:?}");
    assert_eq!(t.documents(id).await, expected(&t, HUBSPOT));
    assert!(t.client(id, &format!("contact:{gone}")).await.is_none(), "a client outlived its record");
    assert_eq!(t.count("select count(*) from tributary.sync_seen").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_world_over_mcp_over_rest_and_from_files_is_the_same_memory() {
    let (over_rest, over_mcp, of_files) = (Sources::new().await, Sources::new().await, Sources::new().await);
    let rest = over_rest.connect(HUBSPOT).await;
    let mcp = over_mcp.connect_over(HUBSPOT, Transport::Mcp, None).await.expect("a source");
    let (env, tenant) = (&of_files.world.env, of_files.world.tenant_id);
    let files = connect::with_fixtures(env, tenant, HUBSPOT).await.expect("a source");
    for (t, id) in [(&over_rest, rest), (&over_mcp, mcp), (&of_files, files)] {
        t.run().await;
        assert_eq!(t.jobs(id).await[0].status.as_str(), "completed", "{:?}", t.jobs(id).await[0]);
    }
    let of_rest = (everything(&over_rest, rest).await, facts(&over_rest, rest).await);
    assert!(!of_rest.0.is_empty() && !of_rest.1.is_empty());
    assert_eq!((everything(&over_mcp, mcp).await, facts(&over_mcp, mcp).await), of_rest, "MCP and REST differ");
    assert_eq!((everything(&of_files, files).await, facts(&of_files, files).await), of_rest, "the files differ");
    assert!(over_mcp.fakes.requests("/mcp/hubspot/tools/call") > 0, "MCP was not spoken");
    assert_eq!(over_mcp.fakes.requests("/hubspot/crm"), 0, "MCP's pages came over REST");
    let written = over_mcp.fakes.ledger().iter().filter(|seen| seen.path.contains("create")).count();
    assert_eq!(written, 0, "a tool that writes was called");
}

async fn everything(t: &Sources, id: SourceId) -> Vec<(String, String, Option<String>, String, Value)> {
    let sql = "select external_id, document_type, title, text, coalesce(raw_payload, 'null') from source_documents
               where source_id = $1 and deleted_at is null order by external_id";
    sqlx::query_as(sql).bind(id.0).fetch_all(&mut *t.world.conn().await).await.expect("documents")
}

async fn facts(t: &Sources, id: SourceId) -> Vec<(String, String, Option<String>, Option<String>, Value)> {
    let sql = "select external_id, client_name, industry, summary, key_facts from client_intelligence
               where source_id = $1 order by external_id";
    sqlx::query_as(sql).bind(id.0).fetch_all(&mut *t.world.conn().await).await.expect("clients")
}

#[tokio::test(flavor = "multi_thread")]
async fn facts_are_the_same_in_whatever_order_records_arrive() {
    use rand::SeedableRng as _;
    use rand::seq::SliceRandom as _;

    let first = Sources::new().await;
    let id = first.connect(HUBSPOT).await;
    first.run().await;
    let (wanted, all) = (facts(&first, id).await, first.documents(id).await);
    let seed = rand::random();
    println!("seed {seed}");
    let mut rng = rand::rngs::StdRng::seed_from_u64(seed);
    for _ in 0..2 {
        // The same records a few at a time, shuffled and some twice, derived as they come.
        let t = Sources::empty().await;
        let id = t.connect(HUBSPOT).await;
        t.run().await;
        let mut names = [all.clone(), all.iter().step_by(3).cloned().collect()].concat();
        names.shuffle(&mut rng);
        t.fakes.load_fixtures();
        for names in names.chunks(3) {
            jobs::retry_failures(&t.world.env, t.world.tenant_id, id, names, "test").await.expect("a job");
            t.run().await;
        }
        assert_eq!(facts(&t, id).await, wanted);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_sync_of_a_large_drive_takes_the_newest_and_says_so() {
    let fakes = Fakes::start().await;
    for n in 0..12 {
        fakes.drive().put_doc(&format!("Note {n}"), &format!("Text of note {n}"));
    }
    let t = Sources::with(cluster::cloned(), Clock::System, fakes, &["--drive-initial-sync-max-files", "5"]).await;
    let id = t.connect(DRIVE).await;
    t.run().await;
    let job = t.jobs(id).await.remove(0);
    assert_eq!((job.status.as_str(), job.n_created), ("completed", 5), "{job:?}");
    assert!(job.note.as_deref().is_some_and(|note| note.contains('5')), "{job:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn syncs_start_by_themselves_at_night_once_each() {
    let t = Sources::new().await;
    let id = t.connect(HUBSPOT).await;
    t.run().await;
    let next = t.source(id).await.next_sync_at.expect("a time");
    let env = &t.world.env;
    assert_eq!(jobs::sync_due(env).await.expect("syncs"), 0, "it is not night yet");
    env.clock.advance(next - env.clock.now() + TimeDelta::seconds(1));
    let (one, other) = tokio::join!(jobs::sync_due(env), jobs::sync_due(env));
    assert_eq!(one.expect("syncs") + other.expect("syncs"), 1, "two workers started it twice, or nobody did");
    t.run().await;
    let all = t.jobs(id).await;
    assert_eq!((all.len(), all[0].kind.as_str(), all[0].status.as_str()), (2, "delta", "completed"), "{all:?}");
    assert!(t.source(id).await.next_sync_at.is_some_and(|after| after > next + TimeDelta::hours(12)));
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_read_again_once_a_week_and_what_no_delta_tells_is_found() {
    let t = Sources::new().await;
    let (hubspot, drive) = (t.connect(HUBSPOT).await, t.connect(DRIVE).await);
    t.run().await;
    let purged = t.fakes.hubspot().ids("contacts").remove(0);
    t.fakes.hubspot().purge("contacts", &purged);
    let mut kinds = Vec::new();
    for _ in 0..9 {
        let (env, next) = (&t.world.env, t.source(hubspot).await.next_sync_at.expect("a time"));
        env.clock.advance(next - env.clock.now() + TimeDelta::seconds(1));
        jobs::sync_due(env).await.expect("syncs");
        t.run().await;
        let job = t.jobs(hubspot).await.remove(0);
        assert_eq!(job.status.as_str(), "completed", "{job:?}");
        kinds.push(job.kind);
        let is_there = t.documents(hubspot).await.contains(&format!("contact:{purged}"));
        assert_eq!(is_there, !kinds.contains(&JobKind::Full), "{kinds:?}");
    }
    // The seventh night, or the eighth, if it all began late in a day.
    let n_before = kinds.iter().take_while(|kind| **kind == JobKind::Delta).count();
    assert!(
        [6, 7].contains(&n_before) && kinds.iter().filter(|kind| **kind == JobKind::Full).count() == 1,
        "{kinds:?}"
    );
    let of_drive = t.jobs(drive).await;
    assert_eq!(
        of_drive.iter().filter(|job| job.kind == JobKind::Full).count(),
        1,
        "a first sync's cap would be in vain"
    );
}

/// The queue from outside: the names and results that others rely on, and who may use them.
#[tokio::test(flavor = "multi_thread")]
async fn others_work_on_the_queue_by_its_contract() {
    let t = Sources::new().await;
    let id = t.connect(HUBSPOT).await;
    let mut conn = t.world.conn().await;
    let read: (i64, i32, Value) =
        sqlx::query_as("select msg_id, read_ct, message from ingestion_read('ingestion_queue', 300, 1)")
            .fetch_one(&mut *conn)
            .await
            .expect("a message");
    let keys: Vec<&String> = read.2.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["job_id", "kind", "source_id", "tenant_id"], "ids, and neither tokens nor bodies");
    let deleted: bool = sqlx::query_scalar("select ingestion_delete('ingestion_queue', $1, $2)")
        .bind(read.0)
        .bind(read.1 + 1)
        .fetch_one(&mut *conn)
        .await
        .expect("an answer");
    assert!(!deleted, "deleted with another's receipt");
    let archived: bool = sqlx::query_scalar("select ingestion_archive('ingestion_queue', $1)")
        .bind(read.0)
        .fetch_one(&mut *conn)
        .await
        .expect("an answer");
    assert!(archived);
    let job = t.jobs(id).await.remove(0);
    assert_eq!((job.status.as_str(), job.error_message.as_deref()), ("failed", Some("max_retries_exceeded")));
    let sent: i64 = sqlx::query_scalar("select ingestion_enqueue('ingestion_queue', $1)")
        .bind(&read.2)
        .fetch_one(&mut *conn)
        .await
        .expect("sent");
    assert!(sent > read.0);
    t.run().await;
    assert_eq!(t.jobs(id).await[0].status.as_str(), "completed", "what others send is done");
    let refused = sqlx::query("select ingestion_enqueue('upkeep', '{}')").execute(&mut *conn).await;
    assert!(refused.is_err(), "a queue that is none of theirs");
    assert_eq!(t.count("select count(*) from ingestion_jobs").await, 1);
    assert_eq!(t.count("select count(*) from historical_sync_jobs").await, 0);
    for role in ["anon", "authenticated"] {
        let may = format!(
            "select count(*) from pg_proc where proname like 'ingestion\\_%' and has_function_privilege('{role}', oid, 'execute')"
        );
        assert_eq!(t.count(&may).await, 0, "{role} may use the queue");
    }
}
