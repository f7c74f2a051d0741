-- spend_release.sql: as of $1, makes items due whose reason begins with $3 and whose tenant was refused under a lower cap than $2
-- (null: no cap).
update tributary.parked p set until = coalesce($1, now())
from tributary.budgets b
where b.month = date_trunc('month', coalesce($1, now()) at time zone 'utc')::date
    and b.refused_under_micros < coalesce($2, 9223372036854775807)
    and p.tenant_id = b.tenant_id and starts_with(p.reason, $3) and p.until > coalesce($1, now())
