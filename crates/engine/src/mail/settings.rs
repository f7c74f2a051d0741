//! The settings of a mailbox: which of its places are read.

use domain::mail::Place;
use domain::{Caller, JobKind, SourceId, TenantId};
use store::PgConnection;
use store::mail::settings;
use store::sources::{self, Source, Tone};

use crate::act::OrMissing as _;
use crate::pull::Provider;
use crate::pull::jobs;
use crate::{ActError, Env};

/// The places that are read in a mailbox of which nobody chose others.
pub const USUAL: &[Place] = &[Place::Inbox, Place::Other, Place::Sent];
/// Every place, in the order in which people see them.
pub const PLACES: &[Place] = &[Place::Inbox, Place::Other, Place::Sent, Place::Drafts, Place::Spam, Place::Deleted];

/// The settings of a mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailSettings {
    pub places: Vec<Place>,
}

/// The word for a place, as in rows and the API.
pub fn word(place: Place) -> &'static str {
    match place {
        Place::Inbox => "inbox",
        Place::Sent => "sent",
        Place::Drafts => "drafts",
        Place::Spam => "spam",
        Place::Deleted => "deleted",
        Place::Other => "other",
    }
}

/// The places of a mailbox that are read.
pub async fn places(conn: &mut PgConnection, tenant_id: TenantId, source_id: SourceId) -> store::Result<Vec<Place>> {
    let chosen = settings::places(conn, tenant_id, source_id).await?;
    Ok(match chosen {
        Some(chosen) => {
            PLACES.iter().copied().filter(|place| chosen.iter().any(|chosen| chosen == word(*place))).collect()
        }
        None => USUAL.to_vec(),
    })
}

/// The settings of one of the caller's mailboxes.
pub async fn get(env: &Env, caller: &Caller, source_id: SourceId) -> Result<MailSettings, ActError> {
    mailbox(env, caller, source_id).await?;
    let places = env.db.read(caller, async |tx| places(tx, caller.tenant_id, source_id).await).await?;
    Ok(MailSettings { places })
}

/// Changes the places that are read. Everything is read again: letters in new places come in, those in the others are deleted here.
pub async fn set(env: &Env, caller: &Caller, source_id: SourceId, chosen: &[Place]) -> Result<MailSettings, ActError> {
    if chosen.is_empty() {
        return Err(ActError::invalid("at least one place of a mailbox is read; pause the source to read none"));
    }
    mailbox(env, caller, source_id).await?;
    let tenant_id = caller.tenant_id;
    let places: Vec<Place> = PLACES.iter().copied().filter(|place| chosen.contains(place)).collect();
    let words: Vec<&str> = places.iter().copied().map(word).collect();
    let changed = env.db.write(async |tx| -> Result<(), ActError> {
        if !settings::set_places(tx, tenant_id, source_id, &words).await? {
            return Ok(());
        }
        let source = sources::load(tx, tenant_id, source_id).await?.or_missing("source")?;
        jobs::must_be_synced(&source)?;
        jobs::queue(env, tx, &source, Some(JobKind::Full), "person").await?;
        let told = format!("The places that are read are now: {}", words.join(", "));
        sources::tell(tx, env.clock.sql(), tenant_id, source_id, None, Tone::Info, &told).await?;
        tx.notify(sources::changed(tenant_id, source_id));
        Ok(())
    });
    changed.await?;
    Ok(MailSettings { places })
}

/// Refuses a source that is no mailbox.
pub(crate) async fn mailbox(env: &Env, caller: &Caller, source_id: SourceId) -> Result<(Source, Provider), ActError> {
    let source = crate::sources::get(env, caller, source_id).await?;
    let provider = env.providers.named(&source.provider).ok().filter(|provider| provider.mailbox.is_some());
    let provider = provider.ok_or_else(|| ActError::conflict("this source is no mailbox"))?;
    Ok((source, provider))
}
