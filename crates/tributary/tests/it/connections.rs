//! Connections as a person sets them up: the gallery, a page per provider with checks and remedies, masked secrets, and test commands that
//! work when they are pasted into a shell.

use std::process::Command;
use std::time::Duration;

use connectors::guide::{absent, oauth};
use connectors::pull;
use domain::{Scope, Secret};
use engine::intake::ChannelProviders;
use testkit::{World, wait_until};

use crate::app::{App, Folder, client, run};
use crate::browser::serve;
use crate::channels::TOKEN;
use crate::source_pages::House;

const SOON: Duration = Duration::from_secs(10);

/// A browser that is signed in, without its engine.
pub struct Desk<'a> {
    app: &'a App,
    cookie: String,
    csrf: String,
}

impl<'a> Desk<'a> {
    pub async fn new(app: &'a App, key: &Secret) -> Self {
        let signed = client().post(format!("{}/signin", app.url)).header("origin", &app.url);
        let signed = signed.form(&[("key", key.reveal())]).send().await.expect("an answer");
        let cookie = signed.headers()["set-cookie"].to_str().expect("a cookie");
        let cookie = cookie.split(';').next().expect("a value").to_owned();
        let mut desk = Self { app, cookie, csrf: String::new() };
        let (_, page) = desk.page("/connections").await;
        let csrf = page.split("name=\"csrf\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
        desk.csrf = csrf.expect("a token").to_owned();
        desk
    }

    pub async fn page(&self, path: &str) -> (u16, String) {
        let asked = client().get(format!("{}{path}", self.app.url)).header("cookie", &self.cookie);
        let answer = asked.header("accept", "text/html").send().await.expect("an answer");
        (answer.status().as_u16(), answer.text().await.expect("a page"))
    }

    /// Sends a form. Returns the status, where it leads to, and the page.
    pub async fn post(&self, path: &str, fields: &[(&str, &str)]) -> (u16, String, String) {
        let mut form = vec![("csrf", self.csrf.as_str())];
        form.extend_from_slice(fields);
        let request = client().post(format!("{}{path}", self.app.url)).header("cookie", &self.cookie);
        let answer = request.header("origin", &self.app.url).form(&form).send().await.expect("an answer");
        let to = answer.headers().get("location").map(|to| to.to_str().expect("an address").to_owned());
        (answer.status().as_u16(), to.unwrap_or_default(), answer.text().await.expect("a page"))
    }
}

/// The text of an attribute, as a browser reads it.
fn unescaped(text: &str) -> String {
    let pairs = [("&#34;", "\""), ("&quot;", "\""), ("&#39;", "'"), ("&#60;", "<"), ("&lt;", "<"), ("&#62;", ">")];
    let text = pairs.iter().fold(text.to_owned(), |text, (code, sign)| text.replace(code, sign));
    text.replace("&gt;", ">").replace("&#38;", "&").replace("&amp;", "&")
}

/// The value of the field that has this label.
fn field<'a>(page: &'a str, label: &str) -> Option<&'a str> {
    let (before, _) = page.split_once(&format!("\" aria-label=\"{label}\""))?;
    before.rsplit_once("value=\"").map(|(_, value)| value)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_test_command_of_every_channel_works_when_it_is_pasted() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    let (_, key) = world.caller(world.tenant_id, &[Scope::Service]).await;
    let desk = Desk::new(&app, &key).await;
    for spec in ChannelProviders::default().all() {
        let code = spec.code;
        let (status, form) = desk.page(&format!("/connections/webhooks/new/{code}")).await;
        assert_eq!(status, 200, "{code}");
        // The form has the field for a secret where people have one.
        assert_eq!(form.contains("name=\"secret\""), spec.guide.secret.is_some(), "{code}");
        let secret = if spec.needs_secret() { TOKEN } else { "" };
        let fields = [("provider", code), ("name", spec.label), ("secret", secret)];
        let (status, own, _) = desk.post("/connections/webhooks", &fields).await;
        assert_eq!(status, 303, "{code}");
        let (_, page) = desk.page(&own).await;
        assert!(page.contains("Waiting for the first event"), "{code}: {page}");
        assert!(page.contains(spec.guide.steps[0].title), "{code}");
        assert!(!page.contains("curl -sS"), "{code}: the command is there before somebody asks for it");

        let own = own.split('?').next().expect("an address");
        let (status, _, shown) = desk.post(&format!("{own}/reveal"), &[]).await;
        assert_eq!(status, 200, "{code}");
        let command = unescaped(field(&shown, "A command that sends a test event").expect("a command"));
        let pasted = command.clone();
        let ran = tokio::task::spawn_blocking(move || run(Command::new("sh").args(["-c", &pasted])));
        let (output, said, error) = ran.await.expect("an end");
        assert!(output.status.success() && !said.contains("/problems/"), "{code}: {command}\n{said}{error}");
        let has_arrived = async || desk.page(own).await.1.contains("Events arrive.");
        assert!(wait_until(SOON, has_arrived).await, "{code}: {command}\n{said}");
    }
    let n: i64 = sqlx::query_scalar("select count(*) from activities")
        .fetch_one(&mut *world.conn().await)
        .await
        .expect("a number");
    assert_eq!(n, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_masked_until_somebody_who_may_asks_and_the_log_says_who() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    let (_, key) = world.caller(world.tenant_id, &[Scope::Service]).await;
    let (_, member) = world.caller(world.tenant_id, &[Scope::Read, Scope::Write]).await;
    let desk = Desk::new(&app, &key).await;
    for code in ["generic", "postmark"] {
        let (_, own, _) = desk.post("/connections/webhooks", &[("provider", code), ("name", code)]).await;
        let own = own.split('?').next().expect("an address");
        let reveal = format!("{own}/reveal");
        let (_, _, shown) = desk.post(&reveal, &[]).await;
        let secret = match code {
            "generic" => unescaped(field(&shown, "Webhook secret").expect("a secret")),
            _ => unescaped(field(&shown, "Webhook URL").expect("a URL")),
        };
        assert!(!secret.contains('•') && shown.contains("Hide them again"), "{code}: {secret}");
        for path in [own, &reveal, "/connections", "/connections/webhooks"] {
            let (status, page) = desk.page(path).await;
            assert!(status == 200 && !unescaped(&page).contains(&secret), "{code}: {path} shows {secret}");
        }
        let visitor = Desk::new(&app, &member).await;
        let (status, page) = visitor.page(own).await;
        assert!(status == 200 && !page.contains("/ingest/") && !page.contains("/reveal"), "{page}");
        assert_eq!(visitor.post(&reveal, &[]).await.0, 403, "{code}");
    }
    assert!(app.printed().contains("was shown with its secrets by key"), "{}", app.printed());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gallery_has_everything_and_says_what_to_use_for_what_is_missing() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    let (_, key) = world.caller(world.tenant_id, &[Scope::Service]).await;
    let desk = Desk::new(&app, &key).await;
    let (_, page) = desk.page("/connections").await;
    for provider in pull::ALL {
        assert!(page.contains(&format!("href=\"/connections/accounts/new/{provider}\"")), "{provider}");
    }
    for spec in ChannelProviders::default().all() {
        assert!(page.contains(&format!("href=\"/connections/webhooks/new/{}\"", spec.code)), "{}", spec.code);
        for sender in spec.guide.senders {
            let address = format!("/connections/webhooks/new/{}?sender={}", spec.code, sender.code);
            assert!(page.contains(&format!("href=\"{address}\"")), "{}", sender.code);
            let (status, form) = desk.page(&address).await;
            assert!(status == 200 && form.contains(&format!("Receive from {}", sender.label)), "{address}");
        }
    }
    for absent in &absent::ALL {
        assert!(page.contains(absent.label), "{}", absent.label);
    }
    // Without a script the form is sent, and what does not fit is hidden.
    let (_, narrow) = desk.page("/connections?q=XERO").await;
    let tile = |label: &str| {
        let (before, _) = narrow.split_once(&format!("{label}</")).expect(label);
        before.rsplit_once("<li ").map(|(_, tile)| tile.split('>').next().unwrap_or_default().to_owned())
    };
    assert!(!tile("Xero").expect("a tile").contains(" hidden"), "{narrow}");
    assert!(tile("Dropbox").expect("a tile").contains(" hidden"), "{narrow}");
    let (_, none) = desk.page("/connections?q=zebra").await;
    assert!(none.contains("0 found") && none.contains("/connections/webhooks/new/generic"), "{none}");
    for nowhere in ["/connections/accounts/new/zebra", "/connections/webhooks/new/zebra"] {
        assert_eq!(desk.page(nowhere).await.0, 404, "{nowhere}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_without_its_app_has_the_lines_to_set_and_checks_the_address() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    let (_, key) = world.caller(world.tenant_id, &[Scope::Service]).await;
    let desk = Desk::new(&app, &key).await;
    for provider in pull::ALL {
        let address = format!("/connections/accounts/new/{provider}");
        let (status, page) = desk.page(&address).await;
        assert_eq!(status, 200, "{provider}");
        let redirect_url = format!("{}/oauth/{provider}/callback", app.url);
        assert_eq!(field(&page, "Redirect URL"), Some(redirect_url.as_str()), "{provider}");
        let oauth = provider.oauth.as_ref().expect("OAuth");
        for setting in [oauth.client_id, oauth.client_secret] {
            assert!(page.contains(&format!("{}=paste-the-value-here", setting.env)), "{provider}: {}", setting.env);
        }
        assert!(page.contains("are not set.") && !page.contains(&format!("/oauth/{provider}/authorize")), "{provider}");
        for advice in provider.guide.refusals {
            assert!(page.contains(advice.says), "{provider}: {}", advice.says);
        }
        let (status, _, checked) = desk.post(&address, &[]).await;
        assert_eq!(status, 200, "{provider}");
        assert!(checked.contains(&format!("{} leads to this server.", app.url)), "{provider}: {checked}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_is_asked_about_its_app_and_a_refusal_comes_with_what_to_do() {
    let house = House::new().await;
    let (t, app) = (&house.t, &house.app);
    let (_, key) = t.world.caller(t.world.tenant_id, &[Scope::Service]).await;
    let desk = Desk::new(app, &key).await;
    let address = "/connections/accounts/new/hubspot";
    let (_, _, checked) = desk.post(address, &[]).await;
    assert!(checked.contains("HubSpot knows the client id and secret."), "{checked}");
    assert!(checked.contains("href=\"/oauth/hubspot/authorize\""), "{checked}");
    t.fakes.reject_client(true);
    let (_, _, checked) = desk.post(address, &[]).await;
    assert!(checked.contains("HubSpot refuses the client id or the secret."), "{checked}");
    t.fakes.reject_client(false);

    // A key that is not good, and a person who says no.
    let fields = [("provider", "hubspot"), ("key", "pat-wrong-canary")];
    let (status, _, refused) = desk.post("/connections/accounts", &fields).await;
    assert!(status == 400 && refused.contains("It was not connected"), "{status} {refused}");
    assert!(!refused.contains("canary"), "{refused}");
    let known = |code: &str| oauth::REFUSALS.iter().find(|advice| advice.says == code).expect("advice").means;
    assert!(refused.contains(known("invalid_grant")), "{refused}");
    let (_, _, empty) = desk.post("/connections/accounts", &[("provider", "hubspot")]).await;
    assert!(empty.contains("enter the key of a private app"), "{empty}");
    let (status, strange) = desk.page("/oauth/hubspot/callback?state=x&error=access_denied").await;
    assert!(status == 400 && strange.contains(known("unknown_state")), "{status} {strange}");

    // A good one is connected, and the page knows it from then on.
    let fields = [("provider", "hubspot"), ("key", t.fakes.hubspot_private_app_token())];
    let (status, own, page) = desk.post("/connections/accounts", &fields).await;
    assert!(status == 303 && own.starts_with("/connections/accounts/"), "{status} {page}");
    let is_read = async || desk.page(address).await.1.contains("up to date");
    assert!(wait_until(SOON, is_read).await, "{}", desk.page(address).await.1);
}
