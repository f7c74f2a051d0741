//! The stage of the story: a source of every provider, connected as a person would, and ways to look at them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use domain::{Caller, JobId, JobKind, SourceId, TenantId, Transport};
use engine::Env;
use engine::lanes::ingest::Ingest;
use engine::pull::Provider;
use engine::pull::connect::{self, Returned};
use engine::pull::jobs::{self, Asked};
use engine::work::Lane as _;
use fakes::Fakes;
use percent_encoding::percent_decode_str;
use store::jobs::Job;
use store::queue::Queue;
use store::sources::{self, Source};
use store::tenants;

/// Stands for the browser's session in which somebody connects.
const SESSION: &[u8] = b"demonstration";
/// The shortest interval between automatic syncs.
const SYNC_EVERY: Duration = Duration::from_secs(60);
pub const LOOK_EVERY: Duration = Duration::from_millis(200);

pub struct Stage {
    pub env: Env,
    pub fakes: Fakes,
    tenant_id: TenantId,
    sources: HashMap<&'static str, SourceId>,
    begun: Instant,
}

impl Stage {
    /// Connects all of them. No worker runs yet, so that their first syncs begin when everything is in place.
    pub async fn set(env: Env, fakes: Fakes) -> anyhow::Result<Self> {
        let mut conn = env.db.acquire().await?;
        let tenant_id = tenants::ensure_operator(&mut conn).await?;
        drop(conn);
        let mut stage = Self { env, fakes, tenant_id, sources: HashMap::new(), begun: Instant::now() };
        for provider in stage.env.clone().providers.all().iter().copied() {
            stage.fakes.allow_redirect(&connect::redirect_uri(&stage.env, provider));
            let id = stage.connect(provider, None).await?;
            let mut conn = stage.env.db.acquire().await?;
            sources::set_sync_every(&mut conn, tenant_id, id, SYNC_EVERY).await?;
            stage.sources.insert(provider.name, id);
        }
        Ok(stage)
    }

    /// Every provider that has a source here.
    pub fn providers(&self) -> Vec<&'static str> {
        self.env.providers.all().iter().map(|provider| provider.name).collect()
    }

    /// One line of the story, and the page that shows it.
    pub fn say(&self, words: &str, page: &str) {
        let secs = self.begun.elapsed().as_secs();
        let (minutes, secs, base_url) = (secs / 60, secs % 60, self.env.config.base_url());
        super::say(&format!("  {minutes:>2}:{secs:02}  {words}  → {base_url}{page}"));
    }

    /// The way through a browser: to the provider, where consent is given at once, and back.
    async fn connect(&self, provider: Provider, reconnect: Option<SourceId>) -> anyhow::Result<SourceId> {
        let there =
            connect::authorize(&self.env, self.tenant_id, SESSION, provider, reconnect, Transport::Rest).await?;
        let back = self.env.http.sent_to(&there).await.map_err(|fault| anyhow!(fault.in_words()))?;
        let returned = returned(provider, &back.context("the provider sends nobody back")?);
        Ok(connect::returned(&self.env, self.tenant_id, SESSION, provider, &returned).await?)
    }

    pub async fn reconnect(&self, provider: &str) -> anyhow::Result<()> {
        self.connect(self.env.providers.named(provider)?, Some(self.id(provider)?)).await.map(|_| ())
    }

    pub fn id(&self, provider: &str) -> anyhow::Result<SourceId> {
        self.sources.get(provider).copied().context("a source that is connected")
    }

    pub fn caller(&self) -> Caller {
        Caller::local("demonstration", self.tenant_id, true)
    }

    pub async fn source(&self, provider: &str) -> anyhow::Result<Source> {
        let mut conn = self.env.db.acquire().await?;
        sources::get(&mut conn, self.tenant_id, self.id(provider)?).await?.context("the source is gone")
    }

    /// Counts the provider's documents whose type begins with `types`.
    pub async fn held(&self, provider: &str, types: &str) -> anyhow::Result<i64> {
        let mut conn = self.env.db.acquire().await?;
        let counts = sources::counts(&mut conn, self.tenant_id, self.id(provider)?).await?;
        Ok(counts.iter().filter(|(name, _)| name.starts_with(types)).map(|(_, n)| n).sum())
    }

    /// Asks for a sync. Where one is under way by itself, that is it.
    pub async fn sync(&self, provider: &str, kind: Option<JobKind>) -> anyhow::Result<JobId> {
        let asked = jobs::sync(&self.env, self.tenant_id, self.id(provider)?, kind, "the demonstration").await?;
        match asked.context("the source is gone")? {
            Asked::Started(id) | Asked::Running(id) => Ok(id),
        }
    }

    pub async fn job(&self, id: JobId) -> anyhow::Result<Job> {
        let mut conn = self.env.db.acquire().await?;
        store::jobs::get(&mut conn, self.tenant_id, id).await?.context("the job is gone")
    }

    /// The job as soon as it is so, or as it is when nobody wants to wait any longer.
    pub async fn job_when(
        &self,
        id: JobId,
        patience: Duration,
        is_so: impl Fn(&Job) -> bool,
    ) -> anyhow::Result<(Job, bool)> {
        let until = Instant::now() + patience;
        loop {
            let job = self.job(id).await?;
            let is_it = is_so(&job);
            if is_it || Instant::now() > until {
                return Ok((job, is_it));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// The job when it is over.
    pub async fn ended(&self, id: JobId, patience: Duration) -> anyhow::Result<Job> {
        Ok(self.job_when(id, patience, |job| job.status.is_over()).await?.0)
    }

    /// Waits until nothing is read from a provider, so that what is asked for next is what runs.
    pub async fn quiet(&self, provider: &str, patience: Duration) -> anyhow::Result<()> {
        let until = Instant::now() + patience;
        while self.source(provider).await?.live_job.is_some() && Instant::now() < until {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// The process id of the worker that has a job in hand.
    pub async fn holder(&self, id: JobId) -> anyhow::Result<Option<u32>> {
        let mut conn = self.env.db.acquire().await?;
        let Some(item) = store::jobs::item(&mut conn, self.tenant_id, id).await? else { return Ok(None) };
        let item = Queue::new(Ingest::NAME)?.get(&mut conn, self.env.clock.sql(), &self.caller(), item).await?;
        // It signs with its host and its process id.
        let name = item.and_then(|item| item.held_by);
        Ok(name.and_then(|name| name.rsplit(':').next()?.parse().ok()))
    }
}

/// Reads the address that a provider sends a person back to.
fn returned(provider: Provider, address: &str) -> Returned {
    let query = address.split_once('?').map_or("", |(_, query)| query);
    let plain = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let pairs = query.split('&').filter_map(|pair| pair.split_once('=')).map(|(name, value)| (name, plain(value)));
    let pairs: Vec<(&str, String)> = pairs.collect();
    Returned::read(provider, pairs.iter().map(|(name, value)| (*name, value.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_back_is_read_as_a_browser_would() {
        let back = returned(
            &connectors::pull::quickbooks::SPEC,
            "http://127.0.0.1:7172/oauth/quickbooks/callback?code=a%2Db%5Fc&realmId=913&state=s%20t&other=1",
        );
        assert_eq!(
            (back.state.as_str(), back.code.as_deref(), back.account.as_deref()),
            ("s t", Some("a-b_c"), Some("913"))
        );
        let returned = |address: &str| returned(connectors::pull::ALL[0], address);
        assert_eq!(returned("http://x/callback?error=access_denied&state=s").error.as_deref(), Some("access_denied"));
        assert_eq!(returned("http://x/callback").code, None);
    }
}
