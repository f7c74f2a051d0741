//! The one place where what differs from run to run is replaced: ids, times, ports, secrets and measured numbers.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

const ID: &str = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";

/// The patterns that are replaced, and their replacements. The first that matches wins.
static RULES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let rules = [
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00| UTC)?", "<time>"),
        (r"\bsince \d{1,2} \w+ \d{4}\b", "since <day>"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:<port>"),
        (r"\b(trb|trk|trw|whsec|ing)_[A-Za-z0-9_-]{16,}", "<secret>"),
        (r"/ingest/[A-Za-z0-9_-]{16,}", "/ingest/<secret>"),
        (r"\b[0-9a-f]{64}\b", "<sha256>"),
        (r"\b\d+ ms\b", "<n> ms"),
        (r"\b\d+\.\d{3,}\b", "<number>"),
        (r"at most \d+ a minute", "at most <n> a minute"),
        (r"Records a second\n\d+", "Records a second\n<n>"),
        (r"(Took\n|\| )\d+ s\b", "${1}<n> s"),
        (r"\b\d+ (s|min|h|d) ago\b", "<some time> ago"),
        (r"\bin \d+ (s|min|h|d)\b", "in <some time>"),
    ];
    rules.map(|(pattern, by)| (Regex::new(pattern).expect("a pattern"), by)).into()
});

static IDS: LazyLock<Regex> = LazyLock::new(|| Regex::new(ID).expect("a pattern"));
static TIMES: LazyLock<Regex> = LazyLock::new(|| Regex::new("<time [^>]*>[^<]*</time>").expect("a pattern"));

/// Ids are numbered in the order in which they appear, so that the same one is seen to be the same.
#[derive(Default)]
pub struct Steady {
    ids: HashMap<String, usize>,
}

impl Steady {
    pub fn text(&mut self, text: &str) -> String {
        let ids = &mut self.ids;
        let numbered = IDS.replace_all(text, |found: &Captures<'_>| {
            let next = ids.len() + 1;
            format!("<id {}>", ids.entry(found[0].to_owned()).or_insert(next))
        });
        RULES.iter().fold(numbered.into_owned(), |text, (pattern, by)| pattern.replace_all(&text, *by).into_owned())
    }

    /// A page as a person reads it: its title, and the text of its main part.
    pub fn page(&mut self, html: &str) -> String {
        let (title, _) = domain::text::html_to_text(html);
        let main =
            html.split_once("<main").and_then(|(_, rest)| rest.split_once("</main>")).map_or(html, |(main, _)| main);
        let main = main.split_once('>').map_or(main, |(_, inside)| inside);
        let main = TIMES.replace_all(main, "&lt;when&gt;");
        let (_, text) = domain::text::html_to_text(&main);
        self.text(&format!("{}\n\n{text}", title.unwrap_or_default()))
    }
}

/// Lists are cut to their first two: the shape is seen, and files stay short.
pub fn sample(value: Value) -> Value {
    match value {
        Value::Array(items) => {
            let more = items.len().saturating_sub(2);
            let mut shown: Vec<Value> = items.into_iter().take(2).map(sample).collect();
            if more > 0 {
                shown.push(format!("… and {more} more").into());
            }
            Value::Array(shown)
        }
        Value::Object(fields) => Value::Object(fields.into_iter().map(|(name, value)| (name, sample(value))).collect()),
        other => other,
    }
}
