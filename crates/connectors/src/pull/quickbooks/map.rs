//! Maps QuickBooks' customers and invoices to records of ours.

use serde_json::{Map, Value};

use crate::pull::record::{self, Fields};
use crate::pull::{Failed, Item, RawItem};

/// One kind of record.
pub(super) struct Object {
    /// External ids begin with it.
    pub name: &'static str,
    /// The spelling in queries.
    pub entity: &'static str,
    pub document_type: &'static str,
}

pub(super) static OBJECTS: [Object; 2] = [
    Object { name: "customer", entity: "Customer", document_type: "quickbooks.customer" },
    Object { name: "invoice", entity: "Invoice", document_type: "quickbooks.invoice" },
];

/// The fields of an address, in the order of a letter.
pub(super) const ADDRESS: [&str; 9] =
    ["Line1", "Line2", "Line3", "Line4", "Line5", "City", "CountrySubDivisionCode", "PostalCode", "Country"];

/// Brings one record of QuickBooks' JSON into its one form. `object` is `customer` or `invoice`.
pub(super) fn raw(object: &str, record: Value) -> Result<RawItem, Failed> {
    read(object, &record).map_err(|reason| record::failed(object, record.get("Id"), reason, record.clone()))
}

fn read(object: &str, record: &Value) -> Result<RawItem, String> {
    let Some(object) = OBJECTS.iter().find(|known| known.name == object) else {
        return Err("it is of a kind that is not read".into());
    };
    let fields = record::object(record)?;
    let id = record::id(fields, "Id")?;
    let external_id = format!("{}:{id}", object.name);
    let times = record::part(fields, "MetaData")?;
    let created = record::time(times.and_then(|times| times.get("CreateTime")));
    let updated = record::time(times.and_then(|times| times.get("LastUpdatedTime")));
    if fields.get("status").and_then(Value::as_str) == Some("Deleted") {
        return Ok(record::tombstone(external_id, object.document_type, updated));
    }

    let mut payload = Map::new();
    record::put(&mut payload, "Id", Some(id));
    let (texts, numbers): (&[&str], &[&str]) = match object.name {
        "customer" => (&["DisplayName", "CompanyName"], &["Balance"]),
        _ => (&["DueDate", "TxnDate", "DocNumber"], &["TotalAmt", "Balance"]),
    };
    for key in texts {
        record::put(&mut payload, key, record::text(fields, key)?);
    }
    for key in numbers {
        record::put(&mut payload, key, record::number(fields, key)?);
    }
    if object.name == "customer" {
        record::put_part(&mut payload, "PrimaryEmailAddr", texts_of(fields, "PrimaryEmailAddr", &["Address"])?);
        record::put_part(&mut payload, "BillAddr", texts_of(fields, "BillAddr", &ADDRESS)?);
        record::put_part(&mut payload, "CurrencyRef", texts_of(fields, "CurrencyRef", &["value"])?);
    } else {
        record::put_part(&mut payload, "CustomerRef", texts_of(fields, "CustomerRef", &["value", "name"])?);
    }
    let mut kept = Map::new();
    record::put(&mut kept, "CreateTime", created.map(record::spelled));
    record::put(&mut kept, "LastUpdatedTime", updated.map(record::spelled));
    record::put_part(&mut payload, "MetaData", kept);
    Ok(RawItem {
        external_id,
        document_type: object.document_type,
        payload: Value::Object(payload),
        source_created_at: created,
        source_updated_at: updated,
        is_deleted: false,
    })
}

fn texts_of(fields: &Fields, key: &str, keys: &[&str]) -> Result<Fields, String> {
    let mut kept = Map::new();
    if let Some(part) = record::part(fields, key)? {
        for key in keys {
            record::put(&mut kept, key, record::text(part, key)?);
        }
    }
    Ok(kept)
}

/// Makes of a record what memory takes.
pub(super) fn item(raw: RawItem) -> Item {
    let itself = raw.external_id.clone();
    let is_client = raw.document_type == "quickbooks.customer";
    if raw.is_deleted {
        return record::buried(raw, if is_client { vec![itself] } else { Vec::new() });
    }
    let said = |pointer: &str| record::said(&raw.payload, pointer);
    if is_client {
        let text = record::lines(&[
            ("Customer", said("/DisplayName")),
            ("Company", said("/CompanyName")),
            ("Email", said("/PrimaryEmailAddr/Address")),
            ("Balance", said("/Balance")),
            ("Billing address", address(&raw.payload)),
        ]);
        let title = said("/CompanyName").or_else(|| said("/DisplayName"));
        return Item { raw, title, text, mentions: vec![itself], letter: None, file: None };
    }
    let number = said("/DocNumber");
    let customer = said("/CustomerRef/value").filter(|id| record::is_plain_id(id));
    let text = record::lines(&[
        ("Invoice", number.clone()),
        ("Customer", said("/CustomerRef/name")),
        ("Total", said("/TotalAmt")),
        ("Balance", said("/Balance")),
        ("Date", said("/TxnDate")),
        ("Due date", said("/DueDate")),
    ]);
    let title = number.map(|number| format!("Invoice {number}"));
    Item {
        raw,
        title,
        text,
        mentions: customer.map(|id| format!("customer:{id}")).into_iter().collect(),
        letter: None,
        file: None,
    }
}

