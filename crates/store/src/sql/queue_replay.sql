-- queue_replay.sql: sends archived message $2 anew, as live or history as it was, and removes it from the archive, in one statement.
-- `replay_of` keeps its old number.
with gone as (delete from {a} where msg_id = $2 returning msg_id, message, headers)
insert into {q} (vt, message, headers)
select coalesce($1, now()), message, jsonb_strip_nulls(jsonb_build_object('replay_of', msg_id, 'priority', headers -> 'priority')) from gone
returning msg_id
