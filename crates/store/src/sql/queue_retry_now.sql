-- queue_retry_now.sql: makes message $2 due at once, unless a worker holds it now.
update {q} set vt = coalesce($1, now())
where msg_id = $2 and not coalesce(headers ? 'by' and vt > coalesce($1, now()), false)
