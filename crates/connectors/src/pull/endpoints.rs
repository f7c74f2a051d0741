//! Where each provider is, and how often it may be asked.

use domain::Provider;

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

impl Endpoints {
    pub fn of(provider: Provider) -> Self {
        let (api_url, authorize_url, token_url, mcp_url, version) = match provider {
            Provider::Hubspot => (
                "https://api.hubapi.com",
                "https://app.hubspot.com/oauth/authorize",
                "https://api.hubapi.com/oauth/2026-03/token",
                Some("https://mcp.hubspot.com"),
                Some("2026-03"),
            ),
            Provider::GoogleDrive => (
                "https://www.googleapis.com/drive/v3",
                "https://accounts.google.com/o/oauth2/v2/auth",
                "https://oauth2.googleapis.com/token",
                Some("https://drivemcp.googleapis.com/mcp/v1"),
                None,
            ),
            Provider::Quickbooks => (
                "https://quickbooks.api.intuit.com",
                "https://appcenter.intuit.com/connect/oauth2",
                "https://oauth.platform.intuit.com/oauth2/v1/tokens/bearer",
                None,
                None,
            ),
        };
        Self {
            api_url: api_url.to_owned(),
            authorize_url: authorize_url.to_owned(),
            token_url: token_url.to_owned(),
            mcp_url: mcp_url.map(str::to_owned),
            version: version.map(str::to_owned),
        }
    }
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
