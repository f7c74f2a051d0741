-- tributary.check_queue.sql: returns queue_name if it is a queue of the contract; it refuses every other queue, also for a service key.
create or replace function tributary.check_queue(queue_name text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if queue_name is distinct from 'ingestion_queue' then
        raise exception '% is no queue of this contract', coalesce(queue_name, 'null') using errcode = 'invalid_parameter_value';
    end if;
    return queue_name;
end $$;
revoke execute on function tributary.check_queue(text) from public;
