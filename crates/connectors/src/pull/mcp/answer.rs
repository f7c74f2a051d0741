//! What a tool says, taken apart: records and the next page, or why there are none. Shapes are pinned: what is not as it was when this was
//! written is not guessed at.

use domain::Provider;
use rmcp::model::{CallToolResult, ContentBlock, ErrorCode, ErrorData};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value, json};

use crate::pull::PullError;
use crate::pull::complaint::{self, Complaint, Meaning};
use crate::pull::hubspot::BatchError;
use crate::pull::records::{MOST, Rows};

/// How many a page of QuickBooks has; a shorter one is the last.
pub(super) const QUICKBOOKS_PAGE: usize = 100;
const RAW_MAX_CHARS: usize = 2_000;

/// How a tool's result is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parser {
    /// `{"results":[{id, properties, …}],"errors"?:[…],"paging"?:{"next"?:{"after"}}}`, as HubSpot's own API says it.
    HubspotObjects,
    /// `{"results":[{"toObjectId", …}]}`: whom a record belongs to.
    HubspotAssociations,
    /// `{"files":[{id, title, mimeType, …}],"nextPageToken"?}`.
    DriveFiles,
    /// One file, or an error with the status 404.
    DriveFile,
    /// `{"fileContent"}`.
    DriveText,
    /// A line `Found 2 customers:`, then one block of JSON for each. Errors are ordinary text.
    QuickbooksEntities,
}

/// Records as the provider's own API spells them, and where the next page begins.
#[derive(Debug, PartialEq)]
pub(super) struct Records {
    pub records: Vec<Value>,
    pub next: Option<String>,
}

impl Parser {
    /// `page` is where this one began.
    pub fn read(self, provider: Provider, result: CallToolResult, page: Option<&str>) -> Result<Records, PullError> {
        if result.is_error == Some(true) {
            let text = texts(&result).join("\n");
            return match (self, status(&text)) {
                (Self::DriveFile, Some(404)) => Ok(Records { records: Vec::new(), next: None }),
                (_, Some(400 | 404 | 410)) if self.goes_by_token(page) => Err(lost()),
                _ => Err(refused(provider, &text)),
            };
        }
        match self {
            Self::HubspotObjects => hubspot_objects(provider, &result),
            Self::HubspotAssociations => hubspot_associations(provider, &result),
            Self::DriveFiles => drive_files(provider, &result),
            Self::DriveFile => Ok(Records { records: vec![drive_file(content(provider, &result)?)], next: None }),
            Self::DriveText => drive_text(provider, &result),
            Self::QuickbooksEntities => quickbooks_entities(provider, &texts(&result), page),
        }
    }

    /// Whether the page was asked for with a token that the server gave. QuickBooks' pages are counted by us.
    pub fn goes_by_token(self, page: Option<&str>) -> bool {
        page.is_some() && matches!(self, Self::HubspotObjects | Self::DriveFiles)
    }
}

/// The server no longer takes the token of a page that it named itself.
pub(super) fn lost() -> PullError {
    PullError::CursorLost("the MCP server no longer knows our place in its list")
}

#[derive(Deserialize)]
struct Paging {
    next: Option<Next>,
}

#[derive(Deserialize)]
struct Next {
    after: String,
}

fn hubspot_objects(provider: Provider, result: &CallToolResult) -> Result<Records, PullError> {
    #[derive(Deserialize)]
    struct Objects {
        results: Rows<Map<String, Value>>,
        #[serde(default)]
        errors: Rows<BatchError>,
        paging: Option<Paging>,
    }
    let objects: Objects = content(provider, result)?;
    // What failed for another reason than that it is not there may be there.
    if !objects.errors.0.iter().all(BatchError::is_absence) {
        return Err(PullError::Passing(format!("{} answered only a part of what was asked", who(provider))));
    }
    let next = objects.paging.and_then(|paging| paging.next).map(|next| next.after);
    Ok(Records { records: objects.results.0.into_iter().map(Value::Object).collect(), next })
}

