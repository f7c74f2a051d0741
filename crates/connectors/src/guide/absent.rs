//! Providers that people look for and do not find yet, each with what to use instead.

use super::{Group, Mark};

/// A provider that cannot be connected yet.
pub struct Absent {
    pub label: &'static str,
    pub group: Group,
    pub mark: Mark,
    /// Other words by which people look for it.
    pub also: &'static str,
    /// The way to do it instead, in sentences.
    pub todo: &'static str,
    /// The ways that the sentences name, in the same order.
    pub instead: &'static [Way],
}

/// A way in that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A provider of webhooks, by its code.
    Webhook(&'static str),
    /// A provider of accounts, by its name.
    Account(&'static str),
    /// The page that takes files.
    Files,
}

/// A sheet of paper, a database and an envelope are many things: each has something of its own in it.
pub static ALL: [Absent; 11] = [
    Absent {
        label: "WhatsApp Business",
        group: Group::Calls,
        mark: Mark(r#"<path class="soft" d="M4 20l1.300-4A8 8 0 1 1 8.500 18.900z"/><path d="M9 9.500h6M9 13h4"/>"#),
        also: "meta messages chat",
        todo: "Use a WhatsApp sender of Twilio's instead. Its messages arrive like texts.",
        instead: &[Way::Webhook("twilio")],
    },
    Absent {
        label: "Other telephone systems",
        group: Group::Calls,
        mark: Mark(
            r#"<path class="soft" d="M5 4h14v16H5z"/><path d="M8.500 8h.01M12 8h.01M15.500 8h.01M8.500 12h.01M12 12h.01M15.500 12h.01M12 16h.01"/>"#,
        ),
        also: "RingCentral Aircall Vonage Sipgate 3CX Dialpad pbx phone voip",
        todo: "Let your telephone system, or an automation service, send each call to a generic webhook. A number of Twilio's works directly.",
        instead: &[Way::Webhook("generic"), Way::Webhook("twilio")],
    },
    Absent {
        label: "Other mailboxes (IMAP)",
        group: Group::Mail,
        mark: Mark(r#"<path class="soft" d="M4 10h16v9H4z"/><path d="M4 10l8-6 8 6M8 14.500h8"/>"#),
        also: "pop3 mailbox e-mail fastmail proton yahoo",
        todo: "Let the mail server forward to an inbound address of Postmark's instead.",
        instead: &[Way::Webhook("postmark")],
    },
    Absent {
        label: "Salesforce",
        group: Group::Crm,
        mark: Mark(r#"<path class="soft" d="M4 5h16l-6 7v6l-4 2v-8z"/>"#),
        also: "sales leads opportunities contacts accounts",
        todo: "Export contacts as CSV and run `tributary contact import`. For changes, let a flow or an automation service send records to a generic webhook.",
        instead: &[Way::Webhook("generic")],
    },
    Absent {
        label: "Zoho CRM",
        group: Group::Crm,
        mark: Mark(r#"<path class="soft" d="M4 4h7v7H4zM13 13h7v7h-7z"/><path d="M13 4h7v7h-7zM4 13h7v7H4z"/>"#),
        also: "sales leads contacts",
        todo: "Export contacts as CSV and run `tributary contact import`. For changes, let a workflow there call a generic webhook.",
        instead: &[Way::Webhook("generic")],
    },
    Absent {
        label: "Pipedrive",
        group: Group::Crm,
        mark: Mark(r#"<path class="soft" d="M4 6h4v12H4zM10 6h4v8h-4z"/><path d="M16 6h4v4h-4z"/>"#),
        also: "sales deals leads contacts",
        todo: "Export people as CSV and run `tributary contact import`. For changes, let its webhooks reach a generic webhook by an automation service.",
        instead: &[Way::Webhook("generic")],
    },
    Absent {
        label: "Xero",
        group: Group::Accounting,
        mark: Mark(r#"<path class="soft" d="M5 4h14v16H5z"/><path d="M8.500 8.500h7M8.500 12h7M8.500 15.500h3"/>"#),
        also: "invoices bookkeeping accounts freshbooks sage datev",
        todo: "Let an automation service send each invoice to a generic webhook. QuickBooks accounts are read directly.",
        instead: &[Way::Webhook("generic"), Way::Account("quickbooks")],
    },
    Absent {
        label: "Dropbox",
        group: Group::Files,
        mark: Mark(r#"<path class="soft" d="M3 7h7l2 2.500h9V19H3z"/><path d="M12 12v4M10 14.300l2 1.700 2-1.700"/>"#),
        also: "box folder cloud storage",
        todo: "Add documents, scans and recordings by hand, or from a folder with `tributary remember`. What is kept in Google Drive is read directly.",
        instead: &[Way::Files, Way::Account("google_drive")],
    },
    Absent {
        label: "OneDrive and SharePoint",
        group: Group::Files,
        mark: Mark(r#"<path class="soft" d="M3 7h7l2 2.500h9V19H3z"/><path d="M8.500 14.300h7"/>"#),
        also: "microsoft office folder cloud storage teams",
        todo: "Add documents, scans and recordings by hand, or from a synced folder with `tributary remember`.",
        instead: &[Way::Files],
    },
    Absent {
        label: "Notion",
        group: Group::Files,
        mark: Mark(r#"<path class="soft" d="M5 4h10l4 4v12H5z"/><path d="M9 9h.01M12 9h1M9 12.500h6M9 16h6"/>"#),
        also: "wiki notes pages confluence",
        todo: "Export the pages as Markdown and add the files.",
        instead: &[Way::Files],
    },
    Absent {
        label: "Slack and Microsoft Teams",
        group: Group::Other,
        mark: Mark(r#"<path class="soft" d="M3 5h11v8H8l-3 2.500V13H3z"/><path d="M17 9.500h4v7h-2V19l-3-2.500h-6"/>"#),
        also: "chat messages channels",
        todo: "Let an automation service send the messages that matter to a generic webhook. Slack's own event URL cannot be used yet: it expects an answer that a webhook here does not give.",
        instead: &[Way::Webhook("generic")],
    },
];

#[cfg(test)]
mod tests {
    use super::super::faults_of;
    use super::*;

    #[test]
    fn everything_that_is_missing_says_what_to_use_instead() {
        for absent in &ALL {
            let faults = faults_of(absent.mark, &[], &[]);
            assert!(faults.is_empty(), "{}: {faults:?}", absent.label);
            assert!(absent.todo.len() > 20 && absent.todo.ends_with('.'), "{}", absent.label);
            assert!(!absent.instead.is_empty() && !absent.also.is_empty(), "{}", absent.label);
        }
    }
}
