-- memory_tenant_ensure.sql: tenant $1 points to model $2 unless it points elsewhere, and knows the languages $3. Touches nothing that is so already.
insert into memory.tenants as t (tenant_id, model, langs)
values ($1, $2, (select array_agg(distinct l::regconfig) from unnest($3::text[] || array['simple']) l))
on conflict (tenant_id) do update
set langs = (select array_agg(distinct l) from unnest(t.langs || excluded.langs) l)
where not excluded.langs <@ t.langs
