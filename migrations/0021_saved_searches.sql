-- Saved searches: questions that people ask again, and when somebody last looked at what is new for each.

-- `query` is what was asked: text, mode and filters. Retention: until a person removes it; 100 of a tenant at most.
create table public.saved_searches (
    id uuid not null,
    tenant_id uuid not null references public.tenants (id) on delete cascade,
    name text not null check (length(name) between 1 and 100),
    query jsonb not null,
    created_by text not null,
    created_at timestamptz not null default now(),
    -- Documents that were stored after that are new.
    seen_at timestamptz not null default now(),
    primary key (tenant_id, id)
);
create unique index saved_searches_name_key on public.saved_searches (tenant_id, lower(name));
select tributary.protect('public.saved_searches');
grant select on public.saved_searches to authenticated;
