//! The second step of the intake, which goes through those after it: the body arrives, its sender is verified (`guard`), its provider reads it
//! (`normalise`), and the event is made durable (`committer`). A success means that it is.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use domain::ActivityId;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use store::activities::{Arrival, Original, Stored};
use store::crash::{self, Point};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::body::{Body, Whole, apart, keep_all};
use super::channels::Channel;
use super::guard::{Check, Why};
use super::limits::network;
use super::normalise::{Normal, Sent};
use super::providers::{LargeBody, Reply};
use super::refusals::Refusal;
use super::room::{Reservation, Waiting};
use super::shares::Amount;
use super::{BODY_BYTES, Intake, LARGE_HELD_BYTES, MOST_NOTED, MOST_REFUSED};

/// A body without an open channel, kept while its signature is computed.
const STRANGERS_BYTES: usize = 64 << 10;
/// Larger originals go to the blob store.
pub(super) const INLINE_BYTES: usize = 64 << 10;

/// An accepted event.
#[derive(Clone, Copy)]
pub struct Received {
    pub id: ActivityId,
    /// How its provider wants to be answered.
    pub reply: Reply,
    /// Delivered again, it is the same event.
    pub has_event_key: bool,
}

/// A request whose body arrives.
pub struct Delivery {
    pub(super) intake: Intake,
    pub(super) address: IpAddr,
    pub(super) channel: Option<Arc<Channel>>,
    pub(super) reservation: Option<Reservation>,
    /// Allows a body without an open channel to be kept.
    pub(super) stranger: Option<OwnedSemaphorePermit>,
    pub(super) is_kept: bool,
    /// Neither complete nor refused yet.
    pub(super) is_arriving: bool,
    pub(super) check: Check,
    /// How long the event may wait for the database, without the time that finding its channel took.
    pub(super) hold: Duration,
    /// The body may be this large, and is written to files if it is larger than others.
    pub(super) large: Option<LargeBody>,
    /// The length in the request's head.
    pub(super) said_bytes: Option<usize>,
    /// The bytes that have arrived.
    pub(super) bytes: usize,
    pub(super) body: Body,
}

impl Delivery {
    /// Bytes that the body may have.
    pub(super) fn most(&self) -> usize {
        self.large.map_or(BODY_BYTES, |large| large.most_bytes)
    }

    /// Takes the next piece of the body.
    pub async fn push(&mut self, piece: Bytes) -> Result<(), Refusal> {
        let taken = self.take(piece).await;
        self.is_arriving = taken.is_ok();
        taken
    }

    async fn take(&mut self, piece: Bytes) -> Result<(), Refusal> {
        self.bytes += piece.len();
        if self.bytes > self.most() {
            return Err(self.refuse(Refusal::TooLarge { most: self.most() }, None));
        }
        self.check.update(&piece);
        if let Body::Large(files) = &mut self.body {
            if let Err(error) = files.push(&self.intake.0.env, &piece).await {
                return Err(self.unwritten(error));
            }
            let held = files.held().max(LARGE_HELD_BYTES);
            let has_room = self.reservation.as_mut().is_some_and(|reservation| reservation.hold_bytes(held));
            return if has_room { Ok(()) } else { Err(self.refuse(Refusal::Full, None)) };
        }
        if self.is_kept {
            self.body.add(piece, self.said_bytes.unwrap_or(BODY_BYTES));
            let has_room = match &mut self.reservation {
                Some(reservation) => reservation.hold_bytes(self.body.held()),
                None => true,
            };
            if !has_room {
                return Err(self.refuse(Refusal::Full, None));
            }
            if self.reservation.is_none() && self.bytes > STRANGERS_BYTES {
                (self.is_kept, self.body) = (false, Body::Empty);
            }
        }
        Ok(())
    }

    /// The body will not be complete: its sender left, or took too long.
    pub fn give_up(&mut self) -> Refusal {
        self.is_arriving = false;
        let _ = self.count_unverified(); // the next one is told
        self.refuse_one_of_many(Refusal::Unfinished, None)
    }

