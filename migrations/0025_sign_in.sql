-- People sign in: a role for each, the key behind their browsers, and sessions that can be told apart and ended.

-- What a person may do after signing in; the rights of each role are in domain::Role. Keys have scopes of their own.
alter table public.sales add column role text not null default 'member' check (role in ('owner', 'member', 'read-only'));

-- The key behind a person's browsers. Nobody knows its secret. Its sessions have the rights of the person's role, whatever its scopes.
alter table tributary.api_keys add column is_sign_in boolean not null default false;
create unique index api_keys_sign_in_key on tributary.api_keys (tenant_id, sales_id) where is_sign_in and revoked_at is null;

-- `id` names a session to people. The device is its browser's name, the address that of its last use. A session with `idle_days` ends when it was not
-- used for so long, and after a year.
alter table tributary.sessions
    add column id uuid not null default gen_random_uuid(),
    add column device text,
    add column address text,
    add column last_used_at timestamptz,
    add column idle_days int,
    add constraint sessions_id_key unique (id);
