//! People's devices that claim activities, and what each is told.

use domain::{Caller, NodeId, Notice, Op, TenantId};
use store::nodes;
pub use store::nodes::Change;

use crate::act::OrMissing as _;
use crate::{ActError, Env};

/// Switches a device on or off, or says on how many activities at once it works. The device reads it with its next heartbeat.
pub async fn change(env: &Env, caller: &Caller, id: NodeId, change: Change) -> Result<(), ActError> {
    checked(&change)?;
    let changed = env.db.write(async |tx| {
        tx.notify(changed(caller.tenant_id));
        nodes::change(tx, caller.tenant_id, id, change).await?.or_missing("device")
    });
    changed.await
}

fn checked(change: &Change) -> Result<(), ActError> {
    if change.concurrency.is_some_and(|n| !(1..=64).contains(&n)) {
        return Err(ActError::invalid("concurrency is a number from 1 to 64"));
    }
    Ok(())
}

/// Says that a device of the tenant's looks different now.
pub fn changed(tenant_id: TenantId) -> Notice {
    Notice { tenant_id: Some(tenant_id), kind: "nodes".into(), id: String::new(), op: Op::Update, ids: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_works_on_1_to_64_activities_at_once() {
        for (concurrency, is_allowed) in
            [(None, true), (Some(0), false), (Some(1), true), (Some(64), true), (Some(65), false), (Some(-1), false)]
        {
            assert_eq!(checked(&Change { enabled: None, concurrency }).is_ok(), is_allowed, "{concurrency:?}");
        }
    }
}
