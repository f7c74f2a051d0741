//! Providers of webhooks. A provider is one folder here with one [`ChannelSpec`], and one line in `BUILT_IN`: how its requests are
//! verified, what its fields mean, how it is answered, and what a person is told about it. Nothing outside its folder names it, but for
//! the demonstration's story and examples in texts.

pub mod generic;
mod guide;
pub mod postmark;
pub mod twilio;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use connectors::outside::Basic;
use domain::{ChannelId, Secret};
use serde_json::Value;
use store::channels::{Proofs, Secrets};

pub use self::guide::{ChannelGuide, GivenSecret, Sender, explain};
use super::guard::{KeyMaterial, Verifier};
use super::normalise::{Malformed, Normal, Sent};

/// The providers that channels can have, in the order in which a person is offered them.
static BUILT_IN: [&ChannelSpec; 3] = [&twilio::SPEC, &postmark::SPEC, &generic::SPEC];

/// The provider of a channel for which nobody names one.
pub const DEFAULT: &str = generic::SPEC.code;

/// A shorter secret can be guessed.
const SECRET_CHARS: usize = 24;

/// Everything that is particular to one provider of webhooks.
pub struct ChannelSpec {
    /// The word for it in rows, in the API and on the command line. It never changes.
    pub code: &'static str,
    /// Its name on pages.
    pub label: &'static str,
    /// Its name beside the others, where a person chooses one, and what it sends.
    pub choice: (&'static str, &'static str),
    /// Verified requests a minute when nobody says otherwise. None for a provider that would lose or delay the events over a limit.
    pub usual_limit: Option<i32>,
    /// The secrets of a channel. At most one of them may be given by a person.
    pub proofs: &'static [ProofSpec],
    /// It can sign with keys that a request names by their id.
    pub takes_shared_keys: bool,
    /// For a provider that is known by its address: the networks that it publishes.
    pub networks: Option<&'static [&'static str]>,
    /// Makes what requests of one channel are checked with.
    pub verifier: fn(&KeyMaterial) -> Arc<dyn Verifier>,
    /// Reads a verified request.
    pub normalise: fn(&Sent) -> Result<Normal, Malformed>,
    /// Bodies larger than others that it may send, once its sender is verified before the body. None: no larger than others.
    pub large_body: Option<LargeBody>,
    pub reply: Reply,
    /// The URL to send to, of the server's own URL.
    pub url: fn(base_url: &str, secrets: &Secrets) -> String,
    pub sample: SampleSpec,
    /// The events of `bench intake`. None: it is left out there.
    pub load: Option<LoadSpec>,
    /// The credentials for a recording that an activity names, by the activity's metadata. They go to the named domain alone.
    pub recording_login: fn(metadata: &Value, proofs: &Proofs) -> Option<Basic>,
    pub told: Told,
    /// The words and the mark for a person who sets a channel up.
    pub guide: ChannelGuide,
}

/// One secret of a channel.
pub struct ProofSpec {
    /// Its name in the sealed row and in the API. Not `ingestion_key`, `shared_keys`, `retiring` or `until`.
    pub name: &'static str,
    /// Its name for people.
    pub label: &'static str,
    pub origin: Origin,
    /// The channel's owner can read it again. Not for what the owner has from the provider, or what is part of the URL.
    pub is_shown: bool,
}

/// Where a secret comes from.
pub enum Origin {
    /// The provider made it, and a person gives it: there is no channel without it.
    Given {
        /// Said at a rotation for which no new one is given.
        unchanged: &'static str,
    },
    /// A person may give the sender's own; otherwise it is made here.
    GivenOrMade(fn() -> Secret),
    Made(fn() -> Secret),
}

/// JSON bodies that are too large for memory: texts in a list of files are taken out and written to disk as they arrive.
#[derive(Clone, Copy)]
pub struct LargeBody {
    pub most_bytes: usize,
    /// The member of the body that lists files, and the member of each that holds its content as base64.
    pub files: (&'static str, &'static str),
    /// Members that are left out of what is read. The original keeps them.
    pub left_out: &'static [&'static str],
}

/// The answer to an accepted event.
#[derive(Clone, Copy)]
pub struct Reply {
    /// The status of the JSON answer.
    pub status: u16,
    /// Content type and body of a plain 200, for callers that do not ask for JSON.
    pub plain: Option<(&'static str, &'static str)>,
}

/// A test event: what it says, and how the provider would send it.
pub struct SampleSpec {
    pub says: Said<'static>,
    /// None: the channel lacks the secret that it is signed with.
    pub make: fn(&Sending, &Said) -> Option<Message>,
}

