//! OAuth end to end: programs register, people let them in, tokens are given, renewed, stolen and taken back.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::{Role, Scope};
use reqwest::Response;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use testkit::wait_until;

use super::clients::{python, said};
use super::{Desk, Elsewhere, Visit};
use crate::app::client;

const SOON: std::time::Duration = std::time::Duration::from_secs(8);
const BACK: &str = "https://app.example/cb";
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

/// A program that asks to be let in.
struct Program {
    url: String,
    id: String,
}

/// The parameters with which it sends a person.
type Asked = Vec<(String, String)>;

impl Program {
    async fn register(desk: &Desk) -> Self {
        let wanted =
            json!({ "client_name": "Test program", "redirect_uris": [BACK], "grant_types": ["authorization_code"] });
        let answer = client().post(format!("{}/assistants/register", desk.app.url)).json(&wanted).send().await;
        let answer = answer.expect("an answer");
        assert_eq!(answer.status().as_u16(), 201);
        let registered: Value = answer.json().await.expect("JSON");
        assert!(registered.get("client_secret").is_none(), "a public program has no secret");
        let id = registered["client_id"].as_str().expect("an id").to_owned();
        Self { url: desk.app.url.clone(), id }
    }

    fn asks(&self, scope: &str) -> Asked {
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER));
        let resource = format!("{}/mcp", self.url);
        [
            ("response_type", "code"),
            ("client_id", &self.id),
            ("redirect_uri", BACK),
            ("scope", scope),
            ("state", "s t&a=te"),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", &resource),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }

    /// Lets it in as this person, and returns the code.
    async fn let_in(&self, visit: &Visit, scope: &str, more: &[(&str, &str)]) -> String {
        let csrf = visit.csrf().await;
        let mut form = self.asks(scope);
        form.extend([("csrf", csrf.as_str()), ("decision", "allow")].map(owned));
        form.extend(more.iter().copied().map(owned));
        let back = visit.post("/assistants/authorize", &borrowed(&form)).await;
        assert_eq!(back.status().as_u16(), 303, "{}", back.text().await.unwrap_or_default());
        let back = parameters(&back);
        assert_eq!((back["state"].as_str(), back["iss"].as_str()), (Some("s t&a=te"), Some(self.url.as_str())));
        back["code"].as_str().expect("a code").to_owned()
    }

    async fn token(&self, form: &[(&str, &str)]) -> (u16, Value) {
        let answer =
            client().post(format!("{}/assistants/token", self.url)).form(form).send().await.expect("an answer");
        (answer.status().as_u16(), answer.json().await.expect("JSON"))
    }

    fn redeems<'a>(&'a self, code: &'a str) -> Vec<(&'a str, &'a str)> {
        vec![
            ("grant_type", "authorization_code"),
            ("client_id", &self.id),
            ("code", code),
            ("redirect_uri", BACK),
            ("code_verifier", VERIFIER),
        ]
    }

    async fn redeem(&self, code: &str) -> (u16, Value) {
        self.token(&self.redeems(code)).await
    }

    async fn refresh(&self, token: &str) -> (u16, Value) {
        self.token(&[("grant_type", "refresh_token"), ("client_id", &self.id), ("refresh_token", token)]).await
    }
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn borrowed(form: &Asked) -> Vec<(&str, &str)> {
    form.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// The query of the address to which an answer leads.
fn parameters(answer: &Response) -> Value {
    pairs_of(answer.headers()["location"].to_str().expect("an address"))
}

fn pairs_of(address: &str) -> Value {
    let url = reqwest::Url::parse(address).unwrap_or_else(|error| panic!("{address}: {error}"));
    url.query_pairs().map(|(name, value)| (name.into_owned(), Value::from(value.into_owned()))).collect()
}

fn text<'a>(granted: &'a Value, name: &str) -> &'a str {
    granted[name].as_str().unwrap_or_else(|| panic!("no {name}: {granted}"))
}

