//! Servers of both eras, well and not well.

mod eras;

use rmcp::model::JsonObject;
use serde_json::json;
use tokio::net::TcpListener;

use super::connection::{Era, Server as Known};
use super::*;
use crate::pull::tests::{Asked, Counted, Person, Reply, Server, all, all_ids, ids, raw_reply, short};
use crate::pull::{ALL, Page, hubspot};

const JSON: &str = "Content-Type: application/json\r\nMcp-Session-Id: s1\r\n";
const EVENTS: &str = "Content-Type: text/event-stream\r\n";

impl Asked {
    pub fn call(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The method of the protocol; for a request without one, its HTTP verb.
    fn method(&self) -> String {
        let verb = self.line.split(' ').next().unwrap_or_default().to_owned();
        self.call()["method"].as_str().map_or(verb, str::to_owned)
    }

    /// The tool, and these arguments of it.
    pub fn tool<const N: usize>(&self, arguments: [&str; N]) -> (String, [String; N]) {
        let params = &self.call()["params"];
        let argument = |name: &str| params["arguments"][name].as_str().unwrap_or_default().to_owned();
        (params["name"].as_str().unwrap_or_default().to_owned(), arguments.map(argument))
    }

    fn says(&self, header: &str) -> bool {
        self.head.to_lowercase().contains(header)
    }

    /// The answer to it.
    pub fn result(&self, result: Value) -> Reply {
        let answer = json!({ "jsonrpc": "2.0", "id": self.call()["id"], "result": result });
        raw_reply("200 OK", JSON, answer.to_string().as_bytes())
    }

    pub fn text(&self, text: impl ToString) -> Reply {
        self.result(json!({ "content": [{ "type": "text", "text": text.to_string() }] }))
    }

    pub fn tool_error(&self, text: &str) -> Reply {
        self.result(json!({ "content": [{ "type": "text", "text": text }], "isError": true }))
    }

    fn error(&self, status: &str, code: i32) -> Reply {
        let error = json!({ "jsonrpc": "2.0", "id": self.call()["id"], "error": { "code": code, "message": "no" } });
        raw_reply(status, JSON, error.to_string().as_bytes())
    }
}

impl Server {
    fn mcp(&self) -> Listing<McpLister> {
        self.mcp_of(&hubspot::SPEC)
    }

    pub fn mcp_of(&self, provider: Provider) -> Listing<McpLister> {
        let http = Http::new().expect("a client");
        let (url, silence) = (self.url.as_str().into(), Duration::from_millis(300));
        let (era, deadline) = (Mutex::default(), super::wire::DEADLINE);
        let mcp = provider.mcp.as_ref().expect("tools");
        let server = Known { provider, mcp, url, http, era, silence, deadline };
        Listing { provider, lister: McpLister { server, open: Mutex::default() }, identity: None, first_max: None }
    }

    /// Returns the methods that were called, in order.
    fn methods(&self) -> Vec<String> {
        self.asked().iter().map(Asked::method).collect()
    }

    pub fn count(&self, method: &str) -> usize {
        self.methods().iter().filter(|asked| *asked == method).count()
    }
}

/// The tools of every provider, and one that writes.
fn tools() -> Vec<Value> {
    let mut tools = vec![json!({ "name": "hubspot-batch-create-objects", "inputSchema": { "type": "object" } })];
    for tool in ALL.iter().filter_map(|provider| provider.mcp.as_ref()).flat_map(|mcp| mcp.tools) {
        let schema: JsonObject = serde_json::from_str(tool.schemas[0]).expect("a schema");
        tools.push(json!({ "name": tool.name, "description": "Reads.", "inputSchema": schema }));
    }
    tools
}

/// Answers as a server of the modern era does, except for tool calls.
fn modern(asked: &Asked) -> Option<Reply> {
    match asked.method().as_str() {
        "server/discover" => Some(asked.result(json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
            "ttlMs": 0, "cacheScope": "private",
        }))),
        "tools/list" => Some(asked.result(json!({ "resultType": "complete", "tools": tools() }))),
        "tools/call" => None,
        _ => Some(asked.error("404 Not Found", -32601)),
    }
}

