//! The parts of a question that a person expects to find as they are: quoted phrases, e-mail addresses, numbers and ids in any spelling, and
//! telephone numbers.

use unicode_normalization::UnicodeNormalization as _;

use crate::address::{Region, normal_phone};

/// A number of so few digits is a quantity, not a name.
const LEAST_DIGITS: usize = 3;
/// A telephone number has so many digits.
const PHONE_DIGITS: std::ops::RangeInclusive<usize> = 7..=15;
/// Two spellings of one telephone number differ by a country code at most.
const MOST_COUNTRY_DIGITS: usize = 3;
/// Fewer digits are a number inside a town: what stands before them may be another town's code.
const LEAST_NATIONAL_DIGITS: usize = 8;
/// More are not looked for: a whole letter may be pasted as a question.
const MOST_WANTED: usize = 8;
/// Stands between a title and its text, and is part of no word.
const BREAK: &str = "\u{1}";

/// The exact parts of a question.
#[derive(Clone, Debug, Default)]
pub struct Exact {
    wanted: Vec<Wanted>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Wanted {
    /// As the question has it.
    written: String,
    form: Form,
    /// Spellings to look for besides the question's own.
    spellings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    /// Words that follow each other. In quotation marks, so a text without them is not meant.
    Phrase(String),
    /// An e-mail address in small letters.
    Email(String),
    /// Letters and digits without what joins them: `inv2041` is INV-2041, INV 2041 and inv/2041.
    Joined(String),
    /// The digits of a telephone number.
    Phone(String),
}

impl Exact {
    /// Reads a question. `region` is the country of telephone numbers that are written without one.
    pub fn of(question: &str, region: Option<Region>) -> Self {
        let (phrases, rest) = quoted(question);
        let mut wanted: Vec<Wanted> = Vec::new();
        for phrase in phrases {
            let words = plain(&phrase);
            if !words.is_empty() {
                wanted.push(Wanted { form: Form::Phrase(words), written: phrase, spellings: Vec::new() });
            }
        }
        let (phones, rest) = phones(&rest);
        for phone in phones {
            let mut spellings = vec![digits(&phone)];
            spellings.extend(normal_phone(&phone, region).into_iter().flat_map(|e164| {
                let bare = e164.trim_start_matches('+').to_owned();
                [e164, bare]
            }));
            wanted.push(Wanted { form: Form::Phone(number(&phone)), written: phone, spellings });
        }
        wanted.extend(rest.split_whitespace().filter_map(token));
        let mut once: Vec<Wanted> = Vec::new();
        for part in wanted {
            if once.len() < MOST_WANTED && once.iter().all(|known| known.form != part.form) {
                once.push(part);
            }
        }
        Self { wanted: once }
    }

    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Whether some of it stood in quotation marks.
    pub fn has_phrases(&self) -> bool {
        self.wanted.iter().any(|wanted| matches!(wanted.form, Form::Phrase(_)))
    }

    /// The words of each quoted phrase, in small letters and normal form.
    pub fn phrases(&self) -> impl Iterator<Item = impl Iterator<Item = &str>> {
        self.wanted.iter().filter_map(|wanted| match &wanted.form {
            Form::Phrase(words) => Some(words.split(' ')),
            _ => None,
        })
    }

    /// Whether these are all quoted phrases, given as [`Looked::phrases`].
    pub fn are_all(&self, phrases: u8) -> bool {
        let all = (0..).zip(&self.wanted).filter(|(_, wanted)| matches!(wanted.form, Form::Phrase(_)));
        all.fold(0, |all, (nth, _)| all | 1 << nth) == phrases
    }

    /// Other spellings that a search by keyword should look for too.
    pub fn spellings(&self) -> impl Iterator<Item = &str> {
        self.wanted.iter().flat_map(|wanted| wanted.spellings.iter().map(String::as_str))
    }

    /// Looks for all of it in a title and a text.
    pub fn look(&self, title: Option<&str>, text: &str) -> Looked<'_> {
        let mut looked = Looked::default();
        if self.wanted.is_empty() {
            return looked;
        }
        let both = Text::of(title.unwrap_or_default(), text);
        for (nth, wanted) in (0..).zip(&self.wanted) {
            if both.has(&wanted.form) {
                looked.found.push(wanted.written.as_str());
                looked.phrases |= u8::from(matches!(wanted.form, Form::Phrase(_))) << nth;
            }
        }
        looked
    }
}

/// The exact parts of a question that a text has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looked<'a> {
    /// The parts that it has, as the question writes them.
    pub found: Vec<&'a str>,
    /// The quoted phrases that it has, one bit each: a document has what its chunks have together.
    pub phrases: u8,
}

/// A title and a text, ready to be looked through.
struct Text {
    lower: String,
    /// The words with single spaces between and around them.
    joined: String,
}

