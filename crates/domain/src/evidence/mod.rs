//! Whether a quotation holds what a sentence says. A machine wrote the sentence and chose the quotation, so nothing of it is believed: the
//! quotation has to stand in its passage word for word, and what the sentence says has to stand in the quotation.
//!
//! The rules go by words, not by meaning, and rather refuse a true sentence than let a false one pass. They are:
//!
//! - The quotation is a run of words of the passage. How it is written there counts, not how the machine writes it.
//! - Numbers, amounts, dates and addresses of the sentence stand in the quotation.
//! - So do its names, and the word that it begins with. A name may stand in the document's title instead, unless the quotation names others.
//! - All other words that say something stand in the quotation, endings aside, and also small ones that decide what is said, such as `before` or `up`.
//! - The sentence denies something exactly if the clause of the quotation does: a quotation may leave out its `not`, or whom it is about.
//! - A word of that clause that turns what it says (`refused`, `more than`, `if`) stands in the sentence too, and the quotation asks nothing.
//! - The words stand in one sentence of the passage, in the same order. The sentence begins where a clause does, and leaves out nothing in
//!   between but an aside, or the rest of a clause that is about the same. So facts of different parts are not combined.
//! - The small words that say who did it agree: `paid by Ann` is not `paid to Ann`, nor is `was paid` the same as `paid`.

mod addressed;
mod best;
mod claim;
mod small_words;
mod words;

