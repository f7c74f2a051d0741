//! The caller of a request: its tenant and person, and its rights.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{KeyId, PersonId, TenantId, words};

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

words! {
    /// The rights of a person who has signed in. Pages and API ask for scopes, so this is the one place that says what a role allows.
    Role {
        /// Everything of the tenant: people, keys, secrets of channels, forgetting.
        Owner = "owner",
        /// The daily work: look, add, act on items, run agents.
        Member = "member",
        /// Look.
        ReadOnly = "read-only",
    }
}

impl Role {
    pub fn scopes(self) -> Vec<Scope> {
        match self {
            Self::Owner => vec![Scope::Service],
            Self::Member => vec![Scope::Read, Scope::Write, Scope::Agent],
            Self::ReadOnly => vec![Scope::Read],
        }
    }

    /// Says in a few words what the role allows.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Owner => "everything, also people, keys, secrets and forgetting",
            Self::Member => "the daily work: look, add, retry, connect",
            Self::ReadOnly => "look, and change nothing",
        }
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
    /// Whether it is a person who signed in, with the rights of their role, and not a key.
    pub is_signed_in: bool,
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
            is_signed_in: false,
            is_operator,
        }
    }

    /// Whether it acts without a key: see [`Caller::local`].
    pub fn is_local(&self) -> bool {
        self.key_id.0.is_nil()
    }

    /// Whether the caller has a scope. A service key has all of them.
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope) || self.scopes.contains(&Scope::Service)
    }

    /// Whether the caller may make a link that signs this person in: an owner, or the person after signing in. A key of theirs, such as a device's,
    /// may not: it would become more than it is.
    pub fn may_invite(&self, person_id: PersonId) -> bool {
        self.may(Scope::Service) || (self.is_signed_in && self.person_id == Some(person_id))
    }

    /// Whether the caller sees every activity of its tenant. A key that is an agent's alone sees what it may process, its person's, everyone's, and
    /// those that wait and are open to others, and what it has claimed. The database has the same rule (`tributary.sees_all_activities`).
    pub fn sees_all_activities(&self) -> bool {
        [Scope::Read, Scope::Write, Scope::Service].iter().any(|scope| self.scopes.contains(scope))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(scopes: &[Scope], is_operator: bool) -> Caller {
        Caller { scopes: scopes.to_vec(), ..Caller::local("test", TenantId(Uuid::nil()), is_operator) }
    }

    #[test]
    fn a_caller_may_what_its_scopes_say_and_a_service_key_may_everything() {
        use Scope::{Agent, Read, Service, Write};
        let cases: [(&[Scope], &[Scope]); 5] = [
            (&[], &[]),
            (&[Read], &[Read]),
            (&[Write], &[Write]), // writing does not include reading
            (&[Read, Agent], &[Read, Agent]),
            (&[Service], &[Read, Write, Agent, Service]),
        ];
        for (held, allowed) in cases {
            for scope in Scope::ALL {
                let caller = caller(held, false);
                assert_eq!(caller.may(scope), allowed.contains(&scope), "{held:?} and {scope:?}");
            }
        }
    }

    #[test]
    fn a_role_allows_what_its_scopes_do_and_no_role_below_an_owner_manages() {
        use Scope::{Agent, Read, Service, Write};
        let cases: [(Role, &[Scope]); 3] = [
            (Role::Owner, &[Read, Write, Agent, Service]),
            (Role::Member, &[Read, Write, Agent]),
            (Role::ReadOnly, &[Read]),
        ];
        for (role, allowed) in cases {
            for scope in Scope::ALL {
                assert_eq!(caller(&role.scopes(), false).may(scope), allowed.contains(&scope), "{role} and {scope:?}");
            }
        }
    }

    #[test]
    fn a_link_for_a_person_is_made_by_an_owner_or_by_the_person_after_signing_in() {
        let (ann, bob) = (PersonId(1), PersonId(2));
        let of =
            |scopes: &[Scope], is_signed_in| Caller { person_id: Some(ann), is_signed_in, ..caller(scopes, false) };
        for (caller, own, others) in [
            (of(&[Scope::Service], true), true, true),
            (of(&[Scope::Service], false), true, true),
            (of(&[Scope::Read], true), true, false),
            (of(&[Scope::Read, Scope::Write, Scope::Agent], false), false, false),
        ] {
            assert_eq!((caller.may_invite(ann), caller.may_invite(bob)), (own, others), "{caller:?}");
        }
    }

    #[test]
    fn only_a_service_key_of_the_operators_tenant_operates_the_installation() {
        for (scopes, is_operator, operates) in [
            (vec![Scope::Service], true, true),
            (vec![Scope::Service], false, false),
            (vec![Scope::Read, Scope::Write, Scope::Agent], true, false),
        ] {
            assert_eq!(caller(&scopes, is_operator).operates(), operates, "{scopes:?} {is_operator}");
        }
    }

    #[test]
    fn scopes_are_spelled_alike_in_text_and_json() {
        for scope in Scope::ALL {
            assert_eq!(scope.as_str().parse(), Ok(scope));
            assert_eq!(serde_json::to_value(scope).expect("a word"), scope.as_str());
        }
        let unknown = "root".parse::<Scope>();
        assert_eq!(unknown, Err("unknown scope \"root\"; scopes are read, write, agent and service".into()));
        assert!("Read".parse::<Scope>().is_err());
    }

    #[test]
    fn the_claims_name_tenant_person_and_scopes_as_postgrest_would() {
        let (tenant_id, user_id) = (TenantId(Uuid::from_u128(1)), Uuid::from_u128(2));
        let caller = Caller {
            person_id: Some(PersonId(7)),
            user_id: Some(user_id),
            key_id: KeyId(Uuid::from_u128(3)),
            scopes: vec![Scope::Read, Scope::Agent],
            ..Caller::local("laptop", tenant_id, true)
        };
        assert_eq!(
            caller.claims(),
            serde_json::json!({
                "role": "authenticated",
                "sub": "00000000-0000-0000-0000-000000000002",
                "tenant_id": "00000000-0000-0000-0000-000000000001",
                "sales_id": 7,
                "key_id": "00000000-0000-0000-0000-000000000003",
                "scopes": ["read", "agent"],
            })
        );
        let nobody = Caller::local("upkeep", tenant_id, false).claims();
        assert_eq!((&nobody["sub"], &nobody["sales_id"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    }
}