/// In the shape that a list of objects has them in.
fn hubspot_associations(provider: Provider, result: &CallToolResult) -> Result<Records, PullError> {
    #[derive(Deserialize)]
    struct Associations {
        results: Rows<Association>,
        paging: Option<Paging>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Association {
        to_object_id: Number,
    }
    let associations: Associations = content(provider, result)?;
    let ids = associations.results.0.into_iter().map(|to| to.to_object_id.to_string());
    let next = associations.paging.and_then(|paging| paging.next).map(|next| next.after);
    Ok(Records { records: ids.map(|id| json!({ "id": id })).collect(), next })
}

fn drive_files(provider: Provider, result: &CallToolResult) -> Result<Records, PullError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Files {
        // Google leaves out what is empty.
        #[serde(default)]
        files: Rows<Map<String, Value>>,
        next_page_token: Option<String>,
    }
    let Files { files, next_page_token } = content(provider, result)?;
    let records = files.0.into_iter().map(drive_file).collect();
    Ok(Records { records, next: next_page_token.filter(|token| !token.is_empty()) })
}

/// What the server calls `title` is `name` in Drive's own API.
fn drive_file(mut file: Map<String, Value>) -> Value {
    if let Some(title) = file.remove("title") {
        file.insert("name".to_owned(), title);
    }
    Value::Object(file)
}

fn drive_text(provider: Provider, result: &CallToolResult) -> Result<Records, PullError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Text {
        #[serde(default)]
        file_content: String,
    }
    let Text { file_content } = content(provider, result)?;
    Ok(Records { records: vec![Value::String(file_content)], next: None })
}

fn quickbooks_entities(provider: Provider, texts: &[&str], page: Option<&str>) -> Result<Records, PullError> {
    let Some((first, rest)) = texts.split_first() else { return Err(unreadable(provider, "gave an empty answer", "")) };
    let Some(found) = first.strip_prefix("Found ") else { return Err(refused(provider, first)) };
    let promised = found.split(' ').next().and_then(|number| number.parse().ok());
    if rest.len() > MOST {
        return Err(unreadable(provider, "gave far more records than it was asked for", first));
    }
    if promised != Some(rest.len()) {
        return Err(unreadable(provider, "gave another number of records than it said", first));
    }
    let records: Result<Vec<Map<String, Value>>, _> = rest.iter().map(|text| serde_json::from_str(text)).collect();
    let Ok(records) = records else {
        return Err(unreadable(provider, "gave a record that is no JSON", &rest.join("\n")));
    };
    let first: usize = page.and_then(|page| page.parse().ok()).unwrap_or(1);
    let next = (records.len() >= QUICKBOOKS_PAGE).then(|| (first + records.len()).to_string());
    Ok(Records { records: records.into_iter().map(Value::Object).collect(), next })
}

/// What the server meant for programs; else what it meant for people, if that is one text and JSON. Read straight into its shape, which
/// has an end.
fn content<T: DeserializeOwned>(provider: Provider, result: &CallToolResult) -> Result<T, PullError> {
    const ANOTHER: &str = "gave an answer of another shape";
    let texts = texts(result);
    match (&result.structured_content, &texts[..]) {
        (Some(value), _) if !value.is_null() => {
            T::deserialize(value).map_err(|_| unreadable(provider, ANOTHER, &value.to_string()))
        }
        (_, [text]) => serde_json::from_str(text).map_err(|error| {
            let what = if error.is_data() { ANOTHER } else { "gave a text that is no JSON" };
            unreadable(provider, what, text)
        }),
        _ => Err(unreadable(provider, "gave neither JSON nor one text of it", &texts.join("\n"))),
    }
}

fn texts(result: &CallToolResult) -> Vec<&str> {
    result.content.iter().filter_map(ContentBlock::as_text).map(|text| text.text.as_str()).collect()
}

