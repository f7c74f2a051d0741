//! Everything that people and programs do to channels. Pages, API and command line call these functions, so the rules are the same for all.

use chrono::TimeDelta;
use domain::{ActivityId, Caller, ChannelId, PersonId, Secret};
use http::{HeaderMap, HeaderName, HeaderValue};
use store::Tx;
use store::channels::{self, Channel, ChannelChange, Refusal, Retiring, Secrets, Settings};

use crate::act::{OrMissing as _, checked_name};
use crate::config::network;
use crate::intake::providers::{UnknownProvider, explain};
use crate::intake::{self, ChannelSpec, Intake, Sample, Visit};
use crate::mail::{self, channel::checked_query};
use crate::{ActError, Env};

/// The default and largest number of hours that old secrets stay valid after a rotation.
pub const RETIRING_HOURS: u32 = 24;
pub const MOST_RETIRING_HOURS: u32 = 24 * 365;

/// A row names a provider that this process does not know.
impl From<UnknownProvider> for ActError {
    fn from(error: UnknownProvider) -> Self {
        Self::Conflict(error.to_string())
    }
}

type Result<T> = std::result::Result<T, ActError>;

/// A channel to add.
#[derive(Clone, Debug, Default)]
pub struct NewChannel {
    pub name: String,
    /// The provider's code.
    pub provider: String,
    /// Verified requests a minute; `Some(None)`: no limit; none: as is usual for the provider.
    pub max_per_minute: Option<Option<i32>>,
    /// The secret that the sender has already, for providers that take one.
    pub secret: Option<Secret>,
    /// The owner of its activities; none: they are everyone's.
    pub person_id: Option<PersonId>,
    /// Makes a contact of every unknown address.
    pub auto_create_contacts: bool,
    pub settings: Settings,
}

/// A channel with its secrets, for its owner.
pub struct Opened {
    pub id: ChannelId,
    pub name: String,
    pub spec: &'static ChannelSpec,
    /// The URL to send to. It is part of the secret.
    pub url: String,
    pub secrets: Secrets,
    pub max_per_minute: Option<i32>,
}

impl Opened {
    fn new(env: &Env, channel: Channel, secrets: Secrets) -> Result<Self> {
        let spec = env.channel_providers.find(&channel.provider_code)?;
        Ok(Self {
            id: ChannelId(channel.id),
            name: channel.name,
            spec,
            url: (spec.url)(&env.config.base_url(), &secrets),
            secrets,
            max_per_minute: channel.max_per_minute,
        })
    }
}

/// Adds a channel.
pub async fn add(env: &Env, caller: &Caller, new: NewChannel) -> Result<Opened> {
    let spec = env.channel_providers.find(&new.provider).map_err(|unknown| ActError::Invalid(unknown.to_string()))?;
    let name = checked_name("a channel's", &new.name)?.to_owned();
    let max_per_minute = checked_limit(new.max_per_minute.unwrap_or(spec.usual_limit))?;
    let row = channels::NewChannel {
        provider_code: spec.code,
        name: &name,
        max_per_minute,
        person_id: new.person_id,
        auto_create_contacts: new.auto_create_contacts,
        settings: checked_settings(new.settings)?,
        proofs: spec.new_proofs(trimmed(new.secret)).map_err(ActError::Invalid)?,
    };
    let made = env.db.write(async |tx| channels::create(tx, &env.vault, caller.tenant_id, row).await).await;
    let (id, secrets) = made.map_err(no_such_person)?;
    log(caller, id, "added");
    let url = (spec.url)(&env.config.base_url(), &secrets);
    Ok(Opened { id, name, spec, url, secrets, max_per_minute })
}

/// The channels of a tenant, newest first, without their secrets.
pub async fn list(env: &Env, caller: &Caller) -> Result<Vec<Channel>> {
    Ok(env.db.session(async |conn| channels::list(conn, caller.tenant_id).await).await?)
}

