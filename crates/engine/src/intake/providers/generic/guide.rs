//! Generic webhooks, for a person who sets a channel up.

use connectors::guide::{Advice, Gives, Group, Mark, Step};

use super::{WEBHOOK_SECRET, senders};
use crate::intake::providers::{ChannelGuide, GivenSecret};

pub(super) const GUIDE: ChannelGuide = ChannelGuide {
    group: Group::Other,
    mark: Mark(
        r#"<path class="soft" d="M7 9h10v4a5 5 0 0 1-10 0z"/><path d="M9.500 9V4.500M14.500 9V4.500M12 18v3"/>"#,
    ),
    who: "any sender",
    also: "webhook api form shop orders http json custom program",
    example: "web shop",
    secret: Some(GivenSecret {
        label: "The sender's own secret",
        hint: "Leave it empty unless the sender gives you one: a secret is made for you.",
    }),
    steps: &[
        Step {
            title: "Copy the URL",
            text: "Give it to the sender as the address for POST requests.",
            gives: Gives::WebhookUrl,
        },
        Step {
            title: "Give the sender the secret",
            text: "It signs each body with it: `X-Webhook-Signature` is `sha256=` and the HMAC-SHA256 of the body in hex. Standard Webhooks is understood too. A sender that cannot sign sends the bearer key as `Authorization: Bearer`.",
            gives: Gives::Secret(WEBHOOK_SECRET),
        },
        Step {
            title: "Choose the fields",
            text: "Send a JSON object with `type` (email, call, sms, meeting, note, task, whatsapp or other), `subject`, `content`, `from` and `to`. Everything else is kept beside it.",
            gives: Gives::Nothing,
        },
        Step {
            title: "Name each event",
            text: "Send an `Idempotency-Key` that stays the same when an event is sent again. It is stored once then.",
            gives: Gives::Nothing,
        },
        Step {
            title: "Send an event",
            text: "Use the command on this page, or the sender itself. This page shows it as it arrives.",
            gives: Gives::Nothing,
        },
    ],
    refusals: &[
        Advice {
            says: "its timestamp is no time within five minutes of now, or webhook-id is missing or has a dot",
            means: "The sender's clock differs from ours, or it sent an old signature again.",
            todo: "Set the sender's clock, and let it sign each attempt anew. An id in webhook-id must not contain a dot.",
        },
        Advice {
            says: "the signature does not match",
            means: "Another secret signed it, or the body was changed on its way.",
            todo: "Copy the secret again, with whsec_ in front. Sign the bytes that are sent, not JSON that is written anew. The secret may have been replaced.",
        },
        Advice {
            says: "the bearer key is not this channel's",
            means: "The key is an old one, or another webhook's.",
            todo: "Copy the bearer key from the webhook's page again. It begins with ak_live_.",
        },
        Advice {
            says: "it shows no bearer key and no signature",
            means: "The sender does not sign yet, or a proxy drops the header.",
            todo: "Give the sender the secret or the bearer key. Let the proxy pass Authorization and the signature's header on.",
        },
        Advice {
            says: "the body cannot be understood: webhook-id and Idempotency-Key",
            means: "The event's id is empty, too long or has other characters than plain ones.",
            todo: "Send an id of 1 to 500 letters, digits and signs.",
        },
        Advice {
            says: "the body cannot be understood: it has neither content nor subject",
            means: "The JSON object is empty.",
            todo: "Send at least one field with a text. `content` and `subject` are shown first.",
        },
        Advice {
            says: "the body cannot be understood: send application/json",
            means: "The type of the body is one that is not read.",
            todo: "Let the sender set Content-Type to application/json, a form or text/plain, as its body is.",
        },
    ],
    senders: senders::ALL,
};