impl Text {
    fn of(title: &str, text: &str) -> Self {
        Self {
            lower: format!("{title}\n{text}").to_lowercase(),
            joined: format!(" {} {BREAK} {} ", plain(title), plain(text)),
        }
    }

    fn has(&self, form: &Form) -> bool {
        match form {
            // Not every script has blanks between its words.
            Form::Phrase(words) if words.chars().any(|c| c >= '\u{2e80}') => self.joined.contains(words.as_str()),
            Form::Phrase(words) => self.joined.contains(&format!(" {words} ")),
            Form::Email(address) => has_address(&self.lower, address),
            Form::Joined(wanted) => self.has_joined(wanted),
            Form::Phone(wanted) => self.has_phone(wanted),
        }
    }

    fn words(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut at = 0;
        self.joined.split(' ').map(move |word| {
            let start = at;
            at += word.len() + 1;
            (start, word)
        })
    }

    /// Whether words that follow each other make up the wanted one.
    fn has_joined(&self, wanted: &str) -> bool {
        self.words().filter(|(_, word)| !word.is_empty() && wanted.starts_with(word)).any(|(start, _)| {
            let mut rest = wanted;
            for word in self.joined[start..].split(' ') {
                match rest.strip_prefix(word).filter(|_| !word.is_empty()) {
                    Some("") => return true,
                    Some(after) => rest = after,
                    None => return false,
                }
            }
            false
        })
    }

    /// Whether groups of digits that follow each other are the wanted telephone number, with or without its country code.
    fn has_phone(&self, wanted: &str) -> bool {
        let is_digits = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        self.words().filter(|(_, word)| is_digits(word)).any(|(start, _)| {
            let mut so_far = String::new();
            for word in self.joined[start..].split(' ').take_while(|word| is_digits(word)).take(8) {
                // +44 (0)20: the zero is dialled inside the country alone.
                if word != "0" {
                    so_far.push_str(word);
                }
                if so_far.len() > 2 * PHONE_DIGITS.end() {
                    return false;
                }
                if is_same_number(&so_far, wanted) {
                    return true;
                }
            }
            false
        })
    }
}

fn is_same_number(a: &str, b: &str) -> bool {
    let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let is_whole = short.len() >= LEAST_NATIONAL_DIGITS && long.len() - short.len() <= MOST_COUNTRY_DIGITS;
    short == long || (is_whole && long.ends_with(short))
}

/// Whether a text in small letters has an e-mail address that is not a part of a longer one.
fn has_address(lower: &str, address: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '+' | '%');
    lower.match_indices(address).any(|(at, _)| {
        let (before, after) = (&lower[..at], &lower[at + address.len()..]);
        let mut next = after.chars();
        let goes_on = match next.next() {
            Some('.') => next.next().is_some_and(char::is_alphanumeric),
            Some(c) => joins(c) || c == '@',
            None => false,
        };
        !before.ends_with(|c: char| joins(c) || c == '.') && !goes_on
    })
}

/// The words of a text in small letters and normal form, with single spaces between them.
fn plain(text: &str) -> String {
    let normal: String =
        if text.is_ascii() { text.to_ascii_lowercase() } else { text.nfkc().collect::<String>().to_lowercase() };
    let mut plain = String::with_capacity(normal.len());
    for word in normal.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        if !plain.is_empty() {
            plain.push(' ');
        }
        plain.push_str(word);
    }
    plain
}

/// Takes what stands in quotation marks out of a question. A mark without its partner is none.
fn quoted(question: &str) -> (Vec<String>, String) {
    let (mut phrases, mut rest, mut from) = (Vec::new(), String::new(), 0);
    while let Some((at, open)) = question[from..].char_indices().find(|(_, c)| matches!(c, '"' | '“' | '„' | '«' | '”'))
    {
        let (start, inner) = (from + at, from + at + open.len_utf8());
        let closes = |c: char| match open {
            '"' => c == '"',
            '«' => c == '»',
            _ => matches!(c, '“' | '”'),
        };
        rest.push_str(&question[from..start]);
        match question[inner..].char_indices().find(|(_, c)| closes(*c)) {
            Some((length, close)) => {
                phrases.push(question[inner..inner + length].trim().to_owned());
                rest.push(' ');
                from = inner + length + close.len_utf8();
            }
            None => {
                rest.push(' ');
                from = inner;
            }
        }
    }
    rest.push_str(&question[from..]);
    (phrases, rest)
}

