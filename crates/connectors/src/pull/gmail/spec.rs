//! Gmail, described.

use std::sync::Arc;

use serde_json::Value;

use super::{FIND_MAX, Gmail, guide, map, notices, tools};
use crate::Http;
use crate::pull::google::{self, AUTHORIZE_URL, CLIENT_ID, CLIENT_SECRET, TOKEN_URL};
use crate::pull::http::Api;
use crate::pull::mailbox::{Mailbox, MailboxSpec, Push, Topic};
use crate::pull::settings::{Setting, Settings};
use crate::pull::spec::{FirstSync, Kind, Labels, Mcp, ProviderSpec, Sample};
use crate::pull::{Connector, Limit};

/// Google counts in quota units, for each person and project. Projects from before May 2026 have 15,000 a minute, and pay less for a message;
/// the smaller allowance holds for both.
pub(super) static UNITS: Limit = Limit { name: "gmail", units: 6_000, per_secs: 60 };

static API_URL: Setting = Setting::url("GMAIL_API_URL", Some("https://gmail.googleapis.com"), "Gmail's API");
static MCP_URL: Setting = Setting::url(
    "GMAIL_MCP_URL",
    None,
    "An MCP server with the tools of Google's own for Gmail, for sources that are read through it. None unless named",
);
static FIRST_SYNC_MAX: Setting = Setting::count(
    "GMAIL_INITIAL_SYNC_MAX_THREADS",
    "500",
    "Most conversations that the first sync of a mailbox takes, the newest first",
);
static TOPIC: Setting = Setting::text(
    "GMAIL_PUBSUB_TOPIC",
    None,
    "The Pub/Sub topic that Gmail tells of changes, as `projects/.../topics/...`. Mailboxes are polled unless named",
);
static SUBSCRIPTION: Setting = Setting::text(
    "GMAIL_PUBSUB_SUBSCRIPTION",
    None,
    "The push subscription of that topic, as `projects/.../subscriptions/...`. Posts of another one are refused",
);
static TOKEN: Setting = Setting::secret(
    "GMAIL_PUBSUB_TOKEN",
    "The word that each post brings as `?token=` or in the header x-goog-pubsub-token, where posts are not signed",
);
static AUDIENCE: Setting =
    Setting::text("GMAIL_PUBSUB_AUDIENCE", None, "The audience of signed posts, as the subscription has it");
static SIGNER: Setting = Setting::text(
    "GMAIL_PUBSUB_SERVICE_ACCOUNT",
    None,
    "The service account that signs the posts, as its e-mail address",
);
static KEYS_URL: Setting = Setting::url(
    "GMAIL_PUBSUB_KEYS_URL",
    Some("https://www.googleapis.com/oauth2/v3/certs"),
    "Where Google's keys for signed posts are",
);

pub static SPEC: ProviderSpec = ProviderSpec {
    name: "gmail",
    label: "Gmail",
    brings: "E-mails and their attachments",
    settings: &[
        &CLIENT_ID,
        &CLIENT_SECRET,
        &API_URL,
        &AUTHORIZE_URL,
        &TOKEN_URL,
        &MCP_URL,
        &FIRST_SYNC_MAX,
        &TOPIC,
        &SUBSCRIPTION,
        &TOKEN,
        &AUDIENCE,
        &SIGNER,
        &KEYS_URL,
    ],
    oauth: Some(google::oauth(
        &["https://www.googleapis.com/auth/gmail.readonly"],
        "in the Google Cloud console, enable the Gmail API and make an OAuth client of the type Web application",
    )),
    key: None,
    limits: &[&UNITS],
    document_types: &[map::MESSAGE, map::ATTACHMENT],
    kinds: &[Kind {
        object: map::OBJECT,
        list: "gmail.threads.list",
        get: "gmail.threads.get",
        batch: 1,
        sample: Some(Sample {
            pages: include_str!("../../../../../fixtures/gmail/threads.json"),
            records: "/threads",
            complete: Some(map::apart),
        }),
    }],
    raw: map::raw,
    item: map::item,
    is_passed_over: |_| false,
    link,
    find_max: FIND_MAX,
    first_sync: Some(FirstSync { max: &FIRST_SYNC_MAX, things: "conversations" }),
    // And a full pass would bring in what the cap on the first sync left out.
    has_complete_deltas: true,
    // After a day's traffic is used up, Gmail refuses for hours in the words of a minute's allowance.
    hides_long_quota: true,
    clients: &[],
    labels: Labels {
        types: &[(map::MESSAGE, "E-mail"), (map::ATTACHMENT, "E-mail attachment")],
        facts: &[],
        value: |_, _| None,
    },
    address_fields: &[],
    complaint: google::complaint,
    hidden_complaint: None,
    mcp: Some(Mcp {
        server: "Google's MCP server for Gmail",
        url: &MCP_URL,
        tools: tools::TOOLS,
        blanks: &[],
        limits: &[&UNITS],
    }),
    mailbox: Some(MailboxSpec {
        message_type: map::MESSAGE,
        attachment_type: map::ATTACHMENT,
        rest: mailbox,
        hook: "gmail",
        push: Push::Topic(Topic {
            topic: &TOPIC,
            subscription: &SUBSCRIPTION,
            token: &TOKEN,
            audience: &AUDIENCE,
            signer: &SIGNER,
            keys_url: &KEYS_URL,
            issuers: &["https://accounts.google.com", "accounts.google.com"],
        }),
        notices: notices::read,
    }),
    rest: |http, settings| -> Arc<dyn Connector> { Arc::new(gmail(http, settings)) },
    guide: guide::GUIDE,
};

/// The conversation on Gmail's own page.
fn link(letter: &Value) -> Option<String> {
    letter.get("thread_id")?.as_str().map(|id| format!("https://mail.google.com/mail/#all/{id}"))
}

fn mailbox(http: &Http, settings: &Settings) -> Arc<dyn Mailbox> {
    Arc::new(gmail(http, settings))
}

fn gmail(http: &Http, settings: &Settings) -> Gmail {
    let api = Api::new(http, settings.text(&API_URL), &SPEC);
    let topic = settings.get(&TOPIC).filter(|topic| !topic.is_empty()).map(str::to_owned);
    Gmail::new(api, settings.count(&FIRST_SYNC_MAX), topic)
}
