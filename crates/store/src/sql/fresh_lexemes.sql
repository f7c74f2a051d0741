-- fresh_lexemes.sql: the lexemes of tenant $1's fresh chunks $2, each with the chunks that have it and how often, an occurrence in the title as $3.
select w.lexeme, array_agg(w.n), array_agg(w.occurrences)
from (
    select left(u.lexeme, 100) as lexeme, f.n,
        (cardinality(u.positions) + ($3 - 1) * cardinality(array_positions(u.weights, 'A')))::real as occurrences
    from memory.fresh_chunks f, unnest(f.tsv) u
    where f.tenant_id = $1 and f.n = any ($2)
) w
group by w.lexeme
