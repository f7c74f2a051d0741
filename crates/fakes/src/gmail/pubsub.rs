//! The project's topic, and its push subscription: each change is posted until somebody takes it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::signer::{Claims, TokenFault, token};
use super::{Mailboxes, iso_micros};
use crate::{Fakes, Shared, lock};

/// The statuses by which a post is taken. Any other answer, and none in time, brings it again.
const TAKEN: [u16; 5] = [102, 200, 201, 202, 204];
const WITHIN: Duration = Duration::from_secs(10);
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Deliveries that are remembered.
const KEPT: usize = 20_000;

/// The subscription's name, unless a test says otherwise.
const SUBSCRIPTION: &str = "projects/fakes/subscriptions/gmail-push";

pub(super) struct Topic {
    to: Option<Target>,
    subscription: String,
    waiting: VecDeque<Post>,
    wake: Arc<Notify>,
    /// Posts are kept back until they are released.
    holds: bool,
    n_lost_next: u32,
    n_doubled_next: u32,
    /// Gmail drops what comes faster than once a second for one mailbox.
    drops_bursts: bool,
    last_told: HashMap<String, DateTime<Utc>>,
    is_closed: bool,
    n_published: u64,
    key_ids: Vec<String>,
    faults: VecDeque<TokenFault>,
    deliveries: VecDeque<Delivery>,
}

struct Target {
    url: String,
    proof: Proof,
    _sender: Sender,
}

/// The task that posts. It ends with its target.
struct Sender(AbortHandle);

impl Drop for Sender {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[derive(Clone)]
enum Proof {
    /// A word at the end of the address.
    Word(String),
    Signed {
        audience: String,
        email: String,
    },
}

#[derive(Clone)]
struct Post {
    message_id: String,
    data: String,
    published_at: DateTime<Utc>,
    n_tries: u32,
    /// Not before this moment of the machine's own clock.
    due: tokio::time::Instant,
}

/// A post that was sent, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub message_id: String,
    /// None: there was no answer.
    pub status: Option<u16>,
}

impl Default for Topic {
    fn default() -> Self {
        Self {
            to: None,
            subscription: SUBSCRIPTION.to_owned(),
            waiting: VecDeque::new(),
            wake: Arc::default(),
            holds: false,
            n_lost_next: 0,
            n_doubled_next: 0,
            drops_bursts: false,
            last_told: HashMap::new(),
            is_closed: false,
            n_published: 0,
            key_ids: vec!["fakes-key-1".to_owned()],
            faults: VecDeque::new(),
            deliveries: VecDeque::new(),
        }
    }
}

impl Topic {
    pub fn key_ids(&self) -> Vec<String> {
        self.key_ids.clone()
    }

    /// Whether Gmail may not publish here.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    fn publish(&mut self, address: &str, history_id: u64, now: DateTime<Utc>) {
        if self.to.is_none() {
            return; // nobody subscribes
        }
        let last = self.last_told.insert(address.to_owned(), now);
        if self.drops_bursts && last.is_some_and(|last| now - last < TimeDelta::seconds(1)) {
            return;
        }
        if self.n_lost_next > 0 {
            self.n_lost_next -= 1;
            return;
        }
        let n_times = if self.n_doubled_next > 0 { 2 } else { 1 };
        self.n_doubled_next = self.n_doubled_next.saturating_sub(1);
        self.n_published += 1;
        // Google's own clients show a text here, and its wire has a number.
        let told = json!({"emailAddress": address, "historyId": history_id}).to_string();
        let post = Post {
            message_id: (2_070_443_600_000_000 + self.n_published * 311).to_string(),
            data: STANDARD.encode(told),
            published_at: now,
            n_tries: 0,
            due: tokio::time::Instant::now(),
        };
        (0..n_times).for_each(|_| self.waiting.push_back(post.clone()));
        self.wake.notify_one();
    }
}