/// Likewise of the old one, which knows us by our session.
fn legacy(asked: &Asked) -> Option<Reply> {
    match asked.method().as_str() {
        "DELETE" => Some(raw_reply("200 OK", "", b"")),
        "initialize" => Some(asked.result(json!({
            "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": { "name": "x", "version": "1" },
        }))),
        _ if !asked.says("mcp-session-id: s1") => Some(raw_reply("400 Bad Request", "", b"Bad Request: no session")),
        "notifications/initialized" => Some(raw_reply("202 Accepted", "", b"")),
        "tools/list" => Some(asked.result(json!({ "tools": tools() }))),
        "tools/call" => None,
        _ => Some(raw_reply("405 Method Not Allowed", "", b"")),
    }
}

/// Two contacts on two pages, one company, no deal.
fn crm(asked: &Asked) -> Reply {
    let record = |id: &str| json!({ "id": id, "properties": { "lastname": "Vickery" }, "archived": false });
    let (tool, [kind, after]) = asked.tool(["objectType", "after"]);
    match (tool.as_str(), kind.as_str(), after.as_str()) {
        ("hubspot-list-objects", "contacts", "") => {
            asked.text(json!({ "results": [record("51")], "paging": { "next": { "after": "52" } } }))
        }
        ("hubspot-list-objects", "contacts", "52") => asked.text(json!({ "results": [record("52")] })),
        ("hubspot-list-objects", "companies", "") => asked.text(json!({ "results": [record("51")] })),
        ("hubspot-list-objects", "deals", "") => asked.text(json!({ "results": [] })),
        ("hubspot-batch-read-objects", ..) => {
            let inputs = asked.call()["params"]["arguments"]["inputs"].as_array().cloned().unwrap_or_default();
            let there = inputs.iter().filter_map(|input| input["id"].as_str()).filter(|id| *id != "404");
            asked.text(json!({ "status": "COMPLETE", "results": there.map(record).collect::<Vec<_>>() }))
        }
        ("hubspot-list-associations", ..) => asked.text(json!({ "results": [{ "toObjectId": 54 }] })),
        other => panic!("nobody may call {other:?}"),
    }
}

/// A server of the modern era that says this to every call.
pub(in crate::pull) async fn says(
    said: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
) -> (Server, Listing<McpLister>) {
    let server = Server::start(move |asked| modern(asked).unwrap_or_else(|| said(asked))).await;
    let mcp = server.mcp();
    (server, mcp)
}

fn person(token: &str) -> Person {
    Person { token: Secret::new(token), pace: Counted::default() }
}

async fn first_page(mcp: &Listing<McpLister>, token: &str) -> Result<Page, PullError> {
    mcp.full(&person(token).account(), None, false).await
}

#[tokio::test]
async fn a_pass_over_a_modern_server_needs_no_session_and_one_list_of_tools() {
    let (server, mcp) = says(crm).await;
    let pages = all(&mcp, &Person::new(), true).await.expect("a pass");
    assert_eq!(all_ids(&pages), ["contact:51", "contact:52", "company:51"]);
    assert_eq!(mcp.lister.server.era(), Some(Era::Modern));
    let methods = ["server/discover", "tools/list", "tools/call", "tools/call", "tools/call", "tools/call"];
    assert_eq!(server.methods(), methods);
    for asked in server.asked() {
        assert!(asked.says("authorization: bearer canary-token-7f3a"), "{}", asked.head);
        assert!(asked.says("mcp-protocol-version: 2026-07-28"), "{}", asked.head);
        assert!(asked.says(&format!("mcp-method: {}", asked.method())), "{}", asked.head);
        assert!(!asked.says("mcp-session-id"), "{}", asked.head);
    }
}

