//! A world with providers: the fakes, a database, and sources that were connected the way a person connects them.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::{Clock, JobId, SourceId, Transport};
use engine::lanes;
use engine::pull::Provider;
use engine::pull::connect::{self, Returned};
use fakes::Fakes;
use serde_json::Value;
use store::jobs::Job;
use store::sources::Source;
use store::{jobs, sources};

use crate::cluster::{self, Database};
use crate::{World, wait_until};

/// The providers by name, for tests that are about one of them.
pub const HUBSPOT: Provider = &connectors::pull::hubspot::SPEC;
pub const DRIVE: Provider = &connectors::pull::drive::SPEC;
pub const QUICKBOOKS: Provider = &connectors::pull::quickbooks::SPEC;
pub const GMAIL: Provider = &connectors::pull::gmail::SPEC;
pub const OUTLOOK: Provider = &connectors::pull::outlook::SPEC;

/// Stands for a browser's session.
const SESSION: &[u8] = b"a session";

pub struct Sources {
    pub world: World,
    pub fakes: Fakes,
}

impl Sources {
    /// Providers that hold the fixtures, and a clock that stands until the test moves it.
    pub async fn new() -> Self {
        Self::with(cluster::cloned(), Clock::fixed(soon()), Fakes::with_fixtures().await, &[]).await
    }

    /// Providers that hold nothing.
    pub async fn empty() -> Self {
        Self::with(cluster::cloned(), Clock::fixed(soon()), Fakes::start().await, &[]).await
    }

    pub async fn with(database: Database, clock: Clock, fakes: Fakes, flags: &[&str]) -> Self {
        let flag = |name: String| format!("--{}", name.to_lowercase().replace('_', "-"));
        let known = settings(&fakes).into_iter().map(|(name, value)| (flag(name), value));
        let settings: Vec<String> = known
            .filter(|(flag, _)| !flags.contains(&flag.as_str())) // the test says otherwise
            .flat_map(|(flag, value)| [flag, value])
            .collect();
        let all: Vec<&str> = settings.iter().map(String::as_str).chain(flags.iter().copied()).collect();
        let world = World::with_flags(database, clock, &all).await;
        Self { world, fakes }
    }

    /// Connects an account over the provider's own pages, which consent by themselves.
    pub async fn connect(&self, provider: Provider) -> SourceId {
        self.connect_over(provider, Transport::Rest, None).await.expect("a source")
    }

    pub async fn connect_over(
        &self,
        provider: Provider,
        transport: Transport,
        reconnect: Option<SourceId>,
    ) -> Result<SourceId, connect::ConnectError> {
        let (env, tenant) = (&self.world.env, self.world.tenant_id);
        let url = connect::authorize(env, tenant, SESSION, provider, reconnect, transport).await?;
        let returned = self.consent(provider, &url).await;
        connect::returned(env, tenant, SESSION, provider, &returned).await
    }

    /// Follows the consent page and returns what the provider sends the person back with.
    pub async fn consent(&self, provider: Provider, url: &str) -> Returned {
        let answer = self.world.env.http.sent_to(url).await.expect("an answer of the provider's").expect("a way back");
        let query = query_of(&answer);
        Returned::read(provider, query.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }

    /// Runs every lane until nothing is due: syncs and what follows from them.
    pub async fn run(&self) -> usize {
        self.world.run_lanes(&lanes::ALL).await
    }

    pub async fn sync(&self, source_id: SourceId) -> JobId {
        self.sync_as(source_id, None).await
    }

    pub async fn sync_as(&self, source_id: SourceId, kind: Option<domain::JobKind>) -> JobId {
        let asked = engine::pull::jobs::sync(&self.world.env, self.world.tenant_id, source_id, kind, "test").await;
        match asked.expect("an answer").expect("a source") {
            engine::pull::jobs::Asked::Started(id) | engine::pull::jobs::Asked::Running(id) => id,
        }
    }

    pub async fn source(&self, id: SourceId) -> Source {
        let mut conn = self.world.conn().await;
        sources::get(&mut conn, self.world.tenant_id, id).await.expect("an answer").expect("a source")
    }

    /// The source's jobs, the newest first.
    pub async fn jobs(&self, id: SourceId) -> Vec<Job> {
        let filter = jobs::Filter { source_id: Some(id), limit: 50, ..jobs::Filter::default() };
        let mut conn = self.world.conn().await;
        jobs::list(&mut conn, self.world.tenant_id, filter).await.expect("jobs")
    }

    /// Names of the source's documents that are not deleted.
    pub async fn documents(&self, id: SourceId) -> Vec<String> {
        sqlx::query_scalar(
            "select external_id from source_documents where source_id = $1 and deleted_at is null
                 and document_type <> 'client' order by external_id",
        )
        .bind(id.0)
        .fetch_all(&mut *self.world.conn().await)
        .await
        .expect("documents")
    }

    /// A client's name, industry, summary and facts.
    pub async fn client(&self, id: SourceId, external_id: &str) -> Option<Value> {
        sqlx::query_scalar(
            "select jsonb_build_object('name', client_name, 'industry', industry, 'summary', summary, 'facts', key_facts)
             from client_intelligence where source_id = $1 and external_id = $2",
        )
        .bind(id.0)
        .bind(external_id)
        .fetch_optional(&mut *self.world.conn().await)
        .await
        .expect("a client")
    }

    /// Returns when a session waits for another's lock; false when none does for long.
    pub async fn is_waited(&self) -> bool {
        let waiting = "select count(*) from pg_locks l join pg_stat_activity a using (pid)
                       where not l.granted and a.datname = current_database()";
        wait_until(Duration::from_secs(8), async || self.count(waiting).await > 0).await
    }

    pub async fn count(&self, sql: &str) -> i64 {
        let sql = sqlx::AssertSqlSafe(sql.to_owned());
        sqlx::query_scalar(sql).fetch_one(&mut *self.world.conn().await).await.expect("a count")
    }
}

/// Settings that lead to the fakes, as environment variables.
pub fn settings(fakes: &Fakes) -> Vec<(String, String)> {
    fakes.settings().into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// An hour later than the database's own time, so that what the database sends now is due.
fn soon() -> DateTime<Utc> {
    Utc::now() + TimeDelta::hours(1)
}

/// The parts of an address after its question mark.
fn query_of(url: &str) -> Vec<(String, String)> {
    let Some((_, query)) = url.split_once('?') else { return Vec::new() };
    let plain = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().replace('+', " ");
    let pair = |part: &str| part.split_once('=').map(|(key, value)| (plain(key), plain(value)));
    query.split('&').filter_map(pair).collect()
}
