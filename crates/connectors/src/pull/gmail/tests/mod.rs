//! The connector against a mailbox that is written down.

mod parts;
mod tools;
mod watching;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use domain::mail::Place;

use super::super::tests::{Asked, DATE, Person, Reply, Server, all, all_ids, ids, ok, raw_reply, short, since, status};
use super::*;

fn message(id: &str, labels: &[&str]) -> Value {
    let bytes = format!("From: Ana <ana@acme.example>\r\nSubject: Letter {id}\r\n\r\nWords of {id}.\r\n");
    json!({
        "id": id, "threadId": "t1", "labelIds": labels, "internalDate": "1793527200000",
        "raw": BASE64_URL_SAFE_NO_PAD.encode(bytes),
    })
}

fn refusal(line: &str, reason: &str) -> Reply {
    status(line, refused(reason))
}

fn refused(reason: &str) -> Value {
    json!({ "error": { "code": 400, "message": "canary", "errors": [{ "reason": reason, "message": "canary" }] } })
}

/// The ids that a batch asks for.
fn wanted(asked: &Asked) -> Vec<String> {
    let lines = asked.body.lines().filter_map(|line| line.strip_prefix("GET /gmail/v1/users/me/messages/"));
    lines.map(|line| line.split('?').next().unwrap_or_default().to_owned()).collect()
}

/// Answers a batch or a single request with what `say` says of each message, the last one first.
fn messages(asked: &Asked, say: impl Fn(&str) -> (u16, Value)) -> Reply {
    if !asked.has("/batch/gmail/v1") {
        let id = asked.line.split(['/', '?']).nth(6).unwrap_or_default();
        let (code, body) = say(id);
        return status(&format!("{code} Said"), body);
    }
    assert!(asked.head.contains("multipart/mixed; boundary="), "{}", asked.head);
    let mut body = String::new();
    for (number, id) in wanted(asked).iter().enumerate().rev() {
        let (code, answer) = say(id);
        body.push_str(&format!(
            "--b1\r\nContent-Type: application/http\r\nContent-ID: <response-part-{number}>\r\n\r\nHTTP/1.1 {code} Said\r\n\
             Content-Type: application/json\r\n\r\n{answer}\r\n"
        ));
    }
    body.push_str("--b1--\r\n");
    let head = format!("Content-Type: multipart/mixed; boundary=b1\r\nDate: {DATE}\r\n");
    raw_reply("200 OK", &head, body.as_bytes())
}

fn is_message(asked: &Asked) -> bool {
    asked.has("/batch/") || asked.has("/messages/")
}

fn list(ids: &[(&str, &str)], next: Option<&str>) -> Reply {
    let rows: Vec<Value> = ids.iter().map(|(id, thread)| json!({ "id": id, "threadId": thread })).collect();
    let mut page = json!({ "messages": rows, "resultSizeEstimate": 7 });
    if let Some(next) = next {
        page["nextPageToken"] = json!(next);
    }
    ok(page)
}

fn inbox(id: &str) -> (u16, Value) {
    (200, message(id, &["INBOX", "Label_7"]))
}

#[tokio::test]
async fn a_full_pass_lists_messages_and_fetches_them_in_batches_with_their_labels() {
    let server = Server::start(|asked| {
        if is_message(asked) {
            return messages(asked, inbox);
        }
        if asked.has("/labels") {
            return ok(
                json!({ "labels": [{ "id": "INBOX", "name": "INBOX" }, { "id": "Label_7", "name": "Customers" }] }),
            );
        }
        assert!(asked.has("q=-in:chats -in:drafts&maxResults=500&includeSpamTrash=false"), "{asked:?}");
        match asked.has("pageToken=p2") {
            true => list(&[("k", "t9")], None),
            false => {
                let ids: Vec<String> = (b'a'..=b'j').map(|id| char::from(id).to_string()).collect();
                let rows: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), "t1")).collect();
                list(&rows, Some("p2"))
            }
        }
    })
    .await;
    let person = Person::new();
    let pages = all(&*server.connector(&SPEC), &person, false).await.expect("pages");
    assert_eq!(pages.len(), 2);
    assert_eq!(all_ids(&pages).len(), 11);
    let item = &pages[0].items[0];
    assert_eq!((item.raw.external_id.as_str(), item.raw.document_type), ("message:a", "gmail.message"));
    let letter = item.letter.as_ref().expect("a letter");
    assert_eq!(
        (letter.folders.as_slice(), letter.place),
        (&["Inbox".to_owned(), "Customers".to_owned()][..], Place::Inbox)
    );
    assert_eq!((item.title.as_deref(), letter.thread_id.as_deref()), (Some("Letter a"), Some("t1")));
    assert_eq!(item.raw.payload, letter.payload());
    let batches = server.asked().iter().filter(|asked| asked.has("/batch/")).count();
    assert_eq!(batches, 1, "the eleventh is asked for by itself");
    // Two listings, two times the labels' names, eleven messages.
    assert_eq!(person.pace.units(), 2 * 5 + 2 + 11 * 20);
}

