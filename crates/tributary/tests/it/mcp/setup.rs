//! Setting programs up as somebody new does: by what the command prints and writes, and by the page.

use std::io::Write as _;
use std::process::Stdio;

use domain::Scope;
use serde_json::{Value, json};

use super::Desk;
use crate::app::{command, free_port, run};

fn tributary(desk: &Desk) -> std::process::Command {
    let mut command = command(&desk.folder.0, free_port());
    command.env("DATABASE_URL", &desk.world.database.url).env("PUBLIC_URL", &desk.app.url).env("HOME", &desk.folder.0);
    command.env_remove("TRIBUTARY_KEY").env_remove("TRIBUTARY_URL");
    command
}

/// A question of a new user, from the printed set-up to the document behind the link.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_printed_works_as_it_stands() {
    let desk = Desk::new().await;
    desk.note(desk.world.tenant_id, "Lease", "The lease in Lisbon ends in May.").await;
    let (output, printed, told) = run(tributary(&desk).args(["mcp", "setup", "cursor"]));
    assert!(output.status.success() && told.contains("was made for it"), "{printed}{told}");
    let begins = printed.find('{').expect("JSON");
    let ends = printed.rfind('}').expect("JSON");
    let config: Value = serde_json::from_str(&printed[begins..=ends]).expect("the printed configuration is JSON");
    let server = &config["mcpServers"]["tributary"];
    assert_eq!(server["url"], format!("{}/mcp", desk.app.url));
    let key =
        server["headers"]["Authorization"].as_str().and_then(|value| value.strip_prefix("Bearer ")).expect("a key");
    let found = desk.call(key, "search_memory", json!({ "query": "When does the lease in Lisbon end?" })).await;
    let found = found.expect("an answer");
    let link =
        found["hits"][0]["link"].as_str().expect("a link").strip_prefix(&desk.app.url).expect("our page").to_owned();
    let page = desk.owner().await.get(&link).await.text().await.expect("a page");
    assert!(page.contains("The lease in Lisbon ends in May."), "the link opens the right document");

    let (output, printed, _) = run(tributary(&desk).args(["mcp", "setup", "claude-desktop", "--write"]));
    assert!(output.status.success() && printed.contains("Written: "), "{printed}");
    let path = printed.split_once("Written: ").and_then(|(_, rest)| rest.lines().next()).expect("a path");
    let written: Value = serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("JSON");
    let server = &written["mcpServers"]["tributary"];
    assert_eq!((&server["args"], &server["env"]["TRIBUTARY_URL"]), (&json!(["mcp"]), &json!(desk.app.url)));
    let program = server["command"].as_str().expect("a command");
    assert!(std::path::Path::new(program).is_file(), "on no PATH here, so it has its whole path: {program}");
    let keys = async || run(tributary(&desk).args(["key", "list"])).1.lines().count();
    let n_keys = keys().await;
    let (output, _, told) = run(tributary(&desk).args(["mcp", "setup", "claude-desktop", "--write"]));
    assert!(!output.status.success() && told.contains("names this server already"), "{told}");
    assert_eq!(keys().await, n_keys, "a key was made that nobody uses");
    for (args, says) in [
        (&["mcp", "setup", "chatgpt"][..], "PUBLIC_URL"),
        (&["mcp", "setup", "claude-code"], "claude mcp add"),
        (&["mcp", "setup", "sdk"], "from mcp import Client"),
    ] {
        let (output, printed, told) = run(tributary(&desk).args(args));
        assert!(output.status.success() && printed.contains(says), "{args:?}: {printed}{told}");
    }
    for (args, says) in [
        (&["mcp", "setup", "netscape"][..], "unknown program"),
        (&["mcp", "setup", "sdk", "--write"], "no file that could be written"),
        (&["mcp", "setup", "cursor", "--scopes", "service"], "no key that manages everything"),
        (&["mcp"], "a program needs a key"),
    ] {
        let (output, _, told) = run(tributary(&desk).args(args));
        assert!(!output.status.success() && told.contains(says), "{args:?}: {told}");
    }
}

/// The program between a desktop client and a server that comes and goes.
#[tokio::test(flavor = "multi_thread")]
async fn lines_are_brought_to_the_server_and_back_also_after_it_was_away() {
    let mut desk = Desk::new().await;
    let key = desk.key(&[Scope::Read]).await;
    let mut relay = tributary(&desk);
    relay.args(["mcp"]).env("TRIBUTARY_KEY", key.reveal()).env("TRIBUTARY_URL", &desk.app.url);
    let mut child = relay.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the binary");
    let (mut to, from) = (child.stdin.take().expect("stdin"), child.stdout.take().expect("stdout"));
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(from));
    let mut ask = |message: &str| -> Value {
        writeln!(to, "{message}").expect("written");
        serde_json::from_str(&lines.next().expect("a line").expect("text")).expect("JSON")
    };
    let params =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    assert_eq!(ask(&hello.to_string())["result"]["protocolVersion"], "2025-06-18");
    let list = r#"{"jsonrpc":"2.0","id":"two","method":"tools/list"}"#;
    let listed = ask(list);
    assert_eq!((&listed["id"], listed["result"]["tools"].as_array().map(Vec::len)), (&json!("two"), Some(6)));
    assert_eq!(ask("not JSON")["error"]["code"], -32_700);

    desk.app.signal(rustix::process::Signal::KILL);
    assert!(desk.app.ended_within(std::time::Duration::from_secs(10)).await.is_some());
    let away = ask(list);
    assert!(away["error"]["message"].as_str().is_some_and(|words| words.contains("does not answer")), "{away}");
    desk.restart().await;
    assert_eq!(ask(list)["result"]["tools"].as_array().map(Vec::len), Some(6), "it is found again");
    drop(to);
    assert!(child.wait().expect("an end").success());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_has_this_servers_address_and_a_fresh_key_once() {
    let desk = Desk::new().await;
    let owner = desk.owner().await;
    let page = owner.get("/settings/assistants/use").await.text().await.expect("a page");
    for word in ["Claude Desktop", "ChatGPT", "Cursor", "VS Code", "Codex", "trb_YOUR_KEY"] {
        assert!(page.contains(word), "{word}");
    }
    assert!(page.contains(&format!("{}/mcp", desk.app.url)));
    let csrf = owner.csrf().await;
    let made = owner.post("/settings/assistants/use", &[("csrf", &csrf), ("client", "cursor"), ("write", "on")]).await;
    let made = made.text().await.expect("a page");
    let key = made.split("Bearer trb_").find_map(|rest| rest.split(['"', '&']).next().filter(|key| key.len() == 43));
    let key = format!("trb_{}", key.expect("a key"));
    let taken = desk.call(&key, "remember", json!({ "text": "It works." })).await.expect("stored");
    assert_eq!(taken["change"], "created");
    assert_eq!(
        owner.post("/settings/assistants/use", &[("csrf", "x"), ("client", "cursor")]).await.status().as_u16(),
        403
    );
}
