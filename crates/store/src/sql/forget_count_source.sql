-- forget_count_source.sql: what goes with tenant $1's source $2, counted up to $3 of a kind; chunks are those of up to $4 documents, whose rows it reads.
select 0::bigint as activities, 0::bigint as files,
    (select count(*) from (select from public.source_documents where tenant_id = $1 and source_id = $2::uuid limit $3) d) as documents,
    (select coalesce(sum(d.n_chunks), 0)::bigint from (
        select n_chunks from public.source_documents where tenant_id = $1 and source_id = $2::uuid limit $4) d) as chunks,
    -- A client with a source has an external_id, and the index knows that.
    (select count(*) from (
        select from public.client_intelligence where tenant_id = $1 and source_id = $2::uuid and external_id is not null limit $3) c) as clients,
    0::bigint as contacts, 0::bigint as sources, 0::bigint as channels, 0::bigint as keys,
    (select count(*) from (select from public.sync_jobs where tenant_id = $1 and source_id = $2::uuid limit $3) j) as jobs
