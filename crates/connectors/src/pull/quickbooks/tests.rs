use std::sync::Mutex;

use serde_json::json;

use super::*;
use crate::Http;
use crate::pull::http::Bounds;
use crate::pull::mcp::tests::says;
use crate::pull::tests::*;

/// The records that a statement asks for by position, of customers with these ids and names; there are no invoices.
fn listed(asked: &Asked, customers: &[(u32, String)]) -> Reply {
    let after = |word: &str| {
        let rest = asked.line.split(word).nth(1).expect("a number");
        rest.split(' ').next().and_then(|number| number.parse::<usize>().ok()).expect("a number")
    };
    let page = customers.iter().skip(after("startposition ") - 1).take(after("maxresults "));
    let records: Vec<Value> = page.map(|(id, name)| json!({ "Id": id.to_string(), "DisplayName": name })).collect();
    match asked.has("from Customer ") && !records.is_empty() {
        true => ok(json!({ "QueryResponse": { "Customer": records } })),
        false => ok(json!({ "QueryResponse": {} })),
    }
}

fn rows(entity: &str, ids: std::ops::Range<u32>) -> Value {
    let records: Vec<Value> =
        ids.map(|id| json!({ "Id": id.to_string(), "DisplayName": "Ana", "TotalAmt": 1 })).collect();
    json!({ "QueryResponse": { entity: records, "startPosition": 1 }, "time": "2026-11-15T00:00:00.000-08:00" })
}

#[tokio::test]
async fn a_full_pass_queries_each_entity_until_nothing_comes() {
    let server = Server::start(|asked| {
        assert!(asked.has("GET /v3/company/123/query?minorversion=75&query=select * from "), "{asked:?}");
        let customers = "Customer where Active in (true, false) orderby Id startposition";
        match asked.line.split("from ").last().expect("a statement") {
            line if line == format!("{customers} 1 maxresults 1000") => ok(rows("Customer", 1..1_001)),
            // A short page is not the end.
            line if line == format!("{customers} 1000 maxresults 1000") => ok(rows("Customer", 1_000..1_004)),
            line if line == format!("{customers} 1003 maxresults 1000") => ok(rows("Customer", 1_003..1_004)),
            "Invoice orderby Id startposition 1 maxresults 1000" => ok(rows("Invoice", 1..2)),
            line => panic!("{line}"),
        }
    })
    .await;
    let person = Person::new();
    let pages = all(&*server.connector(&SPEC), &person, true).await.expect("pages");
    assert_eq!((all_ids(&pages).len(), pages.len()), (1_004, 5));
    assert_eq!(all_ids(&pages)[1_003], "invoice:1");
    let turns = person.pace.0.lock().expect("the count").clone();
    assert_eq!(turns[..2], ["quickbooks.second", "quickbooks.minute"]);
    assert_eq!(turns.len(), 10);
}

#[tokio::test]
async fn a_page_that_never_moves_on_ends_the_pass() {
    let server = Server::start(|_| ok(rows("Customer", 1..1_001))).await;
    let error = all(&*server.connector(&SPEC), &Person::new(), true).await.expect_err("no end");
    assert_eq!(short(&error), "lost: QuickBooks' list changes faster than it can be read");
    assert_eq!(server.asked().len(), 42);
}

#[tokio::test]
async fn a_record_that_is_deleted_during_a_pass_hides_no_other() {
    // How many pages are read before something is deleted, and what.
    for (n_before, gone) in
        [(1, 0..1), (1, 500..700), (1, 999..1_000), (1, 1_200..2_100), (2, 0..2_099), (3, 2_099..2_100)]
    {
        let (n_asked, left) = (Mutex::new(0), gone.clone());
        let server = Server::start(move |asked| {
            let mut n_asked = n_asked.lock().expect("a number");
            let is_there = |id: &u32| *n_asked < n_before || !left.contains(&(*id as usize - 1));
            let customers: Vec<(u32, String)> = (1..=2_100).filter(is_there).map(|id| (id, "Ana".to_owned())).collect();
            *n_asked += 1;
            listed(asked, &customers)
        })
        .await;
        let pages = all(&*server.connector(&SPEC), &Person::new(), true).await.expect("pages");
        let met = all_ids(&pages);
        let stayed = (1..=2_100).filter(|id| !gone.contains(&(id - 1))).map(|id| format!("customer:{id}"));
        let missed: Vec<String> = stayed.filter(|id| !met.contains(&id.as_str())).collect();
        assert!(missed.is_empty(), "{missed:?} are missed when {gone:?} are deleted");
    }
}

#[tokio::test]
async fn a_pass_ends_behind_a_record_that_cannot_be_read() {
    let customers = [(1, "Ana".to_owned()), (2, "x".repeat(2 << 20))];
    let server = Server::start(move |asked| listed(asked, &customers)).await;
    let pages = all(&*server.connector(&SPEC), &Person::new(), true).await.expect("pages");
    let n_behind: usize = pages.iter().map(|page| page.failed.len()).sum();
    assert_eq!((all_ids(&pages), n_behind, server.asked().len()), (vec!["customer:1"], 1, 3));
}

