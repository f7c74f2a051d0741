//! Finds the source that is meant, and says what its state does not allow.

use anyhow::Context as _;
use domain::{Caller, SourceId, SourceStatus};
use engine::{ActError, Env, sources};
use store::sources::Source;

/// The id of the source that is meant.
pub async fn find(env: &Env, caller: &Caller, text: &str) -> anyhow::Result<SourceId> {
    Ok(SourceId(found(env, caller, text).await?.id))
}

pub async fn found(env: &Env, caller: &Caller, text: &str) -> anyhow::Result<Source> {
    let listed = sources::list(env, caller).await?;
    let nth = meant(&listed, text)
        .map_err(|why| anyhow::anyhow!("{why}\n\nhint: `tributary source list` shows them with their ids"))?;
    listed.into_iter().nth(nth).context("the source is gone")
}

/// Finds the source that is meant: by its id or the beginning of it, else by name or provider. Disconnected ones count only where no other is.
fn meant(listed: &[Source], text: &str) -> Result<usize, String> {
    let wanted = text.to_lowercase();
    let by_id = |source: &Source| wanted.len() >= 4 && source.id.to_string().starts_with(&wanted);
    let by_name = |source: &Source| source.name.to_lowercase() == wanted || source.provider == wanted;
    let all = |is_meant: &dyn Fn(&Source) -> bool| -> Vec<usize> {
        let places = listed.iter().enumerate().filter(|(_, source)| is_meant(source));
        let (live, gone): (Vec<_>, Vec<_>) =
            places.partition(|(_, source)| source.status != SourceStatus::Disconnected);
        let of = if live.is_empty() { gone } else { live };
        of.into_iter().map(|(nth, _)| nth).collect()
    };
    let found = Some(all(&by_id)).filter(|found| !found.is_empty()).unwrap_or_else(|| all(&by_name));
    match found.as_slice() {
        [one] => Ok(*one),
        [] => Err(format!("there is no source {text:?}")),
        several => Err(format!("{} sources are meant by {text:?}", several.len())),
    }
}

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
        for (text, expected) in
            [("7f3a", Ok(0)), ("7F3B0000", Ok(1)), ("hubspot", Ok(0)), ("other BOOKS", Ok(3)), ("8000", Ok(2))]
        {
            assert_eq!(meant(&listed, text), expected, "{text}");
        }
        assert_eq!(meant(&listed, "quickbooks"), Err("2 sources are meant by \"quickbooks\"".into()));
        assert_eq!(meant(&listed, "slack"), Err("there is no source \"slack\"".into()));
        assert_eq!(meant(&listed, ""), Err("there is no source \"\"".into()));
    }
}
