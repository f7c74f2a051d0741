-- checks_suspect.sql: keeps the differences $5 of day $4 of tenant $2's mailbox $3, until a sync has settled them. It is being read, with the numbers that
-- it has now; a day that differed counts as differing, with those that it had.
with now_as as (
    update public.mailbox_checks set suspects = $5, note = null where tenant_id = $2 and source_id = $3 and day = $4 and state = 'differs')
update public.mailbox_checks
set suspects = $5, note = null, state = 'reading', checked_at = coalesce($1, now()), n_provider = $6, n_stored = $7, skipped = $8, n_skipped = $9,
    n_kept_out = $10, n_failed = $11, n_waiting = $12, n_leaving = $13, n_not_read = $14
where tenant_id = $2 and source_id = $3 and day = $4 and state <> 'differs'
