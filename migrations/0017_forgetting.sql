-- Contacts and tenants can be forgotten, and how far it is can be seen.

-- What there was when it was asked for; `removed` says how much of it is gone.
alter table public.forgotten add column counted jsonb not null default '{}';

-- Since when the tenant is being forgotten. From then on its keys are refused and its channels are unknown.
alter table public.tenants add column forgetting_at timestamptz;

-- A key that is removed looks for its sessions. On a large table the upkeep task `indexes` builds it (store::indexes::LATER).
do $$
begin
    if (select count(*) from (select from tributary.sessions limit 10001) few) <= 10000 then
        create index sessions_key_idx on tributary.sessions (tenant_id, key_id);
    end if;
end $$;

-- How many documents the tenant has, as of the last count (task `memory`). Pages count up to 1,000 themselves, and show this from there on.
alter table memory.tenants add column n_documents bigint not null default 0;
grant select (tenant_id, n_documents) on memory.tenants to authenticated;

-- Documents that wait for vectors are counted along an index and up to a number. By one on the tenant alone there is no order to follow, and a plan
-- may read the whole table. On a large table the upkeep task `indexes` builds it (store::indexes::LATER), and the old one stays.
do $$
begin
    if (select count(*) from (select from public.source_documents limit 10001) few) <= 10000 then
        create index source_documents_waiting_idx on public.source_documents (tenant_id, id) where embedding_model is null and n_chunks > 0;
        drop index public.source_documents_pending_idx;
    end if;
end $$;
