//! Rights over MCP: the tools of a key, and the things of others that it does not see.

use domain::{Role, Scope};
use serde_json::{Value, json};
use store::keys;

use super::Desk;

fn names(listed: &Value) -> Vec<&str> {
    let tools = listed["result"]["tools"].as_array().expect("tools");
    tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect()
}

/// S26, S28: a key lists and calls what it may.
#[tokio::test(flavor = "multi_thread")]
async fn a_read_key_lists_and_calls_no_tool_that_changes_something() {
    let desk = Desk::new().await;
    let read = desk.key(&[Scope::Read]).await;
    let listed = desk.ask(read.reveal(), "tools/list", json!({})).await;
    let reading = ["search_memory", "get_document", "get_client", "list_sources", "search", "fetch"];
    assert_eq!(names(&listed), reading);
    assert!(listed["result"]["tools"].as_array().expect("tools").iter().all(|tool| {
        let hints = &tool["annotations"];
        hints["readOnlyHint"] == true && hints["destructiveHint"] == false && hints["openWorldHint"] == false
    }));
    for (tool, arguments) in [
        ("remember", json!({ "text": "pwned" })),
        ("claim_activity", json!({})),
        ("complete_activity", json!({ "id": uuid::Uuid::now_v7(), "lock_epoch": 1, "result": {} })),
        ("fail_activity", json!({ "id": uuid::Uuid::now_v7(), "lock_epoch": 1, "reason": "x" })),
    ] {
        let refused = desk.call(read.reveal(), tool, arguments).await.expect_err(tool);
        assert!(refused.contains("needs the right"), "{tool}: {refused}");
    }
    assert_eq!(desk.number("select count(*) from source_documents").await, 0);
    let unknown = desk.ask(read.reveal(), "tools/call", json!({ "name": "drop_tables" })).await;
    assert_eq!(unknown["error"]["code"], -32_602, "{unknown}");
    let again = desk.ask(read.reveal(), "tools/list", json!({})).await;
    assert_eq!(listed.to_string(), again.to_string(), "the list is the same, byte by byte");

    let write = desk.key(&[Scope::Read, Scope::Write]).await;
    let taken = desk.call(write.reveal(), "remember", json!({ "text": "The roof is paid.", "name": "roof" })).await;
    assert_eq!(taken.expect("stored")["change"], "created");
    let taken = desk.call(write.reveal(), "remember", json!({ "text": "The roof is paid.", "name": "roof" })).await;
    assert_eq!(taken.expect("known")["change"], "unchanged");
    let found = desk.call(write.reveal(), "search_memory", json!({ "query": "roof paid" })).await.expect("an answer");
    assert_eq!(found["hits"].as_array().map(Vec::len), Some(1), "{found}");
    let document = found["hits"][0]["id"].as_str().expect("an id");
    let got = desk.call(write.reveal(), "get_document", json!({ "id": document })).await.expect("a document");
    assert_eq!(got["lineage"]["metadata"]["added_by"], "test over MCP", "S29: {got}");
    let link = got["link"].as_str().expect("a link").strip_prefix(&desk.app.url).expect("our page").to_owned();
    let page = desk.owner().await.get(&link).await;
    assert!(page.text().await.expect("a page").contains("The roof is paid."), "the link opens the document");
}

