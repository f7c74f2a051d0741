//! The records of a page, each read on its own: one that is broken, or far too large, does not take the others with it, and a page of a
//! million does not take all memory.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Failed, Found, Item, RawItem, record};

/// Most records of a page. No provider gives more than it is asked for, and we ask for a thousand at most.
pub const MOST: usize = 2_000;
const RECORD_MAX_BYTES: usize = 1024 * 1024;
/// The keys under which providers put the id of a record.
const IDS: [&str; 3] = ["id", "Id", "fileId"];

/// The records of a page, not parsed yet.
#[derive(Debug, Default, Deserialize)]
pub struct Records(Rows<Box<RawValue>>);

/// A list of at most [`MOST`] values: a longer one does not parse.
#[derive(Debug)]
pub struct Rows<T>(pub Vec<T>);

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Rows<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Each<T> {
            type Value = Rows<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "at most {MOST} records")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Rows<T>, A::Error> {
                let mut rows = Vec::new();
                while let Some(row) = seq.next_element()? {
                    if rows.len() == MOST {
                        return Err(A::Error::custom("too many records"));
                    }
                    rows.push(row);
                }
                Ok(Rows(rows))
            }
        }
        deserializer.deserialize_seq(Each(PhantomData))
    }
}

/// One record, or why it could not be read.
pub type Read = Result<RawItem, Failed>;

impl Records {
    #[expect(clippy::len_without_is_empty, reason = "nobody asks whether a page is empty")]
    pub fn len(&self) -> usize {
        self.0.0.len()
    }

    /// Reads each record by `map`, and leaves out those that `map` passes over.
    pub fn read<'a>(
        &'a self,
        object: &'a str,
        map: impl Fn(Value) -> Option<Read> + 'a,
    ) -> impl Iterator<Item = Read> + 'a {
        self.each(object).filter_map(move |record| match record {
            Ok(record) => map(record),
            Err(behind) => Some(Err(behind)),
        })
    }

    /// Parses each record.
    pub fn each<'a>(&'a self, object: &'a str) -> impl Iterator<Item = Result<Value, Failed>> + 'a {
        self.0.0.iter().map(move |record| parsed(object, record, RECORD_MAX_BYTES))
    }

    /// Parses each record, where one may be larger than most are.
    pub fn each_within<'a>(
        &'a self,
        object: &'a str,
        most_bytes: usize,
    ) -> impl Iterator<Item = Result<Value, Failed>> + 'a {
        self.0.0.iter().map(move |record| parsed(object, record, most_bytes))
    }

    /// A part of one record, if that is there and has the part.
    pub fn head<T: DeserializeOwned>(&self, index: usize) -> Option<T> {
        T::deserialize(parsed("", self.0.0.get(index)?, RECORD_MAX_BYTES).ok()?).ok()
    }

    /// A part of each record that has it.
    pub fn heads<'a, T: DeserializeOwned, U>(
        &'a self,
        pick: impl Fn(T) -> Option<U> + 'a,
    ) -> impl Iterator<Item = U> + 'a {
        // By way of a value, as `map` reads it: both take the last of a key that comes twice.
        self.0.0.iter().filter_map(move |record| pick(T::deserialize(parsed("", record, RECORD_MAX_BYTES).ok()?).ok()?))
    }
}

pub(super) fn parsed(object: &str, record: &RawValue, most_bytes: usize) -> Result<Value, Failed> {
    let text = record.get();
    let named = |reason: &str| record::failed(object, id(text).as_ref(), reason, Value::String(beginning(text)));
    if text.len() > most_bytes {
        return Err(named(&format!("it is larger than {} MiB", most_bytes / (1024 * 1024))));
    }
    serde_json::from_str(text).map_err(|_| named("it does not parse"))
}

/// The id of a record that cannot be read, where at least the id can be. The rest is stepped over.
fn id(text: &str) -> Option<Value> {
    struct Id(Option<Value>);
    struct Keys;
    impl<'de> Visitor<'de> for Keys {
        type Value = Id;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a record")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Id, A::Error> {
            let mut id = None;
            while let Some(key) = map.next_key::<String>()? {
                if IDS.contains(&key.as_str()) {
                    id = Some(map.next_value()?); // the last of a key that comes twice, as everywhere
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Ok(Id(id))
        }
    }
    impl<'de> Deserialize<'de> for Id {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(Keys)
        }
    }
    serde_json::from_str::<Id>(text).ok()?.0
}

/// Enough of it for a person.
fn beginning(text: &str) -> String {
    text.chars().take(1_000).collect()
}

/// The id of a record, as text.
pub(super) fn id_of(record: &Value) -> Option<String> {
    IDS.iter().find_map(|key| record.get(key)).and_then(record::plain_id)
}

/// Sorts a page into records as memory takes them, and those that could not be read.
pub fn sorted(read: impl Iterator<Item = Read>, item: impl Fn(RawItem) -> Item) -> Found {
    let (mut items, mut failed) = (Vec::new(), Vec::new());
    for record in read {
        match record {
            Ok(raw) => items.push(item(raw)),
            Err(behind) => failed.push(behind),
        }
    }
    (items, failed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::hubspot::map::{item, raw};
    use super::*;

    #[derive(Deserialize)]
    struct Page {
        results: Records,
    }

    #[test]
    fn a_broken_record_stays_behind_and_the_others_go_on() {
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        let huge = format!(r#"{{"id":"3","properties":{{"email":"{}"}}}}"#, "x".repeat(RECORD_MAX_BYTES));
        let body = format!(
            r#"{{"results":[{{"id":"1","properties":{{}}}},{{"id":"2","id":"4","properties":{{}}}},{deep},{huge},{{"id":"5","properties":{{"email":"\ud800"}}}},null]}}"#
        );
        let page: Page = serde_json::from_str(&body).expect("a page");
        let (items, failed) = sorted(page.results.read("contact", |record| Some(raw("contact", record))), item);
        let ids: Vec<&str> = items.iter().map(|item| item.raw.external_id.as_str()).collect();
        assert_eq!(ids, ["contact:1", "contact:4"]);
        let reasons: Vec<&str> = failed.iter().map(|failed| failed.reason.as_str()).collect();
        assert_eq!(
            reasons,
            ["it does not parse", "it is larger than 1 MiB", "it does not parse", "it is not an object"]
        );
        let names: Vec<&str> = failed.iter().map(|failed| failed.external_id.as_str()).collect();
        assert_eq!((names[1], names[2]), ("contact:3", "contact:5"), "its id can be read");
        assert!(names[0].starts_with("contact:?") && names[3].starts_with("contact:?"), "{names:?}");
        assert!(failed.iter().all(|failed| failed.payload.to_string().len() < 8_000));
    }

    /// F20.
    #[test]
    fn a_page_of_a_million_rows_is_no_page() {
        for (rows, is_page) in [(0, true), (MOST, true), (MOST + 1, false), (1_000_000, false)] {
            let body = json!({ "results": vec![0; rows] }).to_string();
            assert_eq!(serde_json::from_str::<Page>(&body).is_ok(), is_page, "{rows}");
        }
    }
}
