//! One sentence beside one place of its quotation. See the rules in [evidence](super).

use std::ops::Range;

use super::small_words::{self, begins_clause, is_be, is_condition, is_decisive, is_denial, is_of, is_turning};
use super::words::{Begins, Kind, Word, is_month};
use super::{Doubt, is_minor, same, says};

pub(super) struct Claim<'a> {
    pub sentence: &'a [Word],
    pub title: &'a [Word],
    /// The quotation with the rest of the sentences that it is of.
    pub words: Vec<Word>,
    /// The quotation.
    pub quote: Range<usize>,
}

/// Where a word of the sentence comes from.
enum Origin {
    /// These places of the quotation.
    Here(Vec<usize>),
    Title,
    /// The sentence of the quotation before this one, which refers to it: `The boiler broke. It was …`
    Before,
}

impl Claim<'_> {
    pub fn check(&self) -> Result<(), Doubt> {
        if !self.sentence.iter().any(is_content) {
            return Err(Doubt::Nothing);
        }
        let n_facts = self.check_numbers()? + self.check_names()?;
        let mut doubt = Doubt::NotQuoted;
        for of in self.sentences() {
            match self.check_in(&of) {
                Ok(n_plain) if n_facts == 0 && n_plain < 2 => doubt = Doubt::Nothing,
                Ok(_) => return Ok(()),
                Err(other) => doubt = other,
            }
        }
        Err(doubt)
    }

    /// The sentences that the quotation is of.
    fn sentences(&self) -> Vec<Range<usize>> {
        let begins = (0..self.words.len()).filter(|nth| *nth == 0 || self.words[*nth].begins == Begins::Sentence);
        let begins: Vec<usize> = begins.chain([self.words.len()]).collect();
        let all = begins.windows(2).map(|pair| pair[0]..pair[1]);
        all.filter(|of| of.start < self.quote.end && self.quote.start < of.end).collect()
    }

    /// Returns how many numbers, dates, addresses and signs of the sentence the quotation has. The others are the title's.
    fn check_numbers(&self) -> Result<usize, Doubt> {
        let mut n_found = 0;
        for (nth, word) in self.sentence.iter().enumerate().filter(|(_, word)| word.is_exact()) {
            let is_found = self.words[self.quote.clone()].iter().any(|other| says(other, word));
            if !is_found && !self.is_number_of_title(nth) {
                return Err(Doubt::Number);
            }
            n_found += usize::from(is_found);
        }
        Ok(n_found)
    }

    /// Returns how many names of the sentence the quotation has. The others are the title's.
    fn check_names(&self) -> Result<usize, Doubt> {
        let clause = &self.words[self.clause(&self.quote)];
        let are_others_named = clause.iter().any(|word| may_name(word) && !self.knows(word));
        let mut n_found = 0;
        for (nth, word) in self.sentence.iter().enumerate() {
            let is_first = nth == 0 && word.kind == Kind::Plain && !is_minor(word);
            if !is_name(word) && !is_first {
                continue;
            }
            let found = self.words[self.quote.clone()].iter().find(|other| same(other, word));
            let is_of_title = self.is_name_of_title(word) && !are_others_named;
            if found.is_none() && !is_of_title && !self.is_number_of_title(nth + 1) {
                return Err(Doubt::Name);
            }
            // The first word may be an ordinary one. It is a name if the quotation writes it like one.
            n_found += usize::from(found.is_some_and(|found| is_name(word) || found.is_capital));
        }
        Ok(n_found)
    }

    /// Whether one sentence of the passage holds the claim. Returns how many ordinary words of it the quotation has.
    fn check_in(&self, of: &Range<usize>) -> Result<usize, Doubt> {
        let clause = &self.words[self.clause(&(of.start.max(self.quote.start)..of.end.min(self.quote.end)))];
        if denies(self.sentence) != denies(clause) {
            return Err(Doubt::Denial);
        }
        let n_plain = self.check_words()?;
        let turns = clause.iter().filter(|word| turns(word));
        let mut turning = turns.chain(self.words[of.clone()].iter().filter(|word| is_condition(&word.folded)));
        let is_asked = self.words[of.clone()].iter().any(|word| word.is_asked);
        if is_asked || turning.any(|word| !self.sentence.iter().any(|other| same(other, word))) {
            return Err(Doubt::Turned);
        }
        self.check_order(of)?;
        Ok(n_plain)
    }

    /// Part of a sentence with the rest of its clause. A denial right behind `but` counts for what is before it too.
    fn clause(&self, part: &Range<usize>) -> Range<usize> {
        let begins = |nth: &usize| {
            let (word, next) = (&self.words[*nth], self.words.get(nth + 1));
            let is_clause = word.begins == Begins::Clause && begins_clause(&word.folded);
            word.begins == Begins::Sentence || (is_clause && !next.is_some_and(|next| is_denial(&next.folded)))
        };
        let from = (0..=part.start).rev().find(begins).unwrap_or(0);
        let end = (part.end..self.words.len()).find(begins).unwrap_or(self.words.len());
        from..end
    }

    /// Returns how many ordinary words of the sentence the quotation has, which are all.
    fn check_words(&self) -> Result<usize, Doubt> {
        let mut n_found = 0;
        for (nth, word) in self.sentence.iter().enumerate() {
            if !is_content(word) || word.is_exact() || is_name(word) || self.is_number_of_title(nth + 1) {
                continue;
            }
            let is_found = self.words[self.quote.clone()].iter().any(|other| same(other, word));
            let is_of_title = nth == 0 && self.is_name_of_title(word);
            if !is_found && !is_of_title {
                return Err(Doubt::Words);
            }
            n_found += usize::from(is_found);
        }
        Ok(n_found)
    }

    /// Whether the words of the sentence stand in one sentence of the quotation in the same order, with nothing between them that matters.
    fn check_order(&self, of: &Range<usize>) -> Result<(), Doubt> {
        // The places of the last word that was found, each of which all words before it lead to.
        let mut reached: Option<(usize, Vec<usize>)> = None;
        let (mut is_borrowing, mut is_after_title) = (false, false);
        for nth in (0..self.sentence.len()).filter(|nth| is_content(&self.sentence[*nth])) {
            match self.origin(nth, of).ok_or(Doubt::Order)? {
                Origin::Title => {
                    let is_of_it = nth > 0 && is_of(&self.sentence[nth - 1].folded);
                    if reached.is_some() && !is_of_it && !is_after_title {
                        return Err(Doubt::Order);
                    }
                    is_after_title = true;
                }
                Origin::Before => is_borrowing = true,
                Origin::Here(mut places) => {
                    places.retain(|place| match &reached {
                        None => self.may_begin(of, nth, *place, is_borrowing, is_after_title),
                        Some((_, before)) => {
                            before.iter().any(|p| p < place && self.may_follow(*p, *place, is_borrowing))
                        }
                    });
                    if places.is_empty() {
                        return Err(Doubt::Order);
                    }
                    reached = Some((nth, places));
                    (is_borrowing, is_after_title) = (false, false);
                }
            }
        }
        let Some((_, last)) = reached else { return Err(Doubt::Order) };
        if last.iter().any(|place| self.may_end(of, *place, is_borrowing)) { Ok(()) } else { Err(Doubt::Order) }
    }

    fn origin(&self, nth: usize, of: &Range<usize>) -> Option<Origin> {
        let word = &self.sentence[nth];
        let here = of.start.max(self.quote.start)..of.end.min(self.quote.end);
        let places: Vec<usize> = here.filter(|place| is_said_by(word, &self.words[*place])).collect();
        if !places.is_empty() {
            let alike = places.into_iter().filter(|place| self.are_small_words_alike(nth, *place));
            return Some(Origin::Here(alike.collect()));
        }
        if self.is_number_of_title(nth) || self.is_number_of_title(nth + 1) || self.is_name_of_title(word) {
            return Some(Origin::Title);
        }
        // Somebody who was named before is meant only if nobody else was.
        let (from, end) = (self.quote.start, of.start.max(self.quote.start));
        let begins = |nth: &usize| self.words[*nth].begins == Begins::Sentence;
        let before = &self.words[(from..end).rev().find(begins).unwrap_or(from)..end];
        let is_alone = !may_name(word) || before.iter().all(|other| !may_name(other) || self.knows(other));
        let is_before = word.kind == Kind::Plain && is_alone && before.iter().any(|other| same(other, word));
        is_before.then_some(Origin::Before)
    }

    /// Whether the small words before a word agree: `paid by Ann` is not `paid to Ann`, and `was paid` is not `paid`.
    fn are_small_words_alike(&self, nth: usize, place: usize) -> bool {
        let (word, quoted) = (&self.sentence[nth], &self.words[place]);
        if is_denial(&word.folded) {
            return true;
        }
        let (said, here) = (small_before(self.sentence, nth), small_before(&self.words, place));
        let last = |words: &[Word]| {
            let last = words.iter().rev().find(|word| small_words::is_preposition(&word.folded));
            last.map(|word| word.folded.clone())
        };
        let are_prepositions_alike = match (last(said), last(here)) {
            (None, Some(left_out)) => word.is_exact() && small_words::is_of_time_or_place(&left_out),
            (Some(added), None) => added == "with" || small_words::is_of_time_or_place(&added),
            (said, here) => said == here,
        };
        let has = |words: &[Word], is: fn(&str) -> bool| words.iter().any(|word| is(&word.folded));
        let (said_be, here_be) = (has(said, is_be), has(here, is_be));
        let is_voice_alike = said_be == here_be || word.is_exact() || (said_be && quoted.begins != Begins::Nothing);
        let is_past = |words: &[Word]| has(words, small_words::is_past_be);
        let is_time_alike = !(said_be && here_be) || is_past(said) == is_past(here);
        are_prepositions_alike && is_voice_alike && is_time_alike && word.is_owner == quoted.is_owner
    }

    /// Whether the sentence may begin with the word at `first`: its clause does, or what it leaves out of it is named in another way.
    fn may_begin(&self, of: &Range<usize>, nth: usize, first: usize, is_borrowing: bool, is_titled: bool) -> bool {
        let begins = |nth: &usize| {
            let is_after_and = nth.checked_sub(1).is_some_and(|before| begins_clause(&self.words[before].folded));
            self.words[*nth].begins != Begins::Nothing || is_after_and
        };
        let from = (of.start..=first).rev().find(begins).unwrap_or(of.start);
        let (left_out, word) = (&self.words[from..first], &self.words[first]);
        if is_borrowing && !has_reference(left_out) {
            return false;
        }
        // The title names somebody else than the quotation does.
        let is_named = is_name(word)
            || word.is_exact()
            || (may_name(word) && self.words.get(first + 1).is_some_and(Word::is_exact));
        if is_titled && is_named {
            return false;
        }
        if word.is_exact() {
            return !left_out.iter().any(Word::is_exact);
        }
        let is_person = |word: &Word| small_words::is_first_or_second_person(&word.folded);
        if has_reference(&self.sentence[..nth]) && !may_name(word) {
            return !left_out.iter().any(is_person);
        }
        (from..first).filter(|nth| weighs(&self.words[*nth])).all(|nth| {
            let is_at_time = nth > 0 && small_words::is_of_time_or_place(&self.words[nth - 1].folded);
            match self.words[nth].kind {
                Kind::Date(_) => is_at_time, // `On 3 March Ann called`
                _ => self.is_name_of_title(&self.words[nth]),
            }
        })
    }

    /// Whether a sentence may go on from the word at `p` to the one at `q` and leave out what is between them.
    fn may_follow(&self, p: usize, q: usize, is_borrowing: bool) -> bool {
        let is_known = |nth: &usize| may_name(&self.words[*nth]) && self.knows(&self.words[*nth]);
        let left_out: Vec<usize> = (p + 1..q).filter(|nth| weighs(&self.words[*nth]) && !is_known(nth)).collect();
        if is_borrowing && !has_reference(&self.words[p + 1..q]) {
            return false;
        }
        match left_out.as_slice() {
            [] => true,
            [one] if self.is_aside(*one) || self.is_other_fact(p, *one, q) => true,
            all => self.is_clause_of_same(p, q, all),
        }
    }

    /// Whether the sentence may end with the word at `last`, and leave out the rest.
    fn may_end(&self, of: &Range<usize>, last: usize, is_borrowing: bool) -> bool {
        if is_borrowing && !has_reference(&self.words[last + 1..of.end.min(self.quote.end).max(last + 1)]) {
            return false;
        }
        let next = |n: usize| self.words[..of.end].get(last + n).filter(|next| next.begins == Begins::Nothing);
        let is_next = |list: &[&str]| next(1).is_some_and(|next| list.contains(&next.folded.as_str()));
        let is_more = |n: usize| next(n).is_some_and(|next| matches!(next.kind, Kind::Number | Kind::Sign));
        let is_number = |nth: usize| self.words[nth].kind == Kind::Number;
        // `5 000`, `5%`, `5 to 7`; `5 EUR a day`.
        let goes_on = is_number(last) && (is_more(1) || (is_next(&["to", "and", "bis", "à"]) && is_more(2)));
        let is_rate =
            (last.saturating_sub(1)..=last).any(is_number) && is_next(&["a", "an", "per", "each", "pro", "je"]);
        !goes_on && !is_rate
    }

    /// One ordinary word or an address at a comma: `805 USD, overdue since March` is since March.
    fn is_aside(&self, nth: usize) -> bool {
        let word = &self.words[nth];
        let is_at_mark = [word, &self.words[nth + 1]].iter().any(|word| word.begins != Begins::Nothing);
        let is_plain = word.kind == Kind::Plain && !word.is_capital && !turns(word) && !is_denial(&word.folded);
        is_at_mark && (is_plain || word.kind == Kind::Address)
    }

    /// One fact beside another: `5 EUR of 7 EUR are`, `sent to Ann's address on Monday`.
    fn is_other_fact(&self, p: usize, nth: usize, q: usize) -> bool {
        let (word, before) = (&self.words[nth], &self.words[nth - 1].folded);
        let is_part = self.words[p.saturating_sub(1)..=p].iter().any(|word| word.kind == Kind::Number);
        match word.kind {
            Kind::Number => is_part && is_of(before) && self.words[q].kind != Kind::Number,
            Kind::Date(_) | Kind::Address => {
                let goes_on = small_before(&self.words, q).iter().any(|word| small_words::is_preposition(&word.folded));
                small_words::is_preposition(before) && goes_on
            }
            _ => false,
        }
    }

    /// The rest of a clause whose subject the next one has too: `Ann called and owes 5`, `Ann owes us money: she owes 5`.
    fn is_clause_of_same(&self, p: usize, q: usize, left_out: &[usize]) -> bool {
        let (next, before) = (&self.words[q], &self.words[q - 1]);
        let begins = |nth: &usize| self.words[*nth].begins == Begins::Sentence;
        let from = (0..=p).rev().find(begins).unwrap_or(0);
        let is_subject = may_name(&self.words[p]) || !self.words[from..p].iter().any(weighs);
        let is_same_said = has_reference(std::slice::from_ref(before)) && self.words[p + 1].folded == next.folded;
        // `Ann was called and paid`: perhaps she was paid.
        let is_passive = is_past(next) && self.words[p + 1..q].iter().any(|word| is_be(&word.folded));
        let turns_nothing = |word: &Word| !may_name(word) && !turns(word) && !is_denial(&word.folded);
        is_subject
            && next.kind == Kind::Plain
            && !next.is_capital
            && !is_passive
            && (begins_clause(&before.folded) || is_same_said)
            && left_out.iter().all(|nth| turns_nothing(&self.words[*nth]))
    }

    /// Whether the sentence or the title has this word of the quotation.
    fn knows(&self, word: &Word) -> bool {
        self.sentence.iter().chain(self.title).any(|other| same(other, word))
    }

    fn is_name_of_title(&self, word: &Word) -> bool {
        may_name(word) && self.title.iter().any(|other| may_name(other) && same(other, word))
    }

    /// Whether a number belongs to a name in the title: `Invoice 1037`. A number alone could be anything.
    fn is_number_of_title(&self, nth: usize) -> bool {
        let Some(pair) = nth.checked_sub(1).and_then(|before| self.sentence.get(before..=nth)) else { return false };
        let is_here = self.words[self.quote.clone()].iter().any(|other| says(other, &pair[1]));
        let mut pairs = self.title.windows(2);
        pair[0].kind == Kind::Plain
            && pair[1].is_exact()
            && !is_here
            && pairs.any(|of_title| of_title[0].folded == pair[0].folded && says(&of_title[1], &pair[1]))
    }
}

