//! Switches and counts of consent and tokens, for tests.

use crate::Fakes;
use crate::oauth::grants::{Counts, Issued};
use crate::provider::Provider;

impl Fakes {
    /// Allows a redirect address. Once one is allowed, no other is accepted.
    pub fn allow_redirect(&self, uri: &str) {
        self.shared.grants.with(|book| book.redirects.push(uri.to_owned()));
    }

    /// Makes the next person refuse consent.
    pub fn deny_next(&self) {
        self.shared.grants.with(|book| book.denies_next = true);
    }

    /// Sets the account that gives consent from now on. All accounts of a provider see the same records.
    pub fn as_account(&self, provider: Provider, account: &str) {
        self.shared.grants.with(|book| book.set_account(provider, account));
    }

    /// The provider's own id of the account that gives consent now.
    pub fn account_id(&self, provider: Provider) -> String {
        provider.account_id(&self.shared.grants.with(|book| book.account(provider)))
    }

    /// Sets the lifetime of new access tokens.
    pub fn set_token_secs(&self, provider: Provider, secs: i64) {
        self.shared.grants.with(|book| book.set_token_secs(provider, secs));
    }

    /// Whether a refresh spends the refresh token, whatever the provider usually does.
    pub fn rotate(&self, provider: Provider, rotates: bool) {
        self.shared.grants.with(|book| book.set_rotation(provider, rotates));
    }

    /// Answers every token request with `invalid_client`.
    pub fn reject_client(&self, rejects: bool) {
        self.shared.grants.with(|book| book.rejects_clients = rejects);
    }

    /// Expires all access tokens now. Refresh tokens still work.
    pub fn expire_access(&self, provider: Provider) {
        let now = self.shared.clock.now();
        self.shared.grants.with(|book| book.expire_access(provider, now));
    }

    /// Withdraws the consent of the present account: none of its tokens works any more.
    pub fn revoke(&self, provider: Provider) {
        self.shared.grants.with(|book| {
            let account = book.account(provider);
            book.revoke(provider, &account);
        });
    }

    /// Issues a pair without the way through a browser.
    pub fn issue(&self, provider: Provider) -> Issued {
        let now = self.shared.clock.now();
        self.shared.grants.with(|book| {
            let account = book.account(provider);
            book.issue(provider, &account, "", true, now)
        })
    }

    /// Counts the requests of all accounts together, including those that named none.
    pub fn counts(&self, provider: Provider) -> Counts {
        self.shared.grants.with(|book| book.counts(provider, None))
    }

    /// The counts of one account, without requests as such and refusals of a client.
    pub fn counts_of(&self, provider: Provider, account: &str) -> Counts {
        self.shared.grants.with(|book| book.counts(provider, Some(account)))
    }
}
