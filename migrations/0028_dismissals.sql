-- Fills what the migration before has added. Only writers of the same rows wait for it.

-- The provenance comes when they are derived again.
update public.client_intelligence set client_id = id where client_id is null;
-- A client that a person wrote before is matched by its name.
update public.client_intelligence set identity = jsonb_build_object('kind', 'organisation', 'names', jsonb_build_array(client_name)) where source_id is null;
alter table public.client_intelligence validate constraint client_intelligence_client_check;
-- Records that were derived before have no keys yet.
insert into tributary.dirty_clients (tenant_id, source_id, external_id)
select tenant_id, source_id, external_id from public.client_intelligence where source_id is not null
order by source_id, external_id
on conflict (source_id, external_id) do update set marks = tributary.dirty_clients.marks + 1;

-- What a person does not want to see on Home for a while. A dismissal ends with its cause (store::alerts::reconcile), or when it is over.
-- Retention: a day after it is over (task `retention`).
create table tributary.dismissals (
    tenant_id uuid not null references public.tenants (id) on delete cascade,
    kind text not null,
    subject text not null,
    dismissed_by text not null,
    until timestamptz not null,
    primary key (tenant_id, kind, subject)
);
create index dismissals_until_idx on tributary.dismissals (until);
select tributary.protect('tributary.dismissals');
