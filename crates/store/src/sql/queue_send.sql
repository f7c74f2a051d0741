-- queue_send.sql: sends the messages of $1, due at once, in their order.
insert into {q} (vt, message) select now(), message from unnest($1::jsonb[]) with ordinality as m (message, n) order by n
returning msg_id
