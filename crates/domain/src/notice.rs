//! What changed, told after the commit: a hint to look, never the truth itself.

use serde::{Deserialize, Serialize};

use crate::TenantId;

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
    pub id: String,
    pub op: Op,
}

impl Notice {
    /// Wakes a lane everywhere, and tells pages that its items changed.
    pub fn lane(tenant_id: Option<TenantId>, lane: &str, op: Op) -> Self {
        Self { tenant_id, kind: format!("lane:{lane}"), id: String::new(), op }
    }

    pub fn resync(kind: impl Into<String>) -> Self {
        Self { tenant_id: None, kind: kind.into(), id: String::new(), op: Op::Resync }
    }
}
