-- Which providers a channel can have is the program's list (`engine::intake::providers`), which grows. The database checks the form of the
-- word alone; a word that the program does not know is an error that names it.
alter table public.ingestion_providers drop constraint ingestion_providers_provider_code_check;
alter table public.ingestion_providers
    add constraint ingestion_providers_provider_code_check check (provider_code ~ '^[a-z][a-z0-9_]{0,39}$');
