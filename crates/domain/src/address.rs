//! E-mail addresses and telephone numbers, each in one normal form however they are written. This is the only normaliser of the program.
//!
//! Beside it stands `tributary.address_key` in the database, which makes the key that contacts are matched by. It has to be there: rows also
//! come from SQL and from PostgREST's clients, and a trigger matches them. It folds further (dots and tags of one mail provider, numbers that
//! are written in two ways for one telephone), and reads what this module returns as well as raw text, so both agree on a person.

use phonenumber::{Mode, country};
use unicode_normalization::UnicodeNormalization as _;

/// The country that numbers without a country code belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region(country::Id);

impl std::str::FromStr for Region {
    type Err = String;
    fn from_str(code: &str) -> Result<Self, String> {
        code.to_ascii_uppercase().parse().map(Self).map_err(|_| "a region is two letters, such as US, DE or BR".into())
    }
}

impl std::fmt::Display for Region {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.as_ref())
    }
}

/// An address with its name is not longer.
const MOST_CHARS: usize = 1_000;
/// The limits of RFC 5321, for the part between the angle brackets.
const EMAIL_BYTES: usize = 254;
const LOCAL_BYTES: usize = 64;
/// Sent by networks for a withheld number: the letters of a word as digits.
const WITHHELD: [&str; 5] = ["266696687", "86282452253", "7378742833", "2562533", "8566696"];

/// The normal form of an address: `local@domain` in small letters and with an ASCII domain, or a number in E.164. None: it identifies nobody
/// (a name, a short code, a withheld number, a number of no known country).
pub fn normal_address(text: &str, region: Option<Region>) -> Option<String> {
    if text.len() > MOST_CHARS {
        return None;
    }
    let shown: String = text.chars().filter(|c| !is_invisible(*c)).collect();
    let shown = shown.trim();
    match prefix(shown) {
        Some(("client", _)) => None,
        Some((_, rest)) => phone(rest.split('@').next().unwrap_or_default(), region),
        None if shown.contains('@') => email(shown),
        None => phone(shown, region),
    }
}

/// The normal form of an e-mail address. None: it is none, or something else.
pub fn normal_email(text: &str) -> Option<String> {
    normal_address(text, None).filter(|address| address.contains('@'))
}

/// The normal form of a telephone number. None: it is none, or something else.
pub fn normal_phone(text: &str, region: Option<Region>) -> Option<String> {
    normal_address(text, region).filter(|address| !address.contains('@'))
}

/// The prefix that a network puts before an address, and the rest.
fn prefix(text: &str) -> Option<(&'static str, &str)> {
    ["whatsapp", "tel", "sms", "sips", "sip", "client"].into_iter().find_map(|name| {
        let rest = text.get(name.len()..)?.strip_prefix(':')?;
        text.get(..name.len())?.eq_ignore_ascii_case(name).then_some((name, rest))
    })
}

/// Characters without a width: pasted from address books, or meant to deceive.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
        || (c.is_control() && !c.is_whitespace())
}

fn email(text: &str) -> Option<String> {
    let address = first_address(text);
    let (local, domain) = address.rsplit_once('@')?;
    let unquoted = local.strip_prefix('"').and_then(|local| local.strip_suffix('"'));
    let local = match unquoted {
        Some(inner) if is_atom(inner) => inner,
        Some(inner) if !inner.is_empty() && !inner.contains(['"', '\\']) => local,
        Some(_) => return None,
        None if is_atom(local) => local,
        None => return None,
    };
    // Only ASCII letters are folded: for other scripts the mail server decides which spellings are one mailbox.
    let local: String = local.nfc().map(|c| c.to_ascii_lowercase()).collect();
    let domain = idna::domain_to_ascii(domain.trim_end_matches('.')).ok()?;
    let is_domain = domain.split('.').all(|label| (1..=63).contains(&label.len()))
        && domain.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    let whole = format!("{local}@{domain}");
    (is_domain && local.len() <= LOCAL_BYTES && whole.len() <= EMAIL_BYTES).then_some(whole)
}

