-- assistants_list.sql: the assistants of tenant $1, or those that person $2 let in, with what they asked for in the last 30 days before $3; those in use
-- first, the latest first.
select a.id, a.key_id, a.client_id, a.client_name, a.redirect_host, k.scopes, k.sales_id as person_id, p.first_name, p.last_name, p.email,
    a.created_at, a.last_used_at, o.revoked_at, case when o.revoked_at is not null then coalesce(a.revoked_by, 'key') end as revoked_by,
    coalesce(c.asked, '[]') as asked
from tributary.assistants a
join tributary.api_keys k on k.tenant_id = a.tenant_id and k.id = a.key_id
left join tributary.api_keys b on b.tenant_id = a.tenant_id and b.id = a.let_in_by
-- Whatever ended it: its own key and the key with which it was let in end it too.
cross join lateral (
    select coalesce(a.revoked_at, least(k.revoked_at, b.revoked_at, case when b.expires_at <= now() then b.expires_at end)) as revoked_at
) o
left join public.sales p on p.tenant_id = k.tenant_id and p.id = k.sales_id
left join lateral (
    select jsonb_agg(jsonb_build_object('tool', t.tool, 'n', t.n) order by t.n desc, t.tool) as asked
    from (
        select m.tool, count(*) as n from tributary.mcp_calls m
        where m.tenant_id = a.tenant_id and m.key_id = a.key_id and m.at > coalesce($3, now()) - interval '30 days' group by m.tool
    ) t
) c on true
where a.tenant_id = $1 and ($2::bigint is null or k.sales_id = $2)
    -- One whose code was never fetched was never let in.
    and exists (select from tributary.assistant_tokens t where t.tenant_id = a.tenant_id and t.assistant_id = a.id and t.kind <> 'code'
        union all select where a.last_used_at is not null or o.revoked_at is not null)
order by o.revoked_at is not null, a.created_at desc, a.id desc limit 500
