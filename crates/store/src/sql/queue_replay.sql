-- queue_replay.sql: sends archived message $2 anew and removes it from the archive, in one statement. What it was is kept in `replay_of`.
with gone as (delete from {a} where msg_id = $2 returning msg_id, message)
insert into {q} (vt, message, headers) select coalesce($1, now()), message, jsonb_build_object('replay_of', msg_id) from gone
returning msg_id
