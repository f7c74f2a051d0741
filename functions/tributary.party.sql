-- tributary.party.sql: returns the address of an event: the sender's, or the receiver's of an outbound event.
-- Intake stores the normalised form (`from_key`, `to_key`) beside the address as it was sent; the normalised form goes first.
-- An index is made of it (activities_sender_idx): if it answers otherwise, the index gets another name, so that it is built anew.
create or replace function tributary.party(p_direction text, p_metadata jsonb) returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select case
        when p_direction = 'outbound' then coalesce(p_metadata ->> 'to_key', case jsonb_typeof(p_metadata -> 'to')
            when 'array' then p_metadata -> 'to' ->> 0 else p_metadata ->> 'to' end)
        else coalesce(p_metadata ->> 'from_key', case jsonb_typeof(p_metadata -> 'from')
            when 'array' then p_metadata -> 'from' ->> 0 else p_metadata ->> 'from' end) end
$$;
