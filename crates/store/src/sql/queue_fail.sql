-- queue_fail.sql: records a failed attempt of receipt ($2, $3). The message is due again after $4 seconds. $5: the error, in words.
-- Repeated after a lost answer it changes nothing.
update {q}
set vt = coalesce($1, now()) + make_interval(secs => $4),
    headers = (coalesce(headers, '{}') - array['by', 'since', 'reason'])
        || jsonb_build_object('error', $5::text, 'error_at', coalesce($1, now()))
where msg_id = $2 and read_ct = $3 and headers ? 'by'
