//! Embeds what could not be embedded when it was remembered: the embedder was away, or answered nonsense.

use domain::{DocumentId, Fault};
use serde::{Deserialize, Serialize};
use store::memory::{VectorTable, chunks, documents};
use uuid::Uuid;

use crate::Env;
use crate::work::{Lane, Lease, Outcome};

#[derive(Serialize, Deserialize)]
pub struct Embed {
    pub document_id: DocumentId,
}

impl Lane for Embed {
    const NAME: &'static str = "embed";
    const BATCH: u32 = 8;
    /// About two days of trying: an embedder may be away for a weekend, and nothing is lost meanwhile.
    const MAX_ATTEMPTS: i32 = 300;

    /// Safe to repeat: only chunks without a vector are embedded, and a text that changed meanwhile is not marked.
    async fn run(self, env: &Env, lease: &Lease) -> Result<Outcome, Fault> {
        let tenant_id = lease.tenant_id()?;
        let table = VectorTable::new(&env.embedder.model().name)?;
        let mut conn = env.db.acquire().await?;
        let Some(pending) = documents::pending(&mut conn, tenant_id, self.document_id).await? else {
            return Ok(Outcome::Done); // embedded, changed or gone since
        };
        let lacking = chunks::without_vectors(&mut conn, tenant_id, &table, self.document_id).await?;
        drop(conn);
        let texts: Vec<&str> = lacking.iter().map(|(_, text)| text.as_str()).collect();
        let vectors = if texts.is_empty() { Vec::new() } else { env.embedder.embed(&texts).await? };
        let mut effect = lease.begin(env).await?;
        let still = documents::lock(&mut effect, tenant_id, &[pending.id]).await?;
        if still.first().is_some_and(|now| now.revision == pending.revision && !now.is_deleted) {
            let rows: Vec<(Uuid, Uuid, &[f32])> =
                lacking.iter().zip(&vectors).map(|((id, _), vector)| (*id, pending.id, vector.as_slice())).collect();
            chunks::insert_vectors(&mut effect, tenant_id, &table, &rows).await?;
            documents::mark_embedded(&mut effect, tenant_id, &pending, &table).await?;
        }
        effect.commit().await
    }
}
