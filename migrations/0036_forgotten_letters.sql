-- Letters of people who are forgotten, and activities of channels on mailboxes that are deleted.

-- Of a contact that is being forgotten: the keys of its e-mail addresses, by which what is left of it is found. They go when the removal is complete.
alter table public.forgotten
    add column address_keys text[],
    add constraint forgotten_address_keys_check check (done_at is null or address_keys is null);

-- Letters that came from a contact that was forgotten, or went to it. They stay out.
create index processed_messages_forgotten_idx on public.processed_messages (tenant_id, source_id, message_id) where skip_reason = 'forgotten';

-- Of a channel's source: the mailbox whose letters are the channel's events. It stays when the channel is deleted, so that a late result is still
-- remembered onto its letter's document.
alter table public.connected_sources add column mailbox_id uuid check (mailbox_id is null or provider = 'channel');
update public.connected_sources s set mailbox_id = (p.config ->> 'source_id')::uuid
from public.ingestion_providers p where p.tenant_id = s.tenant_id and p.id = s.id and p.config ? 'source_id' and s.provider = 'channel';
create index connected_sources_on_mailbox_idx on public.connected_sources (tenant_id, mailbox_id) where mailbox_id is not null;
