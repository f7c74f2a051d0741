//! Converts a web page or an HTML mail to simple Markdown. It reads tokens and builds no tree, so malformed and deep pages are harmless:
//! time and memory grow only with the length.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};

const TITLE_MAX_CHARS: usize = 500;
/// The page goes to the tokenizer in blocks. A block that yields no token is inside a tag or a comment.
const BLOCK_BYTES: usize = 1_024;
/// The tokenizer compares each attribute with all others of its tag, so a tag that may have more than this is not read to its end.
const MOST_ATTRIBUTES: usize = 2_048;

/// Characters that are not for interchange. They mark places in a text, and are left out of what pages say.
const MARKS: std::ops::RangeInclusive<char> = '\u{fdd0}'..='\u{fdef}';
/// Deeper elements are not marked.
const MOST_MARKED: usize = 100;

/// Names an element that a caller wants to find in the text: the character for its beginning and, if it is wanted, that for its end. Both are
/// among U+FDD0 to U+FDEF. It is asked with the name of a start tag and a function that finds its attributes.
pub type Marker = fn(&str, &dyn Fn(&str) -> Option<String>) -> Option<(char, Option<char>)>;

/// Returns title and text. Headings become `#` lines, list items become `- ` lines, and cells are separated by ` | `. Scripts, styles,
/// templates and link targets are left out. The alternative text of an image is kept.
pub fn html_to_text(html: &str) -> (Option<String>, String) {
    convert(html, None)
}

/// Returns the text with a line for each beginning and end of a marked element.
pub fn html_to_marked_text(html: &str, marker: Marker) -> String {
    convert(html, Some(marker)).1
}

fn convert(html: &str, marker: Option<Marker>) -> (Option<String>, String) {
    let page = RefCell::new(Page { marker, ..Page::default() });
    let mut rest = html;
    while !rest.is_empty() {
        rest = read(rest, &page);
    }
    let page = page.into_inner();
    let title = page.title.map(|title| title.text.trim().to_owned()).filter(|title| !title.is_empty());
    (title, page.body.text.trim().to_owned())
}

/// Reads to the end, or to a tag with too many attributes. Returns the rest.
fn read<'a>(html: &'a str, page: &RefCell<Page>) -> &'a str {
    let tokenizer = Tokenizer::new(Sink(page), TokenizerOpts::default());
    let queue = BufferQueue::default();
    let mut at = 0;
    let mut attributes = 0;
    while at < html.len() {
        let block = &html[at..html.floor_char_boundary(at + BLOCK_BYTES)];
        at += block.len();
        let tokens_before = page.borrow().tokens;
        queue.push_back(StrTendril::from_slice(block));
        // The sink never asks to stop, so one call reads the whole block.
        let _ = tokenizer.feed(&queue);
        if page.borrow().tokens == tokens_before {
            // At most as many attributes as begin here: each follows a blank, a slash or a quote.
            attributes += block.bytes().filter(|b| matches!(b, b'/' | b'"' | b'\'') || b.is_ascii_whitespace()).count();
        } else {
            attributes = 0;
        }
        if attributes > MOST_ATTRIBUTES {
            return html[at..].split_once('>').map_or("", |(_, rest)| rest);
        }
    }
    tokenizer.end();
    ""
}

#[derive(Default)]
struct Page {
    tokens: u64,
    title: Option<Writer>,
    body: Writer,
    /// The element whose content the tokenizer reads as plain characters, up to its end tag.
    raw: Option<Raw>,
    /// An element that is left out with its content, and the nesting depth of elements with its name.
    skipped: Option<(String, usize)>,
    /// In SVG and MathML, `<title/>` and `<script/>` are complete elements, and there is no raw text.
    foreign_depth: usize,
    is_pre: bool,
    is_heading: bool,
    row_has_cell: bool,
    marker: Option<Marker>,
    /// Open marked elements, each with the nesting depth of elements with its name, and the character for its end.
    marked: Vec<(String, usize, char)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Raw {
    Title,
    Text,
    LeftOut,
}

struct Sink<'a>(&'a RefCell<Page>);

impl TokenSink for Sink<'_> {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut page = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) => {
                page.tokens += 1;
                if let Some(kind) = page.tag(&tag) {
                    return TokenSinkResult::RawData(kind);
                }
            }
            Token::CharacterTokens(text) => {
                page.tokens += 1;
                page.characters(&text);
            }
            Token::CommentToken(_) | Token::DoctypeToken(_) => page.tokens += 1,
            Token::NullCharacterToken | Token::EOFToken | Token::ParseError(_) => {}
        }
        TokenSinkResult::Continue
    }
}

