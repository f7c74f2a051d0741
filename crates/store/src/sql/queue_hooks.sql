-- queue_hooks.sql: what happens beside the rows of `ingestion_queue`, whoever moves them. Safe to repeat; run once the queues are there.
grant select, insert, update, delete on pgmq.q_ingestion_queue, pgmq.a_ingestion_queue to tributary_owner;
create or replace trigger job_archived after insert on pgmq.a_ingestion_queue for each row execute function tributary.job_archived();
create or replace trigger job_sent after insert on pgmq.q_ingestion_queue for each row execute function tributary.job_sent();
