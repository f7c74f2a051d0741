//! Patterns of rules: letters of any size, and `*` for any run of characters.

/// Whether a text is like a pattern as a whole.
pub(super) fn is_like(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (folded(pattern), folded(text));
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Whether an address is the one that is meant: an address, a pattern of one, or a domain with those below it.
pub(super) fn is_address(pattern: &str, address: &str) -> bool {
    let meant = pattern.trim().trim_start_matches('@');
    if meant.contains('@') || meant.contains('*') {
        return is_like(meant, address);
    }
    let (meant, address) = (folded(meant), folded(address));
    let domain = address.rsplit_once('@').map_or("", |(_, domain)| domain);
    domain == meant || domain.strip_suffix(&meant).is_some_and(|above| above.ends_with('.'))
}

/// Whether a subject has these words, or is like a pattern as a whole.
pub(super) fn is_subject(pattern: &str, subject: &str) -> bool {
    match pattern.contains('*') {
        true => is_like(pattern, subject),
        false => folded(subject).contains(&folded(pattern)),
    }
}

fn folded(text: &str) -> String {
    text.trim().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_run_of_characters() {
        for (pattern, text, expected) in [
            ("bulk", " Bulk ", true),
            ("bulk", "bulky", false),
            ("*", "", true),
            ("no-reply@*", "NO-REPLY@shop.example", true),
            ("no-reply@*", "xno-reply@shop.example", false),
            ("*@*.example", "a@b.example", true),
            ("*@*.example", "a@example", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("**x", "xx", true),
            ("", "", true),
            ("", "x", false),
        ] {
            assert_eq!(is_like(pattern, text), expected, "{pattern:?} {text:?}");
        }
    }

    #[test]
    fn an_address_is_meant_by_itself_by_a_pattern_or_by_its_domain() {
        for (pattern, expected) in [
            ("ann@mail.shop.example", true),
            ("Ann@Mail.Shop.example", true),
            ("shop.example", true),
            ("@mail.shop.example", true),
            ("hop.example", false),
            ("ann@*", true),
            ("*.example", true),
            ("ann", false),
        ] {
            assert_eq!(is_address(pattern, "ann@mail.shop.example"), expected, "{pattern}");
        }
        assert!(!is_address("example.com", "nobody"));
    }
}
