//! Forgetting a contact or a tenant: nothing of it is left anywhere, and nothing of anybody else is touched.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use domain::{BlobKey, Caller, Clock, ContactId, TenantId};
use engine::channels::NewChannel;
use engine::lanes;
use store::contacts::{self, NewContact};
use store::queue::Queue;
use store::{claims, tenants};
use testkit::{World, wait_until};
use uuid::Uuid;

/// Sums up the rows of a query: how many, and their content.
type Sum = (i64, Option<String>);

async fn run(world: &World, sql: &str) {
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())).execute(&mut *world.conn().await).await.expect(sql);
}

async fn count(world: &World, sql: &str) -> i64 {
    let counted = sqlx::query_scalar(sqlx::AssertSqlSafe(sql.to_owned())).fetch_one(&mut *world.conn().await).await;
    counted.expect(sql)
}

/// Every table of ours, as the catalog has them, and whether its rows have a tenant.
async fn tables(world: &World) -> Vec<(String, bool)> {
    sqlx::query_as(
        "select format('%I.%I', n.nspname, c.relname),
             exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped)
         from pg_class c join pg_namespace n on n.oid = c.relnamespace
         where n.nspname in ('public', 'tributary', 'memory', 'pgmq', 'ai') and c.relkind in ('r', 'p') order by 1",
    )
    .fetch_all(&mut *world.conn().await)
    .await
    .expect("the catalog")
}

/// Looks for a word in every row of every table, and returns the tables that have it.
async fn tables_with(world: &World, word: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (table, _) in tables(world).await {
        // A column of bytes is looked at as text too.
        let hex: String = word.bytes().map(|byte| format!("{byte:02x}")).collect();
        let sql = format!("select count(*) from {table} t where t::text ilike '%{word}%' or t::text like '%{hex}%'");
        if count(world, &sql).await > 0 {
            found.push(table);
        }
    }
    found
}

/// The content of every table with a tenant, without the rows of one of them and without the records of removals.
async fn all_but(world: &World, tenant_id: TenantId) -> BTreeMap<String, Sum> {
    let mut sums = BTreeMap::new();
    for (table, _) in tables(world).await.into_iter().filter(|(table, has)| *has && table != "public.forgotten") {
        let sql = format!(
            "select count(*), md5(string_agg(t::text, '|' order by t::text)) from {table} t where t.tenant_id <> '{tenant_id}'"
        );
        let sum = sqlx::query_as(sqlx::AssertSqlSafe(sql)).fetch_one(&mut *world.conn().await).await.expect("a sum");
        sums.insert(table, sum);
    }
    sums
}

/// The rows of a contact, and what was made of them.
async fn of_contact(world: &World, id: ContactId) -> Vec<Sum> {
    let mut sums = Vec::new();
    for rows in [
        format!("public.contacts t where t.id = {id}"),
        format!("public.contact_keys t where t.contact_id = {id}"),
        format!("public.activities t where t.contact_id = {id}"),
        format!("public.source_documents t where t.contact_id = {id}"),
        format!(
            "public.document_chunks t join public.source_documents d on d.id = t.document_id where d.contact_id = {id}"
        ),
        format!(
            "tributary.activity_payloads t join public.activities a on a.id = t.activity_id where a.contact_id = {id}"
        ),
        format!(
            "tributary.activity_attachments t join public.activities a on a.id = t.activity_id where a.contact_id = {id}"
        ),
    ] {
        let sql = format!("select count(*), md5(string_agg(t::text, '|' order by t::text)) from {rows}");
        sums.push(sqlx::query_as(sqlx::AssertSqlSafe(sql)).fetch_one(&mut *world.conn().await).await.expect("a sum"));
    }
    sums
}

struct Filled {
    contact: ContactId,
    channel: Uuid,
    own_file: BlobKey,
    shared_file: BlobKey,
}

