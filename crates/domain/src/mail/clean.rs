//! The HTML of a letter, made fit to be looked at: what runs, loads, submits or moves the page is gone, and what it looks like stays. The frame that
//! shows it is sealed as well (its policy loads and runs nothing), so that nothing rests on one of the two alone.
//!
//! It reads tokens and builds no tree, so malformed and deep pages are harmless: time and memory grow only with the length.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};

/// Longer letters are cut there.
const MOST_BYTES: usize = 2_000_000;
/// The page goes to the tokenizer in blocks. A block that yields no token is inside a tag or a comment.
const BLOCK_BYTES: usize = 1_024;
/// The tokenizer compares each attribute with all others of its tag, so a tag that may have more than this ends the reading.
const MOST_ATTRIBUTES: usize = 2_048;

/// The pictures of a letter that are written into its page, each as often as it is shown. A letter can show one a hundred thousand times.
const MOST_PICTURE_BYTES: usize = 16_000_000;

/// Elements that are shown as they are.
const SHOWN: [&str; 68] = [
    "a",
    "abbr",
    "address",
    "article",
    "aside",
    "b",
    "bdi",
    "bdo",
    "big",
    "blockquote",
    "br",
    "caption",
    "center",
    "cite",
    "code",
    "col",
    "colgroup",
    "dd",
    "del",
    "dfn",
    "div",
    "dl",
    "dt",
    "em",
    "figcaption",
    "figure",
    "font",
    "footer",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "i",
    "img",
    "ins",
    "kbd",
    "li",
    "main",
    "mark",
    "ol",
    "p",
    "pre",
    "q",
    "s",
    "samp",
    "section",
    "small",
    "span",
    "strike",
    "strong",
    "sub",
    "sup",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "time",
    "tr",
    "tt",
    "u",
    "ul",
    "wbr",
];
/// Those of them that have no end.
const VOID: [&str; 5] = ["br", "col", "hr", "img", "wbr"];
/// Attributes of how something looks, or of what it says.
const KEPT: [&str; 29] = [
    "align",
    "alt",
    "bgcolor",
    "border",
    "cellpadding",
    "cellspacing",
    "class",
    "color",
    "colspan",
    "dir",
    "face",
    "height",
    "hspace",
    "id",
    "lang",
    "noshade",
    "nowrap",
    "reversed",
    "rowspan",
    "scope",
    "size",
    "span",
    "start",
    "title",
    "valign",
    "value",
    "vspace",
    "width",
    "type",
];
/// Kinds of links that a person may follow.
const FOLLOWED: [&str; 4] = ["http", "https", "mailto", "tel"];
/// Pictures that may be written into the page itself.
const PICTURES: [&str; 4] =
    ["data:image/png;base64,", "data:image/jpeg;base64,", "data:image/gif;base64,", "data:image/webp;base64,"];

/// The body of a letter without anything that runs, or that loads something. `picture` gives the `data:` address of a picture that is part of the
/// letter, by what follows `cid:`.
pub fn cleaned(html: &str, picture: impl Fn(&str) -> Option<String>) -> String {
    let page = Page { out: String::new(), tokens: 0, raw: None, n_templates: 0, picture, picture_bytes: 0 };
    let page = RefCell::new(page);
    let html = &html[..html.floor_char_boundary(MOST_BYTES)];
    let tokenizer = Tokenizer::new(Sink(&page), TokenizerOpts::default());
    let (queue, mut at, mut attributes) = (BufferQueue::default(), 0, 0);
    while at < html.len() {
        let block = &html[at..html.floor_char_boundary(at + BLOCK_BYTES)];
        at += block.len();
        let tokens_before = page.borrow().tokens;
        queue.push_back(StrTendril::from_slice(block));
        // The sink never asks to stop, so one call reads the whole block.
        let _ = tokenizer.feed(&queue);
        let starts = |b: u8| matches!(b, b'/' | b'"' | b'\'') || b.is_ascii_whitespace();
        attributes = match page.borrow().tokens == tokens_before {
            true => attributes + block.bytes().filter(|b| starts(*b)).count(),
            false => 0,
        };
        if attributes > MOST_ATTRIBUTES {
            return page.into_inner().out;
        }
    }
    tokenizer.end();
    page.into_inner().out
}

struct Page<F> {
    out: String,
    tokens: u64,
    /// The element whose content is plain characters, up to its end tag: a style sheet, or something that is left out.
    raw: Option<Raw>,
    /// Open templates: their content is not shown.
    n_templates: usize,
    picture: F,
    /// Written so far of pictures that are parts of the letter.
    picture_bytes: usize,
}