/// The billing address on one line.
fn address(payload: &Value) -> Option<String> {
    let parts = ADDRESS.iter().filter_map(|key| record::said(payload, &format!("/BillAddr/{key}")));
    Some(parts.collect::<Vec<_>>().join(", ")).filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn customer() -> Value {
        json!({
            "Id": "58", "SyncToken": "3", "domain": "QBO", "sparse": false, "DisplayName": "Ana", "CompanyName": "Acme",
            "Active": true, "PrimaryEmailAddr": { "Address": "a@acme.example" }, "PrimaryPhone": { "FreeFormNumber": "555" },
            "Balance": 100.0, "BillAddr": { "Id": "2", "Line1": "1 High St", "Line2": "", "City": "Bath", "Lat": "51.3" },
            "MetaData": { "CreateTime": "2026-10-01T08:00:00-07:00", "LastUpdatedTime": "2026-11-02T09:00:00-07:00" },
        })
    }

    fn invoice() -> Value {
        json!({
            "Id": "9", "DocNumber": "1037", "CustomerRef": { "value": "58", "name": "Ana" }, "TotalAmt": 362.07,
            "Balance": 0, "DueDate": "2026-12-01", "TxnDate": "2026-11-01", "Line": [{ "Amount": 362.07 }],
            "MetaData": { "CreateTime": "2026-11-01T08:00:00-07:00", "LastUpdatedTime": "2026-11-01T08:00:00-07:00" },
        })
    }

    #[test]
    fn a_record_has_one_form_whichever_way_it_came() {
        let listed = raw("customer", customer()).expect("a record");
        assert_eq!(
            listed.payload,
            json!({
                "Id": "58", "DisplayName": "Ana", "CompanyName": "Acme", "PrimaryEmailAddr": { "Address": "a@acme.example" },
                "Balance": 100, "BillAddr": { "Line1": "1 High St", "City": "Bath" },
                "MetaData": { "CreateTime": "2026-10-01T15:00:00.000Z", "LastUpdatedTime": "2026-11-02T16:00:00.000Z" },
            })
        );
        assert_eq!(listed.source_updated_at.map(record::spelled).as_deref(), Some("2026-11-02T16:00:00.000Z"));
        let mut told = customer();
        told["Balance"] = json!(100);
        told["PrimaryPhone"] = json!(null);
        for other in [told, listed.payload.clone()] {
            assert_eq!(raw("customer", other).expect("a record"), listed);
        }
    }

    #[test]
    fn every_mapped_field_is_in_the_text() {
        for (object, record, title, text, mentions) in [
            (
                "customer",
                customer(),
                Some("Acme"),
                "Customer: Ana\nCompany: Acme\nEmail: a@acme.example\nBalance: 100\nBilling address: 1 High St, Bath",
                &["customer:58"][..],
            ),
            (
                "invoice",
                invoice(),
                Some("Invoice 1037"),
                "Invoice: 1037\nCustomer: Ana\nTotal: 362.07\nBalance: 0\nDate: 2026-11-01\nDue date: 2026-12-01",
                &["customer:58"][..],
            ),
            ("invoice", json!({ "Id": "1" }), None, "", &[][..]),
        ] {
            let item = item(raw(object, record).expect("a record"));
            assert_eq!((item.title.as_deref(), item.text.as_str()), (title, text));
            assert_eq!(item.mentions, mentions);
            assert_eq!(item.raw.document_type, format!("quickbooks.{object}"));
        }
    }

    #[test]
    fn a_deleted_record_is_known_by_its_status() {
        let gone = json!({ "domain": "QBO", "status": "Deleted", "Id": "9",
            "MetaData": { "LastUpdatedTime": "2026-11-02T09:00:00-07:00" } });
        let item = item(raw("invoice", gone).expect("a tombstone"));
        assert!(item.raw.is_deleted && item.raw.payload.is_null() && item.mentions.is_empty());
        assert_eq!(item.raw.external_id, "invoice:9");
        assert!(item.raw.source_updated_at.is_some());
    }

    #[test]
    fn what_is_no_record_stays_behind_with_a_reason() {
        for (key, value, id, reason) in [
            ("Id", json!(null), "invoice:?", "it has no Id that is one"),
            ("TotalAmt", json!("362.07"), "invoice:9", "its TotalAmt is not a number"),
            ("CustomerRef", json!("58"), "invoice:9", "its CustomerRef is not an object"),
            ("DueDate", json!(["2026"]), "invoice:9", "its DueDate is not a text"),
            ("MetaData", json!(5), "invoice:9", "its MetaData is not an object"),
        ] {
            let mut record = invoice();
            record[key] = value;
            let failed = raw("invoice", record).expect_err("no record");
            assert!(failed.external_id.starts_with(id), "{failed:?}");
            assert_eq!(failed.reason, reason);
        }
    }
}
