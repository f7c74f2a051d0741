-- memory_renew_stats.sql: replaces tenant $1's term statistics by those of the sample that query $2 selects, times $3, the $4 commonest; $5: its chunks.
with sampled as (
    select word as lexeme, ceil(ndoc * $3)::int8 as df from ts_stat($2) where length(word) <= 100 order by ndoc desc limit $4
), gone as (
    delete from memory.term_stats s where s.tenant_id = $1 and not exists (select from sampled n where n.lexeme = s.lexeme)
), written as (
    insert into memory.term_stats (tenant_id, lexeme, df) select $1, lexeme, df from sampled
    on conflict (tenant_id, lexeme) do update set df = excluded.df where term_stats.df <> excluded.df
)
update memory.tenants set stats_chunks = $5 where tenant_id = $1
