//! The words of a text, in a form in which two spellings of the same thing are equal: quotation marks and dashes of every kind, `2,450.00` and
//! `2450`, `3 March 2026` and `2026-03-03`, `two` and `2`.

use unicode_normalization::UnicodeNormalization as _;

/// A word, a number, an address, or a sign that counts (`€`, `%`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// Lower case, in its one form.
    pub folded: String,
    pub kind: Kind,
    pub is_capital: bool,
    /// `Ann's`: something of hers is meant.
    pub is_owner: bool,
    /// Whether a question mark follows.
    pub is_asked: bool,
    /// Whether a sentence, a clause or an item of a list begins here.
    pub begins: Begins,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Plain,
    /// A number, an amount, a time, an id with digits.
    Number,
    Date(Date),
    /// An e-mail address, a host name, a URL.
    Address,
    /// A currency, a percent sign, or a bound: `>500`, `500+`.
    Sign,
}

/// A date, or as much of it as is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    pub year: Option<i32>,
    pub month: u32,
    pub day: Option<u32>,
}

impl Date {
    /// Whether this one, as a sentence says it, is said by `other` too, which may say more.
    pub fn is_part_of(self, other: Self) -> bool {
        self.month == other.month
            && (self.year.is_none() || self.year == other.year)
            && (self.day.is_none() || self.day == other.day)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Begins {
    Nothing,
    Clause,
    Sentence,
}

impl Word {
    /// Whether it counts as a fact of its own: exactly this has to stand in what is cited.
    pub fn is_exact(&self) -> bool {
        self.kind != Kind::Plain
    }
}

/// The words of a text, as they stand there.
pub fn words(text: &str) -> Vec<Word> {
    let chars: Vec<char> = text.nfkc().map(plain).collect();
    let mut words: Vec<Word> = Vec::new();
    let (mut at, mut begins, mut line) = (0, Begins::Sentence, 0);
    while at < chars.len() {
        let end = end_of_word(&chars, at);
        if end > at {
            words.push(word(chars[at..end].iter().collect(), begins));
            (at, begins) = (end, Begins::Nothing);
            continue;
        }
        let is_question = chars[at] == '?' && chars.get(at + 1).is_none_or(|next| !next.is_alphanumeric());
        if let Some(last) = words.last_mut().filter(|_| is_question) {
            last.is_asked = true;
        }
        begins = begins.max(after(&chars, at, words.last(), at - line));
        line = if chars[at] == '\n' { at + 1 } else { line };
        at += 1;
    }
    // `24. November` is one date.
    for nth in 1..words.len() {
        if words[nth - 1].kind == Kind::Number && is_month(&words[nth].folded) {
            words[nth].begins = Begins::Nothing;
        }
    }
    words
}

/// A line of this many characters or more that does not end a sentence may go on in the next one.
const LONG_LINE: usize = 40;

/// The thing that begins after the mark at `at`, of a line with `n_line` characters before it. In doubt it is the smaller one: what stands
/// together is checked together.
fn after(chars: &[char], at: usize, last: Option<&Word>, n_line: usize) -> Begins {
    let next = chars[at + 1..].iter().copied().find(|c| *c == '\n' || !c.is_whitespace());
    let is_apart = |at: Option<usize>| at.and_then(|at| chars.get(at)).is_none_or(|c| c.is_whitespace());
    match chars[at] {
        '.' if last.is_some_and(is_abbreviation) => Begins::Nothing,
        '.' if next.is_some_and(char::is_lowercase) => Begins::Clause,
        '\n' if next.is_some_and(char::is_lowercase) => Begins::Nothing,
        '\n' if n_line >= LONG_LINE && next.is_some_and(char::is_alphanumeric) => Begins::Clause,
        // A bullet; elsewhere it is emphasis.
        '*' if is_apart(at.checked_sub(1)) && is_apart(Some(at + 1)) => Begins::Sentence,
        '.' | '!' | '?' | '\n' | '•' | '。' | '！' | '？' | '…' => Begins::Sentence,
        ',' | ';' | ':' | '(' | ')' | '|' | '、' | '，' => Begins::Clause,
        '-' if is_apart(at.checked_sub(1)) && is_apart(Some(at + 1)) => Begins::Clause,
        _ => Begins::Nothing,
    }
}

fn is_abbreviation(word: &Word) -> bool {
    let is_letter = word.kind == Kind::Plain && word.folded.chars().count() == 1;
    is_letter || ABBREVIATIONS.contains(&word.folded.as_str())
}

const ABBREVIATIONS: [&str; 22] = [
    "mr", "mrs", "ms", "dr", "prof", "st", "no", "nr", "approx", "ca", "incl", "excl", "vs", "eg", "ie", "fig", "max",
    "min", "hr", "fr", "bzw", "tel",
];

/// The same with dates as one word each.
pub fn with_dates(words: Vec<Word>) -> Vec<Word> {
    let mut out: Vec<Word> = Vec::with_capacity(words.len());
    let mut at = 0;
    while at < words.len() {
        match date_at(&words[at..]) {
            Some((date, n)) => {
                let is_asked = words[at + n - 1].is_asked;
                out.push(Word { folded: spelled(date), kind: Kind::Date(date), is_asked, ..words[at].clone() });
                at += n;
            }
            None => {
                out.push(words[at].clone());
                at += 1;
            }
        }
    }
    out
}

/// Whether two plain words are the same but for their endings: owes and owed, delivery and delivered.
pub fn are_alike(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    let common: usize = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    a[..common].chars().count() >= 3 && ENDINGS.contains(&&a[common..]) && ENDINGS.contains(&&b[common..])
}

const ENDINGS: [&str; 22] = [
    "", "s", "es", "e", "ed", "d", "ing", "y", "ies", "ied", "ly", "en", "n", "ung", "ungen", "t", "te", "ten", "er",
    "ers", "ery", "eries",
];

/// One form for signs that people and programs write in several ways.
fn plain(c: char) -> char {
    match c {
        '‘' | '’' | '‛' | '′' | '`' => '\'',
        '‐' | '‑' | '‒' | '–' | '—' | '−' => '-',
        other => other,
    }
}

/// The end of the word that begins at `at`; `at` itself where none does.
fn end_of_word(chars: &[char], at: usize) -> usize {
    let (c, before) = (chars[at], at.checked_sub(1).map(|before| chars[before]));
    let is_digit = |at: usize| chars.get(at).is_some_and(char::is_ascii_digit);
    let is_bound = (matches!(c, '<' | '>' | '~' | '≈' | '±' | '≤' | '≥')
        && (is_digit(at + 1)
            || (chars.get(at + 1) == Some(&' ') && is_digit(at + 2) && before.is_some_and(|c| c != '\n'))))
        || (c == '+' && before.is_some_and(|before| before.is_ascii_digit()) && !is_digit(at + 1));
    if is_sign(c) || is_ideograph(c) || is_bound {
        return at + 1;
    }
    let is_minus = c == '-' && is_digit(at + 1) && before.is_none_or(|before| before.is_whitespace() || before == '(');
    if !c.is_alphanumeric() && !is_minus {
        return at;
    }
    let rest: String = chars[at..chars.len().min(at + 8)].iter().collect::<String>().to_lowercase();
    if rest.starts_with("http://") || rest.starts_with("https://") {
        let mut end = at;
        while chars.get(end).is_some_and(|c| !c.is_whitespace() && !matches!(c, '"' | '<' | '>')) {
            end += 1;
        }
        while matches!(chars[end - 1], '.' | ',' | ';' | ')' | '!' | '?') {
            end -= 1;
        }
        return end;
    }
    let mut end = at + 1;
    while end < chars.len() {
        let (c, before) = (chars[end], chars[end - 1]);
        let joins_letters = |after: usize| chars.get(after).is_some_and(|c| c.is_alphanumeric() && !is_ideograph(*c));
        let goes_on = match c {
            c if is_ideograph(c) || is_sign(c) => false,
            c if c.is_alphanumeric() => true,
            '\u{300}'..='\u{36f}' => true,
            ',' | ':' | '/' => before.is_ascii_digit() && is_digit(end + 1),
            '-' => joins_letters(end + 1) && (before.is_ascii_digit() || is_digit(end + 1)),
            '.' | '\'' | '@' | '_' => joins_letters(end + 1),
            _ => false,
        };
        if !goes_on {
            break;
        }
        end += 1;
    }
    end
}

fn word(written: String, begins: Begins) -> Word {
    let is_capital = written.chars().next().is_some_and(char::is_uppercase);
    let lower = written.to_lowercase();
    let owner = lower.strip_suffix("'s");
    let is_owner = owner.is_some_and(|owner| !matches!(owner, "it" | "he" | "she" | "that" | "there" | "let"));
    let folded = owner.unwrap_or(&lower).to_owned();
    let has_digit = folded.chars().any(char::is_numeric);
    let (folded, kind) = if !written.chars().any(char::is_alphanumeric) {
        (folded, Kind::Sign)
    } else if folded.contains("://") || folded.contains('@') {
        (folded, Kind::Address)
    } else if let Some(date) = iso(&folded) {
        (spelled(date), Kind::Date(date))
    } else if has_digit {
        (number(&folded), Kind::Number)
    } else if let Some((_, digits)) = NUMBERS.iter().find(|(word, _)| *word == folded) {
        ((*digits).to_owned(), Kind::Number)
    } else if folded.contains('.') && folded.split('.').all(|part| part.chars().count() > 1) {
        (folded, Kind::Address)
    } else {
        (folded.replace('.', ""), Kind::Plain)
    };
    Word { folded, kind, is_capital, is_owner, is_asked: false, begins }
}

/// Digits in one form: without commas between thousands, without zeros behind the point, without the ending of an ordinal.
fn number(folded: &str) -> String {
    let ordinal = ["st", "nd", "rd", "th"].iter().find_map(|ending| folded.strip_suffix(ending));
    if let Some(digits) = ordinal.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit())) {
        return digits.to_owned();
    }
    let (sign, size) = folded.strip_prefix('-').map_or(("", folded), |size| ("-", size));
    let (whole, fraction) = size.split_once('.').unwrap_or((size, ""));
    let mut groups = whole.split(',');
    let is_grouped = groups.next().is_some_and(|first| (1..=3).contains(&first.len()) || !whole.contains(','))
        && groups.all(|group| group.len() == 3);
    let is_plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
    if !is_grouped || !is_plain(whole) || !fraction.bytes().all(|byte| byte.is_ascii_digit()) || fraction.len() == 3 {
        return folded.to_owned();
    }
    let (whole, fraction) = (whole.replace(',', ""), fraction.trim_end_matches('0'));
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

fn iso(folded: &str) -> Option<Date> {
    let day = folded.get(..10)?;
    let is_whole = folded.len() == 10 || folded[10..].starts_with('t');
    let date: chrono::NaiveDate = day.parse().ok().filter(|_| is_whole && day.as_bytes()[4] == b'-')?;
    use chrono::Datelike as _;
    Some(Date { year: Some(date.year()), month: date.month(), day: Some(date.day()) })
}

/// A date in words: `3 March 2026`, `3rd of March`, `March 3, 2026`, `March 2026`; and of how many words it is.
fn date_at(words: &[Word]) -> Option<(Date, usize)> {
    let day = |nth: usize| {
        let word = words.get(nth).filter(|word| word.kind == Kind::Number)?;
        word.folded.parse::<u32>().ok().filter(|day| (1..=31).contains(day))
    };
    let year = |nth: usize| {
        let word = words.get(nth).filter(|word| word.kind == Kind::Number)?;
        word.folded.parse::<i32>().ok().filter(|year| (1_900..=2_200).contains(year))
    };
    let month = |nth: usize| {
        let word = words.get(nth).filter(|word| word.kind == Kind::Plain)?;
        MONTHS.iter().find(|(_, names)| names.contains(&word.folded.as_str())).map(|(month, _)| *month)
    };
    let is_of = |nth: usize| words.get(nth).is_some_and(|word| matches!(word.folded.as_str(), "of" | "de"));
    let with_year = |day: Option<u32>, month: u32, n: usize| {
        let n_of = usize::from(is_of(n) && year(n + 1).is_some());
        let year = year(n + n_of);
        (Date { year, month, day }, if year.is_some() { n + n_of + 1 } else { n })
    };
    if let Some(first) = day(0) {
        let n_of = usize::from(is_of(1));
        return month(1 + n_of).map(|month| with_year(Some(first), month, 2 + n_of));
    }
    let month = month(0)?;
    match day(1) {
        Some(day) => Some(with_year(Some(day), month, 2)),
        None => year(1).map(|_| with_year(None, month, 1)),
    }
}

fn spelled(date: Date) -> String {
    let part = |part: Option<u32>| part.map_or_else(|| "--".into(), |part| format!("{part:02}"));
    let year = date.year.map_or_else(|| "----".into(), |year| format!("{year:04}"));
    format!("{year}-{:02}-{}", date.month, part(date.day))
}

pub(super) fn is_month(folded: &str) -> bool {
    MONTHS.iter().any(|(_, names)| names.contains(&folded))
}

fn is_sign(c: char) -> bool {
    matches!(c, '$' | '€' | '£' | '¥' | '₹' | '%' | '‰')
}

/// Whether it is of a script that is written without blanks.
fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

const NUMBERS: [(&str, &str); 17] = [
    ("two", "2"),
    ("three", "3"),
    ("four", "4"),
    ("five", "5"),
    ("six", "6"),
    ("seven", "7"),
    ("eight", "8"),
    ("nine", "9"),
    ("ten", "10"),
    ("eleven", "11"),
    ("twelve", "12"),
    ("twenty", "20"),
    ("dozen", "dozen"),
    ("hundred", "hundred"),
    ("thousand", "thousand"),
    ("million", "million"),
    ("billion", "billion"),
];

const MONTHS: [(u32, &[&str]); 12] = [
    (1, &["january", "jan", "januar", "janvier", "enero"]),
    (2, &["february", "feb", "februar", "février", "febrero"]),
    (3, &["march", "mar", "märz", "mars", "marzo"]),
    (4, &["april", "apr", "avril", "abril"]),
    (5, &["may", "mai", "mayo"]),
    (6, &["june", "jun", "juni", "juin", "junio"]),
    (7, &["july", "jul", "juli", "juillet", "julio"]),
    (8, &["august", "aug", "août", "agosto"]),
    (9, &["september", "sep", "sept", "septembre", "septiembre"]),
    (10, &["october", "oct", "oktober", "octobre", "octubre"]),
    (11, &["november", "nov", "novembre", "noviembre"]),
    (12, &["december", "dec", "dezember", "décembre", "diciembre"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> String {
        let words = with_dates(words(text));
        words.iter().map(|word| word.folded.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn two_spellings_of_one_thing_are_equal() {
        for (text, expected) in [
            ("Owes 2,450.00 USD.", "owes 2450 usd"),
            ("owes 2450 USD", "owes 2450 usd"),
            ("€805 or 12.5%", "€ 805 or 12.5 %"),
            ("1.250 kg, 1.200,50", "1.250 kg 1.200,50"),
            ("-5 degrees (-3), 3-5 days - 4", "-5 degrees -3 3-5 days 4"),
            ("due on 3 March 2026", "due on 2026-03-03"),
            ("due 2026-03-03T10:00:00Z!", "due 2026-03-03"),
            ("the 3rd of March, March 3, 2026, in March 2026", "the -----03-03 2026-03-03 in 2026-03---"),
            ("am 3. März", "am -----03-03"),
            ("may 2 people, a March wind", "-----05-02 people a march wind"),
            ("two pallets, 2 pallets", "2 pallets 2 pallets"),
            ("INV-2041 at 12:30, follow-up", "inv-2041 at 12:30 follow up"),
            ("Ann’s “note” – ann@acme.example.", "ann note ann@acme.example"),
            ("see https://x.test/a?b=1, acme.example", "see https://x.test/a?b=1 acme.example"),
            ("U.S. e.g. this", "us eg this"),
            ("请付款 100", "请 付 款 100"),
            ("ﬁle №５", "file no5"),
            (">500, ~ 20, 30+ of 40", "> 500 ~ 20 30 + of 40"),
            ("> a reply\n> 2 of it, +49 170", "a reply 2 of it 49 170"),
        ] {
            assert_eq!(folded(text), expected, "of {text:?}");
        }
    }

    #[test]
    fn only_endings_differ_between_words_that_are_alike() {
        for (a, b) in [("owes", "owed"), ("delivery", "delivered"), ("invoice", "invoices"), ("lieferung", "liefern")] {
            assert!(are_alike(a, b) && are_alike(b, a), "{a}, {b}");
        }
        for (a, b) in [("paid", "unpaid"), ("contract", "contrast"), ("ann", "anna"), ("to", "tos"), ("late", "later")]
        {
            assert!(!are_alike(a, b), "{a}, {b}");
        }
    }

    #[test]
    fn sentences_and_clauses_are_told_apart() {
        let long = "A line that is as long as those of letters";
        for (text, expected) in [
            ("Ann owes 5, Bob 7. Carl", "S--C-S"),
            ("Mr. Weiss pays approx. 5 EUR. It", "S----- S"),
            ("am 24. November", "S--"),
            ("A list\nof two\nBob\n\nCarl", "S---SS"),
            (&format!("{long}\nGoes on\n- Ann"), "S---------C-S"),
            ("a - b | c-d", "SCC-"),
            ("paid. he", "SC"),
        ] {
            let sign = |begins| match begins {
                Begins::Sentence => 'S',
                Begins::Clause => 'C',
                Begins::Nothing => '-',
            };
            let begins: String = words(text).iter().map(|word| sign(word.begins)).collect();
            assert_eq!(begins, expected.replace(' ', ""), "of {text:?}");
        }
    }

    #[test]
    fn questions_and_owners_are_known() {
        let asked = |text: &str| words(text).iter().filter(|word| word.is_asked).count();
        assert_eq!((asked("Does Ann owe 5? She does."), asked("see acme.example/a?b=1"), asked("?")), (1, 0, 0));
        assert!(with_dates(words("on 3 March 2026?")).iter().any(|word| word.is_asked));
        let owners: Vec<bool> = words("Ann's it's year’s").iter().map(|word| word.is_owner).collect();
        assert_eq!(owners, [true, false, true]);
    }
}
