//! Asks the provider: with a good token, at the account's pace, and without a session of the database.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use connectors::pull::mailbox::{Counted as Letter, Mailbox, MailboxSpec};
use connectors::pull::{Account, PullError};
use domain::mail::Place;
use domain::mail::check::Counted;
use domain::{Fault, SourceId, TenantId};
use store::gates;
use store::sources::Source;

use super::Found;
use super::trouble::Trouble;
use crate::Env;
use crate::mail::{check, settings};
use crate::pull::tokens::{self, Token};
use crate::pull::{Paced, Provider};

/// A day with more pages is not counted: a mailbox has no such days.
const MOST_PAGES: usize = 2_000;

/// A mailbox, as its provider is asked about it.
pub(super) struct AtProvider {
    pub tenant_id: TenantId,
    pub source_id: SourceId,
    pub provider: Provider,
    spec: &'static MailboxSpec,
    account: String,
    mailbox: Arc<dyn Mailbox>,
}

impl AtProvider {
    /// An error says in words why it cannot be counted.
    pub fn new(env: &Env, tenant_id: TenantId, source: &Source) -> Result<Self, String> {
        let provider = env.providers.named(&source.provider).map_err(|unknown| unknown.to_string())?;
        let spec = provider.mailbox.as_ref().ok_or("it is no mailbox")?;
        let mailbox = check::at_provider(env, provider, source).ok_or(check::NO_PROVIDER)?;
        let account = source.account.clone().unwrap_or_default();
        Ok(Self { tenant_id, source_id: SourceId(source.id), provider, spec, account, mailbox })
    }

    pub fn message_type(&self) -> &'static str {
        self.spec.message_type
    }

    /// The remaining time in which it is not asked, because it failed or asked us to wait.
    pub async fn left_alone(&self, env: &Env) -> Result<Option<Duration>, Trouble> {
        let [breaker, account] = self.gates();
        let mut conn = env.db.acquire().await?;
        let closed = gates::closed(&mut conn, env.clock.sql(), &[&breaker, &account]).await?;
        Ok(closed
            .first()
            .map(|closed| Duration::try_from_secs_f64(closed.secs).unwrap_or_default().max(Duration::from_secs(1))))
    }

    pub fn gates(&self) -> [String; 2] {
        crate::pull::gates(self.tenant_id, self.provider, self.source_id)
    }

    /// The letters in the places that are read which came in from `from` until before `to`.
    pub async fn count(&self, env: &Env, from: DateTime<Utc>, to: DateTime<Utc>) -> Result<Counted, Trouble> {
        let places = places(env, self.tenant_id, self.source_id).await?;
        let pace = self.pace(env);
        let (mut all, mut place, mut token) = (BTreeMap::new(), None, None::<Token>);
        for _ in 0..MOST_PAGES {
            let good = match token.take().filter(Token::is_good) {
                Some(token) => token,
                None => self.token(env).await?,
            };
            let account = self.account(&good, &pace, &places);
            let asked = self.mailbox.census(&account, from, to, place.as_ref()).await;
            let page = asked.map_err(|error| Trouble::Pull(error, good.clone()))?;
            // Providers round the ends of a day in their own ways.
            let is_of_day = |letter: &Letter| letter.received_at.is_none_or(|at| from <= at && at < to);
            let is_read = |letter: &Letter| places.contains(&letter.place);
            let letters = page.letters.into_iter().filter(|letter| is_of_day(letter) && is_read(letter));
            for letter in letters {
                // Met twice, it keeps the time that was told.
                let came_in = all.entry(letter.external_id).or_insert(letter.received_at);
                *came_in = came_in.or(letter.received_at);
            }
            if !page.more {
                return Ok(Counted { letters: all, until: to });
            }
            (place, token) = (Some(page.next), Some(good));
        }
        Err(Fault::Refused { what: format!("{} has too many letters on one day", self.provider.label) }.into())
    }

    /// Those of these letters that the provider has, in the places that are read.
    pub async fn find(&self, env: &Env, external_ids: &[String]) -> Result<Found, Trouble> {
        let places = places(env, self.tenant_id, self.source_id).await?;
        let pace = self.pace(env);
        let mut there = Found::new();
        for names in external_ids.chunks(self.mailbox.find_max().max(1)) {
            let token = self.token(env).await?;
            let found = self.mailbox.find(&self.account(&token, &pace, &places), names).await;
            let (items, failed) = found.map_err(|error| Trouble::Pull(error, token.clone()))?;
            let items = items.into_iter().filter(|item| !item.raw.is_deleted);
            there.extend(items.map(|item| (item.raw.external_id, item.raw.source_created_at)));
            there.extend(failed.into_iter().map(|failed| (failed.external_id, None)));
        }
        Ok(there)
    }

    async fn token(&self, env: &Env) -> Result<Token, Trouble> {
        tokens::token(env, self.tenant_id, self.source_id, self.provider).await.map_err(Trouble::Token)
    }

    fn pace(&self, env: &Env) -> Paced {
        Paced::new(&env.db, self.provider, self.source_id, env.config.pull_rate_factor)
    }

    fn account<'a>(&'a self, token: &'a Token, pace: &'a Paced, places: &'a [Place]) -> Account<'a> {
        Account { token: &token.access, account: &self.account, pace, places }
    }
}

/// The places of a mailbox that are read.
async fn places(env: &Env, tenant_id: TenantId, source_id: SourceId) -> Result<Vec<Place>, Trouble> {
    Ok(env.db.session(async |conn| settings::places(conn, tenant_id, source_id).await).await?)
}

/// Whether the provider may answer better a little later.
pub(super) fn is_passing(error: &PullError) -> bool {
    matches!(error, PullError::Passing(_) | PullError::Unreadable { .. } | PullError::CursorLost(_))
}