pub use addressed::addresses_a_machine;
pub use best::{Quotable, Quoted, best};
use claim::Claim;
use words::{Begins, Kind, Word, are_alike, with_dates, words};

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
    /// The clause asks, doubts, refuses or bounds what it says, and the sentence does not.
    Turned,
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
            match self.claim(&sentence, at, at + quoted.len()).check() {
                Ok(()) => return Ok(()),
                Err(other) => doubt = other,
            }
        }
        Err(doubt)
    }

    fn claim<'a>(&'a self, sentence: &'a [Word], from: usize, end: usize) -> Claim<'a> {
        let begins = |nth: &usize| self.words[*nth].begins == Begins::Sentence;
        let first = (0..=from).rev().find(begins).unwrap_or(0);
        let last = (end..self.words.len()).find(begins).unwrap_or(self.words.len());
        // A date that the quotation cuts in two is not whole in it.
        let part = |from: usize, end: usize| with_dates(self.words[from..end].to_vec());
        let (mut words, quoted) = (part(first, from), part(from, end));
        let quote = words.len()..words.len() + quoted.len();
        words.extend(quoted);
        words.extend(part(end, last));
        Claim { sentence, title: &self.title, words, quote }
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

/// Whether a word says nothing by itself.
fn is_minor(word: &Word) -> bool {
    word.kind == Kind::Plain && small_words::is_minor(&word.folded)
}

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

    /// The whole text is the quotation, or what is between brackets.
    fn of_text(title: &str, text: &str, sentence: &str) -> Result<(), Doubt> {
        let quote = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(quote, _)| quote);
        Passage::new(Some(title), &text.replace(['[', ']'], "")).holds(sentence, quote)
    }

    #[test]
    fn a_word_that_turns_the_quotation_is_not_left_out() {
        for (text, sentence, doubt) in [
            ("The customer refused to pay 500 EUR.", "The customer will pay 500 EUR.", Doubt::Words),
            ("The customer refused to pay 500 EUR.", "The customer pays 500 EUR.", Doubt::Turned),
            ("The customer forgot to call Ann.", "The customer calls Ann.", Doubt::Turned),
            ("Larkfield owes more than 500 EUR.", "Larkfield owes 500 EUR.", Doubt::Turned),
            ("Larkfield owes almost 500 EUR.", "Larkfield owes 500 EUR.", Doubt::Turned),
            ("Larkfield owes about 500 EUR.", "Larkfield owes 500 EUR.", Doubt::Order),
            ("Larkfield owes >500 EUR.", "Larkfield owes 500 EUR.", Doubt::Order),
            ("Larkfield owes 500+ EUR.", "Larkfield owes 500 EUR.", Doubt::Order),
            ("If the deposit is paid, Larkfield gets 20% off.", "Larkfield gets 20% off.", Doubt::Turned),
            (
                "If the deposit is paid, and Ann signs, [Larkfield gets 20% off].",
                "Larkfield gets 20% off.",
                Doubt::Turned,
            ),
            ("[Larkfield gets 20% off], but only with a deposit.", "Larkfield gets 20% off.", Doubt::Turned),
            ("Larkfield might get 20% off.", "Larkfield gets 20% off.", Doubt::Turned),
            ("Does Larkfield owe 500 EUR?", "Larkfield does owe 500 EUR.", Doubt::Turned),
            ("[Larkfield owes 500 EUR], doesn't it?", "Larkfield owes 500 EUR.", Doubt::Denial),
            ("Allegedly Larkfield owes 500 EUR.", "Larkfield owes 500 EUR.", Doubt::Turned),
            ("Bob claims that [Larkfield owes 500 EUR].", "Larkfield owes 500 EUR.", Doubt::Turned),
            ("Bob wrote: [Larkfield owes 500 EUR].", "Larkfield owes 500 EUR.", Doubt::Turned),
            ("It is false that [Larkfield owes 500 EUR].", "Larkfield owes 500 EUR.", Doubt::Turned),
            ("[Ann pays 5 EUR], or Bob pays 7 EUR.", "Ann pays 5 EUR.", Doubt::Turned),
            ("Ann or Bob pays 5 EUR.", "Ann and Bob pay 5 EUR.", Doubt::Turned),
            ("It is not true that Mr. [Weiss pays 500 EUR].", "Weiss pays 500 EUR.", Doubt::Denial),
            ("The customer will not\n[pay 500 EUR].", "It will pay 500 EUR.", Doubt::Denial),
            ("[Ann pays 5 EUR], but not today.", "Ann pays 5 EUR.", Doubt::Denial),
            ("Ann betaalt de factuur niet.", "Ann betaalt de factuur.", Doubt::Denial),
            ("[Ann betaalt de factuur] niet.", "Ann betaalt de factuur.", Doubt::Denial),
            ("Ann betalar inte fakturan.", "Ann betalar fakturan.", Doubt::Denial),
            ("Ann n’a payé aucune facture.", "Ann a payé facture.", Doubt::Denial),
            ("Анна не платит 5 EUR.", "Анна платит 5 EUR.", Doubt::Denial),
            ("Ann dont owe 5 EUR.", "Ann owes 5 EUR.", Doubt::Denial),
        ] {
            assert_eq!(of_text("Note", text, sentence), Err(doubt), "{sentence:?} by {text:?}");
        }
    }

    #[test]
    fn facts_of_different_parts_are_not_combined() {
        for (text, sentence) in [
            // Numbers and dates of something else.
            (
                "Invoice 1037 of Copperline is unpaid: 805 USD of 1,200 USD, overdue since 3 March 2026",
                "Invoice 1037 of Copperline with 1,200 USD is overdue since 3 March 2026.",
            ),
            ("805 USD of 1,200 USD are unpaid.", "1,200 USD are unpaid."),
            ("805 USD of [1,200 USD are unpaid].", "1,200 USD are unpaid."),
            ("Ann owes 5 EUR to Bob who owes 7 EUR", "Ann owes 7 EUR."),
            ("Ann borrowed 5 EUR from Bob who owes 7 EUR", "Ann owes 7 EUR."),
            ("Ann called Bob, who owes 7 EUR", "Ann owes 7 EUR."),
            ("Ann owes 5 000 EUR", "Ann owes 5 EUR."),
            ("Ann owes 5 million EUR", "Ann owes 5 EUR."),
            ("[Ann owes 5] 000 EUR", "Ann owes 5."),
            ("[It takes 5] to 7 days", "It takes 5."),
            ("It takes 5 to 7 days", "It takes 5 days."),
            ("The price rose from 5 EUR to 7 EUR", "The price rose to 5 EUR."),
            ("The loader costs 310 USD a day", "The loader costs 310 USD."),
            ("The loader costs 310 USD a day and 1,450 USD a week", "The loader costs 310 USD a week."),
            ("The loader is free on 3 March and the trencher on 5 April", "The trencher is free on 3 March."),
            ("The loader is free on 3 March and the trencher on 5 April", "The loader is free on 5 April."),
            ("A loader costs 310 USD a day. A trencher costs 185 USD a day.", "A trencher costs 310 USD a day."),
            ("A loader costs 310 USD a day. A trencher costs 185 USD a day.", "A loader costs 185 USD a day."),
            // Words of something else.
            ("The loader is broken. The trencher is rented.", "The loader is rented."),
            ("The loader is red, the trencher blue.", "The loader is blue."),
            ("Ann pays before Friday and calls after five.", "Ann pays after five."),
            ("Ann did not call and repaired the boiler.", "Ann did not repair the boiler."),
            ("Larkfield rental costs 5 EUR.", "Larkfield costs 5 EUR."),
            ("Larkfield's supplier owes 5 EUR.", "Larkfield owes 5 EUR."),
            ("The supplier of Larkfield owes 5 EUR.", "Larkfield owes 5 EUR."),
            ("The supplier of [Larkfield owes 5 EUR].", "Larkfield owes 5 EUR."),
            ("The supplier of the customer owes 5 EUR.", "The customer owes 5 EUR."),
            ("Ann and Bob owe 5 EUR.", "Ann owes 5 EUR."),
            ("The invoice was sent by Ann. It was paid by Bob.", "The invoice was paid by Ann."),
            ("Ann met Bob. He pays 5 EUR.", "Ann pays 5 EUR."),
            ("The manager left. The boiler broke. It was sold.", "The manager was sold."),
            ("The loader was sold and repaired.", "The loader repaired."),
            ("We owe Larkfield 5 EUR.", "They owe Larkfield 5 EUR."),
            // Directions and times.
            ("Ann was paid 5 EUR by Bob.", "Ann paid 5 EUR to Bob."),
            ("Ann was paid 5 EUR by Bob.", "Ann was paid 5 EUR to Bob."),
            ("Ann was paid 5 EUR.", "Ann paid 5 EUR."),
            ("Ann paid 5 EUR.", "Ann was paid 5 EUR."),
            ("Ann is owed 5 EUR.", "Ann owes 5 EUR."),
            ("Ann wird von Bob bezahlt.", "Ann hat Bob bezahlt."),
            ("Ann owed 5 EUR.", "Ann owes 5 EUR."),
            ("The price was 5 EUR.", "The price is 5 EUR."),
            ("The boiler will be repaired.", "The boiler was repaired."),
            // However the machine writes the quotation.
            ("Larkfield owes 5 EUR, and [Stonebrook owes 7 EUR].", "Larkfield owes 7 EUR."),
        ] {
            let held = of_text("Note", text, sentence);
            assert!(matches!(held, Err(Doubt::Order | Doubt::Name)), "{sentence:?} by {text:?}: {held:?}");
        }
        let all = Passage::new(None, "Larkfield owes 5 EUR. Stonebrook owes 7 EUR.");
        assert_eq!(all.holds("Larkfield owes 7 EUR.", "larkfield owes 5 eur stonebrook owes 7 eur"), Err(Doubt::Order));
        let causes = Passage::new(None, "Ann pays, Bob called.");
        assert_eq!(causes.holds("Ann pays because Bob called.", "Ann pays, Bob called."), Err(Doubt::Words));
    }

    #[test]
    fn what_is_left_out_may_be_an_aside_or_somebody_who_was_named() {
        let owes = "Copperline owes us money: it owes 805 EUR, overdue since 3 March 2026.";
        let unpaid = "Invoice 1037 of Copperline is unpaid: 805 USD of 1,200 USD, overdue since 3 March 2026.";
        let called = "Dagny Oakes called about the boiler. She does not want it repaired before Friday, and [prefers calls after five].";
        for (text, sentence) in [
            (owes, "Copperline owes 805 EUR."),
            (owes, "Copperline owes 805 EUR, overdue since 3 March 2026."),
            (owes, "Copperline owes us money."),
            (unpaid, "Invoice 1037 of Copperline with 805 USD is overdue since 3 March 2026."),
            (unpaid, "Invoice 1037 of Copperline is unpaid: 805 USD."),
            (called, "She prefers calls after five."),
            (
                &called.replace(['[', ']'], ""),
                "Dagny Oakes does not want the boiler repaired before Friday, and prefers calls after five.",
            ),
            ("Dagny Oakes called and prefers mails.", "Dagny Oakes prefers mails."),
            ("Ann paid 5 EUR on 3 March and owes 7 EUR.", "Ann owes 7 EUR."),
            ("The office is closed at noon and opens on Mondays at 8.", "The office opens on Mondays at 8."),
            ("On 3 March Ann called about the boiler.", "Ann called about the boiler."),
            (
                "Ann Weiss (ann@acme.example) is the new manager of Acme Ltd.",
                "Ann Weiss is the new manager of Acme Ltd.",
            ),
            ("Hi Bob, the delivery will arrive on Monday at 9:00.", "The delivery will arrive on Monday at 9:00."),
            ("Balance due: 500 EUR", "The balance due is 500 EUR."),
            ("Billing address: 402 River Street, Montpelier", "The billing address is 402 River Street, Montpelier."),
            ("Dagny wrote that she prefers mails.", "Dagny wrote that she prefers mails."),
            ("Larkfield owes more than 500 EUR.", "Larkfield owes more than 500 EUR."),
            ("The customer refused to pay 500 EUR.", "The customer refused to pay 500 EUR."),
            ("If the deposit is paid, Larkfield gets 20% off.", "If the deposit is paid, Larkfield gets 20% off."),
            ("Ann was paid 5 EUR by Bob.", "Ann was paid 5 EUR by Bob."),
            ("Who owes us money? Larkfield owes 5 EUR.", "Larkfield owes 5 EUR."),
            (
                "The contract ends in June. [Notice must be given 90 days before that].",
                "Notice must be given 90 days before that.",
            ),
            (
                "The contract ends in June. Notice must be given 90 days before that.",
                "Notice must be given 90 days before the end of the contract.",
            ),
            (
                "Two pallets of copper pipe were\ndelivered late to the yard in Barre.",
                "Two pallets of copper pipe were delivered late.",
            ),
        ] {
            assert_eq!(of_text("Note", text, sentence), Ok(()), "{sentence:?} by {text:?}");
        }
    }

    #[test]
    fn a_copy_of_a_sentence_always_holds() {
        for text in [
            "Mr. Weiss will not pay for 3 broken lengths, e.g. the ones from Barre.",
            "The U.S. office (Ann Weiss, 555-0100) is closed until 3 March 2026 unless it snows.",
            "Ann's boss said that he'd pay 5 EUR a day, or 7, which is too much.",
            "No. 5 is Ann's, and it's the one that she doesn't want.",
            "Wir haben am 24. November 2026 mit Herrn Weiß über 12 Paletten gesprochen.",
            "Le client n'a pas payé la facture de 500 EUR du 3 mars 2026.",
            "El cliente no pagó 500 EUR a Larkfield.",
            "请付款 100 元。",
        ] {
            assert_eq!(of_text("Note", text, text), Ok(()), "{text}");
        }
    }

    #[test]
    fn only_names_and_what_has_a_number_count_in_a_title() {
        let text = "Order 77 was delivered.";
        for (title, sentence, doubt) in [
            ("Refund approved", "Order 77 refund approved.", Doubt::Words),
            ("Refund Approved", "Order 77 Refund Approved.", Doubt::Order),
            ("Refund Approved", "Refund Approved: Order 77 was delivered.", Doubt::Order),
            ("not paid, late", "Order 77 was delivered late.", Doubt::Words),
            ("Bob", "Order 77 was delivered Bob.", Doubt::Order),
        ] {
            assert_eq!(of_text(title, text, sentence), Err(doubt), "{sentence:?} of {title:?}");
        }
        assert_eq!(of_text("Larkfield", "The deposit is 500 EUR.", "The deposit of Larkfield is 500 EUR."), Ok(()));
        assert_eq!(of_text("Larkfield", "owes 500 EUR", "Larkfield owes 500 EUR."), Ok(()));
    }

    #[test]
    fn a_number_of_the_title_counts_with_the_word_before_it() {
        let invoice = Passage::new(Some("Invoice 1037"), "Total: 362.07\nDue date: 2026-12-01");
        assert_eq!(invoice.holds("Invoice 1037 is due on 1 December 2026.", "Due date: 2026-12-01"), Ok(()));
        assert_eq!(invoice.holds("The total of invoice 1037 is 362.07.", "Total: 362.07"), Ok(()));
        assert_eq!(invoice.holds("The total is 1037.", "Total: 362.07"), Err(Doubt::Number));
    }
}
