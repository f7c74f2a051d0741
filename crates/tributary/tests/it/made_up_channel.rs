//! A provider of webhooks that the product does not know. One description, made of the engine's public types alone, gives it a URL and a
//! guard of its own, and its events are found by a search.

use std::sync::Arc;
use std::time::Duration;

use domain::{ActivityType, Caller, Direction, Scope, Secret, hex};
use engine::channels::{self, NewChannel};
use engine::intake::guard::proof::{Signed, keyed};
use engine::intake::guard::{KeyMaterial, Request, Verification, Verifier, Why};
use engine::intake::normalise::fields::quoted;
use engine::intake::normalise::object::{Metadata, Object};
use engine::intake::normalise::{Malformed, Normal, Parties, Sent};
use engine::intake::providers::{
    ChannelGuide, ChannelSpec, NextStep, Origin, ProofSpec, Reply, Said, SampleSpec, Told, no_login, plain_url,
};
use engine::intake::{ChannelProviders, Intake};
use engine::pull::guide::{Advice, Gives, Group, Mark, Step};
use engine::work::Stop;
use hmac::Mac as _;
use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::Value;
use testkit::{World, wait_until};

use crate::app::client;

/// Pagers send `number|text`, and sign it.
static PAGER: ChannelSpec = ChannelSpec {
    code: "pager",
    label: "Pager",
    choice: ("Pager", "numbers and a few words"),
    usual_limit: None,
    proofs: &[ProofSpec {
        name: "pager_code",
        label: "pager code",
        origin: Origin::Made(|| store::keys::new_secret("pager_")),
        is_shown: true,
    }],
    takes_shared_keys: false,
    networks: None,
    verifier: |material: &KeyMaterial| {
        Arc::new(Keys(material.two("pager_code").map(|secret| keyed(secret.reveal().as_bytes()))))
    },
    normalise,
    large_body: None,
    reply: Reply { status: 200, plain: Some(("text/plain", "beep")) },
    url: plain_url,
    sample: SampleSpec {
        says: Said { name: "", from: "+14158675309", subject: "", text: "A test page." },
        make: |sending, said| {
            let body = format!("{}|{}", said.from, said.text);
            let signature = sign(sending.secrets.proofs.get("pager_code")?, &body);
            Some((vec![("x-pager-signature", signature), ("content-type", "text/plain".into())], body))
        },
    },
    load: None,
    recording_login: no_login,
    told: Told {
        new_secret: None,
        keep_private: "Keep these private.",
        next_step: |_, url, _| NextStep { text: format!("Type {url} into the pager."), command: None },
    },
    guide: ChannelGuide {
        group: Group::Calls,
        mark: Mark(r#"<path class="soft" d="M4 8h16v8H4z"/>"#),
        who: "a pager",
        also: "beeper",
        example: "night shift",
        secret: None,
        steps: &[Step {
            title: "Type it in",
            text: "Type the URL into the pager, letter by letter.",
            gives: Gives::WebhookUrl,
        }],
        refusals: &[Advice {
            says: "the pager's signature does not match",
            means: "Another pager signed it.",
            todo: "Look at the number on its back.",
        }],
        senders: &[],
    },
};

struct Keys([hmac::Hmac<sha2::Sha256>; 2]);
struct Check(Option<Signed>);

impl Verifier for Keys {
    fn begin(self: Arc<Self>, request: &Request) -> Box<dyn Verification> {
        let said = request.text("x-pager-signature").map(|said| hex::decode(said).into_iter().collect());
        Box::new(Check(said.map(|said| Signed { macs: self.0.clone(), said, is_timely: true })))
    }
}

impl Verification for Check {
    fn update(&mut self, piece: &[u8]) {
        if let Some(signed) = &mut self.0 {
            signed.update(piece);
        }
    }

    fn verdict(&self, _: &[u8]) -> Result<(), Why> {
        match &self.0 {
            Some(signed) if signed.passes() => Ok(()),
            Some(_) => Err("the pager's signature does not match"),
            None => Err("it has no pager's signature"),
        }
    }
}

fn normalise(sent: &Sent) -> Result<Normal, Malformed> {
    let text = std::str::from_utf8(sent.body).map_err(|_| Malformed("it is not UTF-8"))?;
    let (from, text) = text.split_once('|').ok_or(Malformed("a page is number|text"))?;
    let (mut raw_data, mut metadata) = (Object::default(), Metadata::default());
    raw_data.push("source_type", r#""text""#);
    raw_data.push("content", &quoted(text)?);
    metadata.push("from", &quoted(from)?)?;
    let parties = Parties { from: Some(from.to_owned()), to: None };
    let direction = Direction::Inbound;
    let party = parties.keys(direction, sent.region, &mut metadata)?;
    Ok(Normal {
        r#type: ActivityType::Other,
        direction,
        raw_data: raw_data.finish(),
        metadata,
        event_key: None,
        files: Vec::new(),
        party,
    })
}

fn sign(secret: &Secret, body: &str) -> String {
    hex::encode(keyed(secret.reveal().as_bytes()).chain_update(body).finalize().into_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_from_outside_is_one_description() {
    let mut world = World::now().await;
    world.env.channel_providers = Arc::new(ChannelProviders::default().with(&PAGER));
    let (env, tenant_id) = (world.env.clone(), world.tenant_id);
    let new = NewChannel { name: "night shift".into(), provider: "pager".into(), ..NewChannel::default() };
    let channel = channels::add(&env, &Caller::local("test", tenant_id, false), new).await.expect("a channel");
    let secret = channel.secrets.proofs.get("pager_code").expect("a secret").clone();

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (metrics, stop) = (PrometheusBuilder::new().build_recorder().handle(), Stop::default());
    let serving = tokio::spawn(web::serve(env.clone(), listener, metrics, stop.clone()));
    let send = async |body: &str, signature: String| {
        let request = client().post(format!("{url}/ingest/{}", channel.secrets.ingestion_key.reveal()));
        let request = request.header("x-pager-signature", signature).body(body.to_owned());
        let answer = request.send().await.expect("an answer");
        let id = answer.headers().get("x-activity-id").map(|id| id.to_str().expect("an id").to_owned());
        (answer.status().as_u16(), id, answer.text().await.expect("text"))
    };

    // Its own signature opens it, and it is answered in its own way.
    let body = "+1 415 867 5309|The boiler in the east wing is humming.";
    let (status, id, said) = send(body, sign(&secret, body)).await;
    assert_eq!((status, said.as_str()), (200, "beep"));
    let id = id.expect("an id");
    // Another's does not, and the owner reads why.
    let (status, ..) = send(body, sign(&Secret::new("another"), body)).await;
    assert_eq!(status, 401);
    let refused = async || {
        channels::refusals(&env, &Caller::local("test", tenant_id, false), channel.id, 10).await.expect("refusals")
    };
    assert!(wait_until(Duration::from_secs(5), async || !refused().await.is_empty()).await);
    let reasons: Vec<(i32, String)> =
        refused().await.into_iter().map(|one| (one.refusal.status, one.refusal.reason)).collect();
    assert_eq!(reasons, [(401, "the pager's signature does not match".to_owned())]);
    // Signed, and no page.
    assert_eq!(send("nothing", sign(&secret, "nothing")).await.0, 400);

    // The gallery has it, its page has a form that fits, and the channel's own page says what to do about the refusal.
    let (_, owner) = world.caller(tenant_id, &[Scope::Service]).await;
    let page = async |path: String| {
        let asked = client().get(format!("{url}{path}")).bearer_auth(owner.reveal()).header("accept", "text/html");
        asked.send().await.expect("an answer").text().await.expect("a page")
    };
    assert!(page("/connections".into()).await.contains("/connections/webhooks/new/pager"));
    let form = page("/connections/webhooks/new/pager".into()).await;
    assert!(form.contains("Receive from a pager") && !form.contains("name=\"secret\""), "{form}");
    let own = page(format!("/connections/webhooks/{}", channel.id)).await;
    assert!(own.contains("Look at the number on its back."), "{own}");

    // It is an activity, and a search finds it.
    let mut conn = world.conn().await;
    let (content, from_key): (String, String) =
        sqlx::query_as("select raw_data ->> 'content', metadata ->> 'from_key' from activities where id = $1::uuid")
            .bind(&id)
            .fetch_one(&mut *conn)
            .await
            .expect("an activity");
    assert_eq!((content.as_str(), from_key.as_str()), ("The boiler in the east wing is humming.", "+14158675309"));
    world.run_upkeep().await;
    let (_, key) = world.caller(tenant_id, &[Scope::Read]).await;
    let search = client().get(format!("{url}/api/v1/search?q=humming+boiler")).bearer_auth(key.reveal());
    let found: Value = search.send().await.expect("an answer").json().await.expect("JSON");
    assert_eq!(found["hits"][0]["external_id"], format!("activity:{id}"), "{found}");
    assert!(found["hits"][0]["snippet"].as_str().is_some_and(|text| text.contains("east wing")), "{found}");

    // A person can test it and give it new secrets.
    let intake = Intake::new(env.clone());
    let committing = tokio::spawn(intake.clone().commit());
    channels::send_test(&env, &intake, &Caller::local("test", tenant_id, false), channel.id)
        .await
        .expect("an act")
        .expect("a test event");
    let rotation = channels::Rotation { keep_hours: Some(0), ..channels::Rotation::default() };
    let rotated = channels::rotate(&env, &Caller::local("test", tenant_id, false), channel.id, rotation)
        .await
        .expect("a rotation");
    assert_ne!(rotated.secrets.proofs.get("pager_code"), Some(&secret));
    committing.abort();
    stop.stop();
    serving.await.expect("an end").expect("a clean end");
}

#[tokio::test]
async fn a_row_with_an_unknown_word_is_an_error_that_names_it() {
    let world = World::now().await;
    let mut known = world.env.clone();
    known.channel_providers = Arc::new(ChannelProviders::default().with(&PAGER));
    let new = NewChannel { name: "night shift".into(), provider: "pager".into(), ..NewChannel::default() };
    let refused = channels::add(&world.env, &Caller::local("test", world.tenant_id, false), new.clone())
        .await
        .err()
        .expect("a refusal");
    assert_eq!(refused.to_string(), "\"pager\" is no provider of webhooks; there are twilio, postmark and generic");
    let channel = channels::add(&known, &Caller::local("test", world.tenant_id, false), new).await.expect("a channel");
    let refused = channels::open(&world.env, &Caller::local("test", world.tenant_id, false), channel.id)
        .await
        .err()
        .expect("a refusal");
    assert!(refused.to_string().starts_with("\"pager\" is no provider"), "{refused}");
}
