//! Finds the history that a letter quotes, and tells it from a letter that is passed on.

use super::phrases::{ATTRIBUTIONS, FORWARD_SUBJECTS, FORWARDED, FROM, ORIGINAL, SENT, TO_OR_SUBJECT, WROTE};

/// An attribution is broken into no more lines, and has no more characters.
const MOST_ATTRIBUTION_LINES: usize = 4;
const MOST_ATTRIBUTION_CHARS: usize = 400;
/// A repeated head has its fields in so many lines.
const HEAD_LINES: usize = 8;

/// The lines of a letter by their author.
#[derive(Default)]
pub(super) struct Parts<'a> {
    pub own: Vec<&'a str>,
    pub quoted: Vec<&'a str>,
    /// A letter that is passed on, from its first line.
    pub passed_on: Vec<&'a str>,
}

/// Sorts lines. In a letter that is passed on (`is_forward`), a head and the words after it are no history.
pub(super) fn parts<'a>(lines: &[&'a str], is_forward: bool) -> Parts<'a> {
    let mut parts = Parts::default();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        if is_quote(line) {
            parts.quoted.push(line);
            at += 1;
            continue;
        }
        if super::history::is_forward(line) {
            parts.passed_on.extend(&lines[at..]);
            break;
        }
        if is_original(line) || is_head(&lines[at..]) {
            let begins_nothing = parts.own.iter().all(|line| line.trim().is_empty()) && parts.quoted.is_empty();
            let into = if is_forward || begins_nothing { &mut parts.passed_on } else { &mut parts.quoted };
            // The rule above it is part of it.
            let rules = parts.own.iter().rev().take_while(|line| line.trim().is_empty() || is_rule(line)).count();
            into.extend(parts.own.split_off(parts.own.len() - rules));
            into.extend(&lines[at..]);
            break;
        }
        if let Some(n_lines) = attribution(&lines[at..]) {
            let after = lines[at + n_lines..].iter().find(|line| !line.trim().is_empty());
            let marked = after.is_some_and(|line| is_quote(line));
            // A sentence of the sender's may look like one.
            if !marked && !lines[at..at + n_lines].iter().any(|line| line.contains('@') || has_time(line)) {
                parts.own.push(line);
                at += 1;
                continue;
            }
            // Nothing marks the history, so it lasts to the end.
            let end = if marked { at + n_lines } else { lines.len() };
            parts.quoted.extend(&lines[at..end]);
            at = end;
            // Empty lines between an attribution and its quotation.
            while marked && lines[at].trim().is_empty() {
                parts.quoted.push(lines[at]);
                at += 1;
            }
            continue;
        }
        parts.own.push(line);
        at += 1;
    }
    parts
}

fn is_quote(line: &str) -> bool {
    line.starts_with('>')
}

/// Whether a line is only a rule, as Outlook draws it above a head.
fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.len() >= 5 && (line.bytes().all(|byte| byte == b'_') || line.bytes().all(|byte| byte == b'-'))
}

/// Whether a line says that a letter is passed on from here.
pub(super) fn is_forward(line: &str) -> bool {
    is_phrase(line, &FORWARDED)
}

/// Whether a line says that history begins.
pub(super) fn is_original(line: &str) -> bool {
    is_phrase(line, &ORIGINAL)
}

/// Whether a line consists of one of these phrases, mostly between dashes.
fn is_phrase(line: &str, phrases: &[&str]) -> bool {
    let line = line.trim();
    if line.is_empty() || line.len() > 120 {
        return false;
    }
    let words = line.trim_matches(|c: char| matches!(c, '-' | '_' | '*' | '=' | '>' | '—' | '–') || c.is_whitespace());
    let has_dashes = line.starts_with("--") || line.starts_with("__") || line.starts_with("==");
    let lower = words.to_lowercase();
    phrases.iter().any(|phrase| lower == *phrase && (has_dashes || phrase.ends_with(':')))
}

pub(super) fn is_forward_subject(subject: &str) -> bool {
    let subject = subject.trim_start().to_lowercase();
    FORWARD_SUBJECTS.iter().any(|beginning| subject.starts_with(beginning))
}

/// Whether these lines begin with the head of another letter, as Outlook and others repeat it: a sender, then a time, then a recipient or a
/// subject.
fn is_head(lines: &[&str]) -> bool {
    let Some(first) = lines.first().and_then(|line| field(line)) else { return false };
    if !FROM.contains(&first.as_str()) {
        return false;
    }
    let fields: Vec<String> = lines.iter().skip(1).take(HEAD_LINES).filter_map(|line| field(line)).collect();
    let has = |known: &[&str]| fields.iter().any(|field| known.contains(&field.as_str()));
    has(&SENT) && has(&TO_OR_SUBJECT)
}

/// The name of the field that a line begins with, in lower case and without the stars of bold type.
fn field(line: &str) -> Option<String> {
    let line = line.trim_start_matches([' ', '*', '\t', '|']);
    let colon = line.char_indices().take(24).find(|(_, c)| *c == ':').map(|(at, _)| at)?;
    let name = line[..colon].trim_end_matches([' ', '*', '\u{a0}', '\u{202f}']).to_lowercase();
    (!name.is_empty()).then_some(name)
}

/// The number of lines of an attribution ("On … wrote:") that these lines begin with.
fn attribution(lines: &[&str]) -> Option<usize> {
    let first = lines.first()?.trim();
    let lower = first.get(..first.floor_char_boundary(MOST_ATTRIBUTION_CHARS))?.to_lowercase();
    let endings = ATTRIBUTIONS.iter().filter(|(begin, _)| lower.starts_with(begin)).flat_map(|(_, endings)| *endings);
    let endings: Vec<&str> = endings.copied().collect();
    if endings.is_empty() {
        let is_reversed = lower.ends_with(':') && has_digit(&lower) && WROTE.iter().any(|word| lower.contains(word));
        return is_reversed.then_some(1);
    }
    let mut words = String::new();
    for (n, line) in lines.iter().take(MOST_ATTRIBUTION_LINES).enumerate() {
        if line.trim().is_empty() || words.len() + line.len() > MOST_ATTRIBUTION_CHARS {
            return None;
        }
        words.push(' ');
        words.push_str(&line.trim().to_lowercase());
        let is_end = words.ends_with(':')
            && (endings.iter().any(|ending| words.ends_with(ending)) || WROTE.iter().any(|word| words.contains(word)));
        if is_end && has_digit(&words) {
            return Some(n + 1);
        }
    }
    None
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

/// Whether a line has a time of day, such as 10:15.
fn has_time(line: &str) -> bool {
    line.as_bytes().windows(3).any(|three| three[0].is_ascii_digit() && three[1] == b':' && three[2].is_ascii_digit())
}
