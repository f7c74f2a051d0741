//! Asks the provider: with a good token, at the account's pace, and a few pages ahead of those that are written.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use anyhow::anyhow;
use connectors::pull::{Account, Connector, Failed, Item, Page, PullError, is_named};
use domain::mail::Place;
use domain::{Fault, JobKind, Secret, SourceId, TenantId, Transport};
use futures_util::FutureExt as _;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::{Checkpoint, Trouble};
use crate::Env;
use crate::pull::tokens::{self, Token};
use crate::pull::{Paced, Provider};

/// Pages fetched ahead.
const AHEAD: usize = 4;
/// The same of a mailbox, whose pages have the bytes of files.
const AHEAD_OF_MAIL: usize = 1;
/// Files that are written together. A page alone may have more.
const MOST_FILE_BYTES: usize = 32 << 20;

/// One source, as its provider is asked about it.
#[derive(Clone)]
pub(super) struct Reader {
    pub env: Env,
    pub tenant_id: TenantId,
    pub source_id: SourceId,
    pub provider: Provider,
    pub transport: Transport,
    pub account: String,
    pub connector: Arc<dyn Connector>,
    /// The places of a mailbox that are read.
    pub places: Vec<Place>,
}

impl Reader {
    async fn token(&self) -> Result<Token, Trouble> {
        if self.transport == Transport::Fixtures || self.env.providers.uses_fixtures() {
            return Ok(Token { access: Secret::new("fixtures"), version: 0, good_until: None });
        }
        tokens::token(&self.env, self.tenant_id, self.source_id, self.provider).await.map_err(Trouble::Token)
    }

    fn pace(&self) -> Paced {
        Paced::new(&self.env.db, self.provider, self.source_id, self.env.config.pull_rate_factor)
    }

    pub(super) fn account<'a>(&'a self, token: &'a Token, pace: &'a Paced) -> Account<'a> {
        Account { token: &token.access, account: &self.account, pace, places: &self.places }
    }

    /// From where a delta that starts now would begin.
    pub async fn cursor(&self) -> Result<Option<Value>, Trouble> {
        let (token, pace) = (self.token().await?, self.pace());
        self.connector.cursor(&self.account(&token, &pace)).await.map_err(|error| Trouble::Pull(error, token.clone()))
    }

    /// These records as the provider has them, and the names of those it has not.
    pub async fn find(&self, names: &[String]) -> Result<(Vec<Item>, Vec<Failed>, Vec<String>), Trouble> {
        let (token, pace) = (self.token().await?, self.pace());
        let found = self.connector.find(&self.account(&token, &pace), names).await;
        let (mut items, mut failed) = found.map_err(|error| Trouble::Pull(error, token.clone()))?;
        self.bring(&mut items, &mut failed, (&token, &pace)).await?;
        let gone = gone(names, &items, &failed);
        Ok((items, failed, gone))
    }

    /// Fetches pages in a task of its own. It ends with the last page, with the first trouble, or when nobody wants more.
    pub fn pages(&self, kind: JobKind, checkpoint: &Checkpoint) -> Pages {
        let ahead = if self.provider.mailbox.is_some() { AHEAD_OF_MAIL } else { AHEAD };
        let (send, fetched) = mpsc::channel(ahead);
        let fetching = AssertUnwindSafe(self.clone().run(kind, checkpoint.clone(), send.clone())).catch_unwind();
        let task = tokio::spawn(async move {
            // Or nobody would hear of it, and the same would be asked for ever.
            if fetching.await.is_err() {
                let panicked = Fault::Transient(anyhow!("what fetches pages panicked"));
                let _ = send.send(Err(panicked.into())).await;
            }
        });
        Pages { fetched, task: task.abort_handle() }
    }

    async fn run(self, kind: JobKind, checkpoint: Checkpoint, send: mpsc::Sender<Result<Page, Trouble>>) {
        let pace = self.pace();
        let mut place = checkpoint.place.clone();
        let mut token: Option<Token> = None;
        loop {
            let good = match token.take().filter(Token::is_good) {
                Some(token) => token,
                None => match self.token().await {
                    Ok(token) => token,
                    Err(trouble) => return drop(send.send(Err(trouble)).await),
                },
            };
            let asked = self.page(kind, &checkpoint, place.as_ref(), &self.account(&good, &pace)).await;
            let mut page = match asked {
                Ok(page) => page,
                Err(error) => return drop(send.send(Err(Trouble::Pull(error, good))).await),
            };
            if let Err(trouble) = self.bring(&mut page.items, &mut page.failed, (&good, &pace)).await {
                return drop(send.send(Err(trouble)).await);
            }
            let more = page.more;
            place = Some(page.next.clone());
            if send.send(Ok(page)).await.is_err() || !more {
                return;
            }
            token = Some(good);
        }
    }

    async fn page(
        &self,
        kind: JobKind,
        checkpoint: &Checkpoint,
        place: Option<&Value>,
        account: &Account<'_>,
    ) -> Result<Page, PullError> {
        if kind == JobKind::Full {
            return self.connector.full(account, place, checkpoint.is_first).await;
        }
        self.connector.delta(account, checkpoint.cursor.as_ref().unwrap_or(&Value::Null), place).await
    }
}

