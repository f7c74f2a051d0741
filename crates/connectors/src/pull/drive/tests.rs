use std::sync::Mutex;

use serde_json::json;

use super::*;
use crate::pull::mcp::tests::says;
use crate::pull::tests::*;

const DOC: &str = "application/vnd.google-apps.document";
const SHEET: &str = "application/vnd.google-apps.spreadsheet";

fn file(id: &str, mime_type: &str) -> Value {
    json!({ "id": id, "name": format!("File {id}"), "mimeType": mime_type, "modifiedTime": "2026-11-01T00:00:00.000Z",
        "trashed": false, "capabilities": { "canDownload": true } })
}

fn refusal(line: &str, reason: &str) -> Reply {
    status(line, json!({ "error": { "code": 403, "message": "canary", "errors": [{ "reason": reason }] } }))
}

/// Answers an export.
fn text(asked: &Asked) -> Reply {
    let id = asked.line.split('/').nth(2).expect("an id");
    assert!(asked.line.ends_with(if id.starts_with('s') { "mimeType=text/csv" } else { "mimeType=text/markdown" }));
    match id {
        "large" => refusal("403 Forbidden", "exportSizeLimitExceeded"),
        "closed" => refusal("403 Forbidden", "cannotDownloadFile"),
        "odd" => refusal("400 Bad Request", "badRequest"),
        "gone" => refusal("404 Not Found", "notFound"),
        "binary" => raw_reply("200 OK", "Content-Type: text/markdown\r\n", b"\xff\xfe"),
        "busy" => refusal("403 Forbidden", "rateLimitExceeded"),
        "page" => raw_reply("200 OK", "Content-Type: text/html\r\n", b"<html>Log in</html>"),
        "bomb" => raw_reply("200 OK", "Content-Type: text/markdown\r\n", &vec![b'x'; 11 * 1024 * 1024]),
        "heavy1" | "heavy2" | "heavy3" | "heavy4" | "heavy5" => {
            raw_reply("200 OK", "Content-Type: text/markdown\r\n", &vec![b'x'; 9 * 1024 * 1024])
        }
        id => raw_reply("200 OK", "Content-Type: text/markdown\r\n", format!("\u{feff}Text of {id}").as_bytes()),
    }
}

#[tokio::test]
async fn a_full_pass_lists_files_and_exports_their_text() {
    let server = Server::start(|asked| {
        if asked.has("/export") {
            return text(asked);
        }
        let q = format!("q=(mimeType='{DOC}' or mimeType='{SHEET}' or mimeType='application/pdf' or ");
        assert!(
            asked.has(&q) && asked.has(") and trashed=false&") && asked.has("orderBy=modifiedTime desc&pageSize=100"),
            "{asked:?}"
        );
        assert!(asked.has("supportsAllDrives=true&includeItemsFromAllDrives=true"), "{asked:?}");
        match asked.has("pageToken=p2") {
            false => {
                let names = ["a", "large", "closed", "odd", "gone", "binary", "bomb"];
                let mut files: Vec<Value> = names.iter().map(|id| file(id, DOC)).collect();
                files.extend([file("s1", SHEET), file("film", "video/mp4"), json!({ "mimeType": DOC })]);
                ok(json!({ "files": files, "nextPageToken": "p2" }))
            }
            true => {
                let mut kept = file("kept", DOC);
                kept["capabilities"]["canDownload"] = json!(false);
                ok(json!({ "files": [kept, file("b", DOC)], "incompleteSearch": true }))
            }
        }
    })
    .await;
    let person = Person::new();
    let pages = all(&*server.connector(&SPEC), &person, false).await.expect("pages");
    assert_eq!(all_ids(&pages), ["file:a", "file:s1", "file:b"]);
    assert_eq!((pages[0].items[0].text.as_str(), pages[0].items[0].title.as_deref()), ("Text of a", Some("File a")));
    assert_eq!(pages[0].items[1].raw.document_type, "google_drive.sheet");
    let failed: Vec<(&str, &str)> = pages
        .iter()
        .flat_map(|page| &page.failed)
        .map(|failed| (failed.external_id.split('?').next().unwrap_or_default(), failed.reason.as_str()))
        .collect();
    assert_eq!(
        failed,
        [
            ("file:large", "it is too large: Google exports 10 MB at most"),
            ("file:closed", "it may not be downloaded"),
            ("file:odd", "Google Drive does not give it (badRequest)"),
            ("file:binary", "its text is no UTF-8"),
            ("file:bomb", "it is too large: Google exports 10 MB at most"),
            ("file:", "it has no id that is one"),
            ("file:kept", "it may not be downloaded"),
        ]
    );
    assert!(pages[1].note.as_deref().is_some_and(|note| note.contains("could not look everywhere")));
    assert!(person.pace.0.lock().expect("the count").iter().all(|name| *name == "google_drive"));
}

