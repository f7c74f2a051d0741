-- queue_send.sql: sends the messages of $1, due at once, in their order. $2: their headers; null for live ones.
insert into {q} (vt, message, headers) select now(), message, $2 from unnest($1::jsonb[]) with ordinality as m (message, n) order by n
returning msg_id
