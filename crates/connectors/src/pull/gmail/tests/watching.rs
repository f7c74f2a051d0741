//! A mailbox's watch, the count of its letters, and the proof of the posts about it.

use domain::Secret;

use super::super::super::mailbox::{Address, Mailbox, Proof, Push};
use super::super::super::tests::settings;
use super::*;
use crate::Http;

fn mailbox(server: &Server, topic: Option<&str>) -> std::sync::Arc<dyn Mailbox> {
    let mut settings = settings(&SPEC, &server.url);
    if let Some(topic) = topic {
        settings.set("GMAIL_PUBSUB_TOPIC", topic);
    }
    let spec = SPEC.mailbox.as_ref().expect("a mailbox");
    (spec.rest)(&Http::new().expect("a client"), &settings)
}

const TOPIC: &str = "projects/acme/topics/mail";

#[tokio::test]
async fn a_watch_is_asked_for_again_and_stopped() {
    let server = Server::start(|asked| match asked.has("/watch") {
        true => ok(json!({ "historyId": "1234567890", "expiration": "1793527200000" })),
        false => raw_reply("204 No Content", "", b""),
    })
    .await;
    let (mailbox, person, state) = (mailbox(&server, Some(TOPIC)), Person::new(), Secret::new("s"));
    let (account, address) = (person.account(), Address { url: "", client_state: &state });
    let made = mailbox.subscribe(&account, &address).await.expect("a subscription");
    assert_eq!((made.id.clone(), made.expires_at.to_rfc3339().as_str()), (None, "2026-11-01T10:00:00+00:00"));
    assert_eq!(mailbox.renew(&account, &made).await.expect("renewed"), Some(made.clone()));
    mailbox.unsubscribe(&account, &made).await.expect("stopped");
    let asked = server.asked();
    assert_eq!(
        (asked[0].line.as_str(), asked[0].json()),
        ("POST /gmail/v1/users/me/watch", json!({ "topicName": TOPIC }))
    );
    assert_eq!(asked[2].line, "POST /gmail/v1/users/me/stop");
    assert_eq!(person.pace.units(), 250);
}

#[tokio::test]
async fn a_watch_of_another_topic_is_stopped_first_and_refusals_are_told() {
    let server = Server::start({
        let is_stopped = Mutex::new(false);
        move |asked| {
            let mut is_stopped = is_stopped.lock().expect("a flag");
            match asked.has("/watch") {
                true if *is_stopped => ok(json!({ "historyId": "1", "expiration": "1793527200000" })),
                true => refusal("400 Bad Request", "invalidArgument"),
                false => {
                    *is_stopped = true;
                    raw_reply("204 No Content", "", b"")
                }
            }
        }
    })
    .await;
    let (person, state) = (Person::new(), Secret::new("s"));
    let (account, address) = (person.account(), Address { url: "", client_state: &state });
    mailbox(&server, Some(TOPIC)).subscribe(&account, &address).await.expect("a subscription");
    assert_eq!(server.asked().len(), 3);

    let forbidden = Server::start(|_| refusal("403 Forbidden", "forbidden")).await;
    for (topic, code) in [(Some(TOPIC), "forbidden"), (None, "no_topic"), (Some(""), "no_topic")] {
        let error = mailbox(&forbidden, topic).subscribe(&account, &address).await.expect_err("refused");
        assert_eq!(short(&error), format!("refused: Gmail refused what we asked for ({code})"));
        assert!(SPEC.explain(code).is_some(), "{code}");
    }
}

/// Everything that a count gives.
async fn counted(mailbox: &dyn Mailbox, person: &Person, from: i64, to: i64) -> Vec<(String, Place)> {
    let at = |secs| DateTime::from_timestamp(secs, 0).expect("a time");
    let (account, mut letters, mut place) = (person.account(), Vec::new(), None);
    loop {
        let page = mailbox.census(&account, at(from), at(to), place.as_ref()).await.expect("a count");
        letters.extend(page.letters.into_iter().map(|letter| (letter.external_id, letter.place)));
        if !page.more {
            letters.sort_by(|one, other| one.0.cmp(&other.0));
            return letters;
        }
        place = Some(page.next);
    }
}

