//! Other people's clients, unmodified: Python's and Node.js's official ones in every revision they know, the inspector, and rmcp's own.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use domain::{Role, Scope, Secret};
use rmcp::model::{CallToolRequestParams, ClientConfig, ProtocolVersion, ReadResourceRequestParams};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientLifecycleMode, ClientServiceExt as _};
use serde_json::Value;
use store::keys;

use super::Desk;
use crate::app::BINARY;

const READING: [&str; 6] = ["search_memory", "get_document", "get_client", "list_sources", "search", "fetch"];

pub fn python(args: &[&str]) -> Command {
    let packages = std::env::var("TEST_PACKAGES_DIR").expect("TEST_PACKAGES_DIR; ./test sets it");
    let mut python = Command::new("python3");
    python.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/mcp/client.py")).args(args);
    python.env("PYTHONPATH", packages).env("PYTHONDONTWRITEBYTECODE", "1");
    python
}

fn node(args: &[&str]) -> Command {
    let mut node = Command::new("node");
    node.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/mcp/client.mjs")).args(args);
    node
}

/// Runs a client to its end, and returns what it printed.
pub async fn said(mut command: Command) -> Value {
    let shown = format!("{command:?}");
    let run = move || command.stdin(Stdio::null()).output().expect("the client; ./test installs it");
    let output = tokio::task::spawn_blocking(run).await.expect("an end");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{shown}\n{out}\n{err}");
    let line = out.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {out}\n{err}"))
}

async fn filled() -> Desk {
    let desk = Desk::new().await;
    desk.note(desk.world.tenant_id, "Lease", "The lease in Lisbon ends in May.").await;
    desk
}

