//! Facts that QuickBooks' customers and invoices tell of clients.

use std::cmp::Reverse;

use domain::sums::{billionths, decimal};
use serde_json::{Map, Value};

use crate::pull::clients::{ClientFacts, Facts, Told, in_order, moment};
use crate::pull::record::{put, said};

const INVOICES_SHOWN: usize = 5;
/// Of those that are not paid.
const MOST_OPEN: usize = 20;

pub(super) fn customer(own: Told<'_>, related: &[Told<'_>]) -> Option<ClientFacts> {
    let name = said(own.payload, "/CompanyName").or_else(|| said(own.payload, "/DisplayName"))?;
    let mut facts = Facts::new(name);
    facts.name(said(own.payload, "/DisplayName"));
    facts.email(said(own.payload, "/PrimaryEmailAddr/Address"));
    facts.key("ar_balance", own.payload.get("Balance").cloned(), &[own.external_id]);
    facts.key("currency", said(own.payload, "/CurrencyRef/value"), &[own.external_id]);
    facts.key("billing_address", own.payload.get("BillAddr").cloned(), &[own.external_id]);

    let mut invoices: Vec<&Told<'_>> =
        related.iter().filter(|told| told.document_type == "quickbooks.invoice").collect();
    invoices.sort_by_key(|invoice| {
        let dated = said(invoice.payload, "/TxnDate").and_then(|text| moment(&text));
        Reverse((dated, in_order(invoice.external_id)))
    });
    let shown: Vec<&Told<'_>> = invoices.iter().copied().take(INVOICES_SHOWN).collect();
    let ids: Vec<&str> = shown.iter().map(|invoice| invoice.external_id).collect();
    let history: Vec<Value> = shown.iter().map(|invoice| past_invoice(invoice)).collect();
    facts.key("invoice_history", Some(history).filter(|history| !history.is_empty()), &ids);

    let is_open = |invoice: &&Told<'_>| {
        let open = invoice.payload.get("Balance").and_then(billionths);
        open.is_some_and(|open| open > 0)
    };
    let mut open: Vec<&Told<'_>> = invoices.iter().copied().filter(is_open).collect();
    open.sort_by_key(|invoice| {
        let due = said(invoice.payload, "/DueDate").and_then(|text| moment(&text));
        (due.is_none(), due, in_order(invoice.external_id))
    });
    open.truncate(MOST_OPEN);
    let ids: Vec<&str> = open.iter().map(|invoice| invoice.external_id).collect();
    let unpaid: Vec<Value> = open.iter().map(|invoice| past_invoice(invoice)).collect();
    facts.key("open_invoices", Some(unpaid).filter(|unpaid| !unpaid.is_empty()), &ids);

    let totals = invoices.iter().filter_map(|invoice| Some((billionths(invoice.payload.get("TotalAmt")?)?, *invoice)));
    let (totals, from): (Vec<i128>, Vec<&Told<'_>>) = totals.unzip();
    let ids: Vec<&str> = from.iter().map(|invoice| invoice.external_id).collect();
    let sum = totals.into_iter().try_fold(0_i128, i128::checked_add).and_then(decimal);
    facts.key("total_lifetime_value", sum.filter(|_| !ids.is_empty()), &ids);
    Some(facts.0)
}

fn past_invoice(invoice: &Told<'_>) -> Value {
    let mut fields = Map::new();
    let told = [
        ("doc_number", "DocNumber"),
        ("total", "TotalAmt"),
        ("balance", "Balance"),
        ("txn_date", "TxnDate"),
        ("due_date", "DueDate"),
    ];
    for (name, key) in told {
        put(&mut fields, name, invoice.payload.get(key).cloned());
    }
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::map;
    use super::*;
    use crate::pull::RawItem;
    use crate::pull::clients::tests::{evidence, facts};

    fn invoice(id: u32, total: Value, date: &str) -> RawItem {
        let record = json!({ "Id": id.to_string(), "DocNumber": format!("10{id}"), "TotalAmt": total, "Balance": 0,
            "TxnDate": date, "DueDate": "2026-12-31", "CustomerRef": { "value": "58" } });
        map::raw("invoice", record).expect("a record")
    }

    #[test]
    fn a_customer_has_its_last_invoices_and_the_sum_of_all() {
        let record = json!({ "Id": "58", "DisplayName": "Ana", "Balance": 12.5, "BillAddr": { "Line1": "1 High St" } });
        let own = map::raw("customer", record).expect("a record");
        let mut related: Vec<RawItem> = (1..=6).map(|id| invoice(id, json!(0.1), &format!("2026-0{id}-01"))).collect();
        related.push(invoice(20, json!(100), "2026-06-01"));
        related.push(invoice(21, json!(-0.7), "2026-05-15"));
        related.push(invoice(22, json!(1e300), "2020-01-01"));
        let facts = facts(&own, &related).expect("facts");
        assert_eq!(facts.client_name, "Ana");
        assert_eq!(facts.key_facts["ar_balance"], json!(12.5));
        assert_eq!(facts.key_facts["billing_address"], json!({ "Line1": "1 High St" }));
        assert_eq!(facts.key_facts["total_lifetime_value"].to_string(), "99.9");
        let history = facts.key_facts["invoice_history"].as_array().expect("a list");
        let numbers: Vec<&Value> = history.iter().map(|invoice| &invoice["doc_number"]).collect();
        assert_eq!(numbers, ["1020", "106", "1021", "105", "104"]);
        assert_eq!(
            history[0],
            json!({ "doc_number": "1020", "total": 100, "balance": 0, "txn_date": "2026-06-01", "due_date": "2026-12-31" })
        );
        assert_eq!(evidence(&facts, "total_lifetime_value").len(), 8);
        assert_eq!(evidence(&facts, "invoice_history")[0], "invoice:20");
    }

    #[test]
    fn what_is_not_paid_comes_by_the_day_it_is_due() {
        let record = json!({ "Id": "58", "DisplayName": "Ana", "Balance": 70, "CurrencyRef": { "value": "EUR", "name": "Euro" } });
        let own = map::raw("customer", record).expect("a record");
        let unpaid = |id: u32, balance: Value, due: Value| {
            let record = json!({ "Id": id.to_string(), "DocNumber": format!("10{id}"), "TotalAmt": 100, "Balance": balance,
                "DueDate": due, "CustomerRef": { "value": "58" } });
            map::raw("invoice", record).expect("a record")
        };
        let related = [
            unpaid(1, json!(0), json!("2026-01-01")),
            unpaid(2, json!(50), json!("2026-12-01")),
            unpaid(3, json!(-5), json!("2026-01-02")),
            unpaid(4, json!(15), Value::Null),
            unpaid(5, json!(5.5), json!("2026-03-03")),
        ];
        let facts = facts(&own, &related).expect("facts");
        let open = facts.key_facts["open_invoices"].as_array().expect("a list");
        let numbers: Vec<&Value> = open.iter().map(|invoice| &invoice["doc_number"]).collect();
        assert_eq!(numbers, ["105", "102", "104"]);
        assert_eq!(evidence(&facts, "open_invoices"), ["invoice:5", "invoice:2", "invoice:4"]);
        assert_eq!(facts.key_facts["currency"], "EUR");
        assert!(!self::facts(&own, &related[..1]).expect("facts").key_facts.contains_key("open_invoices"));
    }
}
