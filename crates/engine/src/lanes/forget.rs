//! Forgets a source, a contact or a tenant: removes what belongs to it bite by bite, and at last the thing itself.
//!
//! Two lanes do the same: messages of `forget` name a source, as older programs know it; those of `forget_all` a contact or a tenant.

use std::time::Duration;

use domain::{Fault, Notice, Op, SourceId, SourceStatus, TenantId};
use serde::{Deserialize, Serialize};
use store::crash::{self, Point};
use store::forgotten::{self, Bite, BiteCursor, Subject};
use store::memory::{VectorTable, codes, maintain, postings};
use store::{sources, tenants};
use uuid::Uuid;

use crate::Env;
use crate::work::{Lane, Lease, Outcome};

/// A tenant that is being forgotten is left alone for so long: by then every process refuses its keys and channels, and what was under way is over.
const QUIET: Duration = Duration::from_secs(30);
/// How long a removal waits for a backup, which copies every object.
const WHILE_COPIED: Duration = Duration::from_secs(60);
const COPYING: &str = "a backup is being made";
const MAX_RUN: Duration = Duration::from_secs(6 * 3_600);

#[derive(Serialize, Deserialize)]
pub struct Forget {
    pub source_id: SourceId,
    pub forgotten_id: Uuid,
}

impl Lane for Forget {
    const NAME: &'static str = "forget";
    const IS_LONG: bool = true;
    const MAX_RUN: Duration = MAX_RUN;

    /// Safe to repeat: each commit removes rows and counts them.
    async fn run(self, env: &Env, lease: &Lease) -> Result<Outcome, Fault> {
        let (whose, subject) = (lease.tenant_id()?, Subject::Source(self.source_id));
        Removal { env, lease, whose, tenant_id: whose, subject, forgotten_id: self.forgotten_id }.run().await
    }
}

/// The message is of the tenant that keeps the record: a tenant's own rows go, so its record is the operator's.
#[derive(Serialize, Deserialize)]
pub struct ForgetAll {
    #[serde(flatten)]
    pub subject: Subject,
    pub forgotten_id: Uuid,
}

impl Lane for ForgetAll {
    const NAME: &'static str = "forget_all";
    const IS_LONG: bool = true;
    const MAX_RUN: Duration = MAX_RUN;

    /// Safe to repeat: each commit removes rows and counts them.
    async fn run(self, env: &Env, lease: &Lease) -> Result<Outcome, Fault> {
        let (whose, subject) = (lease.tenant_id()?, self.subject);
        let tenant_id = if let Subject::Tenant(id) = subject { id } else { whose };
        Removal { env, lease, whose, tenant_id, subject, forgotten_id: self.forgotten_id }.run().await
    }
}

struct Removal<'a> {
    env: &'a Env,
    lease: &'a Lease,
    /// The tenant that keeps the record.
    whose: TenantId,
    /// The tenant whose rows go.
    tenant_id: TenantId,
    subject: Subject,
    forgotten_id: Uuid,
}

