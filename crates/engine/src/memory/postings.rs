//! Keeps the postings by which keywords are found: segments of fresh chunks, and large segments of small ones.

use domain::{Fault, TenantId};
use store::crash::{self, Point};
use store::memory::postings::{self, Segments};

use crate::Env;

/// Makes segments for every tenant that has `least` fresh chunks, and merges small ones. Each is one commit: a crash loses the work since the last
/// one and nothing else, because a search finds a chunk among the fresh ones until its segment is committed.
pub async fn keep(env: &Env, least: i64) -> Result<(), Fault> {
    let mut conn = env.db.acquire().await?;
    let tenants = postings::segments(&mut conn).await?;
    drop(conn);
    // A tenant for whom something fails holds up no other.
    let mut failed = None;
    for tenant in &tenants {
        failed = keep_one(env, tenant, least).await.err().or(failed);
    }
    failed.map_or(Ok(()), Err)
}

async fn keep_one(env: &Env, tenant: &Segments, least: i64) -> Result<(), Fault> {
    let tenant_id = TenantId(tenant.tenant_id);
    if let Some(ids) = tenant.to_merge() {
        let mut tx = env.db.begin().await?;
        postings::merge(&mut tx, tenant_id, &ids).await?;
        crash::at(Point::PostingsBeforeCommit)?;
        tx.commit().await?;
    }
    let mut n_fresh = tenant.n_fresh;
    while n_fresh >= least {
        let mut tx = env.db.begin().await?;
        let n_taken = i64::try_from(postings::flush(&mut tx, tenant_id).await?).unwrap_or(i64::MAX);
        crash::at(Point::PostingsBeforeCommit)?;
        tx.commit().await?;
        n_fresh = if n_taken > 0 { n_fresh - n_taken } else { 0 };
    }
    Ok(())
}
