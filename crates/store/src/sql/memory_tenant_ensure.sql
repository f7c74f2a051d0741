-- memory_tenant_ensure.sql: sets tenant $1's model to $2 unless it has one, and adds the languages $3. Writes nothing if nothing changes.
insert into memory.tenants as t (tenant_id, model, langs)
values ($1, $2, (select array_agg(distinct l::regconfig) from unnest($3::text[] || array['simple']) l))
on conflict (tenant_id) do update
set langs = (select array_agg(distinct l) from unnest(t.langs || excluded.langs) l)
where not excluded.langs <@ t.langs
