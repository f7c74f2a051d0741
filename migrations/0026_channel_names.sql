-- A channel is named by its name, so two of a tenant cannot have the same one, in whatever case it is written.

-- Nobody adds a channel meanwhile.
lock table public.ingestion_providers in share row exclusive mode;

-- Of channels that share a name, the oldest keeps it. The others get the end of their id.
update public.ingestion_providers p
set name = left(p.name, 85) || ' ' || right(p.id::text, 12)
where exists (
    select from public.ingestion_providers older
    where older.tenant_id = p.tenant_id and lower(older.name) = lower(p.name)
        and (older.created_at, older.id) < (p.created_at, p.id)
);
create unique index ingestion_providers_name_key on public.ingestion_providers (tenant_id, lower(name));

-- A channel's documents are found by the name of its source.
update public.connected_sources s set name = p.name from public.ingestion_providers p
where s.tenant_id = p.tenant_id and s.id = p.id and s.provider = 'channel' and s.name <> p.name;
