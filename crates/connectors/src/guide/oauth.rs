//! Refusals that every provider with OAuth can give, and those of our own on the way there and back. A provider's own description goes
//! before these.

use super::Advice;

/// By OAuth's codes, as a person meets them on a provider's page or back here.
pub static REFUSALS: [Advice; 11] = [
    Advice {
        says: "redirect_uri_mismatch",
        means: "The redirect URL that is registered there is not the one that this server uses.",
        todo: "Copy the redirect URL from this page again and register it exactly: the same scheme, host, port and path, without a slash at its end. If PUBLIC_URL was changed since, register the new one.",
    },
    Advice {
        says: "invalid_client",
        means: "The provider does not know the client id, or the secret is another app's.",
        todo: "Copy both values again from the app's page, without spaces, put them into the environment, and restart every server and worker.",
    },
    Advice {
        says: "unauthorized_client",
        means: "The app may not connect accounts in this way.",
        todo: "Check at the provider that the app is a web app, that it is published or in development as you need it, and that nobody switched it off.",
    },
    Advice {
        says: "access_denied",
        means: "The person, or their administrator, did not allow it.",
        todo: "Press Connect again and allow everything that is asked for. If an administrator has to approve apps, ask them first.",
    },
    Advice {
        says: "invalid_scope",
        means: "The app may not ask for one of the permissions that are needed.",
        todo: "Add the permissions from the list on this page to the app at the provider, save it, and connect again.",
    },
    Advice {
        says: "invalid_grant",
        means: "The code or the token is no longer good: it was used already, it expired, or somebody withdrew it.",
        todo: "Press Connect again. If it happens each time, check that the clock of this server is right.",
    },
    Advice {
        says: "temporarily_unavailable",
        means: "The provider cannot answer at the moment.",
        todo: "Wait some minutes, then connect again. Nothing has to be changed here.",
    },
    Advice {
        says: "server_error",
        means: "The provider had a fault of its own.",
        todo: "Wait some minutes, then connect again. If it stays, look at the provider's status page.",
    },
    Advice {
        says: "unknown_state",
        means: "The way back was used already, is older than ten minutes, or was begun in another browser.",
        todo: "Press Connect on this page and finish in the same browser within ten minutes.",
    },
    Advice {
        says: "other_account",
        means: "You signed in to another account than the one that is connected here.",
        todo: "Sign out at the provider and choose the right account, or connect the other one as an account of its own.",
    },
    Advice {
        says: "unreachable",
        means: "This server could not get an answer from the provider.",
        todo: "Check that this server may reach the internet (proxy, firewall, DNS), then connect again. `tributary doctor` checks the rest.",
    },
];

/// By what a provider's refusal means, whatever its word for it is.
pub static MEANINGS: [Advice; 4] = [
    Advice {
        says: "wait",
        means: "We asked more often than the provider allows.",
        todo: "Do nothing: the sync waits as long as it was told to, and goes on. Other apps of the same account share the allowance.",
    },
    Advice {
        says: "token",
        means: "The provider no longer accepts our token, or the key.",
        todo: "Press Reconnect on the account's page and allow it again, or enter the key that is good now. Nothing read so far is lost.",
    },
    Advice {
        says: "trouble",
        means: "The provider is not well at the moment.",
        todo: "Do nothing: the request is tried again, with longer and longer waits. The account's page says when.",
    },
    Advice {
        says: "lasting",
        means: "The provider accepts our token but refuses the request.",
        todo: "Give the app and the person who connected it the permissions listed on this page, then press Sync now. Everything read so far is kept.",
    },
];

#[cfg(test)]
mod tests {
    use super::super::{Mark, faults_of};
    use super::*;

    #[test]
    fn every_refusal_is_explained_in_sentences() {
        let advice = [&REFUSALS[..], &MEANINGS[..]].concat();
        let faults = faults_of(Mark("<path d=\"M1 1\"/>"), &[], &advice);
        assert!(faults.is_empty(), "{faults:?}");
    }
}
