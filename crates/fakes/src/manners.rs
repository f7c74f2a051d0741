//! How a provider misbehaves, and when: a script of rules, each for the paths that begin with its prefix.

use std::sync::Mutex;
use std::time::Duration;

use crate::lock;
use crate::request::Asked;

/// How one request is answered, when not well. Errors have the provider's own body.
#[derive(Clone, Debug, PartialEq)]
pub enum Manner {
    Status(u16),
    /// HubSpot's ten-second limit, or that of search; Google's 429; QuickBooks' 003001.
    RateLimited {
        retry_after: RetryAfter,
    },
    /// The quota of a day, or with QuickBooks of a month: waiting a minute does not help.
    DailyLimit {
        retry_after: RetryAfter,
    },
    /// As Google also says it: 403 `userRateLimitExceeded`.
    RateLimitedAs403,
    /// Of an MCP tool: HTTP is well, and the result says in words that HubSpot answered with this status.
    ToolError(u16),
    /// Of QuickBooks: a Fault under status 200.
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
    /// A body that never ends.
    Endless,
    /// A hundred megabytes of nothing, packed into less than one.
    Bomb,
    /// The true answer, so long for each byte.
    Slow {
        per_byte: Duration,
    },
    /// The page token that came is given again as the next one. QuickBooks, which has none, gives its first page again.
    RepeatToken,
    /// The page token that came is refused. A request without one is answered well, and the rule waits for one with it.
    LostToken,
    /// Fewer rows than there are, and a token to go on with. (QuickBooks: fewer rows.)
    ShortPage,
    /// No rows at all, and a token to go on with.
    EmptyPage,
    /// The connection is closed, and nothing was done.
    Reset,
    /// Done at once, answered later.
    Delay(Duration),
    /// Done, and the connection closed without an answer.
    DropReply,
}

impl Manner {
    /// How many rows a page has, of those asked for.
    pub(crate) fn page_rows(&self, asked: usize) -> usize {
        match self {
            Self::ShortPage => asked.div_ceil(3),
            Self::EmptyPage => 0,
            _ => asked,
        }
    }
}

/// How long a client is asked to wait, in the ways that clients get to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    Seconds(u64),
    /// An HTTP date so many seconds from now.
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
    /// For the next request that no earlier rule wants, after letting `n_before` pass.
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

    /// How to answer this request. What happens once goes before what happens always.
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
