use super::*;
use crate::mail::{Attachment, Correspondent, LeftOut, Place};

fn letter(from: &str, subject: &str, headers: &[(&str, &str)]) -> Letter {
    Letter {
        from: Some(Correspondent { name: None, address: from.into() }),
        to: vec![Correspondent { name: None, address: "Owner@acme.test".into() }],
        subject: Some(subject.into()),
        text: "Some words.".into(),
        place: Place::Inbox,
        headers: headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        ..Letter::default()
    }
}

fn file(name: &str, left_out: Option<LeftOut>) -> Attachment {
    Attachment {
        part: "2".into(),
        name: Some(name.into()),
        media_type: "application/pdf".into(),
        size_bytes: 10,
        content_id: None,
        is_inline: false,
        content: None,
        left_out,
    }
}

const LIST: (&str, &str) = ("List-Unsubscribe", "<mailto:u@shop.example>");
const BULK: (&str, &str) = ("Precedence", "bulk");

#[test]
fn shipped_rules_leave_out_machines_and_let_people_in() {
    let rules = Rules::of(Vec::new());
    let with = |change: &dyn Fn(&mut Letter), mut letter: Letter| {
        change(&mut letter);
        letter
    };
    let bulk = || letter("no-reply@shop.example", "Sale", &[LIST, BULK]);
    for (what, letter, expected) in [
        ("a person", letter("ann@shop.example", "Offer", &[]), None),
        ("a person on a list", letter("ann@shop.example", "Offer", &[LIST, BULK]), None),
        ("a machine's receipt", letter("no-reply@shop.example", "Your receipt", &[LIST]), None),
        ("mass mail", bulk(), Some("bulk")),
        ("mass mail with a file", with(&|letter| letter.files = vec![file("a.pdf", None)], bulk()), None),
        (
            "mass mail with a picture in its text",
            with(&|letter| letter.files = vec![file("a.png", Some(LeftOut::Inline))], bulk()),
            Some("bulk"),
        ),
        ("mass mail that the owner sent", with(&|letter| letter.place = Place::Sent, bulk()), None),
        ("a campaign", letter("ann@shop.example", "Sale", &[LIST, ("X-MC-User", "1")]), Some("newsletters")),
        (
            "out of office",
            letter("ann@shop.example", "Re: Hi", &[("Auto-Submitted", "auto-replied")]),
            Some("auto_replies"),
        ),
        ("a monitor", letter("ops@shop.example", "Down", &[("Auto-Submitted", "auto-generated")]), None),
        (
            "a bounce",
            with(&|letter| letter.notes = vec![Note::Report], letter("mailer-daemon@shop.example", "Undelivered", &[])),
            Some("delivery_reports"),
        ),
        (
            "an accepted invitation",
            with(&|letter| letter.notes = vec![Note::Calendar], letter("ann@shop.example", "Accepted: Kick-off", &[])),
            Some("calendar_answers"),
        ),
        (
            "an invitation",
            with(&|letter| letter.notes = vec![Note::Calendar], letter("ann@shop.example", "Kick-off", &[])),
            None,
        ),
        ("accepted by a person", letter("ann@shop.example", "Accepted: your offer", &[]), None),
        ("nothing", with(&|letter| letter.text = " ".into(), letter("ann@shop.example", "", &[])), Some("empty")),
        ("a subject", with(&|letter| letter.text = " ".into(), letter("ann@shop.example", "Call me", &[])), None),
        (
            "what cannot be read",
            with(
                &|letter| (letter.text, letter.notes) = (String::new(), vec![Note::Encrypted]),
                letter("ann@shop.example", "", &[]),
            ),
            None,
        ),
    ] {
        assert_eq!(verdict(&letter, &rules, false), expected, "{what}");
    }
    assert_eq!(verdict(&bulk(), &rules, true), None, "of a contact");
}

