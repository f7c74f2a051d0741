//! What changed, told after the commit: a hint to look, never the truth itself.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::TenantId;

/// Most ids of one notice: with that many it still fits a NOTIFY twice.
const MOST_IDS: usize = 80;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    Insert,
    Update,
    Delete,
    /// Something of this kind changed, or was missed: look at all of it.
    Resync,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// None: of interest to whoever operates the installation.
    pub tenant_id: Option<TenantId>,
    /// `lane:<name>` wakes that lane; other kinds are tables or pages.
    pub kind: String,
    /// Empty when it is several, or does not matter.
    pub id: String,
    pub op: Op,
    /// Which rows, where somebody wants to see them: activities. Left out by programs older than that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<Uuid>,
}

impl Notice {
    /// These activities changed: a few notices however many they are, none when there are none.
    pub fn activities(tenant_id: TenantId, ids: &[Uuid], op: Op) -> impl Iterator<Item = Self> {
        ids.chunks(MOST_IDS).map(move |ids| Self {
            tenant_id: Some(tenant_id),
            kind: "activities".into(),
            id: if let [one] = ids { one.to_string() } else { String::new() },
            op,
            ids: ids.to_vec(),
        })
    }

    /// Wakes a lane everywhere, and tells pages that its items changed.
    pub fn lane(tenant_id: Option<TenantId>, lane: &str, op: Op) -> Self {
        Self { tenant_id, kind: format!("lane:{lane}"), id: String::new(), op, ids: Vec::new() }
    }

    pub fn resync(kind: impl Into<String>) -> Self {
        Self { tenant_id: None, kind: kind.into(), id: String::new(), op: Op::Resync, ids: Vec::new() }
    }
}
