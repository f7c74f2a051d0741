//! A provider is one description: one that no crate of the program knows is connected, read, kept up to date and told of like the others.

mod provider;
mod server;

use std::sync::{Arc, Mutex};

use chrono::TimeDelta;
use connectors::pull::ALL;
use connectors::pull::complaint::Meaning;
use domain::{Caller, Secret, SourceId, Transport};
use engine::memory::recall::{self, Query};
use engine::pull::{Providers, connect, words};
use serde_json::json;
use store::memory::Mode;
use testkit::Sources;

use self::provider::CRUMBLINE;
use self::server::Bakery;

struct Kitchen {
    t: Sources,
    bakery: Arc<Mutex<Bakery>>,
}

impl Kitchen {
    /// A world that knows one provider more.
    async fn new() -> Self {
        let mut t = Sources::empty().await;
        let bakery: Arc<Mutex<Bakery>> = Arc::default();
        let url = server::start(bakery.clone()).await;
        let env = &mut t.world.env;
        let mut config = (*env.config).clone();
        for (name, value) in [
            ("CRUMBLINE_API_URL", url.clone()),
            ("CRUMBLINE_AUTHORIZE_URL", format!("{url}/authorize")),
            ("CRUMBLINE_TOKEN_URL", format!("{url}/token")),
            ("CRUMBLINE_CLIENT_ID", "us".to_owned()),
            ("CRUMBLINE_CLIENT_SECRET", "canary".to_owned()),
        ] {
            config.providers.set(name, value);
        }
        let known = [ALL, &[CRUMBLINE]].concat();
        env.providers = Arc::new(Providers::new(&config, &env.http, &known).expect("providers"));
        let kitchen = Self { t, bakery };
        kitchen.put("guest", "1", "Ada Thackeray");
        kitchen.order("1", "Forty rye loaves for the harvest supper");
        kitchen.order("2", "A wedding cake with marzipan oranges");
        kitchen
    }

    fn put(&self, kind: &str, id: &str, text: &str) {
        self.bakery.lock().expect("the bakery").put(kind, id, json!({ "text": text }));
    }

    fn order(&self, id: &str, text: &str) {
        self.bakery.lock().expect("the bakery").put("order", id, json!({ "text": text, "guest": "1" }));
    }

    async fn found(&self, text: &str) -> Vec<String> {
        let caller = Caller::local("test", self.t.world.tenant_id, true);
        let query = Query { text: text.into(), k: 10, mode: Mode::Keyword, ..Query::default() };
        let answer = Box::pin(recall::search(&self.t.world.env, &caller, &query)).await.expect("an answer");
        answer.hits.into_iter().map(|hit| hit.external_id).collect()
    }

    async fn last_job(&self, id: SourceId) -> store::jobs::Job {
        self.t.jobs(id).await.remove(0)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_from_outside_is_read_and_kept_up_to_date() {
    let k = Kitchen::new().await;
    let id = k.t.connect(CRUMBLINE).await;
    k.t.run().await;
    assert_eq!(k.last_job(id).await.status.as_str(), "completed", "{:?}", k.last_job(id).await);
    assert_eq!(k.t.documents(id).await, ["guest:1", "order:1", "order:2"]);
    assert_eq!(k.found("marzipan").await, ["order:2"]);
    let ada = k.t.client(id, "guest:1").await.expect("a client");
    assert_eq!((&ada["name"], &ada["facts"]["orders"]), (&json!("Ada Thackeray"), &json!(2)));
    let turns = "select count(*) from tributary.gates where key like 'turns:%:crumbline'";
    assert!(k.t.count(turns).await > 0, "its limit was counted");

    // A change and a deletion, by a delta.
    k.order("1", "Forty spelt loaves for the harvest supper");
    k.bakery.lock().expect("the bakery").put("order", "2", json!({ "is_gone": true }));
    k.t.sync(id).await;
    k.t.run().await;
    let job = k.last_job(id).await;
    assert_eq!((job.kind.as_str(), job.n_updated, job.n_deleted), ("delta", 1, 1), "{job:?}");
    assert_eq!((k.found("spelt").await, k.found("marzipan").await), (vec!["order:1".to_owned()], vec![]));
    let ada = k.t.client(id, "guest:1").await.expect("a client");
    assert_eq!(ada["facts"]["orders"], json!(1), "the facts follow");
}

#[tokio::test(flavor = "multi_thread")]
async fn its_own_refusal_and_its_own_words_are_used() {
    let k = Kitchen::new().await;
    let (env, tenant) = (&k.t.world.env, k.t.world.tenant_id);
    let id = k.t.connect(CRUMBLINE).await;
    k.bakery.lock().expect("the bakery").is_hot = true;
    k.t.run().await;
    let job = k.last_job(id).await;
    assert_eq!(job.error_details[0]["what"], "Crumbline asked us to wait 7 s", "{job:?}");
    assert_eq!((job.status.as_str(), job.error_count), ("pending", 0), "a wait costs no attempt");
    env.clock.advance(TimeDelta::minutes(1));
    k.t.run().await;
    assert_eq!(k.last_job(id).await.status.as_str(), "completed");

    let source = k.t.source(id).await;
    assert_eq!((source.provider.as_str(), source.name.as_str()), ("crumbline", "Harrow Ridge Bakery"));
    let who = env.providers.label(&source.provider);
    let health = words::Health::new(who, &source, None, false);
    assert_eq!(health.what, "everything that Crumbline had at the last sync is stored");
    assert_eq!(words::settings(CRUMBLINE), Some(["CRUMBLINE_CLIENT_ID", "CRUMBLINE_CLIENT_SECRET"]));
    let advice = CRUMBLINE.explain_complaint(Meaning::Wait, Some("OVEN_TOO_HOT"));
    assert_eq!(advice.means, "The oven has to cool down first.");

    // By a key it is the same account; and its sample data is a source of its own.
    let key = Secret::new(server::TOKEN);
    let by_key = connect::with_key(env, tenant, CRUMBLINE, &key, None, Transport::Rest).await.expect("a source");
    assert_eq!(by_key, id);
    let over_mcp = k.t.connect_over(CRUMBLINE, Transport::Mcp, None).await;
    assert!(matches!(over_mcp, Err(connect::ConnectError::NotRead("Crumbline"))), "{over_mcp:?}");
    let samples = connect::with_fixtures(env, tenant, CRUMBLINE).await.expect("a source");
    k.t.run().await;
    assert_eq!(k.t.documents(samples).await, ["order:1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_of_a_provider_that_this_program_does_not_know_is_an_error_that_says_so() {
    let mut k = Kitchen::new().await;
    let id = k.t.connect(CRUMBLINE).await;
    let env = &mut k.t.world.env;
    env.providers = Arc::new(Providers::from_config(&env.config, &env.http).expect("providers"));
    k.t.run().await;
    let job = k.last_job(id).await;
    let what = job.error_details[0]["what"].as_str().unwrap_or_default();
    assert_eq!(
        what, "its provider is unknown: \"crumbline\" is none of hubspot, google_drive, quickbooks, gmail, outlook",
        "{job:?}"
    );
    assert_eq!(k.t.world.env.providers.label("crumbline"), "crumbline", "it is called as its row calls it");
    assert!(k.t.documents(id).await.is_empty());
}
