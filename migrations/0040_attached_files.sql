-- Files that came with an event are documents beside the event's own.

-- When lane `remember_activity` looked at the file: it has a document since, or is of a kind that makes none. Null: it came before files were read. The upkeep
-- task `attached` has its activity remembered again.
alter table tributary.activity_attachments add column remembered_at timestamptz;
