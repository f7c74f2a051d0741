use std::time::Duration;

use serde_json::{Value, json};

use super::{Browser, texts};
use crate::{Fakes, HUBSPOT};

async fn start() -> Browser {
    Browser::of(HUBSPOT, Fakes::with_fixtures().await).await
}

impl Browser {
    /// Every record, and how many pages they took.
    async fn list_all(&self, path: &str) -> (Vec<Value>, usize) {
        let (mut rows, mut after, mut n_pages) = (Vec::new(), String::new(), 0);
        loop {
            let (status, page) = self.get_json(&format!("{path}{after}")).await;
            assert_eq!(status, 200, "{page}");
            rows.extend(page["results"].as_array().expect("rows").iter().cloned());
            n_pages += 1;
            match page.pointer("/paging/next/after") {
                Some(next) => after = format!("&after={}", next.as_str().expect("text")),
                None => return (rows, n_pages),
            }
        }
    }
}

#[tokio::test]
async fn lists_end_after_their_last_page_and_equal_the_fixtures() {
    let browser = start().await;
    let kinds = [
        ("contacts", "firstname,lastname,email,phone,company,jobtitle,lifecyclestage", 12_usize),
        ("companies", "name,domain,industry,numberofemployees,annualrevenue,city,state,phone,description", 6),
        ("deals", "dealname,amount,dealstage,closedate,pipeline,hs_is_closed", 10),
    ];
    for (kind, properties, n_records) in kinds {
        let query = format!("limit=4&properties={properties}&associations=companies");
        let (rows, n_pages) = browser.list_all(&format!("/hubspot/crm/v3/objects/{kind}?{query}")).await;
        assert_eq!((rows.len(), n_pages), (n_records, n_records.div_ceil(4)));
        let path = format!("{}/../../fixtures/hubspot/{kind}.json", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).expect("a fixture");
        let pages: Vec<Value> = serde_json::from_str(&text).expect("JSON");
        let recorded: Vec<_> = pages.iter().flat_map(|page| page["results"].as_array().expect("rows")).collect();
        assert_eq!(rows.iter().collect::<Vec<_>>(), recorded);
        let dated = browser.list_all(&format!("/hubspot/crm/objects/2026-03/{kind}?{query}")).await;
        assert_eq!(dated.0, rows);
    }
    let (_, page) = browser.get_json("/hubspot/crm/v3/objects/deals?limit=9").await;
    let link = page.pointer("/paging/next/link").and_then(Value::as_str).expect("a link");
    let path = link.strip_prefix(browser.fakes.url()).expect("a link to here");
    assert_eq!(texts(browser.get_json(path).await.1["results"].as_array().expect("rows"), "/id"), ["67"]);
    let (_, account) = browser.get_json("/hubspot/account-info/v3/details").await;
    assert_eq!(account["portalId"], 24_317_905);
}

#[tokio::test]
async fn changes_are_found_by_search_in_order_and_without_associations() {
    let browser = start().await;
    let crm = browser.fakes.hubspot();
    let since = browser.fakes.now().timestamp_millis();
    crm.patch("contacts", "60", json!({"jobtitle": "Contracts manager"}));
    crm.patch("contacts", "51", json!({"phone": null}));
    crm.archive("contacts", "52");
    let new = crm.put("contacts", json!({"firstname": "Una", "hs_score": 7}));
    crm.associate("contacts", &new, "companies", "59");
    let asked = json!({
        "filterGroups": [{"filters": [{"propertyName": "lastmodifieddate", "operator": "GTE", "value": since.to_string()}]}],
        "sorts": [{"propertyName": "lastmodifieddate", "direction": "ASCENDING"}],
        "properties": ["firstname", "hs_score"], "limit": 2, "after": "0",
    });
    let (status, page) = browser.post_json("/hubspot/crm/v3/objects/contacts/search", asked.clone()).await;
    assert_eq!((status, &page["total"]), (200, &json!(3)));
    assert_eq!(texts(page["results"].as_array().expect("rows"), "/id"), ["60", "51"]);
    let mut asked = asked;
    asked["after"] = page.pointer("/paging/next/after").expect("a token").clone();
    let (_, page) = browser.post_json("/hubspot/crm/v3/objects/contacts/search", asked.clone()).await;
    assert_eq!(page["results"][0]["properties"]["hs_score"], "7");
    assert!(page.get("paging").is_none() && page["results"][0].get("associations").is_none());

    crm.set_search_lag(Duration::from_secs(60));
    asked["after"] = json!(0);
    let (_, page) = browser.post_json("/hubspot/crm/objects/2026-09/contacts/search", asked).await;
    assert_eq!(page["total"], 0);

    let (rows, _) = browser.list_all("/hubspot/crm/v3/objects/contacts?archived=true").await;
    assert_eq!(texts(&rows, "/id"), ["52"]);
    assert!(rows[0]["archivedAt"].is_string());
    assert_eq!(crm.count("contacts"), 12);
    assert_eq!(browser.get_json("/hubspot/crm/v3/objects/contacts/52").await.0, 404);
}

#[tokio::test]
async fn search_stops_at_ten_thousand() {
    let browser = Browser::of(HUBSPOT, Fakes::start().await).await;
    browser.fakes.hubspot().fill_contacts(10_050);
    let path = "/hubspot/crm/v3/objects/contacts/search";
    let (status, page) = browser.post_json(path, json!({"limit": 200, "after": "9800"})).await;
    assert_eq!((status, &page["total"]), (200, &json!(10_050)));
    assert_eq!(page.pointer("/paging/next/after"), Some(&json!("10000")));
    let (status, error) = browser.post_json(path, json!({"limit": 200, "after": "10000"})).await;
    assert_eq!((status, &error["category"]), (400, &json!("VALIDATION_ERROR")));
    assert_eq!(browser.post_json(path, json!({"limit": 201})).await.0, 400);
    assert_eq!(browser.list_all("/hubspot/crm/v3/objects/contacts?limit=100").await.1, 101);
    assert_eq!(browser.get_json("/hubspot/crm/v3/objects/contacts?limit=101").await.0, 400);
}

#[tokio::test]
async fn batches_say_what_is_missing() {
    let browser = start().await;
    let asked = json!({"properties": ["name"], "inputs": [{"id": "54"}, {"id": "999"}]});
    let (status, batch) = browser.post_json("/hubspot/crm/v3/objects/companies/batch/read", asked).await;
    assert_eq!((status, batch["results"].as_array().map(Vec::len)), (207, Some(1)));
    assert_eq!(batch["errors"][0]["context"]["ids"], json!(["999"]));

    let asked = json!({"inputs": [{"id": "66"}]});
    let (status, batch) = browser.post_json("/hubspot/crm/v4/associations/deals/companies/batch/read", asked).await;
    let unlabelled = json!({"category": "HUBSPOT_DEFINED", "typeId": 341, "label": null});
    let primary = json!({"category": "HUBSPOT_DEFINED", "typeId": 5, "label": "Primary"});
    let to = json!([{"toObjectId": 58, "associationTypes": [primary, unlabelled]},
        {"toObjectId": 56, "associationTypes": [unlabelled]}]);
    assert_eq!((status, batch), (200, json!({"status": "COMPLETE", "results": [{"from": {"id": "66"}, "to": to}]})));
    let asked = json!({"inputs": [{"id": "67"}]});
    let path = "/hubspot/crm/associations/2026-03/deals/companies/batch/read";
    let (status, batch) = browser.post_json(path, asked).await;
    assert_eq!((status, &batch["results"]), (207, &json!([])));
}
