-- prepare.sql: what only an administrator may do, before the first migration: roles, their grants, the right to create.
-- Runs as the embedded superuser or as DATABASE_URL's login; `tributary.login` names the role the pool logs in as.
-- Safe to repeat, and safe beside another database's set-up in the same cluster: roles are cluster-wide.
do $$
declare
    login text := current_setting('tributary.login');
    wanted text;
begin
    foreach wanted in array array['tributary_owner', 'service_role', 'authenticated', 'anon'] loop
        begin
            if not exists (select from pg_roles where rolname = wanted) then
                execute format('create role %I nologin', wanted);
            end if;
        exception when duplicate_object or unique_violation then
            null; -- another database's set-up was quicker
        end;
        -- From PostgreSQL 16 on even the role's creator may not SET ROLE to it without this.
        execute format('grant %I to %I', wanted, login);
        if login <> current_user then
            execute format('grant %I to %I', wanted, current_user);
        end if;
    end loop;
    begin
        grant pg_read_all_stats to service_role; -- to name whoever holds a transaction open; hosts may refuse it
    exception when insufficient_privilege then
        null;
    end;
    execute format('grant create, temporary on database %I to tributary_owner', current_database());
    if exists (select from pg_namespace where nspname = 'ai') then
        grant usage, create on schema ai to tributary_owner; -- made by `pgai install`, so perhaps another role's
    end if;
end $$;
grant usage, create on schema public to tributary_owner;
grant usage on schema public to service_role, authenticated, anon;
create extension if not exists vector;
