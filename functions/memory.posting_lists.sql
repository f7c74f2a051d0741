-- memory.posting_lists.sql: returns the lists of the caller's postings that are named by segment and lexeme, in that order; null where there is none.
create or replace function memory.posting_lists(p_segments bigint[], p_lexemes text[]) returns bytea[]
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
    select array_agg(p.list order by k.nth)
    from unnest(p_segments, p_lexemes) with ordinality k (segment_id, lexeme, nth)
    left join memory.postings p on p.tenant_id = tributary.tenant() and p.lexeme = k.lexeme collate "C" and p.segment_id = k.segment_id
$$;
revoke execute on function memory.posting_lists(bigint[], text[]) from public;
grant execute on function memory.posting_lists(bigint[], text[]) to service_role, authenticated;