enum Raw {
    Style(String),
    LeftOut,
}

struct Sink<'a, F>(&'a RefCell<Page<F>>);

impl<F: Fn(&str) -> Option<String>> TokenSink for Sink<'_, F> {
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
            Token::EOFToken => page.end_raw(),
            Token::CommentToken(_) | Token::DoctypeToken(_) => page.tokens += 1,
            Token::NullCharacterToken | Token::ParseError(_) => {}
        }
        TokenSinkResult::Continue
    }
}

impl<F: Fn(&str) -> Option<String>> Page<F> {
    fn characters(&mut self, text: &str) {
        match &mut self.raw {
            Some(Raw::Style(sheet)) => sheet.push_str(text),
            Some(Raw::LeftOut) => {}
            None if self.n_templates > 0 => {}
            None => escape(&mut self.out, text),
        }
    }

    /// Handles a tag and returns how the tokenizer has to read the text after it.
    fn tag(&mut self, tag: &Tag) -> Option<RawKind> {
        self.end_raw(); // inside raw text only its own end tag is a tag
        let (name, is_start) = (&*tag.name, tag.kind == TagKind::StartTag);
        match name {
            "script" if is_start => return self.begin_raw(Raw::LeftOut, RawKind::ScriptData),
            "style" if is_start => return self.begin_raw(Raw::Style(String::new()), RawKind::Rawtext),
            "title" | "textarea" if is_start => return self.begin_raw(Raw::LeftOut, RawKind::Rcdata),
            "xmp" | "iframe" | "noembed" | "noframes" | "noscript" | "plaintext" if is_start => {
                return self.begin_raw(Raw::LeftOut, RawKind::Rawtext);
            }
            "template" if is_start => self.n_templates += 1,
            "template" => self.n_templates = self.n_templates.saturating_sub(1),
            _ if self.n_templates > 0 => {}
            // Its colours are those of the whole letter.
            "body" if is_start => self.start("div", tag),
            "body" => self.out.push_str("</div>"),
            _ if !SHOWN.contains(&name) => {}
            _ if is_start => self.start(name, tag),
            _ if !VOID.contains(&name) => self.out.push_str(&format!("</{name}>")),
            _ => {}
        }
        None
    }

    fn begin_raw(&mut self, raw: Raw, kind: RawKind) -> Option<RawKind> {
        self.raw = Some(raw);
        Some(kind)
    }

    fn end_raw(&mut self) {
        if let Some(Raw::Style(sheet)) = self.raw.take()
            && self.n_templates == 0
        {
            // Old sheets stand in a comment. Beyond that there are no elements in a sheet, so it is none.
            let sheet = harmless(&sheet.replace("<!--", "").replace("-->", ""));
            if !sheet.contains('<') {
                self.out.push_str(&format!("<style>{sheet}</style>"));
            }
        }
    }

    fn start(&mut self, name: &str, tag: &Tag) {
        let value_of = |wanted: &str| {
            let found = tag.attrs.iter().find(|attribute| &*attribute.name.local == wanted);
            found.map(|attribute| attribute.value.to_string())
        };
        let source = match name {
            "img" => Some(value_of("src").and_then(|source| self.picture_at(&source))),
            _ => None,
        };
        if matches!(source, Some(None)) {
            // Without words it is such as tells its sender that it was seen.
            if let Some(words) = value_of("alt").filter(|alt| !alt.trim().is_empty()) {
                self.out.push_str("<i class=\"picture\">");
                escape(&mut self.out, &words);
                self.out.push_str("</i>");
            }
            return;
        }
        self.out.push('<');
        self.out.push_str(name);
        if let Some(Some(source)) = source {
            self.attribute("src", &source);
        }
        for attribute in &tag.attrs {
            let (known, value) = (&*attribute.name.local, &*attribute.value);
            match known {
                "href" if name == "a" => {
                    if let Some(address) = followed(value) {
                        self.attribute("href", &address);
                        self.attribute("target", "_blank");
                        self.attribute("rel", "noopener noreferrer nofollow");
                    }
                }
                "style" => self.attribute("style", &harmless(value)),
                _ if KEPT.contains(&known) => self.attribute(known, value),
                _ => {}
            }
        }
        self.out.push('>');
    }

