-- languages_go_on.sql: notes that tenant $1's documents up to $2 have their languages, and that searches must know the languages $3. Null for $2: all have
-- them, and where one language is fixed, no other one is left.
update memory.tenants t
set relabel_after = $2, langs = array(
    select distinct l from unnest(case when $2::uuid is null and t.lang is not null then array['pg_catalog.simple'::regconfig, t.lang] else t.langs end
        || $3::text[]::regconfig[]) l)
where t.tenant_id = $1