/// A channel with its secrets.
pub async fn open(env: &Env, caller: &Caller, id: ChannelId) -> Result<Opened> {
    let found = env.db.session(async |conn| {
        let channel = channels::get(conn, caller.tenant_id, id).await?;
        Ok(channel.zip(Some(channels::secrets(conn, &env.vault, caller.tenant_id, id).await?)))
    });
    let (channel, secrets) = found.await?.or_missing("channel")?;
    must_have_url(&channel)?;
    Opened::new(env, channel, secrets.or_missing("channel")?)
}

/// Refuses a channel on a mailbox for what only channels with URLs have.
fn must_have_url(channel: &Channel) -> Result<()> {
    match channel.settings.source_id {
        None => Ok(()),
        Some(_) => Err(ActError::conflict(
            "this channel is on a mailbox: its letters are its events, and it has no URL and no secrets",
        )),
    }
}

/// A refusal with what to do about it.
pub struct Refused {
    pub refusal: Refusal,
    /// None: nothing is known about the reason.
    pub todo: Option<&'static str>,
}

/// The newest refusals of a channel.
pub async fn refusals(env: &Env, caller: &Caller, id: ChannelId, limit: i64) -> Result<Vec<Refused>> {
    let found = env.db.session(async |conn| {
        let channel = channels::get(conn, caller.tenant_id, id).await?;
        Ok(channel.zip(Some(channels::refusals(conn, caller.tenant_id, id, limit).await?)))
    });
    let (channel, refusals) = found.await?.or_missing("channel")?;
    let spec = env.channel_providers.find(&channel.provider_code).ok();
    let explained = |refusal: Refusal| {
        let advice = spec.and_then(|spec| explain(spec, &refusal.reason));
        Refused { todo: advice.map(|advice| advice.todo), refusal }
    };
    Ok(refusals.into_iter().map(explained).collect())
}

/// Changes the name, the owner, the limit or the settings of a channel. An owner has its events from now on.
pub async fn change(env: &Env, caller: &Caller, id: ChannelId, change: ChannelChange) -> Result<()> {
    let change = ChannelChange {
        name: change.name.as_deref().map(|name| checked_name("a channel's", name).map(str::to_owned)).transpose()?,
        max_per_minute: change.max_per_minute.map(checked_limit).transpose()?,
        person_id: change.person_id,
        auto_create_contacts: change.auto_create_contacts,
        settings: change.settings.map(checked_settings).transpose()?,
        query: change.query.as_deref().map(|query| checked_query(query).map(str::to_owned)).transpose()?,
    };
    if change.query.is_some() && !mail::channel::get(env, caller, id).await?.is_on_mailbox() {
        return Err(ActError::invalid("only a channel on a mailbox has a query"));
    }
    let changed = env.db.session(async |conn| channels::change(conn, caller.tenant_id, id, change).await).await;
    changed.map_err(no_such_person)?.or_missing("channel")?;
    log(caller, id, "changed");
    Ok(())
}

/// Enables or disables a channel. One with a short secret cannot be enabled.
pub async fn set_active(env: &Env, caller: &Caller, id: ChannelId, is_active: bool) -> Result<()> {
    let changed = env.db.write(async |tx| {
        let channel = channels::get(tx, caller.tenant_id, id).await?.or_missing("channel")?;
        if is_active && channel.settings.source_id.is_none() {
            let (spec, secrets) = locked(env, tx, caller, id).await?;
            spec.check(&secrets.proofs).map_err(ActError::Conflict)?;
        }
        Ok::<_, ActError>(channels::set_active(tx, caller.tenant_id, id, is_active).await?)
    });
    changed.await?.or_missing("channel")?;
    log(caller, id, if is_active { "enabled" } else { "disabled" });
    Ok(())
}

/// New secrets for a channel.
#[derive(Clone, Debug, Default)]
pub struct Rotation {
    /// The sender's own new secret, for providers that take one.
    pub secret: Option<Secret>,
    /// Also makes a new URL. The old one is refused at once.
    pub is_url_too: bool,
    /// The number of hours that the old secrets stay valid; none: [`RETIRING_HOURS`].
    pub keep_hours: Option<u32>,
}

