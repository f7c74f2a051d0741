//! Pictures of the pages of files, which are kept for a while after somebody has looked at them.

use domain::TenantId;
use sqlx::PgConnection;

use crate::Result;

/// The picture of a page, as a JPEG. None: the page cannot be drawn.
pub type Picture = Option<Vec<u8>>;

/// Reads the picture of a page of one of the caller's files. None: nobody has drawn it lately.
pub async fn get(conn: &mut PgConnection, tenant_id: TenantId, key: &str, page: i32) -> Result<Option<Picture>> {
    Ok(sqlx::query_scalar(
        "select picture from public.file_previews where tenant_id = $1 and sha256 = $2 and page = $3",
    )
    .bind(tenant_id.0)
    .bind(key)
    .bind(page)
    .fetch_optional(conn)
    .await?)
}

/// Keeps the picture of a page, unless its file is gone.
pub async fn keep(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    key: &str,
    page: i32,
    picture: Option<&[u8]>,
) -> Result<()> {
    sqlx::query(
        "insert into public.file_previews (tenant_id, sha256, page, picture)
         select f.tenant_id, f.sha256, $3, $4 from public.files f where f.tenant_id = $1 and f.sha256 = $2 for key share
         on conflict (tenant_id, sha256, page) do nothing",
    )
    .bind(tenant_id.0)
    .bind(key)
    .bind(page)
    .bind(picture)
    .execute(conn)
    .await?;
    Ok(())
}
