//! Twilio, for a person who sets a channel up.

use connectors::guide::{Advice, Gives, Group, Mark, Step};

use crate::intake::providers::{ChannelGuide, GivenSecret};

pub(super) const GUIDE: ChannelGuide = ChannelGuide {
    group: Group::Calls,
    mark: Mark(
        r#"<path class="soft" d="M3 4h12v9H9.500L6 16v-3H3z"/><path d="M18 8.500c2 2 2 6 0 8M20.500 6c3.300 3.300 3.300 9.700 0 13M6.500 8.500h5"/>"#,
    ),
    who: "Twilio",
    also: "sms text messages phone calls recordings whatsapp voice",
    example: "support line",
    secret: Some(GivenSecret {
        label: "Twilio auth token",
        hint: "In the Twilio console, on the account's first page, below Account Info: the primary auth token. A subaccount has its own.",
    }),
    steps: &[
        Step {
            title: "Copy the whole URL",
            text: "Include the part after the #: it makes Twilio try again after an error.",
            gives: Gives::WebhookUrl,
        },
        Step {
            title: "Texts: set the number's webhook",
            text: "In the Twilio console open `Phone Numbers`, `Manage`, `Active numbers`, and the number. Under `Messaging Configuration`, as `A message comes in`, choose `Webhook`, paste the URL, and choose `HTTP POST`. If the number is in a messaging service, set it there.",
            gives: Gives::Nothing,
        },
        Step {
            title: "WhatsApp: set the sender's webhook",
            text: "Under `Messaging`, `Senders`, `WhatsApp senders`, open the sender and paste the URL as the webhook for incoming messages. Skip this without WhatsApp.",
            gives: Gives::Nothing,
        },
        Step {
            title: "Calls: set the status callback",
            text: "In the number's `Voice Configuration`, paste the URL as `Call status changes`. Do not paste it as `A call comes in`: Twilio would hang up.",
            gives: Gives::Nothing,
        },
        Step {
            title: "Recordings: name the URL where you record",
            text: "Give the URL as `recordingStatusCallback` of the TwiML verb or API call that records. In TwiML write `&amp;` for its `&`.",
            gives: Gives::Nothing,
        },
        Step {
            title: "Send a text to the number",
            text: "It arrives here within a second or two. This page shows it.",
            gives: Gives::Nothing,
        },
    ],
    refusals: &[
        Advice {
            says: "it has no X-Twilio-Signature",
            means: "Somebody else called the URL, or a proxy drops the header.",
            todo: "Let the proxy pass X-Twilio-Signature on. If the address is none of yours or Twilio's, replace the URL under Settings.",
        },
        Advice {
            says: "X-Twilio-Signature does not match",
            means: "Another auth token signed it, or Twilio called another URL than this server expects.",
            todo: "Compare the URL in Twilio with the one on the webhook's page: the scheme, host and path must be the same, and PUBLIC_URL its beginning. Then enter the account's primary auth token under Replace the secrets; a subaccount needs its own webhook.",
        },
        Advice {
            says: "it is signed in a way that is not known",
            means: "The shared key at Twilio uses another algorithm.",
            todo: "Choose HMAC_SHA1 or HMAC_SHA256 for the shared key in Twilio.",
        },
        Advice {
            says: "it is signed with a shared key that this channel does not have",
            means: "Twilio signs with a shared key of yours that is not known here.",
            todo: "Run `tributary channel shared-key NAME KEY --secret -` with the key's id, and paste its secret.",
        },
        Advice {
            says: "it has more parameters than any webhook of Twilio's",
            means: "It was not sent by Twilio.",
            todo: "If it comes again, somebody has the URL: replace it under Settings.",
        },
        Advice {
            says: "it is no form, and its URL has no bodySHA256",
            means: "A proxy drops the query or the content type, or it was not sent by Twilio.",
            todo: "Let the proxy pass the path, the query and Content-Type on unchanged.",
        },
        Advice {
            says: "its body is not the one that was signed",
            means: "Something between Twilio and this server rewrites bodies.",
            todo: "Switch off rewriting, compression and inspection of bodies for /ingest/ in your proxy or firewall.",
        },
    ],
    senders: &[],
};
