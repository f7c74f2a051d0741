//! Maps HubSpot's contacts, companies and deals to records of ours.

use serde_json::{Map, Value, json};

use super::labels;
use crate::pull::record::{self, Fields};
use crate::pull::{Failed, Item, RawItem};

/// One kind of record.
pub(in crate::pull) struct Object {
    /// External ids begin with it.
    pub name: &'static str,
    /// The spelling in paths.
    pub plural: &'static str,
    pub document_type: &'static str,
    /// The property with the time of the last change.
    pub modified: &'static str,
    /// The properties that are kept.
    pub properties: &'static [&'static str],
    /// Whether it belongs to companies.
    pub has_companies: bool,
}

/// The property with the time of creation, for every kind.
pub(super) const CREATED: &str = "createdate";

pub(in crate::pull) static OBJECTS: [Object; 3] = [
    Object {
        name: "contact",
        plural: "contacts",
        document_type: "hubspot.contact",
        modified: "lastmodifieddate",
        properties: &["firstname", "lastname", "email", "company", "jobtitle", "lifecyclestage"],
        has_companies: true,
    },
    Object {
        name: "company",
        plural: "companies",
        document_type: "hubspot.company",
        modified: "hs_lastmodifieddate",
        properties: &["name", "domain", "industry", "numberofemployees", "annualrevenue", "description"],
        has_companies: false,
    },
    Object {
        name: "deal",
        plural: "deals",
        document_type: "hubspot.deal",
        modified: "hs_lastmodifieddate",
        properties: &["dealname", "amount", "dealstage", "closedate", "pipeline", "hs_is_closed"],
        has_companies: true,
    },
];

/// Brings one record of HubSpot's JSON into its one form. `object` is `contact`, `company` or `deal`.
pub(in crate::pull) fn raw(object: &str, record: Value) -> Result<RawItem, Failed> {
    read(object, &record).map_err(|reason| record::failed(object, record.get("id"), reason, record.clone()))
}

fn read(object: &str, record: &Value) -> Result<RawItem, String> {
    let Some(object) = OBJECTS.iter().find(|known| known.name == object) else {
        return Err("it is of a kind that is not read".into());
    };
    let fields = record::object(record)?;
    let id = record::id(fields, "id")?;
    let external_id = format!("{}:{id}", object.name);
    if fields.get("archived").and_then(Value::as_bool) == Some(true) {
        // Without a time: a restored record may be older than its deletion, and must win all the same.
        return Ok(record::tombstone(external_id, object.document_type, None));
    }
    let Some(properties) = record::part(fields, "properties")? else { return Err("it has no properties".into()) };
    // The properties are always there, since we ask for them. Some transports leave out the fields beside them.
    let updated = record::time(properties.get(object.modified)).or_else(|| record::time(fields.get("updatedAt")));
    let created = record::time(properties.get(CREATED)).or_else(|| record::time(fields.get("createdAt")));

    let mut kept = Map::new();
    for property in object.properties {
        record::put(&mut kept, property, record::text(properties, property)?);
    }
    if object.name == "contact" {
        record::put(&mut kept, object.modified, updated.map(record::spelled));
    }
    let mut payload = Map::new();
    record::put(&mut payload, "id", Some(id));
    record::put(&mut payload, "properties", Some(kept));
    record::put(&mut payload, "createdAt", created.map(record::spelled));
    record::put(&mut payload, "updatedAt", updated.map(record::spelled));
    record::put(&mut payload, "archived", Some(false));
    if object.has_companies {
        let companies = companies(fields)?;
        record::put(&mut payload, "associations", Some(json!({ "companies": companies })));
    }
    Ok(RawItem {
        external_id,
        document_type: object.document_type,
        payload: Value::Object(payload),
        source_created_at: created,
        source_updated_at: updated,
        is_deleted: false,
    })
}

/// The ids of its companies, each once. HubSpot's list has the primary company twice; a plain list of ids is our own form.
fn companies(fields: &Fields) -> Result<Vec<String>, String> {
    let Some(associations) = record::part(fields, "associations")? else { return Ok(Vec::new()) };
    let wrong = || "its associations are of another form".to_owned();
    let listed = match associations.get("companies") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(ids)) => ids,
        Some(nested) => nested.get("results").and_then(Value::as_array).ok_or_else(wrong)?,
    };
    let id = |entry: &Value| record::plain_id(entry.get("id").unwrap_or(entry)).ok_or_else(wrong);
    let mut ids = listed.iter().map(id).collect::<Result<Vec<_>, _>>()?;
    ids.sort();
    ids.dedup();
    Ok(ids)
}

