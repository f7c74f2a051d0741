-- tributary.send_remember_activity.sql: queues each activity for memory when it arrives with text or files and when it is completed, for every writer.
-- The triggers only send the message; lane `remember_activity` (engine::lanes) makes the document. Events arrive by activity_insert.sql.
create or replace function tributary.send_remember_activity() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op = 'INSERT' then
        insert into pgmq.q_remember_activity (vt, message)
        select now(), jsonb_build_object('tenant_id', n.tenant_id, 'activity_id', n.id)
        from new_rows n
        -- The files are inserted after their activity, whose metadata lists them.
        where n.raw_data ->> 'source_type' = 'text' or n.raw_data ? 'subject' or n.metadata ? 'attachments';
    else
        insert into pgmq.q_remember_activity (vt, message)
        select now(), jsonb_build_object('tenant_id', n.tenant_id, 'activity_id', n.id)
        from new_rows n join old_rows o on o.tenant_id = n.tenant_id and o.id = n.id
        where n.processing_status = 'completed' and o.processing_status <> 'completed';
    end if;
    return null;
end $$;
revoke execute on function tributary.send_remember_activity() from public;
create or replace trigger remember_inserted after insert on public.activities
    referencing new table as new_rows for each statement execute function tributary.send_remember_activity();
create or replace trigger remember_completed after update on public.activities
    referencing old table as old_rows new table as new_rows for each statement execute function tributary.send_remember_activity();