/// Tells the topic that a mailbox has changed, if it is watched.
pub(super) fn tell(boxes: &mut Mailboxes, account: &str, address: &str, now: DateTime<Utc>) {
    let mailbox = boxes.of(account);
    let history_id = mailbox.history_id;
    if mailbox.watch.as_ref().is_some_and(|watch| watch.until > now) {
        boxes.topic.publish(address, history_id, now);
    }
}

/// The project's Pub/Sub, in the hands of a test.
#[derive(Clone)]
pub struct Pubsub {
    shared: Arc<Shared>,
}

impl Fakes {
    /// The topic that Gmail tells, and its push subscription.
    pub fn pubsub(&self) -> Pubsub {
        Pubsub { shared: self.shared.clone() }
    }
}

impl Pubsub {
    fn boxes(&self) -> MutexGuard<'_, Mailboxes> {
        lock(self.shared.records())
    }

    fn with<T>(&self, act: impl FnOnce(&mut Topic) -> T) -> T {
        act(&mut self.boxes().topic)
    }

    /// Posts to this address from now on, with a word at its end: `?token=WORD`.
    pub fn push_to(&self, url: &str, word: &str) {
        self.subscribe(url, Proof::Word(word.to_owned()));
    }

    /// Posts to this address from now on, with tokens for an audience that this account signs.
    pub fn push_signed_to(&self, url: &str, audience: &str, email: &str) {
        self.subscribe(url, Proof::Signed { audience: audience.to_owned(), email: email.to_owned() });
    }

    fn subscribe(&self, url: &str, proof: Proof) {
        let shared = Arc::downgrade(&self.shared);
        let wake = self.with(|topic| topic.wake.clone());
        let sender = tokio::spawn(async move {
            loop {
                let Some(shared) = shared.upgrade() else { return };
                let wait = match next(&shared) {
                    Next::Post(post) => {
                        tokio::spawn(send(shared, post));
                        continue;
                    }
                    Next::Wait(wait) => wait,
                };
                drop(shared);
                let _ = timeout(wait, wake.notified()).await;
            }
        });
        let target = Target { url: url.to_owned(), proof, _sender: Sender(sender.abort_handle()) };
        self.with(|topic| topic.to = Some(target));
    }

    /// The name of the subscription in every post.
    pub fn subscription(&self) -> String {
        self.with(|topic| topic.subscription.clone())
    }

    /// Names another subscription in every post from now on.
    pub fn set_subscription(&self, name: &str) {
        self.with(|topic| topic.subscription = name.to_owned());
    }

    /// Loses the next so many notices.
    pub fn lose_next(&self, n_notices: u32) {
        self.with(|topic| topic.n_lost_next = n_notices);
    }

    /// Posts each of the next so many notices twice.
    pub fn double_next(&self, n_notices: u32) {
        self.with(|topic| topic.n_doubled_next = n_notices);
    }

    /// Keeps notices back.
    pub fn hold(&self) {
        self.with(|topic| topic.holds = true);
    }

    /// Posts what was kept back, the last one first.
    pub fn release(&self) {
        self.with(|topic| {
            topic.holds = false;
            topic.waiting.make_contiguous().reverse();
            topic.wake.notify_one();
        });
    }

    /// Drops notices of one mailbox that come faster than once a second, as Gmail does.
    pub fn drop_bursts(&self, drops: bool) {
        self.with(|topic| topic.drops_bursts = drops);
    }

    /// Takes Gmail's right to publish: a watch is refused.
    pub fn close(&self, is_closed: bool) {
        self.with(|topic| topic.is_closed = is_closed);
    }

    /// Signs by a new key from now on. The old one stays listed.
    pub fn rotate_key(&self) {
        self.with(|topic| {
            let id = format!("fakes-key-{}", topic.key_ids.len() + 1);
            topic.key_ids.insert(0, id);
        });
    }

    /// Makes the token of the next signed post wrong.
    pub fn spoil_next(&self, fault: TokenFault) {
        self.with(|topic| topic.faults.push_back(fault));
    }

    /// A token as the posts have it, for a test that posts itself.
    pub fn token(&self, audience: &str, email: &str, fault: Option<TokenFault>) -> Option<String> {
        let now = self.shared.clock.now();
        let key_id = self.with(|topic| topic.key_ids[0].clone());
        token(&Claims { audience, email, key_id: &key_id, now }, fault)
    }

    /// Posts a notice for any address, as somebody who knows the endpoint might.
    pub fn tell(&self, address: &str, history_id: u64) {
        let now = self.shared.clock.now();
        self.with(|topic| topic.publish(address, history_id, now));
    }

    /// Counts the notices that were not lost.
    pub fn n_published(&self) -> u64 {
        self.with(|topic| topic.n_published)
    }

    /// Counts the notices that nobody has taken yet.
    pub fn n_waiting(&self) -> usize {
        self.with(|topic| topic.waiting.len())
    }

    /// Every post that was sent, in the order in which they ended.
    pub fn deliveries(&self) -> Vec<Delivery> {
        self.with(|topic| topic.deliveries.iter().cloned().collect())
    }
}

