//! Files, look-ups, the census and subscriptions.

use chrono::TimeDelta;
use domain::mail::{LeftOut, Letter};
use fakes::Manner;

use super::*;
use crate::pull::mailbox::Of;

fn bytes(text: &str) -> String {
    use base64::Engine as _;
    base64::prelude::BASE64_STANDARD.encode(text)
}

async fn letter(reader: &Reader, id: &str) -> Letter {
    let (items, failed) =
        reader.connector.find(&reader.account(), &[format!("message:{id}")]).await.expect("an answer");
    assert_eq!(failed, []);
    *items.into_iter().next().and_then(|item| item.letter).expect("a letter")
}

#[tokio::test]
async fn files_are_fetched_where_they_are_kept_and_nowhere_else() {
    let reader = Reader::of(Fakes::start().await);
    let outlook = reader.fakes.outlook();
    let id = outlook.add(
        "inbox",
        json!({ "subject": "Files", "body": { "contentType": "text", "content": "See below." }, "attachments": [
            { "name": "offer.pdf", "contentType": "application/pdf", "contentBytes": bytes("%PDF-1.4 offer") },
            { "name": "page.html", "contentType": "text/html; charset=utf-8", "contentBytes": bytes("<p>Hello</p>") },
            { "name": "logo.png", "contentType": "image/png", "isInline": true, "contentBytes": bytes("png") },
            { "name": "visit.ics", "contentType": "text/calendar", "contentBytes": bytes("BEGIN:VCALENDAR") },
            { "name": "slides.pptx", "contentType": "application/vnd.ms-powerpoint", "contentBytes": bytes("x") },
            { "name": "huge.pdf", "contentType": "application/pdf", "size": 40_000_000, "contentBytes": bytes("x") },
            { "@odata.type": "#microsoft.graph.referenceAttachment", "name": "In the cloud" },
            { "@odata.type": "#microsoft.graph.itemAttachment", "name": "Fwd",
              "contentBytes": bytes("From: Ann <ann@example.com>\r\nSubject: Inner\r\n\r\nThe inner words.\r\n") },
            { "@odata.type": "#microsoft.graph.itemAttachment", "name": "Meeting", "contentBytes": bytes("BEGIN:VCALENDAR\r\n") },
        ] }),
    );
    let read = letter(&reader, &id).await;
    let files: Vec<_> = read
        .files
        .iter()
        .map(|file| (file.name.as_deref().unwrap_or_default(), file.content.as_ref().map(|b| b.len()), file.left_out))
        .collect();
    assert_eq!(
        files,
        [
            ("offer.pdf", Some(14), None),
            ("page.html", Some(12), None),
            ("logo.png", None, Some(LeftOut::Inline)),
            ("visit.ics", None, Some(LeftOut::Machine)),
            ("slides.pptx", None, Some(LeftOut::Kind)),
            ("huge.pdf", None, Some(LeftOut::TooLarge)),
            ("In the cloud", None, Some(LeftOut::Kind)),
            ("Meeting", None, Some(LeftOut::Machine)),
        ]
    );
    assert_eq!(read.files[0].size_bytes, 14);
    assert!(read.text.contains("See below.") && read.text.contains("The inner words."), "{}", read.text);
    // The bytes of one that is left out are never asked for.
    assert_eq!(reader.fakes.ledger().iter().filter(|seen| seen.path.ends_with("/$value")).count(), 5);
}

#[tokio::test]
async fn letters_whose_files_do_not_fit_into_a_page_come_with_later_ones() {
    let mut reader = Reader::of(Fakes::start().await);
    let outlook = reader.fakes.outlook();
    for number in 0..6 {
        let file = json!({ "name": "a.pdf", "contentType": "application/pdf", "size": 20_000_000, "contentBytes": bytes("x") });
        outlook.add("inbox", json!({ "subject": format!("m{number}"), "attachments": [file] }));
    }
    reader.full().await.expect("a pass");
    reader.assert_equal();
    assert!(reader.n_pages > 2, "{}", reader.n_pages);
}

#[tokio::test]
async fn what_is_not_found_or_not_read_is_gone() {
    let reader = Reader::of(Fakes::with_fixtures().await);
    let outlook = reader.fakes.outlook();
    let kept = outlook.truth();
    let names: Vec<String> = kept.iter().map(|kept| format!("message:{}", kept.id)).collect();
    let mut asked = names.clone();
    asked.extend(["message:AAkAnothers", "message:../../me", "file:7"].map(str::to_owned));
    let (items, failed) = reader.connector.find(&reader.account(), &asked).await.expect("an answer");
    assert_eq!((items.len(), failed.len()), (outlook.read_truth().len(), 0));
    assert!(items.iter().all(|item| names.contains(&item.raw.external_id) && !item.raw.is_deleted));
}

#[tokio::test]
async fn the_census_counts_what_lies_in_the_places_that_are_read() {
    let reader = Reader::of(Fakes::start().await);
    let outlook = reader.fakes.outlook();
    outlook.fill(1_300, 7);
    let (first, draft) = (outlook.ids()[0].clone(), outlook.ids()[1].clone());
    outlook.delete(&first);
    outlook.edit(&draft, json!({ "isDraft": true }));
    let now = reader.fakes.now();
    let (from, to) = (now - TimeDelta::hours(20), now - TimeDelta::hours(1));
    let (mut counted, mut place, mut pages) = (Vec::new(), None, 0);
    loop {
        let census = reader.connector.census(&reader.account(), from, to, place.as_ref()).await.expect("a census");
        counted.extend(census.letters.into_iter().map(|letter| letter.external_id));
        pages += 1;
        if !census.more {
            break;
        }
        place = Some(census.next);
    }
    // Graph tells seconds.
    let inside =
        |at: chrono::DateTime<chrono::Utc>| at.timestamp() >= from.timestamp() && at.timestamp() < to.timestamp();
    let mut truth: Vec<String> = outlook
        .read_truth()
        .into_iter()
        .filter(|kept| inside(kept.received_at))
        .map(|kept| format!("message:{}", kept.id))
        .collect();
    counted.sort();
    truth.sort();
    assert_eq!((counted, pages), (truth, 2));
}