impl Page {
    fn characters(&mut self, text: &str) {
        match self.raw {
            Some(Raw::LeftOut) => {}
            Some(Raw::Title) => {
                let title = self.title.get_or_insert_default();
                let room = TITLE_MAX_CHARS.saturating_sub(title.chars);
                title.words(text.chars().take(room));
            }
            _ if self.skipped.is_some() => {}
            _ if self.is_pre => self.body.verbatim(text),
            _ => self.body.words(text.chars()),
        }
    }

    /// Handles a tag and returns how the tokenizer has to read the text after it.
    fn tag(&mut self, tag: &Tag) -> Option<RawKind> {
        let name = &*tag.name;
        self.raw = None; // inside raw text only its own end tag is a tag
        let is_start = tag.kind == TagKind::StartTag;
        let raw = if is_start && self.foreign_depth == 0 { self.raw_text(name) } else { None };
        if let Some((_, what)) = raw {
            self.raw = Some(what);
        } else if self.skip(name, tag) {
            return None;
        } else if is_start {
            self.start(name, tag);
            self.mark_start(name, tag);
        } else {
            self.mark_end(name);
            self.end(name);
        }
        raw.map(|(kind, _)| kind)
    }

    fn mark_start(&mut self, name: &str, tag: &Tag) {
        let Some(marker) = self.marker else { return };
        let attribute = |name: &str| {
            tag.attrs
                .iter()
                .find(|attribute| &*attribute.name.local == name)
                .map(|attribute| attribute.value.to_string())
        };
        let room = self.marked.len() < MOST_MARKED && !tag.self_closing;
        if let Some((begin, end)) = marker(name, &attribute).filter(|_| room) {
            self.body.mark(begin);
            self.marked.extend(end.map(|end| (name.to_owned(), 0, end)));
        } else if let Some((open, depth, _)) = self.marked.last_mut() {
            *depth += usize::from(open == name);
        }
    }

    fn mark_end(&mut self, name: &str) {
        match self.marked.last_mut() {
            Some((open, 0, end)) if open == name => {
                self.body.mark(*end);
                self.marked.pop();
            }
            Some((open, depth, _)) => *depth -= usize::from(open == name),
            None => {}
        }
    }

    fn raw_text(&self, name: &str) -> Option<(RawKind, Raw)> {
        let left_out = self.skipped.is_some();
        Some(match name {
            "script" => (RawKind::ScriptData, Raw::LeftOut),
            "style" | "noscript" | "iframe" | "noembed" | "noframes" => (RawKind::Rawtext, Raw::LeftOut),
            "title" if self.title.is_none() && !left_out => (RawKind::Rcdata, Raw::Title),
            "title" => (RawKind::Rcdata, Raw::LeftOut),
            "textarea" => (RawKind::Rcdata, if left_out { Raw::LeftOut } else { Raw::Text }),
            "xmp" => (RawKind::Rawtext, if left_out { Raw::LeftOut } else { Raw::Text }),
            _ => return None,
        })
    }

    /// Whether a tag is part of an element that is left out.
    fn skip(&mut self, name: &str, tag: &Tag) -> bool {
        let is_start = tag.kind == TagKind::StartTag;
        match &mut self.skipped {
            Some((skipped, depth)) => {
                if skipped == name {
                    *depth = if is_start { *depth + 1 } else { *depth - 1 };
                    if *depth == 0 {
                        self.skipped = None;
                    }
                }
                true
            }
            None => {
                let is_foreign = self.foreign_depth > 0 && matches!(name, "script" | "style" | "title");
                let is_skipped = is_start && (name == "template" || is_foreign && !tag.self_closing);
                if is_skipped {
                    self.skipped = Some((name.to_owned(), 1));
                }
                is_skipped
            }
        }
    }

    fn start(&mut self, name: &str, tag: &Tag) {
        match name {
            "svg" | "math" => self.foreign_depth += usize::from(!tag.self_closing),
            "br" if self.is_heading => self.body.space(),
            "br" => self.body.line_break(),
            "img" => {
                if let Some(alt) = tag.attrs.iter().find(|attribute| &*attribute.name.local == "alt") {
                    self.body.space();
                    self.body.words(alt.value.chars());
                    self.body.space();
                }
            }
            "tr" => {
                self.row_has_cell = false;
                self.block(name);
            }
            "td" | "th" => {
                if self.row_has_cell {
                    self.body.cell();
                }
                self.row_has_cell = true;
            }
            "li" => {
                self.block(name);
                self.body.prefix = "- ";
            }
            _ => {
                self.block(name);
                if let Some(level) = heading_level(name) {
                    self.body.prefix = ["# ", "## ", "### ", "#### ", "##### ", "###### "][level - 1];
                    self.is_heading = true;
                }
                self.is_pre |= name == "pre";
            }
        }
    }