/// The names that the provider does not have. An unnamed record may be any of its kind, so none of that kind is gone then;
/// names without an id were never asked for.
fn gone(names: &[String], items: &[Item], failed: &[Failed]) -> Vec<String> {
    let kind = |name: &str| name.split(':').next().unwrap_or_default().to_owned();
    let unclear: Vec<String> =
        failed.iter().map(|f| f.external_id.as_str()).filter(|name| !is_named(name)).map(kind).collect();
    let is_there = |name: &str| {
        items.iter().any(|item| item.raw.external_id == name) || failed.iter().any(|f| f.external_id == name)
    };
    let is_gone = |name: &&String| is_named(name) && !is_there(name) && !unclear.contains(&kind(name));
    names.iter().filter(is_gone).cloned().collect()
}

/// The bytes of files that a page holds in memory.
fn file_bytes(page: &Page) -> usize {
    let letters = page.items.iter().filter_map(|item| item.letter.as_deref());
    letters.flat_map(|letter| &letter.files).filter_map(|file| file.content.as_ref()).map(bytes::Bytes::len).sum()
}

/// Pages on their way. Dropped, nobody fetches more.
pub(super) struct Pages {
    fetched: mpsc::Receiver<Result<Page, Trouble>>,
    task: AbortHandle,
}

impl Pages {
    /// Returns the pages that are fetched, up to so many records and [`MOST_FILE_BYTES`], and the error after them. Waits for the first page; none
    /// at the end.
    pub async fn next(&mut self, most_items: usize) -> Option<(Vec<Page>, Option<Trouble>)> {
        let (mut pages, mut n_items, mut n_bytes) = (Vec::new(), 0, 0);
        let mut next = Some(self.fetched.recv().await?);
        while let Some(fetched) = next.take() {
            match fetched {
                Ok(page) => {
                    n_items += page.items.len();
                    n_bytes += file_bytes(&page);
                    pages.push(page);
                }
                Err(trouble) => return Some((pages, Some(trouble))),
            }
            if n_items < most_items && n_bytes < MOST_FILE_BYTES {
                next = self.fetched.try_recv().ok();
            }
        }
        Some((pages, None))
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests {
    use connectors::pull::{RawItem, more};
    use domain::mail::{Attachment, Letter};

    use super::*;

    fn page(file: &bytes::Bytes) -> Page {
        let file = Attachment {
            part: "2".into(),
            name: None,
            media_type: "application/pdf".into(),
            size_bytes: file.len() as u64,
            content_id: None,
            is_inline: false,
            content: Some(file.clone()),
            left_out: None,
        };
        let raw = RawItem {
            external_id: "message:1".into(),
            document_type: "gmail.message",
            payload: Value::Null,
            source_created_at: None,
            source_updated_at: None,
            is_deleted: false,
        };
        let letter = Letter { files: vec![file], ..Letter::default() };
        let letter = Some(Box::new(letter));
        let item = Item { raw, title: None, text: String::new(), mentions: Vec::new(), letter, file: None };
        more(vec![item], Vec::new(), Value::Null)
    }

    #[tokio::test]
    async fn pages_are_written_together_as_far_as_their_files_are_not_too_large() {
        let (large, small) = (bytes::Bytes::from(vec![0; MOST_FILE_BYTES]), bytes::Bytes::from_static(b"a"));
        let (send, fetched) = mpsc::channel(8);
        for file in [&small, &small, &large, &small] {
            assert!(send.send(Ok(page(file))).await.is_ok());
        }
        drop(send);
        let mut pages = Pages { fetched, task: tokio::spawn(async {}).abort_handle() };
        let mut n_pages = Vec::new();
        while let Some((pages, trouble)) = pages.next(500).await {
            assert!(trouble.is_none());
            n_pages.push(pages.len());
        }
        assert_eq!(n_pages, [3, 1]);
    }

    #[test]
    fn what_may_be_there_is_not_gone() {
        let failed = |name: &str| Failed { external_id: name.into(), reason: String::new(), payload: Value::Null };
        let names = ["contact:1", "contact:2", "deal:1", "contact:?12345678", "answer"].map(str::to_owned);
        for (behind, expected) in [
            (vec![], vec!["contact:1", "contact:2", "deal:1"]),
            (vec!["contact:1"], vec!["contact:2", "deal:1"]),
            (vec!["contact:?0a0b0c0d"], vec!["deal:1"]),
            (vec!["contact:?0a0b0c0d", "deal:1"], vec![]),
        ] {
            let behind: Vec<Failed> = behind.into_iter().map(failed).collect();
            assert_eq!(gone(&names, &[], &behind), expected, "{behind:?}");
        }
    }
}
