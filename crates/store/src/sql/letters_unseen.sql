-- letters_unseen.sql: letters of tenant $1's source $2 that job $3, a full pass, did not meet: up to $6 names after $5, in order. Documents are of type
-- $4; those that were left out have none. What was forgotten is not
-- asked for.
select unseen.name from (
    (select d.external_id as name from public.source_documents d
     where d.tenant_id = $1 and d.source_id = $2 and d.deleted_at is null and d.document_type = $4 and d.external_id > $5
         and not exists (select from tributary.sync_seen s where s.job_id = $3 and s.external_id = d.external_id)
     order by d.external_id limit $6)
    union
    (select 'message:' || p.message_id from public.processed_messages p
     where p.tenant_id = $1 and p.source_id = $2 and p.skip_reason is not null and p.skip_reason <> 'forgotten' and p.message_id > substr($5, length('message:') + 1)
         and not exists (select from tributary.sync_seen s where s.job_id = $3 and s.external_id = 'message:' || p.message_id)
     order by p.message_id limit $6)
) unseen
order by unseen.name limit $6
