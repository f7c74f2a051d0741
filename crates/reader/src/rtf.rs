//! Rich text: words of control, groups, and text between them. Nothing of it is trusted to end.

mod grid;

use std::collections::HashMap;

use encoding_rs::Encoding;

use self::grid::Grid;
use crate::markdown::Writer;
use crate::sink::Sink;
use crate::{Result, damaged};

const DEEPEST: usize = 1_000;
/// The longest mark of an item of a list, such as "iv." or "3.2.1".
const LONGEST_NUMBER: usize = 12;

/// The place where the text of a group goes.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Body,
    /// Fonts, colours, pictures, what an unknown program has added: none of the document's text.
    Nowhere,
    Fonts,
    Styles,
    /// Facts about the document, which are none of its text.
    Info,
    Title,
    /// The number or the dot before an item of a list.
    Mark,
}

/// The state that ends with its group.
#[derive(Clone, Copy)]
struct Group {
    place: Place,
    /// Bytes after a character by its number, for programs that do not know numbers.
    n_fallback: usize,
    /// The encoding of its font, where that is not the document's.
    encoding: Option<&'static Encoding>,
    /// A note or a box begins with it.
    is_apart: bool,
}

const OUTERMOST: Group = Group { place: Place::Body, n_fallback: 1, encoding: None, is_apart: false };

/// The properties of a paragraph.
#[derive(Clone, Default)]
struct Properties {
    level: Option<usize>,
    is_in_table: bool,
    begins_page: bool,
    mark: String,
}

/// A paragraph in whose middle a note or a box is.
struct Outer {
    paragraph: String,
    properties: Properties,
    is_note: bool,
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    groups: Vec<Group>,
    encoding: &'static Encoding,
    fonts: HashMap<i64, &'static Encoding>,
    /// The font or the style that is being defined.
    defined: i64,
    /// The styles of headings, with their levels.
    styles: HashMap<i64, usize>,
    style_name: String,
    title: String,
    /// Bytes in the document's encoding that are not decoded yet.
    pending: Vec<u8>,
    high_surrogate: Option<u16>,
    paragraph: String,
    properties: Properties,
    outer: Vec<Outer>,
    notes: Vec<String>,
    n_notes: usize,
    page: Writer,
    table: Grid,
    is_destination: bool,
    n_to_pass: usize,
}

pub(crate) fn read(bytes: &[u8], sink: &mut Sink<'_>) -> Result<()> {
    let mut reader = Reader {
        bytes,
        at: 0,
        groups: vec![OUTERMOST],
        encoding: encoding_rs::WINDOWS_1252,
        fonts: HashMap::new(),
        defined: 0,
        styles: HashMap::new(),
        style_name: String::new(),
        title: String::new(),
        pending: Vec::new(),
        high_surrogate: None,
        paragraph: String::new(),
        properties: Properties::default(),
        outer: Vec::new(),
        notes: Vec::new(),
        n_notes: 0,
        page: Writer::default(),
        table: Grid::default(),
        is_destination: false,
        n_to_pass: 0,
    };
    reader.run(sink)?;
    while !reader.outer.is_empty() {
        reader.apart_ends();
    }
    reader.properties.is_in_table = false;
    reader.paragraph_ends(sink)?;
    reader.page_ends(sink)?;
    sink.head(Some(reader.title), None)
}