/// Takes telephone numbers out of a question.
fn phones(question: &str) -> (Vec<String>, String) {
    let (mut phones, mut rest) = (Vec::new(), String::new());
    let belongs = |c: char| c.is_ascii_digit() || matches!(c, '+' | '(' | ')' | '-' | '.' | '/' | ' ');
    let mut from = 0;
    while from < question.len() {
        let run_length = question[from..].find(|c| !belongs(c)).unwrap_or(question.len() - from);
        if run_length == 0 {
            let c = question[from..].chars().next().unwrap_or_default();
            rest.push(c);
            from += c.len_utf8().max(1);
            continue;
        }
        let run = &question[from..from + run_length];
        let (before, after) = (&question[..from], &question[from + run_length..]);
        // INV-20411234 is an id, and 1,234,567.80 a sum.
        let joins_before = |c: char| c.is_alphanumeric() || matches!(c, ',' | '#' | '_' | ':');
        let joins_after = |c: char| c.is_alphanumeric() || matches!(c, ',' | ':' | '@' | '_');
        let is_apart = (run.starts_with(' ') || !before.ends_with(joins_before))
            && (run.ends_with(' ') || !after.starts_with(joins_after));
        match is_apart && is_phone(run) {
            true => {
                phones.push(run.trim().to_owned());
                rest.push(' ');
            }
            false => rest.push_str(run),
        }
        from += run_length;
    }
    (phones, rest)
}

fn is_phone(run: &str) -> bool {
    let run = run.trim();
    let groups: Vec<&str> = run.split(|c: char| !c.is_ascii_digit()).filter(|group| !group.is_empty()).collect();
    let is_date = groups.len() >= 3 && groups.iter().take(3).all(|group| group.len() <= 4) && is_date(&groups[..3]);
    PHONE_DIGITS.contains(&digits(run).len()) && !is_date
}

/// Whether three groups of digits are a day, as 2026-11-15 or 15.11.2026.
fn is_date(groups: &[&str]) -> bool {
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    let is_short = |length: &usize| (1..=2).contains(length);
    (is_year(groups[0]) && lengths[1..].iter().all(is_short))
        || (is_year(groups[2]) && lengths[..2].iter().all(is_short))
}

fn is_year(digits: &str) -> bool {
    digits.len() == 4 && digits.parse().is_ok_and(|year: u16| (1900..2040).contains(&year))
}

fn digits(text: &str) -> String {
    text.chars().filter(char::is_ascii_digit).collect()
}

/// The digits of a telephone number, without the zero that is dialled inside its country alone.
fn number(phone: &str) -> String {
    digits(&phone.replace("(0)", ""))
}

/// A word of a question that is looked for as it is, if it is one.
fn token(word: &str) -> Option<Wanted> {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    let form = match word.rsplit_once('@') {
        Some((local, domain)) if !local.is_empty() && domain.contains('.') => Form::Email(word.to_lowercase()),
        _ => Form::Joined(joined(word)?),
    };
    Some(Wanted { written: word.to_owned(), form, spellings: Vec::new() })
}

/// A number or an id without what joins its parts. None: it is a word, a year or a small number.
fn joined(word: &str) -> Option<String> {
    let joined = plain(word).replace(' ', "");
    let (n_digits, n_chars) = (joined.chars().filter(char::is_ascii_digit).count(), joined.chars().count());
    let is_number = n_digits == n_chars;
    let is_wanted = match is_number {
        true => n_digits >= LEAST_DIGITS && !is_year(&joined),
        // B2B, Q3 and v2 are words.
        false => n_digits >= 2 && n_chars >= 4,
    };
    is_wanted.then_some(joined)
}

#[cfg(test)]
mod tests {
    use super::super::linear::assert_linear;
    use super::*;

    fn written(question: &str) -> Vec<String> {
        Exact::of(question, None).wanted.into_iter().map(|wanted| wanted.written).collect()
    }

    #[test]
    fn numbers_addresses_and_quotations_are_wanted_exactly_and_plain_words_are_not() {
        for (question, expected) in [
            ("a customer unhappy about a late delivery", &[][..]),
            ("\"late delivery\" of copper", &["late delivery"]),
            ("„spät geliefert“ und “late” and «tard»", &["spät geliefert", "late", "tard"]),
            ("a 3\" pipe and \"", &["pipe and"]),
            ("an open \" mark", &[]),
            ("\"\" \" , \"", &[]),
            ("INV-2041", &["INV-2041"]),
            ("where is (INV/2041)?", &["INV/2041"]),
            ("mail of ann.b@acme.example.", &["ann.b@acme.example"]),
            ("call +44 20 7946 0018 back", &["+44 20 7946 0018"]),
            ("(212) 555-0143", &["(212) 555-0143"]),
            ("2041", &["2041"]),
            ("805.50 EUR", &["805.50"]),
            ("1,234,567.80", &["1,234,567.80"]),
            ("the report of 2026", &[]),
            ("2039 and 2040", &["2040"]),
            ("due 2026-11-15", &["2026-11-15"]),
            ("due 15.11.2026", &["15.11.2026"]),
            ("B2B in Q3, v2 of 42", &[]),
            ("10.0.0.14", &["10.0.0.14"]),
            ("INV-20411234567", &["INV-20411234567"]),
            ("2041, 2041", &["2041"]),
            ("", &[]),
        ] {
            assert_eq!(written(question), expected, "{question:?}");
        }
        assert_eq!(written(&(1000..1100).map(|n| format!("{n} ")).collect::<String>()).len(), MOST_WANTED);
    }