    fn end(&mut self, name: &str) {
        match name {
            "svg" | "math" => self.foreign_depth = self.foreign_depth.saturating_sub(1),
            "br" => self.body.line_break(), // browsers treat it like one
            "td" | "th" => {}
            _ => {
                self.block(name);
                self.is_pre &= name != "pre";
                if name == "li" || heading_level(name).is_some() {
                    self.body.prefix = ""; // nothing followed it
                }
            }
        }
    }

    /// Begins or ends a block. An unclosed heading ends there too.
    fn block(&mut self, name: &str) {
        let lines = match name {
            "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "ul" | "ol" | "dl" | "table" | "pre" | "blockquote"
            | "hr" => 2,
            "div" | "li" | "dt" | "dd" | "tr" | "caption" | "thead" | "tbody" | "tfoot" | "article" | "section"
            | "header" | "footer" | "main" | "nav" | "aside" | "figure" | "figcaption" | "address" | "form"
            | "fieldset" | "legend" | "details" | "summary" | "option" | "optgroup" | "select" | "center" | "body"
            | "hgroup" | "dialog" => 1,
            _ => return,
        };
        self.body.lines(lines);
        self.is_heading = false;
    }
}

fn heading_level(name: &str) -> Option<usize> {
    let level = name.strip_prefix('h')?.parse().ok()?;
    (1..=6).contains(&level).then_some(level)
}

/// Text with collapsed blanks. A separator is written with the next word, so nothing ends in blanks.
#[derive(Default)]
struct Writer {
    text: String,
    chars: usize,
    has_space: bool,
    newlines: usize,
    /// Whether nothing was written since a block began or ended.
    is_fresh: bool,
    prefix: &'static str,
}

impl Writer {
    fn words(&mut self, chars: impl Iterator<Item = char>) {
        for c in chars {
            if c.is_whitespace() {
                self.has_space = true;
            } else {
                self.separate();
                self.push(c);
            }
        }
    }

    fn verbatim(&mut self, text: &str) {
        for c in text.chars() {
            if c != '\n' {
                self.separate();
                self.push(c);
            } else if !self.is_fresh {
                self.newlines += 1;
            }
        }
    }

    fn separate(&mut self) {
        if !self.text.is_empty() {
            if self.newlines > 0 {
                self.text.extend(std::iter::repeat_n('\n', self.newlines));
            } else if self.has_space {
                self.push(' ');
            }
        }
        (self.newlines, self.has_space) = (0, false);
        self.text.push_str(std::mem::take(&mut self.prefix));
    }

    /// Writes a mark on a line of its own.
    fn mark(&mut self, mark: char) {
        let prefix = std::mem::take(&mut self.prefix); // of a list's item, for its words
        self.lines(1);
        self.separate();
        self.text.push(mark);
        self.lines(1);
        self.prefix = prefix;
    }

    fn push(&mut self, c: char) {
        if MARKS.contains(&c) {
            return;
        }
        self.text.push(c);
        self.chars += 1;
        self.is_fresh = false;
    }

    fn space(&mut self) {
        self.has_space = true;
    }

    fn line_break(&mut self) {
        self.newlines = (self.newlines + 1).min(2);
    }

    fn lines(&mut self, n: usize) {
        self.newlines = self.newlines.max(n);
        self.is_fresh = true;
    }