/// S13, S17, S30.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_let_in_asks_renews_and_is_seen() {
    let desk = Desk::new().await;
    desk.note(desk.world.tenant_id, "Lease", "The lease in Lisbon ends in May.").await;
    let (_, ann) = desk.person(desk.world.tenant_id, "ann@office.test", Role::Member).await;
    let program = Program::register(&desk).await;
    let query = serde_urlencoded(&program.asks("read write agent"));
    let page = ann.get(&format!("/assistants/authorize?{query}")).await;
    let policy = page.headers()["content-security-policy"].to_str().expect("text").to_owned();
    assert!(
        policy.contains("frame-ancestors 'none'") && policy.contains("form-action 'self' https://app.example;"),
        "{policy}"
    );
    let page = page.text().await.expect("a page");
    for word in
        ["Test program", "Nobody has checked its name", "ann@office.test", "app.example", "Add notes", "Process events"]
    {
        assert!(page.contains(word), "{word}: {page}");
    }

    // The person leaves `agent` out.
    let code = program.let_in(&ann, "read write agent", &[("write", "on")]).await;
    let (status, granted) = program.redeem(&code).await;
    assert_eq!(
        (status, &granted["token_type"], &granted["scope"]),
        (200, &"Bearer".into(), &"read write".into()),
        "{granted}"
    );
    let access = text(&granted, "access_token");
    let listed = desk.ask(access, "tools/list", json!({})).await.to_string();
    assert!(listed.contains("remember") && !listed.contains("claim_activity"), "{listed}");
    desk.call(access, "search_memory", json!({ "query": "lease" })).await.expect("an answer");
    // S30: good for /mcp and nothing else.
    for path in ["/api/v1/search?q=lease", "/api/v1/assistants", "/rest/v1/activities"] {
        let answer =
            client().get(format!("{}{path}", desk.app.url)).bearer_auth(access).send().await.expect("an answer");
        assert_eq!(answer.status().as_u16(), 401, "S30: {path}");
    }
    let key = desk.key(&[Scope::Service]).await;
    desk.run("update tributary.assistants set resource = 'https://other.example/mcp'").await;
    let (_, renewed) = program.refresh(text(&granted, "refresh_token")).await;
    assert_eq!(renewed["error"], "invalid_target", "S30: {renewed}");
    let is_refused = async || desk.post(Some(access)).json(&json!({})).send().await.expect("an answer").status() == 401;
    assert!(wait_until(SOON, is_refused).await, "S30: a token for another address is good");

    // Another one, renewed and renewed.
    let code = program.let_in(&ann, "read", &[]).await;
    let (_, granted) = program.redeem(&code).await;
    let (status, renewed) = program.refresh(text(&granted, "refresh_token")).await;
    assert_eq!(status, 200, "{renewed}");
    let access = text(&renewed, "access_token");
    assert!(desk.call(access, "list_sources", json!({})).await.is_ok());

    // Nothing of it is stored as it is, or in the log.
    let sql = "select count(*) from tributary.assistant_tokens t where strpos(to_jsonb(t)::text, $1) > 0";
    for secret in [access, text(&renewed, "refresh_token"), &code] {
        let n: i64 =
            sqlx::query_scalar(sql).bind(secret).fetch_one(&mut *desk.world.conn().await).await.expect("a number");
        assert_eq!(n, 0, "S13");
        assert!(!desk.app.printed().contains(secret), "S13: a secret is in the log");
    }

    // Seen by people: who, whose, what it asked for.
    let asked = "select count(*) from tributary.mcp_calls where tool = 'list_sources'";
    assert!(wait_until(SOON, async || desk.number(asked).await >= 1).await);
    let page = ann.get("/settings/assistants").await.text().await.expect("a page");
    assert!(page.contains("Test program") && page.contains("app.example") && page.contains("1 list_sources"), "{page}");
    let (_, bob) = desk.person(desk.world.tenant_id, "bob@office.test", Role::Member).await;
    let page = bob.get("/settings/assistants").await.text().await.expect("a page");
    assert!(!page.contains("Test program"), "somebody else's assistant is shown");
    let listed: Value = client()
        .get(format!("{}/api/v1/assistants", desk.app.url))
        .bearer_auth(key.reveal())
        .send()
        .await
        .expect("an answer")
        .json()
        .await
        .expect("JSON");
    assert_eq!(listed["assistants"].as_array().map(Vec::len), Some(2), "{listed}");

    // Revoked by a person: refused within five seconds, and not renewed.
    let id = listed["assistants"][0]["id"].as_str().expect("an id");
    let theirs = bob.post(&format!("/settings/assistants/{id}/revoke"), &[("csrf", &bob.csrf().await)]).await;
    assert!(theirs.headers()["location"].to_str().is_ok_and(|to| to.ends_with("done=gone")), "S17");
    let done = ann.post(&format!("/settings/assistants/{id}/revoke"), &[("csrf", &ann.csrf().await)]).await;
    assert!(done.headers()["location"].to_str().is_ok_and(|to| to.ends_with("done=revoked")));
    assert_eq!(desk.post(Some(access)).json(&json!({})).send().await.expect("an answer").status(), 401);
    let (status, refused) = program.refresh(text(&renewed, "refresh_token")).await;
    assert_eq!((status, &refused["error"]), (400, &"invalid_grant".into()), "{refused}");
}

