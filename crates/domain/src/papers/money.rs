//! Currencies, as signs and as codes.

/// Codes of ISO 4217 that papers have, with their signs and other spellings. A sign alone stands for the first that has it.
const CURRENCIES: &[(&str, &[&str])] = &[
    ("EUR", &["€", "euro", "euros"]),
    ("GBP", &["£"]),
    ("USD", &["$", "us$"]),
    ("CHF", &["sfr", "fr"]),
    ("JPY", &["¥"]),
    ("CAD", &["ca$", "c$"]),
    ("AUD", &["au$", "a$"]),
    ("NZD", &["nz$"]),
    ("SEK", &[]),
    ("NOK", &[]),
    ("DKK", &[]),
    ("PLN", &["zł"]),
    ("CZK", &["kč"]),
    ("HUF", &[]),
    ("RON", &[]),
    ("BGN", &[]),
    ("INR", &["₹"]),
    ("CNY", &[]),
    ("SGD", &["s$"]),
    ("HKD", &["hk$"]),
    ("ZAR", &[]),
    ("BRL", &["r$"]),
    ("MXN", &["mx$"]),
    ("TRY", &["₺"]),
    ("ILS", &["₪"]),
    ("AED", &[]),
];

/// The code of a currency that is written so. "Fr" counts only beside a number, and the caller sees to that.
pub(super) fn currency(written: &str) -> Option<&'static str> {
    if written.len() > 5 {
        return None;
    }
    let small = written.to_lowercase();
    let found = CURRENCIES.iter().find(|(code, others)| {
        written == *code || (small.len() == 3 && written.eq_ignore_ascii_case(code)) || others.contains(&small.as_str())
    });
    found.map(|(code, _)| *code)
}

pub(super) fn is_sign(c: char) -> bool {
    matches!(c, '€' | '£' | '$' | '¥' | '₹' | '₺' | '₪')
}

/// Whether the sign alone may mean another currency: there are many dollars.
pub(super) fn is_shared(code: &str) -> bool {
    code == "USD"
}

/// Whether it is the code of a currency, as ISO 4217 spells it.
pub(super) fn is_code(text: &str) -> bool {
    CURRENCIES.iter().any(|(code, _)| *code == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_and_codes_are_currencies_and_words_are_none() {
        for (written, code) in
            [("€", "EUR"), ("EUR", "EUR"), ("Euro", "EUR"), ("$", "USD"), ("Fr", "CHF"), ("zł", "PLN")]
        {
            assert_eq!(currency(written), Some(code), "{written}");
        }
        for none in ["", "Total", "%", "VAT", "kr"] {
            assert_eq!(currency(none), None, "{none:?}");
        }
        assert!(is_code("CHF") && !is_code("chf") && !is_code("€"));
    }
}