#[tokio::test]
async fn subscriptions_are_made_renewed_made_anew_and_let_go() {
    let (heard, url) = fakes_listener().await;
    let mut reader = Reader::of(Fakes::start().await);
    let outlook = reader.fakes.outlook();
    let secret = Secret::new("a-client-state-that-nobody-knows");
    let address = Address { url: &url, client_state: &secret };
    let made = reader.connector.subscribe(&reader.account(), &address).await.expect("a subscription");
    let life = made.expires_at - reader.fakes.now();
    assert!(life > TimeDelta::days(6) && life < TimeDelta::days(7), "{life}");
    outlook.receive("a@example.com", "new", "x");
    let body = heard.recv().await;
    let notices = (SPEC.mailbox.as_ref().expect("a mailbox").notices)(body.as_bytes()).expect("notices");
    assert_eq!(notices[0].of, Of::Subscription(made.id.clone().expect("an id")));
    assert_eq!(notices[0].client_state.as_ref().map(Secret::reveal), Some(secret.reveal()));

    // Another one of the same kind cannot be: the older one goes.
    let other = Secret::new("another-client-state-for-later");
    let address = Address { url: &url, client_state: &other };
    let second = reader.connector.subscribe(&reader.account(), &address).await.expect("a subscription");
    assert_ne!(second.id, made.id);
    assert_eq!(outlook.subscriptions().len(), 1);
    reader.fakes.advance(std::time::Duration::from_secs(3 * 86_400));
    reader.token = Secret::new(reader.fakes.issue(OUTLOOK).access_token);
    let renewed = reader.connector.renew(&reader.account(), &second).await.expect("an answer").expect("a subscription");
    assert!(renewed.expires_at > second.expires_at + TimeDelta::days(2));
    assert_eq!(reader.connector.renew(&reader.account(), &made).await.expect("an answer"), None);
    reader.connector.unsubscribe(&reader.account(), &renewed).await.expect("an answer");
    reader.connector.unsubscribe(&reader.account(), &renewed).await.expect("an answer");
    assert_eq!(outlook.subscriptions(), []);

    outlook.refuse_next_handshake();
    let refused = reader.connector.subscribe(&reader.account(), &address).await.expect_err("nobody answers");
    assert!(matches!(refused, PullError::Forbidden { ref code, .. } if code == "InvalidRequest"), "{refused}");
}

#[tokio::test]
async fn an_account_is_known_by_its_address() {
    let reader = Reader::of(Fakes::start().await);
    let identity = reader.connector.identify(&reader.account()).await.expect("an identity");
    assert_eq!(identity.account, "office@harrowridge.example");
    assert_eq!(identity.name, "office@harrowridge.example");
    reader.fakes.next("/outlook", Manner::Status(403));
    let refused = reader.connector.identify(&reader.account()).await.expect_err("a refusal");
    assert_eq!(refused.to_string(), "Outlook refused what we asked for (ErrorAccessDenied)");
    reader.fakes.expire_access(OUTLOOK);
    let refused = reader.connector.identify(&reader.account()).await.expect_err("a refusal");
    assert!(matches!(refused, PullError::Unauthorized { .. }), "{refused}");
}

/// Somebody who repeats tokens and hears notices.
struct Heard(tokio::sync::Mutex<tokio::sync::mpsc::UnboundedReceiver<String>>);

impl Heard {
    async fn recv(&self) -> String {
        let within = std::time::Duration::from_secs(10);
        tokio::time::timeout(within, self.0.lock().await.recv()).await.expect("in time").expect("a notice")
    }
}

async fn fakes_listener() -> (Heard, String) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/webhooks/outlook", listener.local_addr().expect("an address"));
    let (send, receive) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let send = send.clone();
            tokio::spawn(async move {
                let mut bytes = Vec::new();
                let text = loop {
                    let n_read = stream.read_buf(&mut bytes).await.unwrap_or_default();
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    let length =
                        text.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.trim().parse().ok());
                    let body = text.split_once("\r\n\r\n").map(|(_, body)| body.len());
                    if n_read == 0 || body.is_some_and(|body| body >= length.unwrap_or(0)) {
                        break text;
                    }
                };
                let line = text.lines().next().unwrap_or_default().to_owned();
                let token = line.split_once("validationToken=").and_then(|(_, rest)| rest.split(' ').next());
                let (kind, body) = match token {
                    Some(token) => ("text/plain", decoded(token)),
                    None => {
                        let _ =
                            send.send(text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default());
                        ("application/json", String::new())
                    }
                };
                let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n", body.len());
                let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
            });
        }
    });
    (Heard(tokio::sync::Mutex::new(receive)), url)
}

fn decoded(text: &str) -> String {
    let url = reqwest::Url::parse(&format!("http://x/?t={text}")).expect("a URL");
    url.query_pairs().next().map(|(_, value)| value.into_owned()).unwrap_or_default()
}
