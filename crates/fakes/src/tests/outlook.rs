use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::{Browser, texts};
use crate::{Fakes, Lifecycle, Manner, NoticeDelivery, OUTLOOK};

const API: &str = "/outlook/v1.0";
const IMMUTABLE: &str = "IdType=\"ImmutableId\"";

async fn start() -> Browser {
    Browser::of(OUTLOOK, Fakes::with_fixtures().await).await
}

impl Browser {
    /// Asks Graph, by a path below its address or by a link.
    async fn graph(&self, path: &str, prefer: &str) -> (u16, Value) {
        let url = match path.starts_with("http") {
            true => path.to_owned(),
            false => format!("{}{API}{path}", self.fakes.url()),
        };
        let request = self.client.get(url).bearer_auth(&self.token).header("prefer", prefer);
        super::json(request.send().await.expect("an answer")).await
    }

    /// Every page of a round, and the link that it ends with.
    async fn round(&self, first: &str, size: usize) -> (Vec<Value>, String) {
        let (mut rows, mut path) = (Vec::new(), first.to_owned());
        loop {
            let (status, page) = self.graph(&path, &format!("odata.maxpagesize={size}, {IMMUTABLE}")).await;
            assert_eq!(status, 200, "{page}");
            rows.extend(page["value"].as_array().expect("rows").iter().cloned());
            assert_ne!(page.get("@odata.nextLink").is_some(), page.get("@odata.deltaLink").is_some(), "never both");
            match page["@odata.nextLink"].as_str() {
                Some(next) => path = next.to_owned(),
                None => return (rows, page["@odata.deltaLink"].as_str().expect("a link").to_owned()),
            }
        }
    }

    async fn subscribe(&self, url: &str, minutes: i64) -> (u16, Value) {
        let until = self.fakes.now() + chrono::TimeDelta::minutes(minutes);
        let asked = json!({"changeType": "created,updated,deleted", "resource": "/me/messages", "notificationUrl": url,
            "lifecycleNotificationUrl": url, "clientState": "our-secret", "expirationDateTime": until.to_rfc3339()});
        let request = self.post(&format!("{API}/subscriptions")).header("prefer", IMMUTABLE).json(&asked);
        super::json(request.send().await.expect("an answer")).await
    }
}

#[tokio::test]
async fn the_mailbox_is_that_of_the_fixtures() {
    let browser = start().await;
    let (_, me) = browser.graph("/me", "").await;
    assert_eq!(me["mail"], "office@harrowridge.example");
    let (_, folders) = browser.graph("/me/mailFolders?$top=50", "").await;
    let names: BTreeSet<String> =
        texts(folders["value"].as_array().expect("rows"), "/displayName").into_iter().collect();
    assert!(names.contains("Inbox") && names.contains("Deleted Items") && !names.contains("Deletions"), "{names:?}");
    let (_, page) = browser.graph("/me/messages?$top=1000&$select=subject,isDraft", IMMUTABLE).await;
    let rows = page["value"].as_array().expect("rows");
    assert_eq!((rows.len(), browser.fakes.outlook().count()), (16, 16));
    assert!(rows.iter().all(|row| row.as_object().is_some_and(|row| {
        row.keys().all(|key| ["id", "subject", "isDraft", "@odata.etag", "@odata.type"].contains(&key.as_str()))
    })));
    assert_eq!(browser.fakes.outlook().read_truth().len(), 13);
    let token = browser.client.get(format!("{}{API}/me", browser.fakes.url())).send().await.expect("an answer");
    assert_eq!(token.status(), 401);
}

