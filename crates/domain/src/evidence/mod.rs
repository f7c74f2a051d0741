//! Whether a quotation holds what a sentence says. A machine wrote the sentence and chose the quotation, so nothing of it is believed: the
//! quotation has to stand in its passage word for word, and what the sentence says has to stand in the quotation.
//!
//! The rules go by words, not by meaning, and rather refuse a true sentence than let a false one pass. They are:
//!
//! - The quotation is a run of words of the passage.
//! - Numbers, amounts, dates and addresses of the sentence stand in the quotation.
//! - So do its names, and the word that it begins with. A name may stand in the document's title instead, unless the quotation names others.
//! - Numbers and names come in the order of the quotation, and nobody else's part of a list lies between them.
//! - The sentence denies something exactly if the clause of the quotation does: a quotation may leave out its `not`, or whom it is about.
//! - All other words that say something stand in the quotation, endings aside, and also small ones that decide what is said, such as `before` or `up`.

mod addressed;
mod best;
mod words;

pub use addressed::addresses_a_machine;
pub use best::{Quotable, Quoted, best};
use words::{Begins, Kind, Word, are_alike, is_month, with_dates, words};

/// Longer ones quote too much to support one sentence.
const MOST_QUOTED_WORDS: usize = 120;

/// The reason why a quotation does not hold a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The quotation does not stand in the passage, or is none.
    NotQuoted,
    /// The sentence has a number, a date or an address that the quotation has not.
    Number,
    Name,
    /// The facts are the quotation's, in another order, or from different parts of it.
    Order,
    /// One denies and the other does not.
    Denial,
    /// A word of the sentence is not the quotation's.
    Words,
    /// The sentence says nothing that could be checked.
    Nothing,
}

/// A passage in which quotations are looked for.
#[derive(Clone, Debug)]
pub struct Passage {
    words: Vec<Word>,
    title: Vec<Word>,
}

impl Passage {
    pub fn new(title: Option<&str>, text: &str) -> Self {
        Self { words: words(text), title: with_dates(words(title.unwrap_or_default())) }
    }

    /// Whether `quote` stands here and holds what `sentence` says.
    pub fn holds(&self, sentence: &str, quote: &str) -> Result<(), Doubt> {
        let quoted = words(quote);
        let mut sentence = with_dates(words(sentence));
        // It is one sentence: a point in the middle of it (`Mr. Weiss`) begins no other.
        sentence.iter_mut().skip(1).for_each(|word| word.begins = Begins::Nothing);
        let mut doubt = Doubt::NotQuoted;
        for at in self.places(&quoted) {
            let (quote, clause) = (with_dates(quoted.clone()), with_dates(self.clause(at, quoted.len())));
            match (Claim { sentence: &sentence, quote, clause, title: &self.title }).check() {
                Ok(()) => return Ok(()),
                Err(other) => doubt = other,
            }
        }
        Err(doubt)
    }

    /// Where a quotation stands.
    fn places(&self, quoted: &[Word]) -> Vec<usize> {
        if !(1..=MOST_QUOTED_WORDS).contains(&quoted.len()) {
            return Vec::new();
        }
        let is_here = |run: &[Word]| {
            run.iter().zip(quoted).all(|(here, quoted)| here.folded == quoted.folded && here.kind == quoted.kind)
        };
        let runs = self.words.windows(quoted.len()).enumerate();
        runs.filter(|(_, run)| is_here(run)).map(|(at, _)| at).collect()
    }

    /// A run of words with the rest of its clause.
    fn clause(&self, at: usize, n: usize) -> Vec<Word> {
        let begins = |nth: &usize| {
            let word = &self.words[*nth];
            let is_other = matches!(word.folded.as_str(), "and" | "but" | "while" | "or");
            word.begins == Begins::Sentence || (word.begins == Begins::Clause && is_other)
        };
        let from = (0..=at).rev().find(begins).unwrap_or(0);
        let end = (at + n..self.words.len()).find(begins).unwrap_or(self.words.len());
        self.words[from..end].to_vec()
    }
}

struct Claim<'a> {
    sentence: &'a [Word],
    quote: Vec<Word>,
    /// The quotation with the rest of its clause.
    clause: Vec<Word>,
    title: &'a [Word],
}

