//! Gmail's batches: many requests in one, as parts of a multipart body, each answered on its own and in any order. A batch saves ways; each
//! part costs what it costs alone.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};

const BOUNDARY: &str = "tributary-batch";

/// One answer in a batch.
#[derive(Debug, PartialEq)]
pub(super) struct Part<'a> {
    /// The number of the request that it answers.
    pub number: usize,
    pub status: u16,
    /// `Retry-After` alone.
    pub headers: HeaderMap,
    pub body: &'a [u8],
}

/// The content type and the body of a batch that asks for these paths.
pub(super) fn asking(paths: &[String]) -> (String, String) {
    let mut body = String::new();
    for (number, path) in paths.iter().enumerate() {
        body.push_str(&format!(
            "--{BOUNDARY}\r\nContent-Type: application/http\r\nContent-ID: <part-{number}>\r\n\r\nGET {path}\r\n\r\n"
        ));
    }
    body.push_str(&format!("--{BOUNDARY}--\r\n"));
    (format!("multipart/mixed; boundary={BOUNDARY}"), body)
}

/// Reads the parts that can be read. None: it is no batch's answer.
pub(super) fn parts<'a>(content_type: &str, body: &'a [u8]) -> Option<Vec<Part<'a>>> {
    let boundary = content_type.split(';').find_map(|word| word.trim().strip_prefix("boundary="))?.trim_matches('"');
    let is_multipart = content_type.trim_start().to_ascii_lowercase().starts_with("multipart/");
    if !is_multipart || boundary.is_empty() {
        return None;
    }
    let line = format!("--{boundary}");
    Some(pieces(body, line.as_bytes()).into_iter().filter_map(part).collect())
}

/// The bytes between lines that begin with the boundary.
fn pieces<'a>(body: &'a [u8], line: &[u8]) -> Vec<&'a [u8]> {
    let mut starts = Vec::new();
    let mut at = 0;
    while let Some(found) = find(&body[at..], line).map(|found| at + found) {
        if found == 0 || body[found - 1] == b'\n' {
            starts.push(found);
        }
        at = found + line.len();
    }
    starts.windows(2).map(|pair| &body[pair[0] + line.len()..pair[1]]).collect()
}

fn part(piece: &[u8]) -> Option<Part<'_>> {
    let (outer, inner) = halves(piece)?;
    let (head, body) = halves(inner)?;
    let outer = std::str::from_utf8(outer).ok()?;
    let id = outer.lines().find_map(|line| field(line, "content-id"))?;
    let number = id.trim_matches(['<', '>']).rsplit('-').next()?.parse().ok()?;
    let head = std::str::from_utf8(head).ok()?;
    let status = head.lines().next()?.split_whitespace().nth(1)?.parse().ok()?;
    let mut headers = HeaderMap::new();
    let told = |name: HeaderName| head.lines().skip(1).find_map(|line| field(line, name.as_str()));
    if let Some(wait) = told(RETRY_AFTER).and_then(|wait| HeaderValue::from_str(wait).ok()) {
        headers.insert(RETRY_AFTER, wait);
    }
    Some(Part { number, status, headers, body: body.trim_ascii() })
}

/// The value of a header line, if it has this name.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (known, value) = line.split_once(':')?;
    known.trim().eq_ignore_ascii_case(name).then(|| value.trim())
}

/// A head and the rest, which an empty line parts.
fn halves(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let crlf = find(bytes, b"\r\n\r\n").map(|at| (at, 4));
    let lf = find(bytes, b"\n\n").map(|at| (at, 2));
    let (at, length) = crlf.into_iter().chain(lf).min()?;
    Some((&bytes[..at], &bytes[at + length..]))
}

fn find(bytes: &[u8], text: &[u8]) -> Option<usize> {
    bytes.windows(text.len()).position(|part| part == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_asks_for_each_path_in_a_part_of_its_own() {
        let (content_type, body) = asking(&["/a?format=raw".into(), "/b".into()]);
        assert_eq!(content_type, "multipart/mixed; boundary=tributary-batch");
        let head = |number| format!("Content-Type: application/http\r\nContent-ID: <part-{number}>\r\n\r\n");
        let (first, second) = (head(0), head(1));
        assert_eq!(
            body,
            format!(
                "--tributary-batch\r\n{first}GET /a?format=raw\r\n\r\n--tributary-batch\r\n{second}GET /b\r\n\r\n--tributary-batch--\r\n"
            )
        );
    }

    #[test]
    fn answers_come_in_any_order_and_a_broken_one_is_left_out() {
        let body = concat!(
            "--batch_x\r\nContent-Type: application/http\r\nContent-ID: <response-part-1>\r\n\r\n",
            "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\nContent-Type: application/json\r\n\r\n{\"error\":{}}\r\n",
            "--batch_x\ncontent-type: application/http\ncontent-id: response-part-0\n\nHTTP/1.1 200 OK\n\n{\"id\":\"--batch_x\"}\n",
            "--batch_x\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 200 OK\r\n\r\n{}\r\n",
            "--batch_x\r\nContent-ID: <response-part-2>\r\n\r\nHTTP/1.1 404 Not Found\r\n\r\n\r\n--batch_x--\r\n",
        );
        let read = parts("multipart/mixed; boundary=\"batch_x\"", body.as_bytes()).expect("a batch");
        let short: Vec<(usize, u16, &[u8])> = read.iter().map(|part| (part.number, part.status, part.body)).collect();
        let expected: [(usize, u16, &[u8]); 3] =
            [(1, 429, b"{\"error\":{}}"), (0, 200, b"{\"id\":\"--batch_x\"}"), (2, 404, b"")];
        assert_eq!(short, expected);
        assert_eq!(read[0].headers.get(RETRY_AFTER).and_then(|wait| wait.to_str().ok()), Some("3"));
    }

    #[test]
    fn what_is_no_batch_is_none() {
        for content_type in
            ["application/json", "multipart/mixed", "multipart/mixed; boundary=", "text/plain; boundary=x"]
        {
            assert_eq!(parts(content_type, b"--x\r\n\r\n--x--"), None, "{content_type}");
        }
        for body in [&b""[..], b"--x", b"--x\r\n--x--", b"--x\r\n\r\n\r\n--x--", b"\xff\n--x\n\n\n\n\xff--x--"] {
            assert_eq!(parts("multipart/mixed; boundary=x", body), Some(vec![]), "{body:?}");
        }
    }
}
