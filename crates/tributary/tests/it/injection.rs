//! Texts that mean to be something else: SQL in filters, cursors, paths and questions; files that mean to be pages; lines that mean to be the
//! log's own.

use std::time::Duration;

use domain::{Caller, Scope, Secret};
use engine::channels::NewChannel;
use serde_json::{Value, json};
use testkit::{Canary, wait_until};

use crate::app::{client, command, run};
use crate::browser::Browser;
use crate::foreign::raid::Raid;
use crate::intake::{Door, id_of};

/// Each would count the sequence up if it were ever run as SQL.
const SQL: [&str; 16] = [
    "' or '1'='1",
    "'; select nextval('public.injected'); --",
    "1; select nextval('public.injected')",
    "(select nextval('public.injected'))",
    "1 union select nextval('public.injected')::text",
    "\" or \"\"=\"",
    "\\'; select nextval('public.injected'); --",
    "$1",
    "$$; select nextval('public.injected'); $$",
    "created_at.desc;select nextval('public.injected')",
    "id,(select nextval('public.injected'))",
    "*",
    "or=(id.neq.0,tenant_id.neq.0)",
    "\u{0}",
    "%",
    "{a,b}",
];

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Status of a request by a key, and what it answered.
async fn ask(http: &reqwest::Client, url: &str, key: &Secret, body: Option<Value>) -> (u16, String) {
    let request = if body.is_some() { http.post(url) } else { http.get(url) };
    let request = request.bearer_auth(key.reveal()).header("apikey", key.reveal());
    let request = body.iter().fold(request, |request, body| request.json(body));
    let answer = request.send().await.unwrap_or_else(|error| panic!("{url}: {error}"));
    (answer.status().as_u16(), answer.text().await.unwrap_or_default())
}

/// S19.
#[tokio::test(flavor = "multi_thread")]
async fn sql_in_filters_cursors_paths_and_questions_is_refused_or_finds_nothing() {
    let raid = Raid::new().await;
    let office = &raid.office;
    let (world, url, http) = (&office.t.world, &office.app.url, client());
    let mut admin = store::bench::administrator(&world.database.admin).await.expect("the superuser");
    let canary = "create sequence public.injected; grant usage, update on sequence public.injected to public";
    sqlx::raw_sql(canary).execute(&mut admin).await.expect("a canary");
    let (_, agent) = world.caller(world.tenant_id, &[Scope::Agent, Scope::Read]).await;
    let mut targets = Vec::new();
    for (path, methods) in raid.openapi["paths"].as_object().expect("paths") {
        let is_stream = ["/api/v1/events", "/documents/events"].contains(&path.as_str());
        if methods.get("get").is_none() || is_stream {
            continue;
        }
        for part in path.split('/').filter(|part| part.starts_with('{')) {
            let with = |sql| raid.filled(&path.replace(part, &encoded(sql)));
            targets.extend(SQL.into_iter().flat_map(with).map(|path| (path, None)));
        }
        let parameters = methods["get"]["parameters"].as_array().into_iter().flatten();
        let names: Vec<&str> =
            parameters.filter(|one| one["in"] == "query").map(|one| one["name"].as_str().expect("a name")).collect();
        // With ids that are there: after one that is not, nobody looks at the parameters.
        for base in raid.filled(path) {
            if path.contains('{') && !names.is_empty() {
                let (status, answer) = ask(&http, &format!("{url}{base}"), &office.key, None).await;
                assert_eq!(status, 200, "{base}: {answer}");
            }
            for name in &names {
                targets.extend(SQL.map(|sql| (format!("{base}?{name}={}", encoded(sql)), None)));
            }
        }
    }
    for part in
        ["id=eq.", "type=eq.", "raw_data->>content=eq.", "order=", "select=", "limit=", "offset=", "or=", "and="]
    {
        targets.extend(SQL.map(|sql| (format!("/rest/v1/activities?{part}{}", encoded(sql)), None)));
    }
    for sql in SQL {
        targets.push((format!("/rest/v1/activities?{}=eq.1", encoded(sql)), None));
        targets.push((format!("/rest/v1/{}", encoded(sql)), None));
        targets.push((format!("/rest/v1/rpc/{}", encoded(sql)), Some(json!({}))));
        let arguments = json!({ "p_agent_sales_id": sql, "p_capabilities": [sql], sql: sql });
        targets.push(("/rest/v1/rpc/claim_next_pending_activity".into(), Some(arguments)));
        targets.push((format!("/search?q={}&type={0}&source={0}", encoded(sql)), None));
        targets.push((format!("/clients/people?q={}&before={0}", encoded(sql)), None));
    }
    let n = targets.len();
    let mut wrong = Vec::new();
    for (path, body) in targets {
        let key = if path.starts_with("/rest/") { &agent } else { &office.key };
        let (status, answer) = ask(&http, &format!("{url}{path}"), key, body).await;
        // The server read it as a statement. A value of the wrong type is told to agents as PostgREST would tell it.
        let is_read =
            ["syntax error", "42601", "unterminated", "does not exist"].iter().find(|word| answer.contains(*word));
        if status >= 500 || (status >= 400 && is_read.is_some()) {
            wrong.push(format!("{path}: {status} {}", answer.chars().take(300).collect::<String>()));
        }
    }
    assert!(wrong.is_empty(), "S19:\n{}", wrong.join("\n"));
    let is_called: bool =
        sqlx::query_scalar("select is_called from public.injected").fetch_one(&mut admin).await.expect("the canary");
    assert!(!is_called, "S19: what was sent was run");
    assert!(n > 500, "only {n} requests");
    println!("{n} requests with SQL in them, none was run");
}

