//! What a test sets and reads of consent and tokens.

use crate::Fakes;
use crate::oauth::grants::{Counts, Issued};
use crate::provider::Provider;

pub(crate) const PRIVATE_APP_TOKEN: &str = "pat-na1-fake-00000000-0000-4000-8000-000000000000";

impl Fakes {
    /// Once any address is allowed, consent leads back to no other.
    pub fn allow_redirect(&self, uri: &str) {
        self.shared.grants.with(|book| book.redirects.push(uri.to_owned()));
    }

    /// The next person asked for consent says no.
    pub fn deny_next(&self) {
        self.shared.grants.with(|book| book.denies_next = true);
    }

    /// Consent comes from this account from now on. All accounts of a provider see the same records.
    pub fn as_account(&self, provider: Provider, account: &str) {
        self.shared.grants.with(|book| book.set_account(provider, account));
    }

    /// What the provider calls the account that gives consent now: its portal, permission id or realm.
    pub fn account_id(&self, provider: Provider) -> String {
        provider.account_id(&self.shared.grants.with(|book| book.account(provider)))
    }

    /// How long new access tokens last.
    pub fn set_token_secs(&self, provider: Provider, secs: i64) {
        self.shared.grants.with(|book| book.set_token_secs(provider, secs));
    }

    /// Whether a refresh spends the refresh token; QuickBooks' do unless told otherwise.
    pub fn rotate(&self, provider: Provider, rotates: bool) {
        self.shared.grants.with(|book| book.set_rotation(provider, rotates));
    }

    /// Every token request is `invalid_client`, whoever asks.
    pub fn reject_client(&self, rejects: bool) {
        self.shared.grants.with(|book| book.rejects_clients = rejects);
    }

    /// All access tokens are expired as of now; refresh tokens go on working.
    pub fn expire_access(&self, provider: Provider) {
        let now = self.shared.clock.now();
        self.shared.grants.with(|book| book.expire_access(provider, now));
    }

    /// The account that gives consent now takes it back: none of its tokens works any more.
    pub fn revoke(&self, provider: Provider) {
        self.shared.grants.with(|book| {
            let account = book.account(provider);
            book.revoke(provider, &account);
        });
    }

    /// A pair without the way through a browser.
    pub fn issue(&self, provider: Provider) -> Issued {
        let now = self.shared.clock.now();
        self.shared.grants.with(|book| {
            let account = book.account(provider);
            book.issue(provider, &account, "", true, now)
        })
    }

    /// A bearer that does not expire, as an account makes for itself in HubSpot's settings.
    pub fn hubspot_private_app_token(&self) -> &'static str {
        PRIVATE_APP_TOKEN
    }

    /// Of all accounts together, with the requests that named none.
    pub fn counts(&self, provider: Provider) -> Counts {
        self.shared.grants.with(|book| book.counts(provider, None))
    }

    /// What is known to concern this account: not requests as such, nor refusals of a client.
    pub fn counts_of(&self, provider: Provider, account: &str) -> Counts {
        self.shared.grants.with(|book| book.counts(provider, Some(account)))
    }
}
