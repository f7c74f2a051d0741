//! The caller of a request: its tenant and person, and its rights.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{KeyId, PersonId, TenantId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Read everything of the tenant.
    Read,
    /// Add documents and act on items: retry, skip, cancel.
    Write,
    /// Claim and complete activities.
    Agent,
    /// Act for anyone of the tenant, and manage its keys.
    Service,
}

impl Scope {
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Agent, Self::Service];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Agent => "agent",
            Self::Service => "service",
        }
    }
}

impl std::str::FromStr for Scope {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|scope| scope.as_str() == text)
            .ok_or_else(|| format!("unknown scope {text:?}; scopes are read, write, agent and service"))
    }
}

#[derive(Clone, Debug)]
pub struct Caller {
    pub tenant_id: TenantId,
    pub tenant_name: String,
    pub key_id: KeyId,
    pub key_name: String,
    pub person_id: Option<PersonId>,
    pub user_id: Option<Uuid>,
    pub scopes: Vec<Scope>,
    /// Whether the tenant operates this installation. Its service keys see workers, schedules and messages without a tenant.
    pub is_operator: bool,
}

impl Caller {
    /// The installation itself acting for a tenant: an upkeep task, or a command on this machine. It has no key and every right.
    pub fn local(name: &str, tenant_id: TenantId, is_operator: bool) -> Self {
        Self {
            tenant_id,
            tenant_name: String::new(),
            key_id: KeyId(Uuid::nil()),
            key_name: name.to_owned(),
            person_id: None,
            user_id: None,
            scopes: vec![Scope::Service],
            is_operator,
        }
    }

    /// Whether the caller has a scope. A service key has all of them.
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope) || self.scopes.contains(&Scope::Service)
    }

    /// Whether the caller may see what belongs to the installation and not to a tenant.
    pub fn operates(&self) -> bool {
        self.is_operator && self.may(Scope::Service)
    }

    /// Returns the claims for this caller's transactions, as PostgREST would set them.
    pub fn claims(&self) -> serde_json::Value {
        serde_json::json!({
            "role": "authenticated",
            "sub": self.user_id,
            "tenant_id": self.tenant_id,
            "sales_id": self.person_id,
            "key_id": self.key_id,
            "scopes": self.scopes,
        })
    }
}
