//! The words of a letter's parts, and how those of several parts become one text.

use std::collections::HashSet;

use super::Correspondent;
use super::head::{Head, line};

const FILE_NAME_CHARS: usize = 200;
/// So many people of an attached message are named.
const MOST_NAMED: usize = 20;
const MOST_CONTENT_IDS: usize = 5_000;
/// A page says its charset near its beginning.
const PAGE_HEAD_BYTES: usize = 2_048;

/// The words of a part.
#[derive(Default)]
pub(super) struct Body {
    /// Texts in their order, which the sender wrote and which may quote others.
    pub own: Vec<String>,
    pub html: Vec<String>,
    /// Words of attached messages, calendars and reports.
    pub after: Vec<String>,
    /// Words of a message that came back.
    pub returned: Vec<String>,
    /// A text for the case that there is no other, with its HTML.
    pub instead: Option<(String, Option<String>)>,
}

impl Body {
    pub fn all(bodies: Vec<Self>) -> Self {
        let mut all = Self::default();
        for body in bodies {
            all.own.extend(body.own);
            all.add_rest(body.html, body.after, body.returned, body.instead);
        }
        all
    }

    /// Takes one of several forms of the same text: the plain one, unless it is much shorter than the other, as when it only says that there is
    /// another.
    pub fn alternative(bodies: Vec<Self>) -> Self {
        let mut all = Self::default();
        let (mut plain, mut rich) = (Vec::new(), Vec::new());
        for body in bodies {
            let n = n_chars(&body.own);
            if body.html.is_empty() {
                // Of two plain ones, the longer.
                if n > n_chars(&plain) {
                    plain = body.own;
                }
            } else {
                if n > 0 {
                    rich = body.own;
                }
                all.html.clear();
            }
            all.add_rest(body.html, body.after, body.returned, body.instead);
        }
        all.own = if n_chars(&plain) * 4 < n_chars(&rich) { rich } else { plain };
        all
    }

    fn add_rest(
        &mut self,
        html: Vec<String>,
        after: Vec<String>,
        returned: Vec<String>,
        instead: Option<(String, Option<String>)>,
    ) {
        self.html.extend(html);
        self.after.extend(after);
        self.returned.extend(returned);
        self.instead = self.instead.take().or(instead);
    }
}

fn n_chars(texts: &[String]) -> usize {
    texts.iter().map(|text| text.chars().filter(|c| !c.is_whitespace()).count()).sum()
}

/// The first lines of a message that lies in another one.
pub(super) fn heading(title: &str, head: &Head) -> String {
    let mut words = format!("# {title}: {}", head.words("subject").as_deref().unwrap_or("without a subject"));
    for (field, name) in [("from", "From"), ("to", "To"), ("cc", "Cc")] {
        let people = head.people(field);
        let named: Vec<String> = people.iter().take(MOST_NAMED).map(Correspondent::shown).collect();
        if !named.is_empty() {
            words.push_str(&format!("\n{name}: {}", named.join(", ")));
        }
    }
    if let Some(at) = head.date("date") {
        words.push_str(&format!("\nDate: {}", at.format("%Y-%m-%d %H:%M UTC")));
    }
    words
}

/// The name of a file without the folders of its sender's machine.
pub(super) fn file_name(said: Option<&str>) -> Option<String> {
    let name = line(said?.rsplit(['/', '\\']).next().unwrap_or_default());
    let name: String = name.chars().take(FILE_NAME_CHARS).collect();
    (!name.is_empty()).then_some(name)
}

/// The parts that an HTML body shows (`cid:`), in lower case.
pub(super) fn content_ids(html: &str) -> HashSet<String> {
    let lower = html.to_lowercase();
    let ids = lower.split("cid:").skip(1).take(MOST_CONTENT_IDS);
    ids.map(|rest| {
        // An id that never ends is none.
        let end = rest
            .char_indices()
            .take(300)
            .find(|(_, c)| c.is_whitespace() || "\"'<>()".contains(*c))
            .map_or(0, |(at, _)| at);
        rest[..end].replace("%40", "@")
    })
    .filter(|id| !id.is_empty())
    .collect()
}

/// The charset that a page names itself, which counts if the part does not name one.
pub(super) fn charset_of_page(bytes: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(PAGE_HEAD_BYTES)]).to_ascii_lowercase();
    let (_, rest) = head.split_once("charset=")?;
    let rest = rest.trim_start_matches(['"', '\'', ' ']);
    let charset: String =
        rest.chars().take(40).take_while(|c| c.is_ascii_alphanumeric() || "-_:".contains(*c)).collect();
    (!charset.is_empty()).then_some(charset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_no_folders() {
        for (said, expected) in [
            ("a.pdf", Some("a.pdf")),
            ("../../etc/passwd", Some("passwd")),
            ("C:\\Users\\Ann\\a b.pdf", Some("a b.pdf")),
            ("a\r\nb\0.pdf", Some("a b .pdf")),
            ("/", None),
            ("", None),
        ] {
            assert_eq!(file_name(Some(said)).as_deref(), expected, "of {said:?}");
        }
    }

    #[test]
    fn a_page_names_its_pictures_and_its_charset() {
        let html = "<img src=\"cid:Logo@x\"><img src='CID:b%40x'><td background=cid:c@x ><p>cid:";
        let mut ids: Vec<String> = content_ids(html).into_iter().collect();
        ids.sort();
        assert_eq!(ids, ["b@x", "c@x", "logo@x"]);
        let meta = b"<meta http-equiv=Content-Type content=\"text/html; charset=KOI8-R\">";
        assert_eq!(charset_of_page(meta).as_deref(), Some("koi8-r"));
        assert_eq!(charset_of_page(b"<meta charset='utf-8'>").as_deref(), Some("utf-8"));
        assert_eq!(charset_of_page(b"<p>"), None);
    }

    #[test]
    fn the_plain_form_is_taken_unless_it_says_too_little() {
        let form = |text: &str, html: Option<&str>| Body {
            own: vec![text.into()],
            html: html.map(str::to_owned).into_iter().collect(),
            ..Body::default()
        };
        for (plain, rich, expected) in [
            ("Hello Bob", "Hello Bob, in colours", "Hello Bob"),
            ("", "Hello", "Hello"),
            ("See HTML", "A long text that the plain form lacks altogether, as some senders do it", "A long text"),
        ] {
            let body = Body::alternative(vec![form(plain, None), form(rich, Some("<p>"))]);
            assert!(body.own.concat().starts_with(expected) && body.html == ["<p>"], "{plain:?} {rich:?}");
        }
    }
}