#[tokio::test]
async fn a_first_sync_takes_whole_conversations_until_it_has_enough_and_says_so() {
    let server = Server::start(|asked| match (is_message(asked), asked.has("pageToken=p2")) {
        (true, _) => messages(asked, |id| {
            let mut message = message(id, &["INBOX"]);
            if id == "d" {
                message["internalDate"] = json!("1793440800000");
            }
            (200, message)
        }),
        (_, false) => list(&[("a", "t1"), ("b", "t2"), ("c", "t1"), ("d", "t3"), ("e", "t4")], Some("p2")),
        (_, true) => list(&[("f", "t5"), ("g", "t2")], None),
    })
    .await;
    let connector = server.connector(&SPEC); // at most three conversations
    let pages = all(&*connector, &Person::new(), true).await.expect("pages");
    assert_eq!(all_ids(&pages), ["a", "b", "c", "d", "g"].map(|id| format!("message:{id}")));
    let note = "The newest 3 conversations were taken; older letters come in when they change, or with a full sync.";
    assert_eq!(pages.last().and_then(|page| page.note.as_deref()), Some(note));
    let since = "2026-10-31T10:00:00Z".parse().expect("a time");
    assert_eq!(pages.last().map(|page| page.reach), Some(Reach::From(since)), "d, before which nothing was left out");
    let pages = all(&*connector, &Person::new(), false).await.expect("pages");
    assert_eq!((all_ids(&pages).len(), &pages[1].note, pages[1].reach), (7, &None, Reach::All));
}

#[tokio::test]
async fn an_empty_mailbox_has_no_messages_and_those_that_vanish_are_gone() {
    let empty = Server::start(|_| ok(json!({ "resultSizeEstimate": 0 }))).await;
    let pages = all(&*empty.connector(&SPEC), &Person::new(), true).await.expect("pages");
    assert_eq!((pages.len(), pages[0].items.len(), &pages[0].note), (1, 0, &None));

    let wrong = Server::start(|_| ok(json!({ "files": [], "changes": 3 }))).await;
    let error = all(&*wrong.connector(&SPEC), &Person::new(), true).await.expect_err("no list");
    assert_eq!(short(&error), "unreadable: Gmail gave an answer of another form");

    let server = Server::start(|asked| match is_message(asked) {
        true => messages(asked, |id| match id {
            "gone" => (404, refused("notFound")),
            "odd" => (200, json!({ "id": "odd", "raw": "%" })),
            "other" => (200, message("another", &[])),
            "refused" => (400, refused("invalidArgument")),
            id => (200, message(id, &["SENT"])),
        }),
        false => list(&[("a", "t"), ("gone", "t"), ("odd", "t"), ("other", "t"), ("refused", "t"), ("b/1", "t")], None),
    })
    .await;
    let pages = all(&*server.connector(&SPEC), &Person::new(), false).await.expect("pages");
    assert_eq!(all_ids(&pages), ["message:a"]);
    let behind: Vec<(&str, &str)> =
        pages[0].failed.iter().map(|failed| (failed.external_id.as_str(), failed.reason.as_str())).collect();
    let expected = [
        ("message:odd", "its content is not base64"),
        ("message:other", "it does not parse"),
        ("message:refused", "Gmail does not give it (invalidArgument)"),
    ];
    assert_eq!(behind, expected);
    let person = Person::new();
    let wanted = ["message:a", "message:gone", "message:../x", "file:a"].map(str::to_owned);
    let (items, failed) = server.connector(&SPEC).find(&person.account(), &wanted).await.expect("an answer");
    assert_eq!((ids(&items), failed), (vec!["message:a"], vec![]));
}

