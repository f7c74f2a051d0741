//! Sums of money, exact: a sum of floats drifts.

use serde_json::{Number, Value};

/// An amount as a whole number of billionths. None for an amount that no invoice has.
pub fn billionths(amount: &Value) -> Option<i128> {
    const PLACES: usize = 9;
    let text = amount.as_number()?.to_string();
    let (sign, digits) = text.strip_prefix('-').map_or((1, text.as_str()), |digits| (-1, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_plain = |part: &str| part.len() <= 20 && part.bytes().all(|b| b.is_ascii_digit());
    if !is_plain(whole) || !is_plain(fraction) {
        return None;
    }
    let fraction: String = fraction.chars().chain(std::iter::repeat('0')).take(PLACES).collect();
    Some(sign * format!("{whole}{fraction}").parse::<i128>().ok()?)
}

/// The number that so many billionths are.
pub fn decimal(billionths: i128) -> Option<Value> {
    const ONE: u128 = 1_000_000_000;
    let (sign, size) = (if billionths < 0 { "-" } else { "" }, billionths.unsigned_abs());
    let text = format!("{sign}{}.{:09}", size / ONE, size % ONE);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.parse::<Number>().ok().map(Value::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sums_do_not_drift() {
        let sum = |amounts: &[f64]| {
            let parts = amounts.iter().map(|amount| billionths(&json!(amount)).expect("an amount"));
            decimal(parts.sum()).expect("a number").to_string()
        };
        assert_eq!(sum(&[0.1; 10]), "1");
        assert_eq!(sum(&[0.1, 0.2]), "0.3");
        assert_eq!(sum(&[19.99; 1_000]), "19990");
        assert_eq!(sum(&[-0.05]), "-0.05");
        assert_eq!(sum(&[0.0]), "0");
        assert_eq!(sum(&[123_456_789.01, 0.99]), "123456790");
        assert_eq!(billionths(&json!(1e300)), None);
        assert_eq!(billionths(&json!("5")), None);
    }
}