#[tokio::test]
async fn a_first_sync_takes_the_newest_and_says_so() {
    for (n_files, has_more, is_first, n_taken, is_told) in [
        (3, false, true, 3, false),
        (2, false, true, 2, false),
        (3, true, true, 3, true),
        (5, false, true, 3, true),
        (2, true, true, 3, true),
        (5, false, false, 5, false),
    ] {
        let server = Server::start(move |asked| {
            if asked.has("/export") {
                return text(asked);
            }
            let prefix = if asked.has("pageToken") { "b" } else { "a" };
            let files: Vec<Value> = (0..n_files).map(|n| file(&format!("{prefix}{n}"), DOC)).collect();
            match has_more && prefix == "a" {
                true => ok(json!({ "files": files, "nextPageToken": "p2" })),
                false => ok(json!({ "files": files })),
            }
        })
        .await;
        let pages = all(&*server.connector(&SPEC), &Person::new(), is_first).await.expect("pages");
        assert_eq!(all_ids(&pages).len(), n_taken, "{n_files} {has_more} {is_first}");
        let note = is_told.then_some("The newest 3 files were taken; older ones come in when they change.");
        assert_eq!(pages.last().and_then(|page| page.note.as_deref()), note, "{n_files} {has_more} {is_first}");
    }
}

#[tokio::test]
async fn a_page_with_too_much_text_comes_in_parts_and_nothing_twice() {
    let server = Server::start(|asked| match asked.has("/export") {
        true => text(asked),
        false => {
            let names = ["heavy1", "heavy2", "heavy3", "heavy4", "heavy5", "a"];
            ok(json!({ "files": names.map(|id| file(id, DOC)) }))
        }
    })
    .await;
    let pages = all(&*server.connector(&SPEC), &Person::new(), false).await.expect("pages");
    assert_eq!(pages.iter().map(|page| page.items.len()).collect::<Vec<_>>(), [4, 2]);
    assert_eq!(all_ids(&pages), ["file:heavy1", "file:heavy2", "file:heavy3", "file:heavy4", "file:heavy5", "file:a"]);
}

#[tokio::test]
async fn what_ails_the_account_and_not_the_file_ends_the_page() {
    for (id, expected) in [
        ("busy", "wait: Google Drive asked us to wait 30 s"),
        ("page", "unreadable: Google Drive gave a web page instead of a file"),
    ] {
        let server = Server::start(move |asked| match asked.has("/export") {
            true => text(asked),
            false => ok(json!({ "files": [file("a", DOC), file(id, DOC)] })),
        })
        .await;
        let error = all(&*server.connector(&SPEC), &Person::new(), false).await.expect_err("no page");
        assert_eq!(short(&error), expected);
    }
}

