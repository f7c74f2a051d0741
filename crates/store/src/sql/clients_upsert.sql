-- clients_upsert.sql: writes what was derived of tenant $1's clients of source $2, in the order of their names; what is the same is left alone. A record
-- whose keys or name changed is marked to be matched again.
insert into public.client_intelligence as c (id, tenant_id, source_id, external_id, client_name, industry, summary, key_facts, evidence, document_id,
    identity, keys, created_at, updated_at)
select r.id, $1, $2::uuid, r.external_id, r.client_name, r.industry, r.summary, r.key_facts, r.evidence, r.document_id,
    r.identity, tributary.client_keys(($2::uuid)::text || '/' || r.external_id, r.identity), coalesce($11, now()), coalesce($11, now())
from unnest($3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::jsonb[], $9::jsonb[], $10::uuid[], $12::jsonb[]) r (
    id, external_id, client_name, industry, summary, key_facts, evidence, document_id, identity)
order by r.external_id
on conflict (source_id, external_id) where source_id is not null and external_id is not null
do update set client_name = excluded.client_name, industry = excluded.industry, summary = excluded.summary, key_facts = excluded.key_facts,
    evidence = excluded.evidence, document_id = excluded.document_id, identity = excluded.identity, keys = excluded.keys, updated_at = excluded.updated_at,
    marks = c.marks + ((c.client_name, c.keys) is distinct from (excluded.client_name, excluded.keys))::int
where (c.client_name, c.industry, c.summary, c.key_facts, c.evidence, c.document_id, c.identity, c.keys)
    is distinct from (excluded.client_name, excluded.industry, excluded.summary, excluded.key_facts, excluded.evidence, excluded.document_id,
        excluded.identity, excluded.keys)