/// S16, S22: answers of the documented kind for everything that is wrong.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_answered_as_the_standards_say() {
    let desk = Desk::new().await;
    let (_, ann) = desk.person(desk.world.tenant_id, "ann@office.test", Role::Member).await;
    let program = Program::register(&desk).await;
    // Nobody is sent to an address that the program did not register: the person is told.
    for (name, value) in [
        ("client_id", "trp_nobody"),
        ("redirect_uri", "https://evil.example/cb"),
        ("redirect_uri", "javascript:alert(1)"),
    ] {
        let mut asked = program.asks("read");
        asked.iter_mut().filter(|(known, _)| known == name).for_each(|(_, known)| *known = value.to_owned());
        let answer = ann.get(&format!("/assistants/authorize?{}", serde_urlencoded(&asked))).await;
        assert_eq!((answer.status().as_u16(), answer.headers().get("location")), (400, None), "S22: {name}");
    }
    // Everything else the program is told.
    for (name, value, error) in [
        ("code_challenge", "", "invalid_request"),
        ("code_challenge_method", "plain", "invalid_request"),
        ("resource", "https://evil.example/mcp", "invalid_target"),
        ("response_type", "token", "unsupported_response_type"),
    ] {
        let mut asked = program.asks("read");
        asked.iter_mut().filter(|(known, _)| known == name).for_each(|(_, known)| *known = value.to_owned());
        let answer = ann.get(&format!("/assistants/authorize?{}", serde_urlencoded(&asked))).await;
        // Nobody answers for a program that registered itself: the person goes back to it, or does not.
        assert_eq!((answer.status().as_u16(), answer.headers().get("location")), (400, None), "S22: {name}");
        let page = answer.text().await.expect("a page");
        let href = page.split("href=\"").find(|part| part.starts_with(BACK)).expect("a link back");
        let href = href.split('"').next().expect("an address").replace("&#38;", "&").replace("&amp;", "&");
        let back = pairs_of(&href);
        assert_eq!((&back["error"], back["iss"].as_str()), (&error.into(), Some(desk.app.url.as_str())), "{name}");
    }
    // Denied, forged, or by nobody.
    let csrf = ann.csrf().await;
    let mut form = program.asks("read");
    form.extend([("csrf", csrf.as_str()), ("decision", "deny")].map(owned));
    assert_eq!(parameters(&ann.post("/assistants/authorize", &borrowed(&form)).await)["error"], "access_denied");
    let mut forged = program.asks("read");
    forged.extend([("csrf", "x"), ("decision", "allow")].map(owned));
    assert_eq!(ann.post("/assistants/authorize", &borrowed(&forged)).await.status().as_u16(), 403, "S16");
    let answer =
        client().get(format!("{}/assistants/authorize?{}", desk.app.url, serde_urlencoded(&program.asks("read"))));
    let answer = answer.header("accept", "text/html").send().await.expect("an answer");
    let to = answer.headers()["location"].to_str().expect("an address");
    assert!(to.starts_with("/signin?next=/assistants/authorize%3Fresponse_type%3Dcode"), "{to}");
    assert_eq!(desk.number("select count(*) from tributary.assistants").await, 0);

    // Codes: another program, redirect, verifier, address; each uses the code up.
    let other = Program::register(&desk).await;
    for (name, value, error) in [
        ("client_id", other.id.as_str(), "invalid_grant"),
        ("redirect_uri", "https://app.example/other", "invalid_grant"),
        ("code_verifier", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "invalid_grant"),
        ("code_verifier", "", "invalid_grant"),
        ("resource", "https://evil.example/mcp", "invalid_target"),
        ("grant_type", "password", "unsupported_grant_type"),
    ] {
        let code = program.let_in(&ann, "read", &[]).await;
        let mut form = program.redeems(&code);
        form.retain(|(known, _)| *known != name);
        form.push((name, value));
        let (status, refused) = program.token(&form).await;
        assert_eq!((status, &refused["error"]), (400, &error.into()), "{name}: {refused}");
    }
    let code = program.let_in(&ann, "read", &[]).await;
    desk.run("update tributary.assistant_tokens set expires_at = now() - interval '1 second' where kind = 'code'")
        .await;
    assert_eq!(program.redeem(&code).await.1["error"], "invalid_grant", "an expired code");
    let unknown = Program { url: desk.app.url.clone(), id: "trp_deleted".into() };
    let (status, refused) = unknown.redeem("trc_x").await;
    assert_eq!((status, &refused["error"]), (401, &"invalid_client".into()), "it registers again then");

    // A code that is shown twice is in two hands: what came of it is revoked.
    let code = program.let_in(&ann, "read", &[]).await;
    let (_, granted) = program.redeem(&code).await;
    assert_eq!(program.redeem(&code).await.1["error"], "invalid_grant");
    let access = text(&granted, "access_token");
    assert_eq!(
        desk.post(Some(access)).json(&json!({})).send().await.expect("an answer").status(),
        401,
        "replayed code"
    );
    // A refresh token that is shown twice likewise, whoever comes second.
    let code = program.let_in(&ann, "read", &[]).await;
    let (_, granted) = program.redeem(&code).await;
    let stolen = text(&granted, "refresh_token");
    let (_, renewed) = program.refresh(stolen).await;
    assert!(desk.call(text(&renewed, "access_token"), "list_sources", json!({})).await.is_ok());
    assert_eq!(program.refresh(stolen).await.1["error"], "invalid_grant");
    let access = text(&renewed, "access_token");
    assert_eq!(desk.post(Some(access)).json(&json!({})).send().await.expect("an answer").status(), 401, "its family");
    assert_eq!(program.refresh(text(&renewed, "refresh_token")).await.1["error"], "invalid_grant");
    assert_eq!(desk.number("select count(*) from tributary.assistants where revoked_by = 'reuse'").await, 2);
    // However many show it at once, one is given tokens, and then nobody has any.
    let code = program.let_in(&ann, "read", &[]).await;
    let all = futures_util::future::join_all((0..8).map(|_| program.redeem(&code))).await;
    assert!(all.iter().filter(|(status, _)| *status == 200).count() <= 1, "{all:?}");

    // An expired token, a smaller role, a person who is gone, and access that is given back.
    let (id, bob) = desk.person(desk.world.tenant_id, "bob@office.test", Role::Member).await;
    let code = program.let_in(&bob, "read write", &[("write", "on")]).await;
    let (_, granted) = program.redeem(&code).await;
    let access = text(&granted, "access_token").to_owned();
    assert!(desk.call(&access, "remember", json!({ "text": "Mine." })).await.is_ok());
    sqlx::query("update sales set role = 'read-only' where id = $1")
        .bind(id.0)
        .execute(&mut *desk.world.conn().await)
        .await
        .expect("done");
    let is_less = async || desk.call(&access, "remember", json!({ "text": "Mine." })).await.is_err();
    assert!(wait_until(SOON, is_less).await, "an assistant may more than its person");
    desk.run("update tributary.assistant_tokens set expires_at = now() - interval '1 second' where kind = 'access'")
        .await;
    let is_over = async || desk.post(Some(&access)).json(&json!({})).send().await.expect("an answer").status() == 401;
    assert!(wait_until(SOON, is_over).await, "an expired token is good");
    let (_, renewed) = program.refresh(text(&granted, "refresh_token")).await;
    let refresh = text(&renewed, "refresh_token").to_owned();
    let back = [("token", refresh.as_str()), ("client_id", program.id.as_str())];
    let answer =
        client().post(format!("{}/assistants/revoke", desk.app.url)).form(&back).send().await.expect("an answer");
    assert_eq!(answer.status().as_u16(), 200);
    assert_eq!(program.refresh(&refresh).await.1["error"], "invalid_grant");
}

