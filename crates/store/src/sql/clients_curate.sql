-- clients_curate.sql: writes the facts $4 to $7 that people said about a client as tenant $1's row $2, if they had said $11 before (null: nothing).
insert into public.client_intelligence as c (id, tenant_id, client_name, industry, summary, key_facts, said, identity, keys, document_id, created_at, updated_at)
select $2, $1, $3, $4, $5, $6, $7, $8, tributary.client_keys('hand/' || $2::uuid, $8), $9, coalesce($10, now()), coalesce($10, now())
where $11::jsonb is null or exists (select from public.client_intelligence where tenant_id = $1 and id = $2)
on conflict (tenant_id, id) do update
set client_name = excluded.client_name, industry = excluded.industry, summary = excluded.summary, key_facts = excluded.key_facts, said = excluded.said,
    identity = excluded.identity, keys = excluded.keys, document_id = excluded.document_id, updated_at = excluded.updated_at, marks = c.marks + 1
where c.source_id is null and c.said = $11
