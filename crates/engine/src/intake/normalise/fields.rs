//! Reads a body as named fields, in any of its formats. Values stay as they were sent, as JSON text: nothing is rounded or written anew.
//! Values that PostgreSQL would refuse are refused here, so that one sender's row never spoils a group.

use std::borrow::Cow;

use bytes::Bytes;
use domain::text::has_nul;
use futures_util::FutureExt as _;
use percent_encoding::percent_decode_str;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Content, File, Malformed};

const MOST_DEPTH: usize = 64;
const MOST_PARTS: usize = 100;
/// Members and elements, all levels together.
const MOST_VALUES: usize = 20_000;
/// PostgreSQL writes numbers out: 1e100000 would be a hundred thousand digits.
const MOST_EXPONENT: u32 = 400;

pub type Field<'a> = (Cow<'a, str>, Cow<'a, str>);

/// The fields of a body as names (plain) and values (JSON text), a repeated name twice; and the files of a multipart body.
pub fn read<'a>(content_type: Option<&str>, body: &'a Bytes) -> Result<(Vec<Field<'a>>, Vec<File>), Malformed> {
    match content_type.and_then(|given| multer::parse_boundary(given).ok()) {
        Some(boundary) => multipart(body, boundary),
        None => Ok((plain(content_type, body)?, Vec::new())),
    }
}

fn plain<'a>(content_type: Option<&str>, body: &'a [u8]) -> Result<Vec<Field<'a>>, Malformed> {
    let text = std::str::from_utf8(body).map_err(|_| Malformed("it is not UTF-8"))?;
    let trimmed = text.trim_ascii();
    if trimmed.is_empty() {
        return Err(Malformed("it is empty"));
    }
    let media = content_type.unwrap_or("application/json").split(';').next().unwrap_or_default().trim();
    let is = |wanted: &str| media.eq_ignore_ascii_case(wanted);
    let ends = |wanted: &str| {
        media.len() >= wanted.len()
            && media.is_char_boundary(media.len() - wanted.len())
            && media[media.len() - wanted.len()..].eq_ignore_ascii_case(wanted)
    };
    if is("application/json") || ends("+json") {
        members(text)
    } else if is("application/x-www-form-urlencoded") {
        // `curl -d` sends any body as a form.
        if trimmed.starts_with('{') { members(text) } else { form(text.trim_ascii_end()) }
    } else if media.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("text/")) {
        Ok(vec![("content".into(), quoted(text)?.into())])
    } else {
        Err(Malformed("send application/json, application/x-www-form-urlencoded, multipart/form-data or text/plain"))
    }
}

/// The fields of a multipart form; parts with a file name are files. The body is complete, so nothing here has to wait.
fn multipart(body: &Bytes, boundary: String) -> Result<(Vec<Field<'static>>, Vec<File>), Malformed> {
    const BROKEN: Malformed = Malformed("it is no multipart form");
    let pieces = futures_util::stream::iter([Ok::<_, std::convert::Infallible>(body.clone())]);
    let mut parts = multer::Multipart::new(pieces, boundary);
    let (mut fields, mut files) = (Vec::new(), Vec::new());
    loop {
        let next = parts.next_field().now_or_never().ok_or(BROKEN)?.map_err(|_| BROKEN)?;
        let Some(part) = next else { return Ok((fields, files)) };
        if fields.len() + files.len() == MOST_PARTS {
            return Err(Malformed("it has too many parts"));
        }
        let (name, file_name) = (part.name().unwrap_or_default().to_owned(), part.file_name().map(str::to_owned));
        let content_type = part.content_type().map(ToString::to_string);
        let bytes = part.bytes().now_or_never().ok_or(BROKEN)?.map_err(|_| BROKEN)?;
        match file_name {
            Some(name) => files.push(File { name, content_type, content_id: None, content: Content::Ready(bytes) }),
            None => {
                let text = std::str::from_utf8(&bytes).map_err(|_| Malformed("it is not UTF-8"))?;
                if has_nul(&name) {
                    return Err(NUL);
                }
                fields.push((name.into(), quoted(text)?.into()));
            }
        }
    }
}

/// The text of a JSON value: a string itself, or the first string of a list.
pub fn first_text(json: &str) -> Option<String> {
    match serde_json::from_str(json).ok()? {
        serde_json::Value::String(text) => Some(text),
        serde_json::Value::Array(items) => items.into_iter().find_map(|item| Some(item.as_str()?.to_owned())),
        _ => None,
    }
}

/// The members of a JSON object.
pub fn members(text: &str) -> Result<Vec<Field<'_>>, Malformed> {
    check(text)?;
    let Members(members) = serde_json::from_str(text).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => Malformed("it is no JSON object"),
        _ => Malformed("it is no JSON"),
    })?;
    Ok(members)
}