enum Next {
    Post(Sent),
    Wait(Duration),
}

/// A post, ready to be sent.
struct Sent {
    post: Post,
    url: String,
    bearer: Option<String>,
    body: String,
}

fn next(shared: &Shared) -> Next {
    let now = shared.clock.now();
    let mut boxes = lock(shared.records::<Mailboxes>());
    let topic = &mut boxes.topic;
    let Some(target) = topic.to.as_ref().filter(|_| !topic.holds) else { return Next::Wait(LONGEST_WAIT) };
    let at = tokio::time::Instant::now();
    let Some(index) = topic.waiting.iter().position(|post| post.due <= at) else {
        let first = topic.waiting.iter().map(|post| post.due).min();
        return Next::Wait(first.map_or(LONGEST_WAIT, |due| due.saturating_duration_since(at)));
    };
    let (mut url, mut bearer) = (target.url.clone(), None);
    match &target.proof {
        Proof::Word(word) => {
            url.push(if url.contains('?') { '&' } else { '?' });
            url.push_str(&format!("token={word}"));
        }
        Proof::Signed { audience, email } => {
            let claims = Claims { audience, email, key_id: &topic.key_ids[0], now };
            bearer = token(&claims, topic.faults.pop_front());
        }
    }
    let Some(post) = topic.waiting.remove(index) else { return Next::Wait(FIRST_WAIT) };
    let time = iso_micros(post.published_at);
    let message = json!({"data": post.data, "messageId": post.message_id, "message_id": post.message_id,
        "publishTime": time, "publish_time": time, "attributes": {}});
    let body = json!({"message": message, "subscription": topic.subscription}).to_string();
    Next::Post(Sent { post, url, bearer, body })
}

async fn send(shared: Arc<Shared>, sent: Sent) {
    let status = timeout(WITHIN, post(&sent.url, sent.bearer.as_deref(), &sent.body)).await.ok().flatten();
    let mut boxes = lock(shared.records::<Mailboxes>());
    let topic = &mut boxes.topic;
    let mut post = sent.post;
    topic.deliveries.push_back(Delivery { message_id: post.message_id.clone(), status });
    if topic.deliveries.len() > KEPT {
        topic.deliveries.pop_front();
    }
    if !status.is_some_and(|status| TAKEN.contains(&status)) {
        let wait = FIRST_WAIT.saturating_mul(1 << post.n_tries.min(10)).min(LONGEST_WAIT);
        post.n_tries += 1;
        post.due = tokio::time::Instant::now() + wait;
        topic.waiting.push_back(post);
    }
    topic.wake.notify_one();
}

/// Posts JSON to an address of this machine. None: there was no answer.
async fn post(url: &str, bearer: Option<&str>, body: &str) -> Option<u16> {
    let rest = url.strip_prefix("http://")?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let bearer = bearer.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let head = format!(
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\n{bearer}\
         User-Agent: CloudPubSub-Google\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(host).await.ok()?;
    stream.write_all(head.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    while !answer.contains(&b'\n') {
        if stream.read_buf(&mut answer).await.ok()? == 0 {
            return None;
        }
    }
    String::from_utf8_lossy(&answer).split_whitespace().nth(1)?.parse().ok()
}
