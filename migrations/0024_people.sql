-- People are managed: whether the built-in agent works for somebody.

-- The built-in agent works for this person as an agent of their own would: it claims their activities at once, also where `allow_remote_processing`
-- keeps others away. Without, it is one of the others.
alter table public.sales add column built_in_agent boolean not null default false;

-- A key that is an agent's alone sees its own person and nobody else, by the key's person or, behind another server, by the login.
create policy agent on public.sales as restrictive to authenticated using (
    coalesce((select tributary.claims()) -> 'scopes' ?| array['read', 'write', 'service'], false)
    or id = ((select tributary.claims()) ->> 'sales_id')::bigint
    or user_id = ((select tributary.claims()) ->> 'sub')::uuid);