/// The sender and the text of a sample.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    pub name: &'a str,
    /// An address that the provider could send: an e-mail address, or a telephone number.
    pub from: &'a str,
    pub subject: &'a str,
    pub text: &'a str,
}

/// One event to be sent to a channel.
pub struct Sending<'a> {
    pub secrets: &'a Secrets,
    /// The whole URL, as the provider calls it.
    pub url: &'a str,
    pub now: DateTime<Utc>,
    /// Makes it an event of its own: 32 hexadecimal digits.
    pub id: &'a str,
}

/// Headers and body of a signed request.
pub type Message = (Vec<(&'static str, String)>, String);

/// Events of a usual size for a benchmark: made once, then sent again and again with another id in the same places.
pub struct LoadSpec {
    pub make: fn(&Sending) -> Option<Message>,
    /// A header that changes with the id, and its value for a body.
    pub signature: Option<(&'static str, Sign)>,
}

/// Signs a body. None: the channel lacks the secret.
pub type Sign = fn(&Sending, &[u8]) -> Option<String>;

/// Texts for people.
pub struct Told {
    /// The field for a new secret at a rotation, with a remark. None: people give none.
    pub new_secret: Option<(&'static str, &'static str)>,
    /// Below the secrets on the channel's page.
    pub keep_private: &'static str,
    /// On the command line, once there is a channel.
    pub next_step: fn(id: ChannelId, url: &str, proofs: &Proofs) -> NextStep,
}

/// The next step of a person who has a new channel.
pub struct NextStep {
    pub text: String,
    /// A command to copy.
    pub command: Option<String>,
}

impl ChannelSpec {
    /// The secret that a person gives, or may give.
    fn given(&self) -> Option<&ProofSpec> {
        self.proofs.iter().find(|proof| !matches!(proof.origin, Origin::Made(_)))
    }

    /// There is no channel without a secret that a person gives.
    pub fn needs_secret(&self) -> bool {
        self.given().is_some_and(|proof| matches!(proof.origin, Origin::Given { .. }))
    }

    /// Makes the secrets of a new channel. An error says what is wrong with the one that was given.
    pub fn new_proofs(&self, given: Option<Secret>) -> Result<Proofs, String> {
        if given.is_some() && self.given().is_none() {
            return Err(format!("{} takes no secret of yours: what its requests show is made here", self.label));
        }
        let mut proofs = Proofs::default();
        for proof in self.proofs {
            let secret = match proof.origin {
                Origin::Given { .. } => given.clone(),
                Origin::GivenOrMade(make) => Some(given.clone().unwrap_or_else(make)),
                Origin::Made(make) => Some(make()),
            };
            proofs = proofs.with(proof.name, secret);
        }
        self.check(&proofs)?;
        Ok(proofs)
    }

    /// Makes the secrets after `old`. One that only the provider can make stays where just the URL changes.
    pub fn rotated(&self, old: &Proofs, given: Option<Secret>, is_url_too: bool) -> Result<Proofs, String> {
        let kept = match self.given() {
            Some(ProofSpec { name, origin: Origin::Given { unchanged }, .. }) if given.is_none() => {
                if !is_url_too {
                    return Err((*unchanged).to_owned());
                }
                old.get(name).cloned()
            }
            _ => given,
        };
        let mut proofs = self.new_proofs(kept)?;
        proofs.shared_keys = old.shared_keys.clone();
        self.check(&proofs)?;
        Ok(proofs)
    }

    /// An error where a secret is missing, empty or short: nobody gets in by it.
    pub fn check(&self, proofs: &Proofs) -> Result<(), String> {
        let named = self.proofs.iter().map(|proof| (proof.label, proofs.get(proof.name)));
        let shared = proofs.shared_keys.values().map(|secret| ("shared key", Some(secret)));
        for (label, secret) in named.chain(shared) {
            let chars = secret.map_or(0, |secret| secret.reveal().trim().chars().count());
            if chars < SECRET_CHARS {
                return Err(format!("the {label} has {chars} characters; at least {SECRET_CHARS} are needed"));
            }
        }
        Ok(())
    }

    /// The secrets that the channel's owner can read again, in order.
    pub fn shown<'a>(&self, proofs: &'a Proofs) -> impl Iterator<Item = (&'static ProofSpec, &'a Secret)>
    where
        Self: 'static,
    {
        let all: &'static [ProofSpec] = self.proofs;
        all.iter().filter(|proof| proof.is_shown).filter_map(|proof| Some((proof, proofs.get(proof.name)?)))
    }
}

/// `{base_url}/ingest/{key}`: what most providers call.
pub fn plain_url(base_url: &str, secrets: &Secrets) -> String {
    format!("{base_url}/ingest/{}", secrets.ingestion_key.reveal())
}

/// For providers whose recordings need no credentials, or that have none.
pub fn no_login(_: &Value, _: &Proofs) -> Option<Basic> {
    None
}

/// The providers that this process knows.
#[derive(Clone)]
pub struct ChannelProviders(Vec<&'static ChannelSpec>);

/// A row or a request names a provider that this process does not know.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code:?} is no provider of webhooks; there are {known}")]
pub struct UnknownProvider {
    code: String,
    known: String,
}

impl Default for ChannelProviders {
    fn default() -> Self {
        Self(BUILT_IN.to_vec())
    }
}

impl ChannelProviders {
    /// The same and one more.
    #[must_use]
    pub fn with(mut self, spec: &'static ChannelSpec) -> Self {
        self.0.push(spec);
        self
    }

    pub fn all(&self) -> &[&'static ChannelSpec] {
        &self.0
    }

    pub fn find(&self, code: &str) -> Result<&'static ChannelSpec, UnknownProvider> {
        let found = self.0.iter().find(|spec| spec.code == code).copied();
        found.ok_or_else(|| UnknownProvider { code: code.to_owned(), known: self.codes() })
    }

    /// Their codes in words: `a, b and c`.
    pub fn codes(&self) -> String {
        let codes: Vec<&str> = self.0.iter().map(|spec| spec.code).collect();
        match codes.split_last() {
            Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
            _ => codes.concat(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "a-secret-of-more-than-24-characters";

    #[test]
    fn a_provider_is_found_by_its_code_and_an_unknown_code_is_named() {
        let providers = ChannelProviders::default();
        for spec in providers.all() {
            assert_eq!(providers.find(spec.code).map(|found| found.label), Ok(spec.label));
        }
        for unknown in ["", "Twilio", "gmail"] {
            let error = providers.find(unknown).err().expect("an error").to_string();
            assert_eq!(
                error,
                format!("{unknown:?} is no provider of webhooks; there are twilio, postmark and generic")
            );
        }
    }

    #[test]
    fn a_secret_is_given_or_made_as_the_provider_wants_it() {
        let given = Some(Secret::new(LONG));
        for (spec, given, wanted) in [
            (&generic::SPEC, None, Ok(())),
            (&generic::SPEC, given.clone(), Ok(())),
            (&generic::SPEC, Some(Secret::new("only-23-characters-long")), Err("the webhook secret has 23 characters")),
            (&twilio::SPEC, given.clone(), Ok(())),
            (&twilio::SPEC, None, Err("the Twilio auth token has 0 characters")),
            (&twilio::SPEC, Some(Secret::new(format!("{:30}", "x"))), Err("the Twilio auth token has 1 characters")),
            (&postmark::SPEC, None, Ok(())),
            (&postmark::SPEC, given.clone(), Err("Postmark takes no secret of yours")),
        ] {
            let made = spec.new_proofs(given.clone());
            match (made, wanted) {
                (Ok(proofs), Ok(())) => {
                    assert_eq!(spec.check(&proofs), Ok(()));
                    let has_given = spec.proofs.iter().any(|proof| proofs.get(proof.name) == given.as_ref());
                    assert_eq!(has_given, given.is_some(), "{}", spec.code);
                }
                (Err(said), Err(wanted)) => assert!(said.starts_with(wanted), "{said}"),
                (made, _) => panic!("{} with {given:?}: {made:?}", spec.code),
            }
        }
    }

    #[test]
    fn a_rotation_changes_what_is_made_and_keeps_what_only_the_provider_can_make() {
        let (old, new) = (Secret::new(LONG), Secret::new("another-secret-of-24-characters"));
        let twilio = twilio::SPEC.new_proofs(Some(old.clone())).expect("proofs");
        let token = |proofs: Proofs| proofs.get("auth_token").cloned();
        assert!(twilio::SPEC.rotated(&twilio, None, false).is_err_and(|why| why.contains("only Twilio makes")));
        assert_eq!(twilio::SPEC.rotated(&twilio, None, true).map(token), Ok(Some(old)));
        assert_eq!(twilio::SPEC.rotated(&twilio, Some(new.clone()), false).map(token), Ok(Some(new)));
        let generic = generic::SPEC.new_proofs(None).expect("proofs");
        let rotated = generic::SPEC.rotated(&generic, None, false).expect("proofs");
        for name in ["webhook_secret", "bearer"] {
            assert_ne!(generic.get(name), rotated.get(name), "{name}");
        }
    }
}
