-- How fast recordings are heard: by the last ones, people are told how long the next one takes.
alter table public.files
    -- The length of a recording; null: its file does not say, and nobody has heard it to its end.
    add column seconds int check (seconds >= 0),
    -- The time that it took to hear it, so far.
    add column heard_ms bigint check (heard_ms >= 0);

create index files_heard_idx on public.files (updated_at desc) where state = 'read' and heard_ms > 0 and seconds > 0;