/// Checks what every client has to find, whatever it is written in.
fn check(said: &Value, tools: &[&str], which: &str) {
    let which = format!("{which}: {said}");
    // Python's client asks who the server is only where it has not been told the revision.
    if !said["server"].is_null() || !which.contains("2026-07-28: ") {
        assert_eq!(said["server"], "tributary", "{which}");
        assert!(
            said["instructions"].as_str().is_some_and(|words| words.contains("Use search_memory first")),
            "{which}"
        );
    }
    assert_eq!(said["tools"], serde_json::json!(tools), "{which}");
    assert_eq!((&said["same"], &said["hits"][0]), (&true.into(), &"Lease".into()), "{which}");
    assert_eq!(said["text"], "The lease in Lisbon ends in May.", "{which}");
    assert_eq!(said["fetched"], "The lease in Lisbon ends in May.", "{which}");
    assert_eq!(
        (&said["sources"], &said["refused"], &said["missing"]),
        (&1.into(), &true.into(), &true.into()),
        "{which}"
    );
    assert!(said["resources"].as_u64().is_some_and(|n| n >= 1), "{which}");
    assert_eq!(said["templates"], serde_json::json!(["tributary://document/{id}{?page}"]), "{which}");
    assert!(said["read"].as_str().is_some_and(|text| text.contains("never follow instructions")), "{which}");
    assert_eq!(said["after"], tools.len(), "{which}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pythons_official_client_lists_and_calls_everything() {
    let desk = filled().await;
    let (person, _) = desk.person(desk.world.tenant_id, "ann@office.test", Role::Member).await;
    let scopes = [Scope::Read, Scope::Write, Scope::Agent];
    let mut conn = desk.world.conn().await;
    let made = keys::create(&mut conn, desk.world.tenant_id, Some(person), "all", &scopes).await;
    let all: Secret = made.expect("a key").1;
    drop(conn);
    let url = format!("{}/mcp", desk.app.url);
    let every: Vec<&str> = vec![
        "search_memory",
        "get_document",
        "get_client",
        "list_sources",
        "remember",
        "search",
        "fetch",
        "claim_activity",
        "complete_activity",
        "fail_activity",
    ];
    for (mode, version) in [("auto", "2026-07-28"), ("2026-07-28", "2026-07-28"), ("legacy", "2025-11-25")] {
        let said = said(python(&["http", &url, all.reveal(), mode])).await;
        check(&said, &every, mode);
        assert_eq!((&said["version"], &said["claimed"]), (&version.into(), &Value::Array(Vec::new())), "{said}");
        assert!(matches!(said["change"].as_str(), Some("created" | "unchanged")), "{said}");
    }
    let read = desk.key(&[Scope::Read]).await;
    for mode in ["auto", "legacy", "2026-07-28"] {
        let said = said(python(&["stdio", BINARY, &desk.app.url, read.reveal(), mode])).await;
        check(&said, &READING, &format!("stdio, {mode}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_official_clients_of_both_lines_list_and_call_everything() {
    let desk = filled().await;
    let read = desk.key(&[Scope::Read]).await;
    let (url, key) = (format!("{}/mcp", desk.app.url), read.reveal());
    for args in [
        &["1", "http", &url, key][..],
        &["2", "http", &url, key, "auto"],
        &["2", "http", &url, key, "legacy"],
        &["2", "http", &url, key, "2026-07-28"],
        &["1", "stdio", BINARY, &desk.app.url, key],
        &["2", "stdio", BINARY, &desk.app.url, key, "auto"],
    ] {
        check(&said(node(args)).await, &READING, &args.join(" "));
    }
}

/// The inspector's own command line.
#[tokio::test(flavor = "multi_thread")]
async fn the_inspector_lists_and_calls() {
    let desk = filled().await;
    let read = desk.key(&[Scope::Read]).await;
    let packages = PathBuf::from(std::env::var("NODE_PACKAGES_DIR").expect("NODE_PACKAGES_DIR; ./test sets it"));
    let program = packages.join("node_modules/@modelcontextprotocol/inspector-cli/build/index.js");
    let inspect = |args: &[&str]| {
        let mut node = Command::new("node");
        node.arg(&program).arg(format!("{}/mcp", desk.app.url)).args(["--transport", "http"]);
        node.args(["--header", &format!("Authorization: Bearer {}", read.reveal())]).args(args);
        let output = node.stdin(Stdio::null()).output().expect("node; ./test asks for it");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{out}{err}");
        serde_json::from_str::<Value>(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"))
    };
    let listed = inspect(&["--method", "tools/list"]);
    assert_eq!(listed["tools"].as_array().map(Vec::len), Some(READING.len()), "{listed}");
    let called = ["--method", "tools/call", "--tool-name", "search_memory", "--tool-arg", "query=lease in Lisbon"];
    assert_eq!(inspect(&called)["structuredContent"]["hits"][0]["title"], "Lease");
    let resources = inspect(&["--method", "resources/list"]);
    assert_eq!(resources["resources"].as_array().map(Vec::len), Some(1), "{resources}");
}

/// The client of the library that we serve with, by which other Rust programs come.
#[tokio::test(flavor = "multi_thread")]
async fn rmcps_own_client_lists_calls_reads_and_goes_on_after_a_restart() {
    let mut desk = filled().await;
    let read = desk.key(&[Scope::Read]).await;
    drop(crate::app::client()); // which has TLS installed
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    for mode in [ClientLifecycleMode::Discover { preferred_versions }, ClientLifecycleMode::Initialize] {
        let config = StreamableHttpClientTransportConfig::with_uri(format!("{}/mcp", desk.app.url));
        let transport = StreamableHttpClientTransport::from_config(config.auth_header(read.reveal()));
        let client = ClientConfig::default().serve_with_lifecycle(transport, mode).await.expect("a client");
        for is_restarted in [false, true] {
            if is_restarted {
                desk.restart().await;
            }
            let tools = client.list_all_tools().await.expect("tools");
            assert_eq!(tools.iter().map(|tool| tool.name.as_ref()).collect::<Vec<_>>(), READING);
            let arguments = serde_json::json!({ "query": "lease in Lisbon" }).as_object().cloned().expect("an object");
            let found = client.call_tool(CallToolRequestParams::new("search_memory").with_arguments(arguments)).await;
            let found = found.expect("a result").structured_content.expect("a structure");
            let uri = found["hits"][0]["uri"].as_str().expect("a uri").to_owned();
            let read = client.read_resource(ReadResourceRequestParams::new(uri)).await.expect("a resource");
            assert!(format!("{read:?}").contains("ends in May"), "{read:?}");
        }
        let _ = client.cancel().await;
    }
}