#[tokio::test]
async fn a_tool_that_takes_something_else_is_not_called_and_no_other_is() {
    for code in ["mcp_schema_changed", "mcp_tool_missing"] {
        let server = Server::start(move |asked| {
            if asked.method() != "tools/list" {
                return modern(asked).unwrap_or_else(|| crm(asked));
            }
            let mut tools = tools();
            if code == "mcp_tool_missing" {
                tools.retain(|tool| tool["name"] != "hubspot-batch-read-objects");
            }
            for tool in tools.iter_mut().filter(|tool| tool["name"] == "hubspot-batch-read-objects") {
                tool["inputSchema"]["properties"]["purge"] = json!({ "type": "boolean", "default": true });
            }
            asked.result(json!({ "tools": tools }))
        })
        .await;
        let refused = first_page(&server.mcp(), "one").await.expect_err("no page").to_string();
        let expected = format!("HubSpot's MCP server refused what we asked for ({code}: hubspot-batch-read-objects)");
        assert_eq!((refused, server.count("tools/call")), (expected, 0));
    }
}

#[tokio::test]
async fn a_list_of_tools_without_an_end_is_given_up() {
    let server = Server::start(|asked| match asked.method().as_str() {
        "tools/list" => asked.result(json!({ "tools": [], "nextCursor": "again" })),
        _ => modern(asked).unwrap_or_else(|| crm(asked)),
    })
    .await;
    let refused = first_page(&server.mcp(), "one").await.expect_err("no page").to_string();
    assert_eq!(refused, "HubSpot's MCP server has a list of tools without an end");
}

#[tokio::test]
async fn what_a_status_says_is_told_apart() {
    for (status, headers, expected) in [
        ("401 Unauthorized", "", "refused the token"),
        ("401 Unauthorized", "WWW-Authenticate: Bearer resource_metadata=\"x\"\r\n", "refused the token"),
        ("403 Forbidden", "", "refused what we asked for (http_403)"),
        (
            "403 Forbidden",
            "WWW-Authenticate: Bearer error=\"insufficient_scope\"\r\n",
            "refused what we asked for (insufficient_scope)",
        ),
        ("429 Too Many Requests", "Retry-After: 30\r\n", "asked us to wait 30 s"),
        ("429 Too Many Requests", "", "asked us to wait 10 s"),
        ("503 Service Unavailable", "Retry-After: 7\r\n", "asked us to wait 7 s"),
        ("502 Bad Gateway", "Content-Type: text/html\r\n", "answered 502"),
        ("302 Found", "Location: http://elsewhere.example/\r\n", "answered 302 and no MCP"),
        ("200 OK", "Content-Type: text/html\r\n", "answered 200 and no MCP"),
    ] {
        for when in ["server/discover", "tools/list", "tools/call"] {
            let server = Server::start(move |asked| match asked.method() {
                method if method == when => raw_reply(status, headers, b"<h1>Nora Vickery</h1>"),
                _ => modern(asked).unwrap_or_else(|| crm(asked)),
            })
            .await;
            let refused = first_page(&server.mcp(), "one").await.expect_err("no page");
            assert_eq!(refused.to_string(), format!("HubSpot's MCP server {expected}"), "{when}");
        }
    }
}

#[tokio::test]
async fn an_answer_may_come_as_a_stream_with_other_things_before_it() {
    let (_server, mcp) = says(|asked| {
        let result = json!({ "content": [], "structuredContent": { "results": [{ "id": "51", "properties": {} }] } });
        let answer = json!({ "jsonrpc": "2.0", "id": asked.call()["id"], "result": result });
        let notice =
            json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": "x" } });
        let stream = format!(": still here\n\ndata: {notice}\n\nevent: message\ndata: {answer}\n\n");
        raw_reply("200 OK", EVENTS, stream.as_bytes())
    })
    .await;
    let page = first_page(&mcp, "one").await.expect("a page");
    assert_eq!(ids(&page.items), ["contact:51"]);
}

