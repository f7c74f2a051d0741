//! Words for a person who sets up a channel: the form that fits the provider, the steps there in order, and what to do about each refusal.
//! Each provider's folder holds its own.

use connectors::guide::{Advice, Group, Mark, Step, by_reason};

use super::ChannelSpec;
use crate::intake::refusals::ADVICE;

/// The way to a channel's first event, for people.
pub struct ChannelGuide {
    pub group: Group,
    pub mark: Mark,
    /// The sender in a sentence, such as "Receive from …".
    pub who: &'static str,
    /// Other words by which people look for it.
    pub also: &'static str,
    /// The name of a channel, as an example.
    pub example: &'static str,
    /// The field for a secret when a channel is added. None: everything is made here.
    pub secret: Option<GivenSecret>,
    /// The steps at the provider once there is a channel, in order.
    pub steps: &'static [Step],
    /// Explains the reasons of its verifier and its normaliser. They go before those that every channel has.
    pub refusals: &'static [Advice],
    /// Senders that are set up in a way of their own, and need no provider of their own.
    pub senders: &'static [Sender],
}

/// A field for a secret that a person has from the provider.
#[derive(Clone, Copy, Debug)]
pub struct GivenSecret {
    pub label: &'static str,
    /// Says where it is found.
    pub hint: &'static str,
}

/// A known sender that uses a provider's channels.
pub struct Sender {
    /// The word for it in addresses.
    pub code: &'static str,
    pub label: &'static str,
    /// The things that it sends.
    pub sends: &'static str,
    pub group: Group,
    pub mark: Mark,
    pub also: &'static str,
    pub example: &'static str,
    /// It does not repeat what is over a limit, so its channels have none.
    pub has_no_limit: bool,
    pub steps: &'static [Step],
}

impl ChannelGuide {
    pub fn sender(&self, code: &str) -> Option<&'static Sender> {
        self.senders.iter().find(|sender| sender.code == code)
    }
}

/// Says what to do about a refusal, by the reason that its channel's owner reads. None: nothing is known about it.
pub fn explain(spec: &ChannelSpec, reason: &str) -> Option<&'static Advice> {
    by_reason(spec.guide.refusals, reason).or_else(|| by_reason(&ADVICE, reason))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use connectors::guide::{Gives, absent, faults_of};
    use connectors::pull;

    use super::super::{BUILT_IN, ChannelProviders};
    use super::*;

    /// The sources of the verifiers, whose reasons have to be explained. A new provider adds its own.
    fn verifier_of(spec: &ChannelSpec) -> &'static str {
        match spec.code {
            "twilio" => include_str!("twilio/verify.rs"),
            "postmark" => include_str!("postmark/verify.rs"),
            "generic" => include_str!("generic/verify.rs"),
            code => panic!("name the verifier of {code} here"),
        }
    }

    /// The texts that are returned as errors.
    fn reasons(source: &'static str) -> Vec<&'static str> {
        let source = source.split("#[cfg(test)]").next().unwrap_or_default();
        let after = source.split("Err(").skip(1).map(str::trim_start);
        after.filter_map(|text| text.strip_prefix('"')?.split('"').next()).collect()
    }

    #[test]
    fn every_reason_of_a_verifier_is_explained_by_its_provider() {
        for spec in BUILT_IN {
            let reasons = reasons(verifier_of(spec));
            assert!(reasons.len() >= 2, "{}: {reasons:?}", spec.code);
            for reason in reasons {
                assert!(by_reason(spec.guide.refusals, reason).is_some(), "{} does not explain {reason:?}", spec.code);
            }
        }
    }

    #[test]
    fn every_provider_and_sender_has_a_mark_of_its_own_and_steps() {
        let mut marks: HashSet<&str> = absent::ALL.iter().map(|absent| absent.mark.0).collect();
        marks.extend(pull::ALL.iter().map(|provider| provider.guide.mark.0));
        for spec in BUILT_IN {
            let guide = &spec.guide;
            let faults = faults_of(guide.mark, guide.steps, guide.refusals);
            assert!(faults.is_empty(), "{}: {faults:?}", spec.code);
            assert!(marks.insert(guide.mark.0), "{} has another's mark", spec.code);
            assert!(!guide.also.is_empty() && !guide.example.is_empty() && !guide.refusals.is_empty(), "{}", spec.code);
            assert_eq!(guide.secret.is_some(), spec.given().is_some(), "{}: the field for a secret", spec.code);
            has_good_steps(spec, guide.steps);
            for sender in guide.senders {
                let faults = faults_of(sender.mark, sender.steps, &[]);
                assert!(faults.is_empty(), "{}: {faults:?}", sender.code);
                assert!(marks.insert(sender.mark.0), "{} has another's mark", sender.code);
                assert!(guide.sender(sender.code).is_some_and(|found| found.label == sender.label));
                has_good_steps(spec, sender.steps);
            }
        }
    }

    /// They show the URL, and only secrets that the channel has and may show.
    fn has_good_steps(spec: &ChannelSpec, steps: &[Step]) {
        assert!(steps.iter().any(|step| step.gives == Gives::WebhookUrl), "{}", spec.code);
        for step in steps {
            match step.gives {
                Gives::Nothing | Gives::WebhookUrl => {}
                Gives::Secret(name) => {
                    assert!(spec.proofs.iter().any(|proof| proof.name == name && proof.is_shown), "{name}");
                }
                gives => panic!("{}: a webhook has no {gives:?}", spec.code),
            }
        }
    }

    #[test]
    fn what_is_used_instead_is_there() {
        use connectors::guide::absent::Way;
        let providers = ChannelProviders::default();
        for absent in &absent::ALL {
            for way in absent.instead {
                let is_there = match way {
                    Way::Webhook(code) => providers.find(code).is_ok(),
                    Way::Account(name) => pull::ALL.iter().any(|provider| provider.name == *name),
                    Way::Files => true,
                };
                assert!(is_there, "{}: {way:?}", absent.label);
            }
        }
    }
}
