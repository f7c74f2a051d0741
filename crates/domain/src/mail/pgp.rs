//! PGP's blocks inside a text.

use super::Note;

const BEGIN: &str = "-----BEGIN PGP ";
const END: &str = "-----END PGP ";

/// Leaves out what only machines read: encrypted blocks, signatures and keys. The words of a signed block stay.
pub(super) fn without_blocks(text: &str, mut note: impl FnMut(Note)) -> String {
    if !text.contains(BEGIN) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let (mut is_in_block, mut is_in_head, mut is_signed) = (false, false, false);
    for line in text.lines() {
        let line = line.trim_end();
        if let Some(what) = line.strip_prefix(BEGIN) {
            is_signed = what.starts_with("SIGNED MESSAGE");
            is_in_head = is_signed;
            is_in_block = !is_signed;
            if is_signed {
                note(Note::Signed);
            } else if what.starts_with("MESSAGE") {
                note(Note::Encrypted);
            }
        } else if line.starts_with(END) {
            (is_in_block, is_signed) = (false, false);
        } else if is_in_head {
            is_in_head = !line.is_empty();
        } else if !is_in_block {
            // Dashes at the beginning of a signed line are escaped.
            out.push_str(line.strip_prefix("- ").filter(|_| is_signed).unwrap_or(line));
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_go_and_signed_words_stay() {
        for (text, expected, notes) in [
            ("plain\n- list", "plain\n- list", vec![]),
            ("a\n-----BEGIN PGP MESSAGE-----\nxyz\n-----END PGP MESSAGE-----\nb", "a\nb\n", vec![Note::Encrypted]),
            (
                "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nwords\n- -- \nAnn\n-----BEGIN PGP SIGNATURE-----\nxyz\n\
                 -----END PGP SIGNATURE-----\n- list",
                "words\n--\nAnn\n- list\n",
                vec![Note::Signed],
            ),
            ("-----BEGIN PGP PUBLIC KEY BLOCK-----\nnever ends", "", vec![]),
        ] {
            let mut found = Vec::new();
            assert_eq!(without_blocks(text, |note| found.push(note)), expected, "of {text:?}");
            assert_eq!(found, notes, "of {text:?}");
        }
    }
}
