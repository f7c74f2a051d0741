-- Letters: which places of a mailbox are read, and what its rules see of a letter.

-- The places of a mailbox that are read. Null: inbox, other folders and what was sent.
alter table public.connected_sources
    add column mail_places text[] check (cardinality(mail_places) > 0 and mail_places <@ '{inbox,sent,drafts,spam,deleted,other}');

-- Letters as rules see them, so that a change of rules can be tried on those of the last days. Retention: 35 days after a letter came (task
-- `retention`), or as long as its source.
create table public.mail_facts (
    source_id uuid not null,
    message_id text not null check (length(message_id) between 1 and 900),
    tenant_id uuid not null,
    received_at timestamptz not null,
    facts jsonb not null,
    primary key (source_id, message_id),
    foreign key (tenant_id, source_id) references public.connected_sources (tenant_id, id) on delete cascade
);
create index mail_facts_source_idx on public.mail_facts (tenant_id, source_id, received_at);
create index mail_facts_received_idx on public.mail_facts (received_at);
select tributary.protect('public.mail_facts');
grant select on public.mail_facts to authenticated;

-- Counts of what was left out, by reason.
create index processed_messages_reason_idx on public.processed_messages (source_id, skip_reason, received_at) where skip_reason is not null;

-- A channel on a mailbox has no URL, so no key: its config names the mailbox and a query.
alter table public.ingestion_providers
    alter column ingestion_key_hash drop not null,
    add check (ingestion_key_hash is not null or config ? 'source_id');