impl Reader<'_> {
    fn run(&mut self, sink: &mut Sink<'_>) -> Result<()> {
        while let Some(byte) = self.next() {
            match byte {
                b'{' => {
                    let group = Group { is_apart: false, ..self.group() };
                    if self.groups.len() == DEEPEST {
                        return Err(damaged("groups inside each other, a thousand deep"));
                    }
                    self.decode();
                    self.groups.push(group);
                    self.n_to_pass = 0;
                }
                b'}' => self.group_ends(),
                b'\\' => self.control(sink)?,
                b'\r' | b'\n' => {}
                byte => self.byte(byte),
            }
        }
        self.decode();
        Ok(())
    }

    fn group_ends(&mut self) {
        self.decode();
        self.n_to_pass = 0;
        if self.groups.len() == 1 {
            return;
        }
        let Some(group) = self.groups.pop() else { return };
        if group.place == Place::Styles {
            self.style_ends();
        }
        if group.is_apart {
            self.apart_ends();
        }
    }

    /// A style of headings is known by its name, if it does not say its level.
    fn style_ends(&mut self) {
        let name = std::mem::take(&mut self.style_name).trim().trim_end_matches(';').to_ascii_lowercase();
        let level = match name.as_str() {
            "title" => Some(1),
            name => name.strip_prefix("heading ").and_then(|level| level.parse().ok()),
        };
        if let Some(level) = level {
            self.styles.entry(self.defined).or_insert(level);
        }
    }

    /// A note or a box begins in the middle of a paragraph.
    fn apart_begins(&mut self, is_note: bool) {
        self.decode();
        if is_note {
            self.n_notes += 1;
            self.paragraph.push_str(&format!("[{}]", self.n_notes));
        }
        self.groups.last_mut().into_iter().for_each(|group| (group.is_apart, group.place) = (true, Place::Body));
        let (paragraph, properties) = (std::mem::take(&mut self.paragraph), std::mem::take(&mut self.properties));
        self.outer.push(Outer { paragraph, properties, is_note });
    }

    fn apart_ends(&mut self) {
        self.decode();
        let Some(outer) = self.outer.pop() else { return };
        let text = std::mem::replace(&mut self.paragraph, outer.paragraph);
        self.properties = outer.properties;
        let text = text.trim();
        if text.is_empty() {
        } else if outer.is_note {
            self.notes.push(format!("[{}] {text}", self.n_notes));
        } else if self.properties.is_in_table || !self.outer.is_empty() {
            self.paragraph.push_str(&format!(" {text} "));
        } else {
            self.page.paragraph(text);
        }
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied();
        self.at += usize::from(byte.is_some());
        byte
    }

    fn group(&self) -> Group {
        self.groups.last().copied().unwrap_or(OUTERMOST)
    }

    fn goes_to(&mut self, place: Place) {
        self.decode();
        self.groups.last_mut().into_iter().for_each(|group| group.place = place);
    }

    /// A byte of text, in the encoding of its font.
    fn byte(&mut self, byte: u8) {
        if self.n_to_pass > 0 {
            self.n_to_pass -= 1;
        } else if self.group().place != Place::Nowhere {
            self.pending.push(byte);
        }
    }

    fn decode(&mut self) {
        if !self.pending.is_empty() {
            let bytes = std::mem::take(&mut self.pending);
            let (text, ..) = self.group().encoding.unwrap_or(self.encoding).decode(&bytes);
            self.write(&text);
        }
    }

    /// Text goes where its group goes.
    fn write(&mut self, text: &str) {
        match self.group().place {
            Place::Body => self.paragraph.push_str(text),
            Place::Styles => self.style_name.push_str(text),
            Place::Title => self.title.push_str(text),
            Place::Mark => self.properties.mark.push_str(text),
            Place::Nowhere | Place::Fonts | Place::Info => {}
        }
    }

    fn push(&mut self, text: &str) {
        self.decode();
        if self.n_to_pass > 0 {
            self.n_to_pass -= 1;
        } else {
            self.write(text);
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
                b'\r' | b'\n' => return self.paragraph_ends(sink),
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
        let place = self.group().place;
        match word {
            "bin" => {
                self.at =
                    self.at.saturating_add(usize::try_from(number.unwrap_or(0)).unwrap_or(0)).min(self.bytes.len());
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
            _ if place == Place::Nowhere => {}
            "fonttbl" => self.goes_to(Place::Fonts),
            "stylesheet" => self.goes_to(Place::Styles),
            "info" => self.goes_to(Place::Info),
            "title" if place == Place::Info => self.goes_to(Place::Title),
            "listtext" | "pntext" => self.goes_to(Place::Mark),
            "colortbl" | "pict" | "header" | "headerl" | "headerr" | "headerf" | "footer" | "footerl" | "footerr"
            | "footerf" | "objdata" | "fldinst" | "themedata" | "sp" | "shprslt" | "nonesttables" => {
                self.goes_to(Place::Nowhere);
            }
            "deleted" if number != Some(0) => self.goes_to(Place::Nowhere),
            "footnote" => self.apart_begins(true),
            "shptxt" => self.apart_begins(false),
            "fldrslt" | "shpinst" => {}
            _ if is_unknown => self.goes_to(Place::Nowhere),
            "f" | "fcharset" if place == Place::Fonts => self.font(word, number.unwrap_or(0)),
            "s" | "outlinelevel" if place == Place::Styles => self.style(word, number.unwrap_or(0)),
            "f" | "plain" => {
                self.decode();
                let encoding = number.and_then(|font| self.fonts.get(&font)).copied();
                self.groups.last_mut().into_iter().for_each(|group| group.encoding = encoding);
            }
            _ => return self.of_text(word, number, sink),
        }
        Ok(())
    }

    fn font(&mut self, word: &str, number: i64) {
        match word {
            "f" => self.defined = number,
            _ => {
                if let Some(encoding) = code_page_of_charset(number).and_then(code_page) {
                    self.fonts.insert(self.defined, encoding);
                }
            }
        }
    }

    fn style(&mut self, word: &str, number: i64) {
        match word {
            "s" => self.defined = number,
            _ => self.styles.extend(level(number).map(|level| (self.defined, level))),
        }
    }

    /// The words that belong to texts.
    fn of_text(&mut self, word: &str, number: Option<i64>, sink: &mut Sink<'_>) -> Result<()> {
        match word {
            "par" => return self.paragraph_ends(sink),
            "sect" => {
                self.paragraph_ends(sink)?;
                self.properties.begins_page = true;
            }
            "sbknone" | "sbkcol" => self.properties.begins_page = false,
            "pagebb" => self.properties.begins_page = number != Some(0),
            "page" => {
                self.paragraph_ends(sink)?;
                return self.page_ends(sink);
            }
            "pard" => {
                let begins_page = self.properties.begins_page;
                let mark = std::mem::take(&mut self.properties.mark);
                // In the group of a mark it is the mark's own, and a section has begun until its first text.
                let is_of_mark = self.group().place == Place::Mark;
                self.properties = match is_of_mark {
                    true => Properties { mark, ..self.properties.clone() },
                    false => Properties { begins_page, mark, ..Properties::default() },
                };
            }
            "s" => self.properties.level = number.and_then(|style| self.styles.get(&style)).copied(),
            "outlinelevel" => self.properties.level = number.and_then(level),
            "intbl" => self.properties.is_in_table = true,
            "trowd" => self.table.row_is_defined_anew(),
            "cellx" => self.table.cell_ends_at(number.unwrap_or(0)),
            "cell" if self.outer.is_empty() => {
                self.decode();
                self.properties.mark.clear();
                self.table.cell(std::mem::take(&mut self.paragraph));
            }
            // A cell has no room for a table: its words follow each other.
            "cell" | "nestcell" => self.push(" "),
            "row" => self.table.row_ends(),
            "line" => self.push("\n"),
            "tab" => self.push("\t"),
            "emdash" => self.push("—"),
            "endash" => self.push("–"),
            "lquote" => self.push("‘"),
            "rquote" => self.push("’"),
            "ldblquote" => self.push("“"),
            "rdblquote" => self.push("”"),
            "bullet" => self.push("•"),
            _ => {}
        }
        Ok(())
    }

    /// A character by its number, as UTF-16 has it; what follows is for programs that do not know numbers.
    fn unicode(&mut self, number: i64) {
        self.decode();
        let unit = (number & 0xffff) as u16;
        let units: Vec<u16> = self.high_surrogate.take().into_iter().chain([unit]).collect();
        match char::decode_utf16(units.iter().copied()).collect::<std::result::Result<String, _>>() {
            Ok(text) => self.write(&text),
            Err(_) if (0xd800..0xdc00).contains(&unit) => self.high_surrogate = Some(unit),
            Err(_) => self.write("\u{fffd}"),
        }
        self.n_to_pass = self.group().n_fallback;
    }

    fn paragraph_ends(&mut self, sink: &mut Sink<'_>) -> Result<()> {
        self.decode();
        // Within a cell, a note or a box it is a line.
        if self.properties.is_in_table || !self.outer.is_empty() {
            self.paragraph.push('\n');
            return Ok(());
        }
        let text = std::mem::take(&mut self.paragraph);
        let mark = std::mem::take(&mut self.properties.mark);
        if text.trim().is_empty() {
            return Ok(());
        }
        self.table_ends();
        if std::mem::take(&mut self.properties.begins_page) {
            self.page_ends(sink)?;
        }
        let mark = mark.trim();
        let is_number = mark.len() <= LONGEST_NUMBER && mark.chars().any(char::is_alphanumeric);
        match self.properties.level {
            Some(level) if is_number => self.page.heading(level, &format!("{mark} {text}")),
            Some(level) => self.page.heading(level, &text),
            None if is_number => self.page.item(Some(mark), &text),
            None if !mark.is_empty() => self.page.item(None, &text),
            None => match text.trim_start().strip_prefix("•\t") {
                Some(item) => self.page.item(None, item),
                None => self.page.paragraph(&text),
            },
        }
        Ok(())
    }

    fn table_ends(&mut self) {
        let rows = self.table.take();
        if !rows.is_empty() {
            self.page.table(&rows);
        }
    }

    fn page_ends(&mut self, sink: &mut Sink<'_>) -> Result<()> {
        self.table_ends();
        for note in std::mem::take(&mut self.notes) {
            self.page.paragraph(&note);
        }
        if self.page.is_empty() {
            return Ok(());
        }
        sink.head(Some(std::mem::take(&mut self.title)), None)?;
        sink.text(None, &self.page.take())
    }
}

/// The level of a heading. Number 9 is text of the body.
fn level(number: i64) -> Option<usize> {
    usize::try_from(number).ok().filter(|number| *number < 9).map(|number| number + 1)
}

/// The code page of a font's letters. None: it is the document's.
fn code_page_of_charset(charset: i64) -> Option<i64> {
    Some(match charset {
        77 => 10_000,
        128 => 932,
        129 => 949,
        134 => 936,
        136 => 950,
        161 => 1_253,
        162 => 1_254,
        163 => 1_258,
        177 => 1_255,
        178 => 1_256,
        186 => 1_257,
        204 => 1_251,
        222 => 874,
        238 => 1_250,
        _ => return None,
    })
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
        let models = crate::Models::default();
        let mut sink = Sink::new(&mut out, Limits::default(), &models, &[]);
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
            (r"{\rtf1{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset204 B;}}\f1 \'d1\'f7{\f0\'e9}\'f2\plain\'e9}", "Счéтé"),
            (
                r"{\rtf1{\stylesheet{\s0 Normal;}{\s3 heading 2;}{\s4\outlinelevel0 x;}}\pard\s3 Two\par\pard\s4 One\par\pard\s0 text\par\pard\outlinelevel2 Three\par}",
                "## Two\n\n# One\n\ntext\n\n### Three",
            ),
            (
                r"{\rtf1{\listtext\pard\plain 1.\tab}\pard one\par{\listtext\'95\tab}two\par\pard three{\*\footnote \pard\plain note\par} goes on\par}",
                "1. one\n- two\n\nthree[1] goes on\n\n[1] note",
            ),
            (
                r"{\rtf1 a\par{\shp{\*\shpinst\shpleft1{\sp{\sn x}{\sv y}}{\shptxt \pard box\par}}{\shprslt no}}b\par\pard\pagebb c\par\sect\sectd d\par\sect\sectd\sbknone e}",
                "a\n\nbox\n\nb\u{c}c\u{c}d\n\ne",
            ),
            (
                r"{\rtf1\trowd\cellx10\cellx99\cellx200\intbl a\cell b\cell c\cell\row\trowd\cellx99\cellx200 ab\cell{\nonesttables no}{\deleted no}c\cell\row\pard}",
                "| a | b | c |\n| --- | --- | --- |\n| ab |  | c |",
            ),
        ] {
            assert_eq!(text(rtf), expected, "{rtf}");
        }
        assert_eq!(text(&"{".repeat(5_000)), "");
    }
}
