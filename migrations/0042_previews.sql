-- Pages as they look: their pictures, and where the lines of their text are on them. And papers, found by what they say.

-- The width of a page as a share of its height, and for each line of its text that is not empty the place on the page: left, top, width and height, each
-- in two bytes as 65535ths of the page. Null: it cannot be drawn, it has no such places, or it was read before they were kept.
alter table public.file_pages add column aspect real, add column line_places bytea;

-- The picture of a page, drawn when somebody looks at it. Retention: 7 days, and no longer than its file.
create table public.file_previews (
    tenant_id uuid not null,
    sha256 text not null,
    page int not null check (page > 0),
    -- A JPEG that was made here. Null: the page cannot be drawn, and for as long as this row stays nobody tries again.
    picture bytea check (length(picture) <= 4194304),
    created_at timestamptz not null default now(),
    primary key (tenant_id, sha256, page),
    foreign key (tenant_id, sha256) references public.files (tenant_id, sha256) on delete cascade
);
create index file_previews_created_at on public.file_previews (created_at);
-- It is packed already.
alter table public.file_previews alter column picture set storage external;
select tributary.protect('public.file_previews');
grant select on public.file_previews to authenticated;

-- Search filters by what papers say: their kind, and sums and dates in a range.
create index document_fields_papers on public.document_fields (tenant_id, left(value, 40)) where name = 'paper';
create index document_fields_amounts on public.document_fields (tenant_id, amount) where name in ('total', 'amount');
create index document_fields_dates on public.document_fields (tenant_id, on_date) where name in ('issued_on', 'starts_on');
create index document_fields_suppliers on public.document_fields (tenant_id) where name = 'supplier';
