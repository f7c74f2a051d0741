-- public.ingestion_read.sql: claims up to qty messages of a queue of the contract for vt seconds.
create or replace function public.ingestion_read(queue_name text, vt integer default 300, qty integer default 1)
returns table (msg_id bigint, read_ct integer, enqueued_at timestamptz, vt timestamptz, message jsonb)
language sql security definer
set search_path = pg_catalog, pg_temp
as $$ select r.msg_id, r.read_ct, r.enqueued_at, r.vt, r.message from pgmq.read(tributary.check_queue($1), $2, $3) r $$;
revoke execute on function public.ingestion_read(text, integer, integer) from public, anon, authenticated;
grant execute on function public.ingestion_read(text, integer, integer) to service_role;