#[tokio::test]
async fn a_delta_tells_what_came_and_left_and_a_token_can_be_lost() {
    let browser = start().await;
    let outlook = browser.fakes.outlook();
    let first = "/me/mailFolders/inbox/messages/delta?$select=subject,isRead,parentFolderId";
    let (rows, link) = browser.round(first, 4).await;
    assert_eq!(rows.len(), 11);
    assert!(rows.iter().all(|row| row.get("body").is_none() && row["subject"].is_string()));
    let (rows, link) = browser.round(&link, 4).await;
    assert_eq!(rows, Vec::<Value>::new());

    let inbox: Vec<String> =
        outlook.truth().into_iter().filter(|kept| kept.place == "inbox").map(|kept| kept.id).collect();
    let new = outlook.receive("ann@example.com", "Hello", "Text");
    outlook.delete(&inbox[0]);
    outlook.purge(&inbox[1]);
    outlook.mark_read(&inbox[2], true);
    let (rows, after) = browser.round(&link, 2).await;
    let row = |id: &str| rows.iter().find(|row| row["id"] == id).cloned().unwrap_or_default();
    assert_eq!(rows.len(), 4);
    assert_eq!(row(&new)["subject"], "Hello");
    assert_eq!(
        (&row(&inbox[0])["@removed"], &row(&inbox[1])["@removed"]),
        (&json!({"reason": "changed"}), &json!({"reason": "deleted"}))
    );
    // Read, and nothing else: not all that was selected.
    assert!(row(&inbox[2]).get("subject").is_none() && row(&inbox[2])["isRead"] == true);
    assert_eq!(browser.round(&after, 2).await.0.len(), 0);

    browser.fakes.next(API, Manner::LostToken);
    assert_eq!(browser.graph(&after, "").await.0, 410);
    outlook.expire_cursors();
    let (status, error) = browser.graph(&after, "").await;
    assert_eq!((status, &error["error"]["code"]), (410, &json!("SyncStateNotFound")));
    assert_eq!(browser.graph(&format!("{first}&$filter=x"), "").await.0, 400);
}

#[tokio::test]
async fn ids_change_with_a_move_unless_immutable_ones_are_asked_for() {
    let browser = start().await;
    let outlook = browser.fakes.outlook();
    let id = outlook.receive("ann@example.com", "Hello", "Text");
    let (_, shown) = browser.graph(&format!("/me/messages/{id}?$select=subject"), "").await;
    let mutable = shown["id"].as_str().expect("an id").to_owned();
    assert_ne!(mutable, id);
    assert_eq!(browser.graph(&format!("/me/messages/{mutable}"), IMMUTABLE).await.1["id"], id);
    outlook.move_to(&id, "archive");
    assert_eq!(browser.graph(&format!("/me/messages/{mutable}"), "").await.0, 404);
    let (status, shown) = browser.graph(&format!("/me/messages/{id}"), IMMUTABLE).await;
    assert_eq!((status, &shown["id"]), (200, &json!(id)));
}

#[tokio::test]
async fn batches_answer_in_any_order_and_parts_are_refused_one_by_one() {
    let browser = start().await;
    let part = |id: usize, url: &str| json!({"id": id.to_string(), "method": "GET", "url": url});
    let ask = |parts: Vec<Value>| browser.post_json("/outlook/v1.0/$batch", json!({"requests": parts}));
    browser.fakes.outlook().throttle_parts(1, 10);
    let (status, answer) = ask(vec![part(1, "/me"), part(2, "/me"), part(3, "/me/messages/none")]).await;
    let of = |id: &str| {
        let answers = answer["responses"].as_array().expect("answers");
        answers.iter().find(|answer| answer["id"] == id).cloned().unwrap_or_default()
    };
    assert_eq!(status, 200);
    assert_eq!((&of("1")["status"], &of("1")["headers"]["Retry-After"]), (&json!(429), &json!("10")));
    assert_eq!((&of("2")["status"], &of("3")["status"]), (&json!(200), &json!(404)));
    assert_eq!(of("3")["body"]["error"]["code"], "ErrorItemNotFound");
    assert_eq!(browser.fakes.outlook().units(), 3);
    assert_eq!(ask((0..21).map(|id| part(id, "/me")).collect()).await.0, 400);
    assert_eq!(ask(vec![part(1, "/me"), part(1, "/me")]).await.0, 400);
}