/// Makes new secrets for a channel. The old ones stay valid for a while.
pub async fn rotate(env: &Env, caller: &Caller, id: ChannelId, rotation: Rotation) -> Result<Opened> {
    let keep_hours = rotation.keep_hours.unwrap_or(RETIRING_HOURS).min(MOST_RETIRING_HOURS);
    let until = env.clock.now() + TimeDelta::hours(keep_hours.into());
    let rotated = env.db.write(async |tx| {
        let (spec, old) = locked(env, tx, caller, id).await?;
        let channel = channels::get(tx, caller.tenant_id, id).await?.or_missing("channel")?;
        let proofs = spec.rotated(&old.proofs, trimmed(rotation.secret), rotation.is_url_too);
        let ingestion_key = if rotation.is_url_too { store::keys::new_secret("") } else { old.ingestion_key };
        let retiring = Some(Retiring { proofs: old.proofs, until });
        let new = Secrets { ingestion_key, proofs: proofs.map_err(ActError::Conflict)?, retiring };
        channels::replace_secrets(tx, &env.vault, caller.tenant_id, id, &new).await?;
        Opened::new(env, channel, new)
    });
    let rotated = rotated.await?;
    log(caller, id, "rotated");
    Ok(rotated)
}

/// Adds a shared key that the provider signs with, or removes it where there is no secret.
pub async fn set_shared_key(
    env: &Env,
    caller: &Caller,
    id: ChannelId,
    key_id: &str,
    secret: Option<Secret>,
) -> Result<()> {
    let set = env.db.write(async |tx| {
        let (spec, mut secrets) = locked(env, tx, caller, id).await?;
        if !spec.takes_shared_keys {
            return Err(ActError::Conflict(format!("{} does not sign with shared keys", spec.label)));
        }
        let keys = &mut secrets.proofs.shared_keys;
        match trimmed(secret) {
            Some(secret) => drop(keys.insert(key_id.to_owned(), secret)),
            None if keys.remove(key_id).is_none() => {
                return Err(ActError::Conflict(format!("the channel has no shared key {key_id:?}")));
            }
            None => {}
        }
        spec.check(&secrets.proofs).map_err(ActError::Conflict)?;
        Ok(channels::replace_secrets(tx, &env.vault, caller.tenant_id, id, &secrets).await?)
    });
    set.await?;
    log(caller, id, "changed");
    Ok(())
}

/// Deletes a channel. Its activities and documents stay.
pub async fn delete(env: &Env, caller: &Caller, id: ChannelId) -> Result<()> {
    let deleted = env.db.write(async |tx| channels::delete(tx, &env.vault, caller.tenant_id, id).await).await?;
    deleted.or_missing("channel")?;
    log(caller, id, "deleted");
    Ok(())
}

/// A test event for a channel, sent as its provider would send it.
pub async fn test_event(env: &Env, caller: &Caller, id: ChannelId) -> Result<Sample> {
    let Opened { spec, secrets, .. } = open(env, caller, id).await?;
    let sample = intake::sample(spec, &secrets, &env.config.base_url(), env.clock.now());
    sample.ok_or_else(|| ActError::Conflict("the channel has no secret to sign with".into()))
}

/// A command that sends a test event as the channel's provider would, to be pasted into a shell. It holds secrets. None: the channel has no
/// secret to sign with.
pub fn test_command(env: &Env, opened: &Opened) -> Option<String> {
    let Opened { id, spec, url, secrets, .. } = opened;
    if let Some(command) = (spec.told.next_step)(*id, url, &secrets.proofs).command {
        return Some(command);
    }
    let base_url = env.config.base_url();
    let sample = intake::sample(spec, secrets, &base_url, env.clock.now())?;
    let mut command = format!("curl -sS {}", quoted(&format!("{base_url}{}", sample.target)));
    for (name, value) in &sample.headers {
        command.push_str(&format!(" -H {}", quoted(&format!("{name}: {value}"))));
    }
    let body = std::str::from_utf8(&sample.body).ok()?;
    Some(format!("{command} --data-binary {}", quoted(body)))
}

/// As one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Names who looked at a channel's secrets.
pub fn log_shown(caller: &Caller, id: ChannelId) {
    log(caller, id, "shown with its secrets");
}

