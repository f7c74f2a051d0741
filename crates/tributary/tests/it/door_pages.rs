//! The pages of the door in a real browser: adding channels, testing one, reading why something was refused, saying whose an event is; and text
//! from outside that stays text.

use std::time::Duration;

use domain::{Caller, Scope};
use engine::channels::NewChannel;
use fantoccini::Locator;
use serde_json::{Value, json};
use testkit::World;

use crate::app::{App, Folder, client};
use crate::browser::{Browser, serve};
use crate::intake::new_channel;

const SOON: Duration = Duration::from_secs(8);

impl Browser {
    pub async fn signed_in(app: &App, world: &World) -> Self {
        let browser = Self::start().await;
        let (_, key) = world.caller(world.tenant_id, &[Scope::Service]).await;
        browser.goto(&format!("{}/signin", app.url)).await;
        browser.typed("#key", key.reveal()).await;
        browser.click("#signin .button").await;
        assert!(browser.shows("All is well", SOON).await || browser.shows("no worker", SOON).await);
        browser
    }

    pub async fn click(&self, css: &str) {
        self.client.find(Locator::Css(css)).await.expect(css).click().await.expect(css);
    }

    pub async fn typed(&self, css: &str, text: &str) {
        let field = self.client.find(Locator::Css(css)).await.expect(css);
        field.clear().await.expect(css);
        field.send_keys(text).await.expect(css);
    }

