-- spend_settle.sql: adds what was spent to tenant $1's month of $2 and model $3, and ends reservations $4.
with ended as (
    delete from tributary.reservations where tenant_id = $1 and id = any($4::uuid[])
)
insert into public.usage as u (tenant_id, month, model, calls, documents, texts, tokens, cost_micros)
values ($1, date_trunc('month', coalesce($2, now()) at time zone 'utc')::date, $3, $5, $6, $7, $8, $9)
on conflict (tenant_id, month, model) do update set calls = u.calls + excluded.calls, documents = u.documents + excluded.documents,
    texts = u.texts + excluded.texts, tokens = u.tokens + excluded.tokens, cost_micros = u.cost_micros + excluded.cost_micros
