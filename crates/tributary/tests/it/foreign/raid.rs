//! Somebody of another tenant, every route there is, and what must not be seen or changed.

use domain::{Scope, Secret, TenantId};
use regex::Regex;
use serde_json::{Map, Value, json};
use store::{keys, people};

use crate::app::client;
use crate::looks::office::Office;

const ROUTER: &str = include_str!("../../../../web/src/api/router.rs");
/// Words that pages use for what they do to a thing.
const ACTIONS: [&str; 24] = [
    "seen",
    "remove",
    "retry",
    "skip",
    "cancel",
    "pause",
    "resume",
    "sync",
    "full",
    "disconnect",
    "forget",
    "enable",
    "disable",
    "delete",
    "dismiss",
    "restore",
    "merge",
    "split",
    "undo",
    "say",
    "withdraw",
    "add-contact",
    "belongs",
    "match-again",
];
/// Routes without anything of a tenant's, or that end the visit, and the doors, whose keys and proofs are tested apart.
pub const APART: [&str; 12] = [
    "/healthz",
    "/readyz",
    "/metrics",
    "/api/v1/openapi.json",
    "/api/v1/events",
    "/documents/events",
    "/signin",
    "/signout",
    "/ingest/{key}",
    "/functions/v1/ingest-activity",
    "/internal/embed",
    "/webhooks/{hook}",
];

/// Somebody of another tenant, as a request shows it.
pub enum Stranger {
    Key(&'static str, Secret),
    Session { cookie: String, csrf: String },
}

impl Stranger {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Key(name, _) => name,
            Self::Session { .. } => "a session",
        }
    }

    /// A service key, or a session that was opened with one: no scope is missing, so that the only thing in the way is the tenant.
    pub fn may_everything(&self) -> bool {
        matches!(self, Self::Session { .. } | Self::Key("service", _))
    }
}

pub struct Raid {
    pub office: Office,
    pub openapi: Value,
    pub http: reqwest::Client,
    /// Words that must be in no answer.
    pub words: Vec<String>,
    /// Their ids by the word that stands before them in a path.
    pub ids: Vec<(&'static str, String)>,
}

impl Raid {
    pub async fn new() -> Self {
        let office = Office::new().await;
        let openapi = office.answer("/api/v1/openapi.json").await;
        let mut ids = Vec::new();
        for (what, sql) in [
            ("documents", "select id::text from source_documents where title = 'Lisbon lease'"),
            ("mail", "select id::text from source_documents where external_id = 'message:2'"),
            ("mailbox", "select id::text from connected_sources where provider = 'outlook'"),
            ("activities", "select id::text from activities where event_key = 'event-0'"),
            ("dead-letters", "select id::text from activities where event_key = 'event-2'"),
            ("sources", "select id::text from connected_sources where provider = 'hubspot'"),
            (
                "jobs",
                "select j.id::text from sync_jobs j join connected_sources s on s.id = j.source_id and s.provider = 'hubspot'",
            ),
            ("searches", "select id::text from saved_searches limit 1"),
            ("clients", "select id::text from client_intelligence where id = client_id order by client_name limit 1"),
            ("contacts", "select id::text from contacts where email = 'ana@example.com'"),
            ("people", "select id::text from sales where email = 'ann@office.test'"),
            ("sessions", "select id::text from tributary.sessions limit 1"),
            ("channels", "select id::text from ingestion_providers limit 1"),
            ("nodes", "select id::text from crm_processing_nodes limit 1"),
            ("keys", "select id::text from tributary.api_keys order by created_at limit 1"),
            ("assistants", "select id::text from tributary.assistants limit 1"),
            ("tenants", "select id::text from tenants where is_operator"),
            ("workers", "select process_id::text from tributary.workers limit 1"),
        ] {
            ids.push((what, office.id(sql).await));
        }
        // Pages have their own words for some of them. They go first: a person among the clients is a contact, any other is one of the office.
        for (page, what) in
            [("accounts", "sources"), ("webhooks", "channels"), ("clients/people", "contacts"), ("agents", "nodes")]
        {
            let id = ids.iter().find(|(known, _)| *known == what).map(|(_, id)| id.clone()).expect("an id");
            ids.insert(0, (page, id));
        }
        ids.push(("items", "m1000000".to_owned()));
        let mut words: Vec<String> = ["Lisbon lease", "Mill &amp; Co", "Mill & Co", "Are you open on Monday", "parcel"]
            .map(str::to_owned)
            .into();
        words.push(office.t.world.tenant_id.to_string());
        words.extend(ids.iter().map(|(_, id)| id.clone()).filter(|id| id.len() > 30));
        Self { office, openapi, http: client(), words, ids }
    }