    pub async fn script(&self, source: &str) -> Value {
        self.client.execute(source, vec![]).await.expect(source)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_adds_channels_tests_one_and_says_whose_an_event_is() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    let browser = Browser::signed_in(&app, &world).await;
    let channels = format!("{}/connections/webhooks", app.url);
    browser.goto(&channels).await;
    assert!(browser.shows("Add your first webhook", SOON).await, "{}", browser.text().await);
    browser.photograph("channels-empty").await;
    browser.click(".blank .button").await;
    // The gallery is narrowed while one types, and says what to use for what is not there.
    browser.typed("#find", "imap").await;
    assert!(browser.shows("forward to an inbound address", SOON).await, "{}", browser.text().await);
    assert!(!browser.text().await.contains("HubSpot"), "{}", browser.text().await);
    browser.photograph("connections-absent").await;
    browser.typed("#find", "whatsapp").await;
    assert!(browser.shows("2 found", SOON).await, "{}", browser.text().await);
    browser.client.find(Locator::LinkText("Twilio")).await.expect("a link").click().await.expect("a click");
    assert!(browser.shows("Receive from Twilio", SOON).await, "{}", browser.text().await);
    browser.photograph("channel-add").await;
    browser.typed("#name", "Support line").await;
    browser.typed("#secret", "too short").await;
    browser.click("#add-webhook .button").await;
    assert!(browser.shows("auth token has 9 characters", SOON).await, "{}", browser.text().await);
    browser.photograph("channel-add-refused").await;
    browser.typed("#secret", "0123456789abcdef0123456789abcdef").await;
    browser.click("#add-webhook .button").await;
    assert!(browser.shows("The webhook is ready", SOON).await, "{}", browser.text().await);
    let url = browser.script("return document.querySelector('.copy input').value").await;
    assert!(url.as_str().is_some_and(|url| url.ends_with("#rc=5&rp=all")), "{url}");
    let own_page = browser.client.current_url().await.expect("a URL").to_string();
    assert!(browser.shows("Waiting for the first event", SOON).await, "{}", browser.text().await);
    browser.photograph("channel-new").await;
    browser.click(".head .button").await;
    assert!(browser.shows("came through", SOON).await, "{}", browser.text().await);
    assert!(browser.shows("A test message, signed as Twilio would", SOON).await, "{}", browser.text().await);

    // Refused while the page is open: it says so without a reload.
    let target = url.as_str().and_then(|url| url.split('#').next()).expect("a URL").to_owned();
    let refused = client().post(&target).body("x=1").send().await.expect("an answer");
    assert_eq!(refused.status().as_u16(), 401);
    assert!(browser.shows("it has no X-Twilio-Signature", SOON).await, "{}", browser.text().await);
    assert!(browser.shows("Let the proxy pass X-Twilio-Signature on", SOON).await, "{}", browser.text().await);
    assert!(browser.shows("Events arrive", SOON).await, "{}", browser.text().await);
    browser.photograph("channel").await;

    browser.goto(&format!("{channels}?add")).await;
    browser.client.find(Locator::LinkText("Generic webhook")).await.expect("a link").click().await.expect("a click");
    assert!(browser.shows("Receive from any sender", SOON).await, "{}", browser.text().await);
    browser.typed("#name", "Web shop").await;
    browser.click("#add-webhook .button").await;
    assert!(browser.shows("Bearer key", SOON).await, "{}", browser.text().await);
    // The secrets are masked until somebody asks for them.
    let secrets = "return [...document.querySelectorAll('.copy input')].map(field => field.value).join(' ')";
    let masked = browser.script(secrets).await;
    assert!(masked.as_str().is_some_and(|said| said.contains("••••") && !said.contains("whsec_")), "{masked}");
    browser.click("form[action$='/reveal'] button").await;
    assert!(browser.shows("Hide them again", SOON).await, "{}", browser.text().await);
    let shown = browser.script(secrets).await;
    assert!(shown.as_str().is_some_and(|said| said.contains("whsec_") && said.contains("curl -sS")), "{shown}");
    browser.photograph("channel-generic").await;
    browser.goto(&channels).await;
    assert!(browser.shows("Support line", SOON).await && browser.shows("Web shop", SOON).await);
    browser.photograph("channels").await;
    let columns = browser
        .script("return getComputedStyle(document.querySelector('.doors')).gridTemplateColumns.split(' ').length")
        .await;
    assert_eq!(columns, 2, "two columns on a desktop");
    browser.click(".door .toggle").await;
    assert!(browser.shows("refuses all events until you enable it", SOON).await);
    assert!(browser.shows("inactive", SOON).await);
    browser.click(".door .confirm summary").await;
    browser.click(".door .confirm button").await;
    assert!(browser.shows("The webhook was deleted", SOON).await);
    assert!(!browser.text().await.contains("Web shop"), "{}", browser.text().await);

    // Settings, and new secrets.
    browser.goto(&own_page).await;
    browser.typed("#name", "Support, after hours").await;
    browser.click("section form.stack button").await;
    assert!(browser.shows("Saved.", SOON).await && browser.shows("Support, after hours", SOON).await);

    // It has no contact until a person links one.
    browser.goto(&format!("{}/inbox/unrecognised", app.url)).await;
    assert!(browser.shows("+15005550006", SOON).await, "{}", browser.text().await);
    browser.photograph("unmatched").await;
    browser.click("button[name=is_new]").await;
    assert!(browser.shows("Every sender is recognised", SOON).await, "{}", browser.text().await);
    browser.photograph("unmatched-empty").await;
    browser.goto(&format!("{}/clients/people", app.url)).await;
    assert!(browser.shows("+15005550006", SOON).await, "{}", browser.text().await);
    browser.typed("input[name=email]", "no address").await;
    browser.click(".after button").await;
    assert!(browser.shows("is not an e-mail address", SOON).await, "{}", browser.text().await);
    browser.typed("input[name=email]", "ann@example.com").await;
    browser.typed("input[name=first_name]", "Ann").await;
    browser.click(".after button").await;
    assert!(browser.shows("added", SOON).await, "{}", browser.text().await);
    browser.goto(&format!("{}/clients/people", app.url)).await;
    browser.photograph("contacts").await;
    browser.client.find(Locator::LinkText("+15005550006")).await.expect("a link").click().await.expect("a click");
    assert!(browser.shows("A test message", SOON).await, "{}", browser.text().await);
    browser.photograph("contact").await;
    browser.click(".act h2 a").await;
    assert!(browser.shows("Content", SOON).await, "{}", browser.text().await);
    browser.photograph("activity").await;
    browser.click("button[formaction$='/skip']").await;
    assert!(browser.shows("It was skipped", SOON).await, "{}", browser.text().await);
    browser.photograph("activity-failed").await;
    browser.goto(&format!("{}/clients/people?q=nobody-like-that", app.url)).await;
    assert!(browser.shows("Nobody matches that", SOON).await);
    browser.close().await;
}

/// S15: in every field that a page shows.
const ATTACKS: &[&str] = &[
    "<script>window.pwned=1</script>",
    "<img src=x onerror=\"window.pwned=2\">",
    "\"><svg onload=window.pwned=3>",
    "'\"><iframe srcdoc=\"<script>parent.pwned=4</script>\">",
    "{{7*7}}{% include \"x\" %}",
    "javascript:window.pwned=5",
    "</title></textarea></pre><b id=escaped>bold</b>",
    "\u{202e}txt.exe\u{202c} \u{200b}hidden \u{7}bell \u{1b}[31mred",
];

/// S15.
#[tokio::test(flavor = "multi_thread")]
async fn text_from_outside_stays_text_on_every_page() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    let browser = Browser::signed_in(&app, &world).await;
    let mut pages = vec![
        "/".to_owned(),
        "/clients/people".into(),
        "/inbox/unrecognised".into(),
        "/inbox".into(),
        "/system/dead-letters".into(),
        "/system/agents".into(),
        "/connections/webhooks".into(),
        "/search?q=attack".into(),
    ];
    let mut conn = world.conn().await;
    for (nth, attack) in ATTACKS.iter().enumerate() {
        let visible: String = attack.chars().filter(|c| !c.is_control()).collect();
        let new = NewChannel { name: visible.clone(), ..new_channel("generic") };
        let id = engine::channels::add(&world.env, &Caller::local("test", world.tenant_id, false), new)
            .await
            .expect("a channel")
            .id;
        let contact: i64 = sqlx::query_scalar(
            "insert into contacts (tenant_id, first_name, last_name, company, email, tags) values ($1, $2, $2, $2, $3, array[$2]) returning id",
        )
        .bind(world.tenant_id.0)
        .bind(attack)
        .bind(format!("a{nth}@example.com"))
        .fetch_one(&mut *conn)
        .await
        .expect("a contact");
        sqlx::query("insert into tributary.channel_refusals (tenant_id, channel_id, status, reason, address) values ($1, $2, 401, $3, $3)")
            .bind(world.tenant_id.0)
            .bind(id.0)
            .bind(attack)
            .execute(&mut *conn)
            .await
            .expect("a refusal");
        let person: i64 = sqlx::query_scalar(
            "insert into sales (tenant_id, first_name, last_name, email) values ($1, $2, $2, $3 || $2) returning id",
        )
        .bind(world.tenant_id.0)
        .bind(attack)
        .bind(nth.to_string())
        .fetch_one(&mut *conn)
        .await
        .expect("a person");
        sqlx::query(
            "insert into crm_processing_nodes (tenant_id, sales_id, app_name, device_name) values ($1, $2, $3, $3)",
        )
        .bind(world.tenant_id.0)
        .bind(person)
        .bind(attack)
        .execute(&mut *conn)
        .await
        .expect("a device");
        let known = format!("a{nth}@example.com");
        for (from, status) in [(&*known, "failed"), (attack, "raw"), (attack, "processing"), (&known, "completed")] {
            let activity: uuid::Uuid = sqlx::query_scalar(
                "insert into activities (tenant_id, type, processing_status, raw_data, processed_data, metadata, provider_id, sales_id, locked_at)
                 values ($1, 'note', $2, $3, $4, $5, $6, $7, case when $2 = 'processing' then now() end) returning id",
            )
            .bind(world.tenant_id.0)
            .bind(status)
            .bind(json!({ "source_type": "text", "content": attack, "subject": attack }))
            .bind(json!({ "summary": attack, "facts": [attack, { (*attack): attack }], "transcript": attack }))
            .bind(json!({ "from": from, "to": attack, "error": { "type": attack, "message": attack }, "other": { (*attack): attack } }))
            .bind(id.0)
            .bind(person)
            .fetch_one(&mut *conn)
            .await
            .expect("an activity");
            sqlx::query(
                "insert into activity_failures (tenant_id, original_activity_id, failure_reason, raw_data)
                 select tenant_id, id, $2, raw_data from activities where id = $1 and processing_status = 'failed'",
            )
            .bind(activity)
            .bind(attack)
            .execute(&mut *conn)
            .await
            .expect("a dead letter");
            sqlx::query("insert into tributary.activity_attachments (tenant_id, activity_id, ordinal, name, content_type, bytes, blob_key) values ($1, $2, 0, $3, $3, 1, 'x')")
                .bind(world.tenant_id.0)
                .bind(activity)
                .bind(attack)
                .execute(&mut *conn)
                .await
                .expect("a file");
            pages.push(format!("/activities/{activity}"));
        }
        pages.extend([
            format!("/connections/webhooks/{}", id.0),
            format!("/clients/people/{contact}"),
            format!("/inbox?person={person}"),
        ]);
    }
    for page in &pages {
        browser.goto(&format!("{}{page}", app.url)).await;
        let found = browser
            .script(
                "return [String(window.pwned), document.scripts.length, document.querySelectorAll('img, iframe, #escaped, main svg[onload]').length, \
                 [...document.querySelectorAll('*')].filter(e => [...e.attributes].some(a => a.name.startsWith('on') || (a.name === 'href' && a.value.startsWith('javascript:')))).length, \
                 /[\\u202a-\\u202e\\u200b]/.test(document.body.innerText)]",
            )
            .await;
        assert_eq!(found, json!(["undefined", 1, 0, 0, false]), "S15: {page}");
    }
    println!("{} pages with {} attacks in every field", pages.len(), ATTACKS.len());
    browser.close().await;
}