/// S17: another tenant's things by no tool, id, cursor or resource.
#[tokio::test(flavor = "multi_thread")]
async fn another_tenants_things_are_shown_by_nothing() {
    let desk = Desk::new().await;
    let elsewhere = desk.world.other_tenant("elsewhere").await;
    let theirs = desk.note(elsewhere, "Secret merger", "The merger with Harbour Mills is secret.").await;
    for n in 0..60 {
        desk.note(elsewhere, &format!("Merger {n}"), &format!("Merger step {n}.")).await;
    }
    let (_, their_key) = desk.world.caller(elsewhere, &[Scope::Read]).await;
    let listed = desk.ask(their_key.reveal(), "resources/list", json!({})).await;
    let cursor = listed["result"]["nextCursor"].as_str().expect("a cursor").to_owned();
    let found =
        desk.call(their_key.reveal(), "search_memory", json!({ "query": "merger step", "k": 5 })).await.expect("hits");
    let search_cursor = found["next_cursor"].clone();

    let service = desk.key(&[Scope::Service]).await;
    let key = service.reveal();
    for (tool, arguments) in [
        ("search_memory", json!({ "query": "merger Harbour Mills" })),
        ("search_memory", json!({ "query": "merger step", "k": 5, "cursor": search_cursor })),
        ("get_document", json!({ "id": theirs })),
        ("get_document", json!({ "id": format!("tributary://document/{theirs}") })),
        ("get_client", json!({ "client": "Harbour Mills" })),
        ("list_sources", json!({})),
        ("search", json!({ "query": "merger Harbour Mills" })),
        ("fetch", json!({ "id": theirs })),
        ("claim_activity", json!({})),
    ] {
        let said = match desk.call(key, tool, arguments).await {
            Ok(answer) => answer.to_string(),
            Err(refusal) => refusal,
        };
        assert!(!said.contains("secret") && !said.contains("Merger") && !said.contains(&theirs), "S17: {tool}: {said}");
    }
    for params in [json!({}), json!({ "cursor": cursor })] {
        let listed = desk.ask(key, "resources/list", params).await;
        assert_eq!(listed["result"]["resources"], json!([]), "S17");
    }
    let read = desk.ask(key, "resources/read", json!({ "uri": format!("tributary://document/{theirs}") })).await;
    assert_eq!(read["error"]["code"], -32_002, "S17: {read}");
    let initialized =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let told = desk.ask(key, "initialize", initialized).await.to_string();
    assert!(!told.contains("elsewhere") && told.contains("empty"), "S17: {told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_claims_completes_and_fails_and_a_late_result_changes_nothing() {
    let desk = Desk::new().await;
    let (person, _) = desk.person(desk.world.tenant_id, "ann@office.test", Role::Member).await;
    let mut conn = desk.world.conn().await;
    let made = keys::create(&mut conn, desk.world.tenant_id, Some(person), "device", &[Scope::Agent]).await;
    let (_, agent) = made.expect("a key");
    let (_, other) =
        keys::create(&mut conn, desk.world.tenant_id, Some(person), "other", &[Scope::Agent]).await.expect("a key");
    drop(conn);
    for text in ["The truck is late.", "The fence is up."] {
        let raw = json!({ "source_type": "text", "content": text });
        sqlx::query("insert into activities (id, tenant_id, type, direction, raw_data) select gen_random_uuid(), $1, 'note', 'inbound', $2")
            .bind(desk.world.tenant_id.0)
            .bind(raw)
            .execute(&mut *desk.world.conn().await)
            .await
            .expect("an activity");
    }
    let key = agent.reveal();
    let claimed = desk.call(key, "claim_activity", json!({ "limit": 2 })).await.expect("claimed");
    let activities = claimed["activities"].as_array().expect("activities");
    assert_eq!(activities.len(), 2, "{claimed}");
    let held = |nth: usize| (activities[nth]["id"].clone(), activities[nth]["lock_epoch"].clone());
    let ((first, epoch), (second, second_epoch)) = (held(0), held(1));
    assert_eq!(desk.call(other.reveal(), "claim_activity", json!({})).await.expect("none")["activities"], json!([]));
    let done = json!({ "id": first, "lock_epoch": epoch, "result": { "summary": "A truck is late." } });
    assert!(desk.call(other.reveal(), "complete_activity", done.clone()).await.is_err(), "another key's claim");
    assert_eq!(desk.call(key, "complete_activity", done.clone()).await.expect("completed")["status"], "completed");
    let late = desk.call(key, "complete_activity", done).await.expect_err("late");
    assert!(late.contains("does not hold"), "{late}");
    let wrong = json!({ "id": second, "lock_epoch": 99, "reason": "x" });
    assert!(desk.call(key, "fail_activity", wrong).await.is_err(), "another epoch");
    let failed = json!({ "id": second, "lock_epoch": second_epoch, "reason": "I cannot read it." });
    assert_eq!(desk.call(key, "fail_activity", failed).await.expect("failed")["status"], "failed");
    let n = "select count(*) from activities where processing_status = 'completed' and processed_data ->> 'summary' = 'A truck is late.'";
    assert_eq!(desk.number(n).await, 1);
    assert_eq!(desk.number("select count(*) from activities where processing_status = 'failed'").await, 1);
    assert_eq!(
        names(&desk.ask(key, "tools/list", json!({})).await),
        ["claim_activity", "complete_activity", "fail_activity"]
    );
    let write = desk.key(&[Scope::Write]).await;
    assert_eq!(names(&desk.ask(write.reveal(), "tools/list", json!({})).await), ["remember"], "a key that only adds");
}

/// An activity that is too long for one answer is had whole, by the key that holds it.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_activity_is_read_whole_by_its_holder() {
    let desk = Desk::new().await;
    let (person, _) = desk.person(desk.world.tenant_id, "ann@office.test", Role::Member).await;
    let mut conn = desk.world.conn().await;
    let mut keys = Vec::new();
    for name in ["device", "other"] {
        let made = keys::create(&mut conn, desk.world.tenant_id, Some(person), name, &[Scope::Agent]).await;
        keys.push(made.expect("a key").1);
    }
    let said: String = (0..12_000).map(|n| format!("word{n} ")).collect();
    let raw = json!({ "source_type": "text", "content": said });
    sqlx::query("insert into activities (id, tenant_id, type, direction, raw_data) select gen_random_uuid(), $1, 'note', 'inbound', $2")
        .bind(desk.world.tenant_id.0)
        .bind(&raw)
        .execute(&mut *conn)
        .await
        .expect("an activity");
    drop(conn);
    let (key, other) = (keys[0].reveal(), keys[1].reveal());
    let claimed = desk.call(key, "claim_activity", json!({})).await.expect("claimed");
    let activity = &claimed["activities"][0];
    assert!(activity["raw_data"]["content"].as_str().is_some_and(|cut| cut.len() < said.len()), "it fits");
    let n_pages = activity["n_pages"].as_u64().expect("a number");
    assert!(n_pages > 1, "{n_pages}");
    let mut whole = String::new();
    let mut next = json!(1);
    while !next.is_null() {
        let asked = json!({ "id": activity["id"], "lock_epoch": activity["lock_epoch"], "page": next });
        assert!(desk.call(other, "claim_activity", asked.clone()).await.is_err(), "S28: another key's claim");
        let page = desk.call(key, "claim_activity", asked).await.expect("a page");
        assert_eq!((&page["activities"], &page["n_pages"]), (&json!([]), &json!(n_pages)));
        whole.push_str(page["text"].as_str().expect("a text"));
        next = page["next_page"].clone();
    }
    assert_eq!(serde_json::from_str::<Value>(&whole).expect("JSON"), raw);
    for (asked, words) in [
        (json!({ "id": activity["id"], "lock_epoch": activity["lock_epoch"], "page": 999 }), "pages"),
        (json!({ "id": activity["id"] }), "lock_epoch"),
        (json!({ "id": activity["id"], "lock_epoch": 99 }), "does not hold"),
    ] {
        let refused = desk.call(key, "claim_activity", asked).await.expect_err(words);
        assert!(refused.contains(words), "{refused}");
    }
}
