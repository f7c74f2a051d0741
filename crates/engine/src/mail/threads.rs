//! Conversations as documents of the old contract: a view of messages, for lists.

use store::mail::threads;
use store::memory::Listed;
use store::memory::documents::Wanted;

use crate::{ActError, Env};

/// The type under which conversations are listed. No document has it.
pub const TYPE: &str = "gmail.thread";

/// A page of the caller's conversations, each as its newest message and with that one's id, in the order of those.
pub(crate) async fn list(env: &Env, caller: &domain::Caller, wanted: Wanted<'_>) -> Result<Vec<Listed>, ActError> {
    let listed = env.db.read(caller, async |tx| threads::list(tx, wanted.source_id, wanted.before, wanted.limit).await);
    Ok(listed.await?)
}
