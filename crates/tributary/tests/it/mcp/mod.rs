//! This memory over MCP: the protocol, other people's clients, tenants and rights, OAuth, and the set-up of programs.

mod clients;
mod consent;
mod oauth;
mod protocol;
mod rights;
mod setup;

use domain::{PersonId, Role, Scope, Secret, TenantId};
use engine::memory::door::{self, Incoming};
use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};
use store::people::{self, Fields};
use testkit::World;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::app::{App, Folder, client, command, free_port};

pub const MODERN: &str = "2026-07-28";

/// A server with a few notes, and OAuth at its loopback address.
pub struct Desk {
    pub world: World,
    pub app: App,
    pub folder: Folder,
    port: u16,
    settings: Vec<(String, String)>,
}

impl Desk {
    pub async fn new() -> Self {
        Self::with(&[]).await
    }

    /// With further settings.
    pub async fn with(settings: &[(&str, &str)]) -> Self {
        let world = World::now().await;
        let (folder, port) = (Folder::new(), free_port());
        let mut settings: Vec<(String, String)> =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        if !settings.iter().any(|(name, _)| name == "MCP_OAUTH") {
            settings.push(("MCP_OAUTH".into(), "loopback".into()));
        }
        let app = Self::start(&world, &folder, port, &settings).await;
        Self { world, app, folder, port, settings }
    }

    async fn start(world: &World, folder: &Folder, port: u16, settings: &[(String, String)]) -> App {
        let mut serve = command(&folder.0, port);
        serve.env("DATABASE_URL", &world.database.url).env("LOG", "debug");
        serve.envs(settings.iter().map(|(name, value)| (name, value)));
        App::start(serve, &["serve"], port).await
    }

    /// Ends the server and starts it again at the same address.
    pub async fn restart(&mut self) {
        self.app.signal(rustix::process::Signal::TERM);
        assert!(self.app.ended_within(std::time::Duration::from_secs(20)).await.is_some(), "it does not end");
        self.app = Self::start(&self.world, &self.folder, self.port, &self.settings).await;
    }

    pub async fn key(&self, scopes: &[Scope]) -> Secret {
        self.world.caller(self.world.tenant_id, scopes).await.1
    }

    /// Remembers a note of a tenant's.
    pub async fn note(&self, tenant_id: TenantId, title: &str, text: &str) -> String {
        let incoming = Incoming {
            content: text.to_owned().into_bytes().into(),
            title: Some(title.to_owned()),
            ..Incoming::default()
        };
        door::accept(&self.world.env, tenant_id, incoming).await.expect("a document").id.to_string()
    }

    /// A person with this role, and a session of theirs.
    pub async fn person(&self, tenant_id: TenantId, email: &str, role: Role) -> (PersonId, Visit) {
        let mut conn = self.world.conn().await;
        let fields = Fields { email: Some(email.to_owned()), role: Some(role), ..Fields::default() };
        let id = people::insert(&mut conn, tenant_id, &fields).await.expect("a person");
        let key = store::keys::ensure_sign_in(&mut conn, tenant_id, id).await.expect("a key");
        let (link, _) = store::sessions::new_link(&mut conn, None, tenant_id, key, 15).await.expect("a link");
        (id, Visit::with(&self.app.url, "/signin/once", &[("once", link.reveal())]).await)
    }

    /// A session of somebody with every right.
    pub async fn owner(&self) -> Visit {
        let key = self.key(&[Scope::Service]).await;
        Visit::with(&self.app.url, "/signin", &[("key", key.reveal())]).await
    }

    fn post(&self, key: Option<&str>) -> RequestBuilder {
        let request = client().post(format!("{}/mcp", self.app.url));
        let request = request.header("accept", "application/json, text/event-stream");
        key.iter().fold(request, |request, key| request.bearer_auth(key))
    }

