//! A world with mailboxes at the made-up providers.

use std::sync::{Arc, Mutex, MutexGuard};

use chrono::TimeDelta;
use connectors::pull::{ALL, Provider};
use domain::{Secret, SourceId, SourceStatus, Transport};
use engine::mail::notices::{Notices, Refused};
use engine::mail::{pending, subscriptions};
use engine::pull::{Providers, connect, jobs};
use serde_json::{Value, json};
use store::jobs::Job;
use store::mail::pending::Pending;
use testkit::Sources;
use tokio::task::JoinHandle;

use super::provider::{LARK, LOFT, Loft, PIGEON};

pub const HOOK: &str = "https://hear.example.com";

pub struct Post {
    pub t: Sources,
    pub notices: Notices,
    loft: Arc<Mutex<Loft>>,
    writing: JoinHandle<()>,
}

impl Drop for Post {
    fn drop(&mut self) {
        self.writing.abort();
    }
}

impl Post {
    /// A world that providers can reach.
    pub async fn new() -> Self {
        Self::with(&[], |config| config.mailbox_hook_url = Some(HOOK.into())).await
    }

    pub async fn with(settings: &[(&str, &str)], change: impl FnOnce(&mut engine::Config)) -> Self {
        let mut t = Sources::empty().await;
        let env = &mut t.world.env;
        let (name, loft) = Loft::build(env.clock.clone());
        let mut config = (*env.config).clone();
        config.providers.set(LOFT.env, name);
        for (name, value) in settings {
            config.providers.set(name, *value);
        }
        change(&mut config);
        let known = [ALL, &[PIGEON, LARK]].concat();
        env.providers = Arc::new(Providers::new(&config, &env.http, &known).expect("providers"));
        env.config = Arc::new(config);
        let notices = Notices::new(env.clone());
        let writing = tokio::spawn(notices.clone().write());
        Self { t, notices, loft, writing }
    }

    pub fn loft(&self) -> MutexGuard<'_, Loft> {
        self.loft.lock().expect("the loft")
    }

    /// A mailbox that was read once.
    pub async fn connect_at(&self, provider: Provider) -> SourceId {
        let (env, tenant) = (&self.t.world.env, self.t.world.tenant_id);
        let key = Secret::new("ring-1");
        let id = connect::with_key(env, tenant, provider, &key, None, Transport::Rest).await.expect("a source");
        self.t.run().await;
        id
    }

    /// The same, told of, with all read that was to be read.
    pub async fn connect(&self, provider: Provider) -> SourceId {
        let id = self.connect_at(provider).await;
        self.keep().await;
        for _ in 0..3 {
            self.t.run().await;
            self.advance(10);
            jobs::sync_due(&self.t.world.env).await.expect("started"); // the look that follows a notice of nothing
        }
        self.t.run().await;
        self.advance(10); // it has rested
        assert_eq!(self.pending(id).await.map(|row| row.status), None, "what followed the subscription is read");
        id
    }

    /// The same where notices wake nobody.
    pub async fn connect_quietly(&self) -> SourceId {
        let id = self.connect_at(PIGEON).await;
        self.keep().await;
        self.advance(60);
        self.start().await;
        self.t.run().await;
        self.advance(10);
        assert_eq!(self.pending(id).await.map(|row| row.status), None, "what followed the subscription is read");
        id
    }

    /// How often a subscription was made, renewed and removed.
    pub fn asked(&self) -> (usize, usize, usize) {
        let loft = self.loft();
        (loft.n_subscribed, loft.n_renewed, loft.n_removed)
    }

    /// One look after subscriptions.
    pub async fn keep(&self) {
        subscriptions::keep(&self.t.world.env).await.expect("kept");
    }

    /// One look after what was heard.
    pub async fn start(&self) {
        pending::keep(&self.t.world.env).await.expect("started");
    }

    pub fn advance(&self, secs: i64) {
        self.t.world.env.clock.advance(TimeDelta::seconds(secs));
    }

    pub async fn post(&self, hook: &str, body: &Value) -> Result<(), Refused> {
        let hook = self.notices.hook(hook).expect("a hook");
        self.notices.receive(hook, body.to_string().as_bytes()).await
    }

    /// A good notice of the newest subscription.
    pub fn good(&self, tells: &str) -> Value {
        let made = self.loft().made.last().expect("a subscription").clone();
        json!({ "of": made.id, "state": made.client_state, "tells": tells })
    }

    pub async fn tell(&self, tells: &str) {
        let notice = self.good(tells);
        self.post("pigeon", &json!([notice])).await.expect("taken");
    }

    pub async fn pending(&self, id: SourceId) -> Option<Pending> {
        let mut conn = self.t.world.conn().await;
        store::mail::pending::get(&mut conn, self.t.world.tenant_id, id).await.expect("an answer")
    }

    pub async fn status(&self, id: SourceId) -> SourceStatus {
        self.t.source(id).await.status
    }

    /// The jobs that notices asked for, the newest first.
    pub async fn pushed(&self, id: SourceId) -> Vec<Job> {
        let jobs = self.t.jobs(id).await;
        jobs.into_iter().filter(|job| job.requested_by == pending::BY).collect()
    }

    pub async fn sql(&self, sql: &'static str) {
        sqlx::raw_sql(sql).execute(&mut *self.t.world.conn().await).await.expect("done");
    }
}