/// Sends a test event through this process's own intake, where it is verified like every webhook. The inner error: the intake did not
/// take it.
pub async fn send_test(
    env: &Env,
    intake: &Intake,
    caller: &Caller,
    id: ChannelId,
) -> Result<std::result::Result<ActivityId, intake::Refusal>> {
    let sample = test_event(env, caller, id).await?;
    let mut headers = HeaderMap::new();
    for (name, value) in &sample.headers {
        let unsendable = |_| ActError::Conflict("its secret cannot be sent".into());
        headers.insert(HeaderName::from_static(name), HeaderValue::try_from(value.as_str()).map_err(unsendable)?);
    }
    intake.forget(id); // a change of a moment ago is tested too
    let visit = Visit {
        key: sample.target.rsplit('/').next().unwrap_or_default(),
        target: &sample.target,
        address: std::net::Ipv4Addr::LOCALHOST.into(),
        headers: &headers,
    };
    let sent = async {
        let mut delivery = intake.begin(visit).await?;
        delivery.push(sample.body).await?;
        delivery.finish(&headers).await
    };
    match sent.await {
        Ok(received) => Ok(Ok(received.id)),
        Err(intake::Refusal::Unverified) => Err(ActError::Conflict("the channel refused it; its page says why".into())),
        Err(refusal) => Ok(Err(refusal)),
    }
}

/// An owner who is not there breaks a foreign key.
fn no_such_person(error: store::Error) -> ActError {
    match error.code().as_deref() {
        Some("23503") => ActError::invalid("there is no such person"),
        _ => error.into(),
    }
}

/// Names the key that changed a channel.
fn log(caller: &Caller, id: ChannelId, done: &str) {
    tracing::info!(channel.id = %id, tenant.id = %caller.tenant_id, "channel {id} was {done} by key {}", caller.key_id);
}

/// The provider and the secrets of a channel, for one transaction at a time.
async fn locked(env: &Env, tx: &mut Tx, caller: &Caller, id: ChannelId) -> Result<(&'static ChannelSpec, Secrets)> {
    channels::lock(tx, caller.tenant_id, id).await?;
    let channel = channels::get(tx, caller.tenant_id, id).await?.or_missing("channel")?;
    must_have_url(&channel)?;
    let secrets = channels::secrets(tx, &env.vault, caller.tenant_id, id).await?.or_missing("channel")?;
    Ok((env.channel_providers.find(&channel.provider_code)?, secrets))
}

/// Pasted secrets come with spaces and line ends.
fn trimmed(secret: Option<Secret>) -> Option<Secret> {
    secret.map(|secret| Secret::new(secret.reveal().trim()))
}

fn checked_limit(most: Option<i32>) -> Result<Option<i32>> {
    let refused = || ActError::Invalid("max_per_minute is at least 1, or null for no limit".into());
    if most.is_some_and(|most| most < 1) { Err(refused()) } else { Ok(most) }
}

fn checked_settings(given: Settings) -> Result<Settings> {
    let ranges = given.ranges.map(|ranges| ranges.iter().map(|range| range.trim().to_owned()).collect::<Vec<_>>());
    if ranges.iter().flatten().any(|range| network(range).is_err()) {
        return Err(ActError::Invalid("ranges are networks such as 50.31.156.0/24".into()));
    }
    Ok(Settings { require_ip: given.require_ip, ranges, ..Settings::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_word_of_a_shell() {
        assert_eq!(quoted("it's 1 < 2 & $HOME"), r"'it'\''s 1 < 2 & $HOME'");
    }

    #[test]
    fn what_is_given_for_a_channel_is_checked() {
        for (most, is_good) in [(None, true), (Some(1), true), (Some(0), false), (Some(-1), false)] {
            assert_eq!(checked_limit(most).is_ok(), is_good, "{most:?}");
        }
        let ranges = |texts: &[&str]| Settings {
            require_ip: false,
            ranges: Some(texts.iter().map(|text| (*text).to_owned()).collect()),
            ..Settings::default()
        };
        assert_eq!(checked_settings(ranges(&[" 10.1.0.0/16 "])).ok(), Some(ranges(&["10.1.0.0/16"])));
        assert_eq!(checked_settings(Settings::default()).ok(), Some(Settings::default()));
        assert!(checked_settings(ranges(&["10.1.0.0/16", "anywhere"])).is_err());
    }
}
