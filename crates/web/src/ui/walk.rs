//! Parts that the pages of a set-up share: steps with the values that they need, checks in words, and refusals with what to do.

use engine::pull::guide::{Advice, Gives, Step};
use engine::setup::{Finding, Verdict};

use super::text::with_code;

/// A sentence, with what is typed set apart.
pub(super) type Told = Vec<(bool, String)>;

/// One step, with the values that it needs.
pub(super) struct StepView {
    pub title: &'static str,
    pub text: Told,
    pub values: Vec<Shown>,
}

/// A value to copy.
pub(super) struct Shown {
    pub label: String,
    pub value: String,
    /// Only some of it is shown, so that it cannot be copied.
    pub is_masked: bool,
}

impl Shown {
    pub fn plain(label: impl Into<String>, value: impl Into<String>) -> Self {
        Self { label: label.into(), value: value.into(), is_masked: false }
    }
}

/// The steps; `values` has what each gives.
pub(super) fn steps(all: &[Step], values: impl Fn(Gives) -> Vec<Shown>) -> Vec<StepView> {
    let view = |step: &Step| StepView { title: step.title, text: with_code(step.text), values: values(step.gives) };
    all.iter().map(view).collect()
}

/// The outcome of a check.
pub(super) struct Check {
    /// `good`, `unsure` or `bad`.
    pub class: &'static str,
    /// For people who do not see the colour.
    pub word: &'static str,
    pub what: String,
    pub todo: Told,
}

impl From<Finding> for Check {
    fn from(Finding { verdict, what, todo }: Finding) -> Self {
        let (class, word) = match verdict {
            Verdict::Good => ("good", "Good:"),
            Verdict::Unsure => ("unsure", "Look at this:"),
            Verdict::Bad => ("bad", "Not yet:"),
        };
        Self { class, word, what, todo: with_code(&todo) }
    }
}

/// A refusal, with what to do.
pub(super) struct Explained {
    pub says: &'static str,
    pub means: &'static str,
    pub todo: Told,
}

impl From<&Advice> for Explained {
    fn from(advice: &Advice) -> Self {
        Self { says: advice.says, means: advice.means, todo: with_code(advice.todo) }
    }
}

/// A secret of which only the end is shown.
pub(super) fn masked(secret: &str) -> String {
    let n = secret.chars().count();
    let end: String = secret.chars().skip(n - n.min(4)).collect();
    format!("••••••••{}", if n >= 16 { end } else { String::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_secret_only_the_end_is_shown_and_of_a_short_one_nothing() {
        assert_eq!(masked("whsec_0123456789abcdef"), "••••••••cdef");
        assert_eq!((masked("short"), masked("")), ("••••••••".to_owned(), "••••••••".to_owned()));
    }
}