/// S12.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_or_a_picture_that_was_attached_is_saved_and_never_shown() {
    let door = Door::new().await;
    let canary = Canary::start().await;
    let script = format!("document.title='owned';new Image().src='http://127.0.0.1:{}/'", canary.port);
    let files = [
        ("page.html", "text/html", format!("<!doctype html><title>x</title><script>{script}</script><p>shown</p>")),
        (
            "picture.svg",
            "image/svg+xml",
            format!("<svg xmlns=\"http://www.w3.org/2000/svg\"><script>{script}</script></svg>"),
        ),
        (
            "page.xhtml",
            "application/xhtml+xml",
            format!("<html xmlns=\"http://www.w3.org/1999/xhtml\"><script>{script}</script></html>"),
        ),
    ];
    let mut form = "--edge\r\ncontent-disposition: form-data; name=\"content\"\r\n\r\nsee the files\r\n".to_owned();
    for (name, content_type, text) in &files {
        form.push_str(&format!(
            "--edge\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\ncontent-type: {content_type}\r\n\r\n{text}\r\n"
        ));
    }
    let sent = door.post().header("content-type", "multipart/form-data; boundary=edge").body(form + "--edge--\r\n");
    let id = id_of(sent.send().await.expect("an answer")).await;
    let (_, key) = door.world.caller(door.world.tenant_id, &[Scope::Read, Scope::Write]).await;
    let mut saved: Vec<(&str, String)> = Vec::new();
    for (nth, (name, ..)) in files.iter().enumerate() {
        saved.push((*name, format!("{}/activities/{id}/attachments/{nth}", door.app.url)));
    }
    // A file that was put here, as it was put.
    let (_, _, page) = &files[0];
    let form = format!(
        "--edge\r\ncontent-disposition: form-data; name=\"file\"; filename=\"page.html\"\r\ncontent-type: text/html\r\n\r\n{page}\r\n--edge--\r\n"
    );
    let put = door.http.post(format!("{}/api/v1/documents", door.app.url)).bearer_auth(key.reveal());
    let put = put.header("content-type", "multipart/form-data; boundary=edge").body(form).send().await;
    let made: Value = put.expect("an answer").json().await.expect("a document");
    let document = made["id"].as_str().unwrap_or_else(|| panic!("no document: {made}"));
    saved.push(("an original", format!("{}/documents/{document}/original", door.app.url)));
    let browser = Browser::signed_in(&door.app, &door.world).await;
    for (name, url) in saved {
        let saved = door.http.get(&url).bearer_auth(key.reveal()).send().await.expect("an answer");
        let header = |name: &str| saved.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        assert_eq!(saved.status().as_u16(), 200, "{name}");
        assert!(header("content-disposition").starts_with("attachment"), "S12: {name}");
        assert_eq!(
            (header("content-type"), header("x-content-type-options")),
            ("application/octet-stream", "nosniff"),
            "S12: {name}"
        );
        assert_eq!(header("content-security-policy"), "default-src 'none'; sandbox", "S12: {name}");

        // Opened by its address, by a link, and inside a page of ours.
        browser.goto(&format!("{}/activities/{id}", door.app.url)).await;
        let _ = browser.client.goto(&url).await; // a download is no page, which some drivers call an error
        assert!(browser.is_unowned(Duration::from_millis(300)).await, "S12: {name} was opened as a page");
        assert!(!browser.text().await.contains("shown"), "S12: {name} is shown");
        browser.goto(&format!("{}/activities/{id}", door.app.url)).await;
        let frame = format!(
            "for (const kind of ['iframe', 'object', 'embed', 'img']) {{ const e = document.createElement(kind); \
             e[kind === 'object' ? 'data' : 'src'] = '{url}'; document.body.append(e) }}"
        );
        browser.script(&frame).await;
        assert!(browser.is_unowned(Duration::from_millis(500)).await, "S12: {name} ran inside a page");
    }
    assert_eq!(canary.visits(), 0, "S12: a script of an attachment ran");
    browser.close().await;
}

