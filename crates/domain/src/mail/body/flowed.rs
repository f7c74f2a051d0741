//! Joins the lines of a text that a mail program has broken softly (`format=flowed`, RFC 3676).

/// Joins lines that end in a blank with the next one of the same depth of quotation. With `deletes_space` the blank belongs to the break.
pub(in crate::mail) fn unflow(text: &str, deletes_space: bool) -> String {
    let mut out = String::with_capacity(text.len());
    // The depth of the paragraph that goes on.
    let mut open: Option<usize> = None;
    for line in text.split('\n') {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let depth = line.bytes().take_while(|byte| *byte == b'>').count();
        let words = &line[depth..];
        let words = words.strip_prefix(' ').unwrap_or(words);
        let is_signature = words == "-- ";
        let begins = open != Some(depth) || is_signature;
        if begins {
            if !out.is_empty() || open.is_some() {
                out.push('\n');
            }
            out.extend(std::iter::repeat_n('>', depth));
            // A line that begins with this sign and is no quotation keeps the blank before it.
            if depth > 0 || words.starts_with('>') {
                out.push(' ');
            }
        }
        let is_soft = words.ends_with(' ') && !is_signature;
        out.push_str(if is_soft && deletes_space { &words[..words.len() - 1] } else { words });
        open = is_soft.then_some(depth);
        if !is_soft && out.is_empty() {
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soft_breaks_are_joined() {
        for (text, expected) in [
            ("one \ntwo \nthree\nfour", "one two three\nfour"),
            ("> a \n> b\n>> c \n> d", "> a b\n>> c \n> d"),
            ("words\n-- \nAnn", "words\n-- \nAnn"),
            ("words \n-- \nAnn", "words \n-- \nAnn"),
            (" >no quote", " >no quote"),
            ("1 \n > 0", "1 > 0"),
            ("a\n\nb", "a\n\nb"),
        ] {
            assert_eq!(unflow(text, false), expected, "of {text:?}");
        }
        assert_eq!(unflow("won \nderful", true), "wonderful");
    }
}