/// An error in words. Servers quote the API behind them with its status, as in `HubSpot API Error: 429 Too Many Requests - {…}`.
pub(super) fn refused(provider: Provider, text: &str) -> PullError {
    let who = who(provider);
    let Some(status) = status(text) else { return unreadable(provider, "could not do what we asked for", text) };
    let said = text.find('{').map_or("", |start| &text[start..]);
    let Complaint { meaning, code, wait, .. } = complaint::heard(provider, status, said.as_bytes());
    match meaning {
        Meaning::Wait => PullError::RateLimited { who, retry_after: wait },
        Meaning::Token => PullError::Unauthorized { who },
        Meaning::Trouble => PullError::Passing(format!("{who} quotes an error {status}")),
        Meaning::Lasting if status == 403 => {
            PullError::Forbidden { who, code: code.unwrap_or_else(|| format!("http_{status}")) }
        }
        Meaning::Lasting => unreadable(provider, "could not do what we asked for", text),
    }
}

fn status(text: &str) -> Option<u16> {
    let after = text.split("Error: ").skip(1);
    after.filter_map(|rest| rest.get(..3)?.parse().ok()).find(|status| (400..600).contains(status))
}

/// Whether an error of the protocol is about what we called with.
pub(super) fn is_about_arguments(error: &ErrorData) -> bool {
    match status(&error.message) {
        Some(status) => matches!(status, 400 | 404 | 410),
        None => error.code == ErrorCode::INVALID_PARAMS,
    }
}

/// An error of the protocol: about the call itself, or about the server.
pub(super) fn failed(provider: Provider, error: &ErrorData) -> PullError {
    let who = who(provider);
    match error.code {
        _ if status(&error.message).is_some() => refused(provider, &error.message),
        // Its own fault, and those that a server makes up for itself: a crash, no room, a proxy of its own.
        ErrorCode(code @ (-32603 | -32019..=-32000)) => PullError::Passing(format!("{who} failed ({code})")),
        ErrorCode(code) => PullError::Forbidden { who, code: format!("mcp_error: {code}") },
    }
}

pub(super) fn who(provider: Provider) -> &'static str {
    match provider {
        Provider::Hubspot => "HubSpot's MCP server",
        Provider::GoogleDrive => "Google Drive's MCP server",
        Provider::Quickbooks => "QuickBooks' MCP server",
    }
}

