-- checks_settle.sql: writes the outcome of day $4 of tenant $2's mailbox $3. Nobody waits for it any more.
update public.mailbox_checks
set state = $5, checked_at = coalesce($1, now()), asked_at = null, asked_by = null, suspects = null, note = null, n_provider = $6, n_stored = $7, skipped = $8,
    n_skipped = $9, n_kept_out = $10, n_failed = $11, n_waiting = $12, n_leaving = $13, n_not_read = $14, n_missing = $15, n_surplus = $16, missing = $17,
    surplus = $18
where tenant_id = $2 and source_id = $3 and day = $4
