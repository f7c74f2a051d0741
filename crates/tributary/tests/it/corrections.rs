//! Additions and corrections by people, by page, API and command line: notes, documents that stay deleted, contacts, senders.

use std::time::Duration;

use domain::{Scope, Secret};
use serde_json::{Value, json};
use testkit::wait_until;
use uuid::Uuid;

use crate::app::client;
use crate::browser::Browser;
use crate::people::Firm;

const SOON: Duration = Duration::from_secs(8);

impl Firm {
    async fn rest(&self, key: &Secret, prefer: &str, query: &str, body: &Value) -> (u16, Value) {
        let request =
            client().post(format!("{}/rest/v1/activities{query}", self.house.app.url)).bearer_auth(key.reveal());
        let answer = request.header("apikey", key.reveal()).header("prefer", prefer).json(body).send().await;
        let answer = answer.expect("an answer");
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }

    async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&mut *self.house.world.conn().await).await.expect(sql)
    }

    async fn key(&self, scopes: &[Scope]) -> Secret {
        self.house.world.caller(self.house.world.tenant_id, scopes).await.1
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_inserts_activities_with_a_key_that_may_write() {
    let firm = Firm::new().await;
    let (writer, agent) = (firm.key(&[Scope::Write]).await, firm.key(&[Scope::Agent]).await);
    let reader = firm.key(&[Scope::Read]).await;
    let raw = |text: &str| json!({ "source_type": "text", "content": text });
    let row = json!({ "type": "task", "raw_data": raw("Call Ann back"), "metadata": { "from": "+1 (415) 867-5309" } });
    for key in [&agent, &reader] {
        let (status, error) = firm.rest(key, "", "", &row).await;
        assert_eq!((status, &error["code"]), (403, &json!("42501")), "{error}");
    }
    let (status, made) = firm.rest(&writer, "return=representation", "", &row).await;
    assert_eq!(
        (status, &made[0]["type"], &made[0]["processing_status"]),
        (201, &json!("task"), &json!("raw")),
        "{made}"
    );
    assert_eq!(made[0]["metadata"]["from"], "+1 (415) 867-5309");
    assert_eq!(firm.rest(&writer, "", "", &json!([])).await.0, 201, "no rows are no fault");

    // Several rows, in their order, with the wanted columns alone.
    let rows = json!([{ "type": "note", "raw_data": raw("one") }, { "type": "meeting", "raw_data": raw("two") }]);
    let (status, made) = firm.rest(&writer, "return=representation", "?select=type", &rows).await;
    assert_eq!((status, made), (201, json!([{ "type": "note" }, { "type": "meeting" }])));

    // Sent again, and by somebody else.
    let named = json!({ "id": Uuid::now_v7(), "type": "note", "raw_data": raw("once") });
    assert_eq!(firm.rest(&writer, "", "", &named).await.0, 201);
    let (status, error) = firm.rest(&writer, "", "", &named).await;
    assert_eq!((status, &error["code"]), (409, &json!("23505")), "{error}");
    assert_eq!(firm.rest(&writer, "resolution=ignore-duplicates", "", &named).await.0, 201);
    let world = &firm.house.world;
    let elsewhere = world.caller(world.other_tenant("elsewhere").await, &[Scope::Write]).await.1;
    assert_eq!(firm.rest(&elsewhere, "", "", &named).await.0, 409, "S17");
    let (_, ann) = firm.ask(&firm.key, "POST", "/contacts", json!({ "email": "ann@example.com" })).await;
    let theirs = json!({ "type": "note", "contact_id": ann["id"], "raw_data": raw("x") });
    let (status, error) = firm.rest(&elsewhere, "", "", &theirs).await;
    assert_eq!((status, &error["code"]), (409, &json!("23503")), "S17: {error}");
    assert_eq!(firm.rest(&writer, "", "", &theirs).await.0, 201);

    // All or none, and nothing that only the server sets.
    let before = firm.count("select count(*) from activities").await;
    for (odd, expected) in [
        (json!([{ "type": "note", "raw_data": raw("x") }, { "type": "note" }]), (400, "23502")),
        (json!({ "type": "note", "raw_data": raw("x"), "processing_status": "completed" }), (403, "42501")),
        (json!({ "type": "note", "raw_data": raw("x"), "tenant_id": Uuid::nil() }), (400, "PGRST204")),
        (json!({ "type": "note", "raw_data": raw("a\0b") }), (400, "23514")),
        (json!({ "type": "note", "raw_data": raw("x"), "sales_id": 999_999 }), (409, "23503")),
        (json!("x"), (400, "PGRST102")),
    ] {
        let (status, error) = firm.rest(&writer, "", "", &odd).await;
        assert_eq!((status, error["code"].as_str()), (expected.0, Some(expected.1)), "{odd}: {error}");
    }
    assert_eq!(firm.count("select count(*) from activities").await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_notes_and_contacts_are_corrected_by_api_and_command_line() {
    let firm = Firm::new().await;
    let (writer, reader) = (firm.key(&[Scope::Read, Scope::Write]).await, firm.key(&[Scope::Read]).await);
    let lease = json!({ "title": "Lisbon lease", "text": "The lease of the Lisbon office ends in June.", "external_id": "lease" });
    let (_, made) = firm.ask(&writer, "POST", "/documents", lease.clone()).await;
    let path = format!("/documents/{}", made["id"].as_str().expect("an id"));
    assert_eq!(firm.ask(&reader, "DELETE", &path, Value::Null).await.0, 403);
    assert_eq!(firm.ask(&writer, "DELETE", &path, Value::Null).await.0, 204);
    let (status, again) = firm.ask(&writer, "POST", "/documents", lease.clone()).await;
    assert_eq!((status, &again["memory"], &again["change"]), (200, &json!("deleted"), &json!("kept_out")), "{again}");
    assert!(again["note"].as_str().is_some_and(|note| note.contains("restore")), "{again}");
    let (_, listed) = firm.ask(&reader, "GET", "/deleted-documents", Value::Null).await;
    assert_eq!(listed["documents"][0]["external_id"], "lease");
    let (_, one) = firm.ask(&reader, "GET", &path, Value::Null).await;
    assert_eq!((&one["memory"], &one["text"]), (&json!("deleted"), &json!("")), "{one}");

    let file = firm.house.folder.0.join("lease.txt");
    std::fs::create_dir_all(&firm.house.folder.0).expect("a folder");
    std::fs::write(&file, "The lease ends.").expect("a file");
    let named = file.to_str().expect("a path");
    let (_, said, _) = firm.tributary(&["remember", "--external-id", "lease", named]);
    assert!(said.starts_with("kept out") && said.contains("tributary document restore"), "{said}");
    let (is_done, said, error) = firm.tributary(&["document", "restore", "lease"]);
    assert!(is_done && said.contains("come in again"), "{said}{error}");
    assert_eq!(firm.ask(&writer, "POST", "/documents", lease).await.1["change"], "updated");
    let (is_done, _, error) = firm.tributary(&["document", "delete", "Lisbon lease"]);
    assert!(!is_done && error.contains("--yes"), "{error}");
    let (is_done, said, error) = firm.tributary(&["document", "delete", "Lisbon lease", "--yes"]);
    assert!(is_done && said.starts_with("deleted"), "{said}{error}");
    assert!(firm.tributary(&["document", "deleted"]).1.contains("lease"));

    // Contacts.
    let add = async |email: &str| {
        let (status, made) = firm.ask(&writer, "POST", "/contacts", json!({ "email": email })).await;
        assert_eq!(status, 201, "{made}");
        made["id"].as_i64().expect("a number")
    };
    let (ann, other) = (add("ann@example.com").await, add("a.lark@work.example").await);
    let change = json!({ "first_name": "Ann", "last_name": "Lark", "add_addresses": ["ann@home.example"] });
    let (status, changed) = firm.ask(&writer, "PATCH", &format!("/contacts/{ann}"), change).await;
    assert_eq!((status, &changed["first_name"]), (200, &json!("Ann")), "{changed}");
    assert_eq!(changed["addresses"], json!(["ann@example.com", "ann@home.example"]));
    for (body, expected) in [(json!({ "email": "nobody" }), 400), (json!({ "name": "x" }), 422)] {
        assert_eq!(firm.ask(&writer, "PATCH", &format!("/contacts/{ann}"), body).await.0, expected);
    }
    assert_eq!(firm.ask(&reader, "PATCH", &format!("/contacts/{ann}"), json!({})).await.0, 403);
    let merge = format!("/contacts/{ann}/merge");
    let (status, merged) = firm.ask(&writer, "POST", &merge, json!({ "other_id": other })).await;
    assert_eq!((status, &merged["merges"][0]["contact"]["id"]), (200, &json!(other)), "{merged}");
    assert_eq!(firm.ask(&writer, "GET", &format!("/contacts/{other}"), Value::Null).await.0, 404);
    let (is_done, said, error) = firm.tributary(&["contact", "unmerge", "Ann Lark"]);
    assert!(is_done && said.contains(&format!("contact {other}")), "{said}{error}");
    let (is_done, said, error) = firm.tributary(&["contact", "set", "Ann Lark", "--company", "Larkfield"]);
    assert!(is_done && said.contains("Ann Lark"), "{said}{error}");
    assert_eq!(firm.ask(&writer, "DELETE", &format!("/contacts/{other}?keep=true"), Value::Null).await.0, 204);
    assert_eq!(
        firm.ask(&writer, "DELETE", &format!("/contacts/{ann}"), Value::Null).await.0,
        403,
        "forgetting needs service"
    );

    // Notes.
    let (is_done, said, error) = firm.tributary(&[
        "activity",
        "add",
        "task",
        "Call back",
        "--contact",
        "Ann Lark",
        "--at",
        "2026-05-03T14:00:00Z",
    ]);
    assert!(is_done && said.starts_with("task "), "{said}{error}");
    let note = json!({ "type": "note", "title": "Once", "id": Uuid::now_v7(), "contact_id": ann });
    assert_eq!(firm.ask(&writer, "POST", "/activities", note.clone()).await.0, 201);
    assert_eq!(firm.ask(&writer, "POST", "/activities", note).await.0, 200);
    for (body, expected) in [
        (json!({ "type": "note" }), 400),
        (json!({ "type": "call", "title": "x" }), 400),
        (json!({ "type": "note", "title": "x", "contact_id": 999_999 }), 404),
        (json!({ "type": "note", "title": "x", "owner": 1 }), 422),
    ] {
        assert_eq!(firm.ask(&writer, "POST", "/activities", body.clone()).await.0, expected, "{body}");
    }
    assert_eq!(firm.ask(&reader, "POST", "/activities", json!({ "type": "note", "title": "x" })).await.0, 403);

    // Senders.
    let (is_done, _, error) = firm.tributary(&["sender", "ignore", "+15005550006"]);
    assert!(is_done, "{error}");
    assert!(firm.tributary(&["sender", "list"]).1.contains("ignored by"));
    assert!(firm.tributary(&["sender", "restore", "+15005550006"]).0);
    assert!(!firm.tributary(&["sender", "restore", "+15005550006"]).0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_adds_a_note_from_any_page_and_corrects_a_contact_in_the_browser() {
    let firm = Firm::new().await;
    let (world, url) = (&firm.house.world, &firm.house.app.url);
    let (_, ann) =
        firm.ask(&firm.key, "POST", "/contacts", json!({ "email": "ann@example.com", "first_name": "Ann" })).await;
    let browser = Browser::signed_in(&firm.house.app, world).await;
    browser.goto(&format!("{url}/settings/spend")).await;
    browser.click("details.add summary").await;
    browser.photograph("add-menu").await;
    browser.click("details.add a[href='/add/note']").await;
    assert!(browser.shows("Add a note", SOON).await);
    browser.photograph("add-note").await;
    browser.typed("input[name=contact]", "Nobody at all").await;
    browser.typed("input[name=title]", "Call with Ann").await;
    browser.click("form.writing button").await;
    assert!(browser.shows("No contact matches that", SOON).await, "{}", browser.text().await);
    browser.typed("input[name=contact]", "ann@example.com").await;
    browser.typed("textarea[name=text]", "She wants the copper window.").await;
    browser.click("form.writing button").await;
    assert!(browser.shows("Added. Search finds it", SOON).await, "{}", browser.text().await);
    assert!(browser.text().await.contains("copper window"));
    assert_eq!(firm.count("select count(*) from activities where type = 'note' and contact_id is not null").await, 1);

    let here = format!("{url}/clients/people/{}", ann["id"]);
    browser.goto(&here).await;
    assert!(browser.shows("Call with Ann", SOON).await);
    browser.click("#edit summary").await;
    browser.typed("#edit input[name=last_name]", "Lark").await;
    browser.click("#edit form button").await;
    assert!(browser.shows("Ann Lark", SOON).await, "{}", browser.text().await);
    browser.photograph("contact-edited").await;
    browser.click("#delete summary").await;
    browser.click("#delete button").await;
    assert!(browser.shows("The person was deleted", SOON).await, "{}", browser.text().await);
    let is_kept = async || firm.count("select count(*) from activities where contact_id is null").await == 1;
    assert!(wait_until(SOON, is_kept).await);
    browser.close().await;

    // Whoever may not write is offered nothing to add, and refused.
    let reader = firm.key(&[Scope::Read]).await;
    let page = client().get(format!("{url}/add/note")).bearer_auth(reader.reveal()).send().await.expect("an answer");
    assert_eq!(page.status().as_u16(), 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_contact_is_added_to_a_client_by_page_api_and_command_line_and_it_is_undone() {
    let firm = Firm::new().await;
    let (world, url) = (&firm.house.world, &firm.house.app.url);
    let written = "insert into client_intelligence (id, tenant_id, client_name, identity, keys, matched_marks)
         select w.id, $1, w.name, w.identity, tributary.client_keys('hand/' || w.id, w.identity), 1
         from (select gen_random_uuid() as id, name, jsonb_build_object('kind', 'organisation', 'names', jsonb_build_array(name)) as identity
               from unnest(array['Larkfield Landscaping', 'Tern Tiles']) name) w";
    let mut conn = world.conn().await;
    sqlx::query(written).bind(world.tenant_id.0).execute(&mut *conn).await.expect("clients");
    let (_, listed) = firm.ask(&firm.key, "GET", "/clients", Value::Null).await;
    let clients: Vec<&str> =
        listed["clients"].as_array().into_iter().flatten().filter_map(|one| one["id"].as_str()).collect();
    let [larkfield, tern] = clients[..] else { panic!("{listed}") };
    let new = json!({ "email": "ann@gmail.com", "first_name": "Ann", "last_name": "Lark" });
    let (_, ann) = firm.ask(&firm.key, "POST", "/contacts", new).await;
    let ann = ann["id"].as_i64().expect("a number");
    let client_of = async || firm.ask(&firm.key, "GET", &format!("/contacts/{ann}"), Value::Null).await.1;
    assert_eq!((&client_of().await["client"], &client_of().await["client_said"]), (&Value::Null, &Value::Null));

    // By API.
    let reader = firm.key(&[Scope::Read]).await;
    let add = format!("/clients/{larkfield}/contacts");
    assert_eq!(firm.ask(&reader, "POST", &add, json!({ "contact": ann })).await.0, 403);
    assert_eq!(firm.ask(&firm.key, "POST", &add, json!({ "contact": 999_999 })).await.0, 404);
    let (status, whole) = firm.ask(&firm.key, "POST", &add, json!({ "contact": ann })).await;
    assert_eq!((status, &whole["contacts"][0]["why"]), (200, &json!("joined by a person")), "{whole}");
    assert_eq!(firm.ask(&firm.key, "POST", &add, json!({ "contact": ann })).await.0, 409);
    let of = client_of().await;
    assert_eq!((&of["client"]["name"], &of["client_said"]["kind"]), (&json!("Larkfield Landscaping"), &json!("merge")));
    assert_eq!(firm.ask(&reader, "DELETE", &format!("/contacts/{ann}/client"), Value::Null).await.0, 403);
    assert_eq!(firm.ask(&firm.key, "DELETE", &format!("/contacts/{ann}/client"), Value::Null).await.0, 204);
    assert_eq!(firm.ask(&firm.key, "DELETE", &format!("/contacts/{ann}/client"), Value::Null).await.0, 404);

    // By command line, by names.
    let (is_done, said, error) = firm.tributary(&["client", "add-contact", "Tern Tiles", "Ann Lark"]);
    assert!(is_done && said.contains("Ann Lark belongs to Tern Tiles"), "{said}{error}");
    assert!(firm.tributary(&["contact", "show", "Ann Lark"]).1.contains("belongs to Tern Tiles"));
    let (is_done, said, error) = firm.tributary(&["contact", "rematch", "Ann Lark"]);
    assert!(is_done && said.contains("belongs to no client now"), "{said}{error}");
    let (is_done, _, error) = firm.tributary(&["contact", "rematch", "Ann Lark"]);
    assert!(!is_done && error.contains("add-contact"), "{error}");

    // On the client's page, and on the contact's.
    let browser = Browser::signed_in(&firm.house.app, world).await;
    browser.goto(&format!("{url}/clients/{larkfield}")).await;
    browser.typed("#add-person", "Nobody at all").await;
    browser.click("form[action$='/add-contact'] button").await;
    assert!(browser.shows("no contact matches that", SOON).await, "{}", browser.text().await);
    browser.typed("#add-person", "ann@gmail.com").await;
    browser.click("form[action$='/add-contact'] button").await;
    assert!(
        browser.shows("That contact belongs to this client now", SOON).await
            && browser.shows("Ann Lark belongs to Larkfield Landscaping", SOON).await,
        "{}",
        browser.text().await
    );
    browser.photograph("client-contact-added").await;
    browser.goto(&format!("{url}/clients/people/{ann}")).await;
    assert!(browser.shows("joined by a person", SOON).await, "{}", browser.text().await);
    browser.click("#belongs summary").await;
    browser.typed("#belongs input[name=client]", "Tern Tiles").await;
    browser.click("#belongs button").await;
    assert!(browser.shows("Saved. If that is wrong, undo it below", SOON).await, "{}", browser.text().await);
    assert_eq!(client_of().await["client"]["id"], tern);
    browser.photograph("contact-belongs").await;
    browser.click("form[action$='/match-again'] button").await;
    assert!(browser.shows("The address and the company decide again", SOON).await, "{}", browser.text().await);
    browser.close().await;
    assert_eq!(firm.count("select count(*) from client_decisions").await, 0, "undone without a trace");
}
