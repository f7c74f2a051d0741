//! Exact decimal numbers: sums of money, quantities, rates. They are billionths, as [`crate::sums`] counts.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Neg, Sub};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::sums::billionths;

const ONE: i128 = 1_000_000_000;
const PLACES: usize = 9;
/// Sums with more digits before the point stand on no paper. Thus no arithmetic here overflows.
const MOST_DIGITS: usize = 12;

/// An exact decimal number with up to twelve digits before its point and nine behind it. Texts and JSON have it as `"-1234.50"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Decimal(i128);

impl Decimal {
    pub const ZERO: Self = Self(0);
    pub const CENT: Self = Self(ONE / 100);
    pub const HUNDRED: Self = Self(100 * ONE);

    /// The number that these digits are, the last `places` of them behind the point.
    pub(super) fn from_digits(digits: &str, places: usize) -> Option<Self> {
        let whole = digits.len().checked_sub(places)?;
        if whole > MOST_DIGITS || places > PLACES || digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let scale = 10_i128.pow((PLACES - places) as u32);
        Some(Self(digits.parse::<i128>().ok()? * scale))
    }

    /// A number of JSON, or a text that is one.
    pub fn from_json(value: &Value) -> Option<Self> {
        match value {
            Value::Number(_) => Some(Self(billionths(value)?)).filter(|number| number.is_usual()),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    pub fn to_json(self) -> Option<Value> {
        self.to_string().parse::<Number>().ok().map(Value::Number)
    }

    fn is_usual(self) -> bool {
        self.0.unsigned_abs() < ONE.unsigned_abs() * 10_u128.pow(MOST_DIGITS as u32)
    }

    pub fn abs(self) -> Self {
        Self(self.0.abs())
    }

    pub fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// The product, cut to nine places. None: no paper has such a number.
    pub fn times(self, other: Self) -> Option<Self> {
        self.0.checked_mul(other.0).map(|product| Self(product / ONE))
    }

    /// So many hundredths of it.
    pub fn percent(self, rate: Self) -> Option<Self> {
        self.times(rate).map(|product| Self(product.0 / 100))
    }

    /// A number of cents.
    pub fn cents(n: usize) -> Self {
        Self(Self::CENT.0 * n.min(1_000_000) as i128)
    }

    pub fn is_near(self, other: Self, tolerance: Self) -> bool {
        (self - other).abs() <= tolerance
    }

    /// As an amount of money: with two places at least.
    pub fn as_money(self) -> String {
        let text = self.to_string();
        match text.split_once('.') {
            None => format!("{text}.00"),
            Some((_, part)) if part.len() == 1 => format!("{text}0"),
            Some(_) => text,
        }
    }
}

impl Add for Decimal {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Decimal {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Neg for Decimal {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl Sum for Decimal {
    fn sum<I: Iterator<Item = Self>>(numbers: I) -> Self {
        numbers.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, size) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
        let one = ONE.unsigned_abs();
        let text = format!("{sign}{}.{:09}", size / one, size % one);
        f.pad(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl FromStr for Decimal {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let none = || format!("{text:?} is no number such as -1234.50");
        let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
        let (whole, part) = digits.split_once('.').map_or((digits, None), |(whole, part)| (whole, Some(part)));
        if whole.is_empty() || part.is_some_and(str::is_empty) {
            return Err(none());
        }
        let part = part.unwrap_or_default();
        let number = Self::from_digits(&format!("{whole}{part}"), part.len()).ok_or_else(none)?;
        Ok(if is_negative { -number } else { number })
    }
}

impl From<Decimal> for String {
    fn from(number: Decimal) -> Self {
        number.to_string()
    }
}

impl TryFrom<String> for Decimal {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_exact_and_read_back_as_what_they_were() {
        for (text, written, money) in [
            ("0", "0", "0.00"),
            ("1234.50", "1234.5", "1234.50"),
            ("-0.05", "-0.05", "-0.05"),
            ("999999999999.999999999", "999999999999.999999999", "999999999999.999999999"),
        ] {
            let number: Decimal = text.parse().expect("a number");
            assert_eq!((number.to_string().as_str(), number.as_money().as_str()), (written, money));
            assert_eq!(written.parse(), Ok(number));
        }
        for none in ["", "-", ".5", "5.", "1,5", "1e3", "--1", "1234567890123", "1.1234567890", "٣"] {
            assert!(none.parse::<Decimal>().is_err(), "{none:?}");
        }
        let number = |value| Decimal::from_json(&value).map(|number| number.to_string());
        assert_eq!(number(json!(805.1)).as_deref(), Some("805.1"));
        assert_eq!(number(json!("805.10")).as_deref(), Some("805.1"));
        assert_eq!((number(json!(1e15)), number(json!("about 8")), number(json!(null))), (None, None, None));
        assert_eq!(Decimal::from_json(&json!(0.1)).and_then(Decimal::to_json), Some(json!(0.1)));
    }

    #[test]
    fn products_are_exact_and_the_largest_overflow_nothing() {
        let number = |text: &str| text.parse::<Decimal>().expect("a number");
        assert_eq!(number("2.25").times(number("1269.02")), Some(number("2855.295")));
        assert_eq!(number("676.47").percent(number("19")), Some(number("128.5293")));
        let most = number("999999999999");
        assert!(most.times(most).is_none_or(|product| product > most));
        assert_eq!([most; 3].into_iter().sum::<Decimal>().to_string(), "2999999999997");
    }
}
