//! NUL, the only character that PostgreSQL does not store in text. It is refused if a caller can be told, and replaced in records from
//! outside.

use serde_json::Value;

const REPLACEMENT: &str = "\u{fffd}";

pub fn has_nul(text: &str) -> bool {
    text.contains('\0')
}

pub fn replace_nul(text: &str) -> String {
    text.replace('\0', REPLACEMENT)
}

/// Replaces it in every text and every key of a JSON value.
pub fn replace_nul_in(value: &mut Value) {
    match value {
        Value::String(text) if has_nul(text) => *text = replace_nul(text),
        Value::Array(items) => items.iter_mut().for_each(replace_nul_in),
        Value::Object(fields) => {
            if fields.keys().any(|key| has_nul(key)) {
                *fields = std::mem::take(fields).into_iter().map(|(key, value)| (replace_nul(&key), value)).collect();
            }
            fields.values_mut().for_each(replace_nul_in);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nul_is_replaced_at_every_depth_and_nothing_else_is_touched() {
        let mut value = json!({ "a\0": ["x\0y", { "b": "\0" }, 1, null, true], "plain": "text" });
        replace_nul_in(&mut value);
        assert_eq!(value, json!({ "a\u{fffd}": ["x\u{fffd}y", { "b": "\u{fffd}" }, 1, null, true], "plain": "text" }));
    }

    #[test]
    fn a_text_says_whether_it_has_one() {
        for (text, found, replaced) in
            [("", false, ""), ("a", false, "a"), ("\0", true, "\u{fffd}"), ("é\0\0", true, "é\u{fffd}\u{fffd}")]
        {
            assert_eq!((has_nul(text), replace_nul(text).as_str()), (found, replaced), "of {text:?}");
        }
    }
}
