//! Outlook, described.

use std::sync::Arc;

use super::complaint::{complaint, refusal};
use super::graph::{BATCH, Graph};
use super::{Outlook, guide, map, push};
use crate::Http;
use crate::pull::http::Api;
use crate::pull::mailbox::{Mailbox, MailboxSpec, Push};
use crate::pull::settings::{Setting, Settings};
use crate::pull::spec::{ClientProof, FirstSync, Kind, Labels, Oauth, ProviderSpec, Sample};
use crate::pull::{Connector, Limit};

/// Per app and mailbox. Graph also allows four requests at a time: the connector makes three at most, and one job reads a mailbox.
pub(super) static REQUESTS: Limit = Limit { name: "outlook", units: 10_000, per_secs: 600 };

static CLIENT_ID: Setting = Setting::text("OUTLOOK_CLIENT_ID", None, "The id of your app registration at Microsoft");
static CLIENT_SECRET: Setting =
    Setting::secret("OUTLOOK_CLIENT_SECRET", "The value of its client secret, not the secret's id");
static API_URL: Setting = Setting::url("OUTLOOK_API_URL", Some("https://graph.microsoft.com/v1.0"), "Microsoft Graph");
static AUTHORIZE_URL: Setting = Setting::url(
    "OUTLOOK_AUTHORIZE_URL",
    Some("https://login.microsoftonline.com/common/oauth2/v2.0/authorize"),
    "Where people allow it. An app of one organization has its tenant id in the place of `common`",
);
static TOKEN_URL: Setting = Setting::url(
    "OUTLOOK_TOKEN_URL",
    Some("https://login.microsoftonline.com/common/oauth2/v2.0/token"),
    "Where its tokens come from, with the same tenant",
);
static FIRST_SYNC_MAX: Setting = Setting::count(
    "OUTLOOK_INITIAL_SYNC_MAX_MESSAGES",
    "20000",
    "Most messages that the first sync of a mailbox takes: the newest of each folder, beginning with the inbox",
);

pub static SPEC: ProviderSpec = ProviderSpec {
    name: "outlook",
    label: "Outlook",
    brings: "Mail and its attachments",
    settings: &[&CLIENT_ID, &CLIENT_SECRET, &API_URL, &AUTHORIZE_URL, &TOKEN_URL, &FIRST_SYNC_MAX],
    oauth: Some(Oauth {
        client_id: &CLIENT_ID,
        client_secret: &CLIENT_SECRET,
        authorize_url: &AUTHORIZE_URL,
        token_url: &TOKEN_URL,
        // Without `offline_access` there is no refresh token. Write permissions do not count as read ones for subscriptions.
        scopes: &["offline_access", "User.Read", "Mail.Read"],
        authorize_query: &[("response_mode", "query"), ("prompt", "select_account")],
        client_proof: ClientProof::Form,
        account_parameter: None,
        refusal,
        setup: "in the Microsoft Entra admin center, register an app with a client secret and the delegated permission Mail.Read",
    }),
    key: None,
    limits: &[&REQUESTS],
    document_types: &[map::MESSAGE, map::ATTACHMENT],
    kinds: &[Kind {
        object: map::OBJECT,
        list: "outlook.messages.list",
        get: "outlook.messages.get",
        batch: BATCH,
        sample: Some(Sample {
            pages: include_str!("../../../../../fixtures/outlook/messages.json"),
            records: "/value",
            complete: None,
        }),
    }],
    raw: map::raw,
    item: map::item,
    is_passed_over: map::is_passed_over,
    link: |_| None,
    find_max: BATCH,
    first_sync: Some(FirstSync { max: &FIRST_SYNC_MAX, things: "messages" }),
    // And a full pass would bring in the messages that the cap on the first sync left out.
    has_complete_deltas: true,
    hides_long_quota: false,
    clients: &[],
    labels: Labels {
        types: &[(map::MESSAGE, "Outlook message"), (map::ATTACHMENT, "Outlook attachment")],
        facts: &[],
        value: |_, _| None,
    },
    address_fields: &[],
    complaint,
    hidden_complaint: None,
    mcp: None,
    mailbox: Some(MailboxSpec {
        message_type: map::MESSAGE,
        attachment_type: map::ATTACHMENT,
        rest: mailbox,
        hook: "outlook",
        push: Push::Subscription,
        notices: push::notices,
    }),
    rest,
    guide: guide::GUIDE,
};

pub(super) fn outlook(http: &Http, settings: &Settings) -> Outlook {
    let base_url = settings.text(&API_URL);
    let graph = Graph::new(Api::new(http, base_url, &SPEC), base_url);
    Outlook::new(graph, settings.count(&FIRST_SYNC_MAX))
}

fn rest(http: &Http, settings: &Settings) -> Arc<dyn Connector> {
    Arc::new(outlook(http, settings))
}

fn mailbox(http: &Http, settings: &Settings) -> Arc<dyn Mailbox> {
    Arc::new(outlook(http, settings))
}
