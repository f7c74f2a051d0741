//! Messages that are made to take time and memory.

use super::read;
use crate::mail::{Note, parse};
use crate::text::assert_linear;

/// A message of about this length for each weakness that readers of mail have had.
fn attacks(bytes: usize) -> Vec<(&'static str, String)> {
    let filled = |begin: &str, unit: &str, end: &str| format!("{begin}{}{end}", unit.repeat(bytes / unit.len()));
    let numbered = |begin: &str, unit: &dyn Fn(usize) -> String, end: &str| {
        let mut text = begin.to_owned();
        let mut n = 0;
        while text.len() < bytes {
            text.push_str(&unit(n));
            n += 1;
        }
        text + end
    };
    let part = "Content-Type: multipart/mixed; boundary=x\n\n";
    vec![
        (
            "multiparts within multiparts",
            numbered("", &|n| format!("Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n"), "words"),
        ),
        ("multiparts with one boundary", filled("", "Content-Type: multipart/mixed; boundary=x\n\n--x\n", "words")),
        ("many parts", filled(part, "--x\n\na\n", "--x--")),
        ("many files", filled(part, "--x\nContent-Type: application/pdf\n\na\n", "--x--")),
        (
            "multiparts whose boundaries are missing",
            numbered(part, &|n| format!("--x\nContent-Type: multipart/mixed; boundary=no{n}\n\na\n"), "--x--"),
        ),
        (
            "boundaries that are nearly right",
            filled(&part.replace("=x", &format!("={}", "x".repeat(900))), &format!("--{}\n", "x".repeat(899)), ""),
        ),
        ("messages within messages", filled("", "Content-Type: message/rfc822\nSubject: x\n\n", "words")),
        (
            "digests within digests",
            numbered("", &|n| format!("Content-Type: multipart/digest; boundary=b{n}\n\n--b{n}\n\n"), "words"),
        ),
        ("many headers", numbered("", &|n| format!("X-{n}: words\n"), "\nbody")),
        ("one header in many lines", filled("Subject: a", "\n words", "\n\nbody")),
        ("one header in one line", filled("Subject: ", "words ", "\n\nbody")),
        ("a head without end", filled("", "Subject: words\n", "")),
        ("blanks", filled("Subject: a\n", " \n", "")),
        ("words that never end", filled("Subject: ", "=?utf-8?q?", "\n\nbody")),
        ("words that end", filled("Subject: ", "=?utf-8?q?a?= ", "\n\nbody")),
        ("one long word", filled("Subject: =?utf-8?b?", "YWFh", "?=\n\nbody")),
        (
            "one long base64 line",
            filled("Content-Type: application/pdf\nContent-Transfer-Encoding: base64\n\n", "YWFh", ""),
        ),
        ("equals signs", filled("Content-Transfer-Encoding: quoted-printable\n\n", "=", "")),
        ("soft breaks", filled("Content-Transfer-Encoding: quoted-printable\n\n", "= ", "")),
        ("many people", numbered("To: a@b", &|n| format!(", \"Lee, {n}\" <p{n}@x.y>"), "\n\nbody")),
        ("comments within comments", filled("To: ", "(", "\n\nbody")),
        ("quotes", filled("To: ", "\"", "\n\nbody")),
        ("groups", filled("To: ", "a:", ";\n\nbody")),
        ("brackets", filled("From: ", "<", "\n\nbody")),
        ("many ids", numbered("References: ", &|n| format!("<{n}@x> "), "\n\nbody")),
        ("parameters", numbered("Content-Type: text/plain", &|n| format!("; p{n}=a"), "\n\nbody")),
        (
            "continued parameters",
            numbered("Content-Type: text/plain", &|n| format!("; p{n}*0=a; name*{n}=b"), "\n\nbody"),
        ),
        ("quoted lines", filled("\n", ">", "")),
        ("attributions that never end", filled("\n", "On 3 March\n", "")),
        ("heads that never end", filled("\n", "From: a\n", "")),
        ("heads", filled("\n", "From: a\nSent: b\nTo: c\n", "")),
        ("signatures", filled("\n", "--\n", "")),
        ("dashes", filled("\n", "-", "")),
        ("flowed lines", filled("Content-Type: text/plain; format=flowed\n\n", "> a \n", "")),
        ("quotes of a page", filled("Content-Type: text/html\n\n", "<blockquote type=cite>a", "")),
        ("signatures of a page", filled("Content-Type: text/html\n\n", "<div class=gmail_signature>", "")),
        ("pictures of a page", filled("Content-Type: text/html\n\n", "<img src=cid:", "")),
        ("a calendar", filled("Content-Type: text/calendar\n\n", "BEGIN:VEVENT\nSUMMARY:a\n b\nEND:VEVENT\n", "")),
        ("a report", filled("Content-Type: message/delivery-status\n\n", "Action: a\n\n", "")),
        ("PGP blocks", filled("\n", "-----BEGIN PGP MESSAGE-----\n", "")),
        ("a signed structure", filled("Content-Type: application/pkcs7-mime\n\n", "0\u{0}", "")),
        ("no lines", filled("", "a", "")),
        ("carriage returns", filled("Subject: a\r\r", "b\r", "")),
    ]
}

#[test]
fn attacks_are_read_within_the_limits() {
    for (what, message) in attacks(2_000_000) {
        read(what, message.as_bytes());
    }
}

#[test]
fn attacks_take_linear_time() {
    for ((what, message), (_, four_times)) in attacks(1_000_000).into_iter().zip(attacks(4_000_000)) {
        assert_linear(what, &message, &four_times, |message| drop(parse(message.as_bytes())));
    }
}

#[test]
fn limits_are_told() {
    for (what, is_told) in [
        ("multiparts within multiparts", Note::Cut),
        ("many parts", Note::Cut),
        ("many files", Note::Cut),
        ("messages within messages", Note::Cut),
        ("many headers", Note::Cut),
        ("one header in many lines", Note::Cut),
        ("one header in one line", Note::Cut),
        ("quotes of a page", Note::Cut),
        ("no lines", Note::Cut),
        ("multiparts whose boundaries are missing", Note::Malformed),
    ] {
        let (_, message) = attacks(5_000_000).into_iter().find(|(name, _)| *name == what).expect("an attack");
        let letter = read(what, message.as_bytes());
        assert!(letter.notes.contains(&is_told), "{what}: {:?}", letter.notes);
    }
}

#[test]
fn a_head_keeps_what_stands_before_its_limit() {
    let many: String = (0..100_000).map(|n| format!("X-{n}: words\n")).collect();
    let letter = read("many headers", format!("From: ann@x.y\nSubject: a\n{many}\nbody").as_bytes());
    assert_eq!((letter.subject.as_deref(), letter.text.as_str(), letter.headers.len()), (Some("a"), "body", 1_000));
    let people: String = (0..100_000).map(|n| format!("p{n}@x.y, ")).collect();
    let letter = read("many people", format!("To: {people}\nSubject: a\n\nbody").as_bytes());
    assert_eq!((letter.to.len(), letter.text.as_str()), (1_000, "body"));
}
