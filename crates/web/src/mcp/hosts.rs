//! The names under which programs reach the server, and the pages that may. A page that leads its own name to this machine (DNS rebinding) sends that
//! name as Host, so names that are not ours are refused. An IP address is nobody's name.

use std::net::IpAddr;

use axum::http::HeaderMap;
use axum::http::header::{HOST, ORIGIN};
use engine::Config;

use crate::api::error::ApiError;

/// Refuses a request to another name than ours, and one that a page of another site makes.
pub(super) fn check(config: &Config, headers: &HeaderMap) -> Result<(), ApiError> {
    let names = Names { public_url: config.public_url.as_deref(), further: &config.mcp_hosts };
    if names.take(headers) { Ok(()) } else { Err(ApiError::NotHere) }
}

/// The names of this server.
struct Names<'a> {
    public_url: Option<&'a str>,
    further: &'a [String],
}

impl Names<'_> {
    fn take(&self, headers: &HeaderMap) -> bool {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        let is_host_ours = text(HOST).is_some_and(|host| self.has(host));
        let is_origin_ours = text(ORIGIN).is_none_or(|origin| {
            let authority = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
            authority.is_some_and(|authority| self.is_of_us(authority))
        });
        is_host_ours && is_origin_ours
    }

    /// Whether a Host is one under which this server is reached.
    fn has(&self, authority: &str) -> bool {
        let host = host_of(authority);
        let is_further = self.further.iter().any(|known| known.eq_ignore_ascii_case(host));
        is_further || host.parse::<IpAddr>().is_ok() || self.is_of_us(authority)
    }

    /// Whether an authority is that of our public address or one of this machine.
    fn is_of_us(&self, authority: &str) -> bool {
        let host = host_of(authority);
        let public = self.public_url.and_then(|url| url.split_once("://"));
        let public = public.map(|(_, rest)| host_of(rest.split('/').next().unwrap_or_default()));
        let is_loopback = host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        let is_public = public.is_some_and(|public| public.eq_ignore_ascii_case(host));
        is_public || is_loopback || host.eq_ignore_ascii_case("localhost")
    }
}

fn host_of(authority: &str) -> &str {
    match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    /// S16.
    #[test]
    fn only_our_names_and_pages_are_answered() {
        let further = ["tributary".to_owned()];
        let names = Names { public_url: Some("https://hear.example.com"), further: &further };
        let of = |host: &'static str, origin: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static(host));
            headers.extend(origin.map(|origin| (ORIGIN, HeaderValue::from_static(origin))));
            names.take(&headers)
        };
        for host in
            ["hear.example.com", "127.0.0.1:7171", "localhost:7171", "[::1]:7171", "192.0.2.7:7171", "tributary:7171"]
        {
            assert!(of(host, None), "{host}");
        }
        for host in ["evil.example", "hear.example.com.evil.example", "", "127.0.0.1.evil.example"] {
            assert!(!of(host, None), "{host}");
        }
        for origin in ["https://hear.example.com", "http://localhost:6274", "http://127.0.0.1"] {
            assert!(of("hear.example.com", Some(origin)), "{origin}");
        }
        for origin in ["https://evil.example", "null", "http://192.0.2.7:7171", "file://", "https://tributary"] {
            assert!(!of("hear.example.com", Some(origin)), "{origin}");
        }
        assert!(!names.take(&HeaderMap::new()), "a request without a Host");
    }
}
