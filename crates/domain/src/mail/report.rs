//! The words of a report about another letter.

use super::head::Head;

/// The fields that say what happened to whom, with the words for them.
const FIELDS: [(&str, &str); 6] = [
    ("final-recipient", "Recipient"),
    ("original-recipient", "Original recipient"),
    ("action", "Action"),
    ("status", "Status"),
    ("diagnostic-code", "Reason"),
    ("disposition", "Disposition"),
];
/// Later recipients are not told.
const MOST_GROUPS: usize = 20;

/// Tells a `message/delivery-status` or `message/disposition-notification`, which consist of groups of fields. None: it tells nothing.
pub(super) fn in_words(text: &str) -> Option<String> {
    let mut rest = text.as_bytes();
    let mut lines = Vec::new();
    for _ in 0..MOST_GROUPS {
        let before = rest.len();
        let (group, after) = Head::read(rest);
        for (field, word) in FIELDS {
            if let Some(value) = group.words(field) {
                // `rfc822; ann@example.com`: the kind of address says nothing to people.
                let value = value.strip_prefix("rfc822;").map_or(value.as_str(), str::trim);
                lines.push(format!("{word}: {value}"));
            }
        }
        rest = after;
        if rest.is_empty() || rest.len() == before {
            break;
        }
    }
    (!lines.is_empty()).then(|| format!("# Delivery report\n{}", lines.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_what_happened_to_whom() {
        let text = "Reporting-MTA: dns; mx.example.com\n\nFinal-Recipient: rfc822; bob@example.com\nAction: failed\nStatus: 5.1.1\n\
                    Diagnostic-Code: smtp; 550 5.1.1\n  unknown user\n\nFinal-Recipient: rfc822;ann@example.com\nAction: delivered\n";
        assert_eq!(
            in_words(text).as_deref(),
            Some(
                "# Delivery report\nRecipient: bob@example.com\nAction: failed\nStatus: 5.1.1\nReason: smtp; 550 5.1.1 unknown user\n\
                 Recipient: ann@example.com\nAction: delivered"
            )
        );
        for none in ["", "\n\n\n", "nonsense", "X: y"] {
            assert_eq!(in_words(none), None, "of {none:?}");
        }
    }
}
