-- public.ingestion_archive.sql: moves a message to the archive and returns whether it did. With read_ct, it does so only while that claim holds.
create or replace function public.ingestion_archive(queue_name text, msg_id bigint, read_ct integer default null) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    n bigint;
begin
    execute format(
        'with gone as (
             delete from pgmq.%1$I where msg_id = $1 and ($2 is null or read_ct = $2)
             returning msg_id, read_ct, enqueued_at, vt, message, headers)
         insert into pgmq.%2$I (msg_id, read_ct, enqueued_at, vt, message, headers)
         select msg_id, read_ct, enqueued_at, vt, message, headers from gone',
        'q_' || tributary.check_queue(queue_name), 'a_' || queue_name)
        using ingestion_archive.msg_id, ingestion_archive.read_ct;
    get diagnostics n = row_count;
    return n > 0;
end $$;
revoke execute on function public.ingestion_archive(text, bigint, integer) from public, anon, authenticated;
grant execute on function public.ingestion_archive(text, bigint, integer) to service_role;
