//! Words and marks for a person who sets up a connection: the steps at a provider in order, what to do about each refusal, and a mark that
//! we drew. The values are in the folder of each provider. [`absent`] lists what people expect and do not find, with what to use instead.

pub mod absent;
pub mod oauth;

/// The shelf of the gallery on which something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    Calls,
    Mail,
    Crm,
    Accounting,
    Files,
    Other,
}

impl Group {
    /// All of them, in the order in which people see them.
    pub const ALL: [Self; 6] = [Self::Calls, Self::Mail, Self::Crm, Self::Accounting, Self::Files, Self::Other];

    pub fn label(self) -> &'static str {
        match self {
            Self::Calls => "Calls and texts",
            Self::Mail => "Mail",
            Self::Crm => "CRM",
            Self::Accounting => "Accounting and payments",
            Self::Files => "Files and notes",
            Self::Other => "Anything else",
        }
    }
}

/// A small picture, as the inside of an SVG of 24 by 24. The page gives it its colours: lines, and `class="soft"` for what is filled softly.
/// We draw it ourselves; it is nobody's logo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(pub &'static str);

/// One step of a set-up.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// A few words.
    pub title: &'static str,
    /// The place to go to and what to do there. Words between backticks are typed or chosen.
    pub text: &'static str,
    /// The values that the step needs from us.
    pub gives: Gives,
}

/// The values that a step shows, to be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    Nothing,
    /// The address to which a provider sends people back.
    RedirectUrl,
    /// The permissions to choose.
    Scopes,
    /// The lines for the environment of this server.
    Settings,
    /// The address of a channel.
    WebhookUrl,
    /// A secret of a channel, by its name.
    Secret(&'static str),
}

/// A refusal, what it means and what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The refusal as a person meets it: a provider's code, or the beginning of a reason.
    pub says: &'static str,
    /// A sentence.
    pub means: &'static str,
    /// A sentence or two.
    pub todo: &'static str,
}

/// The advice on a provider's code. Zeros in front of a number do not count.
pub fn by_code(all: &'static [Advice], code: &str) -> Option<&'static Advice> {
    let bare = |code: &str| code.trim_start_matches('0').to_owned();
    all.iter().find(|advice| bare(advice.says) == bare(code))
}

/// The advice on a reason, by its beginning. The longest one counts.
pub fn by_reason(all: &'static [Advice], reason: &str) -> Option<&'static Advice> {
    all.iter().filter(|advice| reason.starts_with(advice.says)).max_by_key(|advice| advice.says.len())
}

/// Finds what is wrong with a description for people, for tests: empty texts, sentences that do not end, and marks with colours of their own.
pub fn faults_of(mark: Mark, steps: &[Step], advice: &[Advice]) -> Vec<String> {
    let mut faults = Vec::new();
    let is_sentence = |text: &str| text.len() > 20 && text.ends_with(['.', '?']) && !text.contains("  ");
    let Mark(drawn) = mark;
    let is_plain = ["#", "style", "script", "href", "fill=", "stroke="].iter().all(|word| !drawn.contains(word));
    if !is_plain || !drawn.starts_with('<') || drawn.matches('<').count() != drawn.matches("/>").count() {
        faults.push(format!("the mark is no plain shapes: {drawn}"));
    }
    for step in steps {
        if step.title.is_empty() || step.title.ends_with('.') || !is_sentence(step.text) {
            faults.push(format!("the step {:?} is no title and sentences", step.title));
        }
        if step.text.matches('`').count() % 2 == 1 {
            faults.push(format!("the step {:?} has a backtick too many", step.title));
        }
    }
    for Advice { says, means, todo } in advice {
        if says.is_empty() || !is_sentence(means) || !is_sentence(todo) {
            faults.push(format!("{says:?} is not explained in sentences"));
        }
        if advice.iter().filter(|other| other.says == *says).count() > 1 {
            faults.push(format!("{says:?} is explained twice"));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    static ADVICE: [Advice; 3] = [
        Advice { says: "3100", means: "a", todo: "b" },
        Advice { says: "the body", means: "c", todo: "d" },
        Advice { says: "the body is larger", means: "e", todo: "f" },
    ];

    #[test]
    fn advice_is_found_by_a_code_or_by_the_beginning_of_a_reason() {
        assert_eq!(by_code(&ADVICE, "003100").map(|advice| advice.means), Some("a"));
        assert_eq!(by_code(&ADVICE, "31000"), None);
        assert_eq!(by_reason(&ADVICE, "the body is larger than 7 bytes").map(|advice| advice.means), Some("e"));
        assert_eq!(by_reason(&ADVICE, "the body cannot be read").map(|advice| advice.means), Some("c"));
        assert_eq!(by_reason(&ADVICE, "nothing of that"), None);
    }

    #[test]
    fn a_description_that_says_nothing_is_found() {
        let step = Step { title: "Go.", text: "there", gives: Gives::Nothing };
        let faults = faults_of(Mark("<path fill=\"red\"/>"), &[step], &ADVICE[..1]);
        assert_eq!(faults.len(), 3, "{faults:?}");
        let step = Step { title: "Go there", text: "Go to the page, and press `Save`.", gives: Gives::Nothing };
        let (means, todo) = ("It is not allowed for this account.", "Ask its administrator to allow it.");
        let advice = Advice { says: "no", means, todo };
        assert!(faults_of(Mark("<path d=\"M1 1\"/>"), &[step], &[advice]).is_empty());
    }
}