    #[test]
    fn exact_parts_are_found_in_any_spelling_and_nowhere_else() {
        for (question, text, expected) in [
            ("INV-2041", "Please pay inv 2041.", true),
            ("INV2041", "Please pay INV-2041.", true),
            ("ＩＮＶ－２０４１", "Please pay INV/2041.", true),
            ("INV-2041", "Please pay INV-20411.", false),
            ("INV-2041", "Please pay XINV-2041.", false),
            ("2041", "No. 2041", true),
            ("2041", "No. 20412", false),
            ("805.50", "It costs 805.50 EUR", true),
            ("\"late delivery\"", "A Late-Delivery, again", true),
            ("\"late delivery\"", "The delivery was late", false),
            ("\"late delivery\"", "late delivery-men", true),
            ("\"漢字\"", "これは漢字です", true),
            ("ann@acme.example", "From: <Ann@Acme.Example>", true),
            ("ann@acme.example", "write to ann@acme.example.", true),
            ("ann@acme.example", "joann@acme.example", false),
            ("ann@acme.example", "b.ann@acme.example", false),
            ("ann@acme.example", "ann@acme.example.org", false),
            ("+44 20 7946 0018", "Call 020 7946 0018 today", true),
            ("02079460018", "+44 (0)20 7946-0018", true),
            ("+442079460018", "Call 02079460018, 2 times", true),
            ("212 555 0143", "From: +12125550143", true),
            ("06 12 34 56 78", "+33612345678", true),
            ("+44 20 7946 0018", "Call 020 7946 0019", false),
            ("555 0143", "+44 20 7555 0143", false),
        ] {
            let exact = Exact::of(question, None);
            assert_eq!(exact.look(None, text).found.len(), usize::from(expected), "{question:?} in {text:?}");
            assert_eq!(
                exact.look(Some(text), "other words").found.len(),
                usize::from(expected),
                "{question:?} in a title"
            );
        }
    }

    #[test]
    fn what_stands_in_quotation_marks_must_be_there_and_the_rest_may_be() {
        let exact = Exact::of("\"spare key\" 2041", None);
        assert!(exact.has_phrases());
        let looked = exact.look(Some("The spare key"), "hangs there");
        assert_eq!((looked.found, exact.are_all(looked.phrases)), (vec!["spare key"], true));
        let looked = exact.look(None, "2041, a spare. Key");
        assert_eq!((looked.found.len(), exact.are_all(looked.phrases)), (2, true), "punctuation does not part words");
        let looked = exact.look(Some("spare"), "key 2041");
        assert_eq!((looked.found, exact.are_all(looked.phrases)), (vec!["2041"], false), "a title and a text are two");
        let none = Exact::of("spare key", None);
        assert!(none.are_all(none.look(None, "anything").phrases) && none.phrases().count() == 0);
        let two = Exact::of("2041 \"spare key\" and „Late Delivery“", None);
        let words: Vec<Vec<&str>> = two.phrases().map(Iterator::collect).collect();
        assert_eq!(words, [["spare", "key"], ["late", "delivery"]]);
        let [one, other] = ["a spare key", "a late delivery"].map(|text| two.look(None, text).phrases);
        assert!(!two.are_all(one) && !two.are_all(other) && two.are_all(one | other), "in two texts");
    }

    #[test]
    fn a_telephone_number_is_also_looked_for_in_its_other_spellings() {
        let gb: Region = "GB".parse().expect("a region");
        let exact = Exact::of("call 020 7946 0018", Some(gb));
        assert_eq!(exact.spellings().collect::<Vec<_>>(), ["02079460018", "+442079460018", "442079460018"]);
        assert_eq!(Exact::of("late delivery", Some(gb)).spellings().count(), 0);
    }

    #[test]
    fn long_questions_and_texts_take_linear_time() {
        let exact = Exact::of("\"a a\" INV-2041 020 7946 0018 a@b.c 2041", None);
        for unit in ["a ", "1 ", "20 ", "\"", "inv ", "a@b.", "0"] {
            let [text, four_times] = [200_000, 800_000].map(|bytes| unit.repeat(bytes / unit.len()));
            assert_linear(unit, &text, &four_times, |text| {
                drop(exact.look(None, text).found);
            });
            let [text, four_times] = [20_000, 80_000].map(|bytes| unit.repeat(bytes / unit.len()));
            assert_linear(unit, &text, &four_times, |text| drop(Exact::of(text, None)));
        }
    }
}
