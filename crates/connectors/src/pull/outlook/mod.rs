//! Reads Microsoft 365 and Outlook.com mailboxes by Microsoft Graph. A full pass goes through every folder that is read to the link from which
//! its changes follow; a delta follows these links. Graph tells of changes by a subscription.

mod by_id;
mod census;
mod complaint;
mod files;
mod folders;
mod graph;
mod guide;
mod map;
mod opened;
mod push;
mod round;
mod spec;
mod wire;

use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use self::graph::{BATCH, Graph, IMMUTABLE, lasting};
pub use self::spec::SPEC;
use self::wire::Me;
use super::http::ApiAnswer;
use super::mailbox::{Address, Census, Mailbox, Subscription};
use super::{Account, Connector, Failed, Found, Identity, Page, PullError, record};

/// The files of one look-up. Letters beyond that are looked up another time.
const FIND_MAX_BYTES: u64 = 128 * 1024 * 1024;

pub(super) struct Outlook {
    graph: Graph,
    /// Messages that a first sync takes.
    first_max: usize,
}

impl Outlook {
    fn new(graph: Graph, first_max: usize) -> Self {
        Self { graph, first_max }
    }

    async fn found(&self, account: &Account<'_>, external_ids: &[String]) -> Result<Found, PullError> {
        let ids = external_ids.iter().filter_map(|id| id.strip_prefix(map::OBJECT)?.strip_prefix(':'));
        let mut ids: Vec<String> = ids.filter(|id| record::is_plain_id(id)).map(str::to_owned).collect();
        let (mut items, mut failed, mut n_bytes) = (Vec::new(), Vec::new(), 0);
        if ids.is_empty() {
            return Ok((items, failed));
        }
        let mut folders = folders::read(&self.graph, account).await?;
        while !ids.is_empty() {
            if n_bytes > FIND_MAX_BYTES {
                let reason = "its files were too much for one time: read it again";
                let later = |id: &String| Failed {
                    external_id: map::external_id(id),
                    reason: reason.to_owned(),
                    payload: Value::Null,
                };
                failed.extend(ids.iter().map(later));
                break;
            }
            let read = by_id::read(&self.graph, account, &mut folders, &ids).await?;
            failed.extend(read.failed);
            let completed = files::complete(&self.graph, account, read.messages).await?;
            let files = completed.messages.iter().flat_map(|message| &message.letter.files);
            n_bytes += files.filter_map(|file| Some(file.content.as_ref()?.len() as u64)).sum::<u64>();
            let found = completed.messages.into_iter().map(|message| message.item(account.places));
            items.extend(found.filter(|item| !item.raw.is_deleted));
            ids = completed.left;
        }
        Ok((items, failed))
    }
}

impl Connector for Outlook {
    /// The files of letters come and go with them.
    fn document_types(&self) -> &'static [&'static str] {
        &[map::MESSAGE]
    }

    /// Graph has no link to the changes from now on: a folder has to be gone through to its end. A full pass does that anyway, and its last
    /// page has the cursor. A delta from this one reads everything.
    fn cursor<'a>(&'a self, _: &'a Account<'a>) -> BoxFuture<'a, Result<Option<Value>, PullError>> {
        Box::pin(async { Ok(Some(json!(round::Cursor::default()))) })
    }

    fn full<'a>(
        &'a self,
        account: &'a Account<'a>,
        place: Option<&'a Value>,
        is_first: bool,
    ) -> BoxFuture<'a, Result<Page, PullError>> {
        let first_max = is_first.then_some(self.first_max);
        Box::pin(round::page(&self.graph, account, None, place, first_max))
    }

    fn delta<'a>(
        &'a self,
        account: &'a Account<'a>,
        cursor: &'a Value,
        place: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Page, PullError>> {
        Box::pin(round::page(&self.graph, account, Some(cursor), place, None))
    }

    fn find_max(&self) -> usize {
        BATCH
    }

    fn find<'a>(
        &'a self,
        account: &'a Account<'a>,
        external_ids: &'a [String],
    ) -> BoxFuture<'a, Result<Found, PullError>> {
        Box::pin(self.found(account, external_ids))
    }

    fn identify<'a>(&'a self, account: &'a Account<'a>) -> BoxFuture<'a, Result<Identity, PullError>> {
        Box::pin(async move {
            let path = "/me?$select=id,mail,userPrincipalName";
            let answer = self.graph.get(account, path, IMMUTABLE).await;
            let answer: ApiAnswer<Me> = answer.map_err(|refused| lasting(&self.graph, refused))?;
            let Me { id, mail, user_principal_name } = answer.body;
            let said = |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
            let address = said(mail).or_else(|| said(user_principal_name));
            let Some(account) = address.or_else(|| said(id)) else {
                let what = format!("{} did not say whose mailbox this is", self.graph.who());
                return Err(PullError::Unreadable { what, raw: String::new() });
            };
            Ok(Identity { account: account.to_lowercase(), name: account })
        })
    }
}

impl Mailbox for Outlook {
    fn subscribe<'a>(
        &'a self,
        account: &'a Account<'a>,
        address: &'a Address<'a>,
    ) -> BoxFuture<'a, Result<Subscription, PullError>> {
        Box::pin(push::subscribe(&self.graph, account, address))
    }

    fn renew<'a>(
        &'a self,
        account: &'a Account<'a>,
        subscription: &'a Subscription,
    ) -> BoxFuture<'a, Result<Option<Subscription>, PullError>> {
        Box::pin(push::renew(&self.graph, account, subscription))
    }

    fn unsubscribe<'a>(
        &'a self,
        account: &'a Account<'a>,
        subscription: &'a Subscription,
    ) -> BoxFuture<'a, Result<(), PullError>> {
        Box::pin(push::unsubscribe(&self.graph, account, subscription))
    }

    fn census<'a>(
        &'a self,
        account: &'a Account<'a>,
        from: DateTime<Utc>,
        to: DateTime<Utc>,
        place: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Census, PullError>> {
        Box::pin(census::page(&self.graph, account, from, to, place))
    }
}

#[cfg(test)]
mod tests;
