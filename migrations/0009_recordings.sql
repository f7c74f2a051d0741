-- Recordings that events only named: fetched once, for agents and for people to hear.

-- The row commits after the bytes are in the blob store. Retention: as long as the activity.
create table tributary.activity_recordings (
    tenant_id uuid not null,
    activity_id uuid not null,
    content_type text not null,
    bytes bigint not null check (bytes > 0),
    blob_key text not null,
    created_at timestamptz not null default now(),
    primary key (tenant_id, activity_id),
    -- By the id alone, as for the payloads.
    foreign key (activity_id) references public.activities (id) on delete cascade
);
create index activity_recordings_blob_idx on tributary.activity_recordings (tenant_id, blob_key);
create index activity_recordings_activity_idx on tributary.activity_recordings (activity_id);
select tributary.protect('tributary.activity_recordings');
grant select on tributary.activity_recordings to authenticated;
