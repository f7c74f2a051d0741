//! The offers of a mailbox beyond those of every account: its provider tells of changes, and counts what lies in it. A mailbox is read page by page
//! like any other account ([`Connector`]); its items have a letter ([`super::Item::letter`]).

use std::sync::Arc;

use chrono::{DateTime, Utc};
use domain::Secret;
use domain::mail::Place;
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::settings::{Setting, Settings};
use super::{Account, Connector, PullError};
use crate::Http;
use crate::oidc::Verifier;

/// The part of a provider's description that only mailboxes have.
pub struct MailboxSpec {
    /// The type of a letter's document, and that of a file's in a letter. Both are among the document types.
    pub message_type: &'static str,
    pub attachment_type: &'static str,
    /// Makes what [`super::ProviderSpec::rest`] makes, with a mailbox's further offers.
    pub rest: fn(&Http, &Settings) -> Arc<dyn Mailbox>,
    /// The last part of the address at which we hear of changes: `/webhooks/<hook>`.
    pub hook: &'static str,
    pub push: Push,
    /// Reads what is posted to the hook.
    pub notices: fn(&[u8]) -> Result<Vec<Notice>, Unread>,
}

/// The way in which a provider tells of changes, and proves that it is the one who tells.
pub enum Push {
    /// Each mailbox has a subscription with an address of ours and a secret, which comes back with every notice. Before it is made, the provider
    /// asks the address to repeat `validationToken`.
    Subscription,
    /// All mailboxes tell one topic, which posts to our address with a token that an issuer has signed, or with one that we chose.
    Topic(Topic),
}

/// A topic that all mailboxes of an app tell, as Google's Pub/Sub has them. Its settings; nothing is accepted while neither `audience` nor
/// `token` is set.
pub struct Topic {
    /// The topic that a mailbox is asked to tell. None: mailboxes are polled.
    pub topic: &'static Setting,
    /// The subscription that every post has to name.
    pub subscription: &'static Setting,
    /// The word that every post has to bring, where posts are not signed.
    pub token: &'static Setting,
    /// The audience of a signed post.
    pub audience: &'static Setting,
    /// The account that signs, as its e-mail address.
    pub signer: &'static Setting,
    /// The address of the signers' public keys.
    pub keys_url: &'static Setting,
    /// The issuers of a signed post's token, as the token spells them.
    pub issuers: &'static [&'static str],
}

/// The proof that a post to a topic's hook has to bring.
pub enum Proof {
    /// A token that an issuer has signed.
    Signed(Verifier),
    /// The word that we chose.
    Word(Secret),
    /// Nothing is accepted: the settings ask for no proof, or for one that would be none. The reason, in words.
    Closed(&'static str),
}

impl Topic {
    /// The proof that the settings ask for. A signed one goes before a word; it is made once, since it keeps the issuer's keys.
    pub fn proof(&self, http: &Http, settings: &Settings) -> Proof {
        let said = |setting| settings.get(setting).filter(|value| !value.is_empty());
        match (said(self.audience), said(self.signer), said(self.token)) {
            (Some(audience), Some(signer), _) => {
                let keys_url = settings.text(self.keys_url);
                Proof::Signed(Verifier::new(http, keys_url, self.issuers, audience, signer))
            }
            // Any account at the issuer can have a token for any audience.
            (Some(_), None, _) => Proof::Closed("an audience is set, but not the account that signs"),
            (None, _, Some(word)) => Proof::Word(Secret::new(word)),
            (None, _, None) => Proof::Closed("neither an audience nor a token is set"),
        }
    }
}

/// A body that is no notice of the provider's.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct Unread(pub &'static str);

/// One notice: a mailbox has changed, or its subscription has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub of: Of,
    /// The secret of the subscription, as the notice repeats it.
    pub client_state: Option<Secret>,
    /// For a topic: the topic's subscription, as the post names it.
    pub via: Option<String>,
    pub tells: Tells,
}

/// The name by which a notice calls a mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Of {
    Subscription(String),
    /// The account, such as an e-mail address, in lower case.
    Account(String),
}

/// The news of a notice. None of it says what changed: the next delta does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tells {
    Changed,
    /// Notices were lost.
    Missed,
    /// The subscription wants to be renewed, with a fresh token.
    Reauthorize,
    /// The subscription is gone: another one has to be made, and everything since then read.
    Removed,
}

/// Where a provider is to tell of changes.
pub struct Address<'a> {
    /// Our own address, such as `https://hear.example.com/webhooks/outlook`. A topic needs none.
    pub url: &'a str,
    /// Stored before the provider is asked: the first post may come before its answer.
    pub client_state: &'a Secret,
}

/// A mailbox's subscription, as its provider has made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// None for a topic, which has no names of single mailboxes.
    pub id: Option<String>,
    pub expires_at: DateTime<Utc>,
}

/// One letter, as the provider counts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// As in [`super::RawItem::external_id`].
    pub external_id: String,
    pub received_at: Option<DateTime<Utc>>,
    pub place: Place,
}

/// Some of the letters that a provider counts, and where to go on.
#[derive(Clone, Debug, PartialEq)]
pub struct Census {
    pub letters: Vec<Counted>,
    pub next: Value,
    pub more: bool,
}

/// A mailbox at its provider.
pub trait Mailbox: Connector {
    /// Asks to be told of changes. A provider that says that there is such a subscription already gives that one, renewed.
    fn subscribe<'a>(
        &'a self,
        account: &'a Account<'a>,
        address: &'a Address<'a>,
    ) -> BoxFuture<'a, Result<Subscription, PullError>>;

    /// Asks to be told for longer. None: the provider no longer has it, so another one is needed, and a delta.
    fn renew<'a>(
        &'a self,
        account: &'a Account<'a>,
        subscription: &'a Subscription,
    ) -> BoxFuture<'a, Result<Option<Subscription>, PullError>>;

    /// Asks not to be told any more. One that is gone already is no error.
    fn unsubscribe<'a>(
        &'a self,
        account: &'a Account<'a>,
        subscription: &'a Subscription,
    ) -> BoxFuture<'a, Result<(), PullError>>;

    /// Lists the letters in [`Account::places`] that came in from `from` until before `to`, by id alone, cheaply. `place` is the `next` of the
    /// page before.
    fn census<'a>(
        &'a self,
        account: &'a Account<'a>,
        from: DateTime<Utc>,
        to: DateTime<Utc>,
        place: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Census, PullError>>;
}