/// S13: whoever takes a key back takes back what it let in.
#[tokio::test(flavor = "multi_thread")]
async fn an_assistant_ends_with_the_key_that_let_it_in() {
    let desk = Desk::new().await;
    let (holder, key) = desk.world.caller(desk.world.tenant_id, &[Scope::Service]).await;
    let by_key = Visit::with(&desk.app.url, "/signin", &[("key", key.reveal())]).await;
    let program = Program::register(&desk).await;
    let code = program.let_in(&by_key, "read", &[]).await;
    let (_, granted) = program.redeem(&code).await;
    let access = text(&granted, "access_token");
    assert!(desk.call(access, "list_sources", json!({})).await.is_ok());
    let waiting = program.let_in(&by_key, "read", &[]).await;
    let revoked = store::keys::revoke(&mut *desk.world.conn().await, desk.world.tenant_id, holder.key_id).await;
    assert!(revoked.expect("an answer"));
    let is_over = async || desk.post(Some(access)).json(&json!({})).send().await.expect("an answer").status() == 401;
    assert!(wait_until(SOON, is_over).await, "S13: its token is good without the key");
    assert_eq!(program.refresh(text(&granted, "refresh_token")).await.1["error"], "invalid_grant");
    assert_eq!(program.redeem(&waiting).await.1["error"], "invalid_grant", "a code that was not fetched yet");
    let page = desk.owner().await.get("/settings/assistants").await.text().await.expect("a page");
    assert!(page.contains("No program was let in yet"), "it is shown as connected");
    assert!(page.contains("The key with which it was let in is no longer good."), "{page}");
}

