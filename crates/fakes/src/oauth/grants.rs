//! The tokens and their owners. Refresh tokens that rotate are watched for reuse: a spent token that comes back means that two clients hold
//! it, and ends every grant of the account.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use crate::lock;
use crate::provider::Provider;

const CODE_SECS: i64 = 60;

/// The account that a token speaks for.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub provider: Provider,
    pub account: String,
    pub is_valid: bool,
    pub scope: String,
    pub expires_in: i64,
}

/// Counts of what the token endpoint has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub token_requests: u64,
    /// Codes exchanged for tokens.
    pub exchanges: u64,
    /// Refreshes that were accepted.
    pub refreshes: u64,
    pub invalid_grants: u64,
    /// Refusals of a spent refresh token, which ended all grants of the account.
    pub reuses: u64,
    pub invalid_clients: u64,
}

/// A pair of tokens as the token endpoint returns it.
#[derive(Clone, Debug)]
pub struct Issued {
    pub account: String,
    pub access_token: String,
    /// Absent where the provider sends none, as some do at a refresh.
    pub refresh_token: Option<String>,
    pub expires_in: i64,
    pub scope: String,
}

/// A consent that was given and not yet exchanged.
pub(crate) struct Code {
    pub provider: Provider,
    pub account: String,
    pub redirect_uri: String,
    pub challenge: Option<String>,
    pub scope: String,
    pub with_refresh: bool,
    pub given_at: DateTime<Utc>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InvalidGrant;

#[derive(Default)]
pub(crate) struct Grants(Mutex<Book>);

#[derive(Default)]
pub(crate) struct Book {
    codes: HashMap<String, Code>,
    access: HashMap<String, Access>,
    refresh: HashMap<String, Refresh>,
    counts: BTreeMap<(Provider, String), Counts>,
    accounts: HashMap<Provider, String>,
    token_secs: HashMap<Provider, i64>,
    rotations: HashMap<Provider, bool>,
    pub redirects: Vec<String>,
    pub denies_next: bool,
    pub rejects_clients: bool,
}

struct Access {
    provider: Provider,
    account: String,
    scope: String,
    /// `None` for a static key, which does not expire.
    expires_at: Option<DateTime<Utc>>,
    is_revoked: bool,
}

struct Refresh {
    provider: Provider,
    account: String,
    scope: String,
    is_spent: bool,
    is_revoked: bool,
}

impl Grants {
    pub fn with<T>(&self, act: impl FnOnce(&mut Book) -> T) -> T {
        act(&mut lock(&self.0))
    }

    pub fn caller(&self, token: &str, now: DateTime<Utc>) -> Option<Caller> {
        let book = lock(&self.0);
        let access = book.access.get(token)?;
        let expires_in = access.expires_at.map_or(i64::MAX, |at| (at - now).num_seconds());
        let is_expired = access.expires_at.is_some_and(|at| at <= now);
        Some(Caller {
            provider: access.provider,
            account: access.account.clone(),
            is_valid: !access.is_revoked && !is_expired,
            scope: access.scope.clone(),
            expires_in,
        })
    }
}

impl Book {
    pub fn account(&self, provider: Provider) -> String {
        self.accounts.get(&provider).cloned().unwrap_or_else(|| provider.default_account.to_owned())
    }

    pub fn set_account(&mut self, provider: Provider, account: &str) {
        self.accounts.insert(provider, account.to_owned());
    }

    pub fn set_token_secs(&mut self, provider: Provider, secs: i64) {
        self.token_secs.insert(provider, secs);
    }

    pub fn set_rotation(&mut self, provider: Provider, rotates: bool) {
        self.rotations.insert(provider, rotates);
    }

    pub fn count(&mut self, provider: Provider, account: &str) -> &mut Counts {
        self.counts.entry((provider, account.to_owned())).or_default()
    }

    /// The counts of one account, or of all.
    pub fn counts(&self, provider: Provider, account: Option<&str>) -> Counts {
        let mut sum = Counts::default();
        let of_these = |(known, name): &(Provider, String)| *known == provider && account.is_none_or(|one| one == name);
        for counts in self.counts.iter().filter(|(key, _)| of_these(key)).map(|(_, counts)| counts) {
            sum.token_requests += counts.token_requests;
            sum.exchanges += counts.exchanges;
            sum.refreshes += counts.refreshes;
            sum.invalid_grants += counts.invalid_grants;
            sum.reuses += counts.reuses;
            sum.invalid_clients += counts.invalid_clients;
        }
        sum
    }

    pub fn has_grant(&self, provider: Provider, account: &str) -> bool {
        let is_live = |refresh: &Refresh| !refresh.is_revoked && !refresh.is_spent;
        self.refresh.values().any(|r| r.provider == provider && r.account == account && is_live(r))
    }

