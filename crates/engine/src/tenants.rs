//! Tenants: one per customer.

use domain::{Caller, TenantId};
use serde_json::json;
use store::forgotten::{self, Counted, Subject};
use store::tenants::{self, Tenant};

use crate::act::{OrMissing as _, checked_name};
use crate::lanes::forget::ForgetAll;
use crate::lanes::queue_of;
use crate::mail::subscriptions;
use crate::{ActError, Env};

/// Creates a tenant. Names are unique.
pub async fn create(env: &Env, name: &str) -> Result<TenantId, ActError> {
    let name = checked_name("a tenant's", name)?;
    let id = env.db.session(async |conn| tenants::create(conn, name).await).await?;
    tracing::info!(tenant.id = %id, "tenant {id} was created");
    Ok(id)
}

/// Every tenant, the oldest first.
pub async fn list(env: &Env) -> Result<Vec<Tenant>, ActError> {
    Ok(env.db.session(async |conn| tenants::list(conn).await).await?)
}

/// One tenant.
pub async fn get(env: &Env, id: TenantId) -> Result<Tenant, ActError> {
    list(env).await?.into_iter().find(|tenant| tenant.id == id.0).or_missing("tenant")
}

/// Counts what would go with a tenant.
pub async fn count(env: &Env, id: TenantId) -> Result<Counted, ActError> {
    get(env, id).await?;
    Ok(env.db.session(async |conn| forgotten::count(conn, id, Subject::Tenant(id)).await).await?)
}

/// Takes a tenant out of service at once and has everything removed that it has; returns how much that is. The record is the operator's. The caller
/// operates the installation. Asked twice, it is done once.
pub async fn forget(env: &Env, caller: &Caller, id: TenantId) -> Result<Counted, ActError> {
    let (whose, subject, queue) = (caller.tenant_id, Subject::Tenant(id), queue_of::<ForgetAll>());
    if !caller.operates() {
        return Err(ActError::NotFound("tenant"));
    }
    let asked = env.db.write(async |tx| {
        let tenant = tenants::lock(tx, id).await?.or_missing("tenant")?;
        if tenant.is_operator {
            return Err(ActError::conflict(
                "this tenant operates the installation and keeps the records of what was forgotten, so it cannot be forgotten",
            ));
        }
        let counted = forgotten::count(tx, id, subject).await?;
        if queue.holds(tx, &json!({ "of_tenant_id": id })).await? {
            return Ok((counted, false));
        }
        tenants::begin_forgetting(tx, env.clock.sql(), id).await?;
        let forgotten_id = forgotten::begin(tx, whose, &format!("Tenant {id}"), &caller.key_name, &counted).await?;
        queue.send(tx, whose, &[ForgetAll { subject, forgotten_id }]).await?;
        Ok((counted, true))
    });
    let (counted, is_new) = asked.await?;
    // Its tokens are there for another half a minute. What is not removed now ends by itself.
    if is_new && let Err(error) = subscriptions::remove_all(env, id).await {
        tracing::info!(tenant.id = %id, error = ?error, "the subscriptions of tenant {id} were not removed, and end by themselves");
    }
    tracing::info!(tenant.id = %id, "tenant {id} is being forgotten, as key {} asked", caller.key_id);
    Ok(counted)
}
