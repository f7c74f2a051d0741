//! Activity, Nodes and Dead letters in a real browser: a card for every state that goes through them while one looks, devices that do as they are
//! told, and what failed for good brought back.

use std::time::Duration;

use domain::{Scope, Secret};
use serde_json::{Value, json};
use testkit::{World, wait_until};
use uuid::Uuid;

use crate::app::{App, Folder, client};
use crate::browser::{Browser, serve};
use crate::http::Stream;
use crate::rest::{Agent, agent};

const SOON: Duration = Duration::from_secs(8);
const CLAIM: &str = "rpc/claim_next_pending_activity";

/// An activity as somebody's SQL may have left it: `status`, `type`, `direction`, `raw`, `result`, `metadata`, `person`, `tries`, and its age in `minutes`.
async fn put(world: &World, what: Value) -> Uuid {
    sqlx::query_scalar(
        "insert into activities (tenant_id, type, direction, processing_status, raw_data, processed_data, metadata, sales_id, lock_epoch, locked_at, created_at)
         select $1, coalesce(w ->> 'type', 'note'), coalesce(w ->> 'direction', 'inbound'), coalesce(w ->> 'status', 'raw'), w -> 'raw', w -> 'result',
             coalesce(w -> 'metadata', '{}'), (w ->> 'person')::int8, coalesce((w ->> 'tries')::int, 0),
             case when w ->> 'status' = 'processing' then now() end, now() - make_interval(mins => coalesce((w ->> 'minutes')::int, 0))
         from (select $2::jsonb as w) given returning id",
    )
    .bind(world.tenant_id.0)
    .bind(what)
    .fetch_one(&mut *world.conn().await)
    .await
    .expect("an activity")
}

async fn run(world: &World, sql: &'static str) {
    sqlx::raw_sql(sql).execute(&mut *world.conn().await).await.expect(sql);
}

async fn number(world: &World, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(&mut *world.conn().await).await.expect(sql)
}

async fn person(world: &World, email: &str) -> i64 {
    let mut conn = world.conn().await;
    store::people::ensure(&mut conn, world.tenant_id, email).await.expect("a person").0
}

/// A heartbeat as supabase-js sends it; returns the row, in which the device reads what it is told.
async fn beat(agent: &Agent<'_>, body: Value) -> Value {
    let prefer = [("prefer", "resolution=merge-duplicates,return=representation")];
    let path = "crm_processing_nodes?on_conflict=sales_id,app_name,device_name";
    let (status, mut rows) = agent.ask("POST", path, &prefer, Some(body)).await;
    assert_eq!(status, 201, "{rows}");
    rows[0].take()
}

async fn ask(app: &App, key: &Secret, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
    let request = client().request(method.parse().expect("a method"), format!("{}{path}", app.url));
    let request = body.iter().fold(request.bearer_auth(key.reveal()), |request, body| request.json(body));
    let answer = request.send().await.expect("an answer");
    (answer.status().as_u16(), answer.json().await.unwrap_or_default())
}

impl Browser {
    /// Waits until a card says this, and returns its text.
    async fn card_says(&self, id: Uuid, words: &str) -> bool {
        let text = format!("return document.querySelector('[data-key=\"{id}\"]')?.innerText ?? ''");
        let says = async || self.script(&text).await.as_str().is_some_and(|text| text.contains(words));
        wait_until(SOON, says).await
    }

    async fn assert_card(&self, id: Uuid, all: &[&str]) {
        for words in all {
            assert!(self.card_says(id, words).await, "the card lacks {words:?}: {}", self.text().await);
        }
    }
}

const RECORDING: &str = "https://api.example/RE1";

