//! Takes the attachments out of a mail while it is still coming, so that it need not be held: their content goes elsewhere, and the JSON that is
//! left is small. It looks only for where strings begin and end; whether the rest is JSON is found out later, from what is left.

/// A stretch of a mail.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::intake) enum Cut<'a> {
    /// Of the JSON that is left.
    Rest(&'a [u8]),
    /// Of an attachment's content, as it is written there: base64, perhaps with JSON's escapes.
    Content(&'a [u8]),
    /// The content ends here.
    End,
}

/// Where the mail has got to. Fed piece by piece.
#[derive(Default)]
pub(in crate::intake) struct Lift {
    /// Whether each container around us is an object, outermost first. Those further in are only counted.
    around: [bool; 3],
    depth: usize,
    expects_key: bool,
    /// The names that lead here, on the first and the third level.
    names: [Vec<u8>; 2],
    within: Within,
    is_escaped: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Within {
    #[default]
    Structure,
    Name,
    Text,
    /// A text that is taken out, and where it goes.
    Content,
    Dropped,
}

/// Longer names are none that we look for.
const MOST_NAME: usize = 16;

impl Lift {
    /// What a piece consists of, in order.
    pub fn feed<'a>(&mut self, piece: &'a [u8]) -> Vec<Cut<'a>> {
        let (mut cuts, mut start) = (Vec::new(), 0);
        for (at, &byte) in piece.iter().enumerate() {
            let before = self.within;
            self.step(byte);
            if self.within == before {
                continue;
            }
            // Quotes belong to the rest.
            match (before, self.within) {
                (_, Within::Content | Within::Dropped) => {
                    cuts.push(Cut::Rest(&piece[start..=at]));
                    start = at + 1;
                }
                (Within::Content, _) => {
                    cuts.extend([Cut::Content(&piece[start..at]), Cut::End]);
                    start = at;
                }
                (Within::Dropped, _) => start = at,
                _ => {}
            }
        }
        match self.within {
            Within::Content => cuts.push(Cut::Content(&piece[start..])),
            Within::Dropped => {}
            _ => cuts.push(Cut::Rest(&piece[start..])),
        }
        cuts
    }

    fn step(&mut self, byte: u8) {
        if self.within != Within::Structure {
            if std::mem::take(&mut self.is_escaped) {
                // Whatever it is, it ends nothing.
            } else if byte == b'\\' {
                self.is_escaped = true;
            } else if byte == b'"' {
                self.within = Within::Structure;
                return;
            }
            if self.within == Within::Name
                && let Some(name) = self.name()
                && name.len() <= MOST_NAME
            {
                name.push(byte);
            }
            return;
        }
        match byte {
            b'"' if self.expects_key => {
                self.within = Within::Name;
                if let Some(name) = self.name() {
                    name.clear();
                }
            }
            b'"' => self.within = self.text(),
            b'{' | b'[' => {
                if let Some(around) = self.around.get_mut(self.depth) {
                    *around = byte == b'{';
                }
                self.depth += 1;
                self.expects_key = byte == b'{';
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.expects_key = false;
            }
            b':' => self.expects_key = false,
            b',' => self.expects_key = self.depth > 0 && self.around.get(self.depth - 1).copied().unwrap_or(false),
            _ => {}
        }
    }

    /// The one that a name read now is written to.
    fn name(&mut self) -> Option<&mut Vec<u8>> {
        match self.depth {
            1 => Some(&mut self.names[0]),
            3 => Some(&mut self.names[1]),
            _ => None,
        }
    }

    /// What a value that begins here is.
    fn text(&self) -> Within {
        let [outer, inner] = [0, 1].map(|nth| self.names[nth].as_slice());
        match self.depth {
            3 if self.around == [true, false, true] && outer == b"Attachments" && inner == b"Content" => {
                Within::Content
            }
            1 if outer == b"RawEmail" => Within::Dropped, // the original has it
            _ => Within::Text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left, and the contents, however the mail is torn.
    fn lifted(mail: &str, size: usize) -> (String, Vec<String>) {
        let (mut lift, mut rest, mut contents, mut open) = (Lift::default(), Vec::new(), Vec::new(), Vec::new());
        for piece in mail.as_bytes().chunks(size) {
            for cut in lift.feed(piece) {
                match cut {
                    Cut::Rest(bytes) => rest.extend_from_slice(bytes),
                    Cut::Content(bytes) => open.extend_from_slice(bytes),
                    Cut::End => contents.push(String::from_utf8(std::mem::take(&mut open)).expect("text")),
                }
            }
        }
        assert!(open.is_empty());
        (String::from_utf8(rest).expect("text"), contents)
    }

    #[test]
    fn contents_of_attachments_are_taken_out_and_nothing_else() {
        let cases = [
            (
                r#"{"Attachments":[{"Name":"a","Content":"QQ=="},{"Content":"Qk\/i"}]}"#,
                r#"{"Attachments":[{"Name":"a","Content":""},{"Content":""}]}"#,
                vec!["QQ==", r"Qk\/i"],
            ),
            (r#"{"RawEmail":"x\"y","Subject":"Content"}"#, r#"{"RawEmail":"","Subject":"Content"}"#, vec![]),
            (
                r#"{ "Content" : "kept", "Attachments" : [ { "Content" : "QQ" , "Name":"Content" } ] , "TextBody":"Attachments" }"#,
                r#"{ "Content" : "kept", "Attachments" : [ { "Content" : "" , "Name":"Content" } ] , "TextBody":"Attachments" }"#,
                vec!["QQ"],
            ),
            // Not where attachments are.
            (r#"{"Attachments":{"a":{"Content":"kept"}}}"#, r#"{"Attachments":{"a":{"Content":"kept"}}}"#, vec![]),
            (
                r#"{"Attachments":[{"More":{"Content":"kept"}}]}"#,
                r#"{"Attachments":[{"More":{"Content":"kept"}}]}"#,
                vec![],
            ),
            (r#"{"Attachments":[{"Content":["kept"]}]}"#, r#"{"Attachments":[{"Content":["kept"]}]}"#, vec![]),
            (r#"[{"Attachments":[{"Content":"kept"}]}]"#, r#"[{"Attachments":[{"Content":"kept"}]}]"#, vec![]),
            (
                r#"{"Headers":[{"Content":"kept"}],"X":"\"Attachments\":[{\"Content\":\"kept\"}]"}"#,
                r#"{"Headers":[{"Content":"kept"}],"X":"\"Attachments\":[{\"Content\":\"kept\"}]"}"#,
                vec![],
            ),
            ("]}}", "]}}", vec![]),
        ];
        for (mail, rest, contents) in cases {
            for size in [1, 2, 3, 7, 1_000] {
                let wanted = (rest.to_owned(), contents.iter().map(|text| (*text).to_owned()).collect());
                assert_eq!(lifted(mail, size), wanted, "{mail} in pieces of {size}");
            }
        }
    }
}
