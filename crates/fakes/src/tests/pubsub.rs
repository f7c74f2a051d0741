use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::Browser;
use crate::{Fakes, GMAIL, TokenFault};

const TOPIC: &str = "projects/acme/topics/mail";

/// A post as it came: its head, and what it tells.
#[derive(Clone, Debug)]
struct Heard {
    head: String,
    body: Value,
}

impl Heard {
    fn told(&self) -> Value {
        let data = self.body["message"]["data"].as_str().expect("data");
        serde_json::from_slice(&STANDARD.decode(data).expect("base64")).expect("JSON")
    }

    fn id(&self) -> &str {
        self.body["message"]["messageId"].as_str().expect("an id")
    }
}

/// Listens, and answers with these statuses, then with 200.
struct Ear {
    url: String,
    heard: Arc<Mutex<Vec<Heard>>>,
}

impl Ear {
    async fn listen(statuses: &[u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/webhooks/gmail", listener.local_addr().expect("an address"));
        let heard: Arc<Mutex<Vec<Heard>>> = Arc::default();
        let (log, statuses) = (heard.clone(), statuses.to_vec());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut bytes = Vec::new();
                let (head, body) = loop {
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    if let Some((head, body)) = text.split_once("\r\n\r\n")
                        && let Ok(body) = serde_json::from_str(body)
                    {
                        break (head.to_owned(), body);
                    }
                    if stream.read_buf(&mut bytes).await.unwrap_or_default() == 0 {
                        return;
                    }
                };
                let n_heard = {
                    let mut log = log.lock().expect("the log");
                    log.push(Heard { head, body });
                    log.len()
                };
                let status = statuses.get(n_heard - 1).copied().unwrap_or(200);
                let answer = format!("HTTP/1.1 {status} Said\r\nContent-Length: 0\r\n\r\n");
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Self { url, heard }
    }

    /// The posts, once there are so many.
    async fn posts(&self, n_posts: usize) -> Vec<Heard> {
        let heard = || self.heard.lock().expect("the log").clone();
        let enough = async {
            while heard().len() < n_posts {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(10), enough).await.expect("as many posts");
        heard()
    }
}

async fn watched(statuses: &[u16]) -> (Browser, Ear) {
    let browser = Browser::of(GMAIL, Fakes::start().await).await;
    let ear = Ear::listen(statuses).await;
    browser.fakes.pubsub().push_to(&ear.url, "canary");
    let (status, body) = browser.post_json("/gmail/v1/users/me/watch", json!({"topicName": TOPIC})).await;
    assert_eq!(status, 200, "{body}");
    assert!(body["expiration"].is_string() && body["historyId"].is_string(), "{body}");
    (browser, ear)
}

#[tokio::test]
async fn a_watch_tells_at_once_and_then_of_every_change() {
    let (browser, ear) = watched(&[]).await;
    let gmail = browser.fakes.gmail();
    ear.posts(1).await;
    gmail.receive("ana@acme.example", "Lift", "Tuesday?");
    let posts = ear.posts(2).await;
    let told = posts[1].told();
    assert_eq!(told["emailAddress"], "office@harrowridge.example");
    assert!(told["historyId"].is_u64(), "{told}");
    assert_eq!(posts[1].body["subscription"], browser.fakes.pubsub().subscription());
    assert!(posts[1].head.starts_with("POST /webhooks/gmail?token=canary HTTP/1.1"), "{}", posts[1].head);

    let stopped = browser.post("/gmail/v1/users/me/stop").send().await.expect("an answer");
    assert_eq!(stopped.status(), 204);
    gmail.receive("ana@acme.example", "Lift", "Wednesday?");
    assert_eq!((gmail.watched_until(), browser.fakes.pubsub().n_published()), (None, 2));
}

#[tokio::test]
async fn a_watch_lasts_seven_days_and_belongs_to_one_topic() {
    let (browser, _ear) = watched(&[]).await;
    let gmail = browser.fakes.gmail();
    let watch = async |topic: &str| browser.post_json("/gmail/v1/users/me/watch", json!({"topicName": topic})).await;
    let (status, body) = watch("projects/acme/topics/another").await;
    let message = body["error"]["message"].as_str().unwrap_or_default();
    assert!(status == 400 && message.starts_with("Only one user push notification client"), "{body}");
    assert_eq!(watch("mail").await.0, 400);
    browser.fakes.pubsub().close(true);
    let (status, body) = watch(TOPIC).await;
    assert_eq!((status, &body["error"]["errors"][0]["reason"]), (403, &json!("forbidden")));
    browser.fakes.pubsub().close(false);
    let until = gmail.watched_until().expect("a watch");
    browser.fakes.advance(Duration::from_secs(600));
    assert_eq!(watch(TOPIC).await.0, 200);
    assert!(gmail.watched_until().expect("a watch") > until);
    browser.fakes.advance(Duration::from_secs(8 * 86_400));
    assert_eq!(gmail.watched_until(), None);
}

#[tokio::test]
async fn a_post_that_nobody_takes_comes_again() {
    let (browser, ear) = watched(&[500, 403, 302]).await;
    let posts = ear.posts(4).await;
    assert!(posts.iter().all(|post| post.id() == posts[0].id()), "{posts:?}");
    let pubsub = browser.fakes.pubsub();
    while pubsub.deliveries().len() < 4 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let statuses: Vec<Option<u16>> = pubsub.deliveries().into_iter().map(|delivery| delivery.status).collect();
    assert_eq!(statuses, [Some(500), Some(403), Some(302), Some(200)]);
    assert_eq!(pubsub.n_waiting(), 0);
}

#[tokio::test]
async fn notices_are_lost_doubled_and_turned_round() {
    let (browser, ear) = watched(&[]).await;
    let (gmail, pubsub) = (browser.fakes.gmail(), browser.fakes.pubsub());
    ear.posts(1).await;
    let receive = || gmail.receive("ana@acme.example", "Lift", "Tuesday?");
    pubsub.lose_next(1);
    receive();
    pubsub.double_next(1);
    receive();
    let posts = ear.posts(3).await;
    assert_eq!(posts[1].id(), posts[2].id());
    pubsub.hold();
    (0..3).for_each(|_| drop(receive()));
    assert_eq!(pubsub.n_waiting(), 3);
    pubsub.release();
    let mut numbers: Vec<u64> =
        ear.posts(6).await[3..].iter().map(|post| post.told()["historyId"].as_u64().expect("a number")).collect();
    assert!(numbers.iter().max() != numbers.last() || numbers.len() == 3, "{numbers:?}");
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 3);
    pubsub.drop_bursts(true);
    let before = pubsub.n_published();
    (0..10).for_each(|_| drop(receive()));
    assert!(pubsub.n_published() - before <= 1, "one in a second");
}

#[tokio::test]
async fn signed_posts_bring_a_token_that_the_listed_key_has_signed() {
    let browser = Browser::of(GMAIL, Fakes::start().await).await;
    let (ear, pubsub) = (Ear::listen(&[]).await, browser.fakes.pubsub());
    let email = "push@acme.iam.gserviceaccount.com";
    pubsub.push_signed_to(&ear.url, "https://hear.example/webhooks/gmail", email);
    pubsub.tell("office@harrowridge.example", 7);
    let post = ear.posts(1).await.remove(0);
    let bearer = post.head.split("Bearer ").nth(1).and_then(|rest| rest.split("\r\n").next()).expect("a token");
    let part = |n: usize| -> Value {
        let text = bearer.split('.').nth(n).expect("a part");
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).expect("base64")).expect("JSON")
    };
    assert_eq!((&part(1)["email"], &part(1)["email_verified"]), (&json!(email), &json!(true)));
    let (_, keys) = browser.get_json("/oauth2/v3/certs").await;
    assert_eq!(keys["keys"][0]["kid"], part(0)["kid"]);
    pubsub.rotate_key();
    let (_, keys) = browser.get_json("/oauth2/v3/certs").await;
    assert_eq!((keys["keys"].as_array().map(Vec::len), &keys["keys"][1]["kid"]), (Some(2), &part(0)["kid"]));

    assert_eq!(pubsub.token("a", "b", Some(TokenFault::Absent)), None);
    let good = pubsub.token("a", "b", None).expect("a token");
    for fault in [
        TokenFault::Issuer,
        TokenFault::Audience,
        TokenFault::Email,
        TokenFault::Unverified,
        TokenFault::Expired,
        TokenFault::Future,
        TokenFault::UnknownKey,
        TokenFault::Forged,
        TokenFault::Unsigned,
    ] {
        assert_ne!(pubsub.token("a", "b", Some(fault)).as_ref(), Some(&good), "{fault:?}");
    }
}