    /// The body is complete: verifies its sender, reads it, and makes it durable.
    pub async fn finish(mut self, headers: &HeaderMap) -> Result<Received, Refusal> {
        self.is_arriving = false;
        let whole = self.whole().await?;
        let (channel, mut reservation) = self.verify(&whole)?;
        let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let region = self.intake.0.env.config.phone_region;
        let sent = Sent { headers, content_type, body: &whole.body, signature: self.check.signature(), region };
        let (normal, sha256) = apart(whole.body.len(), || ((channel.spec.normalise)(&sent), whole.sha256()));
        let normal = normal.map_err(|malformed| self.refuse(malformed.into(), None))?;
        let Normal { r#type, direction, raw_data, mut metadata, event_key, files, party } = normal;

        let extra = Duration::from_secs((whole.bytes() / BODY_BYTES) as u64); // a large body needs time to reach its store
        let until = tokio::time::Instant::now() + self.hold + extra;
        let (original, attachments) = if whole.large.is_none() && whole.bytes() <= INLINE_BYTES && files.is_empty() {
            (Original::Body(whole.body), Vec::new())
        } else {
            // Boxed: it is large, and rarely needed.
            let kept = Box::pin(keep_all(&self.intake.0.env, channel.tenant_id, whole, files));
            let away =
                |_| self.refuse(Refusal::Away(store::Error::TimedOut), Some("its files could not be stored in time"));
            tokio::time::timeout_at(until, kept).await.map_err(away)?
        };
        if !attachments.is_empty() {
            metadata.push_ours("attachments", &serde_json::to_string(&attachments).unwrap_or_default());
        }
        let metadata = metadata.to_json();
        let inline_bytes = if let Original::Body(body) = &original { body.len() } else { 0 };
        let bytes = inline_bytes + raw_data.len() + metadata.len();
        if !reservation.hold(Amount { rows: 1, bytes, files: 0 }) {
            return Err(self.refuse(Refusal::Full, None));
        }
        let has_event_key = event_key.is_some();
        let arrival = Arrival {
            id: ActivityId::new(),
            tenant_id: channel.tenant_id,
            channel_id: channel.id,
            person_id: channel.person_id,
            event_key,
            r#type,
            direction,
            raw_data,
            metadata,
            content_type: content_type.map(str::to_owned),
            sha256,
            original,
            attachments,
            new_contact: party.filter(|_| channel.auto_create_contacts),
        };
        let stored = self.store(arrival, reservation, until).await?;
        let counter = if stored.is_new { &channel.accepted } else { &channel.redelivered };
        counter.increment(1);
        crash::at(Point::IntakeBeforeAnswer).map_err(|error| self.refuse(Refusal::Away(error), None))?;
        Ok(Received { id: stored.id, reply: channel.spec.reply, has_event_key })
    }

    async fn whole(&mut self) -> Result<Whole, Refusal> {
        let body = match std::mem::replace(&mut self.body, Body::Empty) {
            Body::Empty => Bytes::new(),
            Body::One(body) => body,
            Body::Many(body) => body.into(),
            Body::Large(files) => {
                let large = files.finish().await.map_err(|error| self.unwritten(error))?;
                return Ok(Whole { body: large.rest.clone(), large: Some(large) });
            }
        };
        Ok(Whole { body, large: None })
    }

    /// The channel of a verified sender, within its limit of requests.
    fn verify(&mut self, whole: &Whole) -> Result<(Arc<Channel>, Reservation), Refusal> {
        let inner = &self.intake.0;
        let verdict = self.check.passes(&whole.body);
        let (Some(channel), Some(reservation), Ok(())) = (self.channel.clone(), self.reservation.take(), verdict)
        else {
            let refusal = match self.count_unverified() {
                Ok(()) => Refusal::Unverified,
                Err(wait) => Refusal::TooMany { wait },
            };
            return Err(self.refuse_one_of_many(refusal, verdict.err()));
        };
        if let Some(most) = channel.max_per_minute {
            let counted = inner.verified.count(channel.id, most);
            counted.map_err(|wait| self.refuse(Refusal::TooMany { wait }, None))?;
        }
        Ok((channel, reservation))
    }

    /// Counts a request that was not verified; an error when this address sent too many of them. Whether a channel has the key makes no
    /// difference: the count would tell.
    fn count_unverified(&self) -> Result<(), Duration> {
        self.intake.0.refused.count(network(self.address), MOST_REFUSED)
    }

    /// Hands the event to the committer and waits until it is durable.
    async fn store(
        &self,
        arrival: Arrival,
        reservation: Reservation,
        until: tokio::time::Instant,
    ) -> Result<Stored, Refusal> {
        let (inner, channel_id) = (&self.intake.0, arrival.channel_id);
        let (answer, answered) = oneshot::channel();
        inner.room.join(Waiting { arrival, since: Instant::now(), answer, reservation });
        match tokio::time::timeout_at(until, answered).await {
            Ok(Ok(Ok(stored))) => Ok(stored),
            Ok(Ok(Err(error))) => {
                let refusal = Refusal::of_insert(error);
                if matches!(refusal, Refusal::Unverified) {
                    inner.channels.forget(channel_id);
                }
                Err(self.refuse(refusal, None))
            }
            Ok(Err(_)) | Err(_) => Err(self.refuse(Refusal::Away(store::Error::TimedOut), None)),
        }
    }

    /// Refuses a request of a sender that was not verified. Its owner is told of so many, whatever others send from the same address.
    fn refuse_one_of_many(&self, refusal: Refusal, why: Option<Why>) -> Refusal {
        let whose = self.channel.as_ref().map(|channel| (channel.id, network(self.address)));
        if whose.is_some_and(|whose| self.intake.0.noted.count(whose, MOST_NOTED).is_ok()) {
            return self.refuse(refusal, why);
        }
        refusal.count(self.channel.as_deref());
        refusal
    }

    /// Counts a refusal, and notes the reason for the channel's owner. The sender is told the refusal alone.
    pub(super) fn refuse(&self, refusal: Refusal, why: Option<Why>) -> Refusal {
        refusal.count(self.channel.as_deref());
        if let Some(channel) = &self.channel {
            let reason = why.map_or_else(|| refusal.to_string(), str::to_owned);
            let refusals = &self.intake.0.refusals;
            refusals.note(channel.tenant_id, channel.id, refusal.status(), reason, self.address);
        }
        refusal
    }

    /// A large body could not be written to its files: the disk is full, or the folder is not ours.
    pub(super) fn unwritten(&self, error: std::io::Error) -> Refusal {
        tracing::error!(error = ?error, "a large body could not be written to the data folder");
        self.refuse(Refusal::Away(store::Error::TimedOut), Some("it could not be written to this server's disk"))
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if self.is_arriving {
            self.give_up();
        }
    }
}
