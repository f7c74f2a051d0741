//! Memory from outside: what is handed in is found at once, by whom it belongs to and by nobody else.

use domain::{Scope, Secret};
use reqwest::{RequestBuilder, Url};
use serde_json::{Value, json};

use crate::app::{client, command, run};
use crate::http::Site;

const READ_WRITE: [Scope; 2] = [Scope::Read, Scope::Write];

/// Status and answer; a refusal must not repeat what was sent.
async fn send(request: RequestBuilder) -> (u16, Value) {
    let answer = request.send().await.expect("an answer");
    let status = answer.status().as_u16();
    let text = answer.text().await.expect("a body");
    assert!(status < 400 || !text.contains("canary"), "S13: a refusal repeats what was sent: {text}");
    (status, serde_json::from_str(&text).unwrap_or_default())
}

fn door(site: &Site, key: &Secret) -> RequestBuilder {
    client().post(format!("{}/api/v1/documents", site.app.url)).bearer_auth(key.reveal())
}

/// A form as browsers send it: (name, file name, type, content) each.
fn form(request: RequestBuilder, fields: &[(&str, &str, &str, &[u8])]) -> RequestBuilder {
    let mut body = Vec::new();
    for (name, file_name, kind, content) in fields {
        let named = if file_name.is_empty() { String::new() } else { format!("; filename=\"{file_name}\"") };
        let typed = if kind.is_empty() { String::new() } else { format!("content-type: {kind}\r\n") };
        body.extend(format!("--edge\r\ncontent-disposition: form-data; name=\"{name}\"{named}\r\n{typed}\r\n").bytes());
        body.extend(*content);
        body.extend(b"\r\n");
    }
    body.extend(b"--edge--\r\n");
    request.header("content-type", "multipart/form-data; boundary=edge").body(body)
}

fn address(site: &Site, path: &str, query: &[(&str, &str)]) -> Url {
    Url::parse_with_params(&format!("{}{path}", site.app.url), query).expect("an address")
}

