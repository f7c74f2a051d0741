//! Scripts of misbehaviour: rules for the paths with a given prefix.

use std::sync::Mutex;
use std::time::Duration;

use crate::lock;
use crate::request::Asked;

/// A bad answer to one request. Errors have the provider's own body.
#[derive(Clone, Debug, PartialEq)]
pub enum Manner {
    Status(u16),
    /// The limit of these seconds.
    RateLimited {
        retry_after: RetryAfter,
    },
    /// The quota of a day or a month: waiting a minute does not help.
    DailyLimit {
        retry_after: RetryAfter,
    },
    /// A rate limit as a 403, for providers that also answer so.
    RateLimitedAs403,
    /// A failed MCP tool: the HTTP status is 200, and the result states that the API behind it answered with this status.
    ToolError(u16),
    /// A failure under status 200, where the provider hides some there.
    FaultWith200,
    /// Random bytes that claim to be JSON.
    Garbage,
    /// A web page with status 200.
    Html,
    /// Valid JSON of another shape.
    WrongJson,
    Empty200,
    /// The true answer's head and half of its body; then the connection ends.
    Truncated,
    /// A whole HTTP answer whose JSON ends in the middle.
    CutJson,
    /// The true answer with a key twice in one object.
    DuplicateKeys,
    InvalidUtf8,
    NulInStrings,
    /// The true answer with damage in places that this seed chooses.
    Mutated(u64),
    /// A page of this many rows, whatever was asked for.
    Rows(usize),
    /// A body that never ends.
    Endless,
    /// A hundred megabytes of zeros, compressed to less than one.
    Bomb,
    /// The true answer, with a pause before each byte.
    Slow {
        per_byte: Duration,
    },
    /// The page token that came is given again as the next one. A provider without tokens gives its first page again.
    RepeatToken,
    /// Refuses the given page token. A request without one gets the true answer, and the rule waits for the next.
    LostToken,
    /// Fewer rows than there are, and a token to go on with where the provider has tokens.
    ShortPage,
    /// No rows at all, and a token to go on with.
    EmptyPage,
    /// Closes the connection without doing anything.
    Reset,
    /// Does the work at once and answers later.
    Delay(Duration),
    /// Does the work and closes the connection without an answer.
    DropReply,
}

impl Manner {
    /// The number of rows of a page, out of those requested.
    pub(crate) fn page_rows(&self, asked: usize) -> usize {
        match self {
            Self::ShortPage => asked.div_ceil(3),
            Self::EmptyPage => 0,
            _ => asked,
        }
    }
}

/// The forms of `Retry-After` that clients see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    Seconds(u64),
    /// An HTTP date this many seconds from now.
    Date(i64),
    Absent,
    Huge,
    Garbage,
    Negative,
}

#[derive(Default)]
pub(crate) struct Script(Mutex<Rules>);

#[derive(Default)]
struct Rules {
    once: Vec<Once>,
    always: Vec<(String, Manner)>,
    latencies: Vec<(String, Duration)>,
}

struct Once {
    prefix: String,
    n_before: u64,
    manner: Manner,
}

impl Script {
    /// Adds a rule for the next request that no earlier rule takes, after letting `n_before` pass.
    pub fn add(&self, prefix: &str, n_before: u64, manner: Manner) {
        lock(&self.0).once.push(Once { prefix: prefix.to_owned(), n_before, manner });
    }

    pub fn set_always(&self, prefix: &str, manner: Option<Manner>) {
        let mut rules = lock(&self.0);
        rules.always.retain(|(known, _)| known != prefix);
        rules.always.extend(manner.map(|manner| (prefix.to_owned(), manner)));
    }

    pub fn set_latency(&self, prefix: &str, latency: Duration) {
        let mut rules = lock(&self.0);
        rules.latencies.retain(|(known, _)| known != prefix);
        rules.latencies.push((prefix.to_owned(), latency));
    }

    pub fn clear(&self) {
        *lock(&self.0) = Rules::default();
    }

    /// Returns how to answer a request. One-time rules come before permanent ones.
    pub fn take(&self, asked: &Asked) -> Option<Manner> {
        let mut rules = lock(&self.0);
        let mut due = None;
        for (index, rule) in
            rules.once.iter_mut().enumerate().filter(|(_, rule)| wants(&rule.prefix, &rule.manner, asked))
        {
            match rule.n_before.checked_sub(1) {
                Some(n_before) => rule.n_before = n_before,
                None => due = due.or(Some(index)),
            }
        }
        if let Some(index) = due {
            return Some(rules.once.remove(index).manner);
        }
        let always = rules.always.iter().rev().find(|(prefix, manner)| wants(prefix, manner, asked));
        always.map(|(_, manner)| manner.clone())
    }

    pub fn latency(&self, path: &str) -> Option<Duration> {
        let rules = lock(&self.0);
        rules.latencies.iter().rev().find(|(prefix, _)| path.starts_with(prefix)).map(|(_, latency)| *latency)
    }
}

fn wants(prefix: &str, manner: &Manner, asked: &Asked) -> bool {
    asked.path.starts_with(prefix) && (*manner != Manner::LostToken || asked.page_token().is_some())
}