/// Ten letters with large files are not in memory together: the others come with the next pages.
#[tokio::test]
async fn large_messages_that_are_asked_for_by_themselves_are_pages_by_themselves() {
    let mut bytes = b"From: Ana <ana@acme.example>\r\nContent-Type: application/zip\r\n\r\n".to_vec();
    bytes.resize(25 << 20, b'x');
    let raw = BASE64_URL_SAFE_NO_PAD.encode(bytes);
    let server = Server::start(move |asked| {
        if is_message(asked) {
            let is_batch = asked.has("/batch/");
            return messages(asked, |id| match is_batch {
                true => (429, refused("rateLimitExceeded")),
                false => {
                    let mut message = message(id, &["INBOX"]);
                    message["raw"] = json!(raw);
                    (200, message)
                }
            });
        }
        list(&[("a", "t1"), ("b", "t2"), ("c", "t3")], None)
    })
    .await;
    let pages = all(&*server.connector(&SPEC), &Person::new(), false).await.expect("pages");
    let met: Vec<Vec<&str>> =
        pages.iter().map(|page| page.items.iter().map(|item| item.raw.external_id.as_str()).collect()).collect();
    assert_eq!(met, [["message:a"], ["message:b"], ["message:c"]]);
}

/// F17.
#[tokio::test]
async fn parts_that_say_no_for_now_are_asked_for_once_more_by_themselves() {
    let n_refused = AtomicUsize::new(0);
    let server = Server::start(move |asked| match is_message(asked) {
        true => messages(asked, |id| {
            let is_refused = id != "a" && asked.has("/batch/") && n_refused.fetch_add(1, Ordering::SeqCst) < 9;
            match is_refused {
                true if id == "b" => (503, refused("backendError")),
                true => (429, refused("rateLimitExceeded")),
                false => (200, message(id, &["INBOX"])),
            }
        }),
        false => list(&[("a", "t"), ("b", "t"), ("c", "t")], None),
    })
    .await;
    let pages = all(&*server.connector(&SPEC), &Person::new(), false).await.expect("pages");
    assert_eq!(all_ids(&pages), ["message:a", "message:b", "message:c"]);
    assert_eq!(server.asked().len(), 4);

    let server = Server::start(|asked| match is_message(asked) {
        true => messages(asked, |_| (403, refused("userRateLimitExceeded"))),
        false => list(&[("a", "t"), ("b", "t")], None),
    })
    .await;
    let error = all(&*server.connector(&SPEC), &Person::new(), false).await.expect_err("a wait");
    assert_eq!(short(&error), "wait: Gmail asked us to wait 30 s");
}

#[tokio::test]
async fn refusals_of_google_mean_what_they_mean() {
    for (line, reason, expected) in [
        ("401 Unauthorized", "authError", "token: Gmail refused the token"),
        ("403 Forbidden", "rateLimitExceeded", "wait: Gmail asked us to wait 30 s"),
        ("403 Forbidden", "dailyLimitExceeded", "wait: Gmail asked us to wait 3600 s"),
        (
            "403 Forbidden",
            "insufficientPermissions",
            "refused: Gmail refused what we asked for (insufficientPermissions)",
        ),
        ("400 Bad Request", "failedPrecondition", "refused: Gmail refused what we asked for (failedPrecondition)"),
        ("429 Too Many", "rateLimitExceeded", "wait: Gmail asked us to wait 30 s"),
        ("500 Oops", "backendError", "passing: Gmail is not well (500, backendError)"),
    ] {
        let server = Server::start(move |_| refusal(line, reason)).await;
        let (connector, person) = (server.connector(&SPEC), Person::new());
        let error = connector.cursor(&person.account()).await.expect_err("refused");
        assert_eq!(short(&error), expected);
        let error = all(&*connector, &person, false).await.expect_err("refused");
        assert_eq!(short(&error), expected);
        let error = since(&*connector, &person, &json!({ "history_id": "7" })).await.expect_err("refused");
        assert_eq!(short(&error), expected);
    }
}

