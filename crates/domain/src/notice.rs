//! Notices of changes, sent after the commit. A notice is a hint to look at the tables, not the change itself.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::TenantId;

/// The largest number of ids in one notice. Two such notices fit into one NOTIFY.
const MOST_IDS: usize = 80;
/// The kind of notices about documents.
pub const DOCUMENTS: &str = "documents";
/// A lane's kind is this and its name.
const LANE: &str = "lane:";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    Insert,
    Update,
    Delete,
    /// Something of this kind changed, or a notice was missed: look at all rows.
    Resync,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// `None` concerns the operator of the installation.
    pub tenant_id: Option<TenantId>,
    /// `lane:<name>` wakes that lane; other kinds are tables or pages.
    pub kind: String,
    /// Empty if there are several, or if it does not matter.
    pub id: String,
    pub op: Op,
    /// The changed rows, for activities and documents. Older programs leave it out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<Uuid>,
}

impl Notice {
    /// Makes the notices for changed activities: a few for any number, none for none.
    pub fn activities(tenant_id: TenantId, ids: &[Uuid], op: Op) -> impl Iterator<Item = Self> {
        ids.chunks(MOST_IDS).map(move |ids| Self {
            id: if let [one] = ids { one.to_string() } else { String::new() },
            ..Self::rows("activities", tenant_id, ids, op)
        })
    }

    /// Makes the notices for changed documents, in the same way. Those who only hear that some changed hear of all of them at once, so none is named
    /// but in the rows.
    pub fn documents(tenant_id: TenantId, ids: &[Uuid], op: Op) -> impl Iterator<Item = Self> {
        ids.chunks(MOST_IDS).map(move |ids| Self::rows(DOCUMENTS, tenant_id, ids, op))
    }

    fn rows(kind: &str, tenant_id: TenantId, ids: &[Uuid], op: Op) -> Self {
        Self { tenant_id: Some(tenant_id), kind: kind.into(), id: String::new(), op, ids: ids.to_vec() }
    }

    /// Makes a notice that wakes a lane in every process and tells pages that its items changed.
    pub fn lane(tenant_id: Option<TenantId>, lane: &str, op: Op) -> Self {
        Self { tenant_id, kind: format!("{LANE}{lane}"), id: String::new(), op, ids: Vec::new() }
    }

    /// Whether it was made by [`Notice::lane`] for this lane.
    pub fn is_of_lane(&self, lane: &str) -> bool {
        self.kind.strip_prefix(LANE) == Some(lane)
    }

    pub fn resync(kind: impl Into<String>) -> Self {
        Self { tenant_id: None, kind: kind.into(), id: String::new(), op: Op::Resync, ids: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activities_are_told_eighty_at_a_time() {
        let tenant_id = TenantId::new();
        for (n, sizes) in [(0, vec![]), (1, vec![1]), (80, vec![80]), (81, vec![80, 1]), (200, vec![80, 80, 40])] {
            let ids: Vec<Uuid> = (0..n).map(Uuid::from_u128).collect();
            let notices: Vec<Notice> = Notice::activities(tenant_id, &ids, Op::Insert).collect();
            assert_eq!(notices.iter().map(|notice| notice.ids.len()).collect::<Vec<_>>(), sizes, "of {n}");
            let told: Vec<Uuid> = notices.iter().flat_map(|notice| notice.ids.clone()).collect();
            assert_eq!(told, ids, "each once, in order");
            for notice in &notices {
                assert_eq!((notice.tenant_id, &*notice.kind, notice.op), (Some(tenant_id), "activities", Op::Insert));
                let one = if notice.ids.len() == 1 { notice.ids[0].to_string() } else { String::new() };
                assert_eq!(notice.id, one, "the id is named where it is the only one");
            }
        }
    }

    #[test]
    fn two_full_notices_fit_one_notify() {
        let ids: Vec<Uuid> = (0..80).map(|n| Uuid::from_u128(u128::MAX - n)).collect();
        let notice = Notice::activities(TenantId::new(), &ids, Op::Update).next().expect("a notice");
        let line = serde_json::to_string(&notice).expect("JSON");
        assert!(2 * (line.len() + 1) < 8_000, "{} bytes", line.len()); // PostgreSQL's limit
    }

    #[test]
    fn a_notice_reads_back_and_ids_may_be_missing() {
        let lane = Notice::lane(None, "upkeep", Op::Delete);
        let line = serde_json::to_string(&lane).expect("JSON");
        assert_eq!(line, r#"{"tenant_id":null,"kind":"lane:upkeep","id":"","op":"delete"}"#);
        assert_eq!(serde_json::from_str::<Notice>(&line).expect("a notice"), lane);
        assert!(lane.is_of_lane("upkeep"));
        assert!(!lane.is_of_lane("keep") && !Notice::resync("upkeep").is_of_lane("upkeep"));
        assert_eq!(Notice::resync("*").op, Op::Resync);
        assert!(serde_json::from_str::<Notice>(r#"{"tenant_id":null,"kind":"x","id":"","op":"truncate"}"#).is_err());
    }
}
