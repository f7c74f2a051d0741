//! Postmark, for a person who sets a channel up.

use connectors::guide::{Advice, Gives, Group, Mark, Step};

use crate::intake::providers::ChannelGuide;

pub(super) const GUIDE: ChannelGuide = ChannelGuide {
    group: Group::Mail,
    mark: Mark(
        r#"<path class="soft" d="M3 8h12v10H3z"/><path d="M3 8l6 5 6-5M21.500 5.500h-5M18.500 3l-2.500 2.500L18.500 8"/>"#,
    ),
    who: "Postmark",
    also: "e-mail mailbox inbound forward gmail outlook imap",
    example: "office mail",
    secret: None,
    steps: &[
        Step {
            title: "Copy the URL",
            text: "It contains a user and a password, which Postmark sends with every e-mail.",
            gives: Gives::WebhookUrl,
        },
        Step {
            title: "Open the inbound stream",
            text: "In Postmark choose your server, then the message stream `Default Inbound Stream`, then `Settings`.",
            gives: Gives::Nothing,
        },
        Step {
            title: "Paste the URL as the webhook",
            text: "Paste it into the field `Webhook` and save. Leave `Include raw email content` off: it only makes the body larger. Press `Check` there if you like; it sends a test e-mail.",
            gives: Gives::Nothing,
        },
        Step {
            title: "Send mail to the inbound address",
            text: "The same page shows an address that ends in `inbound.postmarkapp.com`. Forward your mailbox to it, or send it a message. With a domain of your own, point its MX record to Postmark.",
            gives: Gives::Nothing,
        },
    ],
    refusals: &[
        Advice {
            says: "its address is none of Postmark's, and it shows no user and password",
            means: "The URL was pasted without its user and password, or somebody else called it.",
            todo: "Copy the whole URL again. If the address is your own proxy's, name the proxy in TRUSTED_PROXIES and restart.",
        },
        Advice {
            says: "user and password are not this channel's, and its address is none of Postmark's",
            means: "The URL in Postmark is an old one, or another webhook's.",
            todo: "Copy the URL from the webhook's page again and paste it into Postmark. Postmark tries again for about ten hours, so nothing is lost meanwhile.",
        },
        Advice {
            says: "the body cannot be understood: it is no inbound e-mail of Postmark's",
            means: "Something else than an inbound e-mail was sent here.",
            todo: "Use the URL for the inbound stream. If you sent it yourself, compare the body with Postmark's documentation of inbound e-mail.",
        },
        Advice {
            says: "the body is larger than 1048576 bytes",
            means: "A large e-mail came without a good user, password or address, so that only its first megabyte was read.",
            todo: "Copy the URL from the webhook's page again and paste it into Postmark. Postmark sends the e-mail again.",
        },
    ],
    senders: &[],
};
