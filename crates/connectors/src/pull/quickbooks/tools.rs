//! The tools of Intuit's MCP server for QuickBooks Online, as Intuit publishes them, and what they answer. Nobody has recorded the server
//! yet.

use serde_json::{Map, Value};

use crate::pull::PullError;
use crate::pull::mcp::{Tool, ToolAnswer, ToolRecords};
use crate::pull::records::MOST;

/// The number of records in a page; a shorter one is the last.
const PAGE: usize = 100;

const CUSTOMERS: &str = include_str!("schemas/search_customers.json");
const INVOICES: &str = include_str!("schemas/search_invoices.json");

const BY_ID: &str = r#"{ "params": { "criteria": [{ "field": "Id", "operator": "IN", "value": "{ids}" }] } }"#;

pub(super) static TOOLS: &[Tool] = &[
    Tool {
        method: "quickbooks.customers.list",
        name: "search_customers",
        arguments: r#"{ "params": { "asc": "Id", "limit": 100, "offset": "{offset}" } }"#,
        schemas: &[CUSTOMERS],
        ..SEARCH
    },
    Tool {
        method: "quickbooks.customers.get",
        name: "search_customers",
        arguments: BY_ID,
        schemas: &[CUSTOMERS],
        ..SEARCH
    },
    Tool {
        method: "quickbooks.invoices.list",
        name: "search_invoices",
        arguments: r#"{ "params": { "criteria": { "asc": "Id", "limit": 100, "offset": "{offset}" } } }"#,
        schemas: &[INVOICES],
        ..SEARCH
    },
    Tool {
        method: "quickbooks.invoices.get",
        name: "search_invoices",
        arguments: BY_ID,
        schemas: &[INVOICES],
        ..SEARCH
    },
];

/// All of them search, and give no page tokens: we count the pages.
const SEARCH: Tool = Tool {
    method: "",
    name: "",
    arguments: "",
    schemas: &[],
    read: entities,
    has_page_tokens: false,
    is_absent_at_404: false,
    then: None,
};

/// Reads a line `Found 2 customers:`, then one block of JSON for each record. Errors are ordinary text.
fn entities(answer: &ToolAnswer<'_>) -> Result<ToolRecords, PullError> {
    let texts = answer.texts();
    let Some((first, rest)) = texts.split_first() else { return Err(answer.unreadable("gave an empty answer", "")) };
    let Some(found) = first.strip_prefix("Found ") else { return Err(answer.refused(first)) };
    let promised = found.split(' ').next().and_then(|number| number.parse().ok());
    if rest.len() > MOST {
        return Err(answer.unreadable("gave far more records than it was asked for", first));
    }
    if promised != Some(rest.len()) {
        return Err(answer.unreadable("gave another number of records than it said", first));
    }
    let records: Result<Vec<Map<String, Value>>, _> = rest.iter().map(|text| serde_json::from_str(text)).collect();
    let Ok(records) = records else {
        return Err(answer.unreadable("gave a record that is not JSON", &rest.join("\n")));
    };
    let first: usize = answer.page().and_then(|page| page.parse().ok()).unwrap_or(1);
    let next = (records.len() >= PAGE).then(|| (first + records.len()).to_string());
    Ok(ToolRecords { records: records.into_iter().map(Value::Object).collect(), next })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pull::mcp::answer::tests::{read, said};

    const CUSTOMERS: &str = "quickbooks.customers.list";
    const INVOICES: &str = "quickbooks.invoices.list";

    #[test]
    fn a_page_is_as_long_as_it_is_asked_for() {
        for tool in TOOLS.iter().filter(|tool| tool.method.ends_with(".list")) {
            assert!(tool.arguments.contains(&format!(r#""limit": {PAGE}"#)), "{}", tool.method);
        }
    }

    #[test]
    fn entities_are_counted_and_paged() {
        let two = ["Found 2 customers:", r#"{"Id":"1"}"#, r#"{"Id":"2"}"#];
        let customers = read(CUSTOMERS, &said(&two), None).expect("customers");
        assert_eq!(customers, ToolRecords { records: vec![json!({ "Id": "1" }), json!({ "Id": "2" })], next: None });

        let line = format!("Found {PAGE} invoices");
        let mut full = vec![line.as_str()];
        full.resize(1 + PAGE, r#"{"Id":"9"}"#);
        for (page, next) in [(None, "101"), (Some("101"), "201")] {
            let invoices = read(INVOICES, &said(&full), page).expect("invoices");
            assert_eq!(invoices.next.as_deref(), Some(next));
        }

        for (blocks, expected) in [
            (&["Error searching customers: API Error: 401"][..], "QuickBooks' MCP server refused the token"),
            (&["Error searching customers: x"], "QuickBooks' MCP server could not do what we asked for"),
            (&["Found 2 customers:", "{}"], "QuickBooks' MCP server gave another number of records than it said"),
            (&["Found 1 customers:", "[]"], "QuickBooks' MCP server gave a record that is not JSON"),
            (&["Count: 7"], "QuickBooks' MCP server could not do what we asked for"),
            (&[], "QuickBooks' MCP server gave an empty answer"),
        ] {
            let refused = read(CUSTOMERS, &said(blocks), None).expect_err("no records");
            assert_eq!(refused.to_string(), expected, "{blocks:?}");
        }
        let line = format!("Found {} customers:", MOST + 1);
        let mut blocks = vec![line.as_str()];
        blocks.resize(MOST + 2, "{}");
        assert!(read(CUSTOMERS, &said(&blocks), None).is_err());
    }
}