#[tokio::test]
async fn a_page_that_is_too_large_comes_in_smaller_ones_and_a_record_that_is_stays_behind() {
    let size = |id: u32| if [40, 41, 90, 100].contains(&id) { 9_000 } else { 300 };
    let customers: Vec<(u32, String)> = (1..=100).map(|id| (id, "x".repeat(size(id)))).collect();
    let server = Server::start(move |asked| match asked.has("where Id in ('") {
        false => listed(asked, &customers),
        true => {
            let is_asked = |(id, _): &&(u32, String)| asked.has(&format!("'{id}'"));
            let found = customers.iter().filter(is_asked);
            let records: Vec<Value> =
                found.map(|(id, name)| json!({ "Id": id.to_string(), "DisplayName": name })).collect();
            ok(json!({ "QueryResponse": { "Customer": records } }))
        }
    })
    .await;
    let mut api = Api::new(&Http::new().expect("a client"), &server.url, &SPEC);
    api.json = Bounds { bytes: 8_192, ..api.json };
    let (quickbooks, person) = (Quickbooks::new(api), Person::new());
    let (mut met, mut n_behind, mut place) = (Vec::new(), 0, None);
    loop {
        let page = quickbooks.full(&person.account(), place.as_ref(), true).await.expect("a page");
        met.extend(page.items.iter().map(|item| item.raw.external_id.clone()));
        n_behind += page.failed.len();
        place = Some(page.next);
        if !page.more {
            break;
        }
    }
    let expected = (1..=100).filter(|id| size(*id) < 9_000).map(|id| format!("customer:{id}"));
    assert_eq!((met, n_behind), (expected.collect::<Vec<_>>(), 4));
    assert!(server.asked().len() < 100, "{} requests", server.asked().len());

    let wanted: Vec<String> = (30..=60).map(|id| format!("customer:{id}")).collect();
    let (items, failed) = quickbooks.find(&person.account(), &wanted).await.expect("an answer");
    let behind: Vec<&str> = failed.iter().map(|failed| failed.external_id.as_str()).collect();
    assert_eq!((items.len(), behind), (29, vec!["customer:40", "customer:41"]));
}

#[tokio::test]
async fn a_delta_takes_changes_and_deletions_and_goes_on_from_the_answers_time() {
    let server = Server::start(|asked| {
        let line =
            "GET /v3/company/123/cdc?minorversion=75&entities=Customer,Invoice&changedSince=2026-11-01T00:00:00.000Z";
        assert_eq!(asked.line, line);
        let deleted = json!({ "domain": "QBO", "status": "Deleted", "Id": "9" });
        ok(json!({
            "CDCResponse": [{ "QueryResponse": [
                { "Customer": [{ "Id": "58", "DisplayName": "Ana" }], "startPosition": 1, "maxResults": 1 },
                { "Invoice": [deleted, { "Id": "10", "TotalAmt": "?" }] },
                {},
            ] }],
            "time": "2026-11-15T00:00:00.000-08:00",
        }))
    })
    .await;
    let cursor = json!({ "changed_since": "2026-11-01T00:00:00Z" });
    let pages = since(&*server.connector(&SPEC), &Person::new(), &cursor).await.expect("pages");
    assert_eq!(all_ids(&pages), ["customer:58", "invoice:9"]);
    assert!(pages[0].items[1].raw.is_deleted);
    assert_eq!(pages[0].failed[0].external_id, "invoice:10");
    assert_eq!(pages[0].next, json!({ "changed_since": "2026-11-15T07:55:00Z" }));
}

#[tokio::test]
async fn changes_that_may_not_be_all_want_a_full_pass() {
    let many = json!({ "CDCResponse": [{ "QueryResponse": [rows("Customer", 1..501)["QueryResponse"], rows("Invoice", 1..501)["QueryResponse"]] }] });
    let told = json!({ "Fault": {}, "time": "2026-12-15T00:00:00.000-08:00" });
    let fault = json!({ "Fault": { "Error": [{ "code": "4001" }], "type": "ValidationFault" } });
    let none = json!({ "CDCResponse": [], "time": "2026-11-15T00:00:00.000-08:00" });
    for (changed_since, line, body, expected) in [
        ("2026-11-01T00:00:00Z", "200 OK", many, "lost: QuickBooks reports too many changes at once to be sure of all"),
        (
            "2026-10-01T00:00:00Z",
            "200 OK",
            none,
            "lost: QuickBooks keeps changes for 30 days, and the last sync is longer ago",
        ),
        (
            "2026-10-01T00:00:00Z",
            "400 Bad Request",
            fault.clone(),
            "lost: QuickBooks keeps changes for 30 days, and the last sync is longer ago",
        ),
        (
            "2026-11-01T00:00:00Z",
            "200 OK",
            told,
            "lost: QuickBooks keeps changes for 30 days, and the last sync is longer ago",
        ),
        ("2026-11-01T00:00:00Z", "400 Bad Request", fault, "refused: QuickBooks refused what we asked for (4001)"),
    ] {
        let server = Server::start(move |_| status(line, body.clone())).await;
        let cursor = json!({ "changed_since": changed_since });
        let error = since(&*server.connector(&SPEC), &Person::new(), &cursor).await.expect_err("lost");
        assert_eq!(short(&error), expected);
    }
}