impl Claim<'_> {
    fn check(&self) -> Result<(), Doubt> {
        let numbers = self.places_of_numbers()?;
        let names = self.places_of_names()?;
        self.check_order(&numbers, &names)?;
        if denies(self.sentence) != denies(&self.clause) {
            return Err(Doubt::Denial);
        }
        let n_supported = self.check_words()?;
        if numbers.is_empty() && names.is_empty() && n_supported < 2 {
            return Err(Doubt::Nothing);
        }
        Ok(())
    }

    /// Where in the quotation the sentence's numbers, dates, addresses and signs stand, in the sentence's order.
    fn places_of_numbers(&self) -> Result<Vec<Places>, Doubt> {
        let mut places = Vec::new();
        for (nth, word) in self.sentence.iter().enumerate().filter(|(_, word)| word.is_exact()) {
            let found = places_of(&self.quote, |other| says(other, word));
            if !found.is_empty() {
                places.push((nth, found));
            } else if !self.is_named_in_title(nth) {
                return Err(Doubt::Number);
            }
        }
        Ok(places)
    }

    /// Whether a number belongs to a name in the title: `Invoice 1037`. A number alone could be anything.
    fn is_named_in_title(&self, nth: usize) -> bool {
        let Some(before) = nth.checked_sub(1).map(|before| &self.sentence[before]) else { return false };
        let pairs = self.title.windows(2);
        before.kind == Kind::Plain
            && pairs.into_iter().any(|pair| pair[0].folded == before.folded && says(&pair[1], &self.sentence[nth]))
    }

    fn places_of_names(&self) -> Result<Vec<Places>, Doubt> {
        let mut places = Vec::new();
        let are_others_named = self.clause.iter().any(|word| may_name(word) && !self.knows(word));
        for (nth, word) in self.sentence.iter().enumerate() {
            let is_first = nth == 0 && word.kind == Kind::Plain && !is_minor(word);
            if !is_name(word) && !is_first {
                continue;
            }
            let found = places_of(&self.quote, |other| same(other, word));
            if found.is_empty() {
                if are_others_named || !self.title.iter().any(|other| same(other, word)) {
                    return Err(Doubt::Name);
                }
                continue;
            }
            // The first word may be an ordinary one. It is a name if the quotation writes it like one.
            let named = found.into_iter().filter(|place| is_name(word) || self.quote[*place].is_capital);
            places.extend(Some((nth, named.collect::<Vec<_>>())).filter(|(_, named)| !named.is_empty()));
        }
        Ok(places)
    }

    /// Whether the sentence or the title has this word of the quotation.
    fn knows(&self, word: &Word) -> bool {
        self.sentence.iter().chain(self.title).any(|other| same(other, word))
    }

    fn check_order(&self, numbers: &[Places], names: &[Places]) -> Result<(), Doubt> {
        let mut all: Vec<&Places> = numbers.iter().chain(names).collect();
        all.sort_by_key(|(nth, _)| *nth);
        let Some(all) = in_order(all.iter().map(|(_, places)| places)) else { return Err(Doubt::Order) };
        let (Some(first), Some(last)) = (all.iter().min(), all.iter().max()) else { return Ok(()) };
        // Somebody else's item in a list: `Ann owes 5, Bob owes 7` does not say that Ann owes 7.
        let is_others = |nth: &usize| {
            let (word, before) = (&self.quote[*nth], &self.quote[nth.saturating_sub(1)]);
            let begins = word.begins != Begins::Nothing || matches!(before.folded.as_str(), "and" | "but" | "while");
            begins && may_name(word) && !self.knows(word)
        };
        if (*first + 1..*last).any(|nth| is_others(&nth)) { Err(Doubt::Order) } else { Ok(()) }
    }

    /// Returns how many plain words of the sentence the quotation has.
    fn check_words(&self) -> Result<usize, Doubt> {
        let mut n_found = 0;
        for word in self.sentence.iter().filter(|word| word.kind == Kind::Plain && !is_name(word)) {
            let is_decisive = DECISIVE.contains(&word.folded.as_str());
            if is_minor(word) && !is_decisive {
                continue;
            }
            if !self.quote.iter().chain(self.title).any(|other| same(other, word)) {
                return Err(Doubt::Words);
            }
            n_found += 1;
        }
        Ok(n_found)
    }
}

