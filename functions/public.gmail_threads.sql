-- public.gmail_threads.sql: the view of Gmail's conversations, one row per source and thread, in the shape of the old `gmail.thread` documents. Mail is
-- stored and searched as messages.
create or replace view public.gmail_threads with (security_invoker = true) as
select t.tenant_id, t.source_id, t.thread_id, 'thread:' || t.thread_id as external_id, 'gmail.thread'::text as document_type, t.title, t.n_messages,
    jsonb_build_object('id', t.thread_id, 'snippet', t.snippet, 'messages', t.messages) as raw_payload,
    t.first_at, t.last_at, t.created_at, t.updated_at
from (
    select d.tenant_id, d.source_id, d.thread_id, count(*) as n_messages,
        (array_agg(d.title order by coalesce(d.source_created_at, d.created_at), d.id))[1] as title,
        left((array_agg(d.raw_payload ->> 'text' order by coalesce(d.source_created_at, d.created_at) desc, d.id desc))[1], 200) as snippet,
        jsonb_agg(jsonb_build_object('from', d.source_metadata -> 'from', 'to', d.source_metadata -> 'to', 'subject', d.title,
            'internalDate', (extract(epoch from coalesce(d.source_created_at, d.created_at)) * 1000)::bigint::text,
            'body_text', d.raw_payload ->> 'text') order by coalesce(d.source_created_at, d.created_at), d.id) as messages,
        min(coalesce(d.source_created_at, d.created_at)) as first_at, max(coalesce(d.source_created_at, d.created_at)) as last_at,
        min(d.created_at) as created_at, max(d.updated_at) as updated_at
    from public.source_documents d
    where d.document_type = 'gmail.message' and d.thread_id is not null and d.deleted_at is null
    group by d.tenant_id, d.source_id, d.thread_id
) t;
grant select on public.gmail_threads to service_role, authenticated;
