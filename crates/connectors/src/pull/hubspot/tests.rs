use serde_json::json;

use super::*;
use crate::Http;
use crate::pull::tests::{since, *};

fn contact(id: u32, changed: &str) -> Value {
    json!({ "id": id.to_string(), "archived": false, "properties": { "email": format!("{id}@acme.example"), "lastmodifieddate": changed } })
}

fn after(token: &str) -> Value {
    json!({ "next": { "after": token, "link": "https://elsewhere.example/" } })
}

fn on(body: Value) -> Reply {
    status("207 Multi-Status", body)
}

#[tokio::test]
async fn a_full_pass_lists_every_stream_page_by_page() {
    let server = Server::start(|asked| {
        assert!(asked.has("limit=100") && asked.has("archived=false"), "{asked:?}");
        if asked.has("/crm/objects/2026-03/contacts") {
            assert!(asked.has("associations=companies"), "{asked:?}");
            let properties =
                "properties=firstname,lastname,email,company,jobtitle,lifecyclestage,lastmodifieddate,createdate";
            assert!(asked.has(properties), "{asked:?}");
            return match asked.has("after=t1") {
                false => ok(json!({ "results": [contact(1, "2026-11-01T00:00:00Z")], "paging": after("t1") })),
                true => ok(json!({ "results": [contact(2, "2026-11-01T00:00:00Z"), { "id": "3" }] })),
            };
        }
        if asked.has("/companies") {
            assert!(!asked.has("associations="), "{asked:?}");
            return ok(json!({ "results": [] }));
        }
        assert!(asked.has("/crm/objects/2026-03/deals"), "{asked:?}");
        ok(json!({ "results": [{ "id": "7", "properties": {}, "associations": { "companies": { "results": [{ "id": "9" }] } } }] }))
    })
    .await;
    let connector = server.connector(&SPEC);
    let person = Person::new();
    let account = person.account();
    let first = connector.full(&account, None, true).await.expect("a page");
    assert_eq!((ids(&first.items), first.more), (vec!["contact:1"], true));
    assert_eq!(first.next["trail"]["after"], "t1");
    let second = connector.full(&account, Some(&first.next), true).await.expect("a page");
    assert_eq!((ids(&second.items), second.failed[0].external_id.as_str()), (vec!["contact:2"], "contact:3"));
    assert_eq!(second.next["stream"], 1);
    let third = connector.full(&account, Some(&second.next), true).await.expect("a page");
    assert_eq!((third.items.len(), third.next["stream"].clone(), third.more), (0, json!(2), true));
    let fourth = connector.full(&account, Some(&third.next), true).await.expect("a page");
    assert_eq!((ids(&fourth.items), fourth.next, fourth.more), (vec!["deal:7"], Value::Null, false));
    assert_eq!(fourth.items[0].mentions, ["company:9"]);
}

#[tokio::test]
async fn companies_that_do_not_fit_in_a_list_are_read_apart() {
    let server = Server::start(|asked| {
        if asked.has("/crm/v4/associations/deals/companies/batch/read") {
            let input = &asked.json()["inputs"][0];
            assert_eq!(input["id"], "7");
            return match input.get("after") {
                None => ok(json!({ "results": [{ "from": { "id": "7" }, "to": [{ "toObjectId": 9 }], "paging": after("p2") }] })),
                Some(_) => ok(json!({ "results": [{ "from": { "id": "7" }, "to": [{ "toObjectId": 11 }] }] })),
            };
        }
        let linked = json!({ "companies": { "results": [{ "id": "9" }], "paging": after("x") } });
        match asked.has("/crm/v3/objects/deals") {
            true => ok(json!({ "results": [{ "id": "7", "properties": {}, "associations": linked }] })),
            false => ok(json!({ "results": [] })),
        }
    })
    .await;
    let mut settings = settings(&SPEC, &server.url);
    settings.set("HUBSPOT_API_VERSION", "v3");
    let connector = (SPEC.rest)(&Http::new().expect("a client"), &settings);
    let pages = all(&*connector, &Person::new(), false).await.expect("pages");
    assert_eq!(pages[2].items[0].mentions, ["company:11", "company:9"]);
    assert_eq!((pages.len(), &pages[2].next), (3, &Value::Null));
}

