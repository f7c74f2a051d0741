//! Why a document was found, in words. Pure.

use domain::text::{self, Part};

use super::floor::Floor;

/// The most words of a question that are named.
const MOST_NAMED: usize = 4;
/// Words that share so many first characters are forms of one word.
const BEGINNING_CHARS: usize = 5;
/// More of a title or text than this is not looked through for words to name.
const MOST_CHARS: usize = 2_000;

/// All that is known of a hit.
pub(super) struct Reasons<'a> {
    /// The exact parts of the question that it has.
    pub exact: &'a [&'a str],
    pub title: Option<&'a str>,
    pub text: &'a str,
    /// The lexemes that were looked for.
    pub lexemes: &'a [String],
    pub similarity: Option<f64>,
    pub floor: &'a Floor,
}

/// One sentence without a subject, such as: has “late” and “delivery” in its title; close in meaning.
pub(super) fn why(reasons: &Reasons<'_>) -> String {
    let mut parts: Vec<String> = Vec::new();
    let in_title = reasons.title.map(|title| matching(title, reasons.lexemes)).unwrap_or_default();
    let mut in_text = matching(reasons.text, reasons.lexemes);
    in_text.retain(|word| !in_title.iter().any(|known| begin_alike(known, word)));
    let exact: Vec<String> = reasons.exact.iter().map(|part| (*part).to_owned()).collect();
    let is_named = |word: &String| exact.iter().any(|part| part.to_lowercase().contains(word.as_str()));
    if !exact.is_empty() {
        parts.push(format!("has {} as it is asked for", listed(&exact)));
    }
    let (in_title, in_text): (Vec<String>, Vec<String>) = (
        in_title.into_iter().filter(|word| !is_named(word)).collect(),
        in_text.into_iter().filter(|word| !is_named(word)).collect(),
    );
    match (in_title.is_empty(), in_text.is_empty()) {
        (false, true) => parts.push(format!("has {} in its title", listed(&in_title))),
        (true, false) => parts.push(format!("has {}", listed(&in_text))),
        (false, false) => {
            parts.push(format!("has {} in its title and {} in its text", listed(&in_title), listed(&in_text)))
        }
        (true, true) => {}
    }
    match reasons.similarity {
        Some(similarity) if similarity >= reasons.floor.similarity => parts.push("close in meaning".into()),
        Some(similarity) if similarity >= reasons.floor.near => parts.push("related in meaning".into()),
        Some(_) if parts.is_empty() => parts.push("the nearest in meaning, though not near".into()),
        _ => {}
    }
    parts.join("; ")
}

/// The words of a text that match, in small letters, in the order of the text. Of words that begin alike (migration, migrate) the first is named.
fn matching(text: &str, lexemes: &[String]) -> Vec<String> {
    let beginning: String = text.chars().take(MOST_CHARS).collect();
    let mut words: Vec<String> = Vec::new();
    for Part { text, .. } in text::snippet(&beginning, lexemes, MOST_CHARS).into_iter().filter(|part| part.is_match) {
        let word = text.to_lowercase();
        if !words.iter().any(|known| begin_alike(known, &word)) {
            words.push(word);
        }
    }
    words
}

fn begin_alike(a: &str, b: &str) -> bool {
    a.chars().take(BEGINNING_CHARS).eq(b.chars().take(BEGINNING_CHARS))
}

fn listed(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().take(MOST_NAMED).map(|word| format!("“{word}”")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} and {last}", before.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hit_says_which_words_it_has_where_and_how_near_it_is() {
        let floor = Floor { similarity: 0.6, per_words: 0.5, near: 0.4, words: 0.7, some_words: 0.3, per_decade: 0.0 };
        let lexemes = ["late", "deliveri", "copper"].map(str::to_owned);
        for (exact, title, text, similarity, expected) in [
            (&[][..], Some("Late delivery"), "Sorry.", Some(0.7), "has “late” in its title; close in meaning"),
            (&[], Some("Late"), "The copper is here.", None, "has “late” in its title and “copper” in its text"),
            (&[], None, "Late, late copper", Some(0.1), "has “late” and “copper”"),
            (&[], None, "Coppers of copper", None, "has “coppers”"),
            (&[], None, "Nothing of it", Some(0.5), "related in meaning"),
            (&[], None, "Nothing of it", Some(0.1), "the nearest in meaning, though not near"),
            (&["INV-2041"], None, "Pay INV-2041", None, "has “INV-2041” as it is asked for"),
            (
                &["late copper"],
                None,
                "A late copper",
                Some(0.7),
                "has “late copper” as it is asked for; close in meaning",
            ),
            (&[], None, "Nothing of it", None, ""),
        ] {
            let reasons = Reasons { exact, title, text, lexemes: &lexemes, similarity, floor: &floor };
            assert_eq!(why(&reasons), expected, "{title:?} {text:?}");
        }
    }
}
