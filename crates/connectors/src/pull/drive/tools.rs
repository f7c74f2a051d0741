//! The tools of Google's MCP server for Drive, as Google publishes them, and what they answer. Nobody has recorded the server yet.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::pull::PullError;
use crate::pull::mcp::{Then, Tool, ToolAnswer, ToolRecords};
use crate::pull::records::Rows;

const FILE_ID: &str = include_str!("schemas/file_id.json");

const EXPORT: Option<Then> = Some(Then { method: "drive.files.export", of: |_| true, put: put_text });

pub(super) static TOOLS: &[Tool] = &[
    Tool {
        method: "drive.files.list",
        name: "search_files",
        arguments: r#"{
            "query": "mimeType = 'application/vnd.google-apps.document' or mimeType = 'application/vnd.google-apps.spreadsheet'",
            "pageSize": 25, "pageToken": "{page}", "excludeContentSnippets": true
        }"#,
        schemas: &[include_str!("schemas/search_files.json")],
        read: files,
        has_page_tokens: true,
        is_absent_at_404: false,
        then: EXPORT,
    },
    Tool {
        method: "drive.files.get",
        name: "get_file_metadata",
        arguments: r#"{ "fileId": "{id}" }"#,
        schemas: &[FILE_ID],
        read: file,
        has_page_tokens: false,
        is_absent_at_404: true,
        then: EXPORT,
    },
    Tool {
        method: "drive.files.export",
        name: "read_file_content",
        arguments: r#"{ "fileId": "{id}" }"#,
        schemas: &[FILE_ID],
        read: text,
        has_page_tokens: false,
        is_absent_at_404: false,
        then: None,
    },
];

fn put_text(file: &mut Value, texts: Vec<Value>) {
    file["text"] = texts.into_iter().next().unwrap_or_default();
}

/// Reads `{"files":[{id, title, mimeType, …}],"nextPageToken"?}`.
fn files(answer: &ToolAnswer<'_>) -> Result<ToolRecords, PullError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Files {
        // Google leaves out what is empty.
        #[serde(default)]
        files: Rows<Map<String, Value>>,
        next_page_token: Option<String>,
    }
    let Files { files, next_page_token } = answer.content()?;
    let records = files.0.into_iter().map(renamed).collect();
    Ok(ToolRecords { records, next: next_page_token.filter(|token| !token.is_empty()) })
}

/// Reads one file.
fn file(answer: &ToolAnswer<'_>) -> Result<ToolRecords, PullError> {
    Ok(ToolRecords { records: vec![renamed(answer.content()?)], next: None })
}

/// The server's `title` is `name` in Drive's own API.
fn renamed(mut file: Map<String, Value>) -> Value {
    if let Some(title) = file.remove("title") {
        file.insert("name".to_owned(), title);
    }
    Value::Object(file)
}

/// Reads `{"fileContent"}`.
fn text(answer: &ToolAnswer<'_>) -> Result<ToolRecords, PullError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Text {
        #[serde(default)]
        file_content: String,
    }
    let Text { file_content } = answer.content()?;
    Ok(ToolRecords { records: vec![Value::String(file_content)], next: None })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pull::mcp::answer::tests::{error, read, said};
    use crate::pull::records::MOST;

    const LISTED: &str = "drive.files.list";

    #[test]
    fn files_are_named_as_drive_names_them() {
        let text = r#"{"files":[{"id":"1a","title":"Terms","mimeType":"application/vnd.google-apps.document"}],"nextPageToken":"~x"}"#;
        let file = json!({ "id": "1a", "name": "Terms", "mimeType": "application/vnd.google-apps.document" });
        let expected = ToolRecords { records: vec![file], next: Some("~x".into()) };
        assert_eq!(read(LISTED, &said(&[text]), None).expect("files"), expected);

        let none = read(LISTED, &said(&["{}"]), None).expect("an empty answer");
        assert_eq!(none, ToolRecords { records: vec![], next: None });
        let text = read("drive.files.export", &said(&[r#"{"fileContent":"Rates"}"#]), None).expect("a text");
        assert_eq!(text.records, [json!("Rates")]);
    }

    #[test]
    fn only_a_file_that_is_not_there_is_no_file() {
        let gone = read("drive.files.get", &error("API Error: 404 notFound"), None).expect("no file");
        assert_eq!(gone.records, Vec::<Value>::new());
        assert!(read("drive.files.get", &error("the file was not found, or so"), None).is_err());
    }

    #[test]
    fn an_answer_of_a_million_rows_is_no_answer() {
        for (n, is_read) in [(MOST, true), (MOST + 1, false), (1_000_000, false)] {
            let text = format!(r#"{{"files":[{}]}}"#, vec!["{}"; n].join(","));
            assert_eq!(read(LISTED, &said(&[&text]), None).is_ok(), is_read, "{n}");
        }
    }
}
