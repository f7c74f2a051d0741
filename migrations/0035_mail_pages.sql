-- The order in which people read mail: the newest letters of a tenant and of a mailbox, and the letters of a conversation. Large tables get these indexes
-- later, by the upkeep task `indexes` (crates/store/src/indexes.rs), which names them too. Not `coalesce`: under row security no index serves a
-- comparison with it, because PostgreSQL takes it for something that may tell what it is given.
do $$
begin
    if (select count(*) from (select from public.source_documents limit 10001) few) <= 10000 then
        create index source_documents_letters_idx on public.source_documents
            (tenant_id, (case when source_created_at is null then created_at else source_created_at end), id)
            where document_type like '%.message' and deleted_at is null;
        create index source_documents_mailbox_idx on public.source_documents
            (tenant_id, source_id, (case when source_created_at is null then created_at else source_created_at end), id)
            where document_type like '%.message' and deleted_at is null;
        create index source_documents_thread_idx on public.source_documents (tenant_id, source_id, thread_id) where thread_id is not null;
    end if;
end $$;
