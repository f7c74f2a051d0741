-- vectors_insert.sql: vectors $4 of tenant $1's chunks $2 of documents $3.
insert into {v} (tenant_id, chunk_id, document_id, embedding)
select $1, r.chunk_id, r.document_id, r.embedding from unnest($2::uuid[], $3::uuid[], $4::halfvec[]) r (chunk_id, document_id, embedding)
on conflict (tenant_id, chunk_id) do nothing
