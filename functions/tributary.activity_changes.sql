-- tributary.activity_changes.sql: holds the state machine of an activity against every writer.
-- Only the claim functions claim. A result is taken from the key that holds the claim; a late one overwrites nothing (PT409). Metadata is added to:
-- an agent that writes nothing but its error must not wipe out whose message it was. Leaving `processing` releases the lock.
create or replace function tributary.activity_changes() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    claims jsonb;
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
            -- A lock is renewed by our clock, and released whole.
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
        -- Ours to count and to tell: what an agent writes there is not taken.
        new.metadata := old.metadata
            || (case when jsonb_typeof(new.metadata) = 'object' then new.metadata else '{}' end) - 'recovery_count' - 'retry_count' - 'from_key' - 'to_key';
        if new.processing_status = 'failed' then
            new.metadata := new.metadata || jsonb_build_object('error',
                (case when jsonb_typeof(new.metadata -> 'error') = 'object' then new.metadata -> 'error'
                    else jsonb_build_object('type', 'Error', 'message', coalesce(new.metadata ->> 'error', 'it failed')) end)
                || jsonb_build_object('timestamp', now(), 'retry_count', coalesce(old.metadata -> 'retry_count', '0')));
        end if;
    end if;
    if new.processing_status = 'processing' and old.processing_status <> 'processing' then
        new.claimed_at := now();
    end if;
    if new.processing_status <> 'processing' then
        new.locked_by := null;
        new.locked_at := null;
        new.locked_key := null;
    end if;
    new.updated_at := clock_timestamp();
    return new;
end $$;
create or replace trigger activity_changes before update on public.activities
    for each row execute function tributary.activity_changes();
