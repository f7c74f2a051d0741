//! Consent: the rights that a program asks of a person, and those that the person allows. Everything is checked when the page is shown and again when it is answered: nothing is
//! kept between the two.

use domain::{Caller, Scope};
use serde::{Deserialize, Serialize};
use store::assistants::{NewAssistant, let_in};

use super::programs::{self, Documents, Program};
use super::redirect::Redirect;
use super::tokens::OauthError;
use super::{SCOPES, is_resource, resource};
use crate::Env;

/// The parameters with which a program sends a person here.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Asked {
    #[serde(default)]
    pub response_type: String,
    #[serde(default)]
    pub client_id: String,
    #[serde(default)]
    pub redirect_uri: String,
    #[serde(default)]
    pub scope: String,
    #[serde(default)]
    pub state: String,
    #[serde(default)]
    pub code_challenge: String,
    #[serde(default)]
    pub code_challenge_method: String,
    #[serde(default)]
    pub resource: String,
}

/// A request that is as it should be.
#[derive(Clone, Debug)]
pub struct Request {
    pub program: Program,
    pub redirect: Redirect,
    /// The rights that it asks for and that the person has.
    pub scopes: Vec<Scope>,
    /// The rights that it asks for and that the person cannot give.
    pub beyond: Vec<Scope>,
    challenge: String,
    state: String,
}

/// The reason why a person is not asked.
#[derive(Debug, thiserror::Error)]
pub enum NotAsked {
    /// The person is told, and goes nowhere: it is not known who sent them.
    #[error(transparent)]
    Here(OauthError),
    /// The program is told, at this address.
    #[error("{what}")]
    There {
        address: String,
        /// The place, for people. None: it is answered for, by the host that describes the program or by this device.
        unknown_place: Option<String>,
        what: &'static str,
    },
}

/// Checks what a program asks for.
pub async fn check(env: &Env, caller: &Caller, documents: &Documents, asked: &Asked) -> Result<Request, NotAsked> {
    let program = programs::find(env, documents, &asked.client_id).await.map_err(NotAsked::Here)?;
    let redirect = program.redirect(&asked.redirect_uri).ok_or(NotAsked::Here(OauthError::InvalidRedirect))?;
    // Anybody registers anything: a link of ours leads nobody on by itself to a place that nobody answers for.
    let is_known = program.vouched_by.is_some() || redirect.is_on_device();
    let there = |error: &str, what: &'static str| NotAsked::There {
        address: back(env, &redirect, &asked.state, error, what),
        unknown_place: (!is_known).then(|| redirect.place()),
        what,
    };
    if asked.response_type != "code" {
        return Err(there("unsupported_response_type", "response_type is code"));
    }
    if asked.code_challenge_method != "S256" || asked.code_challenge.len() != 43 {
        return Err(there("invalid_request", "code_challenge with code_challenge_method S256 is required"));
    }
    if !is_resource(&env.config, Some(asked.resource.as_str()).filter(|resource| !resource.is_empty())) {
        return Err(there("invalid_target", "resource is the address of this server's /mcp"));
    }
    let (scopes, beyond) = scopes(caller, &asked.scope);
    if !scopes.contains(&Scope::Read) {
        return Err(there("access_denied", "this person may not read"));
    }
    let (challenge, state) = (asked.code_challenge.clone(), asked.state.clone());
    Ok(Request { program, redirect, scopes, beyond, challenge, state })
}

/// The rights that a program asks for, as far as an assistant can have them: those that the person has, and the others. To read is always among
/// them. Words that we do not know are passed over, as the standard says.
fn scopes(caller: &Caller, asked: &str) -> (Vec<Scope>, Vec<Scope>) {
    let is_asked = |scope: &Scope| *scope == Scope::Read || asked.split(' ').any(|word| word == scope.as_str());
    let may = |scope: &Scope| caller.may(*scope) && (*scope != Scope::Agent || caller.person_id.is_some());
    SCOPES.into_iter().filter(is_asked).partition(may)
}

/// The address that tells a program that it is not let in.
fn back(env: &Env, redirect: &Redirect, state: &str, error: &str, what: &str) -> String {
    let issuer = env.config.base_url();
    let mut parameters = vec![("error", error), ("error_description", what), ("iss", issuer.as_str())];
    if !state.is_empty() {
        parameters.push(("state", state));
    }
    redirect.with(&parameters)
}

/// Returns where a person goes who does not let the program in.
pub fn deny(env: &Env, request: &Request) -> String {
    back(env, &request.redirect, &request.state, "access_denied", "the person did not allow it")
}

/// Lets the program in with these of the rights that it asked for, and returns where the person goes.
pub async fn allow(env: &Env, caller: &Caller, request: &Request, allowed: &[Scope]) -> Result<String, OauthError> {
    let is_allowed = |scope: &Scope| *scope == Scope::Read || allowed.contains(scope);
    let scopes: Vec<Scope> = request.scopes.iter().copied().filter(is_allowed).collect();
    let (place, resource) = (request.redirect.place(), resource(&env.config));
    let new = NewAssistant {
        person_id: caller.person_id,
        let_in_by: caller.key_id,
        client_id: &request.program.id,
        client_name: &request.program.name,
        redirect_uri: request.redirect.as_str(),
        redirect_host: &place,
        challenge: &request.challenge,
        resource: &resource,
        scopes: &scopes,
    };
    let (at, tenant_id) = (env.clock.sql(), caller.tenant_id);
    let (id, code) = env.db.write(async |tx| let_in(tx, at, tenant_id, &new).await).await?;
    tracing::info!(tenant.id = %tenant_id, "assistant {id} was let in by key {}", caller.key_id);
    let issuer = env.config.base_url();
    let mut parameters = vec![("code", code.reveal()), ("iss", issuer.as_str())];
    if !request.state.is_empty() {
        parameters.push(("state", &request.state));
    }
    Ok(request.redirect.with(&parameters))
}

#[cfg(test)]
mod tests {
    use domain::{PersonId, Role, TenantId};

    use super::*;

    #[test]
    fn a_program_gets_no_more_than_it_asks_for_and_the_person_has() {
        let person = |role: Role| Caller {
            scopes: role.scopes(),
            person_id: Some(PersonId(7)),
            ..Caller::local("ann", TenantId::new(), false)
        };
        let of = |caller: &Caller, asked| {
            let (given, beyond) = scopes(caller, asked);
            let words = |scopes: Vec<Scope>| scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(" ");
            (words(given), words(beyond))
        };
        assert_eq!(of(&person(Role::Member), ""), ("read".into(), "".into()));
        assert_eq!(of(&person(Role::Member), "write openid read agent"), ("read write agent".into(), "".into()));
        assert_eq!(
            of(&person(Role::Owner), "service write"),
            ("read write".into(), "".into()),
            "nobody gives everything"
        );
        assert_eq!(of(&person(Role::ReadOnly), "read write"), ("read".into(), "write".into()));
        let nobody = Caller::local("dashboard", TenantId::new(), false);
        assert_eq!(of(&nobody, "agent"), ("read".into(), "agent".into()), "an agent works for a person");
    }
}
