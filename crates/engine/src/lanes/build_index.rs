//! Builds the index over a large tenant's vectors, without blocking writers or searches.

use std::time::Duration;

use domain::Fault;
use serde::{Deserialize, Serialize};
use store::memory::{VectorTable, maintain};

use crate::Env;
use crate::work::{Lane, Lease, Outcome};

#[derive(Serialize, Deserialize)]
pub struct BuildIndex {
    pub model: String,
}

impl Lane for BuildIndex {
    const NAME: &'static str = "build_index";
    const IS_LONG: bool = true;
    const MAX_RUN: Duration = Duration::from_secs(12 * 3_600);

    /// Safe to repeat: a valid index is kept, a broken one is built again. Until the effect commits, searches stay exact.
    async fn run(self, env: &Env, lease: &Lease) -> Result<Outcome, Fault> {
        let (tenant_id, table) = (lease.tenant_id()?, VectorTable::new(&self.model)?);
        maintain::build_index(&env.db, tenant_id, &table).await?;
        let mut effect = lease.begin(env).await?;
        maintain::use_index(&mut effect, tenant_id, &table).await?;
        effect.commit().await
    }
}