/// Makes of a record what memory takes.
pub(in crate::pull) fn item(raw: RawItem) -> Item {
    let itself = raw.external_id.clone();
    let is_client = raw.document_type != "hubspot.deal";
    if raw.is_deleted {
        return record::buried(raw, if is_client { vec![itself] } else { Vec::new() });
    }
    let said = |property: &str| record::said(&raw.payload, &format!("/properties/{property}"));
    // A code in words, as HubSpot's own pages have it.
    let told = |property: &str, field: &str| said(property).map(|code| labels::value(field, &code).unwrap_or(code));
    let (title, text) = match raw.document_type {
        "hubspot.contact" => {
            let name = [said("firstname"), said("lastname")].into_iter().flatten().collect::<Vec<_>>().join(" ");
            let name = Some(name).filter(|name| !name.is_empty());
            let text = record::lines(&[
                ("Name", name.clone()),
                ("Email", said("email")),
                ("Company", said("company")),
                ("Job title", said("jobtitle")),
                ("Lifecycle stage", told("lifecyclestage", "lifecycle")),
            ]);
            (name.or_else(|| said("email")), text)
        }
        "hubspot.company" => {
            let text = record::lines(&[
                ("Company", said("name")),
                ("Domain", said("domain")),
                ("Industry", told("industry", "industry")),
                ("Employees", said("numberofemployees")),
                ("Annual revenue", said("annualrevenue")),
                ("Description", said("description")),
            ]);
            (said("name").or_else(|| said("domain")), text)
        }
        _ => {
            let text = record::lines(&[
                ("Deal", said("dealname")),
                ("Amount", said("amount")),
                ("Stage", told("dealstage", "deal_stage")),
                ("Close date", said("closedate")),
                ("Pipeline", told("pipeline", "pipeline")),
            ]);
            (said("dealname"), text)
        }
    };
    let mut mentions = if is_client { vec![itself] } else { Vec::new() };
    let companies = raw.payload.pointer("/associations/companies").and_then(Value::as_array);
    mentions.extend(companies.into_iter().flatten().filter_map(Value::as_str).map(|id| format!("company:{id}")));
    Item { raw, title, text, mentions, letter: None, file: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contact() -> Value {
        json!({
            "id": "51",
            "properties": {
                "firstname": "Ana", "lastname": "Diaz", "email": "ana@acme.example", "company": "", "jobtitle": null,
                "lifecyclestage": "customer", "hs_object_id": "51", "phone": "555",
                "createdate": "2026-10-01T08:00:00Z", "lastmodifieddate": "2026-11-01T10:00:00.000Z",
            },
            "createdAt": "2026-10-01T08:00:00.000Z", "updatedAt": "2026-11-01T10:00:00.000Z", "archived": false,
            "associations": { "companies": { "results": [
                { "id": "9", "type": "contact_to_company" }, { "id": "9", "type": "contact_to_company_unlabeled" },
                { "id": "12", "type": "contact_to_company_unlabeled" },
            ] } },
        })
    }

    #[test]
    fn a_record_has_one_form_whichever_way_it_came() {
        let listed = raw("contact", contact()).expect("a record");
        assert_eq!(
            listed.payload,
            json!({
                "id": "51",
                "properties": {
                    "firstname": "Ana", "lastname": "Diaz", "email": "ana@acme.example", "lifecyclestage": "customer",
                    "lastmodifieddate": "2026-11-01T10:00:00.000Z",
                },
                "createdAt": "2026-10-01T08:00:00.000Z", "updatedAt": "2026-11-01T10:00:00.000Z", "archived": false,
                "associations": { "companies": ["12", "9"] },
            })
        );
        // A search, with the associations read apart; a tool that gives ids as numbers and nothing beside the properties.
        let mut searched = contact();
        searched["associations"] = json!({ "companies": ["9", "12"] });
        let mut told = contact();
        told["id"] = json!(51);
        told["associations"] = json!({ "companies": [{ "id": 12 }, { "id": 9 }] });
        for key in ["createdAt", "updatedAt", "archived"] {
            told.as_object_mut().expect("an object").remove(key);
        }
        for other in [searched, told, listed.payload.clone()] {
            assert_eq!(raw("contact", other).expect("a record"), listed);
        }
    }

    #[test]
    fn every_mapped_field_is_in_the_text_and_nothing_that_only_says_when() {
        let company = json!({ "id": "9", "properties": {
            "name": "Acme", "domain": "acme.example", "industry": "RETAIL", "numberofemployees": "250",
            "annualrevenue": "1000000", "description": "Makes\neverything.", "hs_lastmodifieddate": "2026-11-01T10:00:00Z",
        } });
        let deal = json!({ "id": "7", "properties": {
            "dealname": "Anvils", "amount": "1200.50", "dealstage": "qualifiedtobuy", "closedate": "2026-12-01T00:00:00Z",
            "pipeline": "default",
        }, "associations": { "companies": { "results": [{ "id": "9", "type": "deal_to_company" }] } } });
        for (object, record, title, text, mentions) in [
            (
                "contact",
                contact(),
                Some("Ana Diaz"),
                "Name: Ana Diaz\nEmail: ana@acme.example\nLifecycle stage: Customer",
                &["contact:51", "company:12", "company:9"][..],
            ),
            (
                "company",
                company,
                Some("Acme"),
                "Company: Acme\nDomain: acme.example\nIndustry: Retail\nEmployees: 250\nAnnual revenue: 1000000\n\
                 Description: Makes\neverything.",
                &["company:9"][..],
            ),
            (
                "deal",
                deal,
                Some("Anvils"),
                "Deal: Anvils\nAmount: 1200.50\nStage: Qualified to buy\nClose date: 2026-12-01T00:00:00Z\nPipeline: Sales pipeline",
                &["company:9"][..],
            ),
            (
                "contact",
                json!({ "id": "1", "properties": { "email": "b@x.example" } }),
                Some("b@x.example"),
                "Email: b@x.example",
                &["contact:1"][..],
            ),
            ("deal", json!({ "id": "1", "properties": {} }), None, "", &[][..]),
        ] {
            let item = item(raw(object, record).expect("a record"));
            assert_eq!((item.title.as_deref(), item.text.as_str()), (title, text));
            assert_eq!(item.mentions, mentions);
            assert_eq!(item.raw.document_type, format!("hubspot.{object}"));
        }
    }

    #[test]
    fn a_deleted_record_says_nothing_and_has_no_time_that_could_beat_its_return() {
        for (object, mentions) in [("contact", vec!["contact:5"]), ("company", vec!["company:5"]), ("deal", vec![])] {
            let raw = raw(object, json!({ "id": "5", "archived": true, "archivedAt": "2026-11-01T10:00:00Z" }));
            let item = item(raw.expect("a tombstone"));
            assert!(item.raw.is_deleted && item.raw.payload.is_null() && item.raw.source_updated_at.is_none());
            assert_eq!(item.mentions, mentions);
        }
    }

    #[test]
    fn what_is_no_record_stays_behind_with_a_reason() {
        for (record, id, reason) in [
            (json!({ "properties": {} }), "contact:?", "it has no id that is one"),
            (json!({ "id": "5/../6", "properties": {} }), "contact:?", "it has no id that is one"),
            (json!({ "id": "5" }), "contact:5", "it has no properties"),
            (json!({ "id": "5", "properties": [] }), "contact:5", "its properties is not an object"),
            (json!({ "id": "5", "properties": { "email": {} } }), "contact:5", "its email is not a text"),
            (
                json!({ "id": "5", "properties": {}, "associations": { "companies": { "results": "9" } } }),
                "contact:5",
                "its associations are of another form",
            ),
            (json!("5"), "contact:?", "it is not an object"),
            (json!(null), "contact:?", "it is not an object"),
        ] {
            let failed = raw("contact", record.clone()).expect_err("no record");
            assert!(failed.external_id.starts_with(id), "{failed:?}");
            assert_eq!((failed.reason.as_str(), failed.payload), (reason, record));
        }
        assert!(raw("ticket", contact()).is_err());
    }
}
