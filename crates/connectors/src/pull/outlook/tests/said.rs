//! One message, and answers that are wrong.

use domain::mail::Note;

use super::super::folders::{Folder, Folders};
use super::super::map::{self, Change};
use super::*;
use crate::pull::tests::{Server, ok, short, status};

fn folders() -> Folders {
    let folder = |name: &str, place| (name.to_lowercase(), Folder { name: name.to_owned(), place });
    [folder("Inbox", Place::Inbox), folder("Junk", Place::Spam)].into_iter().collect()
}

#[test]
fn a_message_becomes_a_letter() {
    let message = json!({
        "id": "AAk1", "conversationId": "AAQ1", "internetMessageId": "<3@x.example>", "parentFolderId": "inbox",
        "subject": " Re: Offer ", "receivedDateTime": "2026-11-01T10:00:00Z", "sentDateTime": "2026-11-01T09:59:58Z",
        "lastModifiedDateTime": "2026-11-02T10:00:00Z", "hasAttachments": true, "isDraft": false,
        "from": { "emailAddress": { "name": "Ann", "address": "ann@x.example" } },
        "toRecipients": [{ "emailAddress": { "name": "b@y.example", "address": "b@y.example" } }, { "emailAddress": {} }],
        "body": { "contentType": "html", "content": "<p>Yes, <b>we</b> take it.\u{0}</p>" },
        "internetMessageHeaders": [
            { "name": "References", "value": "<1@x.example>\r\n <2@x.example>" },
            { "name": "In-Reply-To", "value": "<2@x.example>" },
            { "name": "Content-Type", "value": "multipart/report; report-type=x" },
        ],
    });
    let read = map::message(message.clone(), &folders(), None).map_err(|failed| failed.reason).expect("a message");
    assert!(read.has_files && read.external_id() == "message:AAk1");
    let letter = &read.letter;
    assert_eq!(letter.references, ["1@x.example", "2@x.example"]);
    assert_eq!(
        (letter.internet_message_id.as_deref(), letter.subject.as_deref()),
        (Some("3@x.example"), Some("Re: Offer"))
    );
    assert_eq!((letter.place, letter.folders.clone()), (Place::Inbox, vec!["Inbox".to_owned()]));
    assert_eq!((letter.to.len(), letter.to[0].name.as_deref()), (1, None));
    assert!(letter.text.contains("we take it") && !letter.text.contains('\0'), "{}", letter.text);
    assert!(letter.html.as_deref().is_some_and(|html| html.starts_with("<p>") && !html.contains('\0')));
    assert_eq!(letter.notes, [Note::Report]);
    let item = read.item(&READ);
    assert_eq!((item.title.as_deref(), item.raw.is_deleted), (Some("Re: Offer"), false));
    assert_eq!(item.raw.source_updated_at.map(|at| at.to_rfc3339()).as_deref(), Some("2026-11-02T10:00:00+00:00"));

    // In another place, or as a draft, it is not read.
    for (key, value) in [("parentFolderId", json!("junk")), ("isDraft", json!(true))] {
        let mut message = message.clone();
        message[key] = value;
        let item =
            map::message(message, &folders(), None).map_err(|failed| failed.reason).expect("a message").item(&READ);
        assert!(item.raw.is_deleted && item.letter.is_none(), "{key}");
    }
}

#[test]
fn a_message_that_cannot_be_read_is_named_if_it_has_a_name() {
    let name = |value| map::message(value, &folders(), None).err().map(|failed| failed.external_id);
    assert_eq!(name(json!({ "id": "AAk1=", "subject": { "a": 1 } })).as_deref(), Some("message:AAk1="));
    assert!(name(json!({ "subject": "x" })).is_some_and(|name| name.starts_with("message:?")));
    assert_eq!(name(json!({ "id": "AAk1" })), None, "all else may be missing");
}

