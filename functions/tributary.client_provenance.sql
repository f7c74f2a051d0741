-- tributary.client_provenance.sql: keeps the model and the hash of the text that a client's vectors are of the same as its document's. A new record
-- leads a client of its own until it is matched.
create or replace function tributary.client_provenance() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_table_name = 'source_documents' then
        update public.client_intelligence c set embedding_model = new.embedding_model, embedding_text_sha256 = new.embedding_text_sha256
        where c.tenant_id = new.tenant_id and c.document_id = new.id;
        return null;
    end if;
    new.client_id := coalesce(new.client_id, new.id);
    select d.embedding_model, d.embedding_text_sha256 into new.embedding_model, new.embedding_text_sha256
    from public.source_documents d where d.tenant_id = new.tenant_id and d.id = new.document_id;
    return new;
end $$;
revoke execute on function tributary.client_provenance() from public;
create or replace trigger client_provenance before insert or update of document_id on public.client_intelligence
    for each row execute function tributary.client_provenance();
create or replace trigger client_provenance after update of embedding_model, embedding_text_sha256 on public.source_documents
    for each row when (new.document_type = 'client' and (old.embedding_model, old.embedding_text_sha256)
        is distinct from (new.embedding_model, new.embedding_text_sha256))
    execute function tributary.client_provenance();
