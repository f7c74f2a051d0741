//! Takes the contents of files out of a large JSON body while it arrives, so that memory holds only the small rest. It looks for where
//! strings begin and end, and for nothing else; whether the rest is JSON at all is checked later.

use super::providers::LargeBody;

/// A stretch of a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Cut<'a> {
    /// Part of the JSON that is left.
    Rest(&'a [u8]),
    /// Part of a file's content as it is written there: base64, perhaps with JSON's escapes.
    Content(&'a [u8]),
    /// The content ends here.
    End,
}

/// A scanner that is fed with a body piece by piece.
pub(super) struct Lift {
    wanted: LargeBody,
    /// Whether each container around the current position is an object, outermost first. Those further in are only counted.
    around: [bool; 3],
    depth: usize,
    expects_key: bool,
    /// The names that lead to the current position, on the first and the third level.
    names: [Vec<u8>; 2],
    within: Within,
    is_escaped: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Structure,
    Name,
    Text,
    /// A text that is taken out.
    Content,
    /// A text that is left out.
    Dropped,
}

/// Names of a [`LargeBody`] are not longer.
const MOST_NAME: usize = 16;

impl Lift {
    pub fn new(wanted: LargeBody) -> Self {
        let (around, names) = (Default::default(), Default::default());
        Self { wanted, around, depth: 0, expects_key: false, names, within: Within::Structure, is_escaped: false }
    }

    /// Cuts the next piece into stretches, in order.
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
                // An escaped character ends nothing.
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

    /// The buffer for a name at the current position.
    fn name(&mut self) -> Option<&mut Vec<u8>> {
        match self.depth {
            1 => Some(&mut self.names[0]),
            3 => Some(&mut self.names[1]),
            _ => None,
        }
    }

    /// The kind of text that begins at the current position.
    fn text(&self) -> Within {
        let [outer, inner] = [0, 1].map(|nth| self.names[nth].as_slice());
        let (list, content) = self.wanted.files;
        let is_content = outer == list.as_bytes() && inner == content.as_bytes();
        match self.depth {
            3 if self.around == [true, false, true] && is_content => Within::Content,
            1 if self.wanted.left_out.iter().any(|name| outer == name.as_bytes()) => Within::Dropped,
            _ => Within::Text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIL: LargeBody =
        LargeBody { most_bytes: 1 << 20, files: ("Attachments", "Content"), left_out: &["RawEmail"] };

    /// The rest and the contents of a mail that arrives in pieces of this size.
    fn lifted(mail: &str, size: usize) -> (String, Vec<String>) {
        let (mut lift, mut rest, mut contents, mut open) = (Lift::new(MAIL), Vec::new(), Vec::new(), Vec::new());
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
