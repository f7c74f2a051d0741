use chrono::TimeDelta;
use serde_json::{Value, json};

use super::{Browser, texts};
use crate::{Fakes, Manner, QUICKBOOKS, RetryAfter};

const COMPANY: &str = "/quickbooks/v3/company/9130357849201635";

async fn start() -> Browser {
    Browser::of(QUICKBOOKS, Fakes::with_fixtures().await).await
}

impl Browser {
    async fn query(&self, statement: &str) -> (u16, Value) {
        let request = self.get_with(&format!("{COMPANY}/query"), &[("query", statement), ("minorversion", "75")]);
        super::json(request.send().await.expect("an answer")).await
    }

    async fn changes(&self, entities: &str, since: &str) -> (u16, Value) {
        let request = self.get_with(&format!("{COMPANY}/cdc"), &[("entities", entities), ("changedSince", since)]);
        super::json(request.send().await.expect("an answer")).await
    }
}

fn rows(body: &Value, entity: &str) -> Vec<Value> {
    body["QueryResponse"][entity].as_array().cloned().unwrap_or_default()
}

#[tokio::test]
async fn statements_page_to_the_end() {
    let browser = start().await;
    let mut ids = Vec::new();
    for start in [1, 6, 11] {
        let statement = format!("select * from Invoice orderby Id startposition {start} maxresults 5");
        let (status, body) = browser.query(&statement).await;
        assert_eq!(status, 200, "{body}");
        assert_eq!(body["QueryResponse"]["startPosition"], start);
        ids.extend(texts(&rows(&body, "Invoice"), "/Id"));
    }
    assert_eq!(ids, (101..=114).map(|id| id.to_string()).collect::<Vec<_>>());
    let (_, body) = browser.query("SELECT * FROM Invoice STARTPOSITION 15 MAXRESULTS 5").await;
    assert_eq!(body["QueryResponse"], json!({}));
    let (_, body) = browser.query("select count(*) from Invoice").await;
    assert_eq!(body["QueryResponse"], json!({"totalCount": 14}));
}

#[tokio::test]
async fn statements_choose_and_order() {
    let browser = start().await;
    let found = async |statement: &str| texts(&rows(&browser.query(statement).await.1, "Customer"), "/Id");
    assert_eq!(found("select * from Customer").await, ["1", "2", "3", "4", "5"]);
    assert_eq!(found("select * from Customer where Active IN (true,false) orderby Id desc").await[0], "6");
    assert_eq!(found("select * from Customer where Id in ('2','4')").await, ["2", "4"]);
    assert_eq!(found(r"select * from Customer where DisplayName = 'O\'Dell'").await, [""; 0]);
    let since = "select * from Customer where Metadata.LastUpdatedTime >= '2026-11-02T00:00:00Z' and Balance > '1000' \
                 orderby MetaData.LastUpdatedTime asc";
    assert_eq!(found(since).await, ["3", "1"]);
    browser.fakes.quickbooks().patch("Customer", "2", json!({"Balance": 2000}));
    assert_eq!(found(since).await, ["3", "1", "2"]);
}

#[tokio::test]
async fn faults_have_their_codes_and_at_times_status_200() {
    let browser = start().await;
    let (status, body) = browser.query("select * from Customer where Id = '1' or Id = '2'").await;
    assert_eq!((status, &body["Fault"]["Error"][0]["code"]), (400, &json!("4000")));
    assert_eq!(browser.query("select * from Customer maxresults 1001").await.0, 400);
    browser.fakes.quickbooks().fault_with_200(true);
    let (status, body) = browser.get_json(&format!("{COMPANY}/invoice/999")).await;
    assert_eq!((status, &body["Fault"]["Error"][0]["code"]), (200, &json!("610")));
    browser.fakes.next(COMPANY, Manner::FaultWith200);
    let (status, body) = browser.get_json(&format!("{COMPANY}/invoice/101")).await;
    assert_eq!((status, body["Fault"].is_object()), (200, true));

    browser.fakes.next(COMPANY, Manner::RateLimited { retry_after: RetryAfter::Absent });
    let (status, body) = browser.query("select * from Customer").await;
    assert_eq!((status, &body["Fault"]["Error"][0]["code"]), (429, &json!("003001")));
    assert_eq!(browser.get_json("/quickbooks/v3/company/1/companyinfo/1").await.0, 403);
    browser.fakes.revoke(QUICKBOOKS);
    let (status, body) = browser.query("select * from Customer").await;
    assert_eq!((status, &body["fault"]["error"][0]["code"]), (401, &json!("3200")));
    assert_eq!(body["fault"]["type"], "AUTHENTICATION");
}

