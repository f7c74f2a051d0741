use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use chrono::{DateTime, TimeDelta};
use serde_json::{Value, json};

use super::{Browser, texts};
use crate::{CLIENT_ID, CLIENT_SECRET, DRIVE, Fakes, GMAIL, Manner};

const USER: &str = "/gmail/v1/users/me";

async fn start() -> Browser {
    Browser::of(GMAIL, Fakes::start().await).await
}

impl Browser {
    async fn mail(&self, path: &str, query: &[(&str, &str)]) -> (u16, Value) {
        super::json(self.get_with(&format!("{USER}/{path}"), query).send().await.expect("an answer")).await
    }

    /// The ids of a listing.
    async fn listed(&self, query: &[(&str, &str)]) -> Vec<String> {
        let (status, body) = self.mail("messages", query).await;
        assert_eq!(status, 200, "{body}");
        texts(rows(&body, "messages"), "/id")
    }

    async fn history(&self, start: &str) -> (u16, Value) {
        self.mail("history", &[("startHistoryId", start), ("maxResults", "500")]).await
    }

    async fn history_id(&self) -> String {
        let (_, profile) = self.mail("profile", &[]).await;
        profile["historyId"].as_str().expect("a number as text").to_owned()
    }

    /// The statuses of a batch's parts, in the order of the requests.
    async fn batch(&self, paths: &[String]) -> (u16, Vec<u16>) {
        let part = |(number, path): (usize, &String)| {
            format!("--b\r\nContent-Type: application/http\r\nContent-ID: <m{number}>\r\n\r\nGET {path}\r\n\r\n")
        };
        let body: String = paths.iter().enumerate().map(part).collect::<String>() + "--b--\r\n";
        let request = self.post("/batch/gmail/v1").header("content-type", "multipart/mixed; boundary=b").body(body);
        let answer = request.send().await.expect("an answer");
        let status = answer.status().as_u16();
        let text = answer.text().await.expect("text");
        let status_of = |number: usize| {
            let (_, rest) = text.split_once(&format!("Content-ID: <response-m{number}>"))?;
            rest.split_once("HTTP/1.1 ")?.1.split_whitespace().next()?.parse().ok()
        };
        (status, (0..paths.len()).filter_map(status_of).collect())
    }
}

