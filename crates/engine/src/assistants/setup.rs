//! How known programs are set up to use this memory: the same words for the page "Use with…" and for `tributary mcp setup`.

use serde_json::{Value, json};

/// A program that speaks MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    Claude,
    ClaudeDesktop,
    ClaudeCode,
    Chatgpt,
    Cursor,
    Vscode,
    Codex,
    Sdk,
}

/// A step of a set-up: a sentence, and what is copied for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// With backticks around what is typed or pressed.
    pub says: String,
    pub copy: Option<String>,
}

/// The file that a program reads, and what goes into it.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// Below the home folder of the person; below the working folder if `is_of_project`.
    pub path: &'static str,
    pub is_of_project: bool,
    pub content: Content,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Is merged into the object that the file has.
    Json(Value),
    /// Is added at the end, unless the file has its first line.
    Lines(String),
}

/// The server as a program reaches it.
#[derive(Clone, Copy, Debug)]
pub struct Server<'a> {
    /// The address without `/mcp`.
    pub base_url: &'a str,
    /// Whether programs are let in by OAuth.
    pub has_oauth: bool,
    /// None: [`PLACEHOLDER`] stands for it.
    pub key: Option<&'a str>,
    /// The program `tributary` on the device, for those that start it: its path, or its name where that is enough.
    pub program: &'a str,
}

/// The name of the program, where it is on the PATH.
pub const PROGRAM: &str = "tributary";
/// Stands where a key goes.
pub const PLACEHOLDER: &str = "trb_YOUR_KEY";
/// The name of this server in a program's list.
const NAME: &str = "tributary";

impl Client {
    pub const ALL: [Self; 8] = [
        Self::Claude,
        Self::ClaudeDesktop,
        Self::ClaudeCode,
        Self::Chatgpt,
        Self::Cursor,
        Self::Vscode,
        Self::Codex,
        Self::Sdk,
    ];

