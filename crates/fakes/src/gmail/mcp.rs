//! Google's MCP server for Gmail: its tools that read, as Google publishes them.

use std::sync::Arc;

use axum::Router;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, JsonObject};
use rmcp::schemars::{self, JsonSchema};
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::{tool, tool_router};
use serde::Deserialize;
use serde_json::{Value, json};

use super::search::Search;
use super::{GMAIL, Mailboxes, Message, compose};
use crate::manners::Manner;
use crate::tools::{self, Mannered, Tools, declared};
use crate::{Shared, lock, mcp};

pub(super) fn routes(shared: &Arc<Shared>, config: &StreamableHttpServerConfig) -> Router<Arc<Shared>> {
    let tools = GmailTools { shared: shared.clone() };
    let tools = Tools { server: ("gmail-mcp", "1.0.0"), tools, router: GmailTools::tool_router() };
    mcp::routes(GMAIL, shared, config, tools)
}

#[derive(Clone)]
struct GmailTools {
    shared: Arc<Shared>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SearchArguments {
    query: Option<String>,
    page_token: Option<String>,
    page_size: Option<usize>,
    include_trash: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ThreadArguments {
    thread_id: String,
    message_format: Option<String>,
}

fn search_schema() -> Arc<JsonObject> {
    declared(json!({
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "pageToken": {"type": "string"},
            "pageSize": {"type": "integer", "format": "int32"},
            "includeTrash": {"type": "boolean"},
        },
    }))
}

fn thread_schema() -> Arc<JsonObject> {
    declared(json!({
        "type": "object",
        "properties": {
            "threadId": {"type": "string"},
            "messageFormat": {"type": "string", "enum": ["MESSAGE_FORMAT_UNSPECIFIED", "MINIMAL", "FULL_CONTENT"]},
        },
        "required": ["threadId"],
    }))
}

/// A tool does not say who calls it, so the server shows the mailbox of the present account.
#[tool_router]
impl GmailTools {
    #[tool(
        name = "search_threads",
        description = "Lists email threads",
        input_schema = search_schema(),
        annotations(read_only_hint = true)
    )]
    async fn search(
        &self,
        Mannered(manner): Mannered,
        Parameters(asked): Parameters<SearchArguments>,
    ) -> CallToolResult {
        let Some(search) = Search::parse(asked.query.as_deref().unwrap_or_default()) else { return refused(400) };
        let start = match &asked.page_token {
            None => 0,
            Some(_) if manner == Some(Manner::LostToken) => return refused(400),
            Some(token) => match token.strip_prefix('~').and_then(|number| number.parse().ok()) {
                Some(start) => start,
                None => return refused(400),
            },
        };
        let with_trash = asked.include_trash == Some(true);
        let is_meant = |message: &Message| {
            let has = |label: &str| message.labels.iter().any(|known| known == label);
            (with_trash || !(has("TRASH") || has("SPAM"))) && search.holds(message)
        };
        let threads = self.threads(is_meant);
        let rows = asked.page_size.unwrap_or(20).min(50);
        let page: Vec<Value> = threads.iter().skip(start).take(rows).map(|(id, messages)| {
            json!({"id": id, "messages": messages.iter().map(|(id, message)| head(id, message)).collect::<Vec<_>>()})
        }).collect();
        // As Google does, without what is empty.
        let mut found = json!({});
        if !page.is_empty() {
            found["threads"] = json!(page);
        }
        if start + rows < threads.len() {
            found["nextPageToken"] = json!(format!("~{}", start + rows));
        }
        answered(manner.as_ref(), &found)
    }

    #[tool(
        name = "get_thread",
        description = "Reads an email thread",
        input_schema = thread_schema(),
        annotations(read_only_hint = true)
    )]
    async fn thread(
        &self,
        Mannered(manner): Mannered,
        Parameters(asked): Parameters<ThreadArguments>,
    ) -> CallToolResult {
        let threads = self.threads(|message| message.thread_id == asked.thread_id);
        let Some((id, messages)) = threads.first() else { return refused(404) };
        let is_full = asked.message_format.as_deref() != Some("MINIMAL");
        let whole = |id: &str, message: &Message| {
            let mut shown = head(id, message);
            if is_full {
                shown["plaintextBody"] = json!(body(&message.raw));
            }
            shown
        };
        let mut messages = messages.clone();
        messages.reverse(); // oldest first
        let messages: Vec<Value> = messages.iter().map(|(id, message)| whole(id, message)).collect();
        answered(manner.as_ref(), &json!({"id": id, "messages": messages}))
    }
}

type Thread = (String, Vec<(String, Message)>);

impl GmailTools {
    /// The conversations with these messages, the newest first.
    fn threads(&self, is_meant: impl Fn(&Message) -> bool) -> Vec<Thread> {
        let account = self.shared.grants.with(|book| book.account(GMAIL));
        let mut boxes = lock(self.shared.records::<Mailboxes>());
        let mailbox = boxes.of(&account);
        let mut messages: Vec<(&String, &Message)> =
            mailbox.messages.iter().filter(|(_, message)| is_meant(message)).collect();
        messages.sort_by_key(|(_, message)| std::cmp::Reverse(message.received_at));
        let mut threads: Vec<Thread> = Vec::new();
        for (id, message) in messages {
            let entry = (id.clone(), message.clone());
            match threads.iter_mut().find(|(thread, _)| *thread == message.thread_id) {
                Some((_, messages)) => messages.push(entry),
                None => threads.push((message.thread_id.clone(), vec![entry])),
            }
        }
        threads
    }
}

/// A message without its words.
fn head(id: &str, message: &Message) -> Value {
    let said = |name: &str| compose::header(&message.raw, name).unwrap_or_default();
    let people = |name: &str| -> Vec<String> {
        said(name).split(", ").filter(|one| !one.is_empty()).map(str::to_owned).collect()
    };
    json!({"id": id, "snippet": message.snippet, "subject": said("Subject"), "sender": said("From"),
        "toRecipients": people("To"), "ccRecipients": people("Cc"),
        "date": message.received_at.format("%Y-%m-%d").to_string()})
}

/// The words of a plain letter; of one in parts, those of its first.
fn body(raw: &[u8]) -> String {
    let text = String::from_utf8_lossy(raw).replace("\r\n", "\n");
    let (head, rest) = text.split_once("\n\n").unwrap_or(("", &text));
    let boundary = head.split("boundary=\"").nth(1).and_then(|rest| rest.split('"').next());
    match boundary.and_then(|boundary| rest.split(&format!("--{boundary}")).nth(1)) {
        Some(part) => body(part.trim_start().as_bytes()),
        None => rest.trim_end().to_owned(),
    }
}

/// One block of text that is JSON.
fn answered(manner: Option<&Manner>, found: &Value) -> CallToolResult {
    match manner {
        Some(Manner::ToolError(status)) => refused(*status),
        _ => tools::text(found.to_string()),
    }
}

/// The server quotes the status of the API behind it.
fn refused(status: u16) -> CallToolResult {
    tools::error(format!("Gmail API Error: {status}"))
}
