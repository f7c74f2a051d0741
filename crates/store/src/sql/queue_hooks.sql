-- queue_hooks.sql: triggers on `ingestion_queue` that keep jobs in step with their messages, for every writer. Safe to repeat; runs after the
-- queues are created.
grant select, insert, update, delete on pgmq.q_ingestion_queue, pgmq.a_ingestion_queue to tributary_owner;
create or replace trigger job_archived after insert on pgmq.a_ingestion_queue for each row execute function tributary.job_archived();
create or replace trigger job_sent after insert on pgmq.q_ingestion_queue for each row execute function tributary.job_sent();
