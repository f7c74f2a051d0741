//! Things that were or are being forgotten, in plain words. The acts themselves are with their nouns: `sources`, `contacts`, `tenants`.

use domain::Caller;
use domain::shown::{number, plural};
use store::forgotten::{self, Counted, Line, MOST_COUNTED, MOST_SUMMED};

use crate::{ActError, Env};

/// So many records are listed.
const MOST_LINES: i64 = 100;

/// The tenant's records of what was removed, newest first.
pub async fn list(env: &Env, caller: &Caller) -> Result<Vec<Line>, ActError> {
    Ok(env.db.read(caller, async |tx| forgotten::list(tx, caller.tenant_id, MOST_LINES).await).await?)
}

/// The amount of data that goes: `1,204 documents in 3,400 chunks, 1 client and 2 jobs`, `100,000+ documents in 31,000+ chunks`.
pub fn counted(counted: &Counted) -> String {
    let shown = |(kind, n, words): (&str, i64, [&str; 2])| {
        let rows = said(n, n >= MOST_COUNTED, words);
        match (kind, counted.chunks) {
            ("documents", chunks) if chunks > 0 => {
                format!("{rows} in {}", said(chunks, n > MOST_SUMMED, ["chunk", "chunks"]))
            }
            _ => rows,
        }
    };
    joined(counted.kinds().into_iter().filter(|(_, n, _)| *n > 0).map(shown).collect())
}

/// How far a removal is: `500 of 1,204 documents and 0 of 2 jobs`. What came after it was asked for is counted too.
pub fn progress(line: &Line) -> String {
    let removed = |kind: &str| line.removed.get(kind).and_then(serde_json::Value::as_i64).unwrap_or(0);
    let kinds = line.counted.kinds().into_iter().map(|(kind, n, words)| (removed(kind), n, words));
    let kinds = kinds.filter(|(gone, n, _)| *gone > 0 || *n > 0);
    let shown = |(gone, n, [one, many]): (i64, i64, [&str; 2])| match line.done_at {
        Some(_) => plural(gone, one, many),
        None => format!("{} of {}", number(gone), said(n.max(gone), n >= MOST_COUNTED, [one, many])),
    };
    joined(kinds.map(shown).collect())
}

/// `1,204 documents`; or `1,204+ documents`, if there are at least so many.
fn said(n: i64, is_at_least: bool, [one, many]: [&str; 2]) -> String {
    if is_at_least { format!("{}+ {many}", number(n)) } else { plural(n, one, many) }
}

fn joined(parts: Vec<String>) -> String {
    match parts.split_last() {
        None => "nothing else".into(),
        Some((only, [])) => only.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use chrono::Utc;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_goes_is_counted_in_words() {
        let some = Counted { documents: 1_204, chunks: 3_400, clients: 1, jobs: 2, ..Counted::default() };
        assert_eq!(counted(&some), "1,204 documents in 3,400 chunks, 1 client and 2 jobs");
        assert_eq!(counted(&Counted { activities: 1, ..Counted::default() }), "1 activity");
        for (documents, chunks, words) in [
            (99_999, 0, "99,999 documents"),
            (100_000, 0, "100,000+ documents"),
            (20_000, 20_001, "20,000 documents in 20,001 chunks"),
            (20_001, 20_000, "20,001 documents in 20,000+ chunks"),
            (100_000, 31_000, "100,000+ documents in 31,000+ chunks"),
        ] {
            assert_eq!(counted(&Counted { documents, chunks, ..Counted::default() }), words);
        }
        assert_eq!(counted(&Counted::default()), "nothing else");
    }

    #[test]
    fn progress_is_told_by_kind_and_the_end_in_numbers() {
        let counted = Counted { activities: 3, documents: 1_204, ..Counted::default() };
        let removed = json!({ "activities": 3, "documents": 500, "files": 1 });
        let mut line = Line {
            id: uuid::Uuid::nil(),
            what: "Contact 7".into(),
            by: "ann".into(),
            counted,
            removed: removed.clone(),
            asked_at: Utc::now(),
            done_at: None,
        };
        assert_eq!(progress(&line), "3 of 3 activities, 1 of 1 file and 500 of 1,204 documents");
        line.counted = Counted { documents: 100_000, ..Counted::default() };
        line.removed = json!({ "documents": 500 });
        assert_eq!(progress(&line), "500 of 100,000+ documents");
        line.removed = json!({ "documents": 100_500 });
        assert_eq!(progress(&line), "100,500 of 100,500+ documents");
        (line.counted, line.removed) = (counted, removed);
        line.done_at = Some(Utc::now());
        assert_eq!(progress(&line), "3 activities, 1 file and 500 documents");
    }
}
