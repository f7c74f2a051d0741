-- tributary.client_name_key.sql: returns a company's name without case, accents, punctuation, spaces and legal form; null if nothing is left. An index
-- is made of it (contacts_company_idx): if it answers otherwise, the index gets another name, so that it is built anew.
create or replace function tributary.client_name_key(p_name text) returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
    with plain as (
        select trim(regexp_replace(regexp_replace(regexp_replace(regexp_replace(
            lower(normalize(p_name, nfkd)),
            '[\u0300-\u036f''’‘`.]', '', 'g'),
            '[&+]', ' and ', 'g'),
            '[\s!-/:-@\[-_{-~\u00a0\u2010-\u2015«»„“”·®™©]+', ' ', 'g'),
            '^the ', '')) as name
    ), short as (
        select name, trim(regexp_replace(name,
            '( (and co|and company|inc|incorporated|ltd|limited|llc|llp|lp|plc|gmbh|mbh|ag|kg|kgaa|ug|ohg|ek|ev|se|co|corp|corporation|company'
            || '|sa|sas|sarl|srl|spa|sl|bv|nv|ab|oy|oyj|as|aps|pty|pte|kft|zrt|sro|doo|dd|ltda|kk))+$', '')) as stem
        from plain
    )
    select nullif(replace(case when stem = '' then name else stem end, ' ', ''), '') from short
$$;
revoke execute on function tributary.client_name_key(text) from public;
grant execute on function tributary.client_name_key(text) to service_role, authenticated;
