//! Requests that a browser sends with its cookie, and whether our own page made them. A change needs both: our origin, and the
//! token that only our pages hold.

use axum::http::HeaderMap;
use axum::http::header::{HOST, ORIGIN};
use domain::{Secret, hex};

use super::error::ApiError;

/// Goes into every form and into the `X-CSRF` header. Derived from the session, so that nothing is stored, and told to its own
/// pages alone; the session cannot be had back from it.
pub(crate) fn csrf_token(session: &Secret) -> String {
    let hash = store::keys::hash(&Secret::new(format!("csrf:{}", session.reveal())));
    hex::encode(&hash[..16])
}

/// Refuses a change that our own page did not ask for.
pub(crate) fn check(
    headers: &HeaderMap,
    public_url: Option<&str>,
    session: &Secret,
    token: &str,
) -> Result<(), ApiError> {
    let expected = csrf_token(session);
    let differs = expected.bytes().zip(token.bytes()).fold(0, |seen, (a, b)| seen | (a ^ b));
    if is_ours(headers, public_url) && token.len() == expected.len() && differs == 0 {
        Ok(())
    } else {
        Err(ApiError::CrossSite)
    }
}

/// Whether the browser says that a page of ours made this request. A program without a browser's headers is not believed: it
/// has a key, and needs no cookie.
pub(crate) fn is_ours(headers: &HeaderMap, public_url: Option<&str>) -> bool {
    if let Some(site) = text(headers, "sec-fetch-site") {
        return site == "same-origin"; // no page can set this header
    }
    // Over plain HTTP, except on loopback, browsers send only the origin.
    let Some(origin) = text(headers, ORIGIN.as_str()) else { return false };
    let public = public_url.and_then(origin_of);
    let host = text(headers, HOST.as_str()).unwrap_or_default();
    let is_host =
        |scheme: &str| origin.strip_prefix(scheme).is_some_and(|authority| authority.eq_ignore_ascii_case(host));
    public.is_some_and(|public| public.eq_ignore_ascii_case(origin)) || is_host("http://") || is_host("https://")
}

/// Whether another site's page made this request. Reading needs no token, but an event stream or an answer is only for our pages.
pub(crate) fn is_foreign(headers: &HeaderMap) -> bool {
    matches!(text(headers, "sec-fetch-site"), Some("cross-site" | "same-site"))
}

fn origin_of(url: &str) -> Option<&str> {
    let authority = url.find("://")? + 3;
    Some(url[authority..].find('/').map_or(url, |end| &url[..authority + end]))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(given: &[(&'static str, &'static str)]) -> HeaderMap {
        given.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn our_own_pages_are_told_from_others() {
        let public = Some("https://hear.example.com/base");
        let cases: [(&[(&str, &str)], bool); 9] = [
            (&[("host", "127.0.0.1:7171"), ("origin", "http://127.0.0.1:7171")], true),
            (&[("host", "127.0.0.1:7171"), ("origin", "https://hear.example.com")], true),
            (&[("host", "127.0.0.1:7171"), ("sec-fetch-site", "same-origin"), ("origin", "null")], true),
            (
                &[("host", "127.0.0.1:7171"), ("sec-fetch-site", "cross-site"), ("origin", "http://127.0.0.1:7171")],
                false,
            ),
            (&[("host", "127.0.0.1:7171"), ("sec-fetch-site", "same-site")], false),
            (&[("host", "127.0.0.1:7171"), ("origin", "http://127.0.0.1:8080")], false),
            (&[("host", "127.0.0.1:7171"), ("origin", "https://evil.example")], false),
            (&[("host", "127.0.0.1:7171"), ("origin", "null")], false),
            (&[("host", "127.0.0.1:7171")], false),
        ];
        for (given, expected) in cases {
            let given: Vec<_> = given.to_vec();
            let map: HeaderMap = given
                .iter()
                .map(|(n, v)| (HeaderName::try_from(*n).expect("name"), HeaderValue::try_from(*v).expect("value")))
                .collect();
            assert_eq!(is_ours(&map, public), expected, "{given:?}");
        }
    }

    #[test]
    fn a_change_needs_origin_and_token() {
        let session = Secret::new("s");
        let ours = headers(&[("sec-fetch-site", "same-origin")]);
        let token = csrf_token(&session);
        assert_eq!(token.len(), 32);
        assert!(check(&ours, None, &session, &token).is_ok());
        for wrong in ["", "0", &token[..31], &csrf_token(&Secret::new("other"))] {
            assert!(check(&ours, None, &session, wrong).is_err(), "{wrong:?} was accepted");
        }
        assert!(check(&headers(&[("sec-fetch-site", "cross-site")]), None, &session, &token).is_err());
    }
}
