//! Sources and jobs: whose account, how it is, and what a run of work on it is called.

use serde::{Deserialize, Serialize};

use crate::words;

words! {
    /// Whom a source's account is at.
    Provider {
        Hubspot = "hubspot",
        GoogleDrive = "google_drive",
        Quickbooks = "quickbooks",
    }
}

impl Provider {
    /// As people call it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Hubspot => "HubSpot",
            Self::GoogleDrive => "Google Drive",
            Self::Quickbooks => "QuickBooks",
        }
    }
}

words! {
    SourceStatus {
        Active = "active",
        /// Its tokens are no longer good: a person reconnects it.
        TokenRefreshFailed = "token_refresh_failed",
        SubscriptionExpired = "subscription_expired",
        /// The provider refuses what we ask, with good tokens.
        ProviderError = "provider_error",
        Paused = "paused",
        Disconnected = "disconnected",
    }
}

words! {
    /// What a job does.
    JobKind {
        /// Everything the provider has; what it no longer has is deleted here.
        Full = "full",
        /// What changed since the last time.
        Delta = "delta",
        /// What the provider told us of.
        Push = "push",
        /// History.
        Backfill = "backfill",
    }
}

words! {
    JobStatus {
        Pending = "pending",
        Running = "running",
        Completed = "completed",
        Failed = "failed",
        Paused = "paused",
        Cancelled = "cancelled",
    }
}

impl JobStatus {
    /// Nothing more happens to it by itself.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// How a source's provider is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// The provider's own API: change cursors, deletions and typed limits.
    #[default]
    Rest,
    Mcp,
    /// Sample data that ships with us (`INTEGRATIONS_USE_FIXTURES`).
    Fixtures,
}

impl Transport {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rest => "rest",
            Self::Mcp => "mcp",
            Self::Fixtures => "fixtures",
        }
    }
}
