-- spend_release_blocked.sql: as of $1, makes up to $4 items of queue $2 due whose reason begins with $3, the oldest first.
update tributary.parked p set until = coalesce($1, now())
where (p.tenant_id, p.id) in (
    select tenant_id, id from tributary.parked
    where queue = $2 and starts_with(reason, $3) and until > coalesce($1, now())
    order by until limit $4)