fn changed(id: &str, kind: &str, message: &str, labels: &[&str]) -> Value {
    json!({ "id": id, "messages": [{ "id": message }], kind: [{ "message": { "id": message, "labelIds": labels }, "labelIds": labels }] })
}

#[tokio::test]
async fn a_delta_follows_the_history_and_tells_each_message_once() {
    let server = Server::start(|asked| {
        if is_message(asked) {
            return messages(asked, |id| match id {
                "binned" => (200, message(id, &["TRASH"])),
                id => (200, message(id, &["INBOX"])),
            });
        }
        let kinds =
            "historyTypes=messageAdded&historyTypes=messageDeleted&historyTypes=labelAdded&historyTypes=labelRemoved";
        assert!(asked.has("startHistoryId=100&maxResults=100") && asked.has(kinds), "{asked:?}");
        match asked.line.split("pageToken=").nth(1) {
            None => ok(json!({ "historyId": "150", "nextPageToken": "2", "history": [
                changed("105", "messagesAdded", "a", &["INBOX"]),
                changed("107", "labelsRemoved", "read", &["UNREAD"]),
                changed("109", "messagesDeleted", "b", &[]),
                changed("110", "labelsAdded", "c", &["TRASH"]),
            ] })),
            Some("2") => ok(json!({ "historyId": "151", "nextPageToken": "3" })),
            _ => ok(json!({ "historyId": "152", "history": [
                changed("140", "labelsAdded", "binned", &["Label_7"]),
                changed("120", "messagesAdded", "d", &[]),
            ] })),
        }
    })
    .await;
    let pages = since(&*server.connector(&SPEC), &Person::new(), &json!({ "history_id": "100" })).await.expect("pages");
    let told: Vec<(&str, bool)> = pages
        .iter()
        .flat_map(|page| &page.items)
        .map(|item| (item.raw.external_id.as_str(), item.raw.is_deleted))
        .collect();
    let expected = [
        ("message:b", true),
        ("message:c", true),
        ("message:a", false),
        ("message:binned", true),
        ("message:d", false),
    ];
    assert_eq!(told, expected);
    let cursor = json!({ "history_id": "140", "told": { "history_id": "150", "at": "2026-11-15T12:00:00Z" } });
    assert_eq!(pages.last().map(|page| (page.more, &page.next)), Some((false, &cursor)));
}

/// The history lags behind the mailbox's number.
#[tokio::test]
async fn a_cursor_moves_on_to_what_was_read_and_never_back() {
    let at = |secs: i64| DateTime::parse_from_rfc2822(DATE).expect("a date").to_utc() + TimeDelta::seconds(secs);
    let heard = |history_id: &str, secs: i64| json!({ "history_id": history_id, "at": at(secs) });
    for (cursor, number, record, expected) in [
        (json!({ "history_id": "100" }), "112", None, json!({ "history_id": "100", "told": heard("112", 0) })),
        (json!({ "history_id": "100" }), "112", Some("112"), json!({ "history_id": "112" })),
        (json!({ "history_id": "100" }), "90", None, json!({ "history_id": "100" })),
        (
            json!({ "history_id": "100", "told": heard("112", -60) }),
            "115",
            None,
            json!({ "history_id": "100", "told": heard("112", -60) }),
        ),
        (
            json!({ "history_id": "100", "told": heard("112", -300) }),
            "115",
            None,
            json!({ "history_id": "112", "told": heard("115", 0) }),
        ),
        (
            json!({ "history_id": "100", "told": heard("112", -300) }),
            "112",
            Some("104"),
            json!({ "history_id": "112" }),
        ),
        (json!({ "history_id": "100", "told": heard("112", -60) }), "130", Some("120"), json!({ "history_id": "120" })),
    ] {
        let server = Server::start(move |_| {
            let history: Vec<Value> = record.into_iter().map(|id| changed(id, "messagesDeleted", "x", &[])).collect();
            ok(json!({ "historyId": number, "history": history }))
        })
        .await;
        let pages = since(&*server.connector(&SPEC), &Person::new(), &cursor).await.expect("pages");
        assert_eq!(pages[0].next, expected, "{cursor} {number} {record:?}");
    }
}

