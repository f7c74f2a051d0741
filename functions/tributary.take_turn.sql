-- tributary.take_turn.sql: takes n units of a limit that refills at p_units per p_secs; returns the seconds to wait first.
-- When that is longer than p_patience, nothing is taken. It uses the machine's time, not a test's clock, because the provider does too.
create or replace function tributary.take_turn(p_key text, p_units float8, p_secs float8, n float8, p_patience float8) returns float8
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    left_over float8;
    wait float8;
    is_ahead boolean;
begin
    insert into tributary.gates (key, units, used_at) values (p_key, p_units, clock_timestamp()) on conflict do nothing;
    select least(p_units, g.units + greatest(extract(epoch from clock_timestamp() - g.used_at), 0) * p_units / p_secs) - n,
        g.used_at > clock_timestamp()
    into left_over, is_ahead from tributary.gates g where g.key = p_key for update;
    wait := greatest(-left_over, 0) * p_secs / p_units;
    if wait <= p_patience then
        update tributary.gates set units = left_over, used_at = clock_timestamp() where key = p_key;
    elsif is_ahead then -- the clock was set back: it refills from now on, not from a time to come
        update tributary.gates set used_at = clock_timestamp() where key = p_key;
    end if;
    return wait;
end $$;
revoke execute on function tributary.take_turn(text, float8, float8, float8, float8) from public;
grant execute on function tributary.take_turn(text, float8, float8, float8, float8) to service_role;
