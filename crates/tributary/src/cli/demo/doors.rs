//! Three channels, and events that arrive there every few seconds, sent as each provider sends them.

use std::time::Duration;

use anyhow::Context as _;
use domain::{Caller, Secret, TenantId};
use engine::Env;
use engine::channels::{self, NewChannel, Opened};
use engine::intake::providers::Said;
use engine::intake::sample_of;
use store::contacts::NewContact;
use store::tenants;

const EVERY: Duration = Duration::from_secs(4);

/// The contacts of the demo. Other senders stay unmatched, or become contacts.
const PEOPLE: [[&str; 5]; 4] = [
    ["Nora", "Vickery", "nora.vickery@larkfield.example", "+18025550132", "Larkfield Landscaping"],
    ["Wendell", "Strand", "w.strand@stonebrook.example", "+18025550158", "Stonebrook Excavating"],
    ["Priya", "Hollowell", "priya.hollowell@bayview.example", "+18025550171", "Bayview Facilities Group"],
    ["Imre", "Copperline", "imre@copperline.example", "+18025550144", "Copperline Plumbing & Heating"],
];

const TWILIO: &str = "twilio";
const POSTMARK: &str = "postmark";
const GENERIC: &str = "generic";

/// Provider, name, secret, and whether it makes contacts.
const DOORS: [(&str, &str, Option<&str>, bool); 3] = [
    (TWILIO, "Support line", Some("0123456789abcdef0123456789abcdef"), false),
    (POSTMARK, "Inbox", None, true),
    (GENERIC, "Web form and desk", None, false),
];

const EVENTS: [(&str, Said<'static>); 12] = [
    sms("+18025550132", "Hi, Nora from Larkfield. Can the second loader come Thursday before 7?"),
    mail(
        "Wendell Strand",
        "w.strand@stonebrook.example",
        "Fleet service agreement",
        "We read the draft. Clause 4 should say response within 8 hours, not 24. Otherwise fine.",
    ),
    note(
        "web form",
        "odell.trask@example.com",
        "Used generator",
        "Is the 20 kW generator still there? I can pick it up on Saturday.",
    ),
    sms("+18025550158", "Hydraulic leak on the 14-ton, Route 100 site. Who can come today?"),
    mail(
        "Priya Hollowell",
        "priya.hollowell@bayview.example",
        "Certificate of insurance",
        "The board wants the certificate before the 26th. Please name both campuses in it.",
    ),
    note(
        "web form",
        "lena@tamarackbuilders.example",
        "Trencher for a weekend",
        "What does a trencher cost from Friday to Monday, and do you deliver to Waitsfield?",
    ),
    sms("+18025550144", "Imre here. Invoice 1014 is paid, check your account please."),
    mail(
        "Millrace Farm Co-op",
        "purchasing@millrace.example",
        "Skid steer",
        "The feed yard floods in March. Could we have the skid steer two weeks earlier?",
    ),
    note(
        "service desk",
        "dispatch@harrowridge.example",
        "Delivery done",
        "Compact track loader delivered to Larkfield, 1,204 hours on the meter, signed by N. Vickery.",
    ),
    sms("+18025550177", "Do you buy used excavators? 2019, 8 ton, 3,100 hours."),
    mail(
        "Nora Vickery",
        "nora.vickery@larkfield.example",
        "Winter rates",
        "Three months with the snow pusher at 1,900, and one change of edges included: is that still right?",
    ),
    note(
        "service desk",
        "dispatch@harrowridge.example",
        "Breakdown closed",
        "Hose replaced on the 14-ton excavator at the Route 100 site; back at work after 50 minutes.",
    ),
];

const fn sms(from: &'static str, text: &'static str) -> (&'static str, Said<'static>) {
    (TWILIO, Said { name: "", from, subject: "", text })
}

const fn mail(
    name: &'static str,
    from: &'static str,
    subject: &'static str,
    text: &'static str,
) -> (&'static str, Said<'static>) {
    (POSTMARK, Said { name, from, subject, text })
}

const fn note(
    name: &'static str,
    from: &'static str,
    subject: &'static str,
    text: &'static str,
) -> (&'static str, Said<'static>) {
    (GENERIC, Said { name, from, subject, text })
}

pub struct Doors {
    env: Env,
    open: Vec<Opened>,
}

impl Doors {
    pub async fn open(env: &Env) -> anyhow::Result<Self> {
        let tenant_id = tenants::ensure_operator(&mut *env.db.acquire().await?).await?;
        let mut open = Vec::new();
        for (provider, name, secret, auto_create_contacts) in DOORS {
            let new = NewChannel {
                name: name.to_owned(),
                provider: provider.to_owned(),
                secret: secret.map(Secret::new),
                auto_create_contacts,
                ..NewChannel::default()
            };
            open.push(channels::add(env, &Caller::local("demo", tenant_id, false), new).await?);
        }
        introduce(env, tenant_id).await?;
        Ok(Self { env: env.clone(), open })
    }

    /// Sends events for ever. One that is refused is not the end: the next may be accepted.
    pub async fn keep_sending(&self) -> anyhow::Result<()> {
        for (provider, said) in EVENTS.iter().cycle() {
            tokio::time::sleep(EVERY).await;
            let door = self.open.iter().find(|door| door.spec.code == *provider).context("a channel for it")?;
            let base_url = self.env.config.base_url();
            let sample = sample_of(door.spec, &door.secrets, &base_url, self.env.clock.now(), said)
                .context("the channel has no secret to sign with")?;
            let url = format!("{base_url}{}", sample.target);
            match self.env.http.post(&url, &sample.headers, sample.body).await {
                Ok((200..300, _)) => {}
                Ok((status, _)) => tracing::warn!("an event was answered {status}"),
                Err(fault) => tracing::warn!("an event was not answered: {}", fault.in_words()),
            }
        }
        Ok(())
    }
}

async fn introduce(env: &Env, tenant_id: TenantId) -> anyhow::Result<()> {
    let caller = Caller::local("the demo", tenant_id, false);
    for [first, last, email, phone, company] in PEOPLE.map(|person| person.map(str::to_owned)) {
        let new = NewContact {
            email: Some(email),
            phone_number: Some(phone),
            first_name: Some(first),
            last_name: Some(last),
            company: Some(company),
            ..NewContact::default()
        };
        engine::contacts::create(env, &caller, new).await?;
    }
    Ok(())
}