#[tokio::test]
async fn files_are_listed_without_their_bytes_where_somebody_selects() {
    let browser = start().await;
    let offer = browser.fakes.outlook().truth().into_iter().find(|kept| kept.files.len() == 2).expect("two files");
    let path = format!("/me/messages/{}/attachments", offer.id);
    let (_, list) = browser.graph(&format!("{path}?$select=id,name,size,isInline"), "").await;
    let rows = list["value"].as_array().expect("rows");
    assert!(rows.iter().all(|row| row.get("contentBytes").is_none()) && rows[1]["isInline"] == true);
    assert_eq!(browser.graph(&format!("{path}?$select=id,contentId"), "").await.0, 400);
    let id = rows[0]["id"].as_str().expect("an id");
    let bytes = browser.get(&format!("{API}{path}/{id}/$value")).send().await.expect("an answer");
    assert_eq!(bytes.headers()["content-type"], "application/pdf");
    assert!(bytes.bytes().await.expect("a body").starts_with(b"%PDF"));
    let garage =
        browser.fakes.outlook().truth().into_iter().find(|kept| kept.subject.starts_with("Hospital")).expect("it");
    let (_, list) = browser.graph(&format!("/me/messages/{}/attachments", garage.id), "").await;
    let id = list["value"][0]["id"].as_str().expect("an id");
    assert_eq!(browser.graph(&format!("/me/messages/{}/attachments/{id}/$value", garage.id), "").await.0, 405);
}

#[tokio::test]
async fn more_than_four_requests_at_a_time_and_pages_that_are_too_large_are_refused() {
    let browser = start().await;
    let outlook = browser.fakes.outlook();
    outlook.take_time(Duration::from_millis(300));
    let all = (0..6).map(|_| browser.graph("/me", ""));
    let statuses: Vec<u16> = futures_util::future::join_all(all).await.into_iter().map(|(status, _)| status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 2, "{statuses:?}");
    outlook.take_time(Duration::ZERO);
    outlook.set_page_max(Some(5));
    let bodies = "/me/mailFolders/inbox/messages/delta?$select=body";
    assert_eq!(browser.graph(bodies, "odata.maxpagesize=6").await.0, 504);
    assert_eq!(browser.graph(bodies, "odata.maxpagesize=5").await.0, 200);
}

/// Somebody who subscribes: repeats tokens, and keeps what comes.
#[derive(Clone, Default)]
struct Subscriber {
    heard: Arc<Mutex<Vec<Value>>>,
    /// So many posts are refused first.
    refuses: Arc<Mutex<u32>>,
}