#[tokio::test]
async fn a_delta_follows_the_feed_to_its_end() {
    let server = Server::start(|asked| {
        if asked.has("/export") {
            return text(asked);
        }
        assert!(asked.has("GET /changes?") && asked.has("includeRemoved=true"), "{asked:?}");
        let change =
            |id: &str, file: Value| json!({ "changeType": "file", "removed": false, "fileId": id, "file": file });
        if asked.has("pageToken=10&") {
            let mut trashed = file("s2", SHEET);
            trashed["trashed"] = json!(true);
            let changes = json!([
                change("a", file("a", DOC)),
                { "changeType": "file", "removed": true, "fileId": "b" },
                change("s2", trashed),
                change("picture", file("film", "video/mp4")),
                { "changeType": "drive", "removed": false, "driveId": "d" },
                { "changeType": "file", "removed": true },
            ]);
            return ok(json!({ "changes": changes, "nextPageToken": "11" }));
        }
        assert!(asked.has("pageToken=11&"), "{asked:?}");
        ok(json!({ "changes": [change("gone", file("gone", DOC))], "newStartPageToken": "12" }))
    })
    .await;
    let cursor = json!({ "page_token": "10" });
    let pages = since(&*server.connector(&SPEC), &Person::new(), &cursor).await.expect("pages");
    assert_eq!(all_ids(&pages), ["file:b", "file:s2", "file:a"]);
    let kinds: Vec<(bool, &str)> =
        pages[0].items.iter().map(|item| (item.raw.is_deleted, item.raw.document_type)).collect();
    assert_eq!(kinds, [(true, "google_drive.doc"), (true, "google_drive.sheet"), (false, "google_drive.doc")]);
    assert_eq!(pages[0].failed[0].reason, "it is a change of no file");
    assert_eq!((pages[1].next.clone(), pages[1].more), (json!({ "page_token": "12" }), false));
}

#[tokio::test]
async fn what_is_removed_between_the_parts_of_a_page_is_told() {
    let n_asked = Mutex::new(0);
    let server = Server::start(move |asked| {
        if asked.has("/export") {
            return text(asked);
        }
        let mut n_asked = n_asked.lock().expect("a number");
        *n_asked += 1;
        let change = |id: &str| json!({ "changeType": "file", "removed": false, "fileId": id, "file": file(id, DOC) });
        let mut changes: Vec<Value> = ["heavy1", "heavy2", "heavy3", "heavy4", "heavy5"].map(change).to_vec();
        if *n_asked > 1 {
            // One changed again, and is further back in the feed: the page has room for what came after it.
            changes.remove(0);
            changes.push(json!({ "changeType": "file", "removed": true, "fileId": "b" }));
        }
        ok(json!({ "changes": changes, "newStartPageToken": "12" }))
    })
    .await;
    let cursor = json!({ "page_token": "10" });
    let pages = since(&*server.connector(&SPEC), &Person::new(), &cursor).await.expect("pages");
    assert_eq!(all_ids(&pages), ["file:heavy1", "file:heavy2", "file:heavy3", "file:heavy4", "file:b", "file:heavy5"]);
}

#[tokio::test]
async fn a_feed_that_lost_us_or_itself_is_not_followed() {
    for (reply, expected) in [
        (json!({ "changes": [], "nextPageToken": "10" }), "unreadable: Google Drive gave the same page again"),
        (json!({ "changes": [] }), "unreadable: Google Drive did not say where the next changes begin"),
        (json!({ "files": [] }), "unreadable: Google Drive gave an answer of another form"),
    ] {
        let server = Server::start(move |_| ok(reply.clone())).await;
        let cursor = json!({ "page_token": "10" });
        let error = since(&*server.connector(&SPEC), &Person::new(), &cursor).await.expect_err("lost");
        assert_eq!(short(&error), expected);
    }
    for line in ["400 Bad Request", "404 Not Found", "410 Gone"] {
        let server = Server::start(move |_| refusal(line, "invalid")).await;
        let (connector, person) = (server.connector(&SPEC), Person::new());
        let error = since(&*connector, &person, &json!({ "page_token": "10" })).await.expect_err("lost");
        assert_eq!(short(&error), "lost: Google Drive no longer knows our place in its changes");
        let place = json!({ "trail": { "after": "p2" }, "done": [], "n_taken": 0 });
        let error = connector.full(&person.account(), Some(&place), false).await.expect_err("lost");
        assert_eq!(short(&error), "lost: Google Drive no longer knows our place in its list");
    }
}