#[tokio::test]
async fn a_stream_that_breaks_or_has_no_end_gives_no_page() {
    for (headers, start, fill, expected) in [
        (EVENTS, "data: {\"jsonrpc\":\"2.0\",\"id\":", 0, "passing: HubSpot's MCP server broke off its answer"),
        (EVENTS, "data: ", 33 << 20, "unreadable: HubSpot's MCP server gave an answer of more than 33554432 bytes"),
        (JSON, "", 33 << 20, "unreadable: HubSpot's MCP server gave an answer of more than 33554432 bytes"),
    ] {
        let (_server, mcp) =
            says(move |_| raw_reply("200 OK", headers, &[start.as_bytes(), &vec![b'x'; fill]].concat())).await;
        let refused = first_page(&mcp, "one").await.expect_err("no page");
        assert_eq!(short(&refused), expected);
    }
}

#[tokio::test]
async fn a_tool_that_wants_to_ask_somebody_is_refused() {
    let (_server, mcp) = says(|asked| {
        let form = json!({ "mode": "form", "message": "Which portal?", "requestedSchema": { "type": "object", "properties": {} } });
        asked.result(json!({
            "resultType": "input_required", "requestState": "s",
            "inputRequests": { "portal": { "method": "elicitation/create", "params": form } },
        }))
    })
    .await;
    let refused = first_page(&mcp, "one").await.expect_err("no page").to_string();
    assert_eq!(refused, "HubSpot's MCP server refused what we asked for (mcp_input_required: hubspot-list-objects)");
}

#[tokio::test]
async fn errors_of_the_protocol_and_of_the_tool_are_told_apart() {
    let (_server, mcp) = says(|asked| asked.error("400 Bad Request", -32602)).await;
    let refused = first_page(&mcp, "one").await.expect_err("no page").to_string();
    assert_eq!(refused, "HubSpot's MCP server refused what we asked for (mcp_error: -32602)");

    let (server, mcp) =
        says(|asked| asked.tool_error("Error listing: HubSpot API Error: 429 Too Many Requests - {}")).await;
    for _ in 0..2 {
        let refused = first_page(&mcp, "one").await.expect_err("no page").to_string();
        assert_eq!(refused, "HubSpot's MCP server asked us to wait 10 s");
    }
    assert_eq!(server.count("tools/list"), 1, "the connection is as good as before");
}

#[tokio::test]
async fn a_token_that_a_server_says_back_goes_no_further() {
    let (_server, mcp) = says(|asked| asked.text("no JSON, canary-7f3a, \0")).await;
    let refused = first_page(&mcp, "canary-7f3a").await.expect_err("no page");
    assert!(matches!(&refused, PullError::Unreadable { raw, .. } if raw == "no JSON, ***, \u{fffd}"), "{refused:?}");
}

#[tokio::test]
async fn a_session_that_is_gone_is_begun_again_once() {
    let calls = Mutex::new(0);
    let server = Server::start(move |asked| {
        legacy(asked).unwrap_or_else(|| {
            let mut calls = calls.lock().expect("a number");
            *calls += 1;
            if [2, 4, 5].contains(&*calls) { raw_reply("404 Not Found", "", b"") } else { crm(asked) }
        })
    })
    .await;
    let mcp = server.mcp();
    first_page(&mcp, "one").await.expect("a page");
    first_page(&mcp, "one").await.expect("a page, over a second session");
    assert_eq!((server.count("initialize"), server.count("tools/list"), server.count("tools/call")), (2, 2, 3));
    let refused = first_page(&mcp, "one").await.expect_err("no page").to_string();
    assert_eq!(refused, "HubSpot's MCP server lost our session");
}