/// Gives a tenant a contact `{word}@example.com` whose mails and calls say `{word}text`, with everything that belongs to them.
async fn fill(world: &World, tenant_id: TenantId, word: &str) -> Filled {
    let caller = Caller::local("test", tenant_id, false);
    let new = NewChannel { provider: "generic".into(), name: format!("door {word}"), ..NewChannel::default() };
    let channel = engine::channels::add(&world.env, &caller, new).await.expect("a channel").id.0;
    let person = NewContact {
        email: Some(format!("{word}@example.com")),
        first_name: Some(word.into()),
        ..NewContact::default()
    };
    let contact = engine::contacts::create(&world.env, &caller, person).await.expect("a contact");
    contacts::add_address(&mut *world.conn().await, tenant_id, contact, &format!("{word}.private@example.com"))
        .await
        .expect("an address");
    let put =
        async |text: String| world.env.blobs.put(&world.env.db, tenant_id, Bytes::from(text)).await.expect("a blob");
    let (own_file, shared_file) = (put(format!("only {word}")).await, put("a letterhead".into()).await);
    run(world, &format!(
        "insert into activities (tenant_id, provider_id, event_key, type, raw_data, metadata)
             select '{tenant_id}', '{channel}', '{word}-' || n, 'email',
                 jsonb_build_object('source_type', 'text', 'subject', 'About {word}', 'content', '{word}text number ' || n),
                 jsonb_build_object('from', '{word}@example.com')
             from generate_series(1, 3) n;
         insert into activities (tenant_id, type, raw_data, metadata)
             values ('{tenant_id}', 'call', '{{\"source_type\": \"url\", \"content\": \"https://example.com/{word}.wav\", \"subject\": \"Call\"}}', '{{\"from\": \"{word}.private@example.com\"}}');
         insert into tributary.activity_payloads (tenant_id, activity_id, sha256, body)
             select tenant_id, id, sha256(id::text::bytea), convert_to('{word}text as it came', 'UTF8') from activities where event_key = '{word}-1' and tenant_id = '{tenant_id}';
         insert into tributary.activity_attachments (tenant_id, activity_id, ordinal, name, bytes, blob_key)
             select a.tenant_id, a.id, f.nth, '{word}.pdf', 1, f.key
             from activities a, (values (0, '{own_file}'), (1, '{shared_file}')) f (nth, key) where a.event_key = '{word}-1' and a.tenant_id = '{tenant_id}';
         insert into tributary.activity_recordings (tenant_id, activity_id, content_type, bytes, blob_key)
             select tenant_id, id, 'audio/wav', 1, '{own_file}' from activities where raw_data ->> 'content' = 'https://example.com/{word}.wav' and tenant_id = '{tenant_id}';
         insert into activity_failures (tenant_id, original_activity_id, failure_reason, raw_data)
             select tenant_id, id, 'it failed', raw_data from activities where event_key = '{word}-2' and tenant_id = '{tenant_id}'"
    ))
    .await;
    // Every activity becomes a document.
    world.run_lanes(&lanes::ALL).await;
    Filled { contact, channel, own_file, shared_file }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_contact_leaves_no_trace_and_others_keep_all_they_have() {
    let world = World::with(testkit::cluster::cloned(), Clock::System).await;
    let tenant_id = world.tenant_id;
    let elsewhere = world.other_tenant("somebody else").await;
    let (ann, ben) = (fill(&world, tenant_id, "annzebra").await, fill(&world, tenant_id, "benquokka").await);
    fill(&world, elsewhere, "annzebra").await;
    // A source's client: one fact rests on a mail of Ann's alone, one on Ben's too, one on a record of the source's. Another client rests on Ann alone.
    run(&world, &format!(
        "insert into connected_sources (id, tenant_id, provider, name) values (gen_random_uuid(), '{tenant_id}', 'hubspot', 'HubSpot');
         with cited as (
             select (select jsonb_agg(id) from source_documents where contact_id = {ann}) as ann,
                 (select jsonb_agg(id) from source_documents where contact_id in ({ann}, {ben})) as both,
                 (select jsonb_agg(id) from source_documents where contact_id = {ben}) as ben)
         insert into client_intelligence (id, tenant_id, source_id, external_id, client_name, key_facts, evidence)
             select gen_random_uuid(), s.tenant_id, s.id, 'company:' || c.nth, c.name, c.facts, c.evidence
             from connected_sources s, cited, lateral (values
                 (1, 'Mill', '{{\"mood\": \"annzebra is cross\", \"size\": 3, \"city\": \"Lisbon\"}}'::jsonb,
                     jsonb_build_object('mood', cited.ann, 'size', cited.both, 'city', cited.ben)),
                 (2, 'annzebra herself', '{{\"mood\": \"cross\"}}', jsonb_build_object('mood', cited.ann))) c (nth, name, facts, evidence)
             where s.provider = 'hubspot';
         -- What a person decided about her, and that she was ignored once.
         insert into tributary.ignored_senders (tenant_id, address, ignored_by) values ('{tenant_id}', 'Annzebra <annzebra@example.com>', 'test'), ('{tenant_id}', 'benquokka@example.com', 'test');
         insert into client_decisions (id, tenant_id, kind, record, said_by) values (gen_random_uuid(), '{tenant_id}', 'split', 'contact/{ann}', 'test'), (gen_random_uuid(), '{tenant_id}', 'split', 'contact/{ben}', 'test');
         -- What waits, was given up and was put aside.
         insert into pgmq.q_remember_activity (vt, message) select now() + interval '1 hour', jsonb_build_object('tenant_id', tenant_id, 'activity_id', id)
             from activities where contact_id = {ann};
         insert into pgmq.a_remember_activity (msg_id, read_ct, enqueued_at, vt, message)
             select row_number() over () + 1000000, 8, now(), now(), jsonb_build_object('tenant_id', tenant_id, 'activity_id', id) from activities;
         insert into tributary.parked (id, tenant_id, queue, message, reason)
             select gen_random_uuid(), tenant_id, 'embed', jsonb_build_object('tenant_id', tenant_id, 'document_id', id), 'no budget' from source_documents",
        ann = ann.contact, ben = ben.contact,
    ))
    .await;
    let (others, bens) = (all_but(&world, tenant_id).await, of_contact(&world, ben.contact).await);
    let ids: Vec<Uuid> = sqlx::query_scalar("select id from activities where contact_id = $1 union all select id from source_documents where contact_id = $1")
        .bind(ann.contact.0).fetch_all(&mut *world.conn().await).await.expect("ids");
    assert_eq!(ids.len(), 10, "four activities, their documents, and those of two files");
    assert!(tables_with(&world, "annzebra").await.len() > 8);

    let caller = Caller::local("ann's lawyer", tenant_id, true);
    let counted = engine::contacts::count(&world.env, &caller, ann.contact).await.expect("counts");
    assert_eq!((counted.activities, counted.files, counted.documents), (4, 3, 6), "{counted:?}");
    assert!(counted.chunks >= 4, "{counted:?}");
    for _ in 0..2 {
        engine::contacts::forget(&world.env, &caller, ann.contact).await.expect("asked");
    }
    assert!(engine::contacts::is_being_forgotten(&world.env, &caller, ann.contact).await.expect("an answer"));
    let at_once = engine::contacts::get(&world.env, &caller, ann.contact).await.expect("a contact");
    assert_eq!((at_once.email, at_once.first_name), (None, None), "its name and addresses go at once");
    world.run_lanes(&lanes::ALL).await;

    assert_eq!(all_but(&world, tenant_id).await, others, "another tenant's rows have changed");
    // The other tenant's contact has the same name: without that tenant, nothing has it.
    run(&world, &format!("delete from tenants where id = '{elsewhere}'")).await;
    let left = tables_with(&world, "annzebra").await;
    assert_eq!(
        left,
        ["public.connected_sources", "public.ingestion_providers"],
        "only the channel still has the name that this test gave it"
    );
    for id in ids {
        assert_eq!(tables_with(&world, &id.to_string()).await, [] as [String; 0], "a row still names {id}");
    }
    assert_eq!(of_contact(&world, ben.contact).await, bens, "another contact's rows have changed");
    let kept = "select (select count(*) from tributary.ignored_senders) + (select count(*) from client_decisions)";
    assert_eq!(count(&world, kept).await, 2, "what was said of her is still there, or what was said of Ben is not");
    let line: (String, String, i64, i64, bool) = sqlx::query_as(
        "select what, by, (removed ->> 'activities')::bigint, (removed ->> 'documents')::bigint, done_at is not null from forgotten")
        .fetch_one(&mut *world.conn().await).await.expect("one record, though it was asked for twice");
    assert_eq!(line, (format!("Contact {}", ann.contact), "ann's lawyer".into(), 4, 6, true));
    let facts: Vec<(String, serde_json::Value)> =
        sqlx::query_as("select client_name, key_facts from client_intelligence")
            .fetch_all(&mut *world.conn().await)
            .await
            .expect("clients");
    assert_eq!(
        facts,
        [("Mill".into(), serde_json::json!({ "size": 3, "city": "Lisbon" }))],
        "a fact that rested on her alone, or too many"
    );
    // Files: hers is collected a day later, the shared one is Ben's too.
    run(&world, "update tributary.blobs set touched_at = now() - interval '2 days'").await;
    engine::blobs::collect(&world.env).await.expect("collected");
    let blobs = &world.env.blobs;
    assert!(blobs.get(tenant_id, &ann.own_file).await.expect("an answer").is_none(), "her file is still there");
    assert!(
        blobs.get(tenant_id, &ben.shared_file).await.expect("an answer").is_some(),
        "a file that another activity needs is gone"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_names_no_id_keeps_no_contact_from_being_forgotten() {
    let world = World::now().await;
    let (tenant_id, caller) = (world.tenant_id, Caller::local("test", world.tenant_id, true));
    let ann = fill(&world, tenant_id, "annzebra").await;
    // What an older program, or somebody with psql, may have left: in a queue, in an archive, and put aside.
    let ids = ["\"not an id\"", "7", "null", "\"\"", "{\"a\": 1}", "\"01890a5d-ac96-774b-bcce-b302099a80\""];
    let odd = ids.map(|id| format!("('{id}'::jsonb)")).join(", ");
    run(&world, &format!(
        "insert into pgmq.q_remember_activity (vt, message)
             select '2100-01-01', jsonb_build_object('tenant_id', '{tenant_id}', 'activity_id', id) from (values {odd}) odd (id);
         insert into pgmq.a_embed (msg_id, read_ct, enqueued_at, vt, message)
             select 1000000 + row_number() over (), 8, now(), now(), jsonb_build_object('tenant_id', '{tenant_id}', 'document_id', id) from (values {odd}) odd (id);
         insert into tributary.parked (id, tenant_id, queue, message, reason)
             select gen_random_uuid(), '{tenant_id}', 'embed', jsonb_build_object('tenant_id', '{tenant_id}', 'document_id', id), 'odd' from (values {odd}) odd (id);
         insert into pgmq.a_remember_activity (msg_id, read_ct, enqueued_at, vt, message)
             select 1000000 + row_number() over (), 8, now(), now(), jsonb_build_object('tenant_id', tenant_id, 'activity_id', id) from activities"
    ))
    .await;
    engine::contacts::forget(&world.env, &caller, ann.contact).await.expect("asked");
    world.run_lanes(&lanes::ALL).await;
    let done = "select count(*) from forgotten where done_at is not null";
    assert_eq!(count(&world, done).await, 1, "an odd message keeps the contact from being forgotten");
    assert_eq!(count(&world, "select count(*) from contacts").await, 0);
    assert_eq!(count(&world, "select count(*) from pgmq.a_remember_activity").await, 0, "hers are still there");
    for odd in
        ["pgmq.q_remember_activity where vt > '2099-01-01'", "pgmq.a_embed", "tributary.parked where reason = 'odd'"]
    {
        let n = count(&world, &format!("select count(*) from {odd}")).await;
        assert_eq!(n, ids.len() as i64, "{odd}: what names nothing was never hers");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_tenants_contact_is_neither_counted_nor_forgotten() {
    let world = World::now().await;
    let elsewhere = world.other_tenant("somebody else").await;
    let theirs = fill(&world, elsewhere, "annzebra").await;
    let before = of_contact(&world, theirs.contact).await;
    let caller = Caller::local("test", world.tenant_id, true);
    assert!(matches!(
        engine::contacts::count(&world.env, &caller, theirs.contact).await,
        Err(engine::ActError::NotFound(_))
    ));
    assert!(matches!(
        engine::contacts::forget(&world.env, &caller, theirs.contact).await,
        Err(engine::ActError::NotFound(_))
    ));
    // And a tenant is forgotten by the operator alone.
    let stranger = Caller::local("test", elsewhere, false);
    assert!(matches!(
        engine::tenants::forget(&world.env, &stranger, elsewhere).await,
        Err(engine::ActError::NotFound(_))
    ));
    world.run_lanes(&lanes::ALL).await;
    assert_eq!(of_contact(&world, theirs.contact).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_tenant_leaves_no_row_in_any_table_and_others_keep_theirs() {
    // Its clock stands still until the test moves it, a little ahead of the database's.
    let world =
        World::with(testkit::cluster::cloned(), Clock::fixed(chrono::Utc::now() + chrono::TimeDelta::minutes(1))).await;
    let (going, staying) = (world.other_tenant("going").await, world.other_tenant("staying").await);
    let mut files = Vec::new();
    for (tenant_id, word) in [(going, "annzebra"), (staying, "benquokka")] {
        let filled = fill(&world, tenant_id, word).await;
        files.push((tenant_id, filled.own_file));
        world.caller(tenant_id, &[domain::Scope::Service]).await;
        // Something in every other table that has a tenant.
        run(&world, &format!(
            "insert into sales (tenant_id, email) values ('{tenant_id}', '{word}@office.test');
             insert into crm_processing_nodes (tenant_id, sales_id, device_name) select tenant_id, id, '{word}' from sales where email = '{word}@office.test';
             insert into connected_sources (id, tenant_id, provider, name) values (gen_random_uuid(), '{tenant_id}', 'hubspot', '{word}');
             insert into tributary.vault (id, tenant_id, master_key_id, sealed, source_id) select gen_random_uuid(), tenant_id, 'k', sha256('{word}') || sha256('x'), id from connected_sources where name = '{word}';
             insert into tributary.oauth_states (hash, tenant_id, session_hash, provider, verifier_vault_id, redirect_uri) values (sha256('{word}'), '{tenant_id}', '', 'hubspot', gen_random_uuid(), '');
             insert into sync_jobs (id, tenant_id, source_id, kind, status, finished_at) select gen_random_uuid(), tenant_id, id, 'full', 'completed', now() from connected_sources where name = '{word}';
             insert into tributary.sync_seen (tenant_id, job_id, external_id) select tenant_id, id, 'contact:' || n from sync_jobs, generate_series(1, 20) n where tenant_id = '{tenant_id}';
             insert into sync_failures (tenant_id, source_id, external_id, reason) select tenant_id, id, 'contact:1', 'odd' from connected_sources where name = '{word}';
             insert into source_events (id, tenant_id, source_id, tone, what) select gen_random_uuid(), tenant_id, id, 'info', '{word}' from connected_sources where name = '{word}';
             insert into pending_syncs (source_id, tenant_id) select id, tenant_id from connected_sources where name = '{word}';
             insert into processed_messages (source_id, message_id, tenant_id) select id, '{word}', tenant_id from connected_sources where name = '{word}';
             insert into mail_facts (source_id, message_id, tenant_id, received_at, facts) select id, '{word}', tenant_id, now(), '{{}}' from connected_sources where name = '{word}';
             insert into mail_rules (tenant_id, source_id, name, is_on, changed_by) select tenant_id, id, '{word}', true, '{word}' from connected_sources where name = '{word}';
             insert into mailbox_checks (tenant_id, source_id, day, n_provider, n_stored) select tenant_id, id, '2026-11-01', 1, 1 from connected_sources where name = '{word}';
             insert into files (tenant_id, sha256, reader_version, reading_id, state) values ('{tenant_id}', repeat('c', 64), 1, gen_random_uuid(), 'read');
             insert into file_pages (tenant_id, sha256, number, text, read_by) values ('{tenant_id}', repeat('c', 64), 1, '{word}', 'text');
             insert into file_previews (tenant_id, sha256, page, picture) values ('{tenant_id}', repeat('c', 64), 1, sha256('{word}'));
             insert into document_steps (tenant_id, document_id, step, state, ended_at) select tenant_id, id, 'transcribe', 'done', now() from source_documents where tenant_id = '{tenant_id}' limit 1;
             insert into document_fields (tenant_id, document_id, name, value, state) select tenant_id, id, 'number', '{word}', 'read' from source_documents where tenant_id = '{tenant_id}' limit 1;
             insert into document_mentions (tenant_id, source_id, external_id, mentions) select tenant_id, id, 'contact:1', 'company:1' from connected_sources where name = '{word}';
             insert into tributary.dirty_clients (tenant_id, source_id, external_id, marked_at) select tenant_id, id, 'company:1', '2100-01-01' from connected_sources where name = '{word}';
             insert into client_intelligence (id, tenant_id, client_name) values (gen_random_uuid(), '{tenant_id}', '{word}');
             insert into activity_clients (tenant_id, activity_id, record_id) select a.tenant_id, a.id, c.id from activities a join client_intelligence c using (tenant_id) where a.tenant_id = '{tenant_id}' limit 1;
             insert into contact_merges (id, tenant_id, contact_id, merged, activities, documents, merged_by) select gen_random_uuid(), tenant_id, id, '{{}}', '{{}}', '{{}}', '{word}' from contacts where tenant_id = '{tenant_id}' limit 1;
             insert into client_decisions (id, tenant_id, kind, record, said_by) values (gen_random_uuid(), '{tenant_id}', 'split', '{word}', '{word}');
             insert into tributary.dismissals (tenant_id, kind, subject, dismissed_by, until) values ('{tenant_id}', 'odd', '{word}', '{word}', '2100-01-01');
             insert into tributary.ignored_senders (tenant_id, address, ignored_by) values ('{tenant_id}', '{word}', '{word}');
             insert into saved_searches (id, tenant_id, name, query, created_by) values (gen_random_uuid(), '{tenant_id}', '{word}', '{{}}', '{word}');
             insert into usage (tenant_id, month, model) values ('{tenant_id}', '2026-11-01', 'm');
             insert into tributary.budgets (tenant_id, month) values ('{tenant_id}', '2026-11-01');
             insert into tributary.reservations (id, tenant_id, micros, made_at) values (gen_random_uuid(), '{tenant_id}', 1, now());
             insert into memory.term_stats (tenant_id, lexeme, df) values ('{tenant_id}', '{word}', 1);
             insert into memory.segments (tenant_id, first_n, last_n, n_chunks, mean_length) values ('{tenant_id}', 1, 1, 1, 80);
             insert into memory.postings (tenant_id, lexeme, segment_id, n_chunks, list) values ('{tenant_id}', '{word}', 1, 1, '');
             insert into memory.codes (tenant_id, model, n_chunks, bytes) values ('{tenant_id}', '{word}', 1, '');
             select memory.ensure_model('other_2', 2, 1);
             insert into memory.vectors_other_2 (tenant_id, chunk_id, document_id, embedding) select tenant_id, id, document_id, '[1,0]' from document_chunks where tenant_id = '{tenant_id}' limit 1;
             insert into memory.moves (tenant_id, from_model, to_model, is_chosen, asked_by, n_left) select tenant_id, model, 'other_2', false, '{word}', 1 from memory.tenants where tenant_id = '{tenant_id}';
             insert into tributary.parked (id, tenant_id, queue, message, reason) values (gen_random_uuid(), '{tenant_id}', 'embed', '{{}}', '{word}');
             insert into tributary.alerts (id, tenant_id, kind, subject, what, todo) values (gen_random_uuid(), '{tenant_id}', 'odd', '{word}', '{word}', '');
             insert into tributary.channel_refusals (tenant_id, channel_id, status, reason) values ('{tenant_id}', gen_random_uuid(), 401, '{word}');
             insert into tributary.sessions (hash, kind, tenant_id, key_id, expires_at) select sha256('s{word}'), 'session', tenant_id, id, '2100-01-01' from tributary.api_keys where tenant_id = '{tenant_id}';
             insert into tributary.assistants (id, tenant_id, key_id, let_in_by, client_id, client_name, redirect_host, resource) select gen_random_uuid(), tenant_id, id, id, '{word}', '{word}', '{word}', '{word}' from tributary.api_keys where tenant_id = '{tenant_id}' limit 1;
             insert into tributary.assistant_tokens (hash, tenant_id, assistant_id, kind, expires_at) select sha256('t{word}'), tenant_id, id, 'refresh', '2100-01-01' from tributary.assistants where tenant_id = '{tenant_id}';
             insert into tributary.mcp_calls (id, tenant_id, key_id, tool, outcome, duration_ms) select gen_random_uuid(), tenant_id, id, 'search', 'ok', 1 from tributary.api_keys where tenant_id = '{tenant_id}' limit 1;
             insert into forgotten (id, tenant_id, what, by) values (gen_random_uuid(), '{tenant_id}', 'HubSpot', '{word}');
             insert into tributary.gates (key) select 'account:' || id from connected_sources where name = '{word}';
             insert into pgmq.q_client_facts (vt, message) select '2100-01-01', jsonb_build_object('tenant_id', tenant_id, 'source_id', id) from connected_sources where name = '{word}';
             insert into pgmq.a_ingestion_queue (msg_id, read_ct, enqueued_at, vt, message) select {n}, 8, now(), now(), jsonb_build_object('tenant_id', tenant_id, 'source_id', id) from connected_sources where name = '{word}'",
            n = tenant_id.0.as_u128() % 1_000_000,
        )).await;
    }
    let having: Vec<(String, bool)> = tables(&world).await.into_iter().filter(|(_, has)| *has).collect();
    let mut empty = Vec::new();
    for (table, _) in &having {
        if count(&world, &format!("select count(*) from {table} where tenant_id = '{going}'")).await == 0 {
            empty.push(table.clone());
        }
    }
    assert_eq!(empty, [] as [String; 0], "this test gives the tenant a row in every table, so that it sees them go");
    let operator = world.operator().await;
    let (_, key) = world.caller(staying, &[domain::Scope::Read]).await;
    let before = all_but(&world, going).await;

    let refused =
        engine::tenants::forget(&world.env, &operator, world.tenant_id).await.expect_err("the operator's own");
    assert!(refused.to_string().contains("operates the installation"), "{refused}");
    let before_keys =
        count(&world, &format!("select count(*) from tributary.api_keys where tenant_id = '{going}'")).await;
    let counted = engine::tenants::forget(&world.env, &operator, going).await.expect("asked");
    assert_eq!(
        (counted.activities, counted.contacts, counted.channels, counted.keys),
        (4, 1, 1, before_keys),
        "{counted:?}"
    );
    engine::tenants::forget(&world.env, &operator, going).await.expect("asked again");
    // The processes that know its keys have time to look again.
    world.run_lanes(&lanes::ALL).await;
    assert!(
        count(&world, &format!("select count(*) from activities where tenant_id = '{going}'")).await > 0,
        "too early"
    );
    world.env.clock.advance(chrono::TimeDelta::seconds(31));
    world.run_lanes(&lanes::ALL).await;

    for (table, _) in &having {
        assert_eq!(
            count(&world, &format!("select count(*) from {table} where tenant_id = '{going}'")).await,
            0,
            "{table}"
        );
    }
    assert_eq!(tables_with(&world, "annzebra").await, [] as [String; 0]);
    assert_eq!(
        tables_with(&world, &going.to_string()).await,
        ["public.forgotten"],
        "the operator's record alone names it"
    );
    assert_eq!(all_but(&world, going).await, before, "another tenant's rows have changed");
    let mut conn = world.conn().await;
    assert!(store::keys::authenticate(&mut conn, &key).await.expect("an answer").is_some(), "another tenant's key");
    let [(_, gone), (_, kept)] = &files[..] else { panic!("two files") };
    assert!(world.env.blobs.get(going, gone).await.expect("an answer").is_none(), "its file is still there");
    assert!(world.env.blobs.get(staying, kept).await.expect("an answer").is_some(), "another tenant's file is gone");
    let done = "select count(*) from forgotten where tenant_id = (select id from tenants where is_operator) and done_at is not null and by = 'test'";
    assert_eq!(count(&world, done).await, 1, "one record, though it was asked for twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_is_being_forgotten_takes_in_nothing_new() {
    let world = World::now().await;
    let going = world.other_tenant("going").await;
    let (_, key) = world.caller(going, &[domain::Scope::Service]).await;
    let filled = fill(&world, going, "annzebra").await;
    let hash: Vec<u8> = sqlx::query_scalar("select ingestion_key_hash from ingestion_providers where id = $1")
        .bind(filled.channel)
        .fetch_one(&mut *world.conn().await)
        .await
        .expect("a hash");
    let hash: [u8; 32] = hash.try_into().expect("32 bytes");
    let mut conn = world.conn().await;
    let vault = &world.env.vault;
    assert!(store::channels::find(&mut conn, vault, &hash).await.expect("an answer").is_some());
    claims::ensure_agent(&mut conn, going, &["text"]).await.expect("an agent");
    assert!(claims::tenants_with_raw(&mut conn).await.expect("tenants").contains(&going));
    assert!(claims::tenants_with_agent(&mut conn).await.expect("tenants").contains(&going));
    assert_eq!(tenants::forgetting_for(&mut conn, None, going).await.expect("an age"), None);
    engine::tenants::forget(&world.env, &world.operator().await, going).await.expect("asked");
    // Also where a program of an older version, which does not know of it, has made the key valid again.
    run(&world, &format!("update tributary.api_keys set revoked_at = null where tenant_id = '{going}'")).await;
    assert!(store::keys::authenticate(&mut conn, &key).await.expect("an answer").is_none(), "S25: its key is accepted");
    assert!(store::channels::find(&mut conn, vault, &hash).await.expect("an answer").is_none(), "its channel is known");
    assert!(!claims::tenants_with_raw(&mut conn).await.expect("tenants").contains(&going), "an agent claims its work");
    assert!(!claims::tenants_with_agent(&mut conn).await.expect("tenants").contains(&going), "an agent works for it");
    // How long it has been so is the database's to say.
    for (ago, expected) in [(40, 40..60), (-40, 0..1)] {
        let ask = format!("update tenants set forgetting_at = now() - interval '{ago} s' where id = '{going}'");
        run(&world, &ask).await;
        let age = tenants::forgetting_for(&mut conn, None, going).await.expect("an answer").expect("an age");
        assert!(expected.contains(&age.as_secs()), "{ago} s: {age:?}");
    }
}

/// The bytes of a file may arrive when its row has gone already.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_arrives_while_its_tenant_goes_is_removed_with_it() {
    let world = World::now().await;
    let going = world.other_tenant("going").await;
    fill(&world, going, "annzebra").await;
    engine::tenants::forget(&world.env, &world.operator().await, going).await.expect("asked");
    run(&world, &format!("update tenants set forgetting_at = now() - interval '1 hour' where id = '{going}'")).await;
    let blobs = testkit::cluster::blob_url().strip_prefix("file://").expect("a folder");
    let folder = std::path::Path::new(blobs).join(going.to_string());
    let file = folder.join("0".repeat(64));
    // After its last round the removal waits for the tenant's row.
    let mut held = world.env.db.begin().await.expect("a transaction");
    let lock = format!(
        "set local idle_in_transaction_session_timeout = 0; select from tenants where id = '{going}' for share"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(lock)).execute(&mut *held).await.expect("a lock");
    let late = async {
        let waiting = "select count(*) from pg_locks w join pg_locks r using (pid) where not w.granted and r.relation = 'public.tenants'::regclass
             and r.database = (select oid from pg_database where datname = current_database())";
        let is_waiting = wait_until(Duration::from_secs(30), async || count(&world, waiting).await > 0);
        assert!(is_waiting.await, "nothing removes the tenant");
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(&file, "late").expect("a file");
        held.rollback().await.expect("rolled back");
    };
    tokio::join!(world.run_lanes(&lanes::ALL), late);
    assert_eq!(count(&world, &format!("select count(*) from tenants where id = '{going}'")).await, 0);
    assert!(!file.exists(), "a file without a row is left for ever");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_whose_alerts_cannot_be_written_keeps_no_other_from_being_watched() {
    let world = World::now().await;
    let [broken, going, last] = ["broken", "going", "last"].map(|name| world.other_tenant(name));
    let (broken, going, last) = (broken.await, going.await, last.await);
    run(
        &world,
        "insert into pgmq.a_embed (msg_id, vt, message, headers)
         select 1000000 + row_number() over (), now(), jsonb_build_object('tenant_id', id), '{\"state\": \"dead\"}' from tenants",
    )
    .await;
    let refuse = format!(
        "set role tributary_owner;
         create function public.refuse() returns trigger language plpgsql as $$ begin raise 'not today'; end $$;
         create trigger refuse before insert on tributary.alerts for each row when (new.tenant_id = '{broken}') execute function public.refuse()"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(refuse)).execute(&mut world.login_conn().await).await.expect("a broken table");
    engine::tenants::forget(&world.env, &world.operator().await, going).await.expect("asked");
    let mut tx = world.env.db.begin().await.expect("a transaction");
    let tick = [serde_json::json!({ "task": "watch" })];
    Queue::new("upkeep").expect("a queue").send(&mut tx, world.tenant_id, &tick).await.expect("sent");
    tx.commit().await.expect("committed");
    world.run_lanes(&lanes::ALL).await;
    for (tenant_id, expected) in [(world.tenant_id, 1), (broken, 0), (going, 0), (last, 1)] {
        let open = format!(
            "select count(*) from tributary.alerts where tenant_id = '{tenant_id}' and closed_at is null and kind = 'dead_items'"
        );
        assert_eq!(count(&world, &open).await, expected, "alerts of {tenant_id}");
    }
}
