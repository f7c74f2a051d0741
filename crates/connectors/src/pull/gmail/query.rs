//! Questions in the language of Gmail's search.

use chrono::{DateTime, Utc};
use domain::mail::Place;

/// The messages in some places.
pub(super) struct Query {
    pub q: String,
    /// Gmail leaves these out unless it is told not to.
    pub with_spam_and_trash: bool,
}

impl Query {
    /// Letters in these places, by the rules of [`super::map::place`].
    pub fn of(places: &[Place]) -> Self {
        let without = |place| !places.contains(&place);
        let with_spam_and_trash = !(without(Place::Spam) && without(Place::Deleted));
        let words = [
            ("-in:chats", true),
            ("-in:drafts", without(Place::Drafts)),
            ("-in:inbox", without(Place::Inbox)),
            // A letter to oneself is in the inbox too.
            ("{-in:sent in:inbox}", without(Place::Sent)),
            ("{in:inbox in:sent in:drafts in:spam in:trash}", without(Place::Other)),
            ("-in:spam", with_spam_and_trash && without(Place::Spam)),
            ("-in:trash", with_spam_and_trash && without(Place::Deleted)),
        ];
        let words: Vec<&str> = words.into_iter().filter(|(_, is_said)| *is_said).map(|(word, _)| word).collect();
        Self { q: words.join(" "), with_spam_and_trash }
    }

    /// The same between two moments. Days would be those of California. Whether Gmail counts the two seconds themselves is not known.
    pub fn between(mut self, from: DateTime<Utc>, to: DateTime<Utc>) -> Self {
        self.q.push_str(&format!(" after:{} before:{}", from.timestamp(), to.timestamp()));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_places_that_are_read_are_asked_for() {
        use Place::*;
        for (places, q, with_spam_and_trash) in [
            (&[Inbox, Sent, Other][..], "-in:chats -in:drafts", false),
            (&[Inbox, Other], "-in:chats -in:drafts {-in:sent in:inbox}", false),
            (&[Inbox, Sent, Other, Drafts, Deleted], "-in:chats -in:spam", true),
            (&[Sent], "-in:chats -in:drafts -in:inbox {in:inbox in:sent in:drafts in:spam in:trash}", false),
        ] {
            let query = Query::of(places);
            assert_eq!((query.q.as_str(), query.with_spam_and_trash), (q, with_spam_and_trash), "{places:?}");
        }
        let at = |secs| DateTime::from_timestamp(secs, 0).expect("a time");
        let query = Query::of(&[Inbox, Sent, Other, Drafts]).between(at(1_793_491_200), at(1_793_577_600));
        assert_eq!(query.q, "-in:chats after:1793491200 before:1793577600");
    }
}
