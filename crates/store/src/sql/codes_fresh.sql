-- codes_fresh.sql: notes the next 20,000 vectors of tenant $1 and model $2 after the chunk $3 as fresh. Returns the last one; none: there are no more.
with next as materialized (
    select tenant_id, chunk_id from {v} where tenant_id = $1 and chunk_id > $3 order by chunk_id limit 20000
), noted as (
    insert into memory.fresh_vectors (tenant_id, model, chunk_id) select tenant_id, $2, chunk_id from next on conflict do nothing
)
select chunk_id from next order by chunk_id desc limit 1
