-- clients_match.sql: writes of which clients tenant $1's records $2 are ($3), why ($4), and which keys are these clients' alone ($5). A record that was
-- marked again since ($6) stays marked.
update public.client_intelligence c
set client_id = r.client_id, matched_by = r.matched_by, owns = r.owns, matched_marks = r.marks
from (
    select u.id, u.client_id, u.matched_by, array(select jsonb_array_elements_text(u.owns)) as owns, u.marks
    from unnest($2::uuid[], $3::uuid[], $4::jsonb[], $5::jsonb[], $6::bigint[]) u (id, client_id, matched_by, owns, marks)
    order by u.id) r
where c.tenant_id = $1 and c.id = r.id
    and (c.client_id, c.matched_by, c.owns, c.matched_marks) is distinct from (r.client_id, r.matched_by, r.owns, r.marks)
