//! What a client's records say of it. Nothing is added up as records come: the facts are made of all of them each time, so a deal before
//! its company, an invoice twice or a deleted deal leave no trace but the right one.

use std::cmp::Reverse;

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use serde_json::{Map, Number, Value, json};

use super::record::{put, said, time};
use super::{ClientFacts, Told};

const INVOICES_SHOWN: usize = 5;

/// Types whose records are rolled up into the clients they mention.
pub const ROLLED_UP: &[&str] = &["hubspot.deal", "quickbooks.invoice"];

/// Whether records of this type are clients.
pub fn is_client(document_type: &str) -> bool {
    matches!(document_type, "hubspot.contact" | "hubspot.company" | "quickbooks.customer")
}

/// The facts of the client that `own` is; none when it is no client, or has nothing to be called by. `related`: every record of the same
/// source that is not deleted and mentions `own`, or that `own` mentions.
pub fn client_facts(own: Told<'_>, related: &[Told<'_>]) -> Option<ClientFacts> {
    let mut related = related.to_vec();
    related.sort_by(|a, b| a.external_id.cmp(b.external_id));
    related.dedup_by(|a, b| a.external_id == b.external_id);
    match own.document_type {
        "hubspot.contact" => contact(own, &related),
        "hubspot.company" => company(own, &related),
        "quickbooks.customer" => customer(own, &related),
        _ => None,
    }
}

fn contact(own: Told<'_>, related: &[Told<'_>]) -> Option<ClientFacts> {
    let property = |name: &str| property(&own, name);
    let ids = own.payload.pointer("/associations/companies").and_then(Value::as_array);
    let ids: Vec<String> =
        ids.into_iter().flatten().filter_map(|id| Some(format!("company:{}", id.as_str()?))).collect();
    // In the contact's own order, which is always the same.
    let companies = ids.iter().filter_map(|id| related.iter().find(|told| told.external_id == id));
    let of_company =
        |name: &str| companies.clone().find_map(|company| Some((self::property(company, name)?, company.external_id)));
    let full_name = [property("firstname"), property("lastname")].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let client_name = property("company")
        .or_else(|| of_company("name").map(|(name, _)| name))
        .or_else(|| Some(full_name).filter(|name| !name.is_empty()))
        .or_else(|| property("email"))?;

    let mut facts = Facts::new(client_name);
    if let Some((industry, from)) = of_company("industry") {
        facts.industry(industry, from);
    }
    facts.key("contact_role", property("jobtitle"), &[own.external_id]);
    facts.key("lifecycle", property("lifecyclestage"), &[own.external_id]);
    Some(facts.0)
}

fn company(own: Told<'_>, related: &[Told<'_>]) -> Option<ClientFacts> {
    let property = |name: &str| property(&own, name);
    let mut facts = Facts::new(property("name").or_else(|| property("domain"))?);
    if let Some(industry) = property("industry") {
        facts.industry(industry, own.external_id);
    }
    facts.summary(property("description"), own.external_id);
    facts.key("employees", property("numberofemployees"), &[own.external_id]);
    facts.key("revenue", property("annualrevenue"), &[own.external_id]);
    facts.key("domain", property("domain"), &[own.external_id]);

    let is_open = |told: &&Told<'_>| told.document_type == "hubspot.deal" && !is_closed(told);
    let mut open: Vec<&Told<'_>> = related.iter().filter(is_open).collect();
    open.sort_by_key(|deal| {
        let closes = self::property(deal, "closedate").and_then(|text| moment(&text));
        (closes.is_none(), closes, in_order(deal.external_id))
    });
    let ids: Vec<&str> = open.iter().map(|deal| deal.external_id).collect();
    let deals: Vec<Value> = open.iter().map(|deal| open_deal(deal)).collect();
    facts.key("open_deals", Some(deals).filter(|deals| !deals.is_empty()), &ids);
    if let Some(latest) = open.iter().max_by_key(|deal| (deal.source_updated_at, in_order(deal.external_id))) {
        facts.key("deal_stage", self::property(latest, "dealstage"), &[latest.external_id]);
        facts.key("deal_amount", self::property(latest, "amount"), &[latest.external_id]);
    }
    Some(facts.0)
}

/// Only the stages of HubSpot's own pipeline have names that say so.
fn is_closed(deal: &Told<'_>) -> bool {
    match property(deal, "hs_is_closed").as_deref() {
        Some("true") => true,
        Some("false") => false,
        _ => property(deal, "dealstage").is_some_and(|stage| stage.to_lowercase().starts_with("closed")),
    }
}