    /// Its name in commands and addresses.
    pub fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::ClaudeDesktop => "claude-desktop",
            Self::ClaudeCode => "claude-code",
            Self::Chatgpt => "chatgpt",
            Self::Cursor => "cursor",
            Self::Vscode => "vscode",
            Self::Codex => "codex",
            Self::Sdk => "sdk",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude (web and mobile)",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::ClaudeCode => "Claude Code",
            Self::Chatgpt => "ChatGPT",
            Self::Cursor => "Cursor",
            Self::Vscode => "VS Code",
            Self::Codex => "Codex CLI",
            Self::Sdk => "Your own program",
        }
    }

    /// Whether it takes a key. Others are let in by OAuth alone.
    pub fn takes_key(self) -> bool {
        !matches!(self, Self::Claude | Self::Chatgpt)
    }

    /// The steps of its set-up.
    pub fn steps(self, server: Server<'_>) -> Vec<Step> {
        let (url, key) = (format!("{}/mcp", server.base_url), server.key.unwrap_or(PLACEHOLDER));
        let step = |says: &str, copy: Option<String>| Step { says: says.to_owned(), copy };
        let file = self.file(server).map(|file| file.content.text());
        match self {
            Self::Claude | Self::Chatgpt if !server.has_oauth => {
                let what = "It reaches this server from its own cloud and takes no key, so this server needs a public https address: set `PUBLIC_URL` to it and start the server again.";
                vec![step(what, None)]
            }
            Self::Claude => vec![
                step(
                    "In Claude, open `Settings`, `Connectors`, press `Add custom connector`, and give this address.",
                    Some(url),
                ),
                step("Press `Connect`. You are sent here to sign in and to say what Claude may do.", None),
                step("In a chat, switch the connector on, and ask about something that you remember.", None),
            ],
            Self::Chatgpt => vec![
                step(
                    "In ChatGPT, open `Settings`, `Apps & Connectors`, `Advanced settings`, and switch `Developer mode` on.",
                    None,
                ),
                step("Press `Create`, choose `OAuth`, and give this address.", Some(url)),
                step(
                    "You are sent here to sign in and to say what ChatGPT may do. Deep research uses its tools `search` and `fetch`.",
                    None,
                ),
            ],
            Self::ClaudeDesktop => vec![
                step(
                    "In Claude Desktop, open `Settings`, `Developer`, `Edit Config`, and add this. The program `tributary` has to be on this device: where its name alone is not found, give its whole path.",
                    file,
                ),
                step("Quit Claude Desktop and start it again.", None),
            ],
            Self::ClaudeCode => {
                let command =
                    format!("claude mcp add --transport http {NAME} {url} --header \"Authorization: Bearer {key}\"");
                vec![
                    step("In a terminal, run this.", Some(command)),
                    step("In Claude Code, `/mcp` shows that it is connected.", None),
                ]
            }
            Self::Cursor => vec![
                step("Put this into `~/.cursor/mcp.json`, or into `.cursor/mcp.json` of one project.", file),
                step("In Cursor, open `Settings`, `MCP`, and see that it is on.", None),
            ],
            Self::Vscode => vec![
                step(
                    "Put this into `.vscode/mcp.json` of your project. VS Code asks for the key once and keeps it.",
                    file,
                ),
                step("The key that it asks for:", Some(key.to_owned())),
            ],
            Self::Codex => vec![
                step("Put this into `~/.codex/config.toml`.", file),
                step("Codex reads the key from the environment.", Some(format!("export TRIBUTARY_KEY={key}"))),
            ],
            Self::Sdk => vec![
                step("With Python (`pip install mcp`):", Some(python(&url, key))),
                step("With Node.js (`npm install @modelcontextprotocol/sdk`):", Some(typescript(&url, key))),
            ],
        }
    }

    /// The file that it reads, where it has one that can be written for it.
    pub fn file(self, server: Server<'_>) -> Option<File> {
        let (url, key) = (format!("{}/mcp", server.base_url), server.key.unwrap_or(PLACEHOLDER));
        let headers = json!({ "Authorization": format!("Bearer {key}") });
        let of_home = |path, content| Some(File { path, is_of_project: false, content });
        let of_project = |path, content| Some(File { path, is_of_project: true, content });
        match self {
            Self::ClaudeCode => {
                let server = json!({ "type": "http", "url": url, "headers": headers });
                of_project(".mcp.json", Content::Json(json!({ "mcpServers": { NAME: server } })))
            }
            Self::ClaudeDesktop => {
                let env = json!({ "TRIBUTARY_URL": server.base_url, "TRIBUTARY_KEY": key });
                let server = json!({ "command": server.program, "args": ["mcp"], "env": env });
                let path = if cfg!(target_os = "macos") {
                    "Library/Application Support/Claude/claude_desktop_config.json"
                } else {
                    ".config/Claude/claude_desktop_config.json"
                };
                of_home(path, Content::Json(json!({ "mcpServers": { NAME: server } })))
            }
            Self::Cursor => {
                let server = json!({ "url": url, "headers": headers });
                of_home(".cursor/mcp.json", Content::Json(json!({ "mcpServers": { NAME: server } })))
            }
            Self::Vscode => {
                let headers = json!({ "Authorization": "Bearer ${input:tributary-key}" });
                let server = json!({ "type": "http", "url": url, "headers": headers });
                let input = json!({ "type": "promptString", "id": "tributary-key", "description": "Key of Tributary", "password": true });
                of_project(".vscode/mcp.json", Content::Json(json!({ "servers": { NAME: server }, "inputs": [input] })))
            }
            Self::Codex => {
                let lines =
                    format!("[mcp_servers.{NAME}]\nurl = \"{url}\"\nbearer_token_env_var = \"TRIBUTARY_KEY\"\n");
                of_home(".codex/config.toml", Content::Lines(lines))
            }
            Self::Claude | Self::Chatgpt | Self::Sdk => None,
        }
    }
}

impl std::str::FromStr for Client {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let words = Self::ALL.map(Self::word);
        let found = Self::ALL.into_iter().find(|client| client.word() == text);
        found.ok_or_else(|| format!("unknown program {text:?}; there are {}", words.join(", ")))
    }
}

impl Content {
    /// The text that a person copies.
    pub fn text(&self) -> String {
        match self {
            Self::Json(value) => format!("{value:#}\n"),
            Self::Lines(lines) => lines.clone(),
        }
    }

    /// Whether the file's text names this server.
    pub fn is_named_in(&self, text: &str) -> bool {
        match self {
            Self::Lines(lines) => {
                let first = lines.lines().next().unwrap_or_default();
                text.lines().any(|line| line.trim() == first)
            }
            Self::Json(new) => {
                let known: Value = serde_json::from_str(text).unwrap_or_default();
                let lists = new.as_object().into_iter().flatten();
                lists.into_iter().any(|(list, entries)| entries.get(NAME).is_some() && known[list].get(NAME).is_some())
            }
        }
    }

    /// The file's text with this in it; as it is, if it has it. An error says why it is left alone.
    pub fn merged_into(&self, text: &str) -> Result<String, &'static str> {
        match self {
            Self::Lines(lines) => {
                if self.is_named_in(text) {
                    return Err("it names this server already");
                }
                let joint = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
                let blank = if text.is_empty() { "" } else { "\n" };
                Ok(format!("{text}{joint}{blank}{lines}"))
            }
            Self::Json(new) => {
                let mut known = match text.trim() {
                    "" => json!({}),
                    text => serde_json::from_str(text).map_err(|_| "it is not plain JSON")?,
                };
                if !known.is_object() {
                    return Err("it is not a JSON object");
                }
                merge(&mut known, new);
                Ok(format!("{known:#}\n"))
            }
        }
    }
}

