-- tributary.activity_changes.sql: enforces the state machine of an activity for every writer.
-- Only the claim functions claim. A result is accepted from the key that holds the claim; a late one overwrites nothing (PT409). New metadata is
-- merged into the old: an agent that writes only its error must not delete the sender. Leaving `processing` releases the lock. An agent's failure,
-- in any words, is retried or becomes a dead letter: only a person ends an activity.
create or replace function tributary.activity_changes() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    claims jsonb;
    failure jsonb;
begin
    if current_user = 'authenticated' then
        claims := tributary.claims();
        if new.processed_data is distinct from old.processed_data and not tributary.is_result(new.processed_data) then
            raise exception 'a result is {transcript?, summary?, facts?[]}: texts, a list of facts, and no more than 4 MB' using errcode = 'invalid_parameter_value';
        end if;
        if old.processing_status = 'processing' then
            if old.locked_key is distinct from (claims ->> 'key_id')::uuid then
                raise exception 'lock lost: another agent has activity % now', old.id using errcode = 'PT409';
            end if;
            -- A renewal takes the database's time. A lock without holder or time is released.
            if new.processing_status = 'processing' then
                if new.locked_by is null or new.locked_at is null then
                    new.processing_status := 'raw';
                else
                    new.locked_by := old.locked_by;
                    new.locked_at := now();
                end if;
            end if;
        elsif old.processing_status = 'failed' and new.processing_status = 'raw' then
            if not claims -> 'scopes' ?| array['write', 'service'] then
                raise exception 'this key may not retry' using errcode = 'insufficient_privilege';
            end if;
            new.metadata := '{}';
            old.metadata := old.metadata - 'error' - 'retry_count' - 'recovery_count';
        else
            raise exception 'lock lost: activity % is %, and not in this agent''s hands', old.id, old.processing_status using errcode = 'PT409';
        end if;
        -- Only the server writes these four fields; an agent's values are ignored.
        new.metadata := old.metadata
            || (case when jsonb_typeof(new.metadata) = 'object' then new.metadata else '{}' end) - 'recovery_count' - 'retry_count' - 'from_key' - 'to_key';
        if new.processing_status = 'failed' then
            failure := case when jsonb_typeof(new.metadata -> 'error') = 'object' then new.metadata -> 'error'
                else jsonb_build_object('type', {{PLAIN_ERROR}}, 'message', coalesce(new.metadata ->> 'error', 'it failed')) end;
            -- These words end an activity. They are written by a person's act and by this server, never by an agent.
            if failure ->> 'type' = any ({{OURS}}) then
                failure := failure || jsonb_build_object('type', {{PLAIN_ERROR}});
            end if;
            new.metadata := new.metadata || jsonb_build_object('error',
                failure || jsonb_build_object('timestamp', now(), 'retry_count', coalesce(old.metadata -> 'retry_count', '0')));
        end if;
    end if;
    if new.processing_status = 'processing' and old.processing_status <> 'processing' then
        new.claimed_at := now();
        -- It stays after the claim, so that the agent sees what it has processed. The next claim replaces it.
        new.claimed_key := new.locked_key;
        -- Set by a process of ours for its own transaction: what its built-in agent holds goes back when that process dies.
        new.locked_worker := nullif(current_setting('tributary.worker', true), '');
    end if;
    if new.processing_status <> 'processing' then
        new.locked_by := null;
        new.locked_at := null;
        new.locked_key := null;
        new.locked_worker := null;
    end if;
    -- Memory takes this for the version of the activity's document, and an older version never overwrites a newer one. So it only grows, also when the
    -- clock is set back or another server takes over.
    new.updated_at := greatest(clock_timestamp(), old.updated_at + make_interval(secs => 0.000001));
    return new;
end $$;
create or replace trigger activity_changes before update on public.activities
    for each row execute function tributary.activity_changes();
