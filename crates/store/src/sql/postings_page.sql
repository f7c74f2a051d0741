-- postings_page.sql: postings of tenant $1's segments $2 with the next lexemes after $3: all of each lexeme's, and at least $4 rows in all if there are so
-- many.
with page as materialized (
    select p.lexeme from memory.postings p
    where p.tenant_id = $1 and p.segment_id = any ($2) and p.lexeme > $3 collate "C" order by p.lexeme limit $4
)
select p.lexeme, s.first_n, p.list
from memory.postings p join memory.segments s on s.tenant_id = p.tenant_id and s.id = p.segment_id
where p.tenant_id = $1 and p.segment_id = any ($2) and p.lexeme > $3 collate "C" and p.lexeme <= (select max(lexeme) from page)
order by p.lexeme
