//! Where each provider is, and how often it may be asked.

use super::Limit;

/// A provider's addresses. All of them are settings: for tests, for sovereign clouds, for whoever has a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints {
    pub api_url: String,
    pub authorize_url: String,
    pub token_url: String,
    /// None: nobody hosts one that we know.
    pub mcp_url: Option<String>,
    /// HubSpot's: a date such as `2026-03`, or `v3` for the paths of before.
    pub version: Option<String>,
}

/// The smallest that HubSpot gives an app; an account with more has a larger one in the settings.
pub static HUBSPOT: Limit = Limit { name: "hubspot", units: 100, per_secs: 10 };
/// Five a second, shared with every other app of the account.
pub static HUBSPOT_SEARCH: Limit = Limit { name: "hubspot.search", units: 4, per_secs: 1 };
/// QuickBooks allows 10 a second and 500 a minute; both are left some room.
pub static QUICKBOOKS_SECOND: Limit = Limit { name: "quickbooks.second", units: 8, per_secs: 1 };
pub static QUICKBOOKS_MINUTE: Limit = Limit { name: "quickbooks.minute", units: 400, per_secs: 60 };
/// Drive counts in units. What a method costs is not published, and the older allowance is in requests: so a request is a unit.
pub static GOOGLE_DRIVE: Limit = Limit { name: "google_drive", units: 12_000, per_secs: 60 };