impl Removal<'_> {
    async fn run(&self) -> Result<Outcome, Fault> {
        if let Subject::Tenant(id) = self.subject
            && let Some(wait) = self.quiet_left(id).await?
        {
            return Ok(Outcome::Snooze(wait, "until every process refuses the tenant's keys and channels"));
        }
        // A round that finds nothing is the last one: rows may have come while others went.
        loop {
            let mut gone = 0;
            if let Subject::Tenant(id) = self.subject {
                let Some(n_objects) = self.remove_objects(id).await? else {
                    return Ok(Outcome::Snooze(WHILE_COPIED, COPYING));
                };
                gone += n_objects;
            }
            let mut conn = self.env.db.acquire().await?;
            let bites = forgotten::bites(&mut conn, self.subject).await?;
            drop(conn);
            for bite in &bites {
                let mut next = Some(BiteCursor::Start);
                while let Some(from) = next {
                    let Some(bitten) = self.bite(bite, from).await? else {
                        return Ok(Outcome::Cancel("its source was connected again"));
                    };
                    gone += bitten.gone;
                    next = bitten.next;
                }
            }
            if let Subject::Tenant(id) = self.subject {
                maintain::drop_indexes(&self.env.db, id).await?;
            }
            if gone == 0 {
                self.purge_postings().await?;
                self.purge_codes().await?;
                if let Some(outcome) = self.finish().await? {
                    return Ok(outcome);
                }
            }
        }
    }

    /// Writes the tenant's segments anew, each in a commit of its own, without the words of what is gone.
    async fn purge_postings(&self) -> Result<(), Fault> {
        let mut conn = self.env.db.acquire().await?;
        let ids = postings::segment_ids(&mut conn, self.tenant_id).await?;
        drop(conn);
        for id in ids {
            let mut step = self.lease.begin_step(self.env).await?;
            postings::merge(&mut step, self.tenant_id, &[id]).await?;
            crash::at(Point::ForgetBeforeCommit)?;
            step.commit().await?;
        }
        Ok(())
    }

    /// Writes the tenant's codes anew, each segment in a commit of its own, without those of what is gone: a code tells nearly what its vector tells.
    async fn purge_codes(&self) -> Result<(), Fault> {
        let mut conn = self.env.db.acquire().await?;
        let segments = codes::segments(&mut conn, self.tenant_id).await?;
        drop(conn);
        for (model, id) in segments {
            let mut step = self.lease.begin_step(self.env).await?;
            codes::merge(&mut step, self.tenant_id, &VectorTable::new(&model)?, &[id]).await?;
            crash::at(Point::ForgetBeforeCommit)?;
            step.commit().await?;
        }
        Ok(())
    }

    /// How long the tenant is still left alone.
    async fn quiet_left(&self, id: TenantId) -> Result<Option<Duration>, Fault> {
        let mut conn = self.env.db.acquire().await?;
        let passed = tenants::forgetting_for(&mut conn, self.env.clock.sql(), id).await?;
        Ok(passed.and_then(|passed| QUIET.checked_sub(passed)).filter(|left| !left.is_zero()))
    }

    /// Removes the tenant's objects and returns how many. None: a backup is being made.
    async fn remove_objects(&self, id: TenantId) -> Result<Option<u64>, Fault> {
        let gone = self.env.blobs.remove_all(&self.env.db, id).await?;
        crash::at(Point::ForgetObjects)?;
        Ok(gone)
    }

    /// Removes one bite in a commit of its own. None: it must not go any more.
    async fn bite(&self, bite: &Bite, from: BiteCursor) -> Result<Option<forgotten::Bitten>, Fault> {
        let mut effect = self.lease.begin_step(self.env).await?;
        if let Subject::Source(id) = self.subject {
            // A buried item may be replayed after somebody has connected the account again.
            let status = sources::locked_status(&mut effect, self.tenant_id, id).await?;
            if status.is_some_and(|status| status != SourceStatus::Disconnected) {
                return Ok(None);
            }
        }
        let bitten = forgotten::bite(&mut effect, self.tenant_id, self.subject, bite, from).await?;
        for (kind, n) in bitten.counted.iter().filter(|(_, n)| *n > 0) {
            forgotten::note(&mut effect, self.whose, self.forgotten_id, kind, *n).await?;
        }
        if bitten.gone > 0 {
            effect.notify(self.changed());
            crash::at(Point::ForgetBeforeCommit)?;
        }
        effect.commit().await?;
        Ok(Some(bitten))
    }

    /// Removes the thing itself with the message. None: something of it has come meanwhile.
    async fn finish(&self) -> Result<Option<Outcome>, Fault> {
        if let Subject::Tenant(id) = self.subject {
            // The tenant goes first, and then its objects once more: a file that was on its way when its row went would lie there for ever. Another
            // attempt finds no tenant, and does the same.
            let mut effect = self.lease.begin_step(self.env).await?;
            if !forgotten::remove_subject(&mut effect, self.tenant_id, self.subject).await? {
                return Ok(None);
            }
            effect.commit().await?;
            if self.remove_objects(id).await?.is_none() {
                return Ok(Some(Outcome::Snooze(WHILE_COPIED, COPYING)));
            }
        }
        let mut effect = self.lease.begin(self.env).await?;
        if !forgotten::remove_subject(&mut effect, self.tenant_id, self.subject).await? {
            return Ok(None);
        }
        forgotten::finish(&mut effect, self.env.clock.sql(), self.whose, self.forgotten_id).await?;
        effect.notify(self.changed());
        crash::at(Point::ForgetLast)?;
        effect.commit().await.map(Some)
    }

    /// The notice that makes pages look again.
    fn changed(&self) -> Notice {
        let id = self.forgotten_id.to_string();
        match self.subject {
            Subject::Source(id) => sources::changed(self.tenant_id, id),
            _ => Notice { tenant_id: Some(self.whose), kind: "forgotten".into(), id, op: Op::Update, ids: Vec::new() },
        }
    }
}