/// Objects are joined, lists get what they lack, anything else is replaced.
fn merge(known: &mut Value, new: &Value) {
    match (known, new) {
        (Value::Object(known), Value::Object(new)) => {
            for (name, value) in new {
                merge(known.entry(name).or_insert(Value::Null), value);
            }
        }
        (Value::Array(known), Value::Array(new)) => {
            for value in new {
                let id = value.get("id");
                known.retain(|known| id.is_none() || known.get("id") != id);
                known.push(value.clone());
            }
        }
        (known, new) => *known = new.clone(),
    }
}

fn python(url: &str, key: &str) -> String {
    format!(
        r#"import asyncio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

async def main():
    http = httpx2.AsyncClient(headers={{"Authorization": "Bearer {key}"}})
    async with Client(streamable_http_client("{url}", http_client=http)) as client:
        found = await client.call_tool("search_memory", {{"query": "late delivery"}})
        print(found.content[0].text)

asyncio.run(main())
"#
    )
}

fn typescript(url: &str, key: &str) -> String {
    format!(
        r#"import {{ Client }} from "@modelcontextprotocol/sdk/client/index.js";
import {{ StreamableHTTPClientTransport }} from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const headers = {{ Authorization: "Bearer {key}" }};
const transport = new StreamableHTTPClientTransport(new URL("{url}"), {{ requestInit: {{ headers }} }});
const client = new Client({{ name: "my-program", version: "1.0.0" }});
await client.connect(transport);
const found = await client.callTool({{ name: "search_memory", arguments: {{ query: "late delivery" }} }});
console.log(found.content[0].text);
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: Server<'static> =
        Server { base_url: "https://hear.example.com", has_oauth: true, key: Some("trb_x"), program: PROGRAM };

    #[test]
    fn every_program_is_named_and_told_this_servers_address() {
        for client in Client::ALL {
            assert_eq!(client.word().parse(), Ok(client));
            let steps = client.steps(SERVER);
            let copied: String = steps.iter().filter_map(|step| step.copy.clone()).collect();
            let is_told =
                copied.contains("https://hear.example.com/mcp") || copied.contains("\"https://hear.example.com\"");
            assert!(is_told, "{client:?}: {copied}");
            let all = steps.iter().map(|step| format!("{} {}", step.says, step.copy.clone().unwrap_or_default()));
            assert_eq!(all.collect::<String>().contains("trb_x"), client.takes_key(), "{client:?}");
        }
        assert!("word".parse::<Client>().is_err());
    }

    #[test]
    fn without_https_the_clouds_are_told_what_is_missing() {
        let server = Server { has_oauth: false, ..SERVER };
        for client in Client::ALL.into_iter().filter(|client| !client.takes_key()) {
            assert!(client.steps(server)[0].says.contains("PUBLIC_URL"), "{client:?}");
        }
    }

    #[test]
    fn what_a_file_has_stays() {
        let content = Client::Cursor.file(SERVER).expect("a file").content;
        let merged = content.merged_into(r#"{"mcpServers":{"other":{"url":"x"}},"theme":"dark"}"#).expect("merged");
        let merged: Value = serde_json::from_str(&merged).expect("JSON");
        assert_eq!((&merged["theme"], &merged["mcpServers"]["other"]["url"]), (&json!("dark"), &json!("x")));
        assert_eq!(merged["mcpServers"]["tributary"]["url"], "https://hear.example.com/mcp");
        assert!(content.is_named_in(r#"{"mcpServers":{"tributary":{}}}"#));
        assert!(!content.is_named_in(r#"{"mcpServers":{"other":{}}}"#) && !content.is_named_in("// a comment"));
        assert!(content.merged_into("// a comment\n{}").is_err() && content.merged_into("[]").is_err());

        let content = Client::Vscode.file(SERVER).expect("a file").content;
        let once = content.merged_into("").expect("merged");
        assert_eq!(content.merged_into(&once).expect("merged again"), once, "asked twice, it is there once");

        let content = Client::Codex.file(SERVER).expect("a file").content;
        let once = content.merged_into("model = \"x\"").expect("added");
        assert!(once.starts_with("model = \"x\"\n\n[mcp_servers.tributary]\nurl = "), "{once}");
        assert!(content.merged_into(&once).is_err());
    }
}