    /// Keys of every scope, one made for a frame, and a browser's session.
    pub async fn strangers(&self, tenant_id: TenantId) -> Vec<Stranger> {
        let world = &self.office.t.world;
        let mut conn = world.conn().await;
        let person = people::ensure(&mut conn, tenant_id, "mallory@elsewhere.test").await.expect("a person");
        let mut strangers = Vec::new();
        for (name, scope) in
            [("service", Scope::Service), ("read", Scope::Read), ("write", Scope::Write), ("agent", Scope::Agent)]
        {
            let made = keys::create(&mut conn, tenant_id, Some(person), name, &[scope]).await;
            strangers.push(Stranger::Key(name, made.expect("a key").1));
        }
        let day = Some(std::time::Duration::from_secs(86_400));
        let frame =
            keys::create_for(&mut conn, tenant_id, Some(person), "frame https://crm.test", &[Scope::Agent], day).await;
        strangers.push(Stranger::Key("frame", frame.expect("a key").1));
        let Stranger::Key(_, service) = &strangers[0] else { panic!("the first is a key") };
        let (cookie, csrf) = self.sign_in(service).await;
        strangers.push(Stranger::Session { cookie, csrf });
        strangers
    }

    pub async fn sign_in(&self, key: &Secret) -> (String, String) {
        let url = &self.office.app.url;
        let form = [("key", key.reveal())];
        let signed = self.http.post(format!("{url}/signin")).header("origin", url).form(&form).send().await;
        let signed = signed.expect("an answer");
        assert_eq!(signed.status().as_u16(), 303);
        let cookie = signed.headers()["set-cookie"].to_str().expect("a cookie");
        let cookie = cookie.split(';').next().expect("a value").to_owned();
        let page =
            self.http.get(format!("{url}/system/queues")).header("cookie", &cookie).send().await.expect("an answer");
        let page = page.text().await.expect("a page");
        let csrf = page.split("name=\"csrf\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
        (cookie, csrf.expect("a token").to_owned())
    }

    /// Every route with its method: those of the API from its description, the others from the router's own page.
    pub fn routes(&self) -> Vec<(String, String)> {
        let mut routes = Vec::new();
        for (path, methods) in self.openapi["paths"].as_object().expect("paths") {
            let methods = methods.as_object().expect("methods");
            routes.extend(methods.keys().map(|method| (method.to_uppercase(), path.clone())));
        }
        let route = Regex::new(r#"\.route\("([^"]+)", (.*)$"#).expect("a pattern");
        let method = Regex::new(r"\b(get|post|any)\(").expect("a pattern");
        for line in ROUTER.lines().filter(|line| line.trim_start().starts_with(".route(")) {
            let found = route.captures(line).unwrap_or_else(|| panic!("a route that this test cannot read: {line}"));
            for word in method.captures_iter(&found[2]) {
                let methods: &[&str] = match &word[1] {
                    "get" => &["GET"],
                    "post" => &["POST"],
                    _ => &["GET", "POST", "PATCH"],
                };
                routes.extend(methods.iter().map(|method| ((*method).to_owned(), found[1].to_owned())));
            }
        }
        routes.retain(|(_, path)| !APART.contains(&path.as_str()) && !path.starts_with("/static/"));
        routes
    }

    /// The paths of a route with their ids in it, once per action.
    pub fn filled(&self, path: &str) -> Vec<String> {
        // Only a mailbox has rules.
        let mut filled = path.replace("/sources/{id}/mail", &format!("/sources/{}/mail", self.id_of("mailbox")));
        for (what, id) in &self.ids {
            for name in ["{id}", "{activity_id}"] {
                filled = filled.replace(&format!("/{what}/{name}"), &format!("/{what}/{id}"));
            }
        }
        for (name, value) in [
            ("{lane}", "upkeep"),
            ("{kind}", "dead_letters"),
            ("{external_id}", "contact:51"),
            ("{fact}", "industry"),
            ("{decision}", "0190c7de-aaaa-7bbb-8ccc-00000000000d"),
            ("{merge}", "0190c7de-aaaa-7bbb-8ccc-00000000000e"),
            ("{nth}", "0"),
            ("{number}", "1"),
            ("{day}", "2026-11-14"),
            ("{provider}", "hubspot"),
            ("{table}", "activities"),
            ("{name}", "claim_next_pending_activity"),
        ] {
            filled = filled.replace(name, value);
        }
        let all: Vec<String> = match filled.contains("{action}") {
            true => ACTIONS.iter().map(|action| filled.replace("{action}", action)).collect(),
            false => vec![filled],
        };
        assert!(all.iter().all(|path| !path.contains('{')), "no sample for {path}: name one here");
        all
    }

    /// A body that the description allows.
    pub fn body(&self, method: &str, path: &str) -> Option<Value> {
        match (method, path) {
            ("PATCH", "/api/v1/nodes/{id}") => return Some(json!({ "enabled": false })),
            ("POST", "/api/v1/sources/{id}/sync") => return Some(json!({})),
            // One of the two that its description has.
            ("POST", "/api/v1/clients/{id}/split") => {
                return Some(json!({ "record": "0190c7de-aaaa-7bbb-8ccc-00000000000f" }));
            }
            ("POST", "/api/v1/documents/{id}/read-again") => return Some(json!({ "from": "extract" })),
            ("PATCH", "/api/v1/sources/{id}/mail") => return Some(json!({ "places": ["inbox"] })),
            ("POST", "/api/v1/sources/{id}/mail/let-in") => return Some(json!({ "message_id": "x" })),
            ("PATCH", "/api/v1/people/{id}") => return Some(json!({ "first_name": "owned", "role": "owner" })),
            _ => {}
        }
        let content = &self.openapi["paths"][path][method.to_lowercase()]["requestBody"]["content"];
        let schema = &content["application/json"]["schema"];
        (!schema.is_null()).then(|| self.example(schema))
    }

    fn example(&self, schema: &Value) -> Value {
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
            return self.example(&self.openapi["components"]["schemas"][name]);
        }
        let several = ["oneOf", "anyOf", "allOf"].iter().find_map(|several| schema[*several].as_array());
        if let Some(one) = several.and_then(|several| several.iter().find(|one| one["type"] != "null")) {
            return self.example(one);
        }
        if let Some(words) = schema["enum"].as_array() {
            return words[0].clone();
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds.iter().find(|kind| **kind != "null").and_then(Value::as_str),
            kind => kind.as_str(),
        };
        match kind {
            Some("object") => {
                let fields = schema["properties"].as_object().into_iter().flatten();
                fields.map(|(name, field)| (name.clone(), self.example(field))).collect::<Map<_, _>>().into()
            }
            Some("array") => json!([]),
            Some("integer" | "number") => json!(3_600),
            Some("boolean") => json!(true),
            _ if schema["format"] == "date-time" => json!("2026-11-15T12:00:00Z"),
            _ if schema["format"] == "uuid" => json!("0190c7de-aaaa-7bbb-8ccc-00000000000f"),
            _ => json!("x"),
        }
    }

    /// Status and body, as one of the strangers gets them.
    pub async fn ask(&self, who: &Stranger, method: &str, path: &str, body: Option<Value>) -> (u16, String) {
        let url = format!("{}{path}", self.office.app.url);
        let request = self.http.request(method.parse().expect("a method"), url);
        let is_page = !["/api/", "/rest/", "/realtime/"].iter().any(|begins| path.starts_with(begins));
        let request = match who {
            Stranger::Key(_, key) => request.bearer_auth(key.reveal()).header("apikey", key.reveal()),
            Stranger::Session { cookie, csrf } => {
                request.header("cookie", cookie).header("x-csrf", csrf).header("origin", &self.office.app.url)
            }
        };
        let request = if is_page { request.header("accept", "text/html") } else { request };
        let request = match (body, is_page && method == "POST") {
            (_, true) => {
                let csrf = if let Stranger::Session { csrf, .. } = who { csrf.as_str() } else { "" };
                let contact = self.id_of("contacts");
                request.form(&[
                    ("csrf", csrf),
                    ("back", "/"),
                    ("name", "owned"),
                    ("contact", contact),
                    ("every", "1h"),
                    ("key", "pat-na1-owned"),
                    ("action", "retry_all"),
                    ("enabled", "false"),
                    ("concurrency", "3"),
                ])
            }
            (Some(body), _) => request.json(&body),
            (None, _) => request,
        };
        let answer = request.send().await.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        (answer.status().as_u16(), answer.text().await.unwrap_or_default())
    }

    pub fn id_of(&self, what: &str) -> &str {
        &self.ids.iter().find(|(known, _)| *known == what).expect("an id").1
    }

    /// A word of theirs in an answer. What was sent may be said back.
    pub fn leaked<'a>(&'a self, answer: &str, sent: &str) -> Option<&'a str> {
        self.words.iter().map(String::as_str).find(|word| answer.contains(word) && !sent.contains(word))
    }

