//! A mailbox's watch: the promise to tell our topic of every change. It ends after seven days unless it is asked for again.

use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::wire::Watch;
use super::{Gmail, USER};
use crate::pull::http::{Bounds, Refused};
use crate::pull::mailbox::{Address, Census, Mailbox, Subscription};
use crate::pull::{Account, PullError, record};

const WATCH: u32 = 100;
const STOP: u32 = 50;
/// An answer without a body, or a refusal.
const EMPTY: Bounds =
    Bounds { total: std::time::Duration::from_secs(60), idle: std::time::Duration::from_secs(20), bytes: 64 * 1024 };

impl Gmail {
    async fn watch(&self, account: &Account<'_>) -> Result<Subscription, PullError> {
        let Some(topic) = &self.topic else {
            return Err(PullError::Forbidden { who: self.api.who(), code: "no_topic".into() });
        };
        let watched = match self.ask_watch(account, topic).await {
            // One topic for each mailbox and project: another one that is told already has to be stopped first.
            Err(Refused::Lasting { status: 400, .. }) => {
                self.stop(account).await?;
                self.ask_watch(account, topic).await
            }
            watched => watched,
        };
        let expiration = Value::String(watched?.expiration);
        let Some(expires_at) = record::time(Some(&expiration)) else {
            let what = format!("{} did not say until when it tells of changes", self.api.who());
            return Err(PullError::Unreadable { what, raw: String::new() });
        };
        Ok(Subscription { id: None, expires_at })
    }

    async fn ask_watch(&self, account: &Account<'_>, topic: &str) -> Result<Watch, Refused> {
        self.turn(account, WATCH).await?;
        // Without labels: every change is told of, moves among them.
        let body = json!({ "topicName": topic });
        Ok(self.api.post(account, &[], &format!("{USER}/watch"), &body).await?.body)
    }

    async fn stop(&self, account: &Account<'_>) -> Result<(), PullError> {
        self.turn(account, STOP).await?;
        let body = ("application/json", "{}".to_owned());
        match self.api.send_as(account, &[], &format!("{USER}/stop"), body, EMPTY).await {
            Ok(_) | Err(Refused::Lasting { status: 404, .. }) => Ok(()),
            Err(refused) => Err(refused.into()),
        }
    }
}

impl Mailbox for Gmail {
    /// A topic needs no address of ours: its push subscription has it.
    fn subscribe<'a>(
        &'a self,
        account: &'a Account<'a>,
        _: &'a Address<'a>,
    ) -> BoxFuture<'a, Result<Subscription, PullError>> {
        Box::pin(self.watch(account))
    }

    /// Asking again is renewing.
    fn renew<'a>(
        &'a self,
        account: &'a Account<'a>,
        _: &'a Subscription,
    ) -> BoxFuture<'a, Result<Option<Subscription>, PullError>> {
        Box::pin(async move { self.watch(account).await.map(Some) })
    }

    fn unsubscribe<'a>(
        &'a self,
        account: &'a Account<'a>,
        _: &'a Subscription,
    ) -> BoxFuture<'a, Result<(), PullError>> {
        Box::pin(self.stop(account))
    }

    fn census<'a>(
        &'a self,
        account: &'a Account<'a>,
        from: DateTime<Utc>,
        to: DateTime<Utc>,
        place: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Census, PullError>> {
        Box::pin(self.count(account, from, to, place))
    }
}
