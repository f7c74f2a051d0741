-- forget_count_tenant.sql: what goes with tenant $1 ($2 is its id too), counted up to $3 of a kind. Chunks are not counted: that would read every document.
select (select count(*) from (select from public.activities where tenant_id = $1 limit $3) a) as activities,
    (select count(*) from (select from tributary.activity_attachments where tenant_id = $1 limit $3) f)
        + (select count(*) from (select from tributary.activity_recordings where tenant_id = $1 limit $3) f) as files,
    (select count(*) from (select from public.source_documents where tenant_id = $1 and $2 = $1::text limit $3) d) as documents,
    0::bigint as chunks,
    (select count(*) from (select from public.client_intelligence where tenant_id = $1 limit $3) c) as clients,
    (select count(*) from (select from public.contacts where tenant_id = $1 limit $3) c) as contacts,
    (select count(*) from public.connected_sources where tenant_id = $1) as sources,
    (select count(*) from public.ingestion_providers where tenant_id = $1) as channels,
    (select count(*) from tributary.api_keys where tenant_id = $1) as keys,
    (select count(*) from (select from public.sync_jobs where tenant_id = $1 limit $3) j) as jobs
