//! Notices of changes, sent after the commit. A notice is a hint to look at the tables, not the change itself.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::TenantId;

/// The largest number of ids in one notice. Two such notices fit into one NOTIFY.
const MOST_IDS: usize = 80;

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
    /// The changed rows, for activities. Older programs leave it out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<Uuid>,
}

impl Notice {
    /// Makes the notices for changed activities: a few for any number, none for none.
    pub fn activities(tenant_id: TenantId, ids: &[Uuid], op: Op) -> impl Iterator<Item = Self> {
        ids.chunks(MOST_IDS).map(move |ids| Self {
            tenant_id: Some(tenant_id),
            kind: "activities".into(),
            id: if let [one] = ids { one.to_string() } else { String::new() },
            op,
            ids: ids.to_vec(),
        })
    }

    /// Makes a notice that wakes a lane in every process and tells pages that its items changed.
    pub fn lane(tenant_id: Option<TenantId>, lane: &str, op: Op) -> Self {
        Self { tenant_id, kind: format!("lane:{lane}"), id: String::new(), op, ids: Vec::new() }
    }

    pub fn resync(kind: impl Into<String>) -> Self {
        Self { tenant_id: None, kind: kind.into(), id: String::new(), op: Op::Resync, ids: Vec::new() }
    }
}
