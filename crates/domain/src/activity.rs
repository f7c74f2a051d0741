//! What an activity is: which kind of event, and which way it went.

use crate::words;

words! {
    ActivityType {
        Email = "email",
        Call = "call",
        Sms = "sms",
        Meeting = "meeting",
        Note = "note",
        Task = "task",
        Whatsapp = "whatsapp",
        Other = "other",
    }
}

words! {
    Direction {
        Inbound = "inbound",
        Outbound = "outbound",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_those_of_the_columns() {
        assert_eq!(
            ActivityType::ALL.map(ActivityType::as_str),
            ["email", "call", "sms", "meeting", "note", "task", "whatsapp", "other"]
        );
        assert_eq!(Direction::ALL.map(Direction::as_str), ["inbound", "outbound"]);
        for odd in ["", "Email", " email", "fax"] {
            assert!(odd.parse::<ActivityType>().is_err(), "{odd:?} was taken for a type");
        }
    }
}