#[tokio::test]
async fn a_page_token_that_comes_again_ends_the_pass_and_one_that_is_rejected_starts_it_anew() {
    for (tokens, expected) in [
        (&["a", "a"][..], "unreadable: HubSpot gave the same page again"),
        (
            &["a", "b", "c", "a", "b", "c", "a", "b", "c", "a", "b", "c"][..],
            "unreadable: HubSpot gave the same page again",
        ),
        (&["a", "reject"][..], "lost: HubSpot no longer knows our place in its list"),
    ] {
        let n_asked = std::sync::atomic::AtomicUsize::new(0);
        let server = Server::start(move |asked| {
            let n = n_asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            match asked.has("after=reject") {
                true => status("400 Bad Request", json!({ "category": "VALIDATION_ERROR" })),
                false => ok(json!({ "results": [], "paging": after(tokens[n]) })),
            }
        })
        .await;
        let error = all(&*server.connector(&SPEC), &Person::new(), false).await.expect_err("no end");
        assert_eq!(short(&error), expected);
    }
    let server = Server::start(|_| status("400 Bad Request", json!({ "category": "VALIDATION_ERROR" }))).await;
    let error = all(&*server.connector(&SPEC), &Person::new(), false).await.expect_err("a refusal");
    assert_eq!(short(&error), "refused: HubSpot refused what we asked for (VALIDATION_ERROR)");
}

#[tokio::test]
async fn a_delta_searches_by_time_reads_companies_apart_and_lists_the_archive() {
    let since_ms = 1_793_000_000_000_i64;
    let server = Server::start(move |asked| {
        if asked.has("/associations/") {
            return match asked.has("/contacts/companies/") {
                true => on(json!({
                    "results": [{ "from": { "id": "1" }, "to": [{ "toObjectId": 9 }] }],
                    "errors": [{ "category": "OBJECT_NOT_FOUND", "subCategory": "crm.associations.NO_ASSOCIATIONS_FOUND" }],
                })),
                false => panic!("{asked:?}"),
            };
        }
        if asked.has("archived=true") {
            let old = json!({ "id": "4", "archived": true, "archivedAt": "2020-01-01T00:00:00Z" });
            let not = json!({ "id": "5", "archived": false, "properties": {} });
            return ok(json!({ "results": [{ "id": "3", "archived": true, "archivedAt": "2026-11-14T00:00:00Z" }, old, not] }));
        }
        let question = asked.json();
        let filter = &question["filterGroups"][0]["filters"][0];
        assert_eq!(filter["operator"], "GTE");
        if !asked.has("/contacts/search") {
            assert_eq!((&filter["propertyName"], &filter["value"]), (&json!("hs_lastmodifieddate"), &json!(since_ms.to_string())));
            return ok(json!({ "total": 0, "results": [] }));
        }
        assert_eq!((&question["sorts"][0]["direction"], &question["limit"]), (&json!("ASCENDING"), &json!(100)));
        let bound = filter["value"].as_str().expect("a bound").to_owned();
        let (early, late) = ("2026-11-10T00:00:00.000Z", "2026-11-11T00:00:00.000Z");
        match (bound, question.get("after").and_then(Value::as_str)) {
            (bound, None) if bound == since_ms.to_string() => {
                ok(json!({ "results": [contact(1, early), contact(2, late)], "paging": after("2") }))
            }
            // All of one moment: only a number leads on.
            (bound, None) if bound == "1794355200000" => ok(json!({ "results": [contact(2, late)], "paging": after("1") })),
            (bound, Some("1")) if bound == "1794355200000" => ok(json!({ "results": [contact(6, late)] })),
            other => panic!("{other:?}"),
        }
    })
    .await;
    let person = Person::new();
    let cursor = json!({ "since_ms": since_ms });
    let pages = since(&*server.connector(&SPEC), &person, &cursor).await.expect("pages");
    let expected = ["contact:1", "contact:2", "contact:2", "contact:6", "contact:3", "company:3", "deal:3"];
    assert_eq!(all_ids(&pages), expected);
    let first = &pages[0].items;
    assert_eq!(
        (first[0].mentions.clone(), first[1].mentions.clone()),
        (vec!["contact:1".into(), "company:9".into()], vec!["contact:2".to_owned()])
    );
    assert!(
        pages
            .iter()
            .flat_map(|page| &page.items)
            .all(|item| item.raw.is_deleted == item.raw.external_id.ends_with(":3"))
    );
    // Five minutes before the first answer.
    assert_eq!(pages.last().expect("a page").next, json!({ "since_ms": 1_794_743_700_000_i64 }));
    let n_searches = person.pace.0.lock().expect("the count").iter().filter(|name| **name == "hubspot.search").count();
    assert_eq!(n_searches, 5);
}