/// Whether a word of the quotation says one of the sentence: the same one, of the same time. `owed` is not `owes`.
fn is_said_by(word: &Word, quoted: &Word) -> bool {
    if word.is_exact() { says(quoted, word) } else { same(quoted, word) && is_past(word) == is_past(quoted) }
}

fn is_past(word: &Word) -> bool {
    word.folded.ends_with("ed")
}

/// The small words directly before a word, with denials.
fn small_before(words: &[Word], at: usize) -> &[Word] {
    let is_small = |word: &&Word| !weighs(word) || is_denial(&word.folded);
    let n = words[..at].iter().rev().take_while(is_small).count();
    &words[at - n..at]
}

fn has_reference(words: &[Word]) -> bool {
    words.iter().any(|word| word.kind == Kind::Plain && small_words::is_reference(&word.folded))
}

/// Whether a word of a sentence has to stand in the quotation.
fn is_content(word: &Word) -> bool {
    weighs(word) || is_decisive(&word.folded)
}

/// Whether a word of a quotation matters where it is left out.
fn weighs(word: &Word) -> bool {
    word.is_exact() || !is_minor(word) || turns(word)
}

fn turns(word: &Word) -> bool {
    let is_name = word.is_capital && is_month(&word.folded);
    word.kind == Kind::Plain && !is_name && (is_turning(&word.folded) || is_condition(&word.folded))
}

/// A capital letter in the middle of a sentence. At its beginning every word has one.
fn is_name(word: &Word) -> bool {
    may_name(word) && word.begins != Begins::Sentence
}

/// A capital letter anywhere: perhaps a name.
fn may_name(word: &Word) -> bool {
    word.kind == Kind::Plain && word.is_capital && !is_minor(word) && !is_month(&word.folded)
}

fn denies(words: &[Word]) -> bool {
    words.iter().enumerate().any(|(nth, word)| {
        // `No. 5` is a number.
        let is_number = word.folded == "no" && words.get(nth + 1).is_some_and(Word::is_exact);
        is_denial(&word.folded) && !is_number
    })
}