#[tokio::test]
async fn files_are_found_one_by_one_with_their_text() {
    let server = Server::start(|asked| {
        if asked.has("/export") {
            return text(asked);
        }
        let id = asked.line.split(['/', '?']).nth(2).expect("an id").to_owned();
        match id.as_str() {
            "missing" => refusal("404 Not Found", "notFound"),
            "hidden" => refusal("403 Forbidden", "insufficientFilePermissions"),
            "bin" => {
                let mut trashed = file("bin", DOC);
                trashed["trashed"] = json!(true);
                ok(trashed)
            }
            id => ok(file(id, DOC)),
        }
    })
    .await;
    let wanted = ["a", "missing", "hidden", "bin", "b", "../x"].map(|id| format!("file:{id}"));
    let person = Person::new();
    let (items, failed) = server.connector(&SPEC).find(&person.account(), &wanted).await.expect("an answer");
    assert_eq!(ids(&items), ["file:a", "file:b"]);
    let behind: Vec<(&str, &str)> =
        failed.iter().map(|failed| (failed.external_id.as_str(), failed.reason.as_str())).collect();
    assert_eq!(behind, [("file:hidden", "it may not be downloaded")]);
}

#[tokio::test]
async fn a_drive_is_known_by_its_address() {
    let server = Server::start(|asked| match asked.has("/about?fields=user") {
        true => ok(json!({ "user": { "displayName": "Ana", "emailAddress": "ana@acme.example" } })),
        false => ok(json!({ "startPageToken": "9876" })),
    })
    .await;
    let (connector, person) = (server.connector(&SPEC), Person::new());
    let identity = connector.identify(&person.account()).await.expect("an identity");
    assert_eq!(identity, Identity { account: "ana@acme.example".into(), name: "ana@acme.example".into() });
    let cursor = connector.cursor(&person.account()).await.expect("a cursor");
    assert_eq!(cursor, Some(json!({ "page_token": "9876" })));
}

/// Two documents on two pages, and a picture.
fn files(asked: &Asked) -> Reply {
    let file = |id: &str, kind: &str| json!({ "id": id, "title": format!("File {id}"), "mimeType": format!("application/vnd.google-apps.{kind}") });
    let (tool, [id, page]) = asked.tool(["fileId", "pageToken"]);
    match (tool.as_str(), id.as_str(), page.as_str()) {
        ("search_files", "", "") => {
            asked.text(json!({ "files": [file("a", "document"), file("p", "drawing")], "nextPageToken": "~2" }))
        }
        ("search_files", "", "~2") => asked.text(json!({ "files": [file("s", "spreadsheet")] })),
        ("get_file_metadata", "gone", "") => asked.tool_error("Drive API Error: 404 Not Found"),
        ("get_file_metadata", id, "") => asked.text(file(id, "document")),
        ("read_file_content", id, "") => asked.text(json!({ "fileContent": format!("Text of {id}") })),
        other => panic!("nobody may call {other:?}"),
    }
}

#[tokio::test]
async fn a_drive_is_read_by_the_tools_of_googles_server() {
    let (server, _) = says(files).await;
    let drive = server.mcp_of(&SPEC);
    let pages = all(&drive, &Person::new(), false).await.expect("a pass");
    let read: Vec<(&str, &str)> = pages
        .iter()
        .flat_map(|page| &page.items)
        .map(|item| (item.title.as_deref().unwrap_or_default(), item.text.as_str()))
        .collect();
    assert_eq!(read, [("File a", "Text of a"), ("File s", "Text of s")]);
    let asked = ["file:a", "file:gone"].map(str::to_owned);
    let (items, failed) = drive.find(&Person::new().account(), &asked).await.expect("an answer");
    assert_eq!((ids(&items), failed), (vec!["file:a"], vec![]));
}
