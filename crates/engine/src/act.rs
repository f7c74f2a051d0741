//! Acts: what a person or a program does to something. Each is one function of the engine, `(env, caller, …)`, which checks what was asked and does it.
//! The pages, the API and the command line call it, and say in their own way why it was not done.

/// The reasons why an act was not done.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// The request is never allowed: a name that is too long, a number out of range.
    #[error("{0}")]
    Invalid(String),
    /// The present state does not allow it.
    #[error("{0}")]
    Conflict(String),
    #[error(transparent)]
    Store(store::Error),
    /// It could not be remembered.
    #[error("it could not be remembered")]
    Failed(#[source] domain::Fault),
}

impl ActError {
    pub fn invalid(what: impl Into<String>) -> Self {
        Self::Invalid(what.into())
    }

    pub fn conflict(what: impl Into<String>) -> Self {
        Self::Conflict(what.into())
    }
}

impl From<store::Error> for ActError {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::Conflict(what) => Self::Conflict(what.into()),
            store::Error::NotNow { what } => Self::Conflict(what),
            other => Self::Store(other),
        }
    }
}

/// Turns an absent row into an error that names what is missing.
pub(crate) trait OrMissing<T> {
    fn or_missing(self, what: &'static str) -> Result<T, ActError>;
}

impl<T> OrMissing<T> for Option<T> {
    fn or_missing(self, what: &'static str) -> Result<T, ActError> {
        self.ok_or(ActError::NotFound(what))
    }
}

impl OrMissing<()> for bool {
    fn or_missing(self, what: &'static str) -> Result<(), ActError> {
        self.then_some(()).ok_or(ActError::NotFound(what))
    }
}

/// A name on one line, trimmed: 1 to 100 characters. `whose` begins the sentence that refuses it.
pub(crate) fn checked_name<'a>(whose: &str, name: &'a str) -> Result<&'a str, ActError> {
    let name = name.trim();
    if (1..=100).contains(&name.chars().count()) && !name.chars().any(char::is_control) {
        return Ok(name);
    }
    Err(ActError::Invalid(format!("{whose} name has 1 to 100 characters")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_short_line() {
        let longest = "é".repeat(100);
        for (given, expected) in [(" front desk ", "front desk"), ("x", "x"), (longest.as_str(), longest.as_str())] {
            assert_eq!(checked_name("a key's", given).expect("a name"), expected);
        }
        for odd in ["", "  ", "a\nb", "a\0b", &"x".repeat(101)] {
            let refused = checked_name("a key's", odd).expect_err(odd);
            assert_eq!(refused.to_string(), "a key's name has 1 to 100 characters");
        }
    }

    #[test]
    fn what_the_database_refuses_is_a_conflict() {
        let of = |error: store::Error| ActError::from(error);
        assert!(matches!(of(store::Error::Conflict("paused")), ActError::Conflict(what) if what == "paused"));
        assert!(matches!(of(store::Error::NotNow { what: "no".into() }), ActError::Conflict(what) if what == "no"));
        assert!(matches!(of(store::Error::TimedOut), ActError::Store(store::Error::TimedOut)));
    }
}