    /// Separates two cells, unless the first one has ended the line.
    fn cell(&mut self) {
        if self.newlines == 0 {
            self.text.push_str(" |");
            self.has_space = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::linear::assert_linear;
    use super::*;

    fn text(html: &str) -> String {
        html_to_text(html).1
    }

    #[test]
    fn a_page_reads_as_light_markdown() {
        let page = "<!DOCTYPE html><html><head><title>Invoices &amp;\n more</title><style>p { color: red }</style><script>if (a<b) document.write('<p>no</p>')</script>\
            <meta charset=utf-8></head><body><!-- hidden --><h1>Open <em>invoices</em></h1><p>Two are   open,\nsee <a href='https://example.com/x'>the list</a>.<br>Please pay.</p>\
            <ul><li>INV-2041</li><li><p>INV&#8209;2042</p></li></ul><table><tr><th>No</th><th>Sum</th></tr><tr><td>2041</td> <td>&euro;&nbsp;10</td><td></td></tr></table>\
            <p>Logo: <img src=x alt='A blue river'>.</p><pre>\n  keep\n    this\n</pre><noscript>no</noscript><template><b>no<template>no</template></b></template>\
            <h2>End</h2>caf\u{e9} &lt;3 &copy; &unknown; &amp</body></html>";
        let (title, body) = html_to_text(page);
        assert_eq!(title.as_deref(), Some("Invoices & more"));
        assert_eq!(
            body,
            "# Open invoices\n\nTwo are open, see the list.\nPlease pay.\n\n- INV-2041\n\n- INV\u{2011}2042\n\nNo | Sum\n2041 | € 10 |\n\n\
             Logo: A blue river .\n\n  keep\n    this\n\n## End\n\ncafé <3 © &unknown; &"
        );
    }

    #[test]
    fn malformed_pages_keep_their_text() {
        for (html, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("<p>a<p>b</div></p></p>c", "a\n\nb\n\nc"),
            ("<h1>no end<p>text", "# no end\n\ntext"),
            ("<h1><div>Title</div></h1>text", "# Title\n\ntext"),
            ("a<br/><br>b</br>c", "a\n\nb\nc"),
            ("<b>bold<i>both</b>rest", "boldbothrest"),
            ("a\0b<p>\0</p>", "ab"),
            ("text<script>let x = '<p>no</p>'; unclosed", "text"),
            ("text<style>unclosed", "text"),
            ("a<!-- unclosed", "a"),
            ("a < b && c > d <3", "a < b && c > d <3"),
            ("<p title='a > b'>x</p>", "x"),
            ("<svg><title/><style/><text>label</text></svg> after", "label after"),
            ("<svg><title>no</title></svg>yes", "yes"),
            ("<li>", ""),
            ("<li><li>x", "- x"),
            ("x</template></script></svg></li>y", "x\ny"),
            ("<textarea>a <b></textarea>c", "a <b>c"),
            ("<tr><td><p>a</p></td><td>b</td></tr>", "a\n\nb"),
            ("<html", ""),
            ("x<p", "x"),
        ] {
            assert_eq!(text(html), expected, "of {html:?}");
        }
        assert_eq!(html_to_text("<title>one</title><title>two</title>x"), (Some("one".into()), "x".into()));
        assert_eq!(html_to_text("<title> </title>x").0, None);
    }

    #[test]
    fn a_tag_with_endless_attributes_ends_at_its_end() {
        let attributes: String = (0..20_000).map(|n| format!(" a{n}='x'")).collect();
        assert_eq!(text(&format!("before <p{attributes}>inside</p> after")), "before inside\n\nafter");
        let picture = format!("<img src='data:image/png;base64,{}' alt='a picture'>", "iVBORw0KGgo".repeat(20_000));
        assert_eq!(text(&format!("before {picture} after")), "before a picture after");
    }

    #[test]
    fn any_page_is_read_in_linear_time() {
        for ((what, html), (_, four_times)) in hard_pages(1_000_000).into_iter().zip(hard_pages(4_000_000)) {
            assert_linear(what, &html, &four_times, |html| drop(html_to_text(html)));
        }
    }

    /// Pages of about this length that are hard to read.
    fn hard_pages(bytes: usize) -> Vec<(&'static str, String)> {
        let many = |unit: &str| unit.repeat(bytes / unit.len());
        let attributes: String = (0..bytes / 10).map(|n| format!(" a{n}")).collect();
        vec![
            ("nested elements", many("<div><b>")),
            ("nested templates", many("<template>")),
            ("nested tables", many("<table><tr><td>")),
            ("drawings", many("<svg>")),
            ("angle brackets", many("<")),
            ("ampersands", many("&")),
            ("entities", many("&amp;&#x1F600;")),
            ("comments", many("<!--")),
            ("end tags", many("</p>")),
            ("attributes", format!("<p{attributes}>x")),
            ("tags with attributes", many(&format!("<p{}>", &attributes[..12_000]))),
            ("an unclosed script", format!("<script>{}", many("<!--<script>"))),
            ("an unclosed title", format!("<title>{}", many("x "))),
            ("one long name", format!("<{}", many("a"))),
            ("one long value", format!("<p a='{}", many("b "))),
            ("NUL", many("\0")),
            ("a page", many("<p>Some <b>words</b> of a page, with a <a href='/x'>link</a>.</p>\n<ul><li>item</ul>")),
        ]
    }
}