fn places_of(words: &[Word], is_meant: impl Fn(&Word) -> bool) -> Vec<usize> {
    words.iter().enumerate().filter(|(_, word)| is_meant(word)).map(|(nth, _)| nth).collect()
}

/// The position of a word in the sentence, and where it stands in the quotation.
type Places = (usize, Vec<usize>);

/// One place for each, none before the one before it; the earliest. None: their order is another one.
fn in_order<'a>(places: impl Iterator<Item = &'a Vec<usize>>) -> Option<Vec<usize>> {
    let mut at = 0;
    places
        .map(|places| {
            at = *places.iter().find(|place| **place >= at)?;
            Some(at)
        })
        .collect()
}

/// Whether a word of a quotation says the number, date or address of a sentence.
fn says(quoted: &Word, word: &Word) -> bool {
    match (word.kind, quoted.kind) {
        (Kind::Date(date), Kind::Date(quoted)) => date.is_part_of(quoted),
        // The year of a date.
        (Kind::Number, Kind::Date(quoted)) => quoted.year.is_some_and(|year| word.folded == year.to_string()),
        (kind, quoted_kind) => kind == quoted_kind && quoted.folded == word.folded,
    }
}

fn same(a: &Word, b: &Word) -> bool {
    a.kind == b.kind && are_alike(&a.folded, &b.folded)
}

/// A capital letter in the middle of a sentence. At its beginning every word has one.
fn is_name(word: &Word) -> bool {
    may_name(word) && word.begins != Begins::Sentence
}

/// A capital letter anywhere: perhaps a name.
fn may_name(word: &Word) -> bool {
    word.kind == Kind::Plain && word.is_capital && !is_minor(word) && !is_month(&word.folded)
}

/// Whether a word says nothing by itself.
fn is_minor(word: &Word) -> bool {
    word.kind == Kind::Plain && MINOR.contains(&word.folded.as_str())
}

fn denies(words: &[Word]) -> bool {
    words.iter().enumerate().any(|(nth, word)| {
        // `No. 5` is a number.
        let is_number = word.folded == "no" && words.get(nth + 1).is_some_and(Word::is_exact);
        let is_denial = DENIALS.contains(&word.folded.as_str()) || word.folded.ends_with("n't");
        is_denial && !is_number
    })
}

const DENIALS: &[&str] = &[
    "not", "no", "never", "none", "nobody", "nothing", "neither", "nor", "cannot", "without", "hardly", "nicht",
    "kein", "keine", "keinen", "keiner", "nie", "niemand", "ohne", "pas", "jamais", "sans", "sin", "nunca", "não",
    "sem", "non", "senza",
];

/// Words that decide what a sentence says, however short they are.
const DECISIVE: &[&str] = &[
    "before", "after", "until", "since", "more", "less", "least", "most", "over", "under", "above", "below", "only",
    "always", "all", "every", "both", "half", "twice", "double", "must", "may", "might", "if", "unless", "except",
    "up", "down", "off", "out", "from", "should", "would", "could", "can",
];

