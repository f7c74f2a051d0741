//! The tools of HubSpot's own local MCP server, version 0.4.0, and what they answer.

use serde::Deserialize;
use serde_json::{Map, Number, Value, json};

use super::map::OBJECTS;
use super::properties;
use super::wire::BatchError;
use crate::pull::PullError;
use crate::pull::mcp::{Then, Tool, ToolAnswer, ToolRecords};
use crate::pull::records::Rows;
use crate::pull::spec::Blank;

const LIST: &str = include_str!("schemas/list-objects.json");
const READ: &str = include_str!("schemas/batch-read-objects.json");
const ASSOCIATIONS: &str = include_str!("schemas/list-associations.json");

/// The properties that are read of each kind of record.
pub(super) static BLANKS: &[Blank] = &[
    ("{contact properties}", || json!(properties(&OBJECTS[0]))),
    ("{company properties}", || json!(properties(&OBJECTS[1]))),
    ("{deal properties}", || json!(properties(&OBJECTS[2]))),
];

pub(super) static TOOLS: &[Tool] = &[
    Tool {
        method: "hubspot.crm.contacts.list",
        name: "hubspot-list-objects",
        arguments: r#"{
            "objectType": "contacts", "limit": 100, "after": "{page}", "properties": "{contact properties}",
            "associations": ["companies"]
        }"#,
        schemas: &[LIST],
        read: objects,
        has_page_tokens: true,
        is_absent_at_404: false,
        then: Some(Then { method: "hubspot.crm.contacts.companies", of: has_more_companies, put: put_companies }),
    },
    Tool {
        method: "hubspot.crm.companies.list",
        name: "hubspot-list-objects",
        arguments: r#"{ "objectType": "companies", "limit": 100, "after": "{page}", "properties": "{company properties}" }"#,
        schemas: &[LIST],
        read: objects,
        has_page_tokens: true,
        is_absent_at_404: false,
        then: None,
    },
    Tool {
        method: "hubspot.crm.deals.list",
        name: "hubspot-list-objects",
        arguments: r#"{
            "objectType": "deals", "limit": 100, "after": "{page}", "properties": "{deal properties}",
            "associations": ["companies"]
        }"#,
        schemas: &[LIST],
        read: objects,
        has_page_tokens: true,
        is_absent_at_404: false,
        then: Some(Then { method: "hubspot.crm.deals.companies", of: has_more_companies, put: put_companies }),
    },
    Tool {
        method: "hubspot.crm.contacts.get",
        name: "hubspot-batch-read-objects",
        arguments: r#"{ "objectType": "contacts", "inputs": "{inputs}", "properties": "{contact properties}" }"#,
        schemas: &[READ],
        read: objects,
        has_page_tokens: true,
        is_absent_at_404: false,
        then: Some(Then { method: "hubspot.crm.contacts.companies", of: |_| true, put: put_companies }),
    },
    Tool {
        method: "hubspot.crm.companies.get",
        name: "hubspot-batch-read-objects",
        arguments: r#"{ "objectType": "companies", "inputs": "{inputs}", "properties": "{company properties}" }"#,
        schemas: &[READ],
        read: objects,
        has_page_tokens: true,
        is_absent_at_404: false,
        then: None,
    },
    Tool {
        method: "hubspot.crm.deals.get",
        name: "hubspot-batch-read-objects",
        arguments: r#"{ "objectType": "deals", "inputs": "{inputs}", "properties": "{deal properties}" }"#,
        schemas: &[READ],
        read: objects,
        has_page_tokens: true,
        is_absent_at_404: false,
        then: Some(Then { method: "hubspot.crm.deals.companies", of: |_| true, put: put_companies }),
    },
    // A batch does not tell the companies that a record belongs to.
    Tool {
        method: "hubspot.crm.contacts.companies",
        name: "hubspot-list-associations",
        arguments: r#"{ "objectType": "contacts", "objectId": "{id}", "toObjectType": "companies", "after": "{page}" }"#,
        schemas: &[ASSOCIATIONS],
        read: associations,
        has_page_tokens: false,
        is_absent_at_404: false,
        then: None,
    },
    Tool {
        method: "hubspot.crm.deals.companies",
        name: "hubspot-list-associations",
        arguments: r#"{ "objectType": "deals", "objectId": "{id}", "toObjectType": "companies", "after": "{page}" }"#,
        schemas: &[ASSOCIATIONS],
        read: associations,
        has_page_tokens: false,
        is_absent_at_404: false,
        then: None,
    },
];