const LINES: [&str; 4] = [
    "first\r\nFORGED second line",
    "\u{1b}[31mred\u{1b}]0;owned\u{7}",
    "=cmd|' /C calc'!A0",
    "\u{85}FORGED third line\rFORGED fourth",
];
/// The visible parts of them.
const VISIBLE: [&str; 5] = ["FORGED second line", "[31mred", "=cmd|", "FORGED third line", "FORGED fourth"];

/// Whether a text has codes that a terminal obeys (colours, the return to the line's begin, other ends of lines), or a line of its own that
/// came from outside.
fn is_forged(text: &str) -> bool {
    let is_code = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    text.chars().any(is_code) || text.lines().any(|line| line.trim_start().starts_with("FORGED"))
}

/// S33.
#[tokio::test(flavor = "multi_thread")]
async fn line_breaks_and_terminal_codes_stay_out_of_the_log_and_of_the_terminal() {
    let door = Door::new().await; // its log is at its most talkative
    let (http, url) = (&door.http, &door.app.url);
    let (_, key) = door.world.caller(door.world.tenant_id, &[Scope::Service]).await;
    for (nth, line) in LINES.iter().enumerate() {
        let event = json!({ "type": "email", "content": line, "subject": line, "from": line, "to": line });
        let sent = door.post().header("idempotency-key", format!("event-{nth}")).json(&event).send().await;
        assert_eq!(sent.expect("an answer").status().as_u16(), 202);
        let named =
            json!({ "first_name": line, "last_name": line, "company": line, "email": format!("a{nth}@example.com") });
        let _ = ask(http, &format!("{url}/api/v1/contacts"), &key, Some(named)).await;
        let note = json!({ "title": line, "text": format!("lease {line}") });
        let (status, answer) = ask(http, &format!("{url}/api/v1/documents"), &key, Some(note)).await;
        assert_eq!(status, 201, "{answer}");
        let _ = ask(http, &format!("{url}/api/v1/keys"), &key, Some(json!({ "name": line, "scopes": ["read"] }))).await;
        let new = NewChannel { name: (*line).to_owned(), ..crate::intake::new_channel("generic") };
        let _ = engine::channels::add(&door.world.env, &Caller::local("test", door.world.tenant_id, false), new).await;
        // Where nobody is known: paths, questions and headers.
        for path in ["/nothing/", "/api/v1/search?q=", "/ingest/", "/api/v1/documents/", "/rest/v1/"] {
            let _ = http.get(format!("{url}{path}{}", encoded(line))).header("user-agent", "=1+1").send().await;
        }
        let shown: String = line.chars().filter(|c| !c.is_control() && c.is_ascii()).collect();
        let _ =
            http.get(format!("{url}/healthz")).header("x-request-id", &shown).header("referer", &shown).send().await;
    }
    let is_logged = wait_until(Duration::from_secs(5), async || door.app.printed().contains("/healthz")).await;
    assert!(is_logged, "requests are not in the log: the test proves nothing");
    let log = door.app.printed();
    assert!(!is_forged(&log), "S33: the log:\n{log:?}");

    let mut shown = [0; VISIBLE.len()];
    for args in [
        &["activity", "list"][..],
        &["contact", "list"],
        &["document", "list"],
        &["channel", "list"],
        &["key", "list"],
        &["search", "lease"],
    ] {
        let mut program = command(&door.folder.0, 1);
        program.env("DATABASE_URL", &door.world.database.url).env("MASTER_KEY", crate::intake::MASTER_KEY).args(args);
        let (output, said, error) = run(&mut program);
        assert!(output.status.success(), "{args:?}: {error}");
        assert!(!is_forged(&said) && !is_forged(&error), "S33: {args:?}:\n{said:?}\n{error:?}");
        for (n, words) in shown.iter_mut().zip(VISIBLE) {
            *n += usize::from(said.contains(words));
        }
    }
    for (n, words) in shown.into_iter().zip(VISIBLE) {
        assert!(n >= 2, "{words:?} is shown by {n} commands: the test proves nothing");
    }
}