/// Text as a JSON string.
pub fn quoted(text: &str) -> Result<String, Malformed> {
    if has_nul(text) {
        return Err(NUL);
    }
    serde_json::to_string(text).map_err(|_| Malformed("it cannot be written as JSON"))
}

const NUL: Malformed = Malformed("it has a NUL character");

fn form(text: &str) -> Result<Vec<Field<'_>>, Malformed> {
    let decoded = |part: &str| {
        let spaced = part.replace('+', " ");
        let decoded = percent_decode_str(&spaced).decode_utf8().map_err(|_| Malformed("it is not UTF-8"))?.into_owned();
        if has_nul(&decoded) { Err(NUL) } else { Ok(decoded) }
    };
    let mut fields: Vec<Field> = Vec::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        if fields.len() == MOST_VALUES {
            return Err(TOO_MANY);
        }
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        fields.push((decoded(name)?.into(), quoted(&decoded(value)?)?.into()));
    }
    Ok(fields)
}

const TOO_MANY: Malformed = Malformed("it has too many values");

/// Refuses what JSON's grammar allows and PostgreSQL does not, or not without harm: depth, NUL, half a character, endless numbers.
/// It does not check whether the text is JSON.
fn check(text: &str) -> Result<(), Malformed> {
    let bytes = text.as_bytes();
    let (mut at, mut depth, mut values) = (0, 0, 0);
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => at = check_string(bytes, at)?,
            b'{' | b'[' => {
                depth += 1;
                if depth > MOST_DEPTH {
                    return Err(Malformed("it is nested too deeply"));
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => {
                values += 1;
                if values >= MOST_VALUES {
                    return Err(TOO_MANY);
                }
            }
            b'0'..=b'9' => at = check_number(bytes, at)?,
            _ => {}
        }
    }
    Ok(())
}

/// Checks a string, from after its opening quote. Returns the position after its closing quote.
fn check_string(bytes: &[u8], mut at: usize) -> Result<usize, Malformed> {
    let escaped = |at: usize| -> Option<u32> {
        let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        digits.iter().try_fold(0, |code, digit| Some(code * 16 + char::from(*digit).to_digit(16)?))
    };
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return Ok(at + 1),
            b'\\' => match escaped(at) {
                None => at += 2,
                Some(0) => return Err(NUL),
                Some(0xD800..=0xDBFF) if matches!(escaped(at + 6), Some(0xDC00..=0xDFFF)) => at += 12,
                Some(0xD800..=0xDFFF) => return Err(Malformed("it has half a character")),
                Some(_) => at += 6,
            },
            _ => at += 1,
        }
    }
    Ok(at)
}

/// Checks a number, from after its first digit. Returns the position after its last.
fn check_number(bytes: &[u8], from: usize) -> Result<usize, Malformed> {
    let end = |at: usize| {
        let rest = bytes.get(at..).unwrap_or_default();
        at + rest.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.').unwrap_or(rest.len())
    };
    let mantissa_end = end(from);
    if mantissa_end - from > 1_000 {
        return Err(Malformed("it has a number of too many digits"));
    }
    if !matches!(bytes.get(mantissa_end), Some(b'e' | b'E')) {
        return Ok(mantissa_end);
    }
    let sign = usize::from(matches!(bytes.get(mantissa_end + 1), Some(b'+' | b'-')));
    let exponent = mantissa_end + 1 + sign;
    let exponent_end = end(exponent);
    let digits = bytes[exponent..exponent_end].iter().skip_while(|digit| **digit == b'0');
    let size = digits.fold(0, |n: u32, digit| n.saturating_mul(10).saturating_add(u32::from(digit & 15)));
    if size > MOST_EXPONENT { Err(Malformed("it has a number that is too large")) } else { Ok(exponent_end) }
}

/// An object's members in order, values untouched.
struct Members<'a>(Vec<Field<'a>>);