/// `raw`: what was said, of which a person sees the beginning.
pub(super) fn unreadable(provider: Provider, what: &str, raw: &str) -> PullError {
    let raw = raw.chars().take(RAW_MAX_CHARS).collect::<String>().replace('\0', "\u{fffd}");
    PullError::Unreadable { what: format!("{} {what}", who(provider)), raw }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: Provider = Provider::Hubspot;

    fn said(blocks: &[&str]) -> CallToolResult {
        CallToolResult::success(blocks.iter().map(|text| ContentBlock::text(*text)).collect())
    }

    fn error(text: &str) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text(text)])
    }

    #[test]
    fn objects_of_hubspot_and_the_next_page_are_read() {
        let page = json!({ "results": [{ "id": "51", "properties": { "email": null } }], "paging": { "next": { "after": "52", "link": "x" } } });
        let read = Parser::HubspotObjects.read(OURS, said(&[&page.to_string()]), None).expect("records");
        let record = json!({ "id": "51", "properties": { "email": null } });
        assert_eq!(read, Records { records: vec![record], next: Some("52".into()) });

        let last = said(&[r#"{"results":[],"paging":null}"#]);
        assert_eq!(
            Parser::HubspotObjects.read(OURS, last, None).expect("a page"),
            Records { records: vec![], next: None }
        );
    }

    #[test]
    fn what_was_meant_for_programs_comes_before_what_was_meant_for_people() {
        let mut both = said(&["Here you are: 1 contact"]);
        both.structured_content = Some(json!({ "results": [{ "id": "51" }] }));
        let read = Parser::HubspotObjects.read(OURS, both, None).expect("records");
        assert_eq!(read.records, [json!({ "id": "51" })]);
    }

    #[test]
    fn another_shape_is_not_guessed_at() {
        for blocks in [
            &[][..],
            &["<html>502</html>"],
            &[r#"{"results":[]}"#, r#"{"results":[]}"#],
            &[r#"{"objects":[]}"#],
            &[r#"{"results":{"0":{}}}"#],
            &[r#"{"results":[[]]}"#],
            &[r#"{"results":[],"paging":{"next":{"after":7}}}"#],
        ] {
            let read = Parser::HubspotObjects.read(OURS, said(blocks), None);
            let Err(PullError::Unreadable { what, .. }) = read else { panic!("{blocks:?} was read as {read:?}") };
            assert!(what.starts_with("HubSpot's MCP server gave "), "{what}");
        }
    }

    #[test]
    fn an_answer_of_a_million_rows_is_no_answer() {
        let rows = |n: usize, row: &str| vec![row; n].join(",");
        for (n, is_read) in [(MOST, true), (MOST + 1, false), (1_000_000, false)] {
            for (parser, text) in [
                (Parser::HubspotObjects, format!(r#"{{"results":[{}]}}"#, rows(n, "{}"))),
                (Parser::HubspotAssociations, format!(r#"{{"results":[{}]}}"#, rows(n, r#"{"toObjectId":1}"#))),
                (Parser::DriveFiles, format!(r#"{{"files":[{}]}}"#, rows(n, "{}"))),
            ] {
                assert_eq!(parser.read(OURS, said(&[&text]), None).is_ok(), is_read, "{n} {parser:?}");
            }
        }
        let line = format!("Found {} customers:", MOST + 1);
        let mut blocks = vec![line.as_str()];
        blocks.resize(MOST + 2, "{}");
        assert!(Parser::QuickbooksEntities.read(OURS, said(&blocks), None).is_err());
    }

    #[test]
    fn an_error_of_the_api_behind_a_tool_is_told_apart() {
        let lead = "Error listing HubSpot contacts: HubSpot API Error:";
        for (text, expected) in [
            (format!("{lead} 429 Too Many Requests - {{}}"), "HubSpot's MCP server asked us to wait 10 s"),
            (format!("{lead} 401 Unauthorized - {{}}"), "HubSpot's MCP server refused the token"),
            (
                format!(r#"{lead} 403 Forbidden - {{"category":"MISSING_SCOPES","message":"Nora"}}"#),
                "HubSpot's MCP server refused what we asked for (MISSING_SCOPES)",
            ),
            (format!("{lead} 403 Forbidden - {{}}"), "HubSpot's MCP server refused what we asked for (http_403)"),
            (format!("{lead} 502 Bad Gateway - {{}}"), "HubSpot's MCP server quotes an error 502"),
            (format!("{lead} 400 Bad Request - {{}}"), "HubSpot's MCP server could not do what we asked for"),
            (
                format!(r#"{lead} 429 Too Many Requests - {{"policyName":"DAILY"}}"#),
                "HubSpot's MCP server asked us to wait 3600 s",
            ),
            ("Error: limit must be <= 500".into(), "HubSpot's MCP server could not do what we asked for"),
            ("the 429th record is broken".into(), "HubSpot's MCP server could not do what we asked for"),
            (String::new(), "HubSpot's MCP server could not do what we asked for"),
        ] {
            let refused = Parser::HubspotObjects.read(OURS, error(&text), None).expect_err("an error");
            assert_eq!(refused.to_string(), expected, "{text}");
            if let PullError::Unreadable { raw, .. } = refused {
                assert_eq!(raw, text);
            }
        }
    }

    #[test]
    fn an_error_of_the_protocol_passes_or_does_not() {
        for (code, message, expected) in [
            (-32603, "boom", "HubSpot's MCP server failed (-32603)"),
            (-32000, "boom", "HubSpot's MCP server failed (-32000)"),
            (-32603, "HubSpot API Error: 401 Unauthorized", "HubSpot's MCP server refused the token"),
            (-32602, "no such tool", "HubSpot's MCP server refused what we asked for (mcp_error: -32602)"),
            (-32020, "header", "HubSpot's MCP server refused what we asked for (mcp_error: -32020)"),
        ] {
            let error = ErrorData::new(ErrorCode(code), message, None);
            assert_eq!(failed(OURS, &error).to_string(), expected);
        }
    }

    #[test]
    fn whom_a_record_belongs_to_is_read_as_a_list_of_objects_has_it() {
        let text = r#"{"results":[{"toObjectId":54,"associationTypes":[]},{"toObjectId":9007199254740993}]}"#;
        let read = Parser::HubspotAssociations.read(OURS, said(&[text]), None).expect("associations");
        assert_eq!(read.records, [json!({ "id": "54" }), json!({ "id": "9007199254740993" })]);

        let part = r#"{"results":[],"paging":{"next":{"after":"9"}}}"#;
        let part = Parser::HubspotAssociations.read(OURS, said(&[part]), None).expect("a part");
        assert_eq!(part.next.as_deref(), Some("9"));
    }

    #[test]
    fn files_of_drive_are_named_as_drive_names_them() {
        let text = r#"{"files":[{"id":"1a","title":"Terms","mimeType":"application/vnd.google-apps.document"}],"nextPageToken":"~x"}"#;
        let read = Parser::DriveFiles.read(OURS, said(&[text]), None).expect("files");
        let file = json!({ "id": "1a", "name": "Terms", "mimeType": "application/vnd.google-apps.document" });
        assert_eq!(read, Records { records: vec![file], next: Some("~x".into()) });

        let none = Parser::DriveFiles.read(OURS, said(&["{}"]), None).expect("an empty answer");
        assert_eq!(none, Records { records: vec![], next: None });
        let text = Parser::DriveText.read(OURS, said(&[r#"{"fileContent":"Rates"}"#]), None).expect("a text");
        assert_eq!(text.records, [json!("Rates")]);
    }

    #[test]
    fn only_a_file_that_is_not_there_is_no_file() {
        let gone = Parser::DriveFile.read(OURS, error("API Error: 404 notFound"), None).expect("no file");
        assert_eq!(gone.records, Vec::<Value>::new());
        assert!(Parser::DriveFile.read(OURS, error("the file was not found, or so"), None).is_err());
    }

    #[test]
    fn entities_of_quickbooks_are_counted_and_paged() {
        let two = ["Found 2 customers:", r#"{"Id":"1"}"#, r#"{"Id":"2"}"#];
        let read = Parser::QuickbooksEntities.read(OURS, said(&two), None).expect("customers");
        assert_eq!(read, Records { records: vec![json!({ "Id": "1" }), json!({ "Id": "2" })], next: None });

        let line = format!("Found {QUICKBOOKS_PAGE} invoices");
        let mut full = vec![line.as_str()];
        full.resize(1 + QUICKBOOKS_PAGE, r#"{"Id":"9"}"#);
        for (page, next) in [(None, "101"), (Some("101"), "201")] {
            let read = Parser::QuickbooksEntities.read(OURS, said(&full), page).expect("invoices");
            assert_eq!(read.next.as_deref(), Some(next));
        }

        for (blocks, expected) in [
            (&["Error searching customers: API Error: 401"][..], "HubSpot's MCP server refused the token"),
            (&["Error searching customers: x"], "HubSpot's MCP server could not do what we asked for"),
            (&["Found 2 customers:", "{}"], "HubSpot's MCP server gave another number of records than it said"),
            (&["Found 1 customers:", "[]"], "HubSpot's MCP server gave a record that is no JSON"),
            (&["Count: 7"], "HubSpot's MCP server could not do what we asked for"),
            (&[], "HubSpot's MCP server gave an empty answer"),
        ] {
            let refused = Parser::QuickbooksEntities.read(OURS, said(blocks), None).expect_err("no records");
            assert_eq!(refused.to_string(), expected, "{blocks:?}");
        }
    }
}
