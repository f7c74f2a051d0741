//! Assistants: programs that people let into this memory over MCP, by OAuth 2.1. We are the authorization server and the protected resource.
//!
//! [`redirect`] and [`programs`] decide which program asks and where a person is sent back to, [`consent`] what a person allows, [`tokens`] what the
//! program gets for it. [`calls`] notes what programs asked, and [`setup`] says how each known client is set up.

pub mod calls;
pub mod consent;
pub mod programs;
pub mod redirect;
pub mod setup;
pub mod tokens;

use domain::{Caller, KeyId, PersonId, Scope};
use store::assistants::calls::Call;
use store::assistants::{self, Assistant, RevokedBy};
use uuid::Uuid;

use crate::act::OrMissing as _;
use crate::config::{Config, McpOauth};
use crate::{ActError, Env};

/// The path of the MCP server.
pub const MCP_PATH: &str = "/mcp";
/// The rights that an assistant can have. None manages anything.
pub const SCOPES: [Scope; 3] = [Scope::Read, Scope::Write, Scope::Agent];

/// Whether programs can be let in by OAuth. Without https a token could be read on its way, so nothing is announced then.
pub fn is_on(config: &Config) -> bool {
    let base_url = config.base_url();
    match config.mcp_oauth {
        McpOauth::Off => false,
        McpOauth::Auto => base_url.starts_with("https://"),
        McpOauth::Loopback => base_url.starts_with("https://") || redirect::is_loopback_url(&base_url),
    }
}

/// The address that tokens are good for.
pub fn resource(config: &Config) -> String {
    format!("{}{MCP_PATH}", config.base_url())
}

/// Whether a program means the same address as we do: one that it does not name, or with a slash at its end.
pub(crate) fn is_resource(config: &Config, named: Option<&str>) -> bool {
    named.is_none_or(|named| named.trim_end_matches('/').eq_ignore_ascii_case(&resource(config)))
}

/// Lists assistants: for an owner the tenant's, for everybody else those that they let in.
pub async fn list(env: &Env, caller: &Caller) -> Result<Vec<Assistant>, ActError> {
    let Some(of) = whose(caller) else { return Ok(Vec::new()) };
    let (at, tenant_id) = (env.clock.sql(), caller.tenant_id);
    Ok(env.db.session(async |conn| assistants::list(conn, at, tenant_id, of).await).await?)
}

/// Revokes an assistant. Returns its key, whose callers servers have to look up again.
pub async fn revoke(env: &Env, caller: &Caller, id: Uuid) -> Result<KeyId, ActError> {
    let of = whose(caller).ok_or(ActError::NotFound("assistant"))?;
    let (at, tenant_id) = (env.clock.sql(), caller.tenant_id);
    let revoked =
        env.db.write(async |tx| assistants::revoke(tx, at, tenant_id, id, of, RevokedBy::Person).await).await?;
    let key_id = revoked.or_missing("assistant")?;
    tracing::info!(tenant.id = %tenant_id, "assistant {id} was revoked by key {}", caller.key_id);
    Ok(key_id)
}

/// Lists what programs asked over MCP, the latest first: for an owner the tenant's, for everybody else those of their own keys and assistants. Also
/// the call before which the next page begins.
pub async fn called(
    env: &Env,
    caller: &Caller,
    key_id: Option<KeyId>,
    before: Option<Uuid>,
    limit: i64,
) -> Result<(Vec<Call>, Option<Uuid>), ActError> {
    let Some(of) = whose(caller) else { return Ok((Vec::new(), None)) };
    let (tenant_id, of) = (caller.tenant_id, of.map(|person| person.0));
    let listed =
        env.db.session(async |conn| assistants::calls::list(conn, tenant_id, key_id, of, before, limit).await).await?;
    let is_full = i64::try_from(listed.len()).is_ok_and(|n| n >= limit);
    let next_before = listed.last().filter(|_| is_full).map(|last| last.id);
    Ok((listed, next_before))
}

/// The person to whose assistants a caller is confined; inside, none for an owner. None: a key of nobody's that manages nothing has none.
fn whose(caller: &Caller) -> Option<Option<PersonId>> {
    if caller.may(Scope::Service) { Some(None) } else { caller.person_id.map(Some) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::of_flags;

    #[test]
    fn nothing_is_announced_without_https() {
        for (flags, expected) in [
            (&[][..], false),
            (&["--public-url", "http://hear.example.com"], false),
            (&["--public-url", "https://hear.example.com"], true),
            (&["--public-url", "https://hear.example.com", "--mcp-oauth", "off"], false),
            (&["--mcp-oauth", "loopback"], true),
            (&["--mcp-oauth", "loopback", "--listen", "192.0.2.1:7171"], false),
            (&["--mcp-oauth", "loopback", "--public-url", "http://hear.example.com"], false),
            (&["--mcp-oauth", "loopback", "--public-url", "http://127.0.0.1.example.com"], false),
        ] {
            assert_eq!(is_on(&of_flags(flags)), expected, "{flags:?}");
        }
    }

    /// S30.
    #[test]
    fn a_token_is_for_one_address() {
        let config = of_flags(&["--public-url", "https://hear.example.com"]);
        assert_eq!(resource(&config), "https://hear.example.com/mcp");
        for ours in [None, Some("https://hear.example.com/mcp"), Some("https://HEAR.example.com/mcp/")] {
            assert!(is_resource(&config, ours), "{ours:?}");
        }
        for other in ["", "https://hear.example.com", "https://hear.example.com/mcp2", "https://evil.example/mcp"] {
            assert!(!is_resource(&config, Some(other)), "{other:?}");
        }
    }
}
