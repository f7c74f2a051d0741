//! Takes what providers post about mailboxes, and answers at once. A notice says that a mailbox has changed and nothing of what: the next sync finds
//! that out.
//!
//! A post that can prove itself by its head does so before its body is read ([`Notices::admit`]). What several posts say is written in groups, one
//! transaction each (`line`): the mailboxes are looked up, each notice's secret is compared, and what is good is noted ([`super::pending`]). A
//! post is answered once that is durable.

mod line;

use std::collections::HashMap;
use std::sync::Arc;

use connectors::pull::mailbox::{MailboxSpec, Proof, Push};
use domain::Secret;
use http::HeaderMap;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::task::JoinSet;

use self::line::Line;
use crate::Env;
use crate::intake::guard::proof::authorization;
use crate::pull::Provider;

/// Notices in one post. Providers send a few at a time.
const MOST_IN_ONE: usize = 5_000;
/// A provider's question whether an address is ours.
const MOST_QUESTION: usize = 4_096;

/// The entrance of a provider's notices.
#[derive(Clone, Copy)]
pub struct Hook {
    pub provider: Provider,
    spec: &'static MailboxSpec,
}

/// The reasons why a post is not taken.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The settings name no proof, so nothing is believed.
    #[error("nothing is taken here")]
    Closed,
    #[error("it does not prove who sent it")]
    Unproved(&'static str),
    #[error("it cannot be understood: {0}")]
    Malformed(&'static str),
    #[error("too much is waiting already")]
    Full,
    /// Nothing is wrong with it: what is needed to check or store it is away.
    #[error("it cannot be taken now")]
    Away(#[source] anyhow::Error),
}

impl Refused {
    fn reason(&self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Unproved(_) => "unproved",
            Self::Malformed(_) => "malformed",
            Self::Full => "full",
            Self::Away(_) => "away",
        }
    }
}

/// The notices of one process. Clones share it.
#[derive(Clone)]
pub struct Notices(Arc<Inner>);

struct Inner {
    env: Env,
    hooks: Vec<Hook>,
    /// The proofs that posts of a topic bring, by the hook's name. They keep the issuer's keys.
    proofs: HashMap<&'static str, Proof>,
    line: Line,
}

impl Notices {
    pub fn new(env: Env) -> Self {
        let hooks = env.providers.all().iter().filter_map(|provider| {
            let spec = provider.mailbox.as_ref()?;
            Some(Hook { provider, spec })
        });
        let hooks: Vec<Hook> = hooks.collect();
        let proofs = hooks.iter().filter_map(|hook| match &hook.spec.push {
            Push::Topic(topic) => Some((hook.spec.hook, topic.proof(&env.http, &env.config.providers))),
            Push::Subscription => None,
        });
        Self(Arc::new(Inner { proofs: proofs.collect(), hooks, line: Line::default(), env }))
    }

    /// Writes what posts say until dropped. They wait for it.
    pub async fn write(self) {
        let mut writing = JoinSet::new();
        loop {
            let notices = self.clone();
            writing.spawn(async move { line::run(&notices.0.env, &notices.0.line).await });
            writing.join_next().await;
            tracing::error!("what writes notices ended badly; another takes its place");
        }
    }

    /// The hook of this name, the last part of its address.
    pub fn hook(&self, name: &str) -> Option<Hook> {
        self.0.hooks.iter().copied().find(|hook| hook.spec.hook == name)
    }

    /// The answer to a provider's question whether the address is ours: the text that it asks to be repeated. None: it asks nothing.
    pub fn echo(&self, hook: Hook, question: Option<&str>) -> Option<Result<String, Refused>> {
        let question = question.filter(|_| matches!(hook.spec.push, Push::Subscription))?;
        let is_plain = (1..=MOST_QUESTION).contains(&question.len()) && !question.chars().any(char::is_control);
        let echoed =
            if is_plain { Ok(question.to_owned()) } else { Err(Refused::Malformed("that is no validation token")) };
        Some(echoed.inspect_err(|refused| count(hook, refused)))
    }

    /// Checks what a post proves by its head, before its body is read. `word` is the one in its address. A subscription's post proves itself by what
    /// is in it.
    pub async fn admit(&self, hook: Hook, headers: &HeaderMap, word: Option<&str>) -> Result<(), Refused> {
        let admitted = match self.0.proofs.get(hook.spec.hook) {
            None => Ok(()),
            Some(Proof::Closed(_)) => Err(Refused::Closed),
            Some(Proof::Word(wanted)) => {
                let shown =
                    headers.get("x-goog-pubsub-token").map(|value| value.as_bytes()).or(word.map(str::as_bytes));
                if shown.is_some_and(|shown| is_same(shown, wanted)) { Ok(()) } else { Err(Refused::Unproved("token")) }
            }
            Some(Proof::Signed(verifier)) => {
                let bearer = authorization(headers, b"bearer ").and_then(|token| std::str::from_utf8(token).ok());
                match bearer {
                    None => Err(Refused::Unproved("no_bearer")),
                    Some(bearer) => verifier.verify(bearer, self.0.env.clock.now()).await.map_err(|refused| {
                        if refused.is_passing() {
                            Refused::Away(refused.into())
                        } else {
                            Refused::Unproved(refused.code())
                        }
                    }),
                }
            }
        };
        admitted.inspect_err(|refused| count(hook, refused))
    }

    /// Takes a post's body; returns when what it says is durable.
    pub async fn receive(&self, hook: Hook, body: &[u8]) -> Result<(), Refused> {
        let received = async {
            let notices = match (hook.spec.notices)(body) {
                Ok(notices) => notices,
                // Its sender is proved, and would send it again for a week: it does not get better.
                Err(unread) if self.0.proofs.contains_key(hook.spec.hook) => {
                    tracing::warn!("a notice of {} is passed over: {unread}", hook.provider);
                    count(hook, &Refused::Malformed(unread.0));
                    return Ok(());
                }
                Err(unread) => return Err(Refused::Malformed(unread.0)),
            };
            if notices.len() > MOST_IN_ONE {
                return Err(Refused::Malformed("it has too many notices"));
            }
            if let Some(wanted) = self.wanted_path(hook)
                && notices.iter().any(|notice| notice.via.as_deref() != Some(wanted))
            {
                return Err(Refused::Unproved("subscription"));
            }
            if notices.is_empty() { Ok(()) } else { self.0.line.wait(hook.provider, notices).await }
        };
        received.await.inspect_err(|refused| count(hook, refused))
    }

    /// The topic's subscription that every post has to name, if the settings say so.
    fn wanted_path(&self, hook: Hook) -> Option<&str> {
        let Push::Topic(topic) = &hook.spec.push else { return None };
        self.0.env.config.providers.get(topic.subscription).filter(|path| !path.is_empty())
    }
}

/// Compares hashes: texts of different lengths could be told apart by the time it takes to compare them.
fn is_same(shown: &[u8], wanted: &Secret) -> bool {
    Sha256::digest(shown).ct_eq(&Sha256::digest(wanted.reveal())).into()
}

fn count(hook: Hook, refused: &Refused) {
    let labels = [("hook", hook.spec.hook), ("reason", refused.reason())];
    metrics::counter!("tributary_mail_refused_total", &labels).increment(1);
    if let Refused::Unproved(why) = refused {
        tracing::debug!("a post to the hook of {} is refused: {why}", hook.provider);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_the_same_only_as_a_whole() {
        let wanted = Secret::new("correct horse");
        assert!(is_same(b"correct horse", &wanted));
        for other in ["", "correct hors", "correct horse ", "Correct horse"] {
            assert!(!is_same(other.as_bytes(), &wanted), "{other:?}");
        }
    }
}
