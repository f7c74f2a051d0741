-- queue_mark_archived.sql: a person decides about dead letter $2: state $3, reason $4; its error stays.
update {a} set headers = coalesce(headers, '{}') || jsonb_build_object('state', $3::text, 'reason', $4::text, 'ended_at', coalesce($1, now()))
where msg_id = $2
