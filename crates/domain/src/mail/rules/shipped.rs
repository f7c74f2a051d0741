//! The rules that the program ships. They err toward letting in: each asks for several signs at once, and none fits a letter with a file that is kept.

use super::{Conditions, Header, Shipped};
use crate::mail::Note;

/// Senders that nobody answers.
const MACHINES: &[&str] =
    &["no-reply*@*", "noreply*@*", "no_reply*@*", "donotreply*@*", "do-not-reply*@*", "newsletter*@*", "news@*"];

pub static SHIPPED: &[Shipped] = &[
    Shipped {
        name: "bulk",
        sentence: "Mass mail: it can be unsubscribed from, calls itself bulk, comes from an address that nobody answers, and has no file.",
        is_on: true,
        conditions: || Conditions {
            senders: texts(MACHINES),
            headers: vec![there("list-unsubscribe"), one_of("precedence", &["bulk", "junk"])],
            has_files: Some(false),
            except_contacts: true,
            ..Conditions::default()
        },
    },
    Shipped {
        name: "newsletters",
        sentence: "Newsletters: they can be unsubscribed from, carry the mark of a program for campaigns, and have no file.",
        is_on: true,
        conditions: || Conditions {
            headers: vec![there("list-unsubscribe")],
            one_header: [
                "x-campaign",
                "x-campaignid",
                "x-campaign-id",
                "x-cmail-campaign",
                "x-mc-user",
                "x-newsletter",
            ]
            .map(there)
            .to_vec(),
            has_files: Some(false),
            except_contacts: true,
            ..Conditions::default()
        },
    },
    Shipped {
        name: "auto_replies",
        sentence: "Automatic answers, such as that somebody is out of the office.",
        is_on: true,
        conditions: || Conditions {
            one_header: vec![
                one_of("auto-submitted", &["auto-replied*"]),
                one_of("precedence", &["auto_reply", "auto-reply"]),
                one_of("x-autoreply", &["yes", "true"]),
                there("x-autorespond"),
            ],
            has_files: Some(false),
            ..Conditions::default()
        },
    },
    Shipped {
        name: "delivery_reports",
        sentence: "Reports of mail servers about other messages: delivered, delayed, bounced, opened.",
        is_on: true,
        conditions: || Conditions { notes: vec![Note::Report], has_files: Some(false), ..Conditions::default() },
    },
    Shipped {
        name: "calendar_answers",
        sentence: "Answers of calendars to invitations, such as \"Accepted: Kick-off\".",
        is_on: true,
        conditions: || Conditions {
            notes: vec![Note::Calendar],
            subjects: texts(&[
                "Accepted:*",
                "Declined:*",
                "Tentative:*",
                "Tentatively accepted:*",
                "Zugesagt:*",
                "Abgelehnt:*",
                "Mit Vorbehalt:*",
                "Aceptado:*",
                "Rechazado:*",
                "Accepté*:*",
                "Refusé*:*",
                "Accettato:*",
                "Rifiutato:*",
                "Aceito:*",
                "Recusado:*",
            ]),
            has_files: Some(false),
            ..Conditions::default()
        },
    },
    Shipped {
        name: "empty",
        sentence: "Empty messages: no subject, no words and no file.",
        is_on: true,
        conditions: || Conditions { is_empty: true, ..Conditions::default() },
    },
];

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

fn there(name: &str) -> Header {
    Header { name: name.into(), values: Vec::new() }
}

fn one_of(name: &str, values: &[&str]) -> Header {
    Header { name: name.into(), values: texts(values) }
}
