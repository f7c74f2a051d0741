-- The removal of blobs is fenced, keys may expire, and the original of an activity is found by the activity.

-- The removal of a blob's object is fenced. An object has one of two names (`is_second`). A row that is being removed (`removing_at`) is revived by a
-- writer of the same bytes, who writes the other name: a removal that stalls and lands late hits a name that nobody reads any more. A name is written
-- again only a day after the last removal of it was asked for: `removed_at` says when the store confirmed one, `stray_at` that the name which is not in
-- use may still have an object.
alter table tributary.blobs
    add column is_second boolean not null default false,
    add column removing_at timestamptz,
    add column removed_at timestamptz,
    add column stray_at timestamptz;
create index blobs_leaving_idx on tributary.blobs (tenant_id, sha256) where removing_at is not null or stray_at is not null;

-- An activity that is removed looks for its original. On a large table the upkeep task `indexes` builds it (store::indexes::LATER).
do $$
begin
    if (select count(*) from (select from tributary.activity_payloads limit 10001) few) <= 10000 then
        create index activity_payloads_activity_idx on tributary.activity_payloads (activity_id);
    end if;
end $$;

-- Until when a key is accepted. Null: until it is revoked. Retention: keys that expire go 30 days after that (task `retention`).
alter table tributary.api_keys add column expires_at timestamptz;
create index api_keys_expires_idx on tributary.api_keys (expires_at) where expires_at is not null;
-- Keys that were made for frames before keys could expire.
update tributary.api_keys set expires_at = coalesce(revoked_at, now() + interval '7 days')
    where name like 'frame http%' and scopes = '{agent}' and sales_id is not null;

-- Master keys that a rotation has taken out of use, by their id. Whoever has just sealed a secret with one seals it again (store::vault), so that no row
-- gets such a key after the rotation's last look. Retention: kept; a rotation adds one row.
create table tributary.retired_keys (
    key_id text primary key,
    retired_at timestamptz not null default now()
);
alter table tributary.retired_keys enable row level security;
alter table tributary.retired_keys force row level security;
create policy service on tributary.retired_keys to tributary_owner, service_role using (true) with check (true);
grant select, insert, delete on tributary.retired_keys to service_role;
