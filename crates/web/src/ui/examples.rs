//! Example questions for the Search page, made from a tenant's own documents.

use domain::shown::shown;
use store::memory::Listed;

use super::search::address;
use crate::api::search::SearchQuery;

pub(super) struct Example {
    pub(super) q: String,
    pub(super) href: String,
    pub(super) says: &'static str,
}

/// Questions that the newest documents answer.
pub(super) fn examples_of(newest: &[Listed]) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut add = |q: Option<String>, says| {
        if let Some(q) = q.filter(|q| examples.iter().all(|known| known.q != *q)) {
            let href = address(&SearchQuery { q: q.clone(), ..SearchQuery::default() });
            examples.push(Example { q: shown(&q), href, says });
        }
    };
    let titles = || newest.iter().filter_map(|document| document.title.as_deref()).map(str::trim);
    let is_short = |title: &&str| (8..=60).contains(&title.chars().count()) && title.contains(' ');
    add(titles().find(is_short).map(str::to_owned), "finds texts with that meaning, in any words");
    let words = newest.iter().flat_map(|document| {
        let title = document.title.as_deref().unwrap_or_default().split_whitespace();
        title.chain(document.text.split_whitespace())
    });
    let trimmed = words.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    let id = trimmed.filter(|word| is_id(word)).map(str::to_owned).next();
    add(id, "finds a number or an id in any spelling");
    let phrase = newest.iter().find_map(|document| {
        let words: Vec<&str> = document.text.split_whitespace().skip(2).take(3).collect();
        let is_plain = |word: &&str| word.chars().all(char::is_alphabetic) && word.chars().count() > 1;
        (words.len() == 3 && words.iter().all(is_plain)).then(|| format!("\"{}\"", words.join(" ")))
    });
    add(phrase, "finds exactly these words");
    examples
}

/// Whether a word has letters, a joint and digits, as INV-2041 has.
fn is_id(word: &str) -> bool {
    word.split_once('-').is_some_and(|(letters, digits)| {
        (1..=6).contains(&letters.len())
            && letters.chars().all(|c| c.is_ascii_uppercase())
            && (2..=8).contains(&digits.len())
            && digits.chars().all(|c| c.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use domain::DocumentType;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn examples_come_from_the_newest_documents() {
        let document = |title: &str, text: &str| Listed {
            id: Uuid::nil(),
            source_id: Uuid::nil(),
            source_name: String::new(),
            external_id: String::new(),
            document_type: DocumentType::Note,
            title: Some(title.into()),
            text: text.into(),
            n_chunks: 1,
            is_embedded: true,
            status: domain::DocumentStatus::default(),
            skip_reason: None,
            created_at: DateTime::UNIX_EPOCH,
            updated_at: DateTime::UNIX_EPOCH,
        };
        let newest = [
            document("Hi", "Please pay (INV-2041) by Friday."),
            document("Late delivery", "The parcel is three days late."),
        ];
        let asked: Vec<String> = examples_of(&newest).into_iter().map(|example| example.q).collect();
        assert_eq!(asked, ["Late delivery", "INV-2041", "\"is three days\""]);
        assert!(examples_of(&[]).is_empty());
        for (word, expected) in
            [("INV-2041", true), ("A-1007", true), ("x-ray", false), ("GPT-4", false), ("2026-11", false)]
        {
            assert_eq!(is_id(word), expected, "{word}");
        }
    }
}