impl Subscriber {
    async fn listen(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/n?key=1", listener.local_addr().expect("an address"));
        let subscriber = self.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut bytes = vec![0; 65_536];
                let mut text = String::new();
                while !text.contains("\r\n\r\n") || (text.contains("application/json") && !text.ends_with('}')) {
                    let n_read = stream.read(&mut bytes).await.unwrap_or_default();
                    if n_read == 0 {
                        break;
                    }
                    text.push_str(&String::from_utf8_lossy(&bytes[..n_read]));
                }
                let _ = stream.write_all(subscriber.answer(&text).as_bytes()).await;
            }
        });
        url
    }

    fn answer(&self, text: &str) -> String {
        let line = text.lines().next().unwrap_or_default();
        if let Some((_, token)) = line.split_once("validationToken=") {
            assert!(line.contains("key=1&"), "our own query is kept: {line}");
            let token = token.split(' ').next().unwrap_or_default();
            let url = reqwest::Url::parse(&format!("http://x/?t={token}")).expect("a URL");
            let token = url.query_pairs().next().map(|(_, value)| value.into_owned()).unwrap_or_default();
            return format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{token}",
                token.len()
            );
        }
        let mut refuses = self.refuses.lock().expect("a count");
        if *refuses > 0 {
            *refuses -= 1;
            return "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_owned();
        }
        let body = text.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
        let posted: Value = serde_json::from_str(body).expect("JSON");
        self.heard.lock().expect("a list").extend(posted["value"].as_array().cloned().unwrap_or_default());
        "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".to_owned()
    }

    async fn until(&self, n_heard: usize) -> Vec<Value> {
        for _ in 0..500 {
            let heard = self.heard.lock().expect("a list").clone();
            if heard.len() >= n_heard {
                return heard;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("heard only {:?}", self.heard.lock());
    }
}

#[tokio::test]
async fn a_subscription_is_checked_told_and_ends() {
    let browser = start().await;
    let (outlook, subscriber) = (browser.fakes.outlook(), Subscriber::default());
    let url = subscriber.listen().await;
    assert_eq!(browser.subscribe("http://127.0.0.1:1/n", 60).await.0, 400, "nobody answers there");
    assert_eq!(browser.subscribe(&url, 10_200).await.0, 400, "longer than seven days");
    let (status, made) = browser.subscribe(&url, 5).await;
    assert_eq!((status, &made["clientState"]), (201, &json!("our-secret")));
    let (id, ends) = outlook.subscriptions()[0].clone();
    assert!((ends - browser.fakes.now()).num_minutes() >= 44, "never shorter than 45 minutes");
    assert_eq!(browser.subscribe(&url, 60).await.0, 409);

    *subscriber.refuses.lock().expect("a count") = 1;
    let message = outlook.receive("ann@example.com", "Hello", "Text");
    let heard = subscriber.until(2).await;
    assert_eq!(texts(&heard, "/changeType"), ["created", "updated"]);
    assert!(
        heard.iter().all(|notice| notice["subscriptionId"] == id.as_str() && notice["clientState"] == "our-secret")
    );
    assert_eq!(heard[0]["resourceData"]["id"], message);
    outlook.tell(Lifecycle::Missed);
    let heard = subscriber.until(3).await;
    assert_eq!(heard[2]["lifecycleEvent"], "missed");
    assert!(heard[2].get("changeType").is_none());

    let until = (browser.fakes.now() + chrono::TimeDelta::minutes(600)).to_rfc3339();
    let path = format!("{}{API}/subscriptions/{id}", browser.fakes.url());
    let patch = || browser.client.patch(&path).bearer_auth(&browser.token).json(&json!({"expirationDateTime": until}));
    assert_eq!(patch().send().await.expect("an answer").status(), 200);
    browser.fakes.advance(Duration::from_secs(39_600));
    let token = browser.fakes.issue(OUTLOOK).access_token;
    let late = browser.client.patch(&path).bearer_auth(&token).json(&json!({"expirationDateTime": until}));
    assert_eq!(late.send().await.expect("an answer").status(), 404, "it ended");
}

#[tokio::test]
async fn notices_are_lost_doubled_and_held_back() {
    let browser = start().await;
    let (outlook, subscriber) = (browser.fakes.outlook(), Subscriber::default());
    let url = subscriber.listen().await;
    assert_eq!(browser.subscribe(&url, 600).await.0, 201);
    outlook.deliver(NoticeDelivery::Lost);
    let lost = outlook.receive("ann@example.com", "lost", "x");
    outlook.deliver(NoticeDelivery::Doubled);
    let doubled = outlook.receive("ann@example.com", "doubled", "x");
    let heard = subscriber.until(4).await;
    assert!(heard.iter().all(|notice| notice["resourceData"]["id"] == doubled.as_str()), "{lost}");
    outlook.deliver(NoticeDelivery::Held);
    let first = outlook.receive("ann@example.com", "first", "x");
    outlook.receive("ann@example.com", "second", "x");
    outlook.release_notices();
    let heard = subscriber.until(8).await;
    assert_eq!(heard[7]["resourceData"]["id"], first.as_str());
    outlook.deliver(NoticeDelivery::Normal);
    outlook.remove_subscriptions();
    assert_eq!(subscriber.until(9).await[8]["lifecycleEvent"], "subscriptionRemoved");
    assert_eq!(outlook.subscriptions().len(), 0);
}

#[tokio::test]
async fn tokens_rotate_and_a_refusal_has_microsofts_numbers() {
    let browser = start().await;
    let pair = browser.fakes.issue(OUTLOOK);
    let form = |token: &str| {
        vec![
            ("grant_type", "refresh_token".to_owned()),
            ("refresh_token", token.to_owned()),
            ("client_id", crate::CLIENT_ID.to_owned()),
            ("client_secret", crate::CLIENT_SECRET.to_owned()),
        ]
    };
    let url = format!("{}/oauth/outlook/token", browser.fakes.url());
    let first = pair.refresh_token.expect("a refresh token");
    let (status, fresh) =
        super::json(browser.client.post(&url).form(&form(&first)).send().await.expect("an answer")).await;
    assert_eq!(status, 200);
    assert_ne!(fresh["refresh_token"], first.as_str());
    let (status, refused) =
        super::json(browser.client.post(&url).form(&form(&first)).send().await.expect("an answer")).await;
    assert_eq!((status, &refused["error"]), (400, &json!("invalid_grant")));
    assert!(refused["error_description"].as_str().is_some_and(|words| words.starts_with("AADSTS")));
    let headers: HeaderMap = browser.get(&format!("{API}/me")).send().await.expect("an answer").headers().clone();
    assert!(headers.contains_key("date"));
}
