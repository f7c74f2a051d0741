//! Finds the signature below a letter.

use super::phrases::SENT_FROM;

/// A signature has no more lines with words.
const MOST_LINES: usize = 30;
/// The line that a telephone adds is among so many last ones.
const LAST_LINES: usize = 4;

/// Cuts the sender's own lines at their signature. The line of dashes before it goes.
pub(super) fn split<'a, 'b>(own: &'b [&'a str]) -> (&'b [&'a str], &'b [&'a str]) {
    let mut n_lines = 0;
    let mut sent_from = None;
    for (n, line) in own.iter().enumerate().rev() {
        if line.trim_end() == "--" {
            return (&own[..n], &own[n + 1..]);
        }
        if line.trim().is_empty() {
            continue;
        }
        n_lines += 1;
        if n_lines > MOST_LINES {
            break;
        }
        if n_lines <= LAST_LINES && is_sent_from(line) {
            sent_from = Some(n);
        }
    }
    own.split_at(sent_from.unwrap_or(own.len()))
}

fn is_sent_from(line: &str) -> bool {
    let line = line.trim_start_matches(['<', '*', '_', '[', ' ', '-']);
    // A program's line is short. A sentence of the sender's that begins so goes on.
    line.chars().count() <= 120 && {
        let line = line.to_lowercase();
        SENT_FROM.iter().any(|phrase| line.starts_with(phrase))
    }
}
