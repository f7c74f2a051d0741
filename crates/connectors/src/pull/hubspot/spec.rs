//! HubSpot, described.

use std::sync::Arc;

use super::complaint::{complaint, refusal};
use super::{Hubspot, clients, guide, labels, map, tools};
use crate::Http;
use crate::pull::http::Api;
use crate::pull::settings::{Setting, Settings};
use crate::pull::spec::{ClientProof, Key, Kind, Mcp, Oauth, ProviderSpec, Sample, Says};
use crate::pull::{Connector, Limit};

/// The smallest limit that HubSpot gives an app; `PULL_RATE_FACTOR` raises it for accounts that are allowed more.
pub(super) static GENERAL: Limit = Limit { name: "hubspot", units: 100, per_secs: 10 };
/// Five searches a second are allowed, shared with every other app of the account.
pub(super) static SEARCH: Limit = Limit { name: "hubspot.search", units: 4, per_secs: 1 };

static CLIENT_ID: Setting = Setting::text(
    "HUBSPOT_CLIENT_ID",
    None,
    "The id of your app at HubSpot; with its secret people connect accounts by HubSpot's own pages. A private app's token needs neither",
);
static CLIENT_SECRET: Setting = Setting::secret("HUBSPOT_CLIENT_SECRET", "Its secret");
static API_URL: Setting = Setting::url("HUBSPOT_API_URL", Some("https://api.hubapi.com"), "HubSpot's API");
static AUTHORIZE_URL: Setting =
    Setting::url("HUBSPOT_AUTHORIZE_URL", Some("https://app.hubspot.com/oauth/authorize"), "Where people allow it");
static TOKEN_URL: Setting =
    Setting::url("HUBSPOT_TOKEN_URL", Some("https://api.hubapi.com/oauth/2026-03/token"), "Where its tokens come from");
static API_VERSION: Setting = Setting::text(
    "HUBSPOT_API_VERSION",
    Some("2026-03"),
    "The version of HubSpot's API: a date such as 2026-03, or v3 for the old paths",
);
static MCP_URL: Setting = Setting::url(
    "HUBSPOT_MCP_URL",
    None,
    "An MCP server with the tools of HubSpot's own local one, for sources that are read through it. None unless named: the server that \
     HubSpot hosts has other tools, and takes the tokens of an MCP auth app alone",
);

pub static SPEC: ProviderSpec = ProviderSpec {
    name: "hubspot",
    label: "HubSpot",
    brings: "Contacts, companies and deals",
    settings: &[&CLIENT_ID, &CLIENT_SECRET, &API_URL, &AUTHORIZE_URL, &TOKEN_URL, &API_VERSION, &MCP_URL],
    oauth: Some(Oauth {
        client_id: &CLIENT_ID,
        client_secret: &CLIENT_SECRET,
        authorize_url: &AUTHORIZE_URL,
        token_url: &TOKEN_URL,
        scopes: &["crm.objects.contacts.read", "crm.objects.companies.read", "crm.objects.deals.read", "oauth"],
        authorize_query: &[],
        client_proof: ClientProof::Form,
        account_parameter: None,
        refusal,
        setup: "in a HubSpot developer account, make a public app that may read contacts, companies and deals",
    }),
    key: Some(Key {
        of: "a private app",
        hint: "In HubSpot: Settings, Integrations, Private Apps. It needs to read contacts, companies and deals.",
        placeholder: "pat-…",
    }),
    limits: &[&GENERAL, &SEARCH],
    document_types: &["hubspot.contact", "hubspot.company", "hubspot.deal"],
    kinds: &[
        Kind {
            object: "contact",
            list: "hubspot.crm.contacts.list",
            get: "hubspot.crm.contacts.get",
            batch: 100,
            sample: Some(sample(include_str!("../../../../../fixtures/hubspot/contacts.json"))),
        },
        Kind {
            object: "company",
            list: "hubspot.crm.companies.list",
            get: "hubspot.crm.companies.get",
            batch: 100,
            sample: Some(sample(include_str!("../../../../../fixtures/hubspot/companies.json"))),
        },
        Kind {
            object: "deal",
            list: "hubspot.crm.deals.list",
            get: "hubspot.crm.deals.get",
            batch: 100,
            sample: Some(sample(include_str!("../../../../../fixtures/hubspot/deals.json"))),
        },
    ],
    raw: map::raw,
    item: map::item,
    is_passed_over: |_| false,
    link: |_| None,
    find_max: 100,
    first_sync: None,
    has_complete_deltas: false,
    hides_long_quota: false,
    clients: &[
        ("hubspot.contact", Says::IsClient(clients::contact)),
        ("hubspot.company", Says::IsClient(clients::company)),
        ("hubspot.deal", Says::IsOfClients),
    ],
    labels: labels::LABELS,
    address_fields: &[],
    complaint,
    hidden_complaint: None,
    mcp: Some(Mcp {
        server: "HubSpot's MCP server",
        url: &MCP_URL,
        tools: tools::TOOLS,
        blanks: tools::BLANKS,
        limits: &[&GENERAL],
    }),
    mailbox: None,
    rest,
    guide: guide::GUIDE,
};

const fn sample(pages: &'static str) -> Sample {
    Sample { pages, records: "/results", complete: None }
}

fn rest(http: &Http, settings: &Settings) -> Arc<dyn Connector> {
    let api = Api::new(http, settings.text(&API_URL), &SPEC);
    Arc::new(Hubspot::new(api, settings.text(&API_VERSION)))
}