#[tokio::test]
async fn a_repeated_page_begins_at_the_first_row() {
    let browser = start().await;
    browser.fakes.next(COMPANY, Manner::RepeatToken);
    browser.fakes.next(COMPANY, Manner::LostToken);
    let next = "select * from Invoice startposition 11 maxresults 10";
    let (_, body) = browser.query(next).await;
    assert_eq!((&body["QueryResponse"]["startPosition"], rows(&body, "Invoice").len()), (&json!(1), 10));
    assert_eq!(browser.query("select * from Invoice").await.0, 200);
    assert_eq!(browser.query(next).await.0, 400);
    browser.fakes.next(COMPANY, Manner::ShortPage);
    assert_eq!(rows(&browser.query("select * from Invoice maxresults 9").await.1, "Invoice").len(), 3);
}

#[tokio::test]
async fn capture_tells_of_changes_and_deletions() {
    let browser = start().await;
    let books = browser.fakes.quickbooks();
    let (_, body) = browser.changes("Customer,Invoice", &browser.fakes.now().to_rfc3339()).await;
    assert_eq!(body["CDCResponse"][0]["QueryResponse"], json!([{}, {}]));
    let since = body["time"].as_str().expect("a time").to_owned();
    books.patch("Customer", "1", json!({"DisplayName": "Larkfield Grounds"}));
    books.delete("Invoice", "103");
    let new = books.put("Invoice", json!({"DocNumber": "1015", "TotalAmt": 10, "CustomerRef": {"value": "1"}}));
    let (status, body) = browser.changes("Customer,Invoice", &since).await;
    assert_eq!(status, 200, "{body}");
    let lists = &body["CDCResponse"][0]["QueryResponse"];
    assert_eq!(lists[0]["Customer"][0]["DisplayName"], "Larkfield Grounds");
    assert_eq!(lists[0]["Customer"][0]["SyncToken"], "1");
    assert_eq!(texts(lists[1]["Invoice"].as_array().expect("rows"), "/Id"), ["103", &new]);
    assert_eq!(lists[1]["Invoice"][0]["status"], "Deleted");
    assert_eq!((books.count("Invoice"), books.ids("Customer").len()), (14, 6));

    let long_ago = (browser.fakes.now() - TimeDelta::days(31)).to_rfc3339();
    assert_eq!(browser.changes("Customer", &long_ago).await.0, 400);
    let (_, info) = browser.get_json(&format!("{COMPANY}/companyinfo/9130357849201635")).await;
    assert_eq!(info["CompanyInfo"]["CompanyName"], "Harrow Ridge Equipment");
}

#[tokio::test]
async fn capture_is_cut_at_a_thousand_for_all_entities_together() {
    let browser = Browser::of(QUICKBOOKS, Fakes::start().await).await;
    let since = browser.fakes.now().to_rfc3339();
    let books = browser.fakes.quickbooks();
    for number in 0..600 {
        books.put("Customer", json!({"DisplayName": format!("Customer {number}")}));
        books.put("Invoice", json!({"DocNumber": number.to_string()}));
    }
    let (_, body) = browser.changes("Customer,Invoice", &since).await;
    let lists = &body["CDCResponse"][0]["QueryResponse"];
    assert_eq!((&lists[0]["maxResults"], &lists[1]["maxResults"]), (&json!(600), &json!(400)));
}
