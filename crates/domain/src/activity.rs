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
