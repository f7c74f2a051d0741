//! Rich text: words of control, groups, and text between them. Nothing of it is trusted to end.

use encoding_rs::Encoding;

use crate::sink::Sink;
use crate::{Result, damaged, markdown};

const DEEPEST: usize = 1_000;

/// The state that ends with its group.
#[derive(Clone, Copy)]
struct Group {
    /// Its text is none of the document's: fonts, colours, pictures, what an unknown program has added.
    is_skipped: bool,
    /// Bytes after a character by its number, for programs that do not know numbers.
    n_fallback: usize,
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    groups: Vec<Group>,
    encoding: &'static Encoding,
    /// Bytes in the document's encoding that are not decoded yet.
    pending: Vec<u8>,
    high_surrogate: Option<u16>,
    paragraph: String,
    page: String,
    row: Vec<String>,
    rows: Vec<Vec<String>>,
    is_in_table: bool,
    is_destination: bool,
    n_to_pass: usize,
}

pub(crate) fn read(bytes: &[u8], sink: &mut Sink<'_>) -> Result<()> {
    sink.head(None, None)?;
    let mut reader = Reader {
        bytes,
        at: 0,
        groups: vec![Group { is_skipped: false, n_fallback: 1 }],
        encoding: encoding_rs::WINDOWS_1252,
        pending: Vec::new(),
        high_surrogate: None,
        paragraph: String::new(),
        page: String::new(),
        row: Vec::new(),
        rows: Vec::new(),
        is_in_table: false,
        is_destination: false,
        n_to_pass: 0,
    };
    reader.run(sink)?;
    reader.paragraph_ends();
    reader.table_ends();
    match reader.page.trim().is_empty() {
        true => Ok(()),
        false => sink.text(None, &reader.page),
    }
}

