//! Numbers as papers write them: 1,234.56 and 1.234,56 and 1 234,56 and 1'234.56.

use super::Decimal;

/// The sign between a number's whole part and the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Point {
    Dot,
    Comma,
}

/// The way in which a paper writes numbers, as far as they show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Style {
    /// Without it "1.234" can be two numbers, and is none.
    pub point: Option<Point>,
    /// Spaces may group thousands. Where a sign does, "2 500" is two numbers.
    pub has_spaces: bool,
}

impl Style {
    /// Nothing is known of the paper.
    pub const UNKNOWN: Self = Self { point: None, has_spaces: true };
}

/// A number without its sign, and where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Figure {
    pub value: Decimal,
    pub len: usize,
    /// The digits behind its point.
    pub places: usize,
    /// The point that it shows beyond doubt.
    pub shows: Option<Point>,
    /// A sign groups its thousands.
    pub has_groups: bool,
}

/// Longer ones are account numbers, and bounded work is linear.
const LONGEST: usize = 24;

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}')
}

/// Reads the number at the start of a text.
pub(super) fn figure(text: &str, style: Style) -> Option<Figure> {
    let mut groups: Vec<(Option<char>, &str)> = Vec::new();
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let (separator, skipped) = match rest.chars().next() {
            _ if groups.is_empty() => (None, 0),
            Some(c) if matches!(c, '.' | ',' | '\'' | '’') || is_space(c) => {
                let kind = if is_space(c) { ' ' } else { c };
                (Some(kind), c.len_utf8())
            }
            _ => break,
        };
        let digits = &rest[skipped..];
        let n = digits.bytes().take_while(u8::is_ascii_digit).count();
        if n == 0 {
            break;
        }
        // A space groups thousands, or it stands between two numbers.
        if separator.is_some_and(|c| !matches!(c, '.' | ','))
            && (n != 3
                || separator == Some(' ') && !style.has_spaces
                || groups[0].1.len() > 3
                || groups.iter().any(|(by, _)| matches!(by, Some('.' | ','))))
        {
            break;
        }
        groups.push((separator, &digits[..n]));
        at += skipped + n;
        if at > LONGEST {
            return None;
        }
    }
    let (places, shows) = places(&groups, style.point)?;
    let n_signs = groups.iter().filter(|(by, _)| matches!(by, Some(by) if *by != ' ')).count();
    let has_groups = n_signs > usize::from(places > 0);
    let digits: String = groups.iter().map(|(_, digits)| *digits).collect();
    Some(Figure { value: Decimal::from_digits(&digits, places)?, len: at, places, shows, has_groups })
}

/// The digits behind the point, and the point that these groups show. None: they are no number, or two.
fn places(groups: &[(Option<char>, &str)], point: Option<Point>) -> Option<(usize, Option<Point>)> {
    let (first, rest) = groups.split_first()?;
    let Some((last, before)) = rest.split_last() else {
        return Some((0, None));
    };
    let are_thousands =
        |groups: &[(Option<char>, &str)]| groups.iter().all(|(_, digits)| digits.len() == 3) && first.1.len() <= 3;
    let as_point = match last.0 {
        Some('.') => Point::Dot,
        Some(',') => Point::Comma,
        _ => return are_thousands(rest).then_some((0, None)),
    };
    match before.first() {
        // Another sign groups the thousands, so the last one is the point.
        Some((by, _)) if *by != last.0 => {
            let is_one_kind = before.iter().all(|(other, _)| other == by);
            (is_one_kind && are_thousands(before)).then_some((last.1.len(), Some(as_point)))
        }
        Some(_) => are_thousands(rest).then_some((0, None)),
        None if last.1.len() != 3 || first.1.len() > 3 || first.1.starts_with('0') => {
            Some((last.1.len(), (last.1.len() <= 2).then_some(as_point)))
        }
        None => point.map(|point| (if point == as_point { 3 } else { 0 }, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_group_only_where_no_sign_does() {
        let len = |has_spaces| figure("2 827,00", Style { point: None, has_spaces }).map(|figure| figure.len);
        assert_eq!((len(true), len(false)), (Some(8), Some(1)));
        let has_groups = |text| figure(text, Style::UNKNOWN).map(|figure| figure.has_groups);
        assert_eq!(
            ["1.234,56", "1'234", "12,50", "1 234,50", "12"].map(has_groups),
            [true, true, false, false, false].map(Some)
        );
    }

    #[test]
    fn numbers_of_every_country_are_read() {
        for (text, point, value, len) in [
            ("1,234.56", None, "1234.56", 8),
            ("1.234,56 EUR", None, "1234.56", 8),
            ("1 234,56", None, "1234.56", 8),
            ("1\u{202f}234\u{a0}567,8", None, "1234567.8", 14),
            ("1'234.50", None, "1234.5", 8),
            ("12.50", None, "12.5", 5),
            ("0,5", None, "0.5", 3),
            ("0.125", None, "0.125", 5),
            ("1.234", Some(Point::Comma), "1234", 5),
            ("1.234", Some(Point::Dot), "1.234", 5),
            ("1,234,567", None, "1234567", 9),
            ("250", None, "250", 3),
            ("329,30 5 416,14", None, "329.3", 6),
            ("12 kg", None, "12", 2),
            ("2026, 17", None, "2026", 4),
        ] {
            let figure = figure(text, Style { point, has_spaces: true }).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((figure.value.to_string().as_str(), figure.len), (value, len), "{text}");
        }
        for none in ["", "x", "1.234", "03.03.2026", "1.2.3", "1,23,456.00", "1.234.56", "1234567890123"] {
            assert_eq!(figure(none, Style::UNKNOWN), None, "{none:?}");
        }
    }
}
