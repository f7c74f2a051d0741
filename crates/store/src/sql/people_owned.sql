-- people_owned.sql: counts what belongs to person $2 of tenant $1 at $4, each up to $3.
select
    (select count(*) from (select from public.ingestion_providers where tenant_id = $1 and sales_id = $2 limit $3) t) as channels,
    (select count(*) from (select from public.activities where tenant_id = $1 and sales_id = $2 limit $3) t) as activities,
    (select count(*) from (select from public.contacts where tenant_id = $1 and sales_id = $2 limit $3) t) as contacts,
    (select count(*) from (select from tributary.api_keys where tenant_id = $1 and sales_id = $2 and revoked_at is null and not is_sign_in limit $3) t) as keys,
    (select count(*) from (select from public.crm_processing_nodes where tenant_id = $1 and sales_id = $2 limit $3) t) as devices,
    (select count(*) from (
        select from tributary.sessions s join tributary.api_keys k on k.tenant_id = s.tenant_id and k.id = s.key_id
        where k.tenant_id = $1 and k.sales_id = $2 and k.revoked_at is null and s.expires_at > coalesce($4, now()) limit $3) t) as sessions
