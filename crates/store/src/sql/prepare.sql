-- prepare.sql: the steps before the first migration that need an administrator: roles, their grants, the right to create.
-- Runs as the embedded superuser or as DATABASE_URL's login; `tributary.login` names the role the pool logs in as.
-- Safe to repeat, and safe beside another database's set-up in the same cluster: roles are cluster-wide.
do $$
declare
    login text := current_setting('tributary.login');
    may_set text := case when current_setting('server_version_num')::int >= 160000 then 'SET' else 'MEMBER' end;
    wanted text;
    member text;
begin
    foreach wanted in array array['tributary_owner', 'service_role', 'authenticated', 'anon'] loop
        begin
            if not exists (select from pg_roles where rolname = wanted) then
                execute format('create role %I nologin', wanted);
            end if;
        exception when duplicate_object or unique_violation then
            null; -- another database's set-up was quicker
        end;
        foreach member in array array[login, current_user::text] loop
            -- From PostgreSQL 16 on even the role's creator may not SET ROLE to it without an explicit grant.
            continue when pg_has_role(member, wanted, may_set);
            begin
                execute format('grant %I to %I', wanted, member);
            exception when insufficient_privilege then
                raise exception 'role % must be granted to %: have an administrator run  grant % to %', wanted, member, wanted, member
                    using errcode = 'insufficient_privilege';
            end;
        end loop;
    end loop;
    begin
        grant pg_read_all_stats to service_role; -- to name the session that holds a transaction open; hosts may refuse it
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
do $$
begin
    create extension if not exists vector;
exception
    when insufficient_privilege then
        raise exception 'pgvector is not installed in this database: have an administrator run  create extension vector'
            using errcode = 'insufficient_privilege';
    when undefined_file or feature_not_supported then
        raise exception 'this server does not have pgvector: install it there, or use the embedded server (unset DATABASE_URL)'
            using errcode = 'feature_not_supported';
end $$;