#[tokio::test]
async fn records_are_found_with_whom_they_belong_to_and_what_is_gone_is_not() {
    let (_server, mcp) = says(crm).await;
    let asked = ["contact:51", "contact:404", "company:51", "deal:58"].map(str::to_owned);
    let (items, failed) = mcp.find(&Person::new().account(), &asked).await.expect("an answer");
    assert_eq!(failed, []);
    assert_eq!(ids(&items), ["contact:51", "company:51", "deal:58"]);
    let companies: Vec<&Value> = items.iter().map(|item| &item.raw.payload["associations"]["companies"]).collect();
    assert_eq!(companies, [&json!(["54"]), &Value::Null, &json!(["54"])]);
}

#[tokio::test]
async fn a_record_with_more_companies_than_a_list_tells_has_all_of_them() {
    let (server, mcp) = says(|asked| match asked.tool(["after"]) {
        (tool, [after]) if tool == "hubspot-list-associations" && after.is_empty() => {
            asked.text(json!({ "results": [{ "toObjectId": 54 }], "paging": { "next": { "after": "x" } } }))
        }
        (tool, _) if tool == "hubspot-list-associations" => asked.text(json!({ "results": [{ "toObjectId": 55 }] })),
        _ => {
            let cut = json!({ "companies": { "results": [{ "id": "54" }], "paging": { "next": { "after": "54" } } } });
            let whole = json!({ "companies": { "results": [{ "id": "56" }] } });
            asked.text(json!({ "results": [
                { "id": "1", "properties": {}, "associations": cut },
                { "id": "2", "properties": {}, "associations": whole },
                { "id": "3", "properties": {} },
            ] }))
        }
    })
    .await;
    let page = first_page(&mcp, "one").await.expect("a page");
    let companies: Vec<&Value> = page.items.iter().map(|item| &item.raw.payload["associations"]["companies"]).collect();
    assert_eq!(companies, [&json!(["54", "55"]), &json!(["56"]), &json!([])]);
    assert_eq!(server.count("tools/call"), 3);
}

#[tokio::test]
async fn what_is_wrong_with_one_record_holds_up_no_other() {
    let (_server, mcp) = says(|asked| match asked.tool(["objectId"]) {
        (tool, [id]) if tool == "hubspot-list-associations" && id == "51" => {
            asked.tool_error("HubSpot API Error: 403 Forbidden - {}")
        }
        (tool, _) if tool == "hubspot-batch-read-objects" => {
            let records = json!([{ "id": "51", "properties": {} }, { "id": "52", "properties": {} }, { "id": "53" }]);
            asked.text(json!({ "results": records }))
        }
        _ => crm(asked),
    })
    .await;
    let asked = ["contact:51", "contact:52", "contact:53"].map(str::to_owned);
    let (items, mut failed) = mcp.find(&Person::new().account(), &asked).await.expect("an answer");
    assert_eq!(ids(&items), ["contact:52"]);
    failed.sort_by(|one, other| one.external_id.cmp(&other.external_id));
    let behind: Vec<(&str, &str)> =
        failed.iter().map(|failed| (failed.external_id.as_str(), failed.reason.as_str())).collect();
    let refused = "HubSpot's MCP server refused what we asked for (http_403)";
    assert_eq!(behind, [("contact:51", refused), ("contact:53", "it has no properties")]);
}

/// The connector of a server that the settings name.
fn named(url: &str) -> anyhow::Result<Option<Arc<dyn Connector>>> {
    let mut settings = Settings::default();
    settings.set("HUBSPOT_MCP_URL", url);
    mcp(&hubspot::SPEC, &settings, &Http::new().expect("a client"))
}

#[tokio::test]
async fn nobody_there_is_a_passing_trouble() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    drop(listener);
    let mcp = named(&url).expect("an address").expect("a connector");
    let refused = mcp.full(&Person::new().account(), None, false).await.expect_err("no page");
    assert_eq!(refused.to_string(), "HubSpot's MCP server could not be reached: connection refused");
}

#[test]
fn an_address_that_is_none_of_the_web_is_refused() {
    for url in ["", "mcp.hubspot.com", "file:///etc/passwd", "https://"] {
        assert!(named(url).is_err(), "{url}");
    }
}

