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
