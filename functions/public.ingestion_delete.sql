-- public.ingestion_delete.sql: deletes a message and returns whether it did. With read_ct, it does so only while that claim holds.
create or replace function public.ingestion_delete(queue_name text, msg_id bigint, read_ct integer default null) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    n bigint;
begin
    execute format('delete from pgmq.%I where msg_id = $1 and ($2 is null or read_ct = $2)', 'q_' || tributary.check_queue(queue_name))
        using ingestion_delete.msg_id, ingestion_delete.read_ct;
    get diagnostics n = row_count;
    return n > 0;
end $$;
revoke execute on function public.ingestion_delete(text, bigint, integer) from public, anon, authenticated;
grant execute on function public.ingestion_delete(text, bigint, integer) to service_role;
