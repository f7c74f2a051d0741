//! QuickBooks Online, described.

use std::sync::Arc;

use super::complaint::{complaint, hidden_complaint};
use super::{Quickbooks, clients, guide, map, tools};
use crate::Http;
use crate::pull::http::Api;
use crate::pull::settings::{Setting, Settings};
use crate::pull::spec::{ClientProof, Kind, Labels, Mcp, Oauth, ProviderSpec, Sample, Says};
use crate::pull::{Connector, Limit};

/// QuickBooks allows 10 requests a second and 500 a minute; both limits leave some room.
pub(super) static SECOND: Limit = Limit { name: "quickbooks.second", units: 8, per_secs: 1 };
pub(super) static MINUTE: Limit = Limit { name: "quickbooks.minute", units: 400, per_secs: 60 };

static CLIENT_ID: Setting = Setting::text("QUICKBOOKS_CLIENT_ID", None, "The id of your app at Intuit");
static CLIENT_SECRET: Setting = Setting::secret("QUICKBOOKS_CLIENT_SECRET", "Its secret");
static API_URL: Setting = Setting::url(
    "QUICKBOOKS_API_URL",
    Some("https://quickbooks.api.intuit.com"),
    "QuickBooks' API; the sandbox is `https://sandbox-quickbooks.api.intuit.com`",
);
static AUTHORIZE_URL: Setting = Setting::url(
    "QUICKBOOKS_AUTHORIZE_URL",
    Some("https://appcenter.intuit.com/connect/oauth2"),
    "Where people allow it",
);
static TOKEN_URL: Setting = Setting::url(
    "QUICKBOOKS_TOKEN_URL",
    Some("https://oauth.platform.intuit.com/oauth2/v1/tokens/bearer"),
    "Where its tokens come from",
);
static MCP_URL: Setting = Setting::url(
    "QUICKBOOKS_MCP_URL",
    None,
    "An MCP server with the tools of Intuit's own for QuickBooks Online, for sources that are read through it. None unless named",
);

pub static SPEC: ProviderSpec = ProviderSpec {
    name: "quickbooks",
    label: "QuickBooks",
    brings: "Customers and invoices",
    settings: &[&CLIENT_ID, &CLIENT_SECRET, &API_URL, &AUTHORIZE_URL, &TOKEN_URL, &MCP_URL],
    oauth: Some(Oauth {
        client_id: &CLIENT_ID,
        client_secret: &CLIENT_SECRET,
        authorize_url: &AUTHORIZE_URL,
        token_url: &TOKEN_URL,
        scopes: &["com.intuit.quickbooks.accounting"],
        authorize_query: &[],
        client_proof: ClientProof::BasicAuth,
        // Which company it is.
        account_parameter: Some("realmId"),
        refusal: |_, _| None,
        setup: "in an Intuit developer account, make an app for QuickBooks Online accounting",
    }),
    key: None,
    limits: &[&SECOND, &MINUTE],
    document_types: &["quickbooks.customer", "quickbooks.invoice"],
    kinds: &[
        Kind {
            object: "customer",
            list: "quickbooks.customers.list",
            get: "quickbooks.customers.get",
            batch: 100,
            sample: Some(Sample {
                pages: include_str!("../../../../../fixtures/quickbooks/customers.json"),
                records: "/QueryResponse/Customer",
                complete: None,
            }),
        },
        Kind {
            object: "invoice",
            list: "quickbooks.invoices.list",
            get: "quickbooks.invoices.get",
            batch: 100,
            sample: Some(Sample {
                pages: include_str!("../../../../../fixtures/quickbooks/invoices.json"),
                records: "/QueryResponse/Invoice",
                complete: None,
            }),
        },
    ],
    raw: map::raw,
    item: map::item,
    is_passed_over: |_| false,
    link: |_| None,
    find_max: 100,
    first_sync: None,
    has_complete_deltas: false,
    hides_long_quota: true,
    clients: &[("quickbooks.customer", Says::IsClient(clients::customer)), ("quickbooks.invoice", Says::IsOfClients)],
    labels: Labels {
        types: &[("quickbooks.customer", "QuickBooks customer"), ("quickbooks.invoice", "QuickBooks invoice")],
        facts: &[
            ("ar_balance", "Open balance"),
            ("total_lifetime_value", "Billed in all"),
            ("invoice_history", "Latest invoices"),
            ("open_invoices", "Unpaid invoices"),
        ],
        value: |_, _| None,
    },
    address_fields: &map::ADDRESS,
    complaint,
    hidden_complaint: Some(hidden_complaint),
    mcp: Some(Mcp {
        server: "QuickBooks' MCP server",
        url: &MCP_URL,
        tools: tools::TOOLS,
        blanks: &[],
        limits: &[&SECOND, &MINUTE],
    }),
    mailbox: None,
    rest,
    guide: guide::GUIDE,
};

fn rest(http: &Http, settings: &Settings) -> Arc<dyn Connector> {
    Arc::new(Quickbooks::new(Api::new(http, settings.text(&API_URL), &SPEC)))
}
