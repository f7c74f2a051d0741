//! What an activity is: which kind of event, and which way it went.

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($variant),* }

        impl $name {
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }

            /// In whatever case it is written; none: no word of ours.
            pub fn parse(text: &str) -> Option<Self> {
                $(if text.eq_ignore_ascii_case($word) {
                    return Some(Self::$variant);
                })*
                None
            }
        }
    )*};
}

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
    Direction {
        Inbound = "inbound",
        Outbound = "outbound",
    }
}