/// Whether a local part needs no quotes. Letters of every script are fine.
fn is_atom(local: &str) -> bool {
    !local.is_empty() && local.chars().all(|c| !c.is_whitespace() && !c.is_control() && !r#"()<>[]:;@\,""#.contains(c))
}

/// The part between the angle brackets of the first address, else the first address without its comments.
fn first_address(text: &str) -> String {
    let (mut plain, mut angled) = (String::new(), None::<String>);
    let (mut is_quoted, mut depth) = (false, 0_u32);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' if is_quoted || depth > 0 => {
                let escaped = chars.next();
                if is_quoted && depth == 0 {
                    let into = angled.as_mut().unwrap_or(&mut plain);
                    into.push(c);
                    into.extend(escaped);
                }
                continue;
            }
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted && depth > 0 => depth -= 1,
            _ if depth > 0 => {}
            '"' => {
                is_quoted = !is_quoted;
                angled.as_mut().unwrap_or(&mut plain).push(c);
            }
            '<' if !is_quoted => angled = Some(String::new()),
            '>' if !is_quoted && angled.is_some() => break,
            ',' | ';' if !is_quoted => break,
            // `Undisclosed: ann@example.com;` is a group of one.
            ':' if !is_quoted && angled.is_none() => plain.clear(),
            _ => angled.as_mut().unwrap_or(&mut plain).push(c),
        }
    }
    angled.unwrap_or(plain).trim().to_owned()
}

