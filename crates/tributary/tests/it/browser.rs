//! The pages in a real browser: signing in, a worker's life and death, a dead item's return. Every page is photographed.

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use domain::{Scope, Secret};
use fantoccini::{Client, ClientBuilder, Locator};
use serde_json::{Value, json};
use testkit::process::{Start, Worker};
use testkit::{World, stays_true, wait_until};

use crate::app::{App, BINARY, Folder, client, command, free_port, get, run};
use crate::intake::sign;

/// Debian's Chromium, driven by its own driver.
pub struct Browser {
    pub client: Client,
    driver: Child,
    driver_url: String,
    _profile: Folder,
}

impl Browser {
    pub async fn start() -> Self {
        let port = free_port();
        let mut driver = Command::new("chromedriver");
        driver.arg(format!("--port={port}")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let driver = driver.process_group(0).spawn().expect("chromedriver; ./test installs it");
        let driver_url = format!("http://127.0.0.1:{port}");
        assert!(
            wait_until(Duration::from_secs(20), async || get(&driver_url, "/status").await.0 == 200).await,
            "chromedriver does not answer"
        );
        let profile = Folder::new();
        let mut args: Vec<String> = [
            "--headless",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
            "--window-size=1280,900",
        ]
        .map(String::from)
        .to_vec();
        if store::embedded::is_root() {
            args.push("--no-sandbox".into());
        }
        args.push(format!("--user-data-dir={}", profile.0.display()));
        let capabilities = json!({ "goog:chromeOptions": { "args": args } });
        let client = ClientBuilder::new(hyper_util::client::legacy::connect::HttpConnector::new())
            .capabilities(capabilities.as_object().expect("an object").clone())
            .connect(&driver_url)
            .await
            .expect("a browser");
        Self { client, driver, driver_url, _profile: profile }
    }

    /// Chromium's own commands: a phone's width, the dark.
    pub async fn devtools(&self, cmd: &str, params: Value) {
        let session = self.client.session_id().await.expect("an answer").expect("a session");
        let url = format!("{}/session/{session}/goog/cdp/execute", self.driver_url);
        let answer = client().post(url).json(&json!({ "cmd": cmd, "params": params })).send().await.expect("an answer");
        assert!(answer.status().is_success(), "{cmd}: {}", answer.text().await.unwrap_or_default());
    }

    pub async fn text(&self) -> String {
        match self.client.find(Locator::Css("body")).await {
            Ok(body) => body.text().await.unwrap_or_default(),
            Err(_) => String::new(),
        }
    }

    pub async fn shows(&self, text: &str, limit: Duration) -> bool {
        wait_until(limit, async || self.text().await.to_lowercase().contains(&text.to_lowercase())).await
    }

    /// False as soon as a script has set the page's title, which the tests' hostile texts try to do.
    pub async fn is_unowned(&self, length: Duration) -> bool {
        stays_true(length, async || self.client.title().await.expect("a title") != "owned").await
    }

    pub async fn goto(&self, url: &str) {
        self.client.goto(url).await.expect("a page");
    }

    /// Photographs the page as it is: desktop, phone, and both in the dark. Nothing may stick out at a phone's width.
    pub async fn photograph(&self, name: &str) {
        for (scheme, dark) in [("light", false), ("dark", true)] {
            let value = if dark { "dark" } else { "light" };
            self.devtools(
                "Emulation.setEmulatedMedia",
                json!({ "features": [
                    { "name": "prefers-color-scheme", "value": value },
                    { "name": "prefers-reduced-motion", "value": "reduce" },
                ] }),
            )
            .await;
            for (device, width, height) in [("desktop", 1280, 900), ("phone", 375, 812)] {
                let metrics =
                    json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": device == "phone" });
                self.devtools("Emulation.setDeviceMetricsOverride", metrics).await;
                let overflow = self
                    .client
                    .execute("return document.documentElement.scrollWidth - window.innerWidth", vec![])
                    .await;
                let overflow = overflow.ok().and_then(|width| width.as_i64()).unwrap_or(i64::MAX);
                assert!(overflow <= 0, "{name} is {overflow} px too wide on a {device}");
                let png = self.client.screenshot().await.expect("a picture");
                std::fs::write(screenshots().join(format!("{name}-{device}-{scheme}.png")), png).expect("a file");
            }
        }
        self.devtools("Emulation.clearDeviceMetricsOverride", json!({})).await;
        self.devtools("Emulation.setEmulatedMedia", json!({ "features": [] })).await;
    }

    /// As on a phone, until the next page is photographed.
    pub async fn on_a_phone(&self) {
        let metrics = json!({ "width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": true });
        self.devtools("Emulation.setDeviceMetricsOverride", metrics).await;
    }

    /// One picture of the page as it is now.
    pub async fn shot(&self, name: &str) {
        let png = self.client.screenshot().await.expect("a picture");
        std::fs::write(screenshots().join(format!("{name}.png")), png).expect("a file");
    }

    /// As for somebody who asked their system for no motion.
    pub async fn reduce_motion(&self) {
        let features = json!([{ "name": "prefers-reduced-motion", "value": "reduce" }]);
        self.devtools("Emulation.setEmulatedMedia", json!({ "features": features })).await;
    }

    pub async fn close(self) {
        let _ = self.client.clone().close().await;
    }
}

impl Drop for Browser {
    /// Kills the driver and its browsers: they are one process group.
    fn drop(&mut self) {
        testkit::cluster::kill_group(self.driver.id());
        let _ = self.driver.wait();
    }
}

fn screenshots() -> PathBuf {
    let folder = std::env::var_os("TRIBUTARY_SCREENSHOTS")
        .map_or_else(|| std::env::temp_dir().join("tributary-screenshots"), PathBuf::from);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// A server without lanes on a fresh database: what a worker does is then all the test's.
pub async fn serve(world: &World, folder: &Folder) -> App {
    let port = free_port();
    let mut serve = command(&folder.0, port);
    serve.env("DATABASE_URL", &world.database.url);
    App::start(serve, &["serve"], port).await
}

fn worker(world: &World) -> Worker {
    Worker::start(&Start {
        program: BINARY,
        args: &["worker"],
        database_url: &world.database.url,
        crash: None,
        env: &[],
    })
}

/// A dead letter that would succeed: its cause is gone.
async fn bury(world: &World, error: &str) {
    let mut conn = world.conn().await;
    sqlx::query(
        "insert into pgmq.a_upkeep (msg_id, read_ct, enqueued_at, vt, message, headers)
         values (1000000, 8, now() - interval '2 hours', now(), jsonb_build_object('task', 'unpark', 'tenant_id', $1::text),
             jsonb_build_object('state', 'dead', 'reason', $2::text, 'error', $2::text, 'error_at', now() - interval '5 minutes', 'ended_at', now()))",
    )
    .bind(world.tenant_id.to_string())
    .bind(error)
    .execute(&mut *conn)
    .await
    .expect("a dead letter");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_signs_in_watches_a_worker_live_and_die_and_retries_a_dead_item() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    let browser = Browser::start().await;
    let (_, key) = world.caller(world.tenant_id, &[Scope::Service]).await;

    browser.goto(&format!("{}/system/workers", app.url)).await;
    assert!(browser.shows("Sign in to Tributary", Duration::from_secs(5)).await, "{}", browser.text().await);
    browser.photograph("signin").await;
    let field = browser.client.find(Locator::Css("#key")).await.expect("a field");
    field.send_keys("trb_wrong").await.expect("typed");
    browser.client.find(Locator::Css("#signin .button")).await.expect("a button").click().await.expect("a click");
    let refused =
        wait_until(Duration::from_secs(5), async || match browser.client.find(Locator::Css(".trouble")).await {
            Ok(trouble) => !trouble.text().await.unwrap_or_default().is_empty(),
            Err(_) => false,
        });
    assert!(refused.await, "a wrong key was not refused in words");
    browser.photograph("signin-refused").await;
    browser.client.find(Locator::Css("#key")).await.expect("a field").send_keys(key.reveal()).await.expect("typed");
    browser.client.find(Locator::Css("#signin .button")).await.expect("a button").click().await.expect("a click");
    assert!(
        browser.shows("No worker is running", Duration::from_secs(5)).await,
        "not led back to Workers: {}",
        browser.text().await
    );
    browser.photograph("workers-empty").await;
    browser.goto(&app.url).await;
    assert!(browser.shows("no worker is running", Duration::from_secs(5)).await, "Home does not say what is wrong");
    browser.photograph("home-empty").await;
    browser.goto(&format!("{}/system/queues/upkeep", app.url)).await;
    browser.photograph("lane-empty").await;

    // From here on the page is never reloaded by the test.
    browser.goto(&format!("{}/system/workers", app.url)).await;
    let mut running = worker(&world);
    let pid = format!(":{}", running.pid());
    assert!(browser.shows(&pid, Duration::from_secs(15)).await, "the worker never appeared: {}", browser.text().await);
    assert!(browser.shows("alive", Duration::from_secs(10)).await, "{}", browser.text().await);
    browser.photograph("workers").await;
    running.signal(rustix::process::Signal::KILL);
    assert!(running.ended_within(Duration::from_secs(5)).await.is_some());
    assert!(browser.shows("late", Duration::from_secs(12)).await, "never late: {}", browser.text().await);
    browser.photograph("workers-late").await;
    assert!(browser.shows("dead", Duration::from_secs(25)).await, "never dead: {}", browser.text().await);
    browser.photograph("workers-dead").await;

    bury(&world, "could not be done now: provider said 502 Bad Gateway").await;
    browser.goto(&format!("{}/system/queues", app.url)).await;
    browser.photograph("queues").await;
    browser.goto(&format!("{}/system/queues/upkeep?state=dead", app.url)).await;
    assert!(browser.shows("502 Bad Gateway", Duration::from_secs(5)).await, "{}", browser.text().await);
    browser.photograph("lane-dead").await;
    browser.client.find(Locator::LinkText("m1000000")).await.expect("a link").click().await.expect("a click");
    assert!(browser.shows("Item m1000000", Duration::from_secs(5)).await);
    browser.photograph("item-dead").await;
    browser.goto(&app.url).await;
    assert!(browser.shows("1 item was given up", Duration::from_secs(5)).await, "{}", browser.text().await);
    browser.photograph("home-trouble").await;

    browser.goto(&format!("{}/system/queues/upkeep?state=dead", app.url)).await;
    let retry =
        browser.client.find(Locator::Css("button[formaction$='/m1000000/retry']")).await.expect("a Retry button");
    retry.click().await.expect("a click");
    let replayed = wait_until(Duration::from_secs(5), async || {
        let mut conn = world.conn().await;
        let sql = "select count(*) from pgmq.q_upkeep where headers ->> 'replay_of' = '1000000'";
        sqlx::query_scalar::<_, i64>(sql).fetch_one(&mut *conn).await.is_ok_and(|n| n == 1)
    });
    assert!(replayed.await, "the retry sent nothing");
    let second = worker(&world);
    let done = wait_until(Duration::from_secs(15), async || {
        let mut conn = world.conn().await;
        let sql = "select (select count(*) from pgmq.q_upkeep where headers ? 'replay_of') + (select count(*) from pgmq.a_upkeep)";
        sqlx::query_scalar::<_, i64>(sql).fetch_one(&mut *conn).await.is_ok_and(|n| n == 0)
    });
    assert!(done.await, "the retried item was not done");
    browser.goto(&app.url).await;
    assert!(browser.shows("What arrived", Duration::from_secs(5)).await);
    browser.photograph("home").await;
    drop(second);
    browser.close().await;
}

/// S14.
#[tokio::test(flavor = "multi_thread")]
async fn the_link_that_up_prints_signs_in_once_and_errors_are_readable() {
    let (folder, port) = (Folder::new(), free_port());
    let app = App::start(command(&folder.0, port), &["up"], port).await;
    let browser = Browser::start().await;
    browser.goto(&app.link()).await;
    assert!(browser.shows("What arrived", Duration::from_secs(10)).await, "not signed in: {}", browser.text().await);
    let url = browser.client.current_url().await.expect("a URL");
    assert!(!url.as_str().contains("once"), "S14: the link's secret stayed in the address: {url}");
    assert!(!app.printed().contains("signin/once?"), "S14");
    assert!(browser.shows("All is well", Duration::from_secs(10)).await, "{}", browser.text().await);
    browser.photograph("home-well").await;
    browser.goto(&format!("{}/system/queues/nowhere", app.url)).await;
    browser.photograph("error-404").await;
    browser.goto(&format!("{}/api", app.url)).await;
    browser.photograph("api").await;

    let second = Browser::start().await;
    second.goto(&app.link()).await;
    assert!(
        second.shows("was used already", Duration::from_secs(10)).await,
        "a link worked twice: {}",
        second.text().await
    );
    second.close().await;

    // The database stops: the page says so and comes back by itself.
    browser.goto(&app.url).await;
    let pid_file = std::fs::read_to_string(folder.0.join("postgres/postmaster.pid")).expect("a server");
    let server: u32 = pid_file.lines().next().and_then(|line| line.parse().ok()).expect("a pid");
    testkit::cluster::kill(server, rustix::process::Signal::STOP);
    // Its sessions still answer for a moment; new ones do not. Stop those too, as a machine that hangs would.
    let backends = Command::new("pkill").args(["-STOP", "-P", &server.to_string()]).status();
    assert!(backends.is_ok_and(|status| status.success()), "no session was stopped");
    browser.goto(&format!("{}/system/workers", app.url)).await;
    assert!(browser.shows("database", Duration::from_secs(25)).await, "{}", browser.text().await);
    browser.photograph("error-503").await;
    let _ = Command::new("pkill").args(["-CONT", "-P", &server.to_string()]).status();
    testkit::cluster::kill(server, rustix::process::Signal::CONT);
    assert!(
        browser.shows("alive", Duration::from_secs(40)).await,
        "the page did not come back by itself: {}",
        browser.text().await
    );
    browser.close().await;
}

/// S15.
#[tokio::test(flavor = "multi_thread")]
async fn script_and_control_characters_in_an_item_are_inert() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    let (_, key) = world.caller(world.tenant_id, &[Scope::Service]).await;
    bury(&world, "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\u{202e}txt.exe\u{7}\u{1b}[31m").await;
    let browser = Browser::start().await;
    browser.goto(&format!("{}/signin?next=/system/queues/upkeep/items/m1000000", app.url)).await;
    browser.client.find(Locator::Css("#key")).await.expect("a field").send_keys(key.reveal()).await.expect("typed");
    browser.client.find(Locator::Css("#signin .button")).await.expect("a button").click().await.expect("a click");
    assert!(
        browser.shows("<script>document.title='owned'</script>", Duration::from_secs(5)).await,
        "{}",
        browser.text().await
    );
    for path in ["/system/queues/upkeep?state=dead", "/", "/system/queues/upkeep/items/m1000000"] {
        browser.goto(&format!("{}{path}", app.url)).await;
        assert!(browser.is_unowned(Duration::from_millis(300)).await, "S15: a script ran on {path}");
        let text = browser.text().await;
        assert!(
            !text.contains('\u{202e}') && !text.contains('\u{7}') && !text.contains('\u{1b}'),
            "S15: control characters on {path}"
        );
    }
    browser.close().await;
}

/// An hour of mail, so that there is something to draw.
async fn an_hour_of_mail(world: &World) {
    let mut conn = world.conn().await;
    sqlx::query(
        "insert into public.activities (tenant_id, type, raw_data, metadata, created_at)
         select $1, 'email', jsonb_build_object('source_type', 'text', 'subject', (array['Late delivery', 'Invoice INV-2041', 'Lisbon lease', 'New opening hours'])[1 + n % 4],
             'content', (array['The parcel is three days late and nobody answers the phone.', 'Please find invoice INV-2041 over 480.00 EUR attached.',
                 'The lease of the Lisbon office ends in June; we have to give notice in March.', 'From Monday on we open at nine.'])[1 + n % 4] || ' No. ' || n),
             jsonb_build_object('from', (array['ann@acme.test', 'billing@paper.test', 'rui@lisbon.test'])[1 + n % 3]),
             now() - make_interval(secs => 3500 * (1 - power(n / 90.0, 0.7)) + 40 * (n % 7))
         from generate_series(1, 90) n",
    )
    .bind(world.tenant_id.0)
    .execute(&mut *conn)
    .await
    .expect("mail");
}

/// S15.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_seen_on_home_found_by_search_and_traced_to_its_original() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    let worker = Worker::start(&Start {
        program: BINARY,
        args: &["worker"],
        database_url: &world.database.url,
        crash: None,
        env: &[("BUILTIN_AGENT", "true")],
    });
    let (_, key) = world.caller(world.tenant_id, &[Scope::Service]).await;
    let browser = Browser::start().await;
    let inert = async |page: &str| {
        assert!(browser.is_unowned(Duration::from_millis(200)).await, "S15: a script ran on {page}");
        let text = browser.text().await;
        assert!(!text.contains('\u{202e}') && !text.contains('\u{1b}'), "S15: control characters on {page}");
    };
    browser.goto(&format!("{}/signin?next=/", app.url)).await;
    browser.client.find(Locator::Css("#key")).await.expect("a field").send_keys(key.reveal()).await.expect("typed");
    browser.client.find(Locator::Css("#signin .button")).await.expect("a button").click().await.expect("a click");
    assert!(browser.shows("First steps", Duration::from_secs(5)).await, "{}", browser.text().await);
    assert!(
        browser.shows("Nothing arrived in the last hour", Duration::from_secs(1)).await,
        "{}",
        browser.text().await
    );
    browser.photograph("home-new").await;
    browser.goto(&format!("{}/search", app.url)).await;
    assert!(browser.shows("Nothing has been remembered yet", Duration::from_secs(5)).await, "{}", browser.text().await);
    browser.photograph("search-new").await;

    // From here on Home is never reloaded by the test.
    browser.goto(&app.url).await;
    let mut add = command(&folder.0, 7171);
    add.env("DATABASE_URL", &world.database.url).args(["channel", "add", "shop", "--json"]);
    let (output, said, error) = run(&mut add);
    assert!(output.status.success(), "{error}");
    let channel: Value = serde_json::from_str(&said).expect("JSON");
    let path = channel["url"].as_str().and_then(|url| url.find("/ingest/").map(|at| &url[at..])).expect("an address");
    let body = json!({
        "type": "email",
        "subject": "Damaged <script>document.title='owned'</script>\u{202e}espresso machine",
        "content": "The espresso machine arrived with a broken tank <img src=x onerror=\"document.title='owned'\">. \
                    Please send a replacement, or the money of INV-2041 back. \u{1b}[31mAnn\u{202e}",
        "from": "ann@acme.test",
        "order": "A-1007",
    })
    .to_string();
    let secret = Secret::new(channel["webhook_secret"].as_str().expect("a secret"));
    let sent = std::time::Instant::now();
    let answer = client()
        .post(format!("{}{path}", app.url))
        .header("content-type", "application/json")
        .header("x-webhook-signature", sign(&secret, body.as_bytes()))
        .body(body)
        .send()
        .await
        .expect("an answer");
    assert_eq!(answer.status().as_u16(), 202);
    assert!(browser.shows("espresso machine", Duration::from_secs(6)).await, "never seen: {}", browser.text().await);
    println!("from a webhook to an open page: {:?}", sent.elapsed());
    let is_remembered = async || browser.text().await.contains("Remembered\n1");
    assert!(wait_until(Duration::from_secs(6), is_remembered).await, "{}", browser.text().await);
    assert!(browser.shows("1 event in the last hour", Duration::from_secs(6)).await, "{}", browser.text().await);
    let bars = browser.client.find_all(Locator::Css(".chart rect:not(.hit)")).await.expect("bars");
    assert_eq!(bars.len(), 1, "one minute has something");
    inert("Home").await;
    an_hour_of_mail(&world).await;
    assert!(browser.shows("91 events in the last hour", Duration::from_secs(8)).await, "{}", browser.text().await);
    let remembered =
        wait_until(Duration::from_secs(30), async || browser.text().await.contains("Remembered\n91")).await;
    assert!(remembered, "not all were remembered: {}", browser.text().await);
    browser.photograph("home-flow").await;

    // The key that leads to Search, a question, its answer.
    browser.client.find(Locator::Css("body")).await.expect("a page").send_keys("/").await.expect("typed");
    assert!(browser.shows("Ask in your own words", Duration::from_secs(5)).await, "{}", browser.text().await);
    browser.photograph("search-empty").await;
    let ask = async |question: &str| {
        let field = browser.client.find(Locator::Css("#q")).await.expect("a field");
        field.clear().await.expect("cleared");
        field.send_keys(&format!("{question}\u{e007}")).await.expect("typed");
    };
    ask("customer wants money back for a broken machine").await;
    assert!(browser.shows("Has “", Duration::from_secs(5)).await, "{}", browser.text().await);
    inert("Search").await;
    browser.photograph("search-results").await;
    // As one types, without Enter; arrows go through the results; a filter is a link and stays in the address.
    browser.goto(&format!("{}/search", app.url)).await;
    let field = browser.client.find(Locator::Css("#q")).await.expect("a field");
    field.send_keys("late delivery").await.expect("typed");
    assert!(browser.shows("The best 20 of", Duration::from_secs(5)).await, "{}", browser.text().await);
    browser.photograph("search-typed").await;
    field.send_keys("\u{e015}").await.expect("arrow down");
    let script = "return document.activeElement.closest('.hit') !== null && location.search.includes('q=late')";
    let is_there = async || browser.client.execute(script, Vec::new()).await.is_ok_and(|value| value == true);
    assert!(wait_until(Duration::from_secs(5), is_there).await, "the arrow key leads to the first result");
    ask("zebra migration across the serengeti").await;
    assert!(browser.shows("Nothing here fits", Duration::from_secs(5)).await, "{}", browser.text().await);
    browser.photograph("search-nothing-fits").await;
    // A search is saved, and what arrives later is new.
    browser.goto(&format!("{}/search?q=lisbon+lease&type=activity.email", app.url)).await;
    browser.client.find(Locator::Css("#save summary")).await.expect("a fold").click().await.expect("a click");
    browser.client.find(Locator::Css("#save button")).await.expect("a button").click().await.expect("a click");
    assert!(browser.shows("Saved searches", Duration::from_secs(5)).await, "{}", browser.text().await);
    assert!(browser.text().await.contains("nothing new"), "{}", browser.text().await);
    browser.photograph("search-saved").await;
    browser.client.find(Locator::Css(".saved a")).await.expect("a link").click().await.expect("a click");
    assert!(
        browser.shows("nothing new; last marked as seen", Duration::from_secs(5)).await,
        "{}",
        browser.text().await
    );
    browser.goto(&format!("{}/search?q=zebra&type=note", app.url)).await;
    assert!(browser.shows("Nothing found for", Duration::from_secs(5)).await, "{}", browser.text().await);
    browser.photograph("search-none").await;

    browser.goto(&format!("{}/search?q=espresso", app.url)).await;
    browser.client.find(Locator::Css(".hit a")).await.expect("a result").click().await.expect("a click");
    assert!(
        browser.shows("The request as it came from shop", Duration::from_secs(5)).await,
        "{}",
        browser.text().await
    );
    assert!(browser.shows("Completed by an agent", Duration::from_secs(10)).await, "{}", browser.text().await);
    let text = browser.text().await;
    for part in
        ["Original", "Text", "1 chunk", "What happened", "Received by shop", "refers to INV-2041", "embedded by"]
    {
        assert!(text.contains(part), "{part:?} is missing: {text}");
    }
    inert("Document").await;
    browser.photograph("document").await;
    browser.client.find(Locator::Css("#original summary")).await.expect("a fold").click().await.expect("a click");
    assert!(browser.shows("\"order\": \"A-1007\"", Duration::from_secs(2)).await, "{}", browser.text().await);
    inert("Document, unfolded").await;
    browser.photograph("document-original").await;
    drop(worker);
    browser.close().await;
}
