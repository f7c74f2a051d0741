//! OAuth states. A state is valid once, for the session it was created for.

use domain::{Secret, SourceId, TenantId, Transport};
use sha2::{Digest, Sha256};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;
use crate::vault::Vault;

/// The purpose of a visit to a provider.
#[derive(Debug)]
pub struct Trip {
    pub tenant_id: TenantId,
    /// The source to reconnect; `None` connects a new one.
    pub source_id: Option<SourceId>,
    pub verifier: Secret,
    pub redirect_uri: String,
    pub transport: Transport,
}

/// Stores a visit under its state.
pub async fn start(
    conn: &mut PgConnection,
    vault: &Vault,
    provider: &str,
    state: &Secret,
    session: &[u8],
    trip: &Trip,
) -> Result<()> {
    let verifier_id = Uuid::now_v7();
    vault.put(conn, trip.tenant_id, verifier_id, &trip.verifier).await?;
    sqlx::query(
        "insert into tributary.oauth_states (hash, tenant_id, session_hash, provider, source_id, verifier_vault_id, redirect_uri, transport)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(hash(state))
    .bind(trip.tenant_id.0)
    .bind(session)
    .bind(provider)
    .bind(trip.source_id.map(|id| id.0))
    .bind(verifier_id)
    .bind(&trip.redirect_uri)
    .bind(trip.transport.as_str())
    .execute(conn)
    .await?;
    Ok(())
}

/// Takes the visit of this state: only once, within ten minutes, and for the same provider, tenant and session. An attempt with another
/// session uses the state up too.
pub async fn finish(
    conn: &mut PgConnection,
    vault: &Vault,
    provider: &str,
    tenant_id: TenantId,
    state: &Secret,
    session: &[u8],
) -> Result<Option<Trip>> {
    let row: Option<Row> = sqlx::query_as(
        "delete from tributary.oauth_states where hash = $1
         returning tenant_id, session_hash, provider, source_id, verifier_vault_id, redirect_uri, transport,
             created_at > now() - interval '10 minutes' as is_fresh",
    )
    .bind(hash(state))
    .fetch_optional(&mut *conn)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let verifier = vault.get(conn, TenantId(row.tenant_id), row.verifier_vault_id).await?;
    vault.remove(conn, TenantId(row.tenant_id), row.verifier_vault_id).await?;
    let is_theirs = row.tenant_id == tenant_id.0 && row.session_hash == session && row.provider == provider;
    Ok(verifier.filter(|_| is_theirs && row.is_fresh).map(|verifier| Trip {
        tenant_id,
        source_id: row.source_id.map(SourceId),
        verifier,
        redirect_uri: row.redirect_uri,
        transport: row.transport,
    }))
}

#[derive(sqlx::FromRow)]
struct Row {
    tenant_id: Uuid,
    session_hash: Vec<u8>,
    provider: String,
    source_id: Option<Uuid>,
    verifier_vault_id: Uuid,
    redirect_uri: String,
    #[sqlx(try_from = "String")]
    transport: Transport,
    is_fresh: bool,
}

fn hash(state: &Secret) -> Vec<u8> {
    Sha256::digest(state.reveal().as_bytes()).to_vec()
}
