-- spend_this_month.sql: what tenant $1's documents cost in the month of $2, over all models, and whether cap $3 refused something in it. Answers
-- are of no document, and are left out.
with this as (
    select date_trunc('month', coalesce($2, now()) at time zone 'utc')::date as month
)
select coalesce(sum(u.documents), 0)::bigint as documents, coalesce(sum(u.cost_micros) filter (where u.documents > 0), 0)::bigint as cost_micros,
    exists (select from tributary.budgets b where b.tenant_id = $1 and b.month = this.month and b.refused_under_micros >= $3) as is_refused
from this left join public.usage u on u.tenant_id = $1 and u.month = this.month
group by this.month