#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Members<'de>, M::Error> {
                let mut members = Vec::with_capacity(8);
                while let Some((Name(name), value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
                    members.push((name, Cow::Borrowed(value.get())));
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Result<usize, Malformed> {
        plain(Some("application/json; charset=utf-8"), text.as_bytes()).map(|fields| fields.len())
    }

    #[test]
    fn what_the_database_would_refuse_is_refused_with_words() {
        let deep = |n: usize| format!("{{\"a\":{}{}}}", "[".repeat(n), "]".repeat(n));
        assert_eq!(json(&deep(63)), Ok(1));
        let refused = [
            (deep(64), "nested"),
            (deep(100_000), "nested"),
            ("[".repeat(100_000), "nested"),
            (format!("{{{}\"z\":0}}", "\"\":0,".repeat(100_000)), "many values"),
            (r#"{"a":"\u0000"}"#.into(), "NUL"),
            (r#"{"a\u0000":1}"#.into(), "NUL"),
            ("{\"a\":\"\u{0}\"}".into(), "no JSON"),
            (r#"{"a":"\ud800"}"#.into(), "half"),
            (r#"{"a":"\ud800\u0041"}"#.into(), "half"),
            (r#"{"a":"\udc00"}"#.into(), "half"),
            (r#"{"a":1e401}"#.into(), "too large"),
            (r#"{"a":-1.5E-99999999999999999999}"#.into(), "too large"),
            (format!("{{\"a\":{}}}", "9".repeat(2_000)), "digits"),
            ("{".into(), "no JSON"),
            ("{\"a\":1".into(), "no JSON"),
            ("{\"a\":tru}".into(), "no JSON"),
            ("{\"a\":01}".into(), "no JSON"),
            ("{\"a\":\"\\x\"}".into(), "no JSON"),
            ("{\"a\":\"\\u12\"}".into(), "no JSON"),
            ("{} {}".into(), "no JSON"),
            ("[]".into(), "object"),
            ("\"a\"".into(), "object"),
            ("7".into(), "object"),
            ("  ".into(), "empty"),
        ];
        for (text, why) in refused {
            let Malformed(said) = json(&text).expect_err(&text[..text.len().min(40)]);
            assert!(said.contains(why), "{said:?} for {:?}", &text[..text.len().min(40)]);
        }
        assert_eq!(plain(None, b"{\"a\":\"\xff\"}"), Err(Malformed("it is not UTF-8")));
        assert_eq!(plain(Some("application/octet-stream"), b"x").map_err(|Malformed(why)| &why[..4]), Err("send"));
    }

    #[test]
    fn values_stay_as_they_were_sent() {
        let text = r#"{"n":123456789012345678901234567890.10,"x":1e400,"a\u0062":{ "k" : [1, 2] },"e":"\ud83d\ude00\\u0000","n":-0}"#;
        let fields = plain(Some("APPLICATION/JSON"), text.as_bytes()).expect("fields");
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(
            fields,
            [
                ("n", "123456789012345678901234567890.10"),
                ("x", "1e400"),
                ("ab", "{ \"k\" : [1, 2] }"),
                ("e", r#""\ud83d\ude00\\u0000""#),
                ("n", "-0"),
            ]
        );
    }

    #[test]
    fn a_multipart_form_has_fields_and_files() {
        let body = "--b\r\nContent-Disposition: form-data; name=\"content\"\r\n\r\nhello \"you\"\r\n\
            --b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"../a.txt\"\r\nContent-Type: text/plain\r\n\r\nin the file\r\n--b--\r\n";
        let kind = Some("multipart/form-data; boundary=b");
        let whole = Bytes::from_static(body.as_bytes());
        let (fields, files) = super::read(kind, &whole).expect("a form");
        assert_eq!(fields, [("content".into(), r#""hello \"you\"""#.into())]);
        assert_eq!((files.len(), files[0].name.as_str()), (1, "../a.txt"));
        assert!(matches!(&files[0].content, Content::Ready(bytes) if bytes == "in the file"));
        for cut in [0, 1, 20, 60, body.len() - 12] {
            assert!(super::read(kind, &whole.slice(..cut)).is_err(), "cut at {cut}");
        }
        let many = format!("{}--b--", "--b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n\r\n".repeat(200));
        let refused = super::read(kind, &many.into()).expect_err("a bomb of parts");
        assert_eq!(refused, Malformed("it has too many parts"));
    }

    #[test]
    fn forms_and_plain_text_are_fields_too() {
        fn form(text: &str) -> Result<Vec<Field<'_>>, Malformed> {
            plain(Some("application/x-www-form-urlencoded"), text.as_bytes())
        }
        let fields = form("content=Ol%C3%A1+%2B+caf%C3%A9&from=a%40b.test&empty=&alone&&x=%22").expect("fields");
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(
            fields,
            [
                ("content", "\"Olá + café\""),
                ("from", "\"a@b.test\""),
                ("empty", "\"\""),
                ("alone", "\"\""),
                ("x", "\"\\\"\""),
            ]
        );
        assert_eq!(form("a=%00"), Err(NUL));
        assert_eq!(form("a=%ff"), Err(Malformed("it is not UTF-8")));
        assert_eq!(
            form(" {\"content\":\"sent by curl -d\"}").map(|fields| fields[0].0.clone().into_owned()),
            Ok("content".into())
        );
        let text = plain(Some("text/plain; charset=utf-8"), "a\n\"b\"".as_bytes()).expect("fields");
        assert_eq!(text, [("content".into(), "\"a\\n\\\"b\\\"\"".into())]);
        assert_eq!(plain(Some("text/plain"), b"a\0b"), Err(NUL));
    }
}
