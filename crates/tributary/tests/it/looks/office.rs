//! A small company in which something of every kind has happened, and a server that shows it.

use std::time::Duration;

use domain::{Clock, Scope, Secret};
use fakes::Fakes;
use serde_json::{Value, json};
use store::workers::{self, Beat};
use testkit::sources::{DRIVE, HUBSPOT, QUICKBOOKS, settings};
use testkit::{Sources, cluster, wait_until};

use crate::app::{App, Folder, client, command, free_port};
use crate::intake::{MASTER_KEY, add_channel};

const SOON: Duration = Duration::from_secs(20);

pub struct Office {
    pub t: Sources,
    pub app: App,
    pub key: Secret,
    _folder: Folder,
}

impl Office {
    pub async fn new() -> Self {
        let t = Sources::with(cluster::cloned(), Clock::System, Fakes::with_fixtures().await, &[]).await;
        let (folder, port) = (Folder::new(), free_port());
        let mut serve = command(&folder.0, port);
        serve.env("DATABASE_URL", &t.world.database.url).env("MASTER_KEY", MASTER_KEY).envs(settings(&t.fakes));
        serve.env("BLOB_URL", cluster::blob_url());
        let app = App::start(serve, &["serve"], port).await;
        let key = t.world.caller(t.world.tenant_id, &[Scope::Service]).await.1;
        let office = Self { t, app, key, _folder: folder };
        office.fill().await;
        office
    }