/// S32: whoever registers thousands keeps nobody else out.
#[tokio::test(flavor = "multi_thread")]
async fn registrations_that_nobody_let_in_make_room() {
    let desk = Desk::new().await;
    let program = Program::register(&desk).await;
    let (_, ann) = desk.person(desk.world.tenant_id, "ann@office.test", Role::Member).await;
    let code = program.let_in(&ann, "read", &[]).await;
    assert_eq!(program.redeem(&code).await.0, 200);
    desk.run(
        "update tributary.oauth_clients set used_at = now() - interval '1 day';
         insert into tributary.oauth_clients (id, name, redirect_uris, used_at)
         select 'flood_' || n, 'Flood', '{https://evil.example/cb}', now() from generate_series(1, 9999) n",
    )
    .await;
    let wanted = json!({ "redirect_uris": [BACK] });
    let full = client().post(format!("{}/assistants/register", desk.app.url)).json(&wanted).send().await;
    assert_eq!(full.expect("an answer").status().as_u16(), 503, "all of them may still be let in");
    desk.run("update tributary.oauth_clients set used_at = now() - interval '11 minutes' where id like 'flood%'").await;
    Program::register(&desk).await;
    assert!(desk.number("select count(*) from tributary.oauth_clients").await <= 10_000);
    assert!(program.let_in(&ann, "read", &[]).await.starts_with("trc_"), "one that was let in before is gone");
}

/// S32.
#[tokio::test(flavor = "multi_thread")]
async fn registrations_are_checked_and_limited() {
    let desk = Desk::new().await;
    let register = async |wanted: Value| {
        let answer = client().post(format!("{}/assistants/register", desk.app.url)).json(&wanted).send().await;
        let answer = answer.expect("an answer");
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap_or_default())
    };
    for (wanted, error) in [
        (json!({ "redirect_uris": [] }), "invalid_redirect_uri"),
        (json!({ "redirect_uris": ["http://evil.example/cb"] }), "invalid_redirect_uri"),
        (json!({ "redirect_uris": ["javascript:alert(1)"] }), "invalid_redirect_uri"),
        (
            json!({ "redirect_uris": [BACK], "token_endpoint_auth_method": "private_key_jwt" }),
            "invalid_client_metadata",
        ),
        (json!([]), "invalid_client_metadata"),
    ] {
        let (status, refused) = register(wanted.clone()).await;
        assert_eq!((status, &refused["error"]), (400, &error.into()), "{wanted}: {refused}");
    }
    let (status, made) =
        register(json!({ "redirect_uris": [BACK], "token_endpoint_auth_method": "client_secret_basic" })).await;
    assert_eq!(status, 201, "{made}");
    let program = Program { url: desk.app.url.clone(), id: text(&made, "client_id").to_owned() };
    let (_, ann) = desk.person(desk.world.tenant_id, "ann@office.test", Role::Member).await;
    let code = program.let_in(&ann, "read", &[]).await;
    assert_eq!(program.redeem(&code).await.1["error"], "invalid_client", "without its secret");
    let request = client().post(format!("{}/assistants/token", desk.app.url));
    let request = request.basic_auth(&program.id, Some(text(&made, "client_secret"))).form(&program.redeems(&code));
    assert_eq!(request.send().await.expect("an answer").status().as_u16(), 200, "a code is not used up by a stranger");
    let mut last = 201;
    for _ in 0..25 {
        last = register(json!({ "redirect_uris": [BACK] })).await.0;
    }
    assert_eq!(last, 429, "S32");
    assert!(desk.number("select count(*) from tributary.oauth_clients").await <= 21);
}

