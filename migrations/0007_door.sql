-- The door: every channel kind, whom an event is from, and what was refused.

-- Addresses of contacts, in the one form in which they are looked up. Rows of origin `contact` are kept by a trigger from the contact's own
-- columns; `added` ones were linked by a person. Several contacts may share an address: the one there longest is meant.
create table public.contact_keys (
    tenant_id uuid not null,
    kind text not null check (kind in ('email', 'phone', 'digits')),
    key text not null check (length(key) between 1 and 320),
    contact_id bigint not null,
    origin text not null default 'contact' check (origin in ('contact', 'added')),
    -- As it was given.
    address text,
    primary key (tenant_id, kind, key, contact_id),
    foreign key (tenant_id, contact_id) references public.contacts (tenant_id, id) on delete cascade
);
create index contact_keys_contact_idx on public.contact_keys (tenant_id, contact_id);
select tributary.protect('public.contact_keys');
grant select on public.contact_keys to authenticated;

-- What was refused and why, never what was sent. Written once a second by each process, alike ones together. Retention: 30 days (task
-- `retention`).
create table tributary.channel_refusals (
    id bigint generated always as identity,
    tenant_id uuid not null references public.tenants (id) on delete cascade,
    channel_id uuid not null,
    status int not null,
    reason text not null check (length(reason) between 1 and 300),
    address text,
    n int not null default 1 check (n > 0),
    created_at timestamptz not null default now(),
    primary key (tenant_id, id)
);
create index channel_refusals_channel_idx on tributary.channel_refusals (tenant_id, channel_id, created_at);
create index channel_refusals_created_idx on tributary.channel_refusals (created_at);
select tributary.protect('tributary.channel_refusals');
grant select on tributary.channel_refusals to authenticated;

-- Files that came with an event. The row commits with the activity, after the bytes are in the blob store. Retention: as long as the activity.
create table tributary.activity_attachments (
    tenant_id uuid not null,
    activity_id uuid not null,
    ordinal int not null,
    name text not null,
    content_type text,
    content_id text,
    bytes bigint not null,
    blob_key text not null,
    primary key (tenant_id, activity_id, ordinal),
    -- By the id alone, as for the payloads.
    foreign key (activity_id) references public.activities (id) on delete cascade
);
create index activity_attachments_blob_idx on tributary.activity_attachments (tenant_id, blob_key);
create index activity_attachments_activity_idx on tributary.activity_attachments (activity_id);
select tributary.protect('tributary.activity_attachments');
grant select on tributary.activity_attachments to authenticated;


-- A telephone number as it is compared: without channel prefix and punctuation, `00` read as `+`. With a `+` it is international; without,
-- its digits are all that is known. Null: no number (a name, a short code, a withheld caller).
create function public.normalize_phone(text) returns text
language plpgsql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    plain text := regexp_replace(normalize($1, nfkc), '^\s*(whatsapp|tel|sms|sips?|client):', '', 'i');
    is_international boolean;
    digits text;
begin
    plain := split_part(split_part(plain, '@', 1), ';', 1);
    plain := regexp_replace(plain, '(ext\.?|x|#)\s*\d{1,6}\s*$', '', 'i');
    -- +44 (0)20: the zero is for callers inside the country, who do not need the rest. Only Italy dials it from abroad too.
    if plain ~ '^\s*(\+|00)' and plain !~ '^\s*(\+|00)\s*(39|378|379)' then
        plain := replace(plain, '(0)', '');
    end if;
    -- Invisible marks, and the punctuation people put between digits.
    plain := regexp_replace(plain, '[[:space:]()./\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u2010-\u2015\u2212-]', '', 'g');
    is_international := plain ~ '^(\+|00)';
    digits := regexp_replace(plain, '^(\+|00)', '');
    if digits !~ '^\d{7,15}$' or digits in ('266696687', '86282452253', '7378742833', '2562533', '8566696') then
        return null;
    end if;
    return case when is_international then '+' else '' end || digits;
end $$;

-- The one key of an address: kind and text. Numbers that are written in two ways for the same telephone (Argentina's 9, Mexico's 1, Brazil's
-- ninth digit) have one key; so have addresses of a provider that ignores dots and tags.
create function tributary.address_key(text, out kind text, out key text)
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    address text := btrim($1);
    domain text;
    local_part text;
