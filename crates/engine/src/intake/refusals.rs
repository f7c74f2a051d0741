//! What channels refused, for their owners: never what was sent, alike ones counted together, written once a second.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::{ChannelId, TenantId};
use store::channels::{self, NewRefusal};

use crate::Env;

const EVERY: Duration = Duration::from_secs(1);
const LIMIT: Duration = Duration::from_secs(5);
/// Different ones that wait to be written; further ones are only counted in the metrics.
const MOST_WAITING: usize = 1_000;

#[derive(PartialEq, Eq, Hash)]
struct Alike {
    tenant_id: TenantId,
    channel_id: ChannelId,
    status: u16,
    reason: String,
    address: IpAddr,
}

#[derive(Default)]
pub(super) struct Refusals(Mutex<HashMap<Alike, i32>>);

impl Refusals {
    pub fn note(&self, tenant_id: TenantId, channel_id: ChannelId, status: u16, reason: String, address: IpAddr) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let alike = Alike { tenant_id, channel_id, status, reason, address };
        let is_full = waiting.len() >= MOST_WAITING;
        match waiting.get_mut(&alike) {
            Some(n) => *n = n.saturating_add(1),
            None if is_full => {}
            None => drop(waiting.insert(alike, 1)),
        }
    }

    /// Until dropped.
    pub async fn write(&self, env: &Env) {
        loop {
            tokio::time::sleep(EVERY).await;
            let noted = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
            if noted.is_empty() {
                continue;
            }
            let refusals: Vec<NewRefusal> = noted.iter().map(row).collect();
            let written = store::within(LIMIT, async {
                let mut conn = env.db.acquire().await?;
                channels::add_refusals(&mut conn, &refusals).await
            });
            if let Err(error) = written.await {
                tracing::debug!(error = ?error, "{} kinds of refusals are not written yet", refusals.len());
                let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                for (alike, n) in noted {
                    *waiting.entry(alike).or_default() += n; // bounded: no more than were there
                }
            }
        }
    }
}

fn row((alike, n): (&Alike, &i32)) -> NewRefusal {
    NewRefusal {
        tenant_id: alike.tenant_id,
        channel_id: alike.channel_id,
        status: alike.status,
        reason: alike.reason.clone(),
        address: alike.address.to_string(),
        n: *n,
    }
}
