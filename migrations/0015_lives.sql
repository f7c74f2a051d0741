-- Who holds what, so that it goes back when its process dies.

-- The name under which a worker holds items and activities, with a number of its own: two processes of a container have the same host and pid. While
-- it lives, a session of its own holds the advisory lock of that name (store::workers::life). `died_at`: when others found it dead and took over.
alter table tributary.workers add column name text, add column died_at timestamptz;

-- The worker whose built-in agent holds the activity, if one does.
alter table public.activities add column locked_worker text;

-- What an agent may be handed, by kind of content: recordings that nobody can hear are passed over unread. On a large table the upkeep task
-- `indexes` builds it (store::indexes::LATER).
do $$
begin
    if (select count(*) from (select from public.activities limit 10001) few) <= 10000 then
        create index activities_claim_idx on public.activities (tenant_id, (raw_data ->> 'source_type'), (coalesce(sales_id, 0)), created_at)
            where processing_status = 'raw';
    end if;
end $$;

-- The key that claimed the activity last. It stays when the lock is gone: an agent's key sees what it has processed of other people's work.
alter table public.activities add column claimed_key uuid;
update public.activities set claimed_key = locked_key where processing_status = 'processing' and locked_key is not null;