begin
    if address is null or address = '' or length(address) > 1000 then
        return;
    end if;
    if position('@' in address) > 0 and address !~* '^\s*(whatsapp|tel|sms|sips?|client):' then
        if address ~ '<[^<>]+>\s*$' then
            address := substring(address from '<([^<>]+)>\s*$');
        end if;
        address := translate(btrim(address), 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz');
        local_part := substring(address from '^(.*)@[^@]*$');
        domain := rtrim(substring(address from '@([^@]*)$'), '.');
        if local_part = '' or domain !~ '^[^[:space:]<>()@,;:"]+$' or length(address) > 320 or local_part ~ '[[:cntrl:]<>]' then
            return;
        end if;
        if domain in ('gmail.com', 'googlemail.com') and local_part !~ '"' then
            domain := 'gmail.com';
            local_part := replace(split_part(local_part, '+', 1), '.', '');
        end if;
        if local_part <> '' then
            kind := 'email';
            key := local_part || '@' || domain;
        end if;
        return;
    end if;
    key := public.normalize_phone(address);
    if key is null then
        return;
    elsif key like '+%' then
        kind := 'phone';
        key := regexp_replace(key, '^\+549(\d{10})$', '+54\1');
        key := regexp_replace(key, '^\+521(\d{10})$', '+52\1');
        key := regexp_replace(key, '^\+55(\d{2})9([6-9]\d{7})$', '+55\1\2');
    elsif length(key) >= 10 then
        kind := 'digits';
        key := right(key, 10);
    else
        key := null;
    end if;
end $$;

-- Writes the keys of a contact's address; the last ten digits of a number too. What a person says (`added`) outlasts the contact's own columns.
create function tributary.add_contact_key(p_tenant uuid, p_contact bigint, p_address text, p_origin text) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
    insert into public.contact_keys (tenant_id, kind, key, contact_id, origin, address)
    select p_tenant, k.kind, k.key, p_contact, p_origin, p_address
    from (
        select a.kind, a.key from tributary.address_key(p_address) a
        union
        select 'digits', right(p.number, 10) from (select public.normalize_phone(p_address) as number) p
        where length(ltrim(p.number, '+')) >= 10 and (tributary.address_key(p_address)).kind in ('phone', 'digits')
    ) k
    where k.key is not null
    on conflict (tenant_id, kind, key, contact_id) do update set origin = excluded.origin where excluded.origin = 'added'
$$;
revoke execute on function tributary.add_contact_key(uuid, bigint, text, text) from public;

create function tributary.keep_contact_keys() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op = 'UPDATE' then
        delete from public.contact_keys k where k.tenant_id = new.tenant_id and k.contact_id = new.id and k.origin = 'contact';
    end if;
    perform tributary.add_contact_key(new.tenant_id, new.id, new.email, 'contact');
    perform tributary.add_contact_key(new.tenant_id, new.id, new.phone_number, 'contact');
    return null;
end $$;
revoke execute on function tributary.keep_contact_keys() from public;
create trigger contact_keys_inserted after insert on public.contacts for each row execute function tributary.keep_contact_keys();
create trigger contact_keys_updated after update of email, phone_number on public.contacts
    for each row when (old.email is distinct from new.email or old.phone_number is distinct from new.phone_number)
    execute function tributary.keep_contact_keys();
select tributary.add_contact_key(tenant_id, id, email, 'contact'), tributary.add_contact_key(tenant_id, id, phone_number, 'contact')
from public.contacts;

-- The contact of an address: exact e-mail, exact number, else the last ten digits where they are one contact's alone. Whom a person linked the
-- address to goes before whom it came with.
create function tributary.match_contact(p_tenant uuid, p_address text) returns bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    wanted record;
    number text;
    found_id bigint;
    n bigint;
    n_added bigint;
begin
    select * into wanted from tributary.address_key(p_address);
    if wanted.key is null then
        return null;
    end if;
    if wanted.kind <> 'digits' then
        select k.contact_id into found_id from public.contact_keys k
        where k.tenant_id = p_tenant and k.kind = wanted.kind and k.key = wanted.key
        order by k.origin = 'added' desc, k.contact_id limit 1;
        if found or wanted.kind = 'email' then
            return found_id;
        end if;
    end if;
    number := ltrim(public.normalize_phone(p_address), '+');
    if length(number) < 10 then
        return null;
    end if;
    select coalesce(min(k.contact_id) filter (where k.origin = 'added'), min(k.contact_id)), count(*), count(*) filter (where k.origin = 'added')
    into found_id, n, n_added from (
        select k.contact_id, k.origin from public.contact_keys k
        where k.tenant_id = p_tenant and k.kind = 'digits' and k.key = right(number, 10)
        order by k.origin = 'added' desc limit 3
    ) k;
    return case when n = 1 or n_added = 1 then found_id end;
end $$;
revoke execute on function tributary.match_contact(uuid, text) from public;

-- The contact of an address, made where there is none: one per address, however many come at once. Those who take several locks take them
-- in the order of the keys.
create function tributary.ensure_contact(p_tenant uuid, p_address text, p_sales_id bigint) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    found_id bigint := tributary.match_contact(p_tenant, p_address);
    wanted record;
    is_email boolean;
begin
    if found_id is not null then
        return found_id;
    end if;
    select * into wanted from tributary.address_key(p_address);
    if wanted.key is null then
        return null;
    end if;
    -- Programs that nobody can answer are no people.
    if wanted.kind = 'email'
        and wanted.key ~ '^(no[-_.]?reply|do[-_.]?not[-_.]?reply|mailer-daemon|postmaster|bounces?|srs[01])([-+=._@])'
    then
        return null;
    end if;
    -- Digits that some contacts share are nobody's; another of them would not help.
    if wanted.kind = 'digits' and exists (
        select from public.contact_keys k where k.tenant_id = p_tenant and k.kind = 'digits' and k.key = wanted.key)
    then
        return null;
    end if;
    -- With its country and without it is one number: both wait for the same lock.
    perform pg_advisory_xact_lock(hashtextextended(
        p_tenant::text || case when wanted.kind = 'email' then wanted.key else right(wanted.key, 10) end, 0));
    found_id := tributary.match_contact(p_tenant, p_address); -- as others have committed it meanwhile
    if found_id is not null then
        return found_id;
    end if;
    is_email := wanted.kind = 'email';
    insert into public.contacts (tenant_id, email, phone_number, first_name, last_name, sales_id, tags)
    values (p_tenant,
        case when is_email then coalesce(substring(p_address from '<([^<>]+)>\s*$'), btrim(p_address)) end,
        case when not is_email then public.normalize_phone(p_address) end,
        case when is_email then split_part(wanted.key, '@', 1) else public.normalize_phone(p_address) end,
        '', p_sales_id, '{auto-created,unqualified}')
    returning id into found_id;
    return found_id;
end $$;
revoke execute on function tributary.ensure_contact(uuid, text, bigint) from public;
grant execute on function tributary.ensure_contact(uuid, text, bigint), tributary.match_contact(uuid, text),
    tributary.add_contact_key(uuid, bigint, text, text), tributary.address_key(text) to service_role;

-- Whose address an event carries: who sent it, or to whom it went. Intake puts the library's form beside it.
create function tributary.party(p_direction text, p_metadata jsonb) returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select case
        when p_direction = 'outbound' then coalesce(p_metadata ->> 'to_key', case jsonb_typeof(p_metadata -> 'to')
            when 'array' then p_metadata -> 'to' ->> 0 else p_metadata ->> 'to' end)
        else coalesce(p_metadata ->> 'from_key', case jsonb_typeof(p_metadata -> 'from')
            when 'array' then p_metadata -> 'from' ->> 0 else p_metadata ->> 'from' end) end
$$;

create function public.auto_link_contact() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    party text;
begin
    if new.contact_id is not null then
        return new;
    end if;
    party := tributary.party(new.direction, new.metadata);
    if party is null then
        return new;
    end if;
    new.contact_id := tributary.match_contact(new.tenant_id, party);
    if new.contact_id is null and new.provider_id is not null and exists (
        select from public.ingestion_providers p where p.tenant_id = new.tenant_id and p.id = new.provider_id and p.auto_create_contacts)
    then
        new.contact_id := tributary.ensure_contact(new.tenant_id, party, new.sales_id);
    end if;
    return new;
end $$;
revoke execute on function public.auto_link_contact() from public;
create trigger before_insert_activity_link_contact before insert on public.activities
    for each row execute function public.auto_link_contact();