/// A list leaves out companies of a record that has many.
fn has_more_companies(record: &Value) -> bool {
    record.pointer("/associations/companies/paging/next").is_some_and(Value::is_object)
}

fn put_companies(record: &mut Value, companies: Vec<Value>) {
    record["associations"] = json!({ "companies": { "results": companies } });
}

#[derive(Deserialize)]
struct Paging {
    next: Option<Next>,
}

#[derive(Deserialize)]
struct Next {
    after: String,
}

/// Reads `{"results":[{id, properties, …}],"errors"?:[…],"paging"?:{"next"?:{"after"}}}`, as HubSpot's own API says it.
fn objects(answer: &ToolAnswer<'_>) -> Result<ToolRecords, PullError> {
    #[derive(Deserialize)]
    struct Objects {
        results: Rows<Map<String, Value>>,
        #[serde(default)]
        errors: Rows<BatchError>,
        paging: Option<Paging>,
    }
    let objects: Objects = answer.content()?;
    // A record that failed for another reason than its absence may be there.
    if !objects.errors.0.iter().all(BatchError::is_absence) {
        return Err(PullError::Passing(format!("{} answered only a part of what was asked", answer.who())));
    }
    let next = objects.paging.and_then(|paging| paging.next).map(|next| next.after);
    Ok(ToolRecords { records: objects.results.0.into_iter().map(Value::Object).collect(), next })
}

/// Reads `{"results":[{"toObjectId", …}]}`, the companies of a record, into the shape that a list of objects has.
fn associations(answer: &ToolAnswer<'_>) -> Result<ToolRecords, PullError> {
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
    let associations: Associations = answer.content()?;
    let ids = associations.results.0.into_iter().map(|to| to.to_object_id.to_string());
    let next = associations.paging.and_then(|paging| paging.next).map(|next| next.after);
    Ok(ToolRecords { records: ids.map(|id| json!({ "id": id })).collect(), next })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pull::mcp::answer::tests::{read, said};
    use crate::pull::records::MOST;

    const LISTED: &str = "hubspot.crm.contacts.list";
    const COMPANIES: &str = "hubspot.crm.deals.companies";

    #[test]
    fn objects_and_the_next_page_are_read() {
        let page = json!({ "results": [{ "id": "51", "properties": { "email": null } }], "paging": { "next": { "after": "52", "link": "x" } } });
        let record = json!({ "id": "51", "properties": { "email": null } });
        let expected = ToolRecords { records: vec![record], next: Some("52".into()) };
        assert_eq!(read(LISTED, &said(&[&page.to_string()]), None).expect("records"), expected);

        let last = said(&[r#"{"results":[],"paging":null}"#]);
        assert_eq!(read(LISTED, &last, None).expect("a page"), ToolRecords { records: vec![], next: None });
    }

    #[test]
    fn an_object_of_another_shape_is_not_guessed_at() {
        for blocks in [
            &[][..],
            &["<html>502</html>"],
            &[r#"{"results":[]}"#, r#"{"results":[]}"#],
            &[r#"{"objects":[]}"#],
            &[r#"{"results":{"0":{}}}"#],
            &[r#"{"results":[[]]}"#],
            &[r#"{"results":[],"paging":{"next":{"after":7}}}"#],
        ] {
            let read = read(LISTED, &said(blocks), None);
            let Err(PullError::Unreadable { what, .. }) = read else { panic!("{blocks:?} was read as {read:?}") };
            assert!(what.starts_with("HubSpot's MCP server gave "), "{what}");
        }
    }

    #[test]
    fn the_companies_of_a_record_are_read_as_a_list_of_objects_has_them() {
        let text = r#"{"results":[{"toObjectId":54,"associationTypes":[]},{"toObjectId":9007199254740993}]}"#;
        let companies = read(COMPANIES, &said(&[text]), None).expect("associations");
        assert_eq!(companies.records, [json!({ "id": "54" }), json!({ "id": "9007199254740993" })]);

        let part = r#"{"results":[],"paging":{"next":{"after":"9"}}}"#;
        assert_eq!(read(COMPANIES, &said(&[part]), None).expect("a part").next.as_deref(), Some("9"));
    }

    #[test]
    fn an_answer_of_a_million_rows_is_no_answer() {
        for (n, is_read) in [(MOST, true), (MOST + 1, false), (1_000_000, false)] {
            for (method, row) in [(LISTED, "{}"), (COMPANIES, r#"{"toObjectId":1}"#)] {
                let text = format!(r#"{{"results":[{}]}}"#, vec![row; n].join(","));
                assert_eq!(read(method, &said(&[&text]), None).is_ok(), is_read, "{n} {method}");
            }
        }
    }
}