/// Words that say nothing by themselves, in the languages that our users write most.
const MINOR: &[&str] = &[
    "a",
    "an",
    "the",
    "and",
    "or",
    "but",
    "of",
    "to",
    "in",
    "on",
    "at",
    "by",
    "for",
    "from",
    "with",
    "as",
    "into",
    "about",
    "is",
    "are",
    "was",
    "were",
    "be",
    "been",
    "being",
    "am",
    "has",
    "have",
    "had",
    "having",
    "do",
    "does",
    "did",
    "it",
    "its",
    "he",
    "she",
    "they",
    "them",
    "their",
    "his",
    "her",
    "him",
    "we",
    "us",
    "our",
    "you",
    "your",
    "i",
    "me",
    "my",
    "this",
    "that",
    "these",
    "those",
    "there",
    "here",
    "who",
    "whom",
    "whose",
    "which",
    "what",
    "when",
    "where",
    "why",
    "how",
    "so",
    "than",
    "then",
    "also",
    "too",
    "very",
    "just",
    "will",
    "would",
    "shall",
    "can",
    "could",
    "should",
    "one",
    "some",
    "any",
    "such",
    "other",
    "another",
    "own",
    "same",
    "still",
    "yet",
    "out",
    "up",
    "down",
    "off",
    "per",
    "via",
    "while",
    "because",
    "said",
    "says",
    "say",
    "states",
    "stated",
    "mentions",
    "according",
    "currently",
    "however",
    "and/or",
    "yes",
    "der",
    "die",
    "das",
    "den",
    "dem",
    "des",
    "ein",
    "eine",
    "einen",
    "einem",
    "einer",
    "und",
    "oder",
    "aber",
    "von",
    "vom",
    "zu",
    "zum",
    "zur",
    "im",
    "am",
    "an",
    "auf",
    "bei",
    "mit",
    "für",
    "aus",
    "nach",
    "ist",
    "sind",
    "war",
    "waren",
    "wird",
    "werden",
    "hat",
    "haben",
    "er",
    "sie",
    "es",
    "wir",
    "ihr",
    "sich",
    "dass",
    "auch",
    "noch",
    "als",
    "wie",
    "le",
    "la",
    "les",
    "un",
    "une",
    "du",
    "de",
    "et",
    "ou",
    "à",
    "au",
    "aux",
    "en",
    "dans",
    "sur",
    "pour",
    "par",
    "avec",
    "est",
    "sont",
    "il",
    "elle",
    "ce",
    "cette",
    "qui",
    "que",
    "el",
    "los",
    "las",
    "una",
    "y",
    "o",
    "con",
    "del",
    "al",
    "se",
    "su",
    "sus",
    "es",
    "son",
    "por",
    "para",
    "lo",
    "com",
    "os",
    "as",
    "dos",
    "das",
    "um",
    "uma",
    "é",
];

#[cfg(test)]
mod tests {
    use super::*;

    const TITLE: &str = "Copperline Plumbing & Heating";
    const TEXT: &str = "Copperline Plumbing & Heating owes 805 USD, overdue since 3 March 2026.\n\
        Invoice 1037 over 1,200.00 USD was sent to dagny@copperline.example on 2026-02-01. Larkfield owes 2,450 USD, and Stonebrook \
        owes 8,280 USD. The boiler of Dagny Oakes will not be repaired before Friday. She prefers calls after five. Two pallets of copper \
        pipe were delivered late to the yard in Barre.";

    fn holds(sentence: &str, quote: &str) -> Result<(), Doubt> {
        Passage::new(Some(TITLE), TEXT).holds(sentence, quote)
    }

    #[test]
    fn a_sentence_that_its_quotation_says_passes() {
        let owes = "Copperline Plumbing & Heating owes 805 USD, overdue since 3 March 2026.";
        for (sentence, quote) in [
            ("Copperline Plumbing & Heating owes 805 USD.", owes),
            ("Copperline owes 805.00 USD, which is overdue since 2026-03-03.", owes),
            ("Copperline owes 805 USD since March 2026.", owes),
            ("The 805 USD have been overdue since March 3, 2026.", "owes 805 USD, overdue since 3 March 2026"),
            ("Copperline owes 805 USD.", "owes 805 USD"), // the name is the title's
            (
                "Invoice 1037 over 1,200 USD was sent on 1 February 2026.",
                "Invoice 1037 over 1,200.00 USD was sent to dagny@copperline.example on 2026-02-01",
            ),
            ("It was sent to dagny@copperline.example.", "was sent to dagny@copperline.example"),
            ("Stonebrook owes 8280 USD.", "Stonebrook owes 8,280 USD"),
            (
                "Larkfield owes 2,450 USD and Stonebrook owes 8,280 USD.",
                "Larkfield owes 2,450 USD, and Stonebrook owes 8,280 USD",
            ),
            (
                "The boiler of Dagny Oakes is not repaired before Friday.",
                "The boiler of Dagny Oakes will not be repaired before Friday.",
            ),
            ("2 pallets of copper pipe were delivered late.", "Two pallets of copper pipe were delivered late"),
            ("She prefers calls after five.", "She  prefers calls\nafter five."),
            ("she prefers calls after 5", "SHE PREFERS CALLS AFTER FIVE"),
        ] {
            assert_eq!(holds(sentence, quote), Ok(()), "{sentence:?} by {quote:?}");
        }
    }

