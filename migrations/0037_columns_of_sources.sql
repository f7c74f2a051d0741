-- A tenant's own keys read every column of their sources but one: the secret that comes back with every notice of a mailbox proves notices. A migration that
-- adds a column which they should read grants it.
do $$
declare
    readable text;
begin
    select string_agg(quote_ident(attname), ', ' order by attnum) into readable from pg_attribute
    where attrelid = 'public.connected_sources'::regclass and attnum > 0 and not attisdropped and attname <> 'webhook_client_state';
    revoke select on public.connected_sources from authenticated;
    execute format('grant select (%s) on public.connected_sources to authenticated', readable);
end
$$;