#[tokio::test]
async fn a_day_is_counted_by_its_seconds_whatever_side_of_one_the_search_means() {
    let (from, to) = (1_793_491_200_i64, 1_793_577_600_i64);
    // Milliseconds, and the labels.
    let box_of = move || {
        let at = |secs: i64, millis: i64| secs * 1_000 + millis;
        vec![
            ("before", at(from - 1, 999), vec!["INBOX"]),
            ("first", at(from, 0), vec!["INBOX"]),
            ("second", at(from + 1, 1), vec!["SENT"]),
            ("noon", at(from + 43_200, 0), vec!["INBOX", "SENT"]),
            ("archived", at(from + 50_000, 0), vec![]),
            ("draft", at(from + 50_001, 0), vec!["DRAFT"]),
            ("last", at(to - 1, 999), vec!["Label_7"]),
            ("after", at(to, 0), vec!["INBOX"]),
        ]
    };
    for is_inclusive in [true, false] {
        let server = Server::start(move |asked| {
            let find = |id: &str| box_of().into_iter().find(|(known, ..)| *known == id).expect("a message");
            if is_message(asked) {
                return messages(asked, |id| {
                    let (_, at, labels) = find(id);
                    (200, json!({ "id": id, "labelIds": labels, "internalDate": at.to_string() }))
                });
            }
            let word = |name: &str| -> i64 {
                let rest = asked.line.split(name).nth(1).expect("a bound");
                rest.split([' ', '&']).next().and_then(|secs| secs.parse().ok()).expect("seconds")
            };
            let (after, before) = (word("after:"), word("before:"));
            let has = |labels: &[&str], label: &str| labels.contains(&label);
            let rows = box_of().into_iter().filter(|(_, at, labels)| {
                let is_in_time = if is_inclusive { *at >= after * 1_000 } else { *at / 1_000 > after };
                let is_other = !has(labels, "INBOX") && !has(labels, "SENT") && !has(labels, "DRAFT");
                let q = &asked.line;
                is_in_time
                    && *at < before * 1_000
                    && !(q.contains("-in:drafts") && has(labels, "DRAFT"))
                    && !(q.contains("-in:inbox") && has(labels, "INBOX"))
                    && !(q.contains("{-in:sent in:inbox}") && has(labels, "SENT") && !has(labels, "INBOX"))
                    && !(q.contains("{in:inbox in:sent") && is_other)
            });
            let rows: Vec<(&str, &str)> = rows.map(|(id, ..)| (id, "t")).collect();
            list(&rows, None)
        })
        .await;
        let letters = counted(&*mailbox(&server, None), &Person::new(), from, to).await;
        let expected = [
            ("archived", Place::Other),
            ("first", Place::Inbox),
            ("last", Place::Other),
            ("noon", Place::Inbox),
            ("second", Place::Sent),
        ];
        assert_eq!(letters, expected.map(|(id, place)| (format!("message:{id}"), place)), "inclusive: {is_inclusive}");
    }
}

#[test]
fn a_topics_posts_need_a_proof_that_is_one() {
    let Some(Push::Topic(topic)) = SPEC.mailbox.as_ref().map(|mailbox| &mailbox.push) else { panic!("no topic") };
    let http = Http::new().expect("a client");
    let proof = |set: &[(&str, &str)]| {
        let mut settings = settings(&SPEC, "http://127.0.0.1:1");
        set.iter().for_each(|(name, value)| settings.set(name, *value));
        match topic.proof(&http, &settings) {
            Proof::Signed(_) => "signed",
            Proof::Word(word) => {
                if word.reveal() == "canary" {
                    "word"
                } else {
                    "another word"
                }
            }
            Proof::Closed(why) => why,
        }
    };
    let (audience, signer) = (("GMAIL_PUBSUB_AUDIENCE", "https://x"), ("GMAIL_PUBSUB_SERVICE_ACCOUNT", "a@b"));
    let word = ("GMAIL_PUBSUB_TOKEN", "canary");
    for (set, expected) in [
        (&[][..], "neither an audience nor a token is set"),
        (&[("GMAIL_PUBSUB_TOKEN", "")], "neither an audience nor a token is set"),
        (&[signer], "neither an audience nor a token is set"),
        (&[word], "word"),
        (&[audience, signer], "signed"),
        (&[audience, signer, word], "signed"),
        (&[audience, word], "an audience is set, but not the account that signs"),
    ] {
        assert_eq!(proof(set), expected);
    }
}
