//! Addresses to which a person is sent back after consent. Only a program's own server, or a program on the person's device.

/// Schemes that a browser acts on by itself.
const NEVER: [&str; 15] = [
    "about",
    "blob",
    "chrome",
    "data",
    "file",
    "filesystem",
    "ftp",
    "intent",
    "javascript",
    "jar",
    "mailto",
    "vbscript",
    "view-source",
    "ws",
    "wss",
];
const MOST_CHARS: usize = 2_000;

/// An address to be sent back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    uri: String,
    scheme: String,
    /// With its port.
    authority: String,
    /// The path and the query, with the character before them.
    rest: String,
}

impl Redirect {
    /// Parses an address. None: nobody is sent there.
    pub fn parse(text: &str) -> Option<Self> {
        let is_plain = |c: char| c.is_ascii_graphic() && !"\"'<>\\^`{|}#;,".contains(c);
        if text.is_empty() || text.len() > MOST_CHARS || !text.chars().all(is_plain) {
            return None;
        }
        let (scheme, after) = text.split_once(':')?;
        let scheme = scheme.to_ascii_lowercase();
        let is_scheme = scheme.len() >= 2
            && scheme.starts_with(|c: char| c.is_ascii_lowercase())
            && scheme.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "+.-".contains(c));
        if !is_scheme || NEVER.contains(&scheme.as_str()) {
            return None;
        }
        let (authority, rest) = match after.strip_prefix("//") {
            Some(after) => after.split_at(after.find(['/', '?']).unwrap_or(after.len())),
            None => ("", after),
        };
        let authority = authority.to_ascii_lowercase();
        if !authority.chars().all(|c| c.is_ascii_alphanumeric() || "-._:[]".contains(c)) {
            return None; // also a name and password before the host
        }
        let parsed = Self { uri: text.to_owned(), scheme, authority, rest: rest.to_owned() };
        let is_allowed = match parsed.scheme.as_str() {
            "https" => !parsed.host().is_empty(),
            "http" => parsed.is_loopback(),
            // A program's own scheme, which the device leads to it.
            _ => !parsed.authority.is_empty() || parsed.scheme.contains('.'),
        };
        is_allowed.then_some(parsed)
    }

    pub fn as_str(&self) -> &str {
        &self.uri
    }

    fn host(&self) -> &str {
        host_of(&self.authority)
    }

    fn is_loopback(&self) -> bool {
        is_loopback(self.host())
    }

    /// Whether it leads to a program on the person's own device.
    pub fn is_on_device(&self) -> bool {
        self.scheme != "https"
    }

    /// The place for people: a host, or a program's own scheme.
    pub fn place(&self) -> String {
        match self.scheme.as_str() {
            "https" => self.authority.clone(),
            "http" => "a program on this device".into(),
            scheme if self.authority.is_empty() => format!("{scheme}: on this device"),
            scheme => format!("{scheme}://{} on this device", self.authority),
        }
    }

    /// The place as a content security policy names it.
    pub fn source(&self) -> String {
        match self.scheme.as_str() {
            "https" | "http" => format!("{}://{}", self.scheme, self.authority),
            scheme => format!("{scheme}:"),
        }
    }

    /// Whether a registered address is this one. A program on a device listens on any port (RFC 8252).
    pub fn is(&self, registered: &str) -> bool {
        if self.uri == registered {
            return true;
        }
        let same_but_port = |known: Self| {
            known.scheme == "http"
                && self.scheme == "http"
                && known.is_loopback()
                && known.host() == self.host()
                && known.rest == self.rest
        };
        Self::parse(registered).is_some_and(same_but_port)
    }

    /// Adds parameters to its query.
    pub fn with(&self, parameters: &[(&str, &str)]) -> String {
        let mut address = self.uri.clone();
        for (name, value) in parameters {
            address.push(if address.contains('?') { '&' } else { '?' });
            address.push_str(name);
            address.push('=');
            address.extend(percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC));
        }
        address
    }
}

fn host_of(authority: &str) -> &str {
    match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether a plain URL is of this machine.
pub fn is_loopback_url(url: &str) -> bool {
    let after = url.split_once("://").map(|(_, after)| after).unwrap_or_default();
    is_loopback(host_of(after.split('/').next().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S22.
    #[test]
    fn people_are_sent_to_programs_and_to_nothing_that_a_browser_runs() {
        for good in [
            "https://claude.ai/api/mcp/auth_callback",
            "https://chatgpt.com/connector_platform_oauth_redirect",
            "http://127.0.0.1:33418/",
            "http://localhost:6274/oauth/callback",
            "http://[::1]:1234/cb",
            "cursor://anysphere.cursor-retrieval/oauth/user-x/callback",
            "com.example.app:/oauth",
        ] {
            assert_eq!(Redirect::parse(good).expect(good).as_str(), good);
        }
        for bad in [
            "",
            "javascript:alert(1)",
            "JavaScript://x/%0aalert(1)",
            "data:text/html,x",
            "http://evil.example/cb",
            "http://127.0.0.1.evil.example/cb",
            "https://",
            "https:///cb",
            "https://user:password@evil.example/cb",
            "https://evil.example/#fragment",
            "https://evil.example/a b",
            "https://evil.example; script-src *",
            "//evil.example",
            "/cb",
            "x:y",
            "app:oauth",
            &format!("https://a.example/{}", "x".repeat(2_000)),
        ] {
            assert!(Redirect::parse(bad).is_none(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn a_registered_address_is_met_exactly_but_for_the_port_of_a_device() {
        let is = |given: &str, registered: &str| Redirect::parse(given).expect("an address").is(registered);
        assert!(is("https://a.example/cb", "https://a.example/cb"));
        assert!(is("http://127.0.0.1:50123/cb", "http://127.0.0.1:8080/cb"));
        assert!(is("http://127.0.0.1:50123/cb", "http://127.0.0.1/cb"));
        for (given, registered) in [
            ("https://a.example/cb/", "https://a.example/cb"),
            ("https://a.example/cb?x=1", "https://a.example/cb"),
            ("https://a.example:8443/cb", "https://a.example/cb"),
            ("http://127.0.0.1:50123/other", "http://127.0.0.1:8080/cb"),
            ("http://localhost:50123/cb", "http://127.0.0.1:8080/cb"),
            ("cursor://one/cb", "cursor://two/cb"),
        ] {
            assert!(!is(given, registered), "{given} was taken for {registered}");
        }
    }

    #[test]
    fn a_place_is_named_for_people_and_for_the_policy() {
        let of = |text: &str| {
            let redirect = Redirect::parse(text).expect("an address");
            (redirect.place(), redirect.source())
        };
        assert_eq!(of("https://Claude.ai/cb"), ("claude.ai".into(), "https://claude.ai".into()));
        assert_eq!(of("http://localhost:1/cb"), ("a program on this device".into(), "http://localhost:1".into()));
        assert_eq!(of("cursor://a.b/cb"), ("cursor://a.b on this device".into(), "cursor:".into()));
        let redirect = Redirect::parse("https://a.example/cb?x=1").expect("an address");
        assert_eq!(
            redirect.with(&[("code", "a b"), ("iss", "https://h")]),
            "https://a.example/cb?x=1&code=a%20b&iss=https%3A%2F%2Fh"
        );
    }
}
