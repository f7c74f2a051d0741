-- When a provider began to fail. How long it is left alone follows from that: a number of failures says nothing, because many sources fail in the
-- same second.
alter table tributary.gates add column failing_since timestamptz;
