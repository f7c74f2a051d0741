//! Turns at a provider's account, shared by all processes.

use std::time::Duration;

use connectors::pull::{Limit, Pace, PullError};
use domain::{SourceId, TenantId};
use futures_util::future::BoxFuture;
use store::Db;
use store::gates as shared;

use super::Provider;

/// The longest wait of a task. For a longer one its item is put back, so that no slot is held.
const PATIENCE: Duration = Duration::from_secs(10);

/// The gates before a source's requests: one for its tenant at the provider, closed while the provider fails, and one for its account, closed while the
/// provider asks us to wait. (A refusal of our own client matters only where a new token is needed: `tokens`.)
pub(crate) fn gates(tenant_id: TenantId, provider: Provider, source_id: SourceId) -> [String; 2] {
    [format!("breaker:{tenant_id}:{provider}"), format!("wait:{source_id}")]
}

/// The turns of one source. Limits belong to the account, so they are kept by source.
pub struct Paced {
    db: Db,
    provider: Provider,
    source_id: SourceId,
    /// Multiplies the provider's usual limits.
    factor: f64,
}

impl Paced {
    pub fn new(db: &Db, provider: Provider, source_id: SourceId, factor: f64) -> Self {
        Self { db: db.clone(), provider, source_id, factor }
    }
}

/// The size of a bucket and the time in which it fills. After idling, a quarter of a limit may be spent at once, and three quarters come back
/// within its window: together never more than the limit.
fn bucket(limit: &Limit, factor: f64) -> (f64, Duration) {
    (f64::from(limit.units) * factor / 4.0, Duration::from_secs(u64::from(limit.per_secs)) / 3)
}

impl Pace for Paced {
    fn turn<'a>(&'a self, limit: &'static Limit, units: u32) -> BoxFuture<'a, Result<(), PullError>> {
        Box::pin(async move {
            let key = format!("turns:{}:{}", self.source_id, limit.name);
            let (most, per) = bucket(limit, self.factor);
            let asked = async {
                let mut conn = self.db.acquire().await?;
                shared::take(&mut conn, &key, most, per, units, PATIENCE).await
            };
            let wait = match asked.await {
                Ok(wait) => wait,
                Err(error) => return Err(PullError::Ours(format!("our own count of requests: {error}"))),
            };
            if wait > PATIENCE {
                return Err(PullError::RateLimited { who: self.provider.label, retry_after: wait });
            }
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use connectors::pull::ALL;

    use super::*;

    #[test]
    fn never_more_than_a_limit_goes_out_in_its_time() {
        for limit in ALL.iter().flat_map(|provider| provider.limits) {
            let (most, per) = bucket(limit, 1.0);
            let in_its_time = most + most / per.as_secs_f64() * f64::from(limit.per_secs);
            assert!(in_its_time < f64::from(limit.units) + 0.01, "{}: {in_its_time}", limit.name);
            assert!(most >= 1.0, "{}: a request has to wait for itself", limit.name);
        }
    }
}
