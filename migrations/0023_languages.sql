-- A tenant can fix the language of its texts, instead of having it detected text by text.

-- `lang`: the language of all of its texts; null: detected. `relabel_after`: the last document that has got the label of the present setting, in the order
-- of their ids (upkeep task `languages`); null: all have it.
alter table memory.tenants
    add column lang regconfig,
    add column relabel_after uuid;