/// Python's official client finds its way by itself: from a 401 to the documents, to registration, to the person, to tokens.
#[tokio::test(flavor = "multi_thread")]
async fn pythons_own_oauth_client_lets_itself_in() {
    let desk = Desk::new().await;
    desk.note(desk.world.tenant_id, "Lease", "The lease in Lisbon ends in May.").await;
    let (_, ann) = desk.person(desk.world.tenant_id, "ann@office.test", Role::Member).await;
    let url = format!("{}/mcp", desk.app.url);
    let said = said(python(&["oauth", &url, "dcr", &ann.cookie])).await;
    assert!(text(&said, "client_id").starts_with("trp_"), "{said}");
    assert_eq!((&said["hits"][0], &said["change"]), (&"Lease".into(), &"created".into()));
    assert_eq!((text(&said, "scope"), text(&said, "iss")), ("read write", desk.app.url.as_str()));
    assert!(text(&said, "page").contains("Nobody has checked its name"));
}

/// S9: a program whose id is the address of a document that describes it. The document is fetched as everything is that strangers name.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_describes_a_program_and_private_addresses_are_not_asked() {
    let document = |url: &str| {
        json!({ "client_id": format!("{url}/client.json"), "client_name": "Document program", "redirect_uris": [BACK] })
            .to_string()
    };
    let host = Elsewhere::start("application/json", document).await;
    let id = format!("{}/client.json", host.url);
    let desk = Desk::with(&[("OUTBOUND_ALLOW", "127.0.0.0/8")]).await;
    let (_, ann) = desk.person(desk.world.tenant_id, "ann@office.test", Role::Member).await;
    let program = Program { url: desk.app.url.clone(), id: id.clone() };
    let page = ann.get(&format!("/assistants/authorize?{}", serde_urlencoded(&program.asks("read")))).await;
    let page = page.text().await.expect("a page");
    assert!(page.contains("Document program") && page.contains("described by") && page.contains("127.0.0.1"), "{page}");
    let code = program.let_in(&ann, "read", &[]).await;
    let (status, granted) = program.redeem(&code).await;
    assert_eq!(status, 200, "{granted}");
    assert!(desk.call(text(&granted, "access_token"), "list_sources", json!({})).await.is_ok());
    // Another address, or another document, describes another program.
    let other = Program { url: desk.app.url.clone(), id: format!("{}/other.json", host.url) };
    let answer = ann.get(&format!("/assistants/authorize?{}", serde_urlencoded(&other.asks("read")))).await;
    assert_eq!(answer.status().as_u16(), 400);

    // Without leave, no private address is asked, whoever names it.
    let desk = Desk::new().await;
    let mut host = Elsewhere::start("application/json", document).await;
    let (_, ann) = desk.person(desk.world.tenant_id, "ann@office.test", Role::Member).await;
    for id in
        [format!("{}/client.json", host.url), "https://169.254.169.254/latest".into(), "https://localhost/c".into()]
    {
        let program = Program { url: desk.app.url.clone(), id };
        let answer = ann.get(&format!("/assistants/authorize?{}", serde_urlencoded(&program.asks("read")))).await;
        assert_eq!(answer.status().as_u16(), 400, "{}", program.id);
    }
    let asked = tokio::time::timeout(std::time::Duration::from_millis(1), host.asked.recv()).await;
    assert!(asked.is_err(), "a private address was asked");
}

fn serde_urlencoded(form: &Asked) -> String {
    let mut url = reqwest::Url::parse("http://x").expect("a url");
    url.query_pairs_mut().extend_pairs(form);
    url.query().unwrap_or_default().to_owned()
}