async fn found(site: &Site, key: &Secret, query: &[(&str, &str)]) -> Vec<Value> {
    let request = client().get(address(site, "/api/v1/search", query)).bearer_auth(key.reveal());
    let (status, answer) = send(request).await;
    assert_eq!(status, 200, "{answer}");
    answer["hits"].as_array().expect("hits").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_note_is_found_at_once_by_its_words_and_by_its_meaning() {
    let site = Site::new().await;
    let key = site.key(&READ_WRITE).await;
    let note = json!({
        "text": "The parcel arrived broken and the customer wants her money back. Invoice INV-2041.",
        "title": "Broken parcel",
        "external_id": "crm-7",
        "metadata": { "by": "ann", "odd": "a\u{0}b" },
    });
    let (status, made) = send(door(&site, &key).json(&note)).await;
    assert_eq!((status, &made["memory"], &made["change"]), (201, &json!("remembered"), &json!("created")), "{made}");
    let other = json!({ "text": "The heating of the office is serviced every October.", "title": "Heating" });
    assert_eq!(send(door(&site, &key).json(&other)).await.0, 201);

    for spelling in ["INV-2041", "inv 2041", "INV2041"] {
        let hits = found(&site, &key, &[("q", spelling), ("mode", "keyword")]).await;
        assert_eq!(hits.len(), 1, "{spelling}: {hits:?}");
        assert_eq!((&hits[0]["document_id"], &hits[0]["keyword_rank"]), (&made["id"], &json!(1)));
        assert!(hits[0]["matches"].to_string().contains("\"INV-2041\""), "{spelling}: {hits:?}");
    }
    let hits = found(&site, &key, &[("q", "refund for damaged goods"), ("mode", "vector")]).await;
    assert_eq!(hits[0]["document_id"], made["id"], "by meaning: {hits:?}");
    assert!(hits[0]["why"].as_str().expect("why").contains("meaning"), "{hits:?}");
    let hits = found(&site, &key, &[("q", "broken parcel money"), ("k", "1")]).await;
    let hit = &hits[0];
    assert_eq!(
        (&hit["title"], &hit["document_type"], &hit["external_id"]),
        (&json!("Broken parcel"), &json!("note"), &json!("crm-7"))
    );
    assert_eq!(hit["source"]["name"], "Files and notes");
    assert!(hit["snippet"].as_str().expect("a snippet").contains("arrived broken"), "{hit}");
    let id = made["id"].as_str().expect("an id");
    assert_eq!(hit["url"], format!("{}/documents/{id}", site.app.url));

    let (status, document) = site.ask("GET", &format!("/api/v1/documents/{id}"), Some(&key)).await;
    assert_eq!((status, &document["memory"], &document["metadata"]["by"]), (200, &json!("remembered"), &json!("ann")));
    assert_eq!(document["chunks"].as_array().map(Vec::len), Some(1));
    assert_eq!(document["chunks"][0]["has_vector"], true);
    let (_, page) = site.ask("GET", "/api/v1/documents?limit=1", Some(&key)).await;
    assert_eq!(page["documents"][0]["title"], "Heating", "the newest first");
    let next = page["next_before"].as_str().expect("a next page");
    let (_, page) = site.ask("GET", &format!("/api/v1/documents?limit=1&before={next}"), Some(&key)).await;
    assert_eq!(page["documents"][0]["id"], made["id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_again_is_the_same_document_and_nothing_is_embedded() {
    let site = Site::new().await;
    let key = site.key(&READ_WRITE).await;
    let text = "Ann prefers calls after five.";
    let (status, first) = send(door(&site, &key).json(&json!({ "text": text }))).await;
    assert_eq!((status, &first["embedded"]), (201, &json!(1)));
    let (status, again) = send(door(&site, &key).json(&json!({ "text": format!("{text}\r\n") }))).await;
    assert_eq!((status, &again["id"], &again["change"]), (200, &first["id"], &json!("unchanged")));
    assert_eq!(again["embedded"], 0, "the same text was embedded twice");
    let plain = door(&site, &key).header("content-type", "text/plain").body(text);
    assert_eq!(send(plain).await.1["id"], first["id"], "the same text through another way in");

    let named = |text: &str| json!({ "text": text, "external_id": "prefs" });
    let (status, first) = send(door(&site, &key).json(&named("Tea, never coffee."))).await;
    assert_eq!(status, 201);
    let (status, changed) = send(door(&site, &key).json(&named("Coffee, never tea."))).await;
    assert_eq!((status, &changed["id"], &changed["change"]), (200, &first["id"], &json!("updated")));
    let (_, document) =
        site.ask("GET", &format!("/api/v1/documents/{}", first["id"].as_str().expect("an id")), Some(&key)).await;
    assert_eq!((&document["text"], &document["revision"]), (&json!("Coffee, never tea."), &json!(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn text_markdown_and_html_files_are_found_at_once_and_what_is_no_document_is_refused() {
    let site = Site::new().await;
    let key = site.key(&READ_WRITE).await;
    let page = b"<html><head><title>Lisbon office</title><script>track()</script></head><body><h1>Lease</h1><p>The lease ends in <b>June</b>.</p></body></html>";
    let (status, made) = send(form(door(&site, &key), &[("file", "office.html", "text/html", page)])).await;
    assert_eq!(status, 201, "{made}");
    let hits = found(&site, &key, &[("q", "when does the lease end")]).await;
    assert_eq!((&hits[0]["title"], &hits[0]["document_type"]), (&json!("Lisbon office"), &json!("file")));
    assert!(!hits[0]["snippet"].to_string().contains("track"), "{hits:?}");
    assert!(
        found(&site, &key, &[("q", "track"), ("mode", "keyword")]).await.is_empty(),
        "a script was remembered as text"
    );

    let markdown = ("file", "ports.MD", "application/octet-stream", &b"# Ports\n\nOpen 7171 for the dashboard."[..]);
    let named = [markdown, ("title", "", "", b"Which ports"), ("external_id", "", "", b"ports")];
    assert_eq!(send(form(door(&site, &key), &named)).await.0, 201);
    let hits = found(&site, &key, &[("q", "dashboard 7171")]).await;
    assert_eq!((&hits[0]["title"], &hits[0]["external_id"]), (&json!("Which ports"), &json!("ports")));
    let raw = client().post(address(&site, "/api/v1/documents", &[("title", "Straight in")])).bearer_auth(key.reveal());
    let raw = raw.header("content-type", "text/markdown; charset=utf-8");
    assert_eq!(send(raw.header("x-file-name", "räume.md").body("Zimmer 12 ist das größte.")).await.0, 201);
    assert_eq!(found(&site, &key, &[("q", "größte Zimmer")]).await[0]["title"], "Straight in");

    let odd = |name: &str, kind: &str, content: &[u8]| form(door(&site, &key), &[("file", name, kind, content)]);
    let bare = |kind: &str| door(&site, &key).header("content-type", kind.to_owned());
    let (file, field) = (("file", "a.txt", "", &b"canary"[..]), ("canary", "", "", &b"canary"[..]));
    let refusals = [
        (400, bare("text/plain").body(b"\xff\xfe canary".to_vec())),
        (400, odd("empty.txt", "", b" \n\t ")),
        (400, form(door(&site, &key), &[file, file])),
        (400, form(door(&site, &key), &[("title", "", "", b"canary")])),
        (400, form(door(&site, &key), &[file, field])),
        (400, bare("multipart/form-data; boundary=x").body("--y canary")),
        (400, bare("multipart/form-data").body("canary")),
        (400, bare("application/json").body("{\"text\": canary}")),
        (400, bare("application/json").body("{\"text\": [\"canary\"]}")),
        (400, bare("application/json").body("{\"text\": \"x\", \"canary\": 1}")),
        (400, door(&site, &key).json(&json!({ "title": "canary" }))),
        (400, door(&site, &key).json(&json!({ "text": "" }))),
        (400, door(&site, &key).json(&json!({ "text": "x", "title": "canary".repeat(200) }))),
        (400, door(&site, &key).json(&json!({ "text": "x", "external_id": "canary\u{0}" }))),
        (413, bare("text/plain").body(vec![b'a'; 52_428_801])),
    ];
    for (nth, (expected, request)) in refusals.into_iter().enumerate() {
        let (status, answer) = send(request).await;
        assert_eq!((status, answer["status"].as_u64()), (expected, Some(expected.into())), "refusal {nth}: {answer}");
    }
    let (_, listed) = site.ask("GET", "/api/v1/documents", Some(&key)).await;
    assert_eq!(listed["documents"].as_array().map(Vec::len), Some(3), "a refused one left something: {listed}");
    let read_only = site.key(&[Scope::Read]).await;
    assert_eq!(send(door(&site, &read_only).json(&json!({ "text": "canary" }))).await.0, 403);
    assert!(!site.app.printed().contains("canary"), "S13: what was sent is in the log");
}

/// S17.
#[tokio::test(flavor = "multi_thread")]
async fn another_tenant_finds_lists_and_opens_nothing() {
    let site = Site::new().await;
    let key = site.key(&READ_WRITE).await;
    let (_, made) =
        send(door(&site, &key).json(&json!({ "text": "The vault opens at noon.", "external_id": "same" }))).await;
    let id = made["id"].as_str().expect("an id");
    let other = site.world.other_tenant("somebody else").await;
    let (_, stranger) = site.world.caller(other, &[Scope::Service]).await;
    for mode in ["hybrid", "keyword", "vector"] {
        assert!(
            found(&site, &stranger, &[("q", "the vault opens at noon"), ("mode", mode)]).await.is_empty(),
            "S17: {mode}"
        );
    }
    assert_eq!(site.ask("GET", &format!("/api/v1/documents/{id}"), Some(&stranger)).await.0, 404, "S17");
    let (_, listed) = site.ask("GET", "/api/v1/documents", Some(&stranger)).await;
    assert_eq!(listed["documents"], json!([]), "S17");
    for page in [format!("/documents/{id}"), format!("/documents/{id}/original")] {
        let page = client().get(format!("{}{page}", site.app.url)).bearer_auth(stranger.reveal()).send().await;
        assert_eq!(page.expect("an answer").status().as_u16(), 404, "S17");
    }
    let (status, theirs) =
        send(door(&site, &stranger).json(&json!({ "text": "Ours opens at dusk.", "external_id": "same" }))).await;
    assert!(status == 201 && theirs["id"] != made["id"], "two tenants' names met: {theirs}");
    assert_eq!(found(&site, &stranger, &[("q", "when does it open")]).await.len(), 1);
    let source = found(&site, &key, &[("q", "vault")]).await[0]["source"]["id"].as_str().expect("a source").to_owned();
    assert!(
        found(&site, &stranger, &[("q", "vault opens"), ("source", &source)]).await.is_empty(),
        "S17: by another's source"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_questions_are_harmless_and_odd_filters_refused() {
    let site = Site::new().await;
    let key = site.key(&READ_WRITE).await;
    let hostile = "<script>alert('owned')</script> '; drop table public.source_documents; -- \u{202e}";
    assert_eq!(
        send(door(&site, &key).json(&json!({ "text": hostile, "title": "<img src=x onerror=alert(1)>" }))).await.0,
        201
    );
    let questions = [
        hostile,
        "'; select pg_sleep(10); --",
        "a & b | !c <-> (d",
        "\\ ' \" :* <->",
        "%_%",
        "{}[]()",
        "the of and",
        "🙂",
        "\u{1b}[31m",
        &"x".repeat(2_000),
    ];
    for question in questions {
        for mode in ["hybrid", "keyword", "vector"] {
            let hits = found(&site, &key, &[("q", question), ("mode", mode), ("type", "note' or '1'='1")]).await;
            assert!(hits.is_empty(), "{question:?} escaped its filter");
            found(&site, &key, &[("q", question), ("mode", mode)]).await;
        }
    }
    assert_eq!(found(&site, &key, &[("q", "drop table")]).await.len(), 1, "the table is gone");
    let page = client().get(address(&site, "/search", &[("q", hostile)])).bearer_auth(key.reveal());
    let page = page.send().await.expect("an answer").text().await.expect("a page");
    assert!(!page.contains("<script>alert") && !page.contains("<img src=x"), "S15");

    let odd = [
        "",
        "q=",
        "q=%20",
        "q=a%00b",
        "q=x&k=0",
        "q=x&k=101",
        "q=x&k=many",
        "q=x&mode=magic",
        "q=x&source=7",
        "q=x&since=yesterday",
        "q=x&until=2026-02-31",
        "q=x&contact=ann",
        "q=x&type=a%00",
        "q=%FF%FE&k=-1",
        "q=x&since=2026-01-01T00:00:00",
    ];
    for query in odd {
        assert_eq!(site.ask("GET", &format!("/api/v1/search?{query}"), Some(&key)).await.0, 400, "{query}");
    }
    assert_eq!(site.ask("GET", &format!("/api/v1/search?q={}", "x".repeat(2_001)), Some(&key)).await.0, 400);
    for filter in ["since=2000-01-01&until=2100-01-01", "type=note", "type=&source=&since=&until=&contact=&k=&mode="] {
        assert_eq!(
            site.ask("GET", &format!("/api/v1/search?q=table&{filter}"), Some(&key)).await.1["hits"]
                .as_array()
                .map(Vec::len),
            Some(1),
            "{filter}"
        );
    }
    for filter in [
        "since=2100-01-01",
        "until=2000-01-01T00:00:00Z",
        "type=file",
        "contact=7",
        "source=0190c7de-aaaa-7bbb-8ccc-123456789abc",
    ] {
        assert_eq!(
            site.ask("GET", &format!("/api/v1/search?q=table&{filter}"), Some(&key)).await.1["hits"],
            json!([]),
            "{filter}"
        );
    }
    assert_eq!(site.ask("GET", "/api/v1/documents?before=7", Some(&key)).await.0, 400);
    assert_eq!(site.ask("GET", "/api/v1/documents/7", Some(&key)).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_and_notes_are_remembered_and_searched_by_command() {
    let site = Site::new().await;
    let ask =
        |args: &[&str]| run(command(&site.folder.0, 7171).env("DATABASE_URL", &site.world.database.url).args(args));
    let files = crate::app::Folder::new();
    std::fs::create_dir_all(&files.0).expect("a folder");
    let file = |name: &str, content: &str| {
        let path = files.0.join(name);
        std::fs::write(&path, content).expect("a file");
        path.to_str().expect("a path").to_owned()
    };
    let (notes, page, odd) = (
        file("notes.md", "# Keys\n\nThe spare key hangs behind the red door."),
        file("page.html", "<title>Parking</title><p>Bay 7 is ours.</p>"),
        file("empty.txt", " "),
    );
    let (output, said, error) = ask(&["remember", &notes, &odd, &page, "/nowhere/x.md"]);
    assert_eq!(output.status.code(), Some(1), "two were refused: {error}");
    let lines: Vec<&str> = said.lines().collect();
    assert!(
        lines.len() == 2 && lines.iter().all(|line| line.starts_with("remembered") && line.ends_with("1 chunk")),
        "{said}"
    );
    assert!(
        error.contains("empty.txt: there is no text in it") && error.contains("/nowhere/x.md: it cannot be opened"),
        "{error}"
    );
    let (output, said, _) = ask(&["remember", &notes, "--json"]);
    assert!(output.status.success());
    let told: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!((&told[0]["change"], &told[0]["embedded"]), (&json!("unchanged"), &json!(0)));
    let (output, _, error) = ask(&["remember", &notes, &page, "--title", "x"]);
    assert!(!output.status.success() && error.contains("hint:"), "{error}");

    let (output, said, _) = ask(&["search", "where", "is", "the", "spare", "key"]);
    assert!(output.status.success());
    let first: Vec<&str> = said.lines().take(4).collect();
    assert_eq!(first[0], "1. notes.md");
    assert!(first[1].trim().starts_with("File · Files and notes · "), "{said}");
    assert!(first[2].contains("behind the red door") && !said.contains('\u{1b}'), "colour without a terminal: {said}");
    let (_, said, _) =
        ask(&["search", "spare key", "--json", "-k", "1", "--type", "file", "--source", "Files and notes"]);
    let answer: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(answer["hits"][0]["title"], "notes.md");
    let (output, said, error) = ask(&["search", "zebra", "--mode", "keyword"]);
    assert_eq!((output.status.code(), said.as_str(), error.trim()), (Some(1), "", "nothing found"));
    let (output, _, error) = ask(&["search", "x", "--source", "nowhere"]);
    assert!(!output.status.success() && error.contains("hint: sources are Files and notes"), "{error}");

    let id = answer["hits"][0]["document_id"].as_str().expect("an id");
    let (_, said, _) = ask(&["document", "show", id]);
    assert!(said.contains("title       notes.md") && said.contains("The spare key hangs"), "{said}");
    let (_, said, _) = ask(&["document", "show", id, "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&said).expect("JSON")["chunks"].as_array().map(Vec::len), Some(1));
    let (_, said, _) = ask(&["document", "list"]);
    assert!(said.lines().count() == 3 && said.contains("Parking"), "{said}");
    let (output, _, error) = ask(&["document", "show", "0190c7de-aaaa-7bbb-8ccc-123456789abc"]);
    assert!(!output.status.success() && error.contains("hint:"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_over_http_says_that_nothing_fits_counts_pages_and_can_be_saved() {
    let site = Site::new().await;
    let key = site.key(&READ_WRITE).await;
    let ask = async |query: &[(&str, &str)]| {
        send(client().get(address(&site, "/api/v1/search", query)).bearer_auth(key.reveal())).await
    };
    for nth in 0..12 {
        let text = format!(
            "Ferry number {nth} leaves pier {} at {} o'clock, says captain {}.",
            nth * 3,
            nth + 7,
            "x".repeat(nth + 2)
        );
        assert_eq!(
            send(door(&site, &key).json(&json!({ "text": text, "title": format!("Ferry {nth}") }))).await.0,
            201
        );
    }
    for nth in 0..3 {
        let body = json!({ "text": "The lighthouse is closed for repairs.", "external_id": format!("copy-{nth}"), "metadata": { "url": "https://docs.example/7" } });
        assert_eq!(send(door(&site, &key).json(&body)).await.0, 201);
    }
    let (_, nothing) = ask(&[("q", "zebra migration across the serengeti")]).await;
    assert_eq!((&nothing["nothing_fits"], &nothing["hits"]), (&json!(true), &json!([])));
    assert!(nothing["closest"].as_array().is_some_and(|closest| !closest.is_empty()), "{nothing}");
    let (_, copies) = ask(&[("q", "lighthouse repairs"), ("k", "1")]).await;
    let hit = &copies["hits"][0];
    assert_eq!((&hit["copies"], hit["others"].as_array().map(Vec::len)), (&json!(3), Some(2)), "{copies}");
    assert_eq!(hit["source_url"], "https://docs.example/7");
    assert!(hit["place_url"].as_str().is_some_and(|url| url.contains("#c-")), "{hit}");

    let page = [("q", "ferry"), ("mode", "keyword"), ("k", "5"), ("facets", "true")];
    let (_, first) = ask(&page).await;
    assert_eq!(
        (&first["facets"]["matches"], &first["facets"]["types"]),
        (&json!(12), &json!([{ "type": "note", "n": 12 }]))
    );
    let next = first["next"].as_str().expect("a second page").to_owned();
    let (status, second) = ask(&[&page[..], &[("cursor", next.as_str())]].concat()).await;
    assert_eq!((status, second["hits"].as_array().map(Vec::len)), (200, Some(5)));
    for odd in ["x", "", &next[1..], &format!("{next}A")] {
        let (status, answer) = ask(&[("q", "ferry"), ("mode", "keyword"), ("k", "5"), ("cursor", odd)]).await;
        let expected = if odd.is_empty() { 200 } else { 400 };
        assert_eq!(status, expected, "{odd:?}: {answer}");
    }
    let other = site.world.other_tenant("somebody else").await;
    let (_, theirs) = site.world.caller(other, &[Scope::Read]).await;
    let stolen = address(&site, "/api/v1/search", &[("q", "ferry"), ("mode", "keyword"), ("cursor", &next)]);
    assert_eq!(send(client().get(stolen).bearer_auth(theirs.reveal())).await.0, 400, "S17: a cursor of another tenant");

    let searches = format!("{}/api/v1/searches", site.app.url);
    let saved = json!({ "name": "Ferries", "q": "ferry", "mode": "keyword", "filters": { "type": "note" } });
    let (status, made) = send(client().post(&searches).bearer_auth(key.reveal()).json(&saved)).await;
    assert_eq!((status, &made["name"], &made["n_new"]), (201, &json!("Ferries"), &json!(0)), "{made}");
    assert_eq!(send(client().post(&searches).bearer_auth(key.reveal()).json(&saved)).await.0, 409);
    assert_eq!(send(door(&site, &key).json(&json!({ "text": "A new ferry is built." }))).await.0, 201);
    let (_, listed) = site.ask("GET", "/api/v1/searches", Some(&key)).await;
    assert_eq!(
        (&listed["searches"][0]["n_new"], &listed["searches"][0]["filters"]),
        (&json!(1), &json!({ "type": "note" }))
    );
    let one = format!("/api/v1/searches/{}", made["id"].as_str().expect("an id"));
    assert_eq!(site.ask("DELETE", &one, Some(&theirs)).await.0, 403);
    let seen = |until: &serde_json::Value| {
        let url = format!("{}{one}/seen", site.app.url);
        send(client().post(url).bearer_auth(key.reveal()).json(&json!({ "until": until })))
    };
    assert_eq!(seen(&made["read_at"]).await.0, 204);
    let (_, listed) = site.ask("GET", "/api/v1/searches", Some(&key)).await;
    assert_eq!(listed["searches"][0]["n_new"], 1, "it came after the answer that was seen");
    assert_eq!(seen(&json!("yesterday")).await.0, 422);
    assert_eq!(site.ask("POST", &format!("{one}/seen"), Some(&key)).await.0, 204);
    let (_, listed) = site.ask("GET", "/api/v1/searches", Some(&key)).await;
    assert_eq!(listed["searches"][0]["n_new"], 0);
    assert_eq!(
        (site.ask("DELETE", &one, Some(&key)).await.0, site.ask("DELETE", &one, Some(&key)).await.0),
        (204, 404)
    );

    let cli =
        |args: &[&str]| run(command(&site.folder.0, 7171).env("DATABASE_URL", &site.world.database.url).args(args));
    let (output, said, error) =
        cli(&["search", "ferry", "--mode", "keyword", "-k", "3", "--facets", "--since", "2026-01-01"]);
    assert!(
        output.status.success() && said.contains("13 documents match") && said.contains("type: note 13"),
        "{said}{error}"
    );
    let more = error.split("--more ").nth(1).and_then(|rest| rest.split('`').next()).expect("a cursor").to_owned();
    let again = ["search", "ferry", "--mode", "keyword", "-k", "3", "--since", "2026-01-01", "--json", "--more", &more];
    let (_, said, error) = cli(&again);
    let second: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{error}"));
    assert_eq!(second["hits"].as_array().map(Vec::len), Some(3));
    let (output, said, error) = cli(&["search", "zebra migration across the serengeti"]);
    assert!(
        !output.status.success() && error.contains("nothing here fits; the closest:") && !said.is_empty(),
        "{said}{error}"
    );
    let (_, said, _) = cli(&["search", "lighthouse repairs", "-k", "1"]);
    assert!(said.contains("3 times; this is the newest"), "{said}");
}
