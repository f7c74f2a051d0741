-- A tenant's memory can move to another model while it is searched (docs/adr/0030-memory-moves-between-models.md).

-- `is_chosen`: a person chose the model, so the setting EMBEDDER does not move this memory. `left_model` and `moved_at`: the last move.
alter table memory.tenants
    add column is_chosen boolean not null default false,
    add column left_model text,
    add column moved_at timestamptz;
-- A search learns which model it has to ask.
grant select (model) on memory.tenants to authenticated;

-- Since when no tenant uses the model. Its table is dropped an hour later (upkeep task `models`).
alter table memory.models add column unused_since timestamptz;

-- The move of a tenant's memory from one model to another: at most one per tenant. Searches use `memory.tenants.model` until the one statement that
-- ends `indexing`. Chunks get their vectors in the order of their ids: `after` is the last one that was looked at. Retention: removed when the move ends.
create table memory.moves (
    tenant_id uuid primary key references public.tenants (id) on delete cascade,
    from_model text not null references memory.models (name),
    to_model text not null references memory.models (name),
    -- embedding: chunks get vectors; indexing: the index is built, and searches switch; tidying: searches have switched, and the old vectors go;
    -- cancelling: the new vectors go.
    state text not null default 'embedding' check (state in ('embedding', 'indexing', 'tidying', 'cancelling')),
    -- A person chose the model, see above.
    is_chosen boolean not null,
    asked_by text not null check (length(asked_by) between 1 and 200),
    after uuid,
    -- An estimate: chunks that still lack a vector.
    n_left bigint not null,
    n_embedded bigint not null default 0,
    tokens bigint not null default 0,
    cost_micros bigint not null default 0,
    -- What all of it costs, as estimated at the beginning.
    estimated_micros bigint not null default 0,
    -- Chunks per second, lately.
    rate float8,
    -- Why it does not go on at the moment.
    waits_for text,
    begun_at timestamptz not null default now(),
    progressed_at timestamptz not null default now(),
    check (from_model <> to_model)
);
select tributary.protect('memory.moves');
