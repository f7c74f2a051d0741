//! Senders that sign as generic channels expect it, with the steps at each.

use connectors::guide::{Gives, Group, Mark, Step};

use super::{BEARER, WEBHOOK_SECRET};
use crate::intake::providers::Sender;

pub(super) const ALL: &[Sender] = &[
    Sender {
        code: "github",
        label: "GitHub",
        sends: "Pushes, issues, reviews and releases",
        group: Group::Other,
        mark: Mark(
            r#"<circle class="soft" cx="7" cy="5.500" r="2.500"/><circle class="soft" cx="7" cy="18.500" r="2.500"/><circle cx="17" cy="8.500" r="2.500"/><path d="M7 8v8M17 11c0 4-6 3-9 5.500"/>"#,
        ),
        also: "git repository code issues pull requests",
        example: "our repository",
        // It does not send a refused event again.
        has_no_limit: true,
        steps: &[
            Step {
                title: "Open the repository's webhooks",
                text: "In GitHub open the repository or the organisation, `Settings`, `Webhooks`, and press `Add webhook`.",
                gives: Gives::Nothing,
            },
            Step {
                title: "Paste the URL",
                text: "Paste it as `Payload URL`, and choose the content type `application/json`.",
                gives: Gives::WebhookUrl,
            },
            Step {
                title: "Paste the secret",
                text: "Paste it as `Secret`, whole, with `whsec_` in front.",
                gives: Gives::Secret(WEBHOOK_SECRET),
            },
            Step {
                title: "Choose the events",
                text: "Choose which events are sent and press `Add webhook`. GitHub sends a first event, ping, at once: this page shows it.",
                gives: Gives::Nothing,
            },
        ],
    },
    Sender {
        code: "stripe",
        label: "Stripe",
        sends: "Payments, invoices and customers",
        group: Group::Accounting,
        mark: Mark(r#"<path class="soft" d="M3 6h18v12H3z"/><path d="M3 10h18M6.500 14.500h4"/>"#),
        also: "payments invoices charges subscriptions card",
        example: "payments",
        has_no_limit: false,
        steps: &[
            Step {
                title: "Add an endpoint",
                text: "In Stripe open `Developers`, `Webhooks`, and add an endpoint or event destination with this URL.",
                gives: Gives::WebhookUrl,
            },
            Step {
                title: "Choose the events",
                text: "Choose the events that matter, such as `invoice.paid` and `charge.failed`, and save.",
                gives: Gives::Nothing,
            },
            Step {
                title: "Bring Stripe's signing secret here",
                text: "Stripe shows a signing secret of the endpoint. Copy it, open `Replace the secrets` at the end of this page, and paste it there.",
                gives: Gives::Nothing,
            },
            Step {
                title: "Send a test event",
                text: "Press `Send test event` in Stripe. This page shows it as it arrives.",
                gives: Gives::Nothing,
            },
        ],
    },
    Sender {
        code: "automation",
        label: "Zapier, Make or n8n",
        sends: "Whatever another app tells them",
        group: Group::Other,
        mark: Mark(
            r#"<circle class="soft" cx="5" cy="12" r="2.500"/><circle cx="19" cy="6" r="2.500"/><circle cx="19" cy="18" r="2.500"/><path d="M7.500 11l9-4M7.500 13l9 4"/>"#,
        ),
        also: "automation workflow integration slack salesforce zoho xero power automate pipedream",
        example: "automation",
        has_no_limit: false,
        steps: &[
            Step {
                title: "Add a step that calls a webhook",
                text: "In Zapier it is `Webhooks by Zapier`, `POST`; in Make the module `HTTP`, `Make a request`; in n8n the node `HTTP Request`. Use this URL and the method POST.",
                gives: Gives::WebhookUrl,
            },
            Step {
                title: "Show the bearer key",
                text: "Add a header `Authorization` whose value is the word `Bearer`, a space and this key.",
                gives: Gives::Secret(BEARER),
            },
            Step {
                title: "Fill in the body",
                text: "Send JSON with `type`, `subject`, `content` and `from` from the step before. Add a header `Idempotency-Key` with the record's id, so that a repeated run changes nothing.",
                gives: Gives::Nothing,
            },
            Step {
                title: "Test the step",
                text: "Run it once. This page shows the event as it arrives.",
                gives: Gives::Nothing,
            },
        ],
    },
];
