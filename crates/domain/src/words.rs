//! Enums whose variants are words: rows, messages, the API and the command line use the same word. An unknown word is an error.

/// A word that is none of its enum's.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UnknownWord(pub String);

/// Declares such an enum. It parses (`FromStr`, serde) and prints (`as_str`, `Display`, serde) its words, and lists its variants (`ALL`).
#[macro_export]
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ::serde::Serialize, ::serde::Deserialize)]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $word)] $variant),*
        }

        impl $name {
            pub const ALL: [Self; [$($word),*].len()] = [$(Self::$variant),*];

            /// Returns the word, as in rows, messages and the API.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        /// For rows: `#[sqlx(try_from = "String")]`.
        impl TryFrom<String> for $name {
            type Error = $crate::words::UnknownWord;
            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse().map_err($crate::words::UnknownWord)
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                let known = Self::ALL.into_iter().find(|known| known.as_str() == text);
                known.ok_or_else(|| {
                    format!("{text:?} is none of {}", Self::ALL.map(Self::as_str).join(", "))
                })
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::SourceStatus;

    #[test]
    fn a_word_reads_back_as_what_it_was_and_an_unknown_one_is_an_error() {
        for status in SourceStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
            assert_eq!(serde_json::to_value(status).expect("a word"), status.as_str());
        }
        assert_eq!(
            "asleep".parse::<SourceStatus>(),
            Err("\"asleep\" is none of active, token_refresh_failed, subscription_expired, provider_error, paused, disconnected"
                .to_owned())
        );
        assert!(serde_json::from_str::<SourceStatus>("\"asleep\"").is_err());
        assert!(SourceStatus::try_from("asleep".to_owned()).is_err(), "nor does a row have a default");
    }
}
