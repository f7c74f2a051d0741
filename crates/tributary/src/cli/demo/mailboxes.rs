//! The mailboxes on the stage: how their providers reach this program, and ways to look at their letters.

use std::time::{Duration, Instant};

use domain::shown::clipped;
use engine::mail::check::words::Line as Health;
use engine::mail::check::{self, KEPT_DAYS};
use engine::mail::reading::{self, Asked, Line};
use engine::mail::{left_out, subscriptions};
use engine::{Config, Env};
use fakes::Fakes;

use super::stage::{LOOK_EVERY, Stage};

/// Our project at Google: its topic, and the account that signs what the topic posts.
const TOPIC: &str = "projects/harrow-ridge/topics/mail";
const SIGNER: &str = "push@harrow-ridge.iam.gserviceaccount.example";

/// The settings by which Gmail's topic reaches the address of this program, and proves that it is the one who posts.
pub fn topic_settings(fakes: &Fakes, base_url: &str) -> [(&'static str, String); 4] {
    [
        ("GMAIL_PUBSUB_TOPIC", TOPIC.to_owned()),
        ("GMAIL_PUBSUB_SUBSCRIPTION", fakes.pubsub().subscription()),
        ("GMAIL_PUBSUB_AUDIENCE", hook(base_url)),
        ("GMAIL_PUBSUB_SERVICE_ACCOUNT", SIGNER.to_owned()),
    ]
}

/// Has the topic post to this program from now on.
pub fn subscribe(fakes: &Fakes, config: &Config) {
    let url = hook(&config.base_url());
    fakes.pubsub().push_signed_to(&url, &url, SIGNER);
}

fn hook(base_url: &str) -> String {
    format!("{base_url}/webhooks/gmail")
}

impl Stage {
    /// A mailbox's page.
    pub fn page(&self, provider: &str) -> anyhow::Result<String> {
        Ok(format!("/connections/accounts/{}", self.id(provider)?))
    }

    /// Whether a provider tells of its mailbox's changes.
    pub async fn is_heard(&self, provider: &str) -> anyhow::Result<bool> {
        Ok(subscriptions::is_heard(&self.source(provider).await?, self.env.clock.now()))
    }

    /// Waits until that is so; false when it takes too long.
    pub async fn heard_within(&self, provider: &str, patience: Duration) -> anyhow::Result<bool> {
        let until = Instant::now() + patience;
        while !self.is_heard(provider).await? {
            if Instant::now() > until {
                return Ok(false);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(true)
    }

    /// The letters with these words that are remembered, the newest first.
    pub async fn letters(&self, provider: &str, words: &str) -> anyhow::Result<Vec<Line>> {
        let asked = Asked { mailbox: Some(self.id(provider)?), text: Some(words.to_owned()), ..Asked::default() };
        Ok(reading::list(&self.env, &self.caller(), &asked, None, 20).await?.letters)
    }

    /// The newest letter with these words as soon as it is so and search finds it. None: nobody wants to wait any longer.
    pub async fn letter_when(
        &self,
        provider: &str,
        words: &str,
        patience: Duration,
        is_so: impl Fn(&Line) -> bool,
    ) -> anyhow::Result<Option<Line>> {
        let until = Instant::now() + patience;
        loop {
            let newest = self.letters(provider, words).await?.into_iter().next();
            if let Some(line) = newest.filter(|line| !line.is_pending && is_so(line)) {
                return Ok(Some(line));
            }
            if Instant::now() > until {
                return Ok(None);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Counts the letters that rules have left out.
    pub async fn n_left_out(&self, provider: &str) -> anyhow::Result<i64> {
        let reasons = left_out::count_by_reason(&self.env, &self.caller(), self.id(provider)?).await?;
        Ok(reasons.iter().map(|reason| reason.letters).sum())
    }

    /// Has yesterday's and today's letters of a mailbox counted at its provider, and returns the line that its page shows.
    pub async fn health(&self, provider: &str, patience: Duration) -> anyhow::Result<Health> {
        let (env, caller, id): (&Env, _, _) = (&self.env, self.caller(), self.id(provider)?);
        check::ask(env, &caller, id, &[]).await?;
        let until = Instant::now() + patience;
        loop {
            let listed = check::days(env, &caller, id, KEPT_DAYS).await?;
            let is_counted = !listed.iter().any(|check| check.asked_at.is_some());
            if is_counted || Instant::now() > until {
                return Ok(Health::of(env.providers.label(provider), &listed));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// A letter's subject, for a line of the story.
pub fn subject(line: &Line) -> String {
    clipped(line.head.subject.as_deref().unwrap_or("without a subject"), 60)
}
