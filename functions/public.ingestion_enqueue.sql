-- public.ingestion_enqueue.sql: sends a message to a queue of the contract; returns its id.
create or replace function public.ingestion_enqueue(queue_name text, message jsonb, delay integer default 0) returns bigint
language sql security definer
set search_path = pg_catalog, pg_temp
as $$ select pgmq.send(tributary.check_queue(queue_name), message, delay) $$;
revoke execute on function public.ingestion_enqueue(text, jsonb, integer) from public, anon, authenticated;
grant execute on function public.ingestion_enqueue(text, jsonb, integer) to service_role;
