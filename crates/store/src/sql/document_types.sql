-- document_types.sql: every type among the caller's documents. Each is found by one index lookup, however many documents have it.
with recursive types as (
    (select document_type from public.source_documents where tenant_id = (select tributary.tenant()) order by document_type limit 1)
    union all
    select (
        select d.document_type from public.source_documents d
        where d.tenant_id = (select tributary.tenant()) and d.document_type > t.document_type
        order by d.document_type limit 1
    )
    from types t where t.document_type is not null
)
select document_type from types where document_type is not null limit 200