#[tokio::test]
async fn records_are_found_by_their_ids_a_hundred_at_a_time() {
    let server = Server::start(|asked| {
        assert!(asked.has("where Id in ('"), "{asked:?}");
        match asked.has("Customer where Id in ('1', ") {
            true => ok(rows("Customer", 1..3)),
            false => ok(json!({ "QueryResponse": {} })),
        }
    })
    .await;
    let mut wanted: Vec<String> = (1..=150).map(|id| format!("customer:{id}")).collect();
    wanted.extend(["invoice:7".to_owned(), "invoice:7') or ('".to_owned()]);
    let person = Person::new();
    let (items, failed) = server.connector(&SPEC).find(&person.account(), &wanted).await.expect("an answer");
    assert_eq!((ids(&items), failed.len()), (vec!["customer:1", "customer:2"], 0));
    let asked = server.asked();
    assert_eq!(asked.len(), 3);
    assert!(asked[0].has("'100') and Active in (true, false) maxresults 1000"), "{:?}", asked[0]);
    assert!(asked[2].line.ends_with("from Invoice where Id in ('7') maxresults 1000"), "{:?}", asked[2]);
}

#[tokio::test]
async fn the_company_says_its_name_and_the_time() {
    let server = Server::start(|asked| {
        assert_eq!(asked.line, "GET /v3/company/123/companyinfo/123?minorversion=75");
        ok(json!({ "CompanyInfo": { "CompanyName": "Acme", "Id": "1" }, "time": "2026-11-15T00:00:00.000-08:00" }))
    })
    .await;
    let (connector, person) = (server.connector(&SPEC), Person::new());
    let account = person.account();
    let cursor = connector.cursor(&account).await.expect("a cursor");
    assert_eq!(cursor, Some(json!({ "changed_since": "2026-11-15T07:55:00Z" })));
    let identity = connector.identify(&account).await.expect("an identity");
    assert_eq!(identity, Identity { account: "123".into(), name: "Acme".into() });

    let elsewhere = Account { account: "../x", ..account };
    let error = connector.identify(&elsewhere).await.expect_err("no realm");
    assert_eq!(short(&error), "refused: QuickBooks refused what we asked for (no_realm)");
}

#[tokio::test]
async fn a_fault_is_a_fault_with_success_too() {
    let body = json!({ "fault": { "error": [{ "code": "3200" }], "type": "AUTHENTICATION" } });
    let server = Server::start(move |_| ok(body.clone())).await;
    let error = all(&*server.connector(&SPEC), &Person::new(), true).await.expect_err("a fault");
    assert_eq!(short(&error), "token: QuickBooks refused the token");
}

/// A hundred and one customers and an invoice, as text beside text.
fn books(asked: &Asked) -> Reply {
    let params = &asked.call()["params"]["arguments"]["params"];
    let customers = (1..=101).map(|id| json!({ "Id": id.to_string(), "DisplayName": format!("Customer {id}") }));
    let invoices = [json!({ "Id": "9", "TotalAmt": 120.5, "CustomerRef": { "value": "7" } })].into_iter();
    let (tool, []) = asked.tool([]);
    let (records, how): (Vec<Value>, &Value) = match tool.as_str() {
        "search_customers" => (customers.collect(), params),
        "search_invoices" => (invoices.collect(), &params["criteria"]),
        other => panic!("nobody may call {other:?}"),
    };
    let wanted = params.pointer("/criteria/0/value").and_then(Value::as_array);
    let number = |name: &str| how[name].as_u64().and_then(|number| usize::try_from(number).ok());
    let found: Vec<&Value> = match wanted {
        Some(wanted) => records.iter().filter(|record| wanted.contains(&record["Id"])).collect(),
        None => records
            .iter()
            .skip(number("offset").expect("an offset") - 1)
            .take(number("limit").expect("a limit"))
            .collect(),
    };
    let mut blocks = vec![json!({ "type": "text", "text": format!("Found {} records:", found.len()) })];
    blocks.extend(found.iter().map(|record| json!({ "type": "text", "text": record.to_string() })));
    asked.result(json!({ "content": blocks }))
}

#[tokio::test]
async fn a_company_is_read_by_the_tools_of_quickbooks_server() {
    let (server, _) = says(books).await;
    let quickbooks = server.mcp_of(&SPEC);
    let pages = all(&quickbooks, &Person::new(), false).await.expect("a pass");
    let read = all_ids(&pages);
    assert_eq!((read.len(), read[100], read[101], server.count("tools/call")), (102, "customer:101", "invoice:9", 3));
    let asked = ["customer:7", "customer:404", "invoice:9"].map(str::to_owned);
    let (items, failed) = quickbooks.find(&Person::new().account(), &asked).await.expect("an answer");
    assert_eq!((ids(&items), failed), (vec!["customer:7", "invoice:9"], vec![]));
}