fn open_deal(deal: &Told<'_>) -> Value {
    let mut fields = Map::new();
    put(&mut fields, "id", said(deal.payload, "/id"));
    put(&mut fields, "name", property(deal, "dealname"));
    put(&mut fields, "amount", property(deal, "amount"));
    put(&mut fields, "stage", property(deal, "dealstage"));
    put(&mut fields, "close_date", property(deal, "closedate"));
    put(&mut fields, "pipeline", property(deal, "pipeline"));
    Value::Object(fields)
}

fn customer(own: Told<'_>, related: &[Told<'_>]) -> Option<ClientFacts> {
    let name = said(own.payload, "/CompanyName").or_else(|| said(own.payload, "/DisplayName"))?;
    let mut facts = Facts::new(name);
    facts.key("ar_balance", own.payload.get("Balance").cloned(), &[own.external_id]);
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

struct Facts(ClientFacts);

impl Facts {
    fn new(client_name: String) -> Self {
        Self(ClientFacts { client_name, industry: None, summary: None, key_facts: Map::new(), evidence: Vec::new() })
    }

    fn industry(&mut self, industry: String, from: &str) {
        self.0.industry = Some(industry);
        self.rests_on("industry", &[from]);
    }

    fn summary(&mut self, summary: Option<String>, from: &str) {
        let Some(summary) = summary else { return };
        self.0.summary = Some(summary);
        self.rests_on("summary", &[from]);
    }

    fn key(&mut self, name: &str, value: Option<impl Into<Value>>, from: &[&str]) {
        let Some(value) = value.map(Into::into).filter(|value| !value.is_null()) else { return };
        self.0.key_facts.insert(name.to_owned(), value);
        self.rests_on(name, from);
    }

    fn rests_on(&mut self, name: &str, from: &[&str]) {
        self.0.evidence.push((name.to_owned(), from.iter().map(|id| (*id).to_owned()).collect()));
    }
}

fn property(told: &Told<'_>, name: &str) -> Option<String> {
    said(told.payload, &format!("/properties/{name}"))
}

/// A time, or a day.
fn moment(text: &str) -> Option<DateTime<Utc>> {
    let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    day.map(|day| day.and_time(NaiveTime::MIN).and_utc()).or_else(|| time(Some(&json!(text))))
}

/// Numbers as numbers: `deal:9` before `deal:10`.
fn in_order(external_id: &str) -> (usize, &str) {
    (external_id.len(), external_id)
}

/// Exact, since a sum of floats drifts. Of an amount that no invoice has, nothing.
fn billionths(amount: &Value) -> Option<i128> {
    const PLACES: usize = 9;
    let text = amount.as_number()?.to_string();
    let (sign, digits) = text.strip_prefix('-').map_or((1, text.as_str()), |digits| (-1, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_plain = |part: &str| part.len() <= 20 && part.bytes().all(|b| b.is_ascii_digit());
    if !is_plain(whole) || !is_plain(fraction) {
        return None;
    }
    let fraction: String = fraction.chars().chain(std::iter::repeat('0')).take(PLACES).collect();
    Some(sign * format!("{whole}{fraction}").parse::<i128>().ok()?)
}

fn decimal(billionths: i128) -> Option<Value> {
    const ONE: u128 = 1_000_000_000;
    let (sign, size) = (if billionths < 0 { "-" } else { "" }, billionths.unsigned_abs());
    let text = format!("{sign}{}.{:09}", size / ONE, size % ONE);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.parse::<Number>().ok().map(Value::Number)
}

#[cfg(test)]
mod tests {
    use super::super::{RawItem, hubspot, quickbooks};
    use super::*;

    fn hub(object: &str, id: u32, properties: Value, companies: &[&str]) -> RawItem {
        let record =
            json!({ "id": id.to_string(), "properties": properties, "associations": { "companies": companies } });
        hubspot::map::raw(object, record).expect("a record")
    }

    fn deal(id: u32, amount: &str, stage: &str, closes: Option<&str>, changed: &str) -> RawItem {
        let properties = json!({ "dealname": format!("Deal {id}"), "amount": amount, "dealstage": stage,
            "closedate": closes, "pipeline": "default", "hs_lastmodifieddate": changed });
        hub("deal", id, properties, &["9"])
    }

    fn invoice(id: u32, total: Value, date: &str) -> RawItem {
        let record = json!({ "Id": id.to_string(), "DocNumber": format!("10{id}"), "TotalAmt": total, "Balance": 0,
            "TxnDate": date, "DueDate": "2026-12-31", "CustomerRef": { "value": "58" } });
        quickbooks::map::raw("invoice", record).expect("a record")
    }

    fn told(raw: &RawItem) -> Told<'_> {
        Told {
            external_id: &raw.external_id,
            document_type: raw.document_type,
            payload: &raw.payload,
            source_updated_at: raw.source_updated_at,
        }
    }

    /// The facts, which must be the same whatever the order, and whether or not a record is told twice.
    fn facts(own: &RawItem, related: &[RawItem]) -> Option<ClientFacts> {
        let mut shuffled: Vec<Told<'_>> = related.iter().map(told).collect();
        let facts = client_facts(told(own), &shuffled);
        for turn in 0..12_usize {
            let length = shuffled.len();
            if length > 1 {
                shuffled.rotate_left(1);
                shuffled.swap(turn % length, (turn * 7 + 3) % length);
            }
            assert_eq!(client_facts(told(own), &shuffled), facts, "in another order");
        }
        let twice: Vec<Told<'_>> = shuffled.iter().chain(&shuffled).chain([&told(own)]).copied().collect();
        assert_eq!(client_facts(told(own), &twice), facts, "told twice");
        facts
    }

    fn evidence<'a>(facts: &'a ClientFacts, name: &str) -> Vec<&'a str> {
        let found = facts.evidence.iter().find(|(fact, _)| fact == name);
        found.map(|(_, ids)| ids.iter().map(String::as_str).collect()).unwrap_or_default()
    }

    #[test]
    fn contacts_companies_and_customers_are_clients() {
        for (document_type, expected) in [
            ("hubspot.contact", true),
            ("hubspot.company", true),
            ("hubspot.deal", false),
            ("quickbooks.customer", true),
            ("quickbooks.invoice", false),
            ("google_drive.doc", false),
        ] {
            assert_eq!(is_client(document_type), expected, "{document_type}");
        }
        let deal = deal(1, "5", "new", None, "2026-11-01T00:00:00Z");
        assert_eq!(client_facts(told(&deal), &[]), None);
    }

    #[test]
    fn a_contact_is_called_by_its_company_else_by_itself() {
        let acme = hub("company", 9, json!({ "name": "Acme Ltd", "industry": "RETAIL" }), &[]);
        let bare = hub("company", 4, json!({ "domain": "bare.example" }), &[]);
        let named = json!({ "firstname": "Ana", "lastname": "Diaz", "email": "a@x.example" });
        for (properties, companies, related, name, industry) in [
            (json!({ "company": "Acme" }), &["9"][..], vec![acme.clone()], Some("Acme"), Some("RETAIL")),
            (named.clone(), &["9"], vec![acme.clone()], Some("Acme Ltd"), Some("RETAIL")),
            (named.clone(), &["4", "9"], vec![acme.clone(), bare.clone()], Some("Acme Ltd"), Some("RETAIL")),
            (named.clone(), &["4"], vec![bare], Some("Ana Diaz"), None),
            (named, &["9"], vec![], Some("Ana Diaz"), None),
            (json!({ "email": "a@x.example" }), &[], vec![], Some("a@x.example"), None),
            (json!({ "lastname": "Diaz" }), &[], vec![acme], Some("Diaz"), None),
            (json!({}), &[], vec![], None, None),
        ] {
            let own = hub("contact", 51, properties, companies);
            let facts = facts(&own, &related);
            assert_eq!(facts.as_ref().map(|facts| facts.client_name.as_str()), name);
            assert_eq!(facts.and_then(|facts| facts.industry).as_deref(), industry, "of {name:?}");
        }
        let own = hub("contact", 51, json!({ "company": "Acme", "jobtitle": "CTO", "lifecyclestage": "lead" }), &["9"]);
        let acme = hub("company", 9, json!({ "industry": "RETAIL" }), &[]);
        let facts = facts(&own, &[acme]).expect("facts");
        assert_eq!(Value::Object(facts.key_facts.clone()), json!({ "contact_role": "CTO", "lifecycle": "lead" }));
        assert_eq!(evidence(&facts, "industry"), ["company:9"]);
        assert_eq!(evidence(&facts, "contact_role"), ["contact:51"]);
    }

    #[test]
    fn a_company_has_its_open_deals_by_close_date() {
        let own = hub(
            "company",
            9,
            json!({ "name": "Acme", "domain": "acme.example", "industry": "RETAIL", "numberofemployees": "250",
                "annualrevenue": "1000000", "description": "Anvils." }),
            &[],
        );
        let related = [
            deal(7, "100", "closedwon", Some("2026-01-01T00:00:00Z"), "2026-11-09T00:00:00Z"),
            deal(8, "200", "closedlost", Some("2026-01-01T00:00:00Z"), "2026-11-09T00:00:00Z"),
            deal(6, "250", "Closed after trial", None, "2026-11-09T00:00:00Z"),
            deal(10, "300", "new", Some("2026-12-01T00:00:00Z"), "2026-11-01T00:00:00Z"),
            deal(9, "400", "new", Some("2026-12-01T00:00:00Z"), "2026-11-03T00:00:00Z"),
            deal(11, "500.50", "qualified", None, "2026-11-03T00:00:00Z"),
            deal(12, "600", "new", Some("2026-11-20"), "2026-11-02T00:00:00Z"),
            hub("contact", 51, json!({ "email": "a@acme.example" }), &["9"]),
        ];
        let facts = facts(&own, &related).expect("facts");
        assert_eq!((facts.client_name.as_str(), facts.industry.as_deref()), ("Acme", Some("RETAIL")));
        assert_eq!(facts.summary.as_deref(), Some("Anvils."));
        let key = |name: &str| facts.key_facts.get(name).cloned().unwrap_or_default();
        assert_eq!(
            (key("employees"), key("revenue"), key("domain")),
            (json!("250"), json!("1000000"), json!("acme.example"))
        );
        let ids: Vec<Value> =
            key("open_deals").as_array().expect("deals").iter().map(|deal| deal["id"].clone()).collect();
        assert_eq!(ids, ["12", "9", "10", "11"]);
        assert_eq!(
            key("open_deals")[1],
            json!({ "id": "9", "name": "Deal 9", "amount": "400", "stage": "new", "close_date": "2026-12-01T00:00:00Z",
                "pipeline": "default" })
        );
        // Changed at the same moment: the later id.
        assert_eq!((key("deal_stage"), key("deal_amount")), (json!("qualified"), json!("500.50")));
        assert_eq!(evidence(&facts, "open_deals"), ["deal:12", "deal:9", "deal:10", "deal:11"]);
        assert_eq!(evidence(&facts, "deal_stage"), ["deal:11"]);
        assert_eq!(evidence(&facts, "summary"), ["company:9"]);
    }

    #[test]
    fn a_deal_of_any_pipeline_is_closed_when_hubspot_says_so() {
        let own = hub("company", 9, json!({ "name": "Acme" }), &[]);
        for (stage, said, is_open) in [
            ("189340026", Some("true"), false),
            ("189340021", Some("false"), true),
            ("closed for the winter", Some("false"), true),
            ("closedwon", None, false),
            ("closedwon", Some(""), false),
            ("contractsent", None, true),
        ] {
            let deal = hub("deal", 7, json!({ "dealstage": stage, "hs_is_closed": said }), &["9"]);
            let facts = facts(&own, &[deal]).expect("facts");
            assert_eq!(facts.key_facts.contains_key("open_deals"), is_open, "{stage} {said:?}");
        }
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let own = hub("company", 9, json!({ "domain": "acme.example" }), &[]);
        let facts = facts(&own, &[deal(7, "1", "closedwon", None, "2026-11-01T00:00:00Z")]).expect("facts");
        assert_eq!(facts.client_name, "acme.example");
        assert_eq!(Value::Object(facts.key_facts), json!({ "domain": "acme.example" }));
        assert_eq!((facts.industry, facts.summary, facts.evidence.len()), (None, None, 1));
        assert_eq!(super::client_facts(told(&hub("company", 1, json!({}), &[])), &[]), None);
    }

    #[test]
    fn a_customer_has_its_last_invoices_and_the_sum_of_all() {
        let record = json!({ "Id": "58", "DisplayName": "Ana", "Balance": 12.5, "BillAddr": { "Line1": "1 High St" } });
        let own = quickbooks::map::raw("customer", record).expect("a record");
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
    fn sums_do_not_drift() {
        let sum = |amounts: &[f64]| {
            let parts = amounts.iter().map(|amount| billionths(&json!(amount)).expect("an amount"));
            decimal(parts.sum()).expect("a number").to_string()
        };
        assert_eq!(sum(&[0.1; 10]), "1");
        assert_eq!(sum(&[0.1, 0.2]), "0.3");
        assert_eq!(sum(&[19.99; 1_000]), "19990");
        assert_eq!(sum(&[-0.05]), "-0.05");
        assert_eq!(sum(&[0.0]), "0");
        assert_eq!(sum(&[123_456_789.01, 0.99]), "123456790");
        assert_eq!(billionths(&json!(1e300)), None);
        assert_eq!(billionths(&json!("5")), None);
    }
}