#[tokio::test]
async fn a_call_that_is_not_answered_ends_at_its_deadline_and_leaves_no_connection() {
    let (server, mut mcp) = says(|_| Reply { bytes: Vec::new(), is_silent: true }).await;
    mcp.lister.server.deadline = Duration::from_secs(1);
    for n_connections in [1, 2] {
        let began = std::time::Instant::now();
        let refused = first_page(&mcp, "one").await.expect_err("no page");
        assert_eq!(short(&refused), "passing: HubSpot's MCP server did not answer in time");
        assert!(began.elapsed() < Duration::from_secs(20), "it took {:?}", began.elapsed());
        assert_eq!(server.count("tools/list"), n_connections, "the connection that hung is used again");
    }
}

#[tokio::test]
async fn a_server_that_does_not_even_list_its_tools_ends_at_the_deadline() {
    let server = Server::start(|asked| match asked.method().as_str() {
        "tools/list" => Reply { bytes: Vec::new(), is_silent: true },
        _ => modern(asked).unwrap_or_else(|| crm(asked)),
    })
    .await;
    let mut mcp = server.mcp();
    mcp.lister.server.deadline = Duration::from_secs(1);
    let refused = first_page(&mcp, "one").await.expect_err("no page");
    assert_eq!(short(&refused), "passing: HubSpot's MCP server did not answer in time");
    assert_eq!(server.count("tools/call"), 0);
}

#[tokio::test]
async fn what_a_batch_could_not_read_is_not_gone() {
    let (_server, mcp) = says(|asked| match asked.tool([]) {
        (tool, []) if tool == "hubspot-batch-read-objects" => asked.text(json!({
            "status": "COMPLETE", "results": [], "numErrors": 1,
            "errors": [{ "status": "error", "category": "INTERNAL_ERROR", "message": "Nora" }],
        })),
        _ => crm(asked),
    })
    .await;
    let refused = mcp.find(&Person::new().account(), &["contact:51".to_owned()]).await.expect_err("a part");
    assert_eq!(short(&refused), "passing: HubSpot's MCP server answered only a part of what was asked");

    let (_server, mcp) = says(|asked| {
        let errors = json!([{ "status": "error", "category": "OBJECT_NOT_FOUND" }]);
        asked.text(json!({ "status": "COMPLETE", "results": [], "numErrors": 1, "errors": errors }))
    })
    .await;
    let found = mcp.find(&Person::new().account(), &["contact:51".to_owned()]).await.expect("an answer");
    assert_eq!(found, (vec![], vec![]));
}

#[tokio::test]
async fn a_page_token_that_is_refused_starts_the_pass_anew() {
    let (_server, mcp) = says(|asked| match asked.tool(["after"]) {
        (_, [after]) if !after.is_empty() => {
            asked.tool_error(r#"Error listing: HubSpot API Error: 400 Bad Request - {"category":"VALIDATION_ERROR"}"#)
        }
        _ => crm(asked),
    })
    .await;
    let person = Person::new();
    let first = mcp.full(&person.account(), None, false).await.expect("a page");
    let refused = mcp.full(&person.account(), Some(&first.next), false).await.expect_err("no page");
    assert!(matches!(refused, PullError::CursorLost(_)), "{refused:?}");

    // As an error of the protocol.
    let (_server, mcp) = says(|asked| match asked.tool(["after"]) {
        (_, [after]) if !after.is_empty() => asked.error("400 Bad Request", -32602),
        _ => crm(asked),
    })
    .await;
    let refused = mcp.full(&person.account(), Some(&first.next), false).await.expect_err("no page");
    assert!(matches!(refused, PullError::CursorLost(_)), "{refused:?}");

    // Without a token there is nothing to lose.
    let (_server, mcp) = says(|asked| asked.tool_error("Error listing: HubSpot API Error: 400 Bad Request - {}")).await;
    let refused = first_page(&mcp, "one").await.expect_err("no page");
    assert!(matches!(refused, PullError::Unreadable { .. }), "{refused:?}");
}
