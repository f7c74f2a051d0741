//! Finds the source that is meant, and says what its state does not allow.

use domain::{Caller, SourceId, SourceStatus};
use engine::{ActError, Env, sources};
use store::sources::Source;

use super::super::pick::{self, Choice, Kind};

/// The id of the source that is meant.
pub async fn find(env: &Env, caller: &Caller, text: &str) -> anyhow::Result<SourceId> {
    Ok(SourceId(found(env, caller, text).await?.id))
}

pub async fn found(env: &Env, caller: &Caller, text: &str) -> anyhow::Result<Source> {
    meant(sources::list(env, caller).await?, text)
}

/// Finds the source that is meant: by its id or the beginning of it, by name or provider. Disconnected ones count only where no other is.
fn meant(listed: Vec<Source>, text: &str) -> anyhow::Result<Source> {
    let (gone, live): (Vec<_>, Vec<_>) =
        listed.into_iter().partition(|source| source.status == SourceStatus::Disconnected);
    let choices = |sources: Vec<Source>| -> Vec<Choice<Source>> {
        let choice = |source: Source| {
            let (id, names) = (source.id, [Some(source.name.clone()), Some(source.provider.clone())]);
            Choice::new(source, id, names)
        };
        sources.into_iter().map(choice).collect()
    };
    let (live, gone) = (choices(live), choices(gone));
    let is_gone = pick::meant(&live, text).is_empty() && !pick::meant(&gone, text).is_empty();
    pick::pick(SOURCE, if is_gone { gone } else { live }, text)
}

const SOURCE: Kind = Kind { noun: "source", plural: "sources", list: "tributary source list" };

/// The error of an act on a source, with what to do about it.
pub fn with_hint(error: ActError, id: SourceId) -> anyhow::Error {
    match error {
        ActError::NotFound("source") => {
            anyhow::anyhow!("there is no source {id}\n\nhint: `tributary source list` shows them")
        }
        ActError::Conflict(why) => {
            let first = match &why {
                why if why.contains("paused:") => "resume",
                why if why.contains("connect") => "reconnect",
                _ => "show",
            };
            anyhow::anyhow!("{why}\n\nhint: `tributary source {first} {id}`")
        }
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::super::super::words;
    use super::*;

    fn source(id: u128, name: &str, provider: &str, status: &str) -> Source {
        let (id, name, provider) = (Uuid::from_u128(id), name.to_owned(), provider.to_owned());
        Source { id, name, provider, ..words::tests::source(status) }
    }

    #[test]
    fn a_source_is_meant_by_its_id_its_name_or_its_provider() {
        let listed = [
            source(0x7f3a_0000 << 96, "Harrow Ridge", "hubspot", "active"),
            source(0x7f3b_0000 << 96, "Books", "quickbooks", "active"),
            source(0x8000_0000 << 96, "Harrow Ridge", "hubspot", "disconnected"),
            source(0x9000_0000 << 96, "Other books", "quickbooks", "paused"),
        ];
        let found = |text: &str| {
            let found = meant(listed.to_vec(), text).map_err(|error| error.to_string());
            found.map(|found| listed.iter().position(|source| source.id == found.id).expect("a place"))
        };
        for (text, expected) in [("7f3a", 0), ("7F3B0000", 1), ("hubspot", 0), ("other BOOKS", 3), ("8000", 2)] {
            assert_eq!(found(text), Ok(expected), "{text}");
        }
        let told = |text: &str| found(text).expect_err(text);
        assert!(told("quickbooks").starts_with("2 sources are meant by \"quickbooks\""), "{}", told("quickbooks"));
        assert!(told("slack").starts_with("there is no source \"slack\""));
        assert!(told("").starts_with("there is no source \"\""));
        assert!(told("quickboks").contains("did you mean `quickbooks`?"), "{}", told("quickboks"));
    }
}
