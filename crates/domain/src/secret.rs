//! Secrets that cannot be printed by accident.

use serde::Deserialize;

/// A secret, which prints as `***` everywhere. `reveal` is the only way to the text, and easy to search for.
#[derive(Clone, Deserialize, PartialEq, Eq)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl std::fmt::Display for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl std::str::FromStr for Secret {
    type Err = std::convert::Infallible;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self::new(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_prints_as_stars() {
        let secret = Secret::new("canary-7f3a");
        assert_eq!(format!("{secret} {secret:?} {:?}", Some(&secret)), "*** *** Some(***)");
        assert_eq!(secret.reveal(), "canary-7f3a");
    }

    #[test]
    fn a_secret_is_read_from_settings_and_json_as_it_stands() {
        let settings: Secret = " with blanks ".parse().expect("infallible");
        assert_eq!(settings.reveal(), " with blanks ");
        let json: Secret = serde_json::from_str("\"canary\"").expect("a secret");
        assert_eq!((json.reveal(), format!("{json:>10}").as_str()), ("canary", "***"), "no width tells its length");
    }
}
