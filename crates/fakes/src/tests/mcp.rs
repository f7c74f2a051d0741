use rmcp::model::{CallToolRequestParams, CallToolResult, ClientConfig, ProtocolVersion};
use rmcp::service::RunningService;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientLifecycleMode, ClientServiceExt as _, RoleClient};
use serde_json::{Value, json};

use super::{Browser, texts};
use crate::{Fakes, HUBSPOT, Manner};

type Client = RunningService<RoleClient, ClientConfig>;

const LIST: &str = "hubspot-list-objects";

async fn start() -> Browser {
    Browser::of(HUBSPOT, Fakes::with_fixtures().await).await
}

impl Browser {
    async fn mcp(&self, path: &str, mode: ClientLifecycleMode) -> Client {
        let uri = format!("{}{path}", self.fakes.url());
        let config = StreamableHttpClientTransportConfig::with_uri(uri).auth_header(self.token.clone());
        let transport = StreamableHttpClientTransport::from_config(config);
        ClientConfig::default().serve_with_lifecycle(transport, mode).await.expect("a client")
    }

    async fn modern(&self) -> Client {
        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
        self.mcp("/mcp/hubspot", ClientLifecycleMode::Discover { preferred_versions }).await
    }

    async fn legacy(&self) -> Client {
        self.mcp("/mcp-legacy/hubspot", ClientLifecycleMode::Initialize).await
    }
}

async fn call(client: &Client, tool: &'static str, arguments: Value) -> CallToolResult {
    let arguments = arguments.as_object().cloned().expect("an object");
    client.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments)).await.expect("a result")
}

fn text(result: &CallToolResult) -> &str {
    &result.content[0].as_text().expect("text").text
}

/// The JSON in its one block.
fn page(result: &CallToolResult) -> Value {
    assert_ne!(result.is_error, Some(true), "{}", text(result));
    assert_eq!((result.content.len(), &result.structured_content), (1, &None));
    serde_json::from_str(text(result)).expect("JSON")
}

#[tokio::test]
async fn both_eras_offer_the_same_tools_and_page_to_the_end() {
    let browser = start().await;
    let over_rest = browser.get_json("/hubspot/crm/v3/objects/contacts?limit=100&associations=companies").await.1;
    for client in [browser.modern().await, browser.legacy().await] {
        let tools = client.list_all_tools().await.expect("tools");
        let read_only = |tool: &rmcp::model::Tool| tool.annotations.as_ref().and_then(|hints| hints.read_only_hint);
        let mut names: Vec<_> =
            tools.iter().map(|tool| (tool.name.as_ref(), read_only(tool).unwrap_or(false))).collect();
        names.sort_unstable();
        let expected = [
            ("hubspot-batch-create-objects", false),
            ("hubspot-batch-read-objects", true),
            ("hubspot-batch-update-objects", false),
            ("hubspot-list-associations", true),
            ("hubspot-list-objects", true),
            ("hubspot-search-objects", true),
        ];
        assert_eq!(names, expected);
        let (mut rows, mut after) = (Vec::new(), None);
        loop {
            let mut asked = json!({"objectType": "contacts", "limit": 5, "associations": ["companies"]});
            asked["after"] = json!(after);
            let page = page(&call(&client, LIST, asked).await);
            rows.extend(page["results"].as_array().expect("rows").iter().cloned());
            match page.pointer("/paging/next/after") {
                Some(next) => after = Some(next.as_str().expect("text").to_owned()),
                None => break,
            }
        }
        assert_eq!(json!(rows), over_rest["results"]);
        client.cancel().await.expect("an end");
    }
    assert_eq!(browser.fakes.requests("/mcp/hubspot/initialize"), 0);
    assert_eq!(browser.fakes.requests("/mcp/hubspot/server/discover"), 1);
    assert_eq!(browser.fakes.requests("/mcp/hubspot/tools/call/hubspot-list-objects"), 3);
    assert_eq!(browser.fakes.requests("/mcp-legacy/hubspot/initialize"), 1);
    assert_eq!(browser.fakes.requests("/mcp-legacy/hubspot/notifications/initialized"), 1);
    assert_eq!(browser.fakes.requests("/mcp-legacy/hubspot/tools/call/hubspot-batch-create-objects"), 0);
}

