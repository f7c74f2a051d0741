-- Files and bodies too large for a row: their bytes lie in the blob store (a folder, or S3) as {tenant}/{sha256}, and are named here first, so
-- that no object is ever without a row that the collector finds.

-- What names a blob is a column `blob_key` of another table (store::blobs::REFERENCES). Whoever is about to name one touches its row before.
-- No foreign key to tenants: when a tenant goes, its rows stay until the collector has removed the objects.
-- Retention: a day after nothing names it any more and nobody has touched it (task `blobs`).
create table tributary.blobs (
    tenant_id uuid not null,
    sha256 text not null check (sha256 ~ '^[0-9a-f]{64}$'),
    bytes bigint not null check (bytes >= 0),
    touched_at timestamptz not null default now(),
    primary key (tenant_id, sha256)
);
select tributary.protect('tributary.blobs');
