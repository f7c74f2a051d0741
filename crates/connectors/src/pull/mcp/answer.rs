//! A tool's result, taken apart: records and the next page, or why there are none. Shapes are pinned: what is not as it was when this was
//! written is not guessed at.

use domain::text::replace_nul;
use rmcp::model::{CallToolResult, ContentBlock, ErrorCode, ErrorData};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::tools::Tool;
use crate::pull::PullError;
use crate::pull::complaint::{Complaint, Meaning};
use crate::pull::spec::Provider;

const RAW_MAX_CHARS: usize = 2_000;

/// Records as the provider's own API spells them, and the next page.
#[derive(Debug, PartialEq)]
pub struct ToolRecords {
    pub records: Vec<Value>,
    /// The token of the next page; none on the last one.
    pub next: Option<String>,
}

/// The answer of a tool. Its shape remains to be read.
pub struct ToolAnswer<'a> {
    provider: Provider,
    result: &'a CallToolResult,
    page: Option<&'a str>,
}

impl ToolAnswer<'_> {
    /// The server, as people call it.
    pub fn who(&self) -> &'static str {
        who(self.provider)
    }

    /// The token that the page was asked for with; none for the first.
    pub fn page(&self) -> Option<&str> {
        self.page
    }

    /// Its blocks of text.
    pub fn texts(&self) -> Vec<&str> {
        texts(self.result)
    }

    /// The structured content; else the text, if that is one block of JSON. It is read straight into its shape, which bounds its size.
    pub fn content<T: DeserializeOwned>(&self) -> Result<T, PullError> {
        const ANOTHER: &str = "gave an answer of another shape";
        let texts = self.texts();
        match (&self.result.structured_content, &texts[..]) {
            (Some(value), _) if !value.is_null() => {
                T::deserialize(value).map_err(|_| self.unreadable(ANOTHER, &value.to_string()))
            }
            (_, [text]) => serde_json::from_str(text).map_err(|error| {
                let what = if error.is_data() { ANOTHER } else { "gave a text that is not JSON" };
                self.unreadable(what, text)
            }),
            _ => Err(self.unreadable("gave neither JSON nor one text of it", &texts.join("\n"))),
        }
    }

    /// An answer of another shape; `what` ends the sentence that begins with the server's name.
    pub fn unreadable(&self, what: &str, raw: &str) -> PullError {
        unreadable(self.provider, what, raw)
    }

    /// An error that came as ordinary text.
    pub fn refused(&self, text: &str) -> PullError {
        refused(self.provider, text)
    }
}

/// Reads what a tool answered. `page` is the token that the page was asked for with.
pub(super) fn read(
    provider: Provider,
    tool: &Tool,
    result: &CallToolResult,
    page: Option<&str>,
) -> Result<ToolRecords, PullError> {
    if result.is_error == Some(true) {
        let text = texts(result).join("\n");
        return match status(&text) {
            Some(404) if tool.is_absent_at_404 => Ok(ToolRecords { records: Vec::new(), next: None }),
            Some(400 | 404 | 410) if tool.has_page_tokens && page.is_some() => Err(lost()),
            _ => Err(refused(provider, &text)),
        };
    }
    (tool.read)(&ToolAnswer { provider, result, page })
}

/// The server no longer takes the token of a page that it named itself.
pub(super) fn lost() -> PullError {
    PullError::CursorLost("the MCP server no longer knows our place in its list")
}

fn texts(result: &CallToolResult) -> Vec<&str> {
    result.content.iter().filter_map(ContentBlock::as_text).map(|text| text.text.as_str()).collect()
}

/// An error in words. Servers quote the API behind them with its status, as in `Acme API Error: 429 Too Many Requests - {…}`.
fn refused(provider: Provider, text: &str) -> PullError {
    let who = who(provider);
    let Some(status) = status(text) else { return unreadable(provider, "could not do what we asked for", text) };
    let said = text.find('{').map_or("", |start| &text[start..]);
    let Complaint { meaning, code, wait, .. } = (provider.complaint)(status, said.as_bytes());
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

/// Whether an error of the protocol is about the arguments of our call.
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
        // The server's own fault, and codes that a server makes up: a crash, no room, a proxy of its own.
        ErrorCode(code @ (-32603 | -32019..=-32000)) => PullError::Passing(format!("{who} failed ({code})")),
        ErrorCode(code) => PullError::Forbidden { who, code: format!("mcp_error: {code}") },
    }
}

/// A provider's server, as people call it.
pub(super) fn who(provider: Provider) -> &'static str {
    provider.mcp.as_ref().map_or(provider.label, |mcp| mcp.server)
}

/// An answer that cannot be read. A person sees the beginning of `raw`.
pub(super) fn unreadable(provider: Provider, what: &str, raw: &str) -> PullError {
    let raw = replace_nul(&raw.chars().take(RAW_MAX_CHARS).collect::<String>());
    PullError::Unreadable { what: format!("{} {what}", who(provider)), raw }
}

#[cfg(test)]
pub(in crate::pull) mod tests {
    use serde_json::json;

    use super::*;
    use crate::pull::{ALL, hubspot};

    const LISTED: &str = "hubspot.crm.contacts.list";

    pub fn said(blocks: &[&str]) -> CallToolResult {
        CallToolResult::success(blocks.iter().map(|text| ContentBlock::text(*text)).collect())
    }

    pub fn error(text: &str) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text(text)])
    }

    /// Reads a result as the tool of a method writes it.
    pub fn read(method: &str, result: &CallToolResult, page: Option<&str>) -> Result<ToolRecords, PullError> {
        let tools = ALL.iter().flat_map(|provider| {
            provider.mcp.iter().flat_map(move |mcp| mcp.tools.iter().map(move |tool| (*provider, tool)))
        });
        let (provider, tool) = tools.into_iter().find(|(_, tool)| tool.method == method).expect("a method");
        super::read(provider, tool, result, page)
    }

    #[test]
    fn structured_content_comes_before_text() {
        let mut both = said(&["Here you are: 1 contact"]);
        both.structured_content = Some(json!({ "results": [{ "id": "51" }] }));
        assert_eq!(read(LISTED, &both, None).expect("records").records, [json!({ "id": "51" })]);
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
            let refused = read(LISTED, &error(&text), None).expect_err("an error");
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
            assert_eq!(failed(&hubspot::SPEC, &error).to_string(), expected);
        }
    }
}
