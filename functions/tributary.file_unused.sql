-- tributary.file_unused.sql: removes what was read of a file once no document and no call has its bytes, and what was made of it for a document that has
-- none or others.
-- What a person said about a document stays until the document is deleted.
create or replace function tributary.file_unused() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Of two transactions that remove the last two documents, the second waits here, and then sees what the first has done.
    perform 1 from public.files f where f.tenant_id = old.tenant_id and f.sha256 = old.blob_key for update;
    delete from public.files f
    where f.tenant_id = old.tenant_id and f.sha256 = old.blob_key and not exists (
        select from public.source_documents d
        where d.tenant_id = old.tenant_id and d.blob_key = old.blob_key and d.deleted_at is null)
    and not exists (
        select from tributary.activity_recordings r where r.tenant_id = old.tenant_id and r.blob_key = old.blob_key);
    if tg_op = 'UPDATE' then
        delete from public.document_steps s where s.tenant_id = old.tenant_id and s.document_id = old.id;
        delete from public.document_fields f
        where f.tenant_id = old.tenant_id and f.document_id = old.id and (f.said_by is null or new.deleted_at is not null);
    end if;
    return null;
end $$;
revoke execute on function tributary.file_unused() from public;
create or replace trigger file_unused_after_update after update on public.source_documents for each row
    when (old.blob_key is not null and (new.blob_key is distinct from old.blob_key or (new.deleted_at is not null and old.deleted_at is null)))
    execute function tributary.file_unused();
create or replace trigger file_unused_after_delete after delete on public.source_documents for each row
    when (old.blob_key is not null) execute function tributary.file_unused();
create or replace trigger file_unused_after_delete after delete on tributary.activity_recordings for each row execute function tributary.file_unused();
