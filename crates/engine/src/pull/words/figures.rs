//! Numbers as people read them, on pages and on the command line.

use serde_json::Value;

/// `12,345`.
pub fn number(n: i64) -> String {
    let digits = n.unsigned_abs().to_string();
    let mut out = String::from(if n < 0 { "-" } else { "" });
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A sum or a count that a provider gave, as a number or as its digits: `1,200.50`, `12,000`. Nobody says in which currency, so neither do we.
/// None: it is neither.
pub fn money(value: &Value) -> Option<String> {
    let sum = match value {
        Value::Number(sum) => sum.as_f64()?,
        Value::String(text) => text.trim().parse().ok().filter(|sum: &f64| sum.is_finite())?,
        _ => return None,
    };
    let hundredths = (sum * 100.0).round();
    if hundredths.abs() > 1e15 {
        return None; // a double has no cents there
    }
    let hundredths = hundredths as i64;
    let (whole, part) = (number((hundredths / 100).abs()), hundredths.abs() % 100);
    let sign = if hundredths < 0 { "-" } else { "" };
    Some(if part == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part:02}") })
}

/// Millionths of a dollar: what something costs, to its first digits that matter.
pub fn dollars(micros: i64) -> String {
    match micros {
        ..=0 => "nothing".into(),
        1..50 => "under $0.0001".into(),
        50..10_000 => format!("${:.4}", micros as f64 / 1e6),
        _ => {
            let cents = (micros + 5_000) / 10_000;
            format!("${}.{:02}", number(cents / 100), cents % 100)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        let cases = [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567"), (-1_000, "-1,000")];
        for (n, words) in cases {
            assert_eq!(number(n), words);
        }
    }

    #[test]
    fn sums_are_plain_and_what_is_none_is_not_made_one() {
        for (value, words) in [
            (json!(0), "0"),
            (json!(100.0), "100"),
            (json!(362.07), "362.07"),
            (json!("1200.5"), "1,200.50"),
            (json!("1000000"), "1,000,000"),
            (json!(-12.3), "-12.30"),
            (json!(-0.001), "0"),
            (json!(0.1 + 0.2), "0.30"),
        ] {
            assert_eq!(money(&value).as_deref(), Some(words), "{value}");
        }
        for odd in
            [json!("about a million"), json!("NaN"), json!("inf"), json!(""), json!(null), json!([1]), json!(1e300)]
        {
            assert_eq!(money(&odd), None, "{odd}");
        }
    }

    #[test]
    fn costs_are_told_to_the_digits_that_matter() {
        let cases =
            [(0, "nothing"), (7, "under $0.0001"), (1_234, "$0.0012"), (20_000, "$0.02"), (1_234_567_890, "$1,234.57")];
        for (micros, words) in cases {
            assert_eq!(dollars(micros), words);
        }
    }
}
