-- tributary.client_domain.sql: returns the domain of an address on the web or of an e-mail address, without `www`; null if it is none, or one at which
-- anybody has a mailbox (gmail.com and the like), which says nothing about a company. An index is made of it (contacts_domain_idx): if it
-- answers otherwise, the index gets another name, so that it is built anew.
create or replace function tributary.client_domain(p_address text) returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
    with plain as (
        select regexp_replace(regexp_replace(regexp_replace(lower(trim(p_address)),
            '^(https?://|mailto:)', ''), '^.*@', ''), '(^www\.)|([/?#:\s>].*$)|(\.$)', '', 'g') as domain
    )
    select domain from plain
    where domain ~ '^[^\s@/]+\.[^\s@/.]{2,}$'
        and domain !~ ('^(gmail|googlemail|outlook|hotmail|live|msn|yahoo|ymail|rocketmail|aol|gmx|web|t-online|freenet|icloud|me|mac|proton'
            || '|protonmail|pm|mail|email|zoho|yandex|ya|qq|163|126|sina|naver|daum|hanmail|rediffmail|fastmail|hey|tutanota|tuta|posteo|mailbox'
            || '|orange|wanadoo|free|laposte|sfr|libero|virgilio|tiscali|alice|btinternet|sky|virginmedia|ntlworld|talktalk|comcast|verizon|att'
            || '|sbcglobal|bellsouth|cox|charter|earthlink|juno|shaw|rogers|bigpond|optusnet|telstra|uol|bol|terra|seznam|wp|o2|onet|interia|bluewin|hispeed)'
            || '\.(com|net|org|de|at|ch|fr|it|es|nl|be|pl|cz|se|no|dk|fi|pt|ie|eu|me|ru|ua|jp|kr|cn|in|ca|us|co|io|uk|au|nz|br|mx|ar)'
            || '(\.(uk|jp|kr|in|nz|za|au|br|mx|ar|tw|hk|sg))?$')
        and domain not in ('co.uk', 'com.au')
$$;
revoke execute on function tributary.client_domain(text) from public;
grant execute on function tributary.client_domain(text) to service_role, authenticated;
