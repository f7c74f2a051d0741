-- queue_advance.sql: extends the lease of receipt ($2, $3) by $4 seconds, in the transaction of a part of its effect. Attempts are counted from zero
-- again.
update {q}
set vt = coalesce($1, now()) + make_interval(secs => $4),
    headers = (coalesce(headers, '{}') - array['error', 'error_at']) || jsonb_build_object('waits', read_ct - 1)
where msg_id = $2 and read_ct = $3