#[tokio::test]
async fn of_an_id_that_comes_twice_the_last_counts_everywhere() {
    let server = Server::start(|asked| {
        if asked.has("/associations/") {
            assert_eq!(asked.json()["inputs"], json!([{ "id": "1" }]));
            return ok(json!({ "results": [{ "from": { "id": "1" }, "to": [{ "toObjectId": 9 }] }] }));
        }
        raw_reply("200 OK", "", br#"{"results":[{"id":"another","id":"1","properties":{}}]}"#)
    })
    .await;
    let (connector, person) = (server.connector(&SPEC), Person::new());
    let page = connector.delta(&person.account(), &json!({ "since_ms": 0 }), None).await.expect("a page");
    assert_eq!(page.items[0].mentions, ["contact:1", "company:9"]);
    // Who does not say the time is read again from where this delta started.
    assert_eq!(page.next["next_ms"], 0);
}

#[tokio::test]
async fn more_changes_of_one_moment_than_a_search_shows_want_a_full_pass() {
    let server = Server::start(|asked| match asked.has("/associations/") {
        true => ok(json!({ "results": [] })),
        false => {
            let from: u64 = asked.json().get("after").and_then(|after| after.as_str()?.parse().ok()).unwrap_or(0);
            let next = (from + 2_500).to_string();
            ok(json!({ "results": [contact(1, "2026-11-10T00:00:00Z")], "paging": after(&next) }))
        }
    })
    .await;
    let cursor = json!({ "since_ms": 1_794_268_800_000_i64 });
    let error = since(&*server.connector(&SPEC), &Person::new(), &cursor).await.expect_err("too many");
    assert_eq!(short(&error), "lost: HubSpot has more changes of one moment than it can list");
    assert_eq!(server.asked().len(), 8);
}

#[tokio::test]
async fn a_cursor_is_the_providers_time_and_a_place_that_is_not_ours_is_lost() {
    let server = Server::start(|asked| {
        assert!(asked.has("/contacts?limit=1"), "{asked:?}");
        ok(json!({ "results": [] }))
    })
    .await;
    let (connector, person) = (server.connector(&SPEC), Person::new());
    let account = person.account();
    let cursor = connector.cursor(&account).await.expect("a cursor");
    assert_eq!(cursor, Some(json!({ "since_ms": 1_794_743_700_000_i64 })));
    for place in [json!({ "stream": 3 }), json!({ "stream": -1 }), json!("x")] {
        let error = connector.full(&account, Some(&place), false).await.expect_err("no place");
        assert_eq!(short(&error), "lost: our place in this account cannot be read");
    }
    assert!(matches!(connector.delta(&account, &json!({}), None).await, Err(PullError::CursorLost(_))));

    let timeless = Server::start(|_| raw_reply("200 OK", "", br#"{"results":[]}"#)).await;
    let error = timeless.connector(&SPEC).cursor(&account).await.expect_err("no time");
    assert_eq!(short(&error), "unreadable: HubSpot did not say what time it is");
}

#[tokio::test]
async fn what_is_not_found_is_gone_and_what_failed_is_not() {
    let server = Server::start(|asked| {
        if asked.has("/associations/") {
            return ok(json!({ "results": [{ "from": { "id": "1" }, "to": [{ "toObjectId": 9 }] }] }));
        }
        assert!(asked.has("/contacts/batch/read"), "{asked:?}");
        assert_eq!(asked.json()["inputs"], json!([{ "id": "1" }, { "id": "2" }]));
        on(json!({ "results": [contact(1, "2026-11-10T00:00:00Z")], "errors": [{ "category": "OBJECT_NOT_FOUND" }] }))
    })
    .await;
    let person = Person::new();
    let wanted = ["contact:1", "contact:2", "contact:../../x", "file:7"].map(str::to_owned);
    let found = server.connector(&SPEC).find(&person.account(), &wanted).await.expect("an answer");
    assert_eq!((ids(&found.0), found.0[0].mentions.len(), found.1.len()), (vec!["contact:1"], 2, 0));

    let ill = Server::start(|_| on(json!({ "results": [], "errors": [{ "category": "INTERNAL_ERROR" }] }))).await;
    let error = ill.connector(&SPEC).find(&person.account(), &wanted).await.expect_err("a part");
    assert_eq!(short(&error), "passing: HubSpot answered only a part of what was asked");
}

#[tokio::test]
async fn an_account_is_known_by_its_portal() {
    let server = Server::start(|asked| {
        assert_eq!(asked.line, "GET /account-info/2026-03/details");
        ok(json!({ "portalId": 4711, "uiDomain": "app.hubspot.com" }))
    })
    .await;
    let person = Person::new();
    let identity = server.connector(&SPEC).identify(&person.account()).await.expect("an identity");
    assert_eq!(identity, Identity { account: "4711".into(), name: "HubSpot account 4711".into() });
}
