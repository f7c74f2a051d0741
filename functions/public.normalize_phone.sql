-- public.normalize_phone.sql: returns a telephone number in the form in which numbers are compared.
-- It removes the channel prefix and punctuation, and replaces `00` by `+`. With a `+` the number is international; without one only its digits are known.
-- Returns null if it is not a number (a name, a short code, a withheld caller).
create or replace function public.normalize_phone(text) returns text
language plpgsql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    plain text := regexp_replace(normalize($1, nfkc), '^\s*(whatsapp|tel|sms|sips?|client):', '', 'i');
    is_international boolean;
    digits text;
begin
    plain := split_part(split_part(plain, '@', 1), ';', 1);
    plain := regexp_replace(plain, '(ext\.?|x|#)\s*\d{1,6}\s*$', '', 'i');
    -- +44 (0)20: the zero is only dialled inside the country, without the country code. Italy alone also dials it from abroad.
    if plain ~ '^\s*(\+|00)' and plain !~ '^\s*(\+|00)\s*(39|378|379)' then
        plain := replace(plain, '(0)', '');
    end if;
    -- Removes invisible marks and the punctuation between digits.
    plain := regexp_replace(plain, '[[:space:]()./\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u2010-\u2015\u2212-]', '', 'g');
    is_international := plain ~ '^(\+|00)';
    digits := regexp_replace(plain, '^(\+|00)', '');
    if digits !~ '^\d{7,15}$' or digits in ('266696687', '86282452253', '7378742833', '2562533', '8566696') then
        return null;
    end if;
    return case when is_international then '+' else '' end || digits;
end $$;