    /// Asks as a client of the revision 2025-11-25 does.
    pub async fn ask(&self, key: &str, method: &str, params: Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let sent = self.post(Some(key)).header("mcp-protocol-version", "2025-11-25").json(&body).send().await;
        sent.expect("an answer").json().await.expect("JSON")
    }

    /// Calls a tool, and returns its structured answer, or the words in which it refuses.
    pub async fn call(&self, key: &str, tool: &str, arguments: Value) -> Result<Value, String> {
        let answer = self.ask(key, "tools/call", json!({ "name": tool, "arguments": arguments })).await;
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        if result["isError"] == true {
            assert!(result.get("structuredContent").is_none(), "an error with a structure: {answer}");
            return Err(text);
        }
        assert_eq!(result["content"].as_array().map(Vec::len), Some(1), "{answer}");
        let structured = result["structuredContent"].clone();
        assert_eq!(serde_json::from_str::<Value>(&text).ok(), Some(structured.clone()), "text and structure differ");
        Ok(structured)
    }

    /// Asks as a client of the newest revision does: everything is in the request.
    async fn ask_modern(&self, key: &str, method: &str, mut params: Value, headers: &[(&str, &str)]) -> Response {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let request = self.post(Some(key)).header("mcp-protocol-version", MODERN);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.json(&body).send().await.expect("an answer")
    }

    pub async fn number(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&mut *self.world.conn().await).await.expect("a number")
    }

    pub async fn run(&self, sql: &'static str) {
        sqlx::raw_sql(sql).execute(&mut *self.world.conn().await).await.expect(sql);
    }
}

/// A browser that is signed in.
pub struct Visit {
    pub url: String,
    pub cookie: String,
}

impl Visit {
    async fn with(url: &str, path: &str, form: &[(&str, &str)]) -> Self {
        let answer = client().post(format!("{url}{path}")).header("origin", url).form(form).send().await;
        let answer = answer.expect("an answer");
        assert_eq!(answer.status().as_u16(), 303, "nobody is signed in");
        let cookie = answer.headers()["set-cookie"].to_str().expect("a cookie");
        Self { url: url.to_owned(), cookie: cookie.split(';').next().expect("a value").to_owned() }
    }

    pub async fn get(&self, path: &str) -> Response {
        let request = client().get(format!("{}{path}", self.url)).header("cookie", &self.cookie);
        request.header("accept", "text/html").send().await.expect("an answer")
    }

    pub async fn post(&self, path: &str, form: &[(&str, &str)]) -> Response {
        let request = client().post(format!("{}{path}", self.url)).header("cookie", &self.cookie);
        request.header("origin", &self.url).header("accept", "text/html").form(form).send().await.expect("an answer")
    }

    /// The token of this browser's forms.
    pub async fn csrf(&self) -> String {
        let page = self.get("/settings/sessions").await.text().await.expect("a page");
        let token = page.split("name=\"csrf\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
        token.expect("a token").to_owned()
    }
}

/// Somebody else's server, which answers every request with the same text and tells what was asked.
pub struct Elsewhere {
    pub url: String,
    asked: UnboundedReceiver<String>,
    task: tokio::task::JoinHandle<()>,
}

impl Elsewhere {
    /// `body` may name the server's own address.
    pub async fn start(content_type: &'static str, body: impl Fn(&str) -> String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let body = body(&url);
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        let (tell, asked) = unbounded_channel();
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = vec![0; 16 * 1024];
                let n = stream.read(&mut request).await.unwrap_or_default();
                let text = String::from_utf8_lossy(&request[..n]).into_owned();
                let _ = tell.send(text.split(' ').nth(1).unwrap_or_default().to_owned());
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        });
        Self { url, asked, task }
    }

    /// The path and query of the next request.
    pub async fn asked(&mut self) -> String {
        let asked = tokio::time::timeout(std::time::Duration::from_secs(10), self.asked.recv()).await;
        asked.expect("in time").expect("a request")
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        self.task.abort();
    }
}