fn rows<'a>(body: &'a Value, key: &str) -> &'a [Value] {
    body[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

#[tokio::test]
async fn the_recorded_mailbox_has_eight_conversations() {
    let browser = Browser::of(GMAIL, Fakes::with_fixtures().await).await;
    let (_, profile) = browser.mail("profile", &[]).await;
    assert_eq!(profile["emailAddress"], "office@harrowridge.example");
    assert_eq!((&profile["messagesTotal"], &profile["threadsTotal"]), (&json!(15), &json!(8)));
    let (_, threads) = browser.mail("threads", &[]).await;
    assert_eq!(rows(&threads, "threads")[0]["snippet"].as_str().map(|text| &text[..17]), Some("Do you still have"));
    let (_, thread) = browser.mail("threads/19a2445e01d70020", &[("format", "metadata")]).await;
    let froms = texts(rows(&thread, "messages"), "/payload/headers/0/value");
    assert_eq!(froms[0], "Marisol Penhale <m.penhale@stonebrook.example>");
    let (_, message) = browser.mail("messages/19a1f3b7a8c60010", &[("format", "raw")]).await;
    let raw = URL_SAFE.decode(message["raw"].as_str().expect("bytes")).expect("base64");
    assert!(String::from_utf8_lossy(&raw).contains("filename=\"certificate-2027.pdf\""));
    assert!(message.get("payload").is_none());
}

#[tokio::test]
async fn an_answer_of_the_owner_goes_to_who_wrote_and_stays_in_the_conversation() {
    let browser = start().await;
    let gmail = browser.fakes.gmail();
    let first = gmail.receive("Ana <ana@acme.example>", "Lift", "Tuesday?");
    let answer = gmail.send_reply(&first, "Re: Lift", "Yes, at nine.");
    let letters = gmail.letters();
    let of = |id: &str| letters.iter().find(|letter| letter.id == id).expect("a letter");
    assert_eq!(
        (of(&answer).thread_id.as_str(), of(&answer).labels.as_slice()),
        (first.as_str(), &["SENT".to_owned()][..])
    );
    assert!(String::from_utf8_lossy(&of(&answer).raw).contains("\r\nTo: Ana <ana@acme.example>\r\n"));
}

#[tokio::test]
async fn listings_are_searched_from_the_newest_to_the_oldest() {
    let browser = start().await;
    let gmail = browser.fakes.gmail();
    assert_eq!(browser.mail("messages", &[]).await.1, json!({"resultSizeEstimate": 0}));
    let first = gmail.receive("Ana <ana@acme.example>", "Lift", "Tuesday?");
    let answer = gmail.receive_reply(&first, "Ana <ana@acme.example>", "Re: Lift", "Or Friday.");
    let sent = gmail.send("bo@larkfield.example", "Loader", "It is ready.");
    let draft = gmail.draft("bo@larkfield.example", "Loader", "It is");
    let spam = gmail.receive("x@y.example", "Win", "Win");
    gmail.mark_spam(&spam);
    let archived = gmail.receive("Ana <ana@acme.example>", "Old", "Old");
    gmail.archive(&archived);
    let of = |ids: &[&String]| ids.iter().map(|id| (*id).clone()).collect::<Vec<_>>();
    for (query, expected) in [
        (&[][..], of(&[&archived, &draft, &sent, &answer, &first])),
        (&[("q", "-in:drafts")], of(&[&archived, &sent, &answer, &first])),
        (&[("q", "{-in:sent in:inbox} -in:drafts")], of(&[&archived, &answer, &first])),
        (&[("q", "-in:inbox {in:inbox in:sent in:drafts}")], of(&[&draft, &sent])),
        (&[("q", "in:spam"), ("includeSpamTrash", "true")], of(&[&spam])),
        (&[("q", "from:ana@acme.example subject:lift")], of(&[&answer, &first])),
        (&[("labelIds", "SENT")], of(&[&sent])),
    ] {
        assert_eq!(browser.listed(query).await, expected, "{query:?}");
    }
    let (_, page) = browser.mail("messages", &[("maxResults", "2")]).await;
    let token = page["nextPageToken"].as_str().expect("a token");
    let next = browser.listed(&[("maxResults", "2"), ("pageToken", token)]).await;
    assert_eq!(next, [sent, answer.clone()]);
    for wrong in [&[("pageToken", "nonsense")][..], &[("pageToken", token), ("q", "other")], &[("maxResults", "501")]] {
        assert_eq!(browser.mail("messages", wrong).await.0, 400, "{wrong:?}");
    }
    let (_, thread) = browser.mail(&format!("threads/{first}"), &[("format", "minimal")]).await;
    assert_eq!(texts(rows(&thread, "messages"), "/id"), [first, answer]);
    assert_eq!((gmail.count(), gmail.readable_ids().len()), (6, 4));
}

#[tokio::test]
async fn a_second_is_the_smallest_piece_of_time_and_a_day_is_californias() {
    let browser = start().await;
    let at = DateTime::from_timestamp(1_793_491_200, 0).expect("midnight");
    let gmail = browser.fakes.gmail();
    let put = |after| gmail.put(b"Subject: x\r\n\r\nx", &["INBOX"], None, Some(at + TimeDelta::milliseconds(after)));
    let (before, first, late) = (put(-1), put(0), put(86_399_999));
    put(86_400_000);
    let day = "after:1793491200 before:1793577600";
    assert_eq!(browser.listed(&[("q", day)]).await, [late, first.clone()]);
    assert_eq!(browser.listed(&[("q", "before:2026/11/01")]).await, [first, before]);
}

#[tokio::test]
async fn the_history_tells_every_change_with_gaps_and_without_what_nobody_asked_for() {
    let browser = start().await;
    let gmail = browser.fakes.gmail();
    let start = browser.history_id().await;
    let (status, none) = browser.history(&start).await;
    assert_eq!((status, none), (200, json!({"historyId": start})));
    let id = gmail.receive("ana@acme.example", "Lift", "Tuesday?");
    gmail.read(&id);
    gmail.read(&id); // nothing changes
    gmail.trash(&id);
    gmail.delete(&id);
    let (_, body) = browser.history(&start).await;
    let kinds: Vec<String> = rows(&body, "history")
        .iter()
        .filter_map(|record| {
            record.as_object()?.keys().find(|key| !["id", "messages"].contains(&key.as_str())).cloned()
        })
        .collect();
    assert_eq!(kinds, ["messagesAdded", "labelsRemoved", "labelsAdded", "labelsRemoved", "messagesDeleted"]);
    let record = &rows(&body, "history")[2]["labelsAdded"][0];
    assert_eq!((&record["labelIds"], &record["message"]["labelIds"]), (&json!(["TRASH"]), &json!(["TRASH"])));
    let numbers: Vec<u64> =
        texts(rows(&body, "history"), "/id").iter().map(|id| id.parse().expect("a number")).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
    assert!(numbers[4] - numbers[0] > 4, "numbers have gaps: {numbers:?}");
    let query =
        [("startHistoryId", start.as_str()), ("historyTypes", "messageDeleted"), ("historyTypes", "messageAdded")];
    assert_eq!(rows(&browser.mail("history", &query).await.1, "history").len(), 2);

    gmail.expire_history();
    let (status, body) = browser.history(&start).await;
    assert_eq!((status, &body["error"]["errors"][0]["reason"]), (404, &json!("notFound")));
    assert_eq!(browser.history(&browser.history_id().await).await.0, 200);
    for wrong in ["", "soon", "0"] {
        assert_eq!(browser.history(wrong).await.0, 400, "{wrong}");
    }
}

#[tokio::test]
async fn the_history_may_lag_and_messages_may_hide() {
    let browser = start().await;
    let gmail = browser.fakes.gmail();
    let start = browser.history_id().await;
    gmail.lag_history(true);
    let id = gmail.receive("ana@acme.example", "Lift", "Tuesday?");
    let (_, body) = browser.history(&start).await;
    assert!(body.get("history").is_none() && body["historyId"] != json!(start), "{body}");
    gmail.lag_history(false);
    assert_eq!(rows(&browser.history(&start).await.1, "history").len(), 1);
    gmail.hide(&id, 1);
    assert_eq!(browser.mail(&format!("messages/{id}"), &[]).await.0, 404);
    assert_eq!(browser.mail(&format!("messages/{id}"), &[]).await.0, 200);
}

#[tokio::test]
async fn drafts_have_another_id_whenever_they_are_saved() {
    let browser = start().await;
    let gmail = browser.fakes.gmail();
    let first = gmail.draft("bo@larkfield.example", "Loader", "It is");
    let second = gmail.edit_draft(&first, "bo@larkfield.example", "Loader", "It is ready.");
    let sent = gmail.send_draft(&second);
    assert!(first != second && second != sent);
    assert_eq!(gmail.letters().iter().map(|letter| letter.labels.join(" ")).collect::<Vec<_>>(), ["SENT"]);
    assert_eq!(gmail.readable_ids(), [sent]);
}

#[tokio::test]
async fn a_batch_answers_each_part_and_costs_what_its_parts_cost() {
    let browser = start().await;
    let gmail = browser.fakes.gmail();
    gmail.fill(30);
    let path = |id: &String| format!("{USER}/messages/{id}?format=raw");
    let paths: Vec<String> = gmail.readable_ids().iter().map(path).collect();
    let before = gmail.units();
    let (status, parts) = browser.batch(&paths).await;
    assert_eq!((status, parts.len()), (200, 30));
    assert!(parts[..25].iter().all(|status| *status == 200) && parts[25..].iter().all(|status| *status == 429));
    assert_eq!(gmail.units() - before, 25 * 20);
    gmail.refuse_parts(1, 503);
    let (_, parts) = browser.batch(&[paths[0].clone(), format!("{USER}/messages/none"), paths[1].clone()]).await;
    assert_eq!(parts, [200, 404, 503], "the last is answered first");
    assert_eq!(browser.batch(&vec![paths[0].clone(); 101]).await.0, 400);
    assert_eq!(browser.fakes.requests("/batch/gmail/v1"), 3);
    assert_eq!(browser.fakes.requests("/gmail/v1/users/me/messages/"), 33, "parts are in the ledger");
}

#[tokio::test]
async fn a_minute_has_so_many_units() {
    let browser = start().await;
    let gmail = browser.fakes.gmail();
    browser.fakes.limit_gmail(Some(12));
    let reason = |body: &Value| body["error"]["errors"][0]["reason"].as_str().unwrap_or_default().to_owned();
    for expected in [200, 200] {
        assert_eq!(browser.mail("messages", &[]).await.0, expected);
    }
    let (status, body) = browser.mail("messages", &[]).await;
    assert_eq!((status, reason(&body).as_str()), (403, "rateLimitExceeded"));
    assert_eq!((browser.mail("profile", &[]).await.0, gmail.units()), (200, 11));
    browser.fakes.advance(std::time::Duration::from_secs(61));
    assert_eq!(browser.mail("messages", &[]).await.0, 200);

    browser.fakes.limit_gmail(None);
    browser.fakes.next("/gmail", Manner::RateLimitedAs403);
    browser.fakes.next("/batch", Manner::Status(503));
    let (status, body) = browser.mail("profile", &[]).await;
    assert_eq!((status, reason(&body).as_str()), (403, "userRateLimitExceeded"));
    assert_eq!(browser.batch(&[]).await.0, 503);
    browser.fakes.expire_access(GMAIL);
    let (status, body) = browser.mail("profile", &[]).await;
    assert_eq!((status, reason(&body).as_str()), (401, "authError"));
}

#[tokio::test]
async fn each_account_has_a_mailbox_of_its_own() {
    let browser = start().await;
    let id = browser.fakes.gmail().receive("ana@acme.example", "Lift", "Tuesday?");
    browser.fakes.as_account(GMAIL, "sales");
    let sales = browser.fakes.issue(GMAIL).access_token;
    let url = format!("{}{USER}/messages/{id}", browser.fakes.url());
    let answer = browser.client.get(&url).bearer_auth(sales).send().await.expect("an answer");
    assert_eq!(answer.status(), 404);
    assert_eq!(browser.fakes.gmail_of("sales").address(), "sales@harrowridge.example");
    let drive = browser.fakes.issue(DRIVE).access_token;
    let answer = browser.client.get(&url).bearer_auth(drive).send().await.expect("an answer");
    assert_eq!(answer.status(), 401, "a token for Drive opens no mailbox");
}

#[tokio::test]
async fn google_asks_once_for_all_its_services_and_the_scope_says_which() {
    let browser = start().await;
    let query = [
        ("client_id", CLIENT_ID),
        ("redirect_uri", "http://localhost/back"),
        ("response_type", "code"),
        ("scope", "https://www.googleapis.com/auth/gmail.readonly"),
        ("access_type", "offline"),
        ("prompt", "consent"),
        ("state", "s"),
    ];
    let answer = browser.get_with("/oauth/google_drive/authorize", &query).send().await.expect("an answer");
    let location = answer.headers()["location"].to_str().expect("text").to_owned();
    let code = location.split("code=").nth(1).and_then(|rest| rest.split('&').next()).expect("a code");
    let code = code.replace("%2D", "-").replace("%5F", "_");
    let token = async |pairs: &[(&str, &str)]| {
        let request = browser.client.post(format!("{}/oauth/google_drive/token", browser.fakes.url()));
        let client = [("client_id", CLIENT_ID), ("client_secret", CLIENT_SECRET)];
        let form: Vec<(&str, &str)> = client.into_iter().chain(pairs.iter().copied()).collect();
        super::json(request.form(&form).send().await.expect("an answer")).await
    };
    let exchange =
        [("grant_type", "authorization_code"), ("code", code.as_str()), ("redirect_uri", "http://localhost/back")];
    let (status, granted) = token(&exchange).await;
    assert_eq!(status, 200, "{granted}");
    let refresh = granted["refresh_token"].as_str().expect("a refresh token");
    let (status, refreshed) = token(&[("grant_type", "refresh_token"), ("refresh_token", refresh)]).await;
    assert_eq!((status, refreshed.get("refresh_token")), (200, None));
    let access = refreshed["access_token"].as_str().expect("a token");
    let url = format!("{}{USER}/profile", browser.fakes.url());
    let answer = browser.client.get(url).bearer_auth(access).send().await.expect("an answer");
    assert_eq!(answer.status(), 200);
    assert_eq!((browser.fakes.counts(GMAIL).refreshes, browser.fakes.counts(DRIVE).refreshes), (1, 0));
}
