-- contact_merge_begin.sql: records, as $1, that tenant $2's contact $4 becomes part of contact $3: $4 as it is, and what $3 has of its own.
insert into public.contact_merges (id, tenant_id, contact_id, merged, activities, documents, merged_by, merged_at)
select $1, $2, i.id,
    jsonb_build_object(
        'contact', to_jsonb(f) - 'tenant_id',
        'before', to_jsonb(i) - 'tenant_id',
        'keys', (select coalesce(jsonb_agg(distinct jsonb_build_object('address', k.address, 'origin', k.origin)), '[]') from public.contact_keys k
            where k.tenant_id = $2 and k.contact_id = f.id and k.address is not null),
        'own', (select coalesce(jsonb_agg(distinct k.address), '[]') from public.contact_keys k
            where k.tenant_id = $2 and k.contact_id = i.id and k.address is not null and k.origin = 'added'),
        'decisions', (select coalesce(jsonb_agg(to_jsonb(d)), '[]') from public.client_decisions d
            where d.tenant_id = $2 and d.record = 'contact/' || f.id),
        'searches', (select coalesce(jsonb_agg(s.id), '[]') from public.saved_searches s
            where s.tenant_id = $2 and s.query #>> '{filters,contact}' = f.id::text),
        'merges', (select coalesce(jsonb_agg(to_jsonb(m)), '[]') from public.contact_merges m where m.tenant_id = $2 and m.contact_id = f.id)),
    '{}', '{}', $5, coalesce($6, now())
from public.contacts i join public.contacts f on f.tenant_id = i.tenant_id
where i.tenant_id = $2 and i.id = $3 and f.id = $4
