//! The states of sources and jobs. Providers are known by name here; `connectors` describes them.

use crate::words;

words! {
    SourceStatus {
        Active = "active",
        /// Its tokens are no longer valid; a person has to reconnect it.
        TokenRefreshFailed = "token_refresh_failed",
        /// Its provider no longer tells of changes. It is synced all the same, by polling.
        SubscriptionExpired = "subscription_expired",
        /// The provider refuses our requests although the tokens are good.
        ProviderError = "provider_error",
        Paused = "paused",
        Disconnected = "disconnected",
    }
}

impl SourceStatus {
    /// Whether it is synced by itself.
    pub fn is_synced(self) -> bool {
        matches!(self, Self::Active | Self::SubscriptionExpired | Self::ProviderError)
    }
}

words! {
    /// The kind of a job.
    JobKind {
        /// Reads everything, and deletes here what the provider no longer has.
        Full = "full",
        /// Reads changes since the last job.
        Delta = "delta",
        /// Reads what the provider notified us of.
        Push = "push",
        /// Reads history.
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
    /// Whether the job is finished. Only a person can start it again.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

words! {
    /// The way in which a source is read.
    #[derive(Default)]
    Transport {
        /// The provider's own API: change cursors, deletions and typed limits.
        #[default]
        Rest = "rest",
        Mcp = "mcp",
        /// Built-in sample data.
        Fixtures = "fixtures",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_over_once_nothing_more_happens_by_itself() {
        let over: Vec<&str> =
            JobStatus::ALL.iter().filter(|status| status.is_over()).map(|status| status.as_str()).collect();
        assert_eq!(over, ["completed", "failed", "cancelled"], "a paused job goes on when it is resumed");
    }

    #[test]
    fn an_unknown_transport_is_an_error() {
        for transport in Transport::ALL {
            assert_eq!(Transport::try_from(transport.to_string()).expect("a transport"), transport);
        }
        for odd in ["", "REST", "soap"] {
            assert!(Transport::try_from(odd.to_owned()).is_err(), "{odd}");
        }
    }
}