#[test]
fn a_change_is_whole_partial_or_of_the_state_alone() {
    let whole = json!({ "id": "1", "receivedDateTime": "", "parentFolderId": "", "body": {}, "isDraft": false,
        "hasAttachments": false, "toRecipients": [], "isRead": true });
    for (value, expected) in [
        (whole, Change::Whole),
        (json!({ "id": "1", "@removed": { "reason": "changed" } }), Change::Removed),
        (json!({ "id": "1", "isRead": true, "parentFolderId": "f", "@odata.etag": "x" }), Change::State),
        (json!({ "id": "1", "isRead": true, "subject": "x" }), Change::Part),
        (json!({ "id": "1" }), Change::Part),
        (json!("odd"), Change::Part),
    ] {
        assert_eq!(map::change(&value), expected, "{value}");
    }
}

#[tokio::test]
async fn the_bearer_follows_no_link_to_another_place() {
    let server = Server::start(|asked| {
        if asked.has("/$batch") {
            let body = json!({ "value": [{ "id": "f1", "displayName": "Inbox" }],
                "@odata.nextLink": "https://elsewhere.example/steal?x=1" });
            let requests = asked.json()["requests"].as_array().cloned().unwrap_or_default();
            let answers: Vec<Value> = requests
                .iter()
                .map(|part| match part["url"].as_str().is_some_and(|url| url.contains("displayName")) {
                    true => json!({ "id": part["id"], "status": 200, "body": body }),
                    false => {
                        json!({ "id": part["id"], "status": 404, "body": { "error": { "code": "ErrorItemNotFound" } } })
                    }
                })
                .collect();
            return ok(json!({ "responses": answers }));
        }
        status("404 Not Found", json!({}))
    })
    .await;
    let mut settings = Settings::default();
    settings.set("OUTLOOK_API_URL", format!("{}/v1.0", server.url));
    let connector = spec::outlook(&Http::new().expect("a client"), &settings);
    let person = crate::pull::tests::Person::new();
    let error = connector.full(&person.account(), None, false).await.expect_err("a stranger's link");
    assert_eq!(short(&error), "unreadable: Outlook named a page that is not its own");
}

#[tokio::test]
async fn parts_that_are_missing_or_failing_are_not_taken_for_an_answer() {
    for (part, expected) in [
        (
            json!({ "status": 401, "body": { "error": { "code": "InvalidAuthenticationToken" } } }),
            "token: Outlook refused the token",
        ),
        (
            json!({ "status": 403, "body": { "error": { "code": "ErrorAccessDenied" } } }),
            "refused: Outlook refused what we asked for (ErrorAccessDenied)",
        ),
        (json!({ "status": 502, "body": null }), "passing: Outlook is not well (502)"),
        (json!({ "status": 504, "body": null }), "passing: Outlook is not well (504)"),
        (json!({ "status": 429, "headers": { "Retry-After": "7" }, "body": {} }), "wait: Outlook asked us to wait 7 s"),
        (json!({ "status": 429, "headers": { "retry-after": 9 } }), "wait: Outlook asked us to wait 9 s"),
        (json!({ "status": 200, "body": { "value": "none" } }), "unreadable: Outlook gave an answer of another form"),
        (Value::Null, "passing: Outlook answered only a part of what was asked"),
    ] {
        let server = Server::start(move |asked| {
            let requests = asked.json()["requests"].as_array().cloned().unwrap_or_default();
            let of = |request: &Value| {
                let mut part = part.clone();
                part["id"] = request["id"].clone();
                part
            };
            let answers: Vec<Value> = requests.iter().filter(|_| !part.is_null()).map(of).collect();
            ok(json!({ "responses": answers }))
        })
        .await;
        let connector = server.connector(&SPEC);
        let person = crate::pull::tests::Person::new();
        let error = connector.full(&person.account(), None, false).await.expect_err(expected);
        assert_eq!(short(&error), expected);
    }
}