fn phone(text: &str, region: Option<Region>) -> Option<String> {
    let plain: String = text.nfkc().collect();
    // An extension is a desk behind the same number.
    let main = plain.split(|c: char| c.is_alphabetic() || c == ';' || c == '#').next().unwrap_or_default().trim();
    let digits: String = main.chars().filter(char::is_ascii_digit).collect();
    if !(7..=17).contains(&digits.len()) || WITHHELD.contains(&digits.as_str()) {
        return None;
    }
    let Some(whole) = main.strip_prefix('+').or_else(|| main.strip_prefix("00")) else {
        // Without its country it must be a number of the region's.
        let number = phonenumber::parse(Some(region?.0), main).ok()?;
        return phonenumber::is_valid(&number).then(|| number.format().mode(Mode::E164).to_string());
    };
    // The zero in parentheses is for callers inside the country. Only Italy dials it from abroad too.
    let keeps_zero = ["39", "378", "379"].iter().any(|code| whole.trim_start().starts_with(code));
    let whole = if keeps_zero { whole.to_owned() } else { whole.replace("(0)", "") };
    let digits: String = whole.chars().filter(char::is_ascii_digit).collect();
    let number = phonenumber::parse(None, format!("+{digits}")).ok()?;
    // The number stays as it is written: numbering plans change faster than the library. Only a trunk zero is removed, which it knows well.
    let known = number.format().mode(Mode::E164).to_string();
    let country = number.country().code().to_string().len();
    let without_zero = format!("+{}{}", &digits[..country], &digits[country..].replacen('0', "", 1));
    let has_zero = digits[country..].starts_with('0') && known == without_zero && phonenumber::is_valid(&number);
    let e164 = if has_zero { known } else { format!("+{digits}") };
    (9..=16).contains(&e164.len()).then_some(e164)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(text: &str) -> Option<String> {
        normal_address(text, None)
    }

    /// S31.
    #[test]
    fn an_email_address_has_one_form_however_it_is_written() {
        let forms = [
            "ann@example.com",
            "ANN@EXAMPLE.COM",
            " Ann@Example.com. ",
            "<ann@example.com>",
            "Ann <ann@example.com>",
            "\"Smith, Ann\" <ann@example.com>",
            "\"ceo@corp.test\" <ann@example.com>",
            "Ann (at work <x@y.test>) <ann@example.com>",
            "ann@example.com (Ann)",
            "\"ann\"@example.com",
            "ann@example.com, bob@example.com",
            "Friends: ann@example.com;",
            "\u{202a}ann@example.com\u{202c}",
            "ann@ｅｘａｍｐｌｅ.com",
        ];
        for form in forms {
            assert_eq!(normal(form).as_deref(), Some("ann@example.com"), "{form:?}");
        }
        let others = [
            ("ann+shop@example.com", "ann+shop@example.com"),
            ("Jürgen@MÜNCHEN.example", "jürgen@xn--mnchen-3ya.example"),
            ("İpek@example.com", "İpek@example.com"),
            ("o'neil@example.com", "o'neil@example.com"),
            ("\"two words\"@example.com", "\"two words\"@example.com"),
            ("аnn@example.com", "аnn@example.com"), // a Cyrillic а is somebody else
        ];
        for (form, wanted) in others {
            assert_eq!(normal(form).as_deref(), Some(wanted), "{form:?}");
        }
        let long = format!("{}@example.com", "x".repeat(65));
        for none in [
            "",
            "@",
            "ann@",
            "@example.com",
            "ann example.com",
            "a b@example.com",
            "ann@exa mple.com",
            "ann@a..b",
            &long,
            "\"\"@x.test",
            "a@b@",
        ] {
            assert_eq!(normal(none), None, "{none:?}");
        }
    }

    #[test]
    fn an_address_of_the_other_kind_is_none() {
        for (text, email, phone) in [
            ("Ann <ANN@example.com>", Some("ann@example.com"), None),
            ("+ann@example.com", Some("+ann@example.com"), None),
            ("+1 415 867 5309", None, Some("+14158675309")),
            ("sip:+14158675309@pbx.example", None, Some("+14158675309")),
            ("ann", None, None),
        ] {
            assert_eq!((normal_email(text).as_deref(), normal_phone(text, None).as_deref()), (email, phone), "{text}");
        }
    }

    #[test]
    fn a_number_has_one_form_however_it_is_written() {
        let us: Region = "us".parse().expect("a region");
        let forms = [
            "+14158675309",
            "+1 (415) 867-5309",
            "+1.415.867.5309",
            "1-415-867-5309",
            "(415) 867-5309",
            "4158675309",
            "415 867 5309",
            "whatsapp:+14158675309",
            "tel:+1-415-867-5309",
            "sip:+14158675309@pbx.example.com",
            "0014158675309",
            "＋１４１５８６７５３０９",
            "\u{202d}+1 415\u{2011}867\u{2011}5309\u{202c}",
            "+1 415 867 5309 ext. 12",
        ];
        for form in forms {
            assert_eq!(normal_address(form, Some(us)).as_deref(), Some("+14158675309"), "{form:?}");
        }
        assert_eq!(normal("(415) 867-5309"), None, "without a region nothing is guessed");
        let abroad = [
            ("+44 (0)20 7946 0958", "+442079460958"),
            ("0039 06 698 12345", "+390669812345"),
            ("+39 06 698 12345", "+390669812345"),
            ("+55 11 91234-5678", "+5511912345678"),
            ("+49 30 901820", "+4930901820"),
            ("+44 020 7946 0958", "+442079460958"),
            ("+54 9 11 2345 6789", "+5491123456789"),
            ("+52 1 55 1234 5678", "+5215512345678"),
        ];
        for (form, wanted) in abroad {
            assert_eq!(normal_address(form, Some(us)).as_deref(), Some(wanted), "{form:?}");
        }
        for none in [
            "anonymous",
            "Restricted",
            "+266696687",
            "32665",
            "ACME",
            "client:joe",
            "+1",
            "+999 1234567890",
            "+1415867530912345678",
        ] {
            assert_eq!(normal_address(none, Some(us)), None, "{none:?}");
        }
    }
}