impl Reader<'_> {
    fn run(&mut self, sink: &mut Sink<'_>) -> Result<()> {
        while let Some(byte) = self.next() {
            match byte {
                b'{' => {
                    let group = self.group();
                    if self.groups.len() == DEEPEST {
                        return Err(damaged("groups inside each other, a thousand deep"));
                    }
                    self.groups.push(group);
                    self.n_to_pass = 0;
                }
                b'}' => {
                    self.decode();
                    self.n_to_pass = 0;
                    if self.groups.len() > 1 {
                        self.groups.pop();
                    }
                }
                b'\\' => self.control(sink)?,
                b'\r' | b'\n' => {}
                byte => self.byte(byte),
            }
        }
        self.decode();
        Ok(())
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied();
        self.at += usize::from(byte.is_some());
        byte
    }

    fn group(&self) -> Group {
        self.groups.last().copied().unwrap_or(Group { is_skipped: false, n_fallback: 1 })
    }

    fn is_skipped(&self) -> bool {
        self.group().is_skipped
    }

    fn skip(&mut self) {
        self.groups.last_mut().into_iter().for_each(|group| group.is_skipped = true);
    }

    /// A byte of text, in the document's encoding.
    fn byte(&mut self, byte: u8) {
        if self.n_to_pass > 0 {
            self.n_to_pass -= 1;
        } else if !self.is_skipped() {
            self.pending.push(byte);
        }
    }

    fn decode(&mut self) {
        if !self.pending.is_empty() {
            let (text, ..) = self.encoding.decode(&self.pending);
            self.paragraph.push_str(&text);
            self.pending.clear();
        }
    }

    fn push(&mut self, text: &str) {
        self.decode();
        if self.n_to_pass > 0 {
            self.n_to_pass -= 1;
        } else if !self.is_skipped() {
            self.paragraph.push_str(text);
        }
    }

    fn control(&mut self, sink: &mut Sink<'_>) -> Result<()> {
        let Some(first) = self.next() else { return Ok(()) };
        if !first.is_ascii_alphabetic() {
            match first {
                b'\'' => {
                    let hex = self.bytes.get(self.at..self.at + 2).and_then(|hex| std::str::from_utf8(hex).ok());
                    self.at = (self.at + 2).min(self.bytes.len());
                    if let Some(byte) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
                        self.byte(byte);
                    }
                }
                b'*' => self.is_destination = true,
                b'~' => self.push("\u{a0}"),
                b'_' => self.push("-"),
                b'\\' | b'{' | b'}' => self.byte(first),
                b'\r' | b'\n' => self.paragraph_ends(),
                _ => {}
            }
            return Ok(());
        }
        let begin = self.at - 1;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_alphabetic) {
            self.at += 1;
        }
        let word = std::str::from_utf8(&self.bytes[begin..self.at]).unwrap_or_default();
        let digits = self.at;
        if self.bytes.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        let number: Option<i64> =
            std::str::from_utf8(&self.bytes[digits..self.at]).ok().and_then(|text| text.parse().ok());
        if self.bytes.get(self.at) == Some(&b' ') {
            self.at += 1;
        }
        self.word(word, number, sink)
    }

    fn word(&mut self, word: &str, number: Option<i64>, sink: &mut Sink<'_>) -> Result<()> {
        let is_unknown = std::mem::take(&mut self.is_destination);
        match word {
            "bin" => {
                self.at =
                    self.at.saturating_add(usize::try_from(number.unwrap_or(0)).unwrap_or(0)).min(self.bytes.len())
            }
            "ansicpg" => {
                self.decode();
                self.encoding = number.and_then(code_page).unwrap_or(self.encoding);
            }
            "mac" => self.encoding = encoding_rs::MACINTOSH,
            "uc" => {
                let n_fallback = usize::try_from(number.unwrap_or(1)).unwrap_or(1).min(100);
                self.groups.last_mut().into_iter().for_each(|group| group.n_fallback = n_fallback);
            }
            "u" => self.unicode(number.unwrap_or(0)),
            "fonttbl" | "colortbl" | "stylesheet" | "info" | "pict" | "header" | "headerl" | "headerr" | "headerf"
            | "footer" | "footerl" | "footerr" | "footerf" | "objdata" | "fldinst" | "listtext" | "pntext"
            | "themedata" => self.skip(),
            "shptxt" | "footnote" | "fldrslt" => {}
            _ if is_unknown => self.skip(),
            _ if self.is_skipped() => {}
            "par" | "sect" => self.paragraph_ends(),
            "line" => self.push("\n"),
            "tab" => self.push("\t"),
            "emdash" => self.push("—"),
            "endash" => self.push("–"),
            "lquote" => self.push("‘"),
            "rquote" => self.push("’"),
            "ldblquote" => self.push("“"),
            "rdblquote" => self.push("”"),
            "bullet" => self.push("•"),
            "intbl" => self.is_in_table = true,
            "pard" => self.is_in_table = false,
            "cell" | "nestcell" => {
                self.decode();
                self.row.push(std::mem::take(&mut self.paragraph));
            }
            "row" | "nestrow" => self.rows.push(std::mem::take(&mut self.row)),
            "page" => {
                self.paragraph_ends();
                self.table_ends();
                if !self.page.trim().is_empty() {
                    sink.text(None, &std::mem::take(&mut self.page))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A character by its number, as UTF-16 has it; what follows is for programs that do not know numbers.
    fn unicode(&mut self, number: i64) {
        self.decode();
        let unit = (number & 0xffff) as u16;
        let units: Vec<u16> = self.high_surrogate.take().into_iter().chain([unit]).collect();
        if !self.is_skipped() {
            match char::decode_utf16(units.iter().copied()).collect::<std::result::Result<String, _>>() {
                Ok(text) => self.paragraph.push_str(&text),
                Err(_) if (0xd800..0xdc00).contains(&unit) => self.high_surrogate = Some(unit),
                Err(_) => self.paragraph.push('\u{fffd}'),
            }
        }
        self.n_to_pass = self.group().n_fallback;
    }

    fn paragraph_ends(&mut self) {
        self.decode();
        // Within a cell it is a line of the cell.
        if self.is_in_table {
            self.paragraph.push('\n');
            return;
        }
        self.table_ends();
        let text = std::mem::take(&mut self.paragraph);
        if !text.trim().is_empty() {
            self.page.push_str(&format!("{}\n\n", text.trim_end()));
        }
    }

    fn table_ends(&mut self) {
        let last = std::mem::take(&mut self.row);
        self.rows.extend((!last.is_empty()).then_some(last));
        if !self.rows.is_empty() {
            self.page.push_str(&markdown::table(&std::mem::take(&mut self.rows)));
            self.page.push('\n');
        }
    }
}

fn code_page(number: i64) -> Option<&'static Encoding> {
    let label = match number {
        932 => "shift_jis".to_owned(),
        936 => "gbk".to_owned(),
        949 => "euc-kr".to_owned(),
        950 => "big5".to_owned(),
        10_000 => "macintosh".to_owned(),
        65_001 => "utf-8".to_owned(),
        number => format!("windows-{number}"),
    };
    Encoding::for_label(label.as_bytes())
}

#[cfg(test)]
mod tests {
    use domain::reading::{FileKind, Line};

    use super::*;
    use crate::sink::Limits;

    fn text(rtf: &str) -> String {
        let mut out = Vec::new();
        let mut sink = Sink::new(&mut out, Limits::default());
        sink.kind(FileKind::Rtf);
        let outcome = read(rtf.as_bytes(), &mut sink);
        sink.close(outcome).expect("written");
        let lines = String::from_utf8(out).expect("text");
        let page = |line: &str| match serde_json::from_str(line) {
            Ok(Line::Page(page)) => Some(page.text),
            _ => None,
        };
        lines.lines().filter_map(page).collect::<Vec<_>>().join("\u{c}")
    }

    #[test]
    fn text_is_told_from_what_describes_it() {
        for (rtf, expected) in [
            (
                r"{\rtf1\ansi{\fonttbl{\f0 Arial;}}{\*\generator X;}Hello \b world\b0.\par Second\tab line\par}",
                "Hello world.\n\nSecond\tline",
            ),
            (r"{\rtf1\ansi\ansicpg1252 Gr\'fc\'dfe 20 \'80}", "Grüße 20 €"),
            (r"{\rtf1\ansicpg1251 \'d1\'f7\'b8\'f2}", "Счёт"),
            (r"{\rtf1\uc1 caf\u233?{\uc2 \u8364 EU} \u-10179?\u-8704?}", "café€ \u{1f600}"),
            (r"{\rtf1 one\page two}", "one\u{c}two"),
            (
                r"{\rtf1 \trowd\intbl Item\cell Price\cell\row\trowd\intbl Bale\cell 20\cell\row\pard After\par}",
                "| Item | Price |\n| --- | --- |\n| Bale | 20 |\n\nAfter",
            ),
            (r"{\rtf1 a\{b\}\\ {\pict 0102ff}{\field{\*\fldinst HYPERLINK x}{\fldrslt link}}}", "a{b}\\ link"),
            (r"{\rtf1 never ends {{{", "never ends"),
        ] {
            assert_eq!(text(rtf), expected, "{rtf}");
        }
        assert_eq!(text(&"{".repeat(5_000)), "");
    }
}
