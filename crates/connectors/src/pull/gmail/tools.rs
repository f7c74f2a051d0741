//! The tools of Google's MCP server for Gmail, as Google publishes them, and what they answer. Nobody has recorded the server yet. It tells
//! conversations; its messages have neither labels nor files, and a message alone cannot be asked for.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::map;
use crate::pull::PullError;
use crate::pull::mcp::{Then, Tool, ToolAnswer, ToolRecords};
use crate::pull::records::Rows;

pub(super) static TOOLS: &[Tool] = &[
    Tool {
        method: "gmail.threads.list",
        name: "search_threads",
        arguments: r#"{ "query": "-in:drafts -in:chats", "pageSize": 50, "pageToken": "{page}" }"#,
        schemas: &[include_str!("schemas/search_threads.json")],
        read: threads,
        has_page_tokens: true,
        is_absent_at_404: false,
        then: Some(Then { method: "gmail.threads.messages", of: |_| true, put: put_messages }),
    },
    // By the id of a conversation, which is that of its first message. Another message is looked for in vain: a full pass lists all
    // conversations, so what it did not meet is gone indeed.
    Tool {
        method: "gmail.threads.get",
        name: "get_thread",
        arguments: r#"{ "threadId": "{id}" }"#,
        schemas: &[include_str!("schemas/get_thread.json")],
        read: messages,
        has_page_tokens: false,
        is_absent_at_404: true,
        then: None,
    },
    Tool {
        method: "gmail.threads.messages",
        name: "get_thread",
        arguments: r#"{ "threadId": "{id}" }"#,
        schemas: &[include_str!("schemas/get_thread.json")],
        read: messages,
        has_page_tokens: false,
        is_absent_at_404: true,
        then: None,
    },
];

/// Puts the messages in the place of their conversation.
fn put_messages(thread: &mut Value, messages: Vec<Value>) {
    *thread = Value::Array(messages);
}

/// Reads `{"threads":[{id, messages:[…]}],"nextPageToken"?}`.
fn threads(answer: &ToolAnswer<'_>) -> Result<ToolRecords, PullError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Threads {
        // Google leaves out what is empty.
        #[serde(default)]
        threads: Rows<Map<String, Value>>,
        next_page_token: Option<String>,
    }
    let Threads { threads, next_page_token } = answer.content()?;
    let records = threads.0.into_iter().map(Value::Object).collect();
    Ok(ToolRecords { records, next: next_page_token.filter(|token| !token.is_empty()) })
}

/// Reads one conversation, as its messages.
fn messages(answer: &ToolAnswer<'_>) -> Result<ToolRecords, PullError> {
    #[derive(Deserialize)]
    struct Thread {
        id: String,
        #[serde(default)]
        messages: Rows<Map<String, Value>>,
    }
    let Thread { id, messages } = answer.content()?;
    let messages: Vec<Value> = messages.0.into_iter().map(Value::Object).collect();
    let mut thread = serde_json::json!({ "id": id, "messages": messages });
    map::apart(&mut thread);
    let records = thread.as_array_mut().map(std::mem::take).unwrap_or_default();
    Ok(ToolRecords { records, next: None })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pull::mcp::answer::tests::{error, read, said};

    #[test]
    fn a_conversation_is_read_as_its_messages() {
        let listed = r#"{"threads":[{"id":"18b","messages":[{"id":"18b","snippet":"Tues"}]}],"nextPageToken":"~2"}"#;
        let read_list = read("gmail.threads.list", &said(&[listed]), None).expect("conversations");
        assert_eq!((read_list.records.len(), read_list.next.as_deref()), (1, Some("~2")));
        let told = r#"{"id":"18b","messages":[{"id":"18b","subject":"Lift"},{"id":"18c","plaintextBody":"Yes."}]}"#;
        let expected = [
            json!({ "id": "18b", "subject": "Lift", "threadId": "18b" }),
            json!({ "id": "18c", "plaintextBody": "Yes.", "threadId": "18b" }),
        ];
        for method in ["gmail.threads.get", "gmail.threads.messages"] {
            assert_eq!(read(method, &said(&[told]), None).expect("messages").records, expected);
            let gone = read(method, &error("Gmail API Error: 404 notFound"), None).expect("no messages");
            assert_eq!(gone.records, Vec::<Value>::new());
        }
        let none = read("gmail.threads.list", &said(&["{}"]), None).expect("an empty answer");
        assert_eq!(none, ToolRecords { records: vec![], next: None });
    }
}
