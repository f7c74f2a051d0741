-- Senders that a person does not want to see among the unrecognised ones. Their events are stored and processed like all others.
-- `address` is as tributary.party gives it. Retention: until a person undoes it, or forgets the contact that has the address.
create table tributary.ignored_senders (
    tenant_id uuid not null references public.tenants (id) on delete cascade,
    address text not null check (length(address) between 1 and 1000),
    ignored_by text not null,
    created_at timestamptz not null default now(),
    primary key (tenant_id, address)
);
select tributary.protect('tributary.ignored_senders');