    /// The provider of a code or a refresh token, if its tokens come from this one's address; else this one.
    pub fn meant(&self, asked: Provider, code: &str, refresh_token: &str) -> Provider {
        let of_code = self.codes.get(code).map(|code| code.provider);
        let known = of_code.or_else(|| self.refresh.get(refresh_token).map(|refresh| refresh.provider));
        known.filter(|provider| asked.shares_with(provider).is_some()).unwrap_or(asked)
    }

    pub fn give_code(&mut self, code: Code) -> String {
        let text = format!("{}-code-{}", code.provider.name, Uuid::new_v4().simple());
        self.codes.insert(text.clone(), code);
        text
    }

    /// Takes a code, which is good for one exchange even if that fails.
    pub fn take_code(&mut self, provider: Provider, code: &str, now: DateTime<Utc>) -> Result<Code, InvalidGrant> {
        let code = self.codes.remove(code).filter(|code| code.provider == provider).ok_or(InvalidGrant)?;
        let is_old = now - code.given_at > TimeDelta::seconds(CODE_SECS);
        if is_old { Err(InvalidGrant) } else { Ok(code) }
    }

    pub fn issue(
        &mut self,
        provider: Provider,
        account: &str,
        scope: &str,
        with_refresh: bool,
        now: DateTime<Utc>,
    ) -> Issued {
        let refresh_token = with_refresh.then(|| self.add_refresh(provider, account, scope));
        self.add_access(provider, account, scope, refresh_token, now)
    }

    /// Issues a new access token and, if they rotate, a new refresh token.
    pub fn refresh(&mut self, provider: Provider, token: &str, now: DateTime<Utc>) -> Result<Issued, InvalidGrant> {
        let known = self.refresh.get_mut(token).filter(|refresh| refresh.provider == provider);
        let Some(refresh) = known else {
            self.count(provider, "").invalid_grants += 1;
            return Err(InvalidGrant);
        };
        let (account, scope) = (refresh.account.clone(), refresh.scope.clone());
        if refresh.is_spent || refresh.is_revoked {
            let is_reuse = refresh.is_spent && !refresh.is_revoked;
            if is_reuse {
                self.revoke(provider, &account);
            }
            let counts = self.count(provider, &account);
            counts.invalid_grants += 1;
            counts.reuses += u64::from(is_reuse);
            return Err(InvalidGrant);
        }
        let rotates = self.rotations.get(&provider).copied().unwrap_or(provider.oauth.rotates);
        refresh.is_spent = rotates;
        let sent = match rotates {
            true => Some(self.add_refresh(provider, &account, &scope)),
            false => provider.oauth.repeats_refresh.then(|| token.to_owned()),
        };
        self.count(provider, &account).refreshes += 1;
        Ok(self.add_access(provider, &account, &scope, sent, now))
    }

    /// Ends every token of the account.
    pub fn revoke(&mut self, provider: Provider, account: &str) {
        let access = self.access.values_mut().filter(|access| access.provider == provider && access.account == account);
        access.for_each(|access| access.is_revoked = true);
        let refresh =
            self.refresh.values_mut().filter(|refresh| refresh.provider == provider && refresh.account == account);
        refresh.for_each(|refresh| refresh.is_revoked = true);
    }

    pub fn expire_access(&mut self, provider: Provider, now: DateTime<Utc>) {
        let access =
            self.access.values_mut().filter(|access| access.provider == provider && access.expires_at.is_some());
        access.for_each(|access| access.expires_at = Some(now));
    }

    /// Issues a static key, as an account creates it in its settings.
    pub fn add_static(&mut self, provider: Provider, token: &str) {
        let account = provider.default_account.to_owned();
        let access = Access { provider, account, scope: String::new(), expires_at: None, is_revoked: false };
        self.access.insert(token.to_owned(), access);
    }

    fn add_refresh(&mut self, provider: Provider, account: &str, scope: &str) -> String {
        let token = format!("{}-refresh-{}", provider.name, Uuid::new_v4().simple());
        let (account, scope) = (account.to_owned(), scope.to_owned());
        self.refresh.insert(token.clone(), Refresh { provider, account, scope, is_spent: false, is_revoked: false });
        token
    }

    fn add_access(
        &mut self,
        provider: Provider,
        account: &str,
        scope: &str,
        refresh_token: Option<String>,
        now: DateTime<Utc>,
    ) -> Issued {
        let expires_in = self.token_secs.get(&provider).copied().unwrap_or(provider.oauth.token_secs);
        let access_token = format!("{}-access-{}", provider.name, Uuid::new_v4().simple());
        let (account, scope) = (account.to_owned(), scope.to_owned());
        let expires_at = Some(now + TimeDelta::seconds(expires_in));
        let access = Access { provider, account: account.clone(), scope: scope.clone(), expires_at, is_revoked: false };
        self.access.insert(access_token.clone(), access);
        Issued { account, access_token, refresh_token, expires_in, scope }
    }
}