    /// Number and hash of their rows in every table.
    pub async fn their_rows(&self) -> Vec<(String, i64, Option<String>)> {
        let world = &self.office.t.world;
        let mut admin = store::bench::administrator(&world.database.admin).await.expect("the superuser");
        let tables: Vec<(String, bool)> = sqlx::query_as(
            "select c.oid::regclass::text, n.nspname = 'pgmq' from pg_class c join pg_namespace n on n.oid = c.relnamespace
             where c.relkind in ('r', 'p') and (n.nspname = 'pgmq' and c.relname ~ '^[qa]_' or n.nspname in ('public', 'tributary', 'memory')
                 and exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped))
             order by 1",
        )
        .fetch_all(&mut admin)
        .await
        .expect("tables");
        assert!(tables.len() > 40, "only {} tables", tables.len());
        let mut rows = Vec::new();
        for (table, is_queue) in tables {
            let tenant = if is_queue { "message ->> 'tenant_id'" } else { "tenant_id::text" };
            let sql = format!(
                "select count(*), md5(string_agg(t::text, '|' order by t::text)) from {table} t where {tenant} = $1"
            );
            let hashed = sqlx::query_as(sqlx::AssertSqlSafe(sql)).bind(world.tenant_id.to_string());
            let (n, hash) = hashed.fetch_one(&mut admin).await.expect("rows");
            rows.push((table, n, hash));
        }
        rows
    }
}