#[tokio::test(flavor = "multi_thread")]
async fn every_state_has_its_card_on_every_timeline() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    let browser = Browser::signed_in(&app, &world).await;
    browser.goto(&format!("{}/inbox", app.url)).await;
    assert!(browser.shows("Nothing has arrived yet", SOON).await, "{}", browser.text().await);
    browser.photograph("feed-empty").await;

    let (bob, eve) = (person(&world, "bob@office.test").await, person(&world, "eve@office.test").await);
    run(&world, "update sales set allow_remote_processing = false where email = 'eve@office.test'").await;
    let contact = "insert into contacts (tenant_id, first_name, last_name, email, phone_number)
        select id, 'Ann', 'Summers', 'ann@example.com', '+14155550100' from tenants returning id";
    let contact = number(&world, contact).await;
    let text = |subject: &str, content: &str| json!({ "source_type": "text", "subject": subject, "content": content });
    let recording = json!({ "source_type": "url", "content": RECORDING, "format": "audio/wav" });
    let now = chrono::Utc::now();
    let error = |kind: &str, message: &str| json!({ "type": kind, "message": message, "timestamp": now.to_rfc3339() });
    let letter = put(&world, json!({ "type": "email", "status": "completed", "minutes": 50, "raw": text("Invoice INV-2041", "Please find it attached. It is due in June."),
        "metadata": { "from": "ann@example.com" }, "result": { "summary": "An invoice, due in June.", "facts": ["refers to INV-2041", "due in June"] } })).await;
    let call = put(&world, json!({ "type": "call", "status": "completed", "minutes": 40, "raw": recording, "metadata": { "from": "+1 415 555 0100" },
        "result": { "summary": "Ann asks for a second espresso machine.", "facts": ["wants one more machine"], "transcript": "Hello?\nThis is Ann. We need one more." } })).await;
    let failed = put(&world, json!({ "type": "call", "status": "failed", "minutes": 30, "tries": 2, "person": bob, "raw": recording, "direction": "outbound",
        "metadata": { "to": "+14155550100", "retry_count": 1, "error": error("TranscriptionError", "the audio ends in the middle") } })).await;
    let dead = put(&world, json!({ "type": "sms", "status": "failed", "minutes": 20, "tries": 4, "raw": text("", "Is anybody there?"),
        "metadata": { "from": "+15005550006", "retry_count": 3, "error": error("LLMError", "503 Service Unavailable") } })).await;
    run(
        &world,
        "insert into activity_failures (tenant_id, original_activity_id, failure_reason, raw_data)
        select tenant_id, id, 'LLMError: 503', raw_data from activities where type = 'sms'",
    )
    .await;
    let skipped = put(
        &world,
        json!({ "type": "task", "status": "failed", "minutes": 15, "raw": text("Buy beans", ""),
        "metadata": { "error": { "type": "Skipped", "message": "skipped by Bob" } } }),
    )
    .await;
    let working = put(&world, json!({ "type": "meeting", "status": "processing", "minutes": 1, "tries": 1, "raw": text("Monday's meeting", "Who was there, and what they said.") })).await;
    let bobs = put(&world, json!({ "type": "whatsapp", "minutes": 0, "person": bob, "raw": text("", "Can you call me back?"), "metadata": { "from": "+15005550007" } })).await;
    let eves = put(&world, json!({ "type": "email", "minutes": 90, "person": eve, "raw": text("For Eve alone", "…"), "metadata": { "from": "x@example.com" } })).await;
    let waiting =
        put(&world, json!({ "type": "call", "minutes": 0, "raw": recording, "metadata": { "from": "+14155550100" } }))
            .await;

    browser.goto(&format!("{}/inbox", app.url)).await;
    browser
        .assert_card(letter, &["E-mail from Ann Summers", "Invoice INV-2041", "An invoice, due in June.", "Details"])
        .await;
    browser.assert_card(call, &["Call from Ann Summers", "A recording", "second espresso machine", "Details"]).await;
    browser
        .assert_card(
            failed,
            &[
                "Call to Ann Summers",
                "The recording could not be transcribed: the audio ends in the middle",
                "tried 2 times, retried automatically in 59 min",
                "Retry",
                "Skip",
                "bob",
            ],
        )
        .await;
    browser
        .assert_card(
            dead,
            &["SMS from +15005550006", "The language model could not be asked: 503", "tried 4 times, given up", "dead"],
        )
        .await;
    browser.assert_card(skipped, &["skipped by Bob", "Retry"]).await;
    browser.assert_card(working, &["Processing content…"]).await;
    for id in [bobs, eves, waiting] {
        browser.assert_card(id, &["No agent is online that could process it"]).await;
    }
    assert!(!browser.text().await.contains(RECORDING), "an address says nothing to people");
    let players =
        browser.script("return [...document.querySelectorAll('audio')].map(audio => audio.getAttribute('src'))").await;
    assert_eq!(
        players,
        json!([
            format!("/activities/{waiting}/recording"),
            format!("/activities/{failed}/recording"),
            format!("/activities/{call}/recording")
        ])
    );
    let motion = "return getComputedStyle(document.querySelector('.dots i')).animationName";
    assert_eq!(browser.script(motion).await, "bounce");
    browser.reduce_motion().await;
    assert_eq!(browser.script(motion).await, "none", "a reader who wants no motion sees none");

    // Somebody's agent comes: what it could take says so, and what is another's says from when on.
    let agents = agent(&world, &app, "ann@office.test").await;
    let ann = person(&world, "ann@office.test").await;
    beat(&agents, json!({ "sales_id": ann, "device_name": "laptop" })).await;
    browser.assert_card(waiting, &["Waiting for an agent", "done in about 40 min"]).await;
    browser.assert_card(bobs, &["Waiting for an agent of bob", "others may take it in"]).await;
    browser.assert_card(eves, &["No agent is online that could process it"]).await;
    browser.photograph("feed").await;

    // A person's, a contact's, and only theirs.
    browser.goto(&format!("{}/inbox?person={bob}", app.url)).await;
    browser.assert_card(bobs, &["Can you call me back?"]).await;
    browser.assert_card(failed, &["The recording could not be transcribed"]).await;
    assert_eq!(browser.script("return document.querySelectorAll('.act').length").await, 2);
    browser.photograph("feed-person").await;
    browser.goto(&format!("{}/clients/people/{contact}", app.url)).await;
    browser.assert_card(call, &["second espresso machine"]).await;
    assert_eq!(browser.script("return document.querySelectorAll('.act').length").await, 4);
    browser.photograph("contact-timeline").await;

    // Retry, and back where it was pressed.
    browser.click(&format!("button[formaction='/activities/{failed}/retry']")).await;
    assert!(browser.shows("It waits for an agent again", SOON).await);
    assert!(browser.client.current_url().await.expect("a URL").path().ends_with(&format!("/clients/people/{contact}")));
    assert!(browser.card_says(failed, "Waiting for an agent").await, "{}", browser.text().await);
    browser.goto(&format!("{}/activities/{call}", app.url)).await;
    assert!(browser.shows("Transcript", SOON).await && browser.shows("wants one more machine", SOON).await);
    browser.click("[data-key=transcript] summary").await;
    browser.photograph("activity-call").await;
    browser.goto(&format!("{}/inbox?person=999999", app.url)).await;
    assert!(browser.shows("no such person", SOON).await, "{}", browser.text().await);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_goes_through_its_states_while_one_looks_and_what_plays_goes_on() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    let browser = Browser::signed_in(&app, &world).await;
    let ann = agent(&world, &app, "ann@office.test").await;
    for n in 0..12 {
        let done = json!({ "status": "completed", "minutes": 30 + n, "raw": { "source_type": "text", "content": format!("An older note, number {n}") },
            "result": { "summary": "An older note.", "transcript": "Its words." } });
        put(&world, done).await;
    }
    let recording = json!({ "source_type": "url", "content": RECORDING });
    let call =
        put(&world, json!({ "type": "call", "minutes": 10, "raw": recording, "metadata": { "from": "+14155550100" } }))
            .await;
    browser.goto(&format!("{}/inbox", app.url)).await;
    browser.click("h1").await; // a browser plays nothing to somebody who did nothing
    assert!(browser.card_says(call, "No agent is online").await);
    // From here on the page is never reloaded. Its recording plays: a tone that needs no file.
    let play = "window.isSamePage = true; window.audio = document.querySelector('audio'); const sound = new AudioContext(); \
        audio.srcObject = sound.createMediaStreamDestination().stream; audio.muted = true; audio.play(); audio.focus()";
    browser.script(play).await;
    let plays = "return window.isSamePage === true && audio.isConnected && !audio.paused && document.activeElement === audio && document.querySelector('audio') === audio";
    assert!(wait_until(SOON, async || browser.script(plays).await == true).await, "nothing plays");

    let (status, claimed) = ann.ask("POST", CLAIM, &[], Some(json!({}))).await;
    assert_eq!((status, &claimed[0]["id"]), (200, &json!(call)), "{claimed}");
    browser.assert_card(call, &["Processing content…"]).await;
    assert_eq!(browser.script(plays).await, true, "taken");
    let row = format!("activities?id=eq.{call}&lock_epoch=eq.1");
    let done = json!({ "processing_status": "completed",
        "processed_data": { "summary": "A call about tea.", "facts": ["wants tea"], "transcript": "Tea, please." } });
    assert_eq!(ann.ask("PATCH", &row, &[], Some(done)).await.0, 204);
    browser.assert_card(call, &["A call about tea.", "Details"]).await;
    assert!(!browser.text().await.contains("Processing content"), "{}", browser.text().await);
    assert_eq!(browser.script(plays).await, true, "completed");

    // Unfolded, and scrolled to: neither moves when something new comes on top and the card itself changes.
    let unfold = format!(
        "window.card = document.querySelector('[data-key=\"{call}\"]'); card.querySelector('details').open = true; \
        document.querySelector('.act:last-child').scrollIntoView(); window.seen = document.querySelector('.act:last-child'); window.top_ = seen.getBoundingClientRect().top"
    );
    browser.script(&unfold).await;
    let (_, key) = world.caller(world.tenant_id, &[Scope::Write, Scope::Read]).await;
    let contact = json!({ "phone_number": "+14155550100", "first_name": "Ann" });
    assert_eq!(ask(&app, &key, "POST", "/api/v1/contacts", Some(contact)).await.0, 201);
    let newest =
        put(&world, json!({ "type": "sms", "raw": { "source_type": "text", "content": "The newest of all" } })).await;
    // What is new waits until it is asked for.
    assert!(browser.shows("1 new", SOON).await, "{}", browser.text().await);
    browser.assert_card(call, &["Call from Ann"]).await;
    assert!(!browser.text().await.contains("The newest of all"), "{}", browser.text().await);
    browser.script("document.querySelector('.arrivals button').click()").await;
    browser.assert_card(newest, &["The newest of all"]).await;
    let kept = format!(
        "return [document.querySelector('[data-key=\"{call}\"]') === card, card.querySelector('details').open, \
        Math.abs(seen.getBoundingClientRect().top - top_) < 2, document.querySelector('.act').dataset.key === '{newest}', window.isSamePage]"
    );
    assert_eq!(browser.script(&kept).await, json!([true, true, true, true, true]));
    assert_eq!(browser.script(plays).await, true, "linked");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_does_as_its_page_says_and_pages_hear_of_it() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    let browser = Browser::signed_in(&app, &world).await;
    browser.goto(&format!("{}/system/agents", app.url)).await;
    assert!(browser.shows("No device has connected yet", SOON).await, "{}", browser.text().await);
    browser.photograph("nodes-empty").await;
    let ann = agent(&world, &app, "ann@office.test").await;
    let ann_id = person(&world, "ann@office.test").await;
    let id = put(&world, json!({ "raw": { "source_type": "text", "content": "x" } })).await;
    put(&world, json!({ "raw": { "source_type": "text", "content": "y" } })).await;

    // Told once that it is there; that it still is, is no news.
    let (_, key) = world.caller(world.tenant_id, &[Scope::Read, Scope::Write]).await;
    let mut stream = Stream::open(&app, &key, None).await;
    assert!(stream.has("200 OK", SOON).await);
    let ready = json!({ "sales_id": ann_id, "device_name": "Ann's laptop", "status": "ready", "processed_count": 41 });
    let row = beat(&ann, ready.clone()).await;
    assert!(stream.has("\"nodes\"", SOON).await, "{}", stream.1);
    stream.1.clear();
    for _ in 0..3 {
        beat(&ann, ready.clone()).await;
    }
    assert!(!stream.has("\"nodes\"", Duration::from_millis(500)).await, "{}", stream.1);
    assert!(browser.shows("Ann's laptop", SOON).await && browser.shows("idle", SOON).await, "{}", browser.text().await);
    assert!(browser.shows("2 for everyone", SOON).await, "{}", browser.text().await);
    let (_, listed) = ask(&app, &key, "GET", "/api/v1/nodes", None).await;
    assert_eq!(
        listed["claimable"],
        json!({ "now": 2, "own": 0, "global": 2, "stale": 0, "later": 0, "nobody": 0, "is_more": false })
    );

    ann.ask("POST", CLAIM, &[], Some(json!({}))).await;
    let busy =
        json!({ "sales_id": ann_id, "device_name": "Ann's laptop", "status": "processing", "current_activity_id": id });
    beat(&ann, busy).await;
    assert!(stream.has("\"nodes\"", SOON).await);
    assert!(browser.shows("processing 1", SOON).await, "{}", browser.text().await);
    browser.photograph("nodes").await;

    browser.click(".node .toggle").await;
    assert!(browser.shows("It is off", SOON).await && browser.shows("Off", SOON).await);
    browser.typed(".node input[type=number]", "7").await;
    browser.click(".at-once button").await;
    assert!(browser.shows("Saved.", SOON).await, "{}", browser.text().await);
    let told = beat(&ann, ready.clone()).await;
    assert_eq!((&told["enabled"], &told["concurrency"]), (&json!(false), &json!(7)));
    assert!(browser.shows("without an agent\n1", SOON).await);
    let (_, listed) = ask(&app, &key, "GET", "/api/v1/nodes", None).await;
    assert_eq!(
        (&listed["claimable"]["nobody"], &listed["nodes"][0]["enabled"]),
        (&json!(1), &json!(false)),
        "{listed}"
    );

    // Silent for three minutes, which only the owner can make. What a person says to it then does not make it look alive.
    let silent = "set role tributary_owner; alter table crm_processing_nodes disable trigger user;
        update crm_processing_nodes set last_heartbeat = now() - interval '3 minutes'; alter table crm_processing_nodes enable trigger user";
    sqlx::raw_sql(silent).execute(&mut world.login_conn().await).await.expect("silence");
    assert!(browser.shows("offline", SOON).await, "{}", browser.text().await);
    browser.click(".node .toggle").await;
    assert!(browser.shows("It is on", SOON).await && browser.shows("offline", SOON).await, "{}", browser.text().await);
    browser.photograph("nodes-offline").await;

    let node = format!("/api/v1/nodes/{}", row["id"].as_str().expect("an id"));
    let (status, changed) = ask(&app, &key, "PATCH", &node, Some(json!({ "concurrency": 3 }))).await;
    assert_eq!(
        (status, &changed["concurrency"], &changed["enabled"], &changed["state"]),
        (200, &json!(3), &json!(true), &json!("offline"))
    );
    let (_, reader) = world.caller(world.tenant_id, &[Scope::Read]).await;
    let stranger = world.caller(world.other_tenant("somebody else").await, &[Scope::Service]).await.1;
    for (key, body, wanted) in [
        (&key, json!({ "concurrency": 0 }), 400),
        (&key, json!({ "concurrency": 65 }), 400),
        (&key, json!({ "status": "ready" }), 422),
        (&reader, json!({ "enabled": false }), 403),
        (&stranger, json!({ "enabled": false }), 404),
    ] {
        let (status, answer) = ask(&app, key, "PATCH", &node, Some(body.clone())).await;
        assert_eq!(status, wanted, "{body}: {answer}");
    }
    let (_, theirs) = ask(&app, &stranger, "GET", "/api/v1/nodes", None).await;
    assert_eq!((&theirs["nodes"], &theirs["claimable"]["nobody"]), (&json!([]), &json!(0)), "S17");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_for_good_is_told_replayed_and_can_fail_for_good_again() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    let browser = Browser::signed_in(&app, &world).await;
    let letters = format!("{}/system/dead-letters", app.url);
    browser.goto(&letters).await;
    assert!(browser.shows("Nothing has failed for good", SOON).await, "{}", browser.text().await);
    let mut ids = Vec::new();
    for n in 0..3 {
        let error = json!({ "type": "DownloadError", "message": format!("404 for number {n}"), "timestamp": "2020-01-01T00:00:00Z" });
        let what = json!({ "status": "failed", "tries": 4, "minutes": 100, "raw": { "source_type": "text", "content": format!("letter {n}") },
            "metadata": { "from": "ann@example.com", "retry_count": 3, "error": error } });
        ids.push(put(&world, what).await);
    }
    let bury = "select tributary.retry_failed()::int8";
    assert_eq!(number(&world, bury).await, 0, "none goes round again");
    assert!(browser.shows("DownloadError: 404 for number 2", SOON).await, "{}", browser.text().await);
    browser.photograph("dead-letters").await;
    browser.goto(&app.url).await;
    assert!(browser.shows("3 activities failed for good", SOON).await, "{}", browser.text().await);
    browser.click(".finding a[href='/system/dead-letters']").await;

    // One, then it fails again and is buried again: nothing of its first death is in the way.
    browser.click(&format!("[data-key='{}'] form button", ids[0])).await;
    assert!(browser.shows("waits for an agent again", SOON).await, "{}", browser.text().await);
    assert_eq!(number(&world, "select count(*) from activity_failures").await, 2);
    let clean = "select count(*) from activities where processing_status = 'raw' and not metadata ?| array['error', 'retry_count']";
    assert_eq!(number(&world, clean).await, 1);
    run(&world, "update activities set processing_status = 'failed', metadata = metadata || '{\"retry_count\": 3, \"error\": {\"type\": \"LLMError\", \"message\": \"again\", \"timestamp\": \"2020-01-01T00:00:00Z\"}}' where processing_status = 'raw'").await;
    assert_eq!(number(&world, bury).await, 0);
    assert_eq!(
        number(&world, "select count(*) from activity_failures where failure_reason = 'LLMError: again'").await,
        1
    );
    assert!(browser.shows("LLMError: again", SOON).await, "{}", browser.text().await);

    // Programs, and those of somebody else.
    let (_, key) = world.caller(world.tenant_id, &[Scope::Read, Scope::Write]).await;
    let stranger = world.caller(world.other_tenant("somebody else").await, &[Scope::Service]).await.1;
    let (_, listed) = ask(&app, &key, "GET", "/api/v1/dead-letters?limit=2", None).await;
    assert_eq!(
        (listed["dead_letters"].as_array().map(Vec::len), listed["dead_letters"][0]["activity"]["id"].as_str()),
        (Some(2), Some(&*ids[0].to_string()))
    );
    let (_, rest) =
        ask(&app, &key, "GET", &format!("/api/v1/dead-letters?limit=2&before={}", listed["next_before"]), None).await;
    assert_eq!(
        (rest["dead_letters"].as_array().map(Vec::len), &rest["next_before"]),
        (Some(1), &Value::Null),
        "{rest}"
    );
    assert_eq!(ask(&app, &stranger, "GET", "/api/v1/dead-letters", None).await.1["dead_letters"], json!([]), "S17");
    let replay = format!("/api/v1/dead-letters/{}/replay", ids[1]);
    assert_eq!(ask(&app, &stranger, "POST", &replay, None).await.0, 404, "S17");
    for path in [format!("/activities/{}", ids[1]), "/inbox?person=1".into()] {
        assert_eq!(ask(&app, &stranger, "GET", &path, None).await.0, 404, "S17: {path}");
    }
    assert_eq!(ask(&app, &key, "POST", &replay, None).await.0, 204);
    assert_eq!(ask(&app, &key, "POST", &replay, None).await.0, 404, "it is none any more");

    // Skipped ones wait for nobody; then all that are left.
    browser.goto(&letters).await;
    browser.click(&format!("[data-key='{}'] button[formaction$='/skip']", ids[2])).await;
    assert!(browser.shows("It was skipped", SOON).await && !browser.text().await.contains("number 2"));
    browser.click("#replay-all summary").await;
    assert!(browser.shows("1 activity will wait for an agent again", SOON).await);
    browser.photograph("dead-letters-replay").await;
    browser.click("#replay-all button").await;
    assert!(browser.shows("Nothing has failed for good", SOON).await, "{}", browser.text().await);
    assert_eq!(number(&world, "select count(*) from activities where processing_status = 'raw'").await, 2);
    assert_eq!(number(&world, "select count(*) from activity_failures").await, 0);
    browser.close().await;
}
