//! Reads one record of a provider: strict about its id, patient with fields that are missing. The result has one form by every transport:
//! nothing empty, ids as text, whole numbers without a point.

use chrono::{DateTime, Datelike as _, SecondsFormat, Utc};
use domain::hex;
use domain::text::{replace_nul, replace_nul_in};
use serde_json::{Map, Number, Value};
use sha2::{Digest as _, Sha256};

use super::{Failed, Item, RawItem};

const ID_MAX_BYTES: usize = 200;

pub type Fields = Map<String, Value>;

/// A record that could not be read, with a reason in words of ours. Without an id it is named after its content, so that the next pass gives
/// it the same name.
pub fn failed(object: &str, id: Option<&Value>, reason: impl Into<String>, mut payload: Value) -> Failed {
    let name = id.and_then(plain_id).unwrap_or_else(|| {
        let digest = Sha256::digest(payload.to_string());
        format!("?{}", hex::encode(&digest[..4]))
    });
    replace_nul_in(&mut payload);
    Failed { external_id: format!("{object}:{name}"), reason: reason.into(), payload }
}

/// The tombstone of a record that its provider deleted.
pub fn tombstone(
    external_id: String,
    document_type: &'static str,
    source_updated_at: Option<DateTime<Utc>>,
) -> RawItem {
    RawItem {
        external_id,
        document_type,
        payload: Value::Null,
        source_created_at: None,
        source_updated_at,
        is_deleted: true,
    }
}

/// Makes of a tombstone what memory takes: no title and no text.
pub fn buried(raw: RawItem, mentions: Vec<String>) -> Item {
    Item { raw, title: None, text: String::new(), mentions, letter: None, file: None }
}

pub fn object(record: &Value) -> Result<&Fields, String> {
    record.as_object().ok_or_else(|| "it is not an object".to_owned())
}

/// An id that is safe in a path, a query and a row.
pub fn plain_id(id: &Value) -> Option<String> {
    let text = match id {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_u64() => number.to_string(),
        _ => return None,
    };
    is_plain_id(&text).then_some(text)
}

pub fn is_plain_id(text: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_' || b == b'=';
    (1..=ID_MAX_BYTES).contains(&text.len()) && text.bytes().all(is_plain)
}

pub fn id(fields: &Fields, key: &str) -> Result<String, String> {
    fields.get(key).and_then(plain_id).ok_or_else(|| format!("it has no {key} that is one"))
}

/// A field as text, also a number or a boolean. None: it is missing, or blank.
pub fn text(fields: &Fields, key: &str) -> Result<Option<String>, String> {
    let text = match fields.get(key) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => replace_nul(text),
        Some(Value::Number(number)) => whole(number).to_string(),
        Some(Value::Bool(is)) => is.to_string(),
        Some(_) => return Err(format!("its {key} is not a text")),
    };
    Ok(Some(text).filter(|text| !text.trim().is_empty()))
}

pub fn number(fields: &Fields, key: &str) -> Result<Option<Number>, String> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => Ok(Some(whole(number))),
        Some(_) => Err(format!("its {key} is not a number")),
    }
}

/// An object inside; none when it is missing.
pub fn part<'a>(fields: &'a Fields, key: &str) -> Result<Option<&'a Fields>, String> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(part)) => Ok(Some(part)),
        Some(_) => Err(format!("its {key} is not an object")),
    }
}

/// One form for `100.0` and `100`.
fn whole(number: &Number) -> Number {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < EXACT => Number::from(float as i64),
        _ => number.clone(),
    }
}

/// Reads a time from text, or from milliseconds since 1970. None: it is no time, or outside the years 1900 to 9999.
pub fn time(value: Option<&Value>) -> Option<DateTime<Utc>> {
    let time = match value? {
        Value::String(text) => match text.parse::<i64>() {
            Ok(millis) => DateTime::from_timestamp_millis(millis)?,
            Err(_) => DateTime::parse_from_rfc3339(text).ok()?.to_utc(),
        },
        Value::Number(number) => DateTime::from_timestamp_millis(number.as_i64()?)?,
        _ => return None,
    };
    (1900..=9999).contains(&time.year()).then_some(time)
}

pub fn spelled(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Inserts a value that is there.
pub fn put(fields: &mut Fields, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        fields.insert(key.to_owned(), value.into());
    }
}

/// Inserts an object that is not empty.
pub fn put_part(fields: &mut Fields, key: &str, part: Fields) {
    put(fields, key, Some(part).filter(|part| !part.is_empty()));
}

/// Joins the values that are there, a line `Label: value` each.
pub fn lines(parts: &[(&str, Option<String>)]) -> String {
    let line = |(label, value): &(&str, Option<String>)| value.as_ref().map(|value| format!("{label}: {value}"));
    parts.iter().filter_map(line).collect::<Vec<_>>().join("\n")
}

/// A field of a finished payload, as text.
pub fn said(payload: &Value, pointer: &str) -> Option<String> {
    match payload.pointer(pointer)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_id_is_plain_or_none() {
        for (value, expected) in [
            (json!("51"), Some("51")),
            (json!(51), Some("51")),
            (json!("1aB_-z"), Some("1aB_-z")),
            (json!("AAk-_A=="), Some("AAk-_A==")),
            (json!(""), None),
            (json!("5/1"), None),
            (json!("5'1"), None),
            (json!("5\u{0}1"), None),
            (json!(5.5), None),
            (json!(-5), None),
            (json!(null), None),
            (json!(["51"]), None),
            (json!("9".repeat(201)), None),
        ] {
            assert_eq!(plain_id(&value).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn times_come_as_text_or_milliseconds_and_nonsense_is_left_out() {
        for (value, expected) in [
            (json!("2026-11-01T10:00:00.000Z"), Some("2026-11-01T10:00:00.000Z")),
            (json!("2026-11-01T10:00:00Z"), Some("2026-11-01T10:00:00.000Z")),
            (json!("2026-11-01T02:00:00-08:00"), Some("2026-11-01T10:00:00.000Z")),
            (json!("1793527200000"), Some("2026-11-01T10:00:00.000Z")),
            (json!(1_793_527_200_000_i64), Some("2026-11-01T10:00:00.000Z")),
            (json!("yesterday"), None),
            (json!("99999-01-01T00:00:00Z"), None),
            (json!(i64::MAX), None),
            (json!(-62_135_596_800_000_i64), None),
            (json!({}), None),
        ] {
            assert_eq!(time(Some(&value)).map(spelled).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn a_number_is_the_same_however_it_is_written() {
        for (text, expected) in [
            ("100.0", "100"),
            ("100", "100"),
            ("1e2", "100"),
            ("362.07", "362.07"),
            ("-0.5", "-0.5"),
            ("1e300", "1e+300"),
            ("18446744073709551615", "18446744073709551615"),
        ] {
            let Value::Number(number) = serde_json::from_str(text).expect("a number") else { panic!("{text}") };
            assert_eq!(whole(&number).to_string(), expected, "{text}");
        }
    }

    #[test]
    fn a_record_without_an_id_is_called_the_same_every_time() {
        let nameless = || failed("contact", None, "it has no id that is one", json!({ "a": "x\u{0}y" }));
        assert!(nameless().external_id.starts_with("contact:?"), "{:?}", nameless());
        assert_eq!(nameless(), nameless());
        assert_eq!(nameless().payload, json!({ "a": "x\u{fffd}y" }));
        assert_ne!(nameless().external_id, failed("contact", None, "", json!({})).external_id);
        assert_eq!(failed("deal", Some(&json!(7)), "", json!({})).external_id, "deal:7");
    }
}
