//! The body of a letter: plain text of its HTML, and the sender's own words apart from the history that it quotes and from the signature.

pub(super) mod flowed;
mod history;
mod html;
mod phrases;
mod signature;

use crate::text::normalise;

pub use html::from_html;

/// A body taken apart. Nothing is lost: each line is in one of the three.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// The words that the sender wrote, and those of a letter that they pass on.
    pub text: String,
    pub quoted: Option<String>,
    pub signature: Option<String>,
}

/// Tells the sender's own words from the quoted history and the signature, where they can be told.
pub fn split(text: &str) -> Split {
    split_as(None, text)
}

/// Does the same where the subject is known: Outlook quotes a letter that is passed on in the same way as one that is answered, and only the
/// subject tells which it is.
pub fn split_as(subject: Option<&str>, text: &str) -> Split {
    let text = normalise(text);
    let lines: Vec<&str> = text.lines().collect();
    let is_forward = subject.is_some_and(history::is_forward_subject);
    let parts = history::parts(&lines, is_forward);
    let (own, signature) = signature::split(&parts.own);
    let words = normalise(&[own, &parts.passed_on].concat().join("\n"));
    let some = |lines: &[&str]| Some(normalise(&lines.join("\n"))).filter(|text| !text.is_empty());
    Split { text: words, quoted: some(&parts.quoted), signature: some(signature) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The three parts, as a table shows them.
    fn shown(text: &str) -> String {
        let split = split(text);
        [Some(split.text), split.quoted, split.signature].map(Option::unwrap_or_default).join(" § ")
    }

    #[test]
    fn a_body_is_taken_apart() {
        for (what, text, expected) in [
            ("nothing", "", " §  § "),
            ("plain words", "Hello\n\nAnn", "Hello\n\nAnn §  § "),
            ("a signature", "Hello\n-- \nAnn Lee\n+1 555", "Hello §  § Ann Lee\n+1 555"),
            ("a telephone's line", "Hello\n\nSent from my iPhone", "Hello §  § Sent from my iPhone"),
            (
                "Gmail",
                "Yes.\n\nOn Tue, 3 Mar 2026 at 10:00, Bob <bob@example.com> wrote:\n\n> When?\n>\n> Bob",
                "Yes. § On Tue, 3 Mar 2026 at 10:00, Bob <bob@example.com> wrote:\n\n> When?\n>\n> Bob § ",
            ),
            (
                "an attribution in two lines",
                "Yes.\n\nOn Tue, 3 Mar 2026 at 10:00, Bob Long-Name\n<bob@example.com> wrote:\n\n> When?",
                "Yes. § On Tue, 3 Mar 2026 at 10:00, Bob Long-Name\n<bob@example.com> wrote:\n\n> When? § ",
            ),
            (
                "German",
                "Ja.\n\nAm Di., 3. März 2026 um 10:00 schrieb Bob <b@x.de>:\n\n> Wann?",
                "Ja. § Am Di., 3. März 2026 um 10:00 schrieb Bob <b@x.de>:\n\n> Wann? § ",
            ),
            (
                "French",
                "Oui.\n\nLe mar. 3 mars 2026 à 10:00, Bob <b@x.fr> a écrit :\n\n> Quand ?",
                "Oui. § Le mar. 3 mars 2026 à 10:00, Bob <b@x.fr> a écrit :\n\n> Quand ? § ",
            ),
            (
                "Spanish",
                "Sí.\n\nEl mar, 3 mar 2026 a las 10:00, Bob (<b@x.es>) escribió:\n\n> ¿Cuándo?",
                "Sí. § El mar, 3 mar 2026 a las 10:00, Bob (<b@x.es>) escribió:\n\n> ¿Cuándo? § ",
            ),
            (
                "Thunderbird, German",
                "Ja\n\nAm 03.03.26 um 10:00 schrieb Bob:\n> Wann?",
                "Ja § Am 03.03.26 um 10:00 schrieb Bob:\n> Wann? § ",
            ),
            (
                "Outlook",
                "Yes.\n\nAnn\n\n________________________________\nFrom: Bob <bob@example.com>\nSent: Tuesday, March 3, 2026 10:00 AM\nTo: Ann\nSubject: Friday\n\nWhen?",
                "Yes.\n\nAnn § ________________________________\nFrom: Bob <bob@example.com>\nSent: Tuesday, March 3, 2026 10:00 AM\nTo: Ann\nSubject: Friday\n\nWhen? § ",
            ),
            (
                "Outlook, German",
                "Ja.\n\nVon: Bob\nGesendet: Dienstag, 3. März 2026 10:00\nAn: Ann\nBetreff: Freitag\n\nWann?",
                "Ja. § Von: Bob\nGesendet: Dienstag, 3. März 2026 10:00\nAn: Ann\nBetreff: Freitag\n\nWann? § ",
            ),
            (
                "Outlook, French",
                "Oui.\n\nDe : Bob\nEnvoyé : mardi 3 mars 2026 10:00\nÀ : Ann\nObjet : vendredi\n\nQuand ?",
                "Oui. § De : Bob\nEnvoyé : mardi 3 mars 2026 10:00\nÀ : Ann\nObjet : vendredi\n\nQuand ? § ",
            ),
            (
                "Outlook, Spanish",
                "Sí.\n\n*De:* Bob\n*Enviado el:* martes, 3 de marzo de 2026 10:00\n*Para:* Ann\n*Asunto:* viernes\n\n¿Cuándo?",
                "Sí. § *De:* Bob\n*Enviado el:* martes, 3 de marzo de 2026 10:00\n*Para:* Ann\n*Asunto:* viernes\n\n¿Cuándo? § ",
            ),
            (
                "the oldest Outlook",
                "Yes.\n-- \nAnn\n-----Original Message-----\nFrom: Bob\n\nWhen?",
                "Yes. § -----Original Message-----\nFrom: Bob\n\nWhen? § Ann",
            ),
            (
                "Lotus and German",
                "Ja\n-----Ursprüngliche Nachricht-----\nWann?",
                "Ja § -----Ursprüngliche Nachricht-----\nWann? § ",
            ),
            ("answers between", "> When?\nFriday.\n> Where?\nHere.", "Friday.\nHere. § > When?\n> Where? § "),
            (
                "answers below",
                "On 3/3/26, Bob wrote:\n> When?\n\nFriday.\n-- \nAnn",
                "Friday. § On 3/3/26, Bob wrote:\n> When? § Ann",
            ),
            (
                "unmarked history",
                "Yes.\n\nOn Mar 3, 2026, at 10:00, Bob <b@x.com> wrote:\n\nWhen?\n\nBob",
                "Yes. § On Mar 3, 2026, at 10:00, Bob <b@x.com> wrote:\n\nWhen?\n\nBob § ",
            ),
            (
                "a sentence before a list is no attribution",
                "On 3 March we wrote:\n\nThe pump is ready.",
                "On 3 March we wrote:\n\nThe pump is ready. §  § ",
            ),
            (
                "passed on",
                "FYI\n-- \nAnn\n---------- Forwarded message ---------\nFrom: Bob\nDate: 3 Mar\nSubject: x\nTo: Ann\n\nWords",
                "FYI\n---------- Forwarded message ---------\nFrom: Bob\nDate: 3 Mar\nSubject: x\nTo: Ann\n\nWords §  § Ann",
            ),
            (
                "only history is passed on",
                "From: Bob\nSent: Tuesday\nTo: Ann\nSubject: x\n\nWords",
                "From: Bob\nSent: Tuesday\nTo: Ann\nSubject: x\n\nWords §  § ",
            ),
            (
                "a sentence is no attribution",
                "On Friday Bob wrote: fine.\nOn and on.",
                "On Friday Bob wrote: fine.\nOn and on. §  § ",
            ),
            (
                "a list of facts is no head",
                "From: Berlin\nTo: Paris\n\nBook it.",
                "From: Berlin\nTo: Paris\n\nBook it. §  § ",
            ),
            ("dashes inside a text", "a\n--\nb\n\n", "a §  § b"),
            (
                "a later answer after a telephone's line",
                "Ok\n\nSent from my iPhone\n\nOn 3 Mar 2026, at 10:00, Bob wrote:\n\n> When?",
                "Ok § On 3 Mar 2026, at 10:00, Bob wrote:\n\n> When? § Sent from my iPhone",
            ),
            (
                "Outlook on a telephone",
                "Ja\n\nOutlook für iOS<https://aka.ms/x> herunterladen\n________________________________\nVon: Bob\nGesendet: Dienstag\nAn: Ann\nBetreff: x\n\nWann?",
                "Ja § ________________________________\nVon: Bob\nGesendet: Dienstag\nAn: Ann\nBetreff: x\n\nWann? § Outlook für iOS<https://aka.ms/x> herunterladen",
            ),
        ] {
            assert_eq!(shown(text), expected, "{what}");
        }
    }

    #[test]
    fn the_subject_tells_that_a_letter_is_passed_on() {
        let text = "Please see below.\n\nFrom: Bob\nSent: Tuesday\nTo: Ann\nSubject: x\n\nWords";
        assert_eq!(split_as(Some("RE: x"), text).text, "Please see below.");
        for subject in ["FW: x", "Fwd: x", "WG: x", "TR: x", "RV: x"] {
            let split = split_as(Some(subject), text);
            assert_eq!((split.text.as_str(), split.quoted), (text, None), "{subject}");
        }
    }

    #[test]
    fn no_line_is_lost() {
        let lines = [
            "> a",
            "b",
            "-- ",
            "On 3 Mar Bob wrote:",
            "From: x",
            "Sent: y",
            "To: z",
            "",
            "Sent from my x",
            "-----Original Message-----",
        ];
        for seed in 0..5_000_usize {
            let text: Vec<&str> =
                (0..8).map(|n| lines[(seed / 7 * (n + 3) + seed * n + seed / (n + 1)) % lines.len()]).collect();
            let split = split(&text.join("\n"));
            let count = |text: &str| text.lines().filter(|line| !line.is_empty() && *line != "--").count();
            let found = count(&split.text)
                + count(split.quoted.as_deref().unwrap_or_default())
                + count(split.signature.as_deref().unwrap_or_default());
            assert_eq!(found, text.iter().filter(|line| !line.is_empty() && **line != "-- ").count(), "of {text:?}");
        }
    }
}