#[tokio::test]
async fn a_client_finds_out_which_era_it_is() {
    let browser = start().await;
    for (path, version) in [("/mcp/hubspot", "2026-07-28"), ("/mcp-legacy/hubspot", "2025-11-25")] {
        let mode = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        };
        let client = browser.mcp(path, mode).await;
        let info = client.peer_info().expect("what the server says of itself");
        assert_eq!(info.protocol_version.as_str(), version);
        client.cancel().await.expect("an end");
    }
}

#[tokio::test]
async fn tools_read_search_and_write() {
    let browser = start().await;
    let client = browser.modern().await;
    let asked = json!({"objectType": "deals", "properties": ["dealname"], "inputs": [{"id": "66"}, {"id": "1"}]});
    let found = page(&call(&client, "hubspot-batch-read-objects", asked).await);
    assert_eq!(texts(found["results"].as_array().expect("rows"), "/id"), ["66"]);
    let filter = json!({"propertyName": "dealstage", "operator": "EQ", "value": "closedwon"});
    let asked = json!({"objectType": "deals", "filterGroups": [{"filters": [filter]}], "limit": 10});
    let found = page(&call(&client, "hubspot-search-objects", asked).await);
    assert_eq!((&found["total"], found["results"].as_array().map(Vec::len)), (&json!(1), Some(1)));

    let asked = json!({"objectType": "contacts", "inputs": [{"properties": {"firstname": "Nobody"}}]});
    page(&call(&client, "hubspot-batch-create-objects", asked).await);
    let asked = json!({"objectType": "contacts", "inputs": [{"id": "51", "properties": {"firstname": "Nell"}}]});
    page(&call(&client, "hubspot-batch-update-objects", asked).await);
    assert_eq!(browser.fakes.hubspot().count("contacts"), 13);
    let writes = browser.fakes.requests("/mcp/hubspot/tools/call/hubspot-batch-create")
        + browser.fakes.requests("/mcp/hubspot/tools/call/hubspot-batch-update");
    assert_eq!(writes, 2);
}

#[tokio::test]
async fn hubspots_refusals_are_words_in_a_result() {
    let browser = start().await;
    for (client, path) in [(browser.modern().await, "/mcp/hubspot"), (browser.legacy().await, "/mcp-legacy/hubspot")] {
        let calls = format!("{path}/tools/call");
        browser.fakes.next(&calls, Manner::ToolError(429));
        let asked = json!({"objectType": "contacts", "limit": 100});
        let result = call(&client, LIST, asked.clone()).await;
        assert_eq!(result.is_error, Some(true));
        assert!(text(&result).starts_with("Error listing objects: HubSpot API Error: 429 Too Many Requests - {"));
        browser.fakes.next(&calls, Manner::LostToken);
        page(&call(&client, LIST, asked.clone()).await);
        let later = json!({"objectType": "contacts", "after": "55"});
        assert!(text(&call(&client, LIST, later.clone()).await).contains("400 Bad Request"));
        browser.fakes.next(&calls, Manner::RepeatToken);
        let repeated = page(&call(&client, LIST, later).await);
        assert_eq!(repeated.pointer("/paging/next/after"), Some(&json!("55")));
        let unknown = call(&client, LIST, json!({"objectType": "llamas"})).await;
        assert!(text(&unknown).contains("VALIDATION_ERROR"));
        client.cancel().await.expect("an end");
    }
}

#[tokio::test]
async fn a_bad_token_is_told_where_to_get_a_good_one() {
    let browser = start().await;
    browser.fakes.expire_access(HUBSPOT);
    for path in ["/mcp/hubspot", "/mcp-legacy/hubspot"] {
        let response = browser.post(path).json(&json!({})).send().await.expect("an answer");
        assert_eq!(response.status(), 401);
        let challenge = response.headers()["www-authenticate"].to_str().expect("text");
        let document =
            challenge.split('"').nth(1).expect("an address").strip_prefix(browser.fakes.url()).expect("ours");
        let (_, resource) = browser.get_json(document).await;
        assert_eq!(resource["resource"], format!("{}{path}", browser.fakes.url()));
        let issuer = resource["authorization_servers"][0].as_str().expect("an issuer");
        let (origin, path) = issuer.split_at(browser.fakes.url().len());
        let (_, server) = browser.get_json(&format!("/.well-known/oauth-authorization-server{path}")).await;
        assert_eq!((origin, server["issuer"].as_str()), (browser.fakes.url(), Some(issuer)));
    }
    assert_eq!(browser.fakes.ledger()[0].path, "/mcp/hubspot");
}
