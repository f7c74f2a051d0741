-- grants.sql: the service's rights on objects that are not ours: pgmq's and, if pgai created them, pgai's. Safe to repeat.
grant usage on schema pgmq to service_role, tributary_owner;
grant select on all tables in schema pgmq to service_role;
grant execute on all functions in schema pgmq to service_role, tributary_owner;
grant usage on schema ai to service_role;
grant select, insert, update, delete on ai.vectorizer_worker_process, ai.vectorizer_worker_progress to service_role;
grant execute on all functions in schema ai to service_role;