    #[test]
    fn a_sentence_that_its_quotation_does_not_say_is_refused() {
        let owes = "Copperline Plumbing & Heating owes 805 USD, overdue since 3 March 2026.";
        let all = "Larkfield owes 2,450 USD, and Stonebrook owes 8,280 USD";
        for (sentence, quote, doubt) in [
            // The quotation is not there.
            ("Copperline owes 806 USD.", "Copperline Plumbing & Heating owes 806 USD", Doubt::NotQuoted),
            ("Copperline owes 80 USD.", "owes 80", Doubt::NotQuoted),
            ("Copperline owes 2 USD.", "owes 2", Doubt::NotQuoted),
            ("Copperline owes 805 USD.", "", Doubt::NotQuoted),
            ("Copperline owes 805 USD.", "…", Doubt::NotQuoted),
            ("Larkfield owes 2,450 USD.", "Larkfield owes 2,450 USD. The boiler", Doubt::NotQuoted),
            // It is, and says something else.
            ("Copperline owes 850 USD.", owes, Doubt::Number),
            ("Copperline owes 805 EUR.", owes, Doubt::Name),
            ("Copperline owes €805.", owes, Doubt::Number),
            ("Copperline owes 805 USD since 4 March 2026.", owes, Doubt::Number),
            ("Copperline owes 805 USD since 3 March 2025.", owes, Doubt::Number),
            ("Acme owes 805 USD.", owes, Doubt::Name),
            ("The company Acme owes 805 USD.", owes, Doubt::Name),
            ("The 805 USD of Mr. Mallory are overdue since 3 March 2026, and owes.", owes, Doubt::Name),
            ("Copperline owes 2,450 USD.", "Larkfield owes 2,450 USD", Doubt::Name),
            ("Larkfield owes 8,280 USD.", all, Doubt::Order),
            ("Larkfield owes 8,280.", all, Doubt::Order),
            ("Stonebrook owes 2,450 USD and Larkfield owes 8,280 USD.", all, Doubt::Order),
            ("Stonebrook owes 2,450 USD.", all, Doubt::Order),
            // The quotation leaves out what would contradict the sentence.
            ("The boiler will be repaired before Friday.", "be repaired before Friday", Doubt::Denial),
            ("Copperline owes 2,450 USD.", "owes 2,450 USD", Doubt::Name),
            // One word decides.
            (
                "2 pallets of copper pipe were delivered early.",
                "Two pallets of copper pipe were delivered late",
                Doubt::Words,
            ),
            ("Copperline paid 805 USD.", owes, Doubt::Words),
            ("Copperline does not owe 805 USD.", owes, Doubt::Denial),
            (
                "The boiler of Dagny Oakes will be repaired before Friday.",
                "The boiler of Dagny Oakes will not be repaired before Friday.",
                Doubt::Denial,
            ),
            ("She prefers calls before five.", "She prefers calls after five.", Doubt::Words),
            ("She prefers calls after six.", "She prefers calls after five.", Doubt::Number),
            (
                "All pallets of copper pipe were delivered late.",
                "pallets of copper pipe were delivered late",
                Doubt::Name,
            ),
            (
                "Three pallets of copper pipe were delivered late.",
                "Two pallets of copper pipe were delivered late",
                Doubt::Number,
            ),
            ("Write to mallory@evil.example.", "dagny@copperline.example", Doubt::Number),
            ("Invoice 2041 was sent.", "was sent", Doubt::Number),
            ("Paris is the capital of France.", owes, Doubt::Name),
            ("Yes.", owes, Doubt::Nothing),
            ("", owes, Doubt::Nothing),
        ] {
            assert_eq!(holds(sentence, quote), Err(doubt), "{sentence:?} by {quote:?}");
        }
    }

    #[test]
    fn a_number_of_the_title_counts_with_the_word_before_it() {
        let invoice = Passage::new(Some("Invoice 1037"), "Total: 362.07\nDue date: 2026-12-01");
        assert_eq!(invoice.holds("Invoice 1037 is due on 1 December 2026.", "Due date: 2026-12-01"), Ok(()));
        assert_eq!(invoice.holds("The total of invoice 1037 is 362.07.", "Total: 362.07"), Ok(()));
        assert_eq!(invoice.holds("The total is 1037.", "Total: 362.07"), Err(Doubt::Number));
    }
}
