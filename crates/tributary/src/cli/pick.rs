//! Finds the thing that is meant by what a person typed: its id, the beginning of its id, or its name in any case.

use anyhow::anyhow;
use domain::shown::shown;

/// Fewer characters of an id are too few to mean one.
const SHORTEST: usize = 4;
/// Names this alike (1: the same) are suggested.
const ALIKE: f64 = 0.8;
const MOST_SUGGESTED: usize = 3;

/// The kind of thing that is looked for.
#[derive(Clone, Copy)]
pub struct Kind {
    pub noun: &'static str,
    pub plural: &'static str,
    /// The command that lists them.
    pub list: &'static str,
}

/// A thing that may be meant.
pub struct Choice<T> {
    pub thing: T,
    pub id: String,
    pub names: Vec<String>,
}

impl<T> Choice<T> {
    pub fn new(thing: T, id: impl ToString, names: impl IntoIterator<Item = Option<String>>) -> Self {
        let names = names.into_iter().flatten().filter(|name| !name.trim().is_empty());
        Self { thing, id: id.to_string(), names: names.collect() }
    }
}

/// The one thing that `text` means. An error says what else there is.
pub fn pick<T>(kind: Kind, choices: Vec<Choice<T>>, text: &str) -> anyhow::Result<T> {
    match meant(&choices, text).as_slice() {
        [one] => choices.into_iter().nth(*one).map(|choice| choice.thing).ok_or_else(|| missing(kind, text, [])),
        [] => Err(missing(kind, text, choices.iter().flat_map(|choice| choice.names.iter().map(String::as_str)))),
        several => {
            let ids: Vec<&str> = several.iter().map(|nth| choices[*nth].id.as_str()).collect();
            let (n, plural) = (several.len(), kind.plural);
            Err(anyhow!("{n} {plural} are meant by {text:?}\n\nhint: give the id: {}", ids.join(", ")))
        }
    }
}

/// The places of the things that `text` means: by the whole id, else by name, else by the beginning of the id.
pub fn meant<T>(choices: &[Choice<T>], text: &str) -> Vec<usize> {
    let wanted = text.trim().to_lowercase();
    let all = |is_meant: &dyn Fn(&Choice<T>) -> bool| -> Vec<usize> {
        choices.iter().enumerate().filter(|(_, choice)| is_meant(choice)).map(|(nth, _)| nth).collect()
    };
    let by_id = all(&|choice| choice.id == wanted);
    if !by_id.is_empty() {
        return by_id;
    }
    let by_name = all(&|choice| choice.names.iter().any(|name| name.trim().to_lowercase() == wanted));
    if !by_name.is_empty() {
        return by_name;
    }
    all(&|choice| wanted.len() >= SHORTEST && choice.id.starts_with(&wanted))
}

/// The error for a thing that is not there. `names`: those that there are.
pub fn missing<'a>(kind: Kind, text: &str, names: impl IntoIterator<Item = &'a str>) -> anyhow::Error {
    let Kind { noun, list, .. } = kind;
    let alike: Vec<String> = alike(text, names).into_iter().map(|name| format!("`{}`", shown(name))).collect();
    match alike.as_slice() {
        [] => anyhow!("there is no {noun} {text:?}\n\nhint: `{list}` shows them"),
        alike => {
            anyhow!("there is no {noun} {text:?}\n\nhint: did you mean {}? `{list}` shows them all", alike.join(" or "))
        }
    }
}

/// The names that are most like what was typed, the best first.
fn alike<'a>(text: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = text.trim().to_lowercase();
    let likeness = |name: &str| {
        let name = name.to_lowercase();
        let is_part = wanted.chars().count() >= 3 && name.contains(&wanted);
        strsim::jaro_winkler(&wanted, &name).max(if is_part { ALIKE } else { 0.0 })
    };
    let mut alike: Vec<(f64, &str)> = names.into_iter().map(|name| (likeness(name), name)).collect();
    alike.retain(|(likeness, _)| *likeness >= ALIKE);
    alike.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    alike.dedup_by_key(|(_, name)| *name);
    alike.into_iter().take(MOST_SUGGESTED).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: Kind = Kind { noun: "channel", plural: "channels", list: "tributary channel list" };

    fn found(text: &str) -> Result<u8, String> {
        let choice = |thing, id: &str, name: &str| Choice::new(thing, id, [Some(name.to_owned())]);
        let choices = vec![
            choice(1, "7f3a0000-0000-0000-0000-000000000001", "Web shop"),
            choice(2, "7f3a0000-0000-0000-0000-000000000002", "Calls"),
            choice(3, "8b000000-0000-0000-0000-000000000003", "calls"),
            choice(4, "9c000000-0000-0000-0000-000000000004", "8b00"),
        ];
        pick(KIND, choices, text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_thing_is_meant_by_its_name_its_id_or_the_beginning_of_it() {
        for (text, expected) in [
            ("web SHOP", 1),
            (" Web shop ", 1),
            ("7f3a0000-0000-0000-0000-000000000002", 2),
            ("7F3A0000-0000-0000-0000-000000000001", 1),
            ("9c00", 4),
            ("8b00", 4), // a name goes before the beginning of an id
            ("8b000", 3),
        ] {
            assert_eq!(found(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_not_there_is_told_with_what_may_be_meant() {
        let told = |text| found(text).expect_err(text);
        assert_eq!(
            told("web shp"),
            "there is no channel \"web shp\"\n\nhint: did you mean `Web shop`? `tributary channel list` shows them all"
        );
        assert_eq!(
            told("call"),
            "there is no channel \"call\"\n\nhint: did you mean `Calls` or `calls`? `tributary channel list` shows them all"
        );
        assert!(told("shop").contains("did you mean `Web shop`?"));
        assert_eq!(told("mail"), "there is no channel \"mail\"\n\nhint: `tributary channel list` shows them");
        assert_eq!(told(""), "there is no channel \"\"\n\nhint: `tributary channel list` shows them");
        assert!(
            told("calls").starts_with("2 channels are meant by \"calls\"\n\nhint: give the id: 7f3a0000-"),
            "{}",
            told("calls")
        );
        assert!(told("7f3a").starts_with("2 channels are meant by"));
    }
}