    /// The address of a picture that needs no loading.
    fn picture_at(&mut self, source: &str) -> Option<String> {
        let source = source.trim();
        if let Some(id) = source.get(..4).filter(|scheme| scheme.eq_ignore_ascii_case("cid:")).map(|_| &source[4..]) {
            let picture = (self.picture)(id)?;
            let n_bytes = self.picture_bytes + picture.len();
            return (n_bytes <= MOST_PICTURE_BYTES).then(|| {
                self.picture_bytes = n_bytes;
                picture
            });
        }
        let kind = PICTURES
            .iter()
            .find(|kind| source.get(..kind.len()).is_some_and(|start| start.eq_ignore_ascii_case(kind)))?;
        let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte) || byte.is_ascii_whitespace();
        source[kind.len()..].bytes().all(is_base64).then(|| source.to_owned())
    }

    fn attribute(&mut self, name: &str, value: &str) {
        self.out.push(' ');
        self.out.push_str(name);
        self.out.push_str("=\"");
        escape(&mut self.out, value);
        self.out.push('"');
    }
}

/// The address of a link as browsers read it, if a person may follow it.
fn followed(address: &str) -> Option<String> {
    let address: String = address.trim().chars().filter(|c| !c.is_control()).collect();
    let (scheme, _) = address.split_once(':')?;
    FOLLOWED.iter().any(|known| scheme.eq_ignore_ascii_case(known)).then_some(address)
}

/// A style that loads nothing: the words by which one loads something mean nothing any more.
fn harmless(style: &str) -> String {
    // An escape can spell any of those words; none is needed to say how something looks.
    let mut rest = style.replace(['\\', '\0'], " ");
    for (word, instead) in
        [("url", "no-"), ("@import", "@no"), ("image-set", "no-set"), ("expression", "no"), ("@charset", "@no")]
    {
        let mut out = String::with_capacity(rest.len());
        let small = rest.to_ascii_lowercase();
        let mut at = 0;
        while let Some(found) = small[at..].find(word) {
            out.push_str(&rest[at..at + found]);
            out.push_str(instead);
            at += found + word.len();
        }
        out.push_str(&rest[at..]);
        rest = out;
    }
    rest
}

fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\0' => {}
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(html: &str) -> String {
        cleaned(html, |id| (id == "logo@acme").then(|| "data:image/png;base64,AAAA".to_owned()))
    }

    #[test]
    fn what_a_letter_looks_like_stays() {
        for (html, expected) in [
            ("plain & <simple", "plain &amp; "),
            (
                "<!doctype html><html><head><meta charset=utf-8><title>no</title></head><body bgcolor='#eee'><h1 style=\"color: red\">Hi</h1></body></html>",
                "<div bgcolor=\"#eee\"><h1 style=\"color: red\">Hi</h1></div>",
            ),
            (
                "<table width=600><tr><td align=right colspan=2>a<br>b</td></tr></table>",
                "<table width=\"600\"><tr><td align=\"right\" colspan=\"2\">a<br>b</td></tr></table>",
            ),
            ("<style>p > b { color: #333 }</style><p><b>x</b>", "<style>p > b { color: #333 }</style><p><b>x</b>"),
            ("<!--[if mso]>no<![endif]--><![if !mso]>yes<![endif]>", "yes"),
            ("<p dir=rtl>שלום</p>", "<p dir=\"rtl\">שלום</p>"),
            ("<o:p>word</o:p><center>x</center>", "word<center>x</center>"),
        ] {
            assert_eq!(clean(html), expected, "of {html}");
        }
    }

    #[test]
    fn pictures_are_those_of_the_letter_itself() {
        for (html, expected) in [
            (
                "<img src='cid:logo@acme' alt=Acme width=90>",
                "<img src=\"data:image/png;base64,AAAA\" alt=\"Acme\" width=\"90\">",
            ),
            ("<img src='cid:other' alt='A river' width=900 style='width: 900px'>", "<i class=\"picture\">A river</i>"),
            ("<img src='https://spy.test/1.gif' width=1 height=1>", ""),
            (
                "<img src='//spy.test/1.gif' srcset='https://spy.test/2.gif' alt='Sale!'>",
                "<i class=\"picture\">Sale!</i>",
            ),
            ("<img src='data:image/gif;base64,R0lGODlh'>", "<img src=\"data:image/gif;base64,R0lGODlh\">"),
            ("<img src='data:image/svg+xml;base64,PHN2Zz4=' alt=x>", "<i class=\"picture\">x</i>"),
            ("<img src='data:image/png;base64,\" onerror=1' alt=x>", "<i class=\"picture\">x</i>"),
        ] {
            assert_eq!(clean(html), expected, "of {html}");
        }
    }

    #[test]
    fn links_lead_outside_and_nowhere_else() {
        for (html, expected) in [
            (
                "<a href='https://acme.test/?a=1&b=2'>x</a>",
                "<a href=\"https://acme.test/?a=1&amp;b=2\" target=\"_blank\" rel=\"noopener noreferrer nofollow\">x</a>",
            ),
            (
                "<a href=' mailto:ann@acme.test' target=_top ping='https://spy.test'>x</a>",
                "<a href=\"mailto:ann@acme.test\" target=\"_blank\" rel=\"noopener noreferrer nofollow\">x</a>",
            ),
            ("<a href='javascript:alert(1)'>x</a>", "<a>x</a>"),
            ("<a href='java\tscript:alert(1)'>x</a>", "<a>x</a>"),
            ("<a href='data:text/html,x'>x</a><a href='/mail'>y</a><a href='#top'>z</a>", "<a>x</a><a>y</a><a>z</a>"),
        ] {
            assert_eq!(clean(html), expected, "of {html}");
        }
    }

    #[test]
    fn nothing_runs_loads_submits_or_moves_the_page() {
        let corpus = [
            "<script>document.title='owned'</script>",
            "<scr<script>ipt>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "<svg onload=alert(1)><script>alert(1)</script><a xlink:href='javascript:alert(1)'>x</a></svg>",
            "<math><mtext><style><img src=x onerror=alert(1)></style></mtext></math>",
            "<body onload=alert(1) background='https://spy.test/x'>",
            "<meta http-equiv=refresh content='0;url=https://spy.test'>",
            "<base href='https://spy.test/'>",
            "<link rel=stylesheet href='https://spy.test/x.css'><link rel=dns-prefetch href='//spy.test'>",
            "<iframe src='https://spy.test'></iframe><object data='https://spy.test'></object><embed src='https://spy.test'>",
            "<form action='https://spy.test'><input name=x><button formaction='https://spy.test'>Go</button></form>",
            "<video poster='https://spy.test/x' src='https://spy.test/y'></video><audio src='https://spy.test'></audio>",
            "<style>@import 'https://spy.test/a.css'; p { background: URL(https://spy.test/b) } q { background: u\\72l(https://spy.test/c) }</style>",
            "<p style='background: url(//spy.test/x); background: image-set(\"https://spy.test/y\" 1x)'>x</p>",
            "<style><!-- </style><script>alert(1)</script> --></style>",
            "<noscript><p title='</noscript><img src=x onerror=alert(1)>'></noscript>",
            "<template><img src=x onerror=alert(1)></template>",
            "<table background='https://spy.test/x'><td background='https://spy.test/y'>x</table>",
            "<a href='https://acme.test' onclick=alert(1) onmouseover=alert(1)>x</a>",
            "<textarea><img src=x onerror=alert(1)></textarea>",
            "<xmp><img src=x onerror=alert(1)></xmp><plaintext><img src=x onerror=alert(1)>",
            "<div style='x: expression(alert(1))'>x</div>",
            "<p title='\"><script>alert(1)</script>'>x</p>",
        ];
        for html in corpus {
            let out = clean(html);
            let (small, tags) = (out.to_lowercase(), out.matches('<').count());
            for word in [
                "<script",
                "<iframe",
                "<meta",
                "<base",
                "<link",
                "<form",
                "<object",
                "<svg",
                " on",
                "javascript:",
                "background=",
                "url(",
                "@import",
                "image-set(",
            ] {
                assert!(!small.contains(word), "{word} of {html}: {out}");
            }
            assert!(!small.contains("src="), "{html}: {out}");
            assert_eq!(tags, out.matches('>').count(), "{html}: {out}");
        }
    }

    #[test]
    fn a_picture_that_is_shown_endlessly_is_not_written_endlessly() {
        let letter = "<img src=c&#105;d:logo alt=x>".repeat(50_000);
        let out = cleaned(&letter, |_| Some(format!("data:image/png;base64,{}", "A".repeat(1_000_000))));
        assert!(out.len() < MOST_PICTURE_BYTES + MOST_BYTES, "{}", out.len());
        assert_eq!((out.matches("<img src=").count(), out.matches("<i class=").count()), (15, 50_000 - 15));
    }

    #[test]
    fn a_tag_with_endless_attributes_and_a_long_letter_end() {
        let attributes: String = (0..20_000).map(|n| format!(" a{n}='x'")).collect();
        assert_eq!(clean(&format!("before <p{attributes}>inside</p>")), "before ");
        assert!(clean(&"<p>x".repeat(1_000_000)).len() <= MOST_BYTES);
        assert_eq!(clean(&"<div>".repeat(100_000)).len(), 500_000);
    }
}