#[tokio::test]
async fn a_message_that_cannot_be_found_yet_is_looked_up_once_more() {
    let found = Mutex::new(false);
    let server = Server::start(move |asked| {
        if is_message(asked) {
            let mut found = found.lock().expect("a flag");
            let answer = if *found { (200, message("a", &["INBOX"])) } else { (404, refused("notFound")) };
            *found = true;
            return messages(asked, |_| answer.clone());
        }
        match asked.has("startHistoryId=100&") {
            true => ok(json!({ "historyId": "105", "history": [changed("105", "messagesAdded", "a", &["INBOX"])] })),
            false => ok(json!({ "historyId": "105" })),
        }
    })
    .await;
    let (connector, person) = (server.connector(&SPEC), Person::new());
    let pages = since(&*connector, &person, &json!({ "history_id": "100" })).await.expect("pages");
    assert_eq!((all_ids(&pages), pages[0].items[0].raw.is_deleted), (vec!["message:a"], true));
    let cursor = json!({ "history_id": "105", "again": ["a"] });
    assert_eq!(pages[0].next, cursor);
    let pages = since(&*connector, &person, &cursor).await.expect("pages");
    assert_eq!((all_ids(&pages), pages[0].items[0].raw.is_deleted), (vec!["message:a"], false));
    assert_eq!(pages[0].next, json!({ "history_id": "105" }));
}

/// F28.
#[tokio::test]
async fn a_history_that_is_gone_is_a_lost_cursor_and_a_dead_token_is_not() {
    for (line, reason) in [("404 Not Found", "notFound"), ("400 Bad Request", "invalidArgument")] {
        let server = Server::start(move |_| refusal(line, reason)).await;
        let error = since(&*server.connector(&SPEC), &Person::new(), &json!({ "history_id": "1" })).await;
        assert_eq!(short(&error.expect_err("lost")), "lost: Gmail no longer knows our place in its history");
    }
    let server = Server::start(|_| ok(json!({}))).await;
    for cursor in [json!({ "page_token": "1" }), json!(7), Value::Null] {
        let error = since(&*server.connector(&SPEC), &Person::new(), &cursor).await.expect_err("lost");
        assert_eq!(short(&error), "lost: our place in this account cannot be read");
    }

    let n_asked = AtomicUsize::new(0);
    let server = Server::start(move |asked| match asked.has("pageToken=2") {
        true if n_asked.fetch_add(1, Ordering::SeqCst) == 0 => refusal("400 Bad Request", "invalidArgument"),
        true => ok(json!({ "historyId": "9", "history": [changed("9", "messagesDeleted", "b", &[])] })),
        false => ok(
            json!({ "historyId": "9", "nextPageToken": "2", "history": [changed("8", "messagesDeleted", "a", &[])] }),
        ),
    })
    .await;
    let pages = since(&*server.connector(&SPEC), &Person::new(), &json!({ "history_id": "7" })).await.expect("pages");
    assert_eq!(all_ids(&pages), ["message:a", "message:a", "message:b"]);

    let dead = Server::start(|asked| match asked.has("pageToken=") {
        true => refusal("400 Bad Request", "invalidArgument"),
        false => ok(json!({ "historyId": "9", "nextPageToken": "2", "resultSizeEstimate": 3 })),
    })
    .await;
    let error = since(&*dead.connector(&SPEC), &Person::new(), &json!({ "history_id": "7" })).await.expect_err("lost");
    assert_eq!(short(&error), "lost: Gmail no longer knows our place in its history");
    let error = all(&*dead.connector(&SPEC), &Person::new(), false).await.expect_err("lost");
    assert_eq!(short(&error), "lost: Gmail no longer knows our place in its list");
}

#[tokio::test]
async fn a_mailbox_is_known_by_its_address_in_lower_case() {
    let server = Server::start(|asked| {
        assert!(asked.has("GET /gmail/v1/users/me/profile"), "{asked:?}");
        ok(json!({ "emailAddress": "Ana@Acme.example", "historyId": "9876", "messagesTotal": 7, "threadsTotal": 3 }))
    })
    .await;
    let (connector, person) = (server.connector(&SPEC), Person::new());
    let identity = connector.identify(&person.account()).await.expect("an identity");
    assert_eq!(identity, Identity { account: "ana@acme.example".into(), name: "Ana@Acme.example".into() });
    let cursor = connector.cursor(&person.account()).await.expect("a cursor");
    assert_eq!(cursor, Some(json!({ "history_id": "9876" })));
}