#[test]
fn a_mailbox_switches_rules_and_adds_its_own() {
    let own =
        |name: &str, conditions: Conditions| Changed { name: name.into(), is_on: true, conditions: Some(conditions) };
    let senders = |list: &[&str]| Conditions {
        senders: list.iter().map(|text| (*text).into()).collect(),
        ..Conditions::default()
    };
    let bulk = letter("no-reply@shop.example", "Sale", &[LIST, BULK]);
    let off = Rules::of(vec![Changed { name: "bulk".into(), is_on: false, conditions: None }]);
    assert_eq!(verdict(&bulk, &off, false), None);
    let shop = Rules::of(vec![own("the shop", senders(&["shop.example"]))]);
    assert_eq!(verdict(&bulk, &shop, false), Some("the shop"), "its own ones are asked first");
    let let_in = own("but sales", Conditions { lets_in: true, subjects: vec!["sale".into()], ..Conditions::default() });
    let both = Rules::of(vec![own("the shop", senders(&["shop.example"])), let_in]);
    assert_eq!(verdict(&bulk, &both, false), None, "a rule that lets in goes before the others");
    let unknown = Rules::of(vec![Changed { name: "of an older version".into(), is_on: true, conditions: None }]);
    assert_eq!(unknown, Rules::of(Vec::new()));
}

#[test]
fn all_conditions_have_to_hold_and_none_fits_nothing() {
    let mut big = letter("ann@shop.example", "Plans", &[]);
    big.files = vec![file("Plan.PDF", None)];
    let facts = Facts::of(&big, false, &[]);
    let of = |json: serde_json::Value| serde_json::from_value::<Conditions>(json).expect("conditions");
    for (json, expected) in [
        (serde_json::json!({}), false),
        (serde_json::json!({ "except_contacts": true }), false),
        (serde_json::json!({ "recipients": ["acme.test"] }), true),
        (serde_json::json!({ "recipients": ["acme.test"], "subjects": ["plan"] }), true),
        (serde_json::json!({ "recipients": ["acme.test"], "subjects": ["offer"] }), false),
        (serde_json::json!({ "file_names": [".pdf"] }), true),
        (serde_json::json!({ "has_files": false, "senders": ["shop.example"] }), false),
        (serde_json::json!({ "min_bytes": 5, "max_bytes": 100 }), true),
        (serde_json::json!({ "min_bytes": 100 }), false),
        (serde_json::json!({ "way": "sent", "senders": ["shop.example"] }), false),
        (serde_json::json!({ "way": "both", "senders": ["shop.example"] }), true),
    ] {
        assert_eq!(of(json.clone()).fit(&facts), expected, "{json}");
    }
    assert!(serde_json::from_value::<Conditions>(serde_json::json!({ "sender": ["a"] })).is_err());
}

#[test]
fn conditions_nobody_can_mean_are_refused() {
    let of = |json: serde_json::Value| serde_json::from_value::<Conditions>(json).expect("conditions").refusal();
    for odd in [
        serde_json::json!({}),
        serde_json::json!({ "senders": ["*"] }),
        serde_json::json!({ "senders": ["*@*"] }),
        serde_json::json!({ "senders": [" "] }),
        serde_json::json!({ "subjects": ["a\nb"] }),
        serde_json::json!({ "headers": [{ "name": "a b" }] }),
        serde_json::json!({ "min_bytes": 2, "max_bytes": 1 }),
    ] {
        assert!(of(odd.clone()).is_some(), "{odd}");
    }
    assert_eq!(of(serde_json::json!({ "senders": ["shop.example"] })), None);
}

#[test]
fn a_rule_of_its_own_is_told_in_a_sentence() {
    let told = Conditions {
        senders: vec!["shop.example".into(), "news@*".into()],
        has_files: Some(false),
        except_contacts: true,
        ..Conditions::default()
    };
    assert_eq!(told.in_words(), "Letters from shop.example or news@*, without files, unless its sender is a contact.");
}

#[test]
fn facts_come_back_as_they_were_kept() {
    let facts = Facts::of(&letter("Ann@Shop.example", "Offer\0", &[LIST, ("X-Other", "1")]), true, &[]);
    assert_eq!(facts.senders, ["ann@shop.example"]);
    assert_eq!(facts.headers, [("list-unsubscribe".to_owned(), LIST.1.to_owned())]);
    assert!(!facts.subject.contains('\0'));
    let kept = serde_json::to_value(&facts).expect("JSON");
    assert_eq!(serde_json::from_value::<Facts>(kept).expect("facts"), facts);
}
