//! Cuts the body of a multipart at its boundary.

use super::head::first_line;

/// The parts of a multipart.
#[derive(Debug, PartialEq)]
pub(super) struct Cut<'a> {
    pub parts: Vec<&'a [u8]>,
    /// Its last boundary is there, and nothing was left out.
    pub is_whole: bool,
}

/// Cuts a body at the lines that consist of its boundary, into at most so many parts. One pass, whatever the parts contain.
pub(super) fn cut<'a>(body: &'a [u8], boundary: &[u8], most_parts: usize) -> Cut<'a> {
    let mut parts = Vec::new();
    // The beginning of the part that is being read.
    let mut from = None;
    let mut rest = body;
    while !rest.is_empty() {
        let line_at = body.len() - rest.len();
        let (line, after) = first_line(rest);
        rest = after;
        let Some(name) = line.strip_prefix(b"--").map(<[u8]>::trim_ascii_end) else { continue };
        let is_last = name != boundary && name.strip_suffix(b"--") == Some(boundary);
        if name != boundary && !is_last {
            continue;
        }
        if let Some(from) = from {
            parts.push(without_line_end(&body[from..line_at.max(from)]));
        }
        if is_last || parts.len() >= most_parts {
            return Cut { parts, is_whole: is_last };
        }
        from = Some(body.len() - rest.len());
    }
    if let Some(from) = from.filter(|from| *from < body.len()) {
        parts.push(&body[from..]);
    }
    Cut { parts, is_whole: false }
}

/// The boundary of a multipart that does not name it: its first line that looks like one.
pub(super) fn guessed(body: &[u8]) -> Option<&[u8]> {
    let mut rest = body;
    // It stands near the beginning.
    for _ in 0..50 {
        let (line, after) = first_line(rest);
        rest = after;
        if let Some(name) = line.strip_prefix(b"--").map(<[u8]>::trim_ascii_end).filter(|name| !name.is_empty()) {
            return Some(name);
        }
    }
    None
}

/// The line's end before a boundary belongs to the boundary.
fn without_line_end(part: &[u8]) -> &[u8] {
    let part = part.strip_suffix(b"\n").unwrap_or(part);
    part.strip_suffix(b"\r").unwrap_or(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_cut_at_whole_lines() {
        for (body, expected, is_whole) in [
            ("--x\r\na\r\n--x\r\nb\r\n--x--\r\n", vec!["a", "b"], true),
            ("preamble\n--x\na\n--x--\nepilogue\n--x\nno", vec!["a"], true),
            ("--x \na\n--xy\n--x--", vec!["a\n--xy"], true),
            ("--x\na", vec!["a"], false),
            ("--x\n--x\n--x--", vec!["", ""], true),
            ("no boundary", vec![], false),
            ("--x--", vec![], true),
            ("", vec![], false),
            ("--x\na --x\n--x--", vec!["a --x"], true),
        ] {
            let cut = cut(body.as_bytes(), b"x", 10);
            let parts: Vec<_> = cut.parts.iter().map(|part| String::from_utf8_lossy(part)).collect();
            assert_eq!(
                (parts, cut.is_whole),
                (expected.iter().map(|part| (*part).into()).collect(), is_whole),
                "{body:?}"
            );
        }
        assert_eq!(cut(b"--x\na\n--x\nb\n--x\nc\n--x--", b"x", 2).parts.len(), 2);
        assert_eq!(guessed(b"preamble\n----=_a\n\nwords\n----=_a--"), Some(&b"--=_a"[..]));
    }
}
