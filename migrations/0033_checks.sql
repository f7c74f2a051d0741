-- Checks of mailboxes: a day is asked for, counted, and looked at again after a sync before anybody is told that something is missing.

alter table public.connected_sources
    -- The first sync of a mailbox was capped: letters that came in before this time were not read. Null: everything was.
    add column read_from timestamptz;

-- One row is one day (UTC) of one mailbox. Each letter that the provider counts is in exactly one of the numbers.
alter table public.mailbox_checks
    alter column checked_at drop default,
    alter column checked_at drop not null,
    alter column n_provider set default 0,
    alter column n_stored set default 0,
    -- new: never counted. reading: differences that a sync which began later has not settled yet. not_read: before `read_from`. unknown: it could
    -- not be counted, see `note`.
    add column state text not null default 'new' check (state in ('new', 'reading', 'equal', 'differs', 'not_read', 'unknown')),
    -- Somebody waits for it to be counted. Null: nobody does.
    add column asked_at timestamptz,
    add column asked_by text check (length(asked_by) <= 100),
    add column n_skipped int not null default 0,
    -- Documents that a person deleted, and records that a person left out.
    add column n_kept_out int not null default 0,
    -- Came in, or was moved, while it was being compared.
    add column n_waiting int not null default 0,
    -- Here, but no longer counted by the provider, and too new to be judged.
    add column n_leaving int not null default 0,
    add column n_not_read int not null default 0,
    add column n_missing int not null default 0,
    add column n_surplus int not null default 0,
    -- While it is being settled: the differences that were seen, when, and before which sync.
    add column suspects jsonb,
    add column note text check (length(note) <= 500),
    add constraint mailbox_checks_whole
        check (n_provider = n_stored + n_skipped + n_kept_out + n_failed + n_waiting + n_not_read + n_missing),
    add constraint mailbox_checks_state check ((state = 'differs') = (n_missing + n_surplus > 0)),
    add constraint mailbox_checks_asked check ((asked_at is null) = (asked_by is null)),
    add constraint mailbox_checks_named check (cardinality(missing) <= 1000 and cardinality(surplus) <= 1000);
create index mailbox_checks_asked_idx on public.mailbox_checks (tenant_id, source_id) where asked_at is not null;
create index mailbox_checks_differs_idx on public.mailbox_checks (tenant_id, source_id) where state = 'differs';