    /// Accounts are read, events come in, and a little of everything goes wrong.
    async fn fill(&self) {
        for provider in [HUBSPOT, QUICKBOOKS, DRIVE] {
            self.t.connect(provider).await;
        }
        self.post(
            "/api/v1/contacts",
            json!({ "email": "ana@example.com", "first_name": "Ana", "last_name": "Reis", "company": "Mill & Co" }),
        )
        .await;
        self.post(
            "/api/v1/documents",
            json!({ "title": "Lisbon lease", "text": "The lease of the Lisbon office ends in June." }),
        )
        .await;
        self.post("/api/v1/searches", json!({ "name": "Leases", "q": "lease", "filters": { "type": "note" } })).await;
        let (_, opens) = add_channel(&self.t.world, self.t.world.tenant_id, None).await;
        let door = format!("{}/ingest/{}", self.app.url, opens.ingestion_key.reveal());
        for (nth, event) in [
            json!({ "type": "email", "from": "ana@example.com", "subject": "Late delivery", "content": "The parcel is three days late. Please call €20 back." }),
            json!({ "type": "sms", "from": "+351910000001", "content": "Are you open on Monday?" }),
            json!({ "type": "note", "content": "Nobody reads this one." }),
        ]
        .iter()
        .enumerate()
        {
            let sent = client().post(&door).bearer_auth(opens.bearer.reveal()).header("idempotency-key", format!("event-{nth}"));
            assert_eq!(sent.json(event).send().await.expect("an answer").status().as_u16(), 202);
        }
        let refused = client().post(&door).bearer_auth("wrong").json(&json!({ "type": "note" })).send().await;
        assert_eq!(refused.expect("an answer").status().as_u16(), 401);
        let is_noted = async || self.t.count("select count(*) from tributary.channel_refusals").await == 1;
        assert!(wait_until(SOON, is_noted).await, "the refusal was not noted");
        let is_done = wait_until(3 * SOON, async || {
            self.t.run().await;
            self.t.count("select count(*) from sync_jobs where status <> 'completed'").await == 0
                && self.t.count("select count(*) from pgmq.q_remember_activity").await == 0
                && self.t.count("select count(*) from pgmq.q_client_facts").await == 0
        });
        assert!(is_done.await, "the syncs do not end");
        for sql in [
            // What an agent made of the mail, and what it could not make anything of.
            "update activities set processing_status = 'completed', processed_data = '{\"summary\": \"A parcel is late.\", \"facts\": [\"names the amount €20\"]}'
             where event_key = 'event-0'",
            "update activities set processing_status = 'failed', metadata = metadata || '{\"retry_count\": 3, \"error\": {\"type\": \"LLMError\", \"message\": \"the language model gave an empty summary\"}}'
             where event_key = 'event-2'",
            "insert into activity_failures (tenant_id, original_activity_id, failure_reason, raw_data)
             select tenant_id, id, 'LLMError: the language model gave an empty summary', raw_data from activities where event_key = 'event-2'",
            "insert into pgmq.a_upkeep (msg_id, read_ct, enqueued_at, vt, message, headers)
             select 1000000, 8, now(), now(), jsonb_build_object('task', 'unpark', 'tenant_id', id::text),
                 jsonb_build_object('state', 'dead', 'reason', 'gave up after 8 attempts', 'error', 'the database is away', 'error_at', now(), 'ended_at', now())
             from tenants order by created_at limit 1",
            "insert into sync_failures (tenant_id, source_id, external_id, reason, failed_at)
             select tenant_id, id, 'contact:51', 'it is not an object', now() from connected_sources where provider = 'hubspot'",
            "with ann as (insert into sales (tenant_id, first_name, last_name, email) select id, 'Ann', 'Lee', 'ann@office.test' from tenants order by created_at limit 1 returning id, tenant_id)
             insert into crm_processing_nodes (tenant_id, sales_id, device_name) select tenant_id, id, 'laptop' from ann",
            "with key as (insert into tributary.api_keys (id, tenant_id, name, hash, scopes, is_assistant)
                 select gen_random_uuid(), id, 'Claude', sha256('nobody'), '{read,write}', true from tenants order by created_at limit 1 returning id, tenant_id),
                 assistant as (insert into tributary.assistants (id, tenant_id, key_id, let_in_by, client_id, client_name, redirect_host, resource, last_used_at)
                 select gen_random_uuid(), tenant_id, id, id, 'trp_1', 'Claude', 'claude.ai', 'https://hear.example.com/mcp', now() from key returning tenant_id)
             insert into tributary.mcp_calls (id, tenant_id, key_id, tool, outcome, duration_ms, n_hits)
             select gen_random_uuid(), tenant_id, id, 'search_memory', 'ok', 7, 3 from key",
            // A file that was read, one that was not, and the fields of a paper.
            "with s as (select id, tenant_id from connected_sources where provider = 'manual' order by created_at limit 1),
                 d as (insert into source_documents (id, tenant_id, source_id, external_id, document_type, title, text, blob_key, content_sha256, status, source_metadata)
                 select '0190c7de-aaaa-7bbb-8ccc-0000000000a1', tenant_id, id, 'sha256:invoice', 'file', 'larkfield.pdf', 'Invoice INV-2041 of Larkfield Ltd.', repeat('a', 64), sha256('a'), 'completed',
                     '{\"file_name\": \"larkfield.pdf\"}' from s returning id, tenant_id),
                 f as (insert into files (tenant_id, sha256, reader_version, reading_id, state, kind, n_pages)
                 select tenant_id, repeat('a', 64), 1, gen_random_uuid(), 'read', 'pdf', 2 from d),
                 p as (insert into file_pages (tenant_id, sha256, number, text, read_by, confidence)
                 select tenant_id, repeat('a', 64), n, 'Invoice INV-2041, page ' || n, (array['text', 'ocr'])[n], (array[null, 0.91])[n] from d, generate_series(1, 2) n),
                 t as (insert into document_steps (tenant_id, document_id, step, state, outcome, done_by, ended_at)
                 select tenant_id, id, step, 'done', '{\"pages\": 2}', 'rules', now() from d, unnest(array['classify', 'transcribe', 'extract']) step)
             insert into document_fields (tenant_id, document_id, name, value, amount, currency, page, quote, confidence, state, note)
             select tenant_id, id, v.name, v.value, v.amount, v.currency, 1, v.quote, 0.9, v.state, v.note from d, (values
                 ('paper', 'invoice', null, null, null, 'read', 'it says so at its top'),
                 ('number', 'INV-2041', null, null, 'Invoice INV-2041', 'read', null),
                 ('total', '805.00 EUR', 805.00, 'EUR', 'Total: EUR 805.00', 'doubtful', 'the lines are 800.00'))
                 v (name, value, amount, currency, quote, state, note)",
            "insert into source_documents (id, tenant_id, source_id, external_id, document_type, title, blob_key, content_sha256, status, skip_reason)
             select '0190c7de-aaaa-7bbb-8ccc-0000000000a2', tenant_id, id, 'sha256:locked', 'file', 'locked.pdf', repeat('b', 64), sha256('b'), 'skipped', 'encrypted'
             from connected_sources where provider = 'manual' order by created_at limit 1",
            "insert into tenants (id, name) values (gen_random_uuid(), 'Mill & Co')",
            "insert into forgotten (id, tenant_id, what, by, counted, removed, asked_at, done_at)
             select gen_random_uuid(), id, 'Contact 17', 'the command line', '{\"activities\": 3, \"documents\": 3}', '{\"activities\": 3, \"documents\": 2}', now() - interval '1 hour', null
             from tenants where is_operator",
        ] {
            sqlx::raw_sql(sql).execute(&mut *self.t.world.conn().await).await.expect(sql);
        }
        super::letters::fill(&self.t.world.env, self.t.world.tenant_id).await;
        self.post(&format!("/api/v1/people/{}/link", self.person().await), Value::Null).await;
        let mut conn = self.t.world.conn().await;
        let started = workers::start(
            &mut conn,
            "0.1.0",
            Duration::from_secs(3_600),
            workers::Identity { name: "box:7", host: "box", pid: 7, role: "worker" },
        )
        .await;
        let beat = Beat { successes: 12, errors: 1, last_error: Some("the database is away".into()) };
        workers::heartbeat(&mut conn, started.expect("a worker"), &beat, &[], false).await.expect("heard");
        let age = "update ai.vectorizer_worker_process set started = last_heartbeat - interval '12 minutes'";
        sqlx::query(age).execute(&mut *conn).await.expect("a worker of some age");
    }

    async fn post(&self, path: &str, body: Value) {
        let sent = client().post(format!("{}{path}", self.app.url)).bearer_auth(self.key.reveal()).json(&body);
        let answer = sent.send().await.expect("an answer");
        assert!(answer.status().is_success(), "{path}: {}", answer.text().await.unwrap_or_default());
    }

    /// Status and body of a page, as a browser asks for it.
    pub async fn page(&self, path: &str) -> (u16, String) {
        let asked = client().get(format!("{}{path}", self.app.url)).header("accept", "text/html");
        let answer = asked.bearer_auth(self.key.reveal()).send().await.expect("an answer");
        (answer.status().as_u16(), answer.text().await.expect("a page"))
    }

    pub async fn answer(&self, path: &str) -> Value {
        let asked = client().get(format!("{}{path}", self.app.url)).bearer_auth(self.key.reveal());
        let answer = asked.send().await.expect("an answer");
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer.json().await.expect("JSON")
    }

    pub async fn id(&self, sql: &'static str) -> String {
        sqlx::query_scalar(sql).fetch_one(&mut *self.t.world.conn().await).await.expect(sql)
    }

    async fn document(&self) -> String {
        self.id("select id::text from source_documents where title = 'Lisbon lease'").await
    }

    async fn read_file(&self) -> String {
        self.id("select id::text from source_documents where title = 'larkfield.pdf'").await
    }

    async fn skipped_file(&self) -> String {
        self.id("select id::text from source_documents where title = 'locked.pdf'").await
    }

    /// A letter that is an answer, with a file.
    async fn letter(&self) -> String {
        self.id("select id::text from source_documents where external_id = 'message:2'").await
    }

    async fn mailbox(&self) -> String {
        self.id("select id::text from connected_sources where provider = 'outlook'").await
    }

    async fn activity(&self) -> String {
        self.id("select id::text from activities where event_key = 'event-0'").await
    }

    async fn channel(&self) -> String {
        self.id("select id::text from ingestion_providers limit 1").await
    }

    async fn person(&self) -> String {
        self.id("select id::text from sales where email = 'ann@office.test'").await
    }

    async fn contact(&self) -> String {
        self.id("select id::text from contacts where email = 'ana@example.com'").await
    }

    async fn source(&self) -> String {
        self.id("select id::text from connected_sources where provider = 'hubspot'").await
    }

    async fn job(&self) -> String {
        self.id("select j.id::text from sync_jobs j join connected_sources s on s.id = j.source_id where s.provider = 'hubspot'").await
    }

    async fn client(&self) -> String {
        self.id("select id::text from client_intelligence where id = client_id order by client_name limit 1").await
    }

    async fn worker(&self) -> String {
        self.id("select process_id::text from tributary.workers").await
    }

    async fn other_tenant(&self) -> String {
        self.id("select id::text from tenants where not is_operator").await
    }

    /// Every page by the name of its file.
    pub async fn pages(&self) -> Vec<(&'static str, String)> {
        vec![
            ("home", "/".into()),
            ("search", "/search".into()),
            ("search_found", "/search?q=lisbon+lease&type=note".into()),
            ("ask", "/ask".into()),
            ("document", format!("/documents/{}", self.document().await)),
            ("document_file", format!("/documents/{}", self.read_file().await)),
            ("document_skipped", format!("/documents/{}", self.skipped_file().await)),
            ("documents_by_state", "/documents?status=skipped".into()),
            ("activities", "/inbox".into()),
            ("activity", format!("/activities/{}", self.activity().await)),
            ("unmatched", "/inbox/unrecognised".into()),
            ("failed", "/inbox/failed".into()),
            ("inbox_narrow", "/inbox?type=sms&q=monday".into()),
            ("documents", "/documents?type=note".into()),
            ("mail", "/mail".into()),
            ("mail_narrow", format!("/mail?contact={}&files=1", self.contact().await)),
            ("message", format!("/mail/{}", self.letter().await)),
            ("thread", format!("/mail/{}/thread", self.letter().await)),
            ("mailbox", format!("/connections/accounts/{}", self.mailbox().await)),
            ("deleted", "/documents/deleted".into()),
            ("add_note", "/add/note".into()),
            ("add_task", format!("/add/task?contact={}", self.contact().await)),
            ("files", "/connections/files".into()),
            ("schedules", "/system/schedules".into()),
            ("keys", "/settings/keys".into()),
            ("assistants", "/settings/assistants".into()),
            ("use_with", "/settings/assistants/use".into()),
            ("spend", "/settings/spend".into()),
            ("retention", "/settings/retention".into()),
            ("dead_letters", "/system/dead-letters".into()),
            ("connections", "/connections".into()),
            ("connect", "/connections/accounts/new/hubspot".into()),
            ("sources", "/connections/accounts".into()),
            ("source", format!("/connections/accounts/{}", self.source().await)),
            ("job", format!("/jobs/{}", self.job().await)),
            ("clients", "/clients".into()),
            ("client", format!("/clients/{}", self.client().await)),
            ("nodes", "/system/agents".into()),
            ("contacts", "/clients/people".into()),
            ("contact", format!("/clients/people/{}", self.contact().await)),
            ("forgotten", "/settings/forgotten".into()),
            ("tenants", "/settings/tenants".into()),
            ("tenant", format!("/settings/tenants/{}", self.other_tenant().await)),
            ("people", "/settings/people".into()),
            ("person", format!("/settings/people/{}", self.person().await)),
            ("sessions", "/settings/sessions".into()),
            ("channels", "/connections/webhooks".into()),
            ("channel", format!("/connections/webhooks/{}", self.channel().await)),
            ("channel_new", "/connections/webhooks/new/twilio".into()),
            ("channel_new_mailbox", "/connections/webhooks/new/gmail".into()),
            ("queues", "/system/queues".into()),
            ("lane", "/system/queues/upkeep?state=dead".into()),
            ("item", "/system/queues/upkeep/items/m1000000".into()),
            ("workers", "/system/workers".into()),
            ("reference", "/api".into()),
            ("signin", "/signin".into()),
            ("error", "/nowhere".into()),
        ]
    }

    /// An address by which a route of the API answers; none for what is not JSON.
    pub async fn sample_of(&self, path: &str) -> Option<String> {
        let by = |id: String| Some(path.replace("{id}", &id).replace("{lane}", "upkeep"));
        match path {
            "/api/v1/events" | "/documents/events" | "/api/v1/activities/{id}/recording" => None,
            "/api/v1/search" => Some("/api/v1/search?q=lisbon+lease&k=2".into()),
            "/api/v1/queues/{lane}/items" => Some("/api/v1/queues/upkeep/items?state=dead".into()),
            "/api/v1/queues/{lane}/items/{id}" => by("m1000000".into()),
            _ if !path.contains('{') => Some(path.to_owned()),
            _ if path.starts_with("/api/v1/documents/") => by(self.document().await),
            _ if path.starts_with("/api/v1/mail/") => by(self.letter().await),
            _ if path.starts_with("/api/v1/activities/") => by(self.activity().await),
            _ if path.starts_with("/api/v1/people/") => by(self.person().await),
            _ if path.starts_with("/api/v1/channels/") => by(self.channel().await),
            _ if path.starts_with("/api/v1/contacts/") => by(self.contact().await),
            _ if path.starts_with("/api/v1/sources/{id}/mail") => by(self.mailbox().await),
            _ if path.starts_with("/api/v1/sources/") => by(self.source().await),
            _ if path.starts_with("/api/v1/jobs/") => by(self.job().await),
            _ if path.starts_with("/api/v1/clients/") => by(self.client().await),
            _ if path.starts_with("/api/v1/tenants/") => by(self.other_tenant().await),
            _ if path.starts_with("/api/v1/workers/") => by(self.worker().await),
            _ => panic!("no sample for {path}: name one here"),
        }
    }
}
