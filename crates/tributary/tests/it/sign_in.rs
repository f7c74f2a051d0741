//! People sign in with links, may do what their role allows, and see and end their sessions.

use std::time::Duration;

use domain::{Scope, Secret};
use serde_json::{Value, json};
use testkit::wait_until;

use crate::app::client;
use crate::browser::Browser;
use crate::foreign::raid::{Raid, Stranger};
use crate::people::Firm;

const SOON: Duration = Duration::from_secs(8);
const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

/// A browser that is signed in.
#[derive(Clone)]
struct Visit {
    url: String,
    cookie: String,
    csrf: String,
}

impl Visit {
    /// Opens a link as the page's script does. The status where it does not sign in.
    async fn open(url: &str, link: &str) -> Result<Self, u16> {
        let once = link.split_once("#once=").map_or(link, |(_, once)| once);
        let request = client().post(format!("{url}/signin/once")).header("origin", url).header("user-agent", FIREFOX);
        let answer = request.form(&[("once", once)]).send().await.expect("an answer");
        if answer.status().as_u16() != 303 {
            return Err(answer.status().as_u16());
        }
        let cookie = answer.headers()["set-cookie"].to_str().expect("a cookie").to_owned();
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
        let cookie = cookie.split(';').next().expect("a value").to_owned();
        let page =
            client().get(format!("{url}/system/queues")).header("cookie", &cookie).send().await.expect("an answer");
        let page = page.text().await.expect("a page");
        let csrf = page.split("name=\"csrf\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
        Ok(Self { url: url.to_owned(), cookie, csrf: csrf.expect("a token").to_owned() })
    }

    async fn ask(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let request = client().request(method.parse().expect("a method"), format!("{}/api/v1{path}", self.url));
        let request = request.header("cookie", &self.cookie).header("x-csrf", &self.csrf).header("origin", &self.url);
        let request = if body.is_null() { request } else { request.json(&body) };
        let answer = request.send().await.expect("an answer");
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }

    async fn post(&self, path: &str, form: &[(&str, &str)]) -> u16 {
        let request = client().post(format!("{}{path}", self.url)).header("cookie", &self.cookie);
        request.header("origin", &self.url).form(form).send().await.expect("an answer").status().as_u16()
    }

    async fn is_good(&self) -> bool {
        self.ask("GET", "/sessions", Value::Null).await.0 == 200
    }
}

impl Firm {
    async fn invite(&self, id: i64) -> String {
        let (status, made) = self.ask(&self.key, "POST", &format!("/people/{id}/link"), Value::Null).await;
        assert_eq!(status, 201, "{made}");
        made["url"].as_str().expect("a link").replace(crate::channels::PUBLIC_URL, &self.house.app.url)
    }

    /// A person with this role, signed in.
    async fn hire(&self, email: &str, role: &str) -> (i64, Visit) {
        let (status, made) = self.ask(&self.key, "POST", "/people", json!({ "email": email, "role": role })).await;
        assert_eq!(status, 201, "{made}");
        let id = made["id"].as_i64().expect("a number");
        (id, self.open(&self.invite(id).await).await.expect("signed in"))
    }

    async fn open(&self, link: &str) -> Result<Visit, u16> {
        Visit::open(&self.house.app.url, link).await
    }

    async fn run(&self, sql: &'static str) {
        sqlx::raw_sql(sql).execute(&mut *self.house.world.conn().await).await.expect(sql);
    }
}

/// S13, S22: a link is good once, for a while, for one person, and is nowhere written down.
#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_signs_one_browser_in_as_that_person_and_no_other() {
    let firm = Firm::new().await;
    let ann = firm.add("ann@office.test").await;
    let replaced = firm.invite(ann).await;
    let link = firm.invite(ann).await;
    assert_eq!(firm.open(&replaced).await.err(), Some(401), "a link that was replaced is good");
    let visit = firm.open(&link).await.expect("signed in");
    let (_, listed) = visit.ask("GET", "/sessions", Value::Null).await;
    let session = &listed["sessions"][0];
    assert_eq!(
        json!([session["whose"], session["kind"], session["device"], session["address"], session["is_current"]]),
        json!(["ann@office.test", "session", "Firefox on Linux", "127.0.0.1", true]),
        "{listed}"
    );
    assert_eq!(firm.open(&link).await.err(), Some(401), "a link is good twice");
    for odd in
        ["", "x", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", visit.cookie.split_once('=').expect("a value").1]
    {
        assert!(matches!(firm.open(odd).await.err(), Some(401 | 422)), "{odd:?} signs in");
    }

    // However many open it at once, one is signed in.
    let link = firm.invite(ann).await;
    let opened = futures_util::future::join_all((0..8).map(|_| firm.open(&link))).await;
    assert_eq!(opened.iter().filter(|opened| opened.is_ok()).count(), 1);

    let late = firm.invite(ann).await;
    firm.run("update tributary.sessions set expires_at = now() - interval '1 second' where kind = 'once'").await;
    assert_eq!(firm.open(&late).await.err(), Some(401), "an expired link is good");

    // From another site, a link signs nobody in: it could be the attacker's own.
    let link = firm.invite(ann).await;
    let once = link.split_once("#once=").expect("a secret").1.to_owned();
    let foreign = client().post(format!("{}/signin/once", firm.house.app.url)).header("origin", "https://evil.test");
    let foreign = foreign.form(&[("once", once.as_str())]).send().await.expect("an answer").status().as_u16();
    assert_eq!(foreign, 403, "S16");

    // Another tenant's link leads to that tenant.
    let elsewhere = firm.house.world.other_tenant("elsewhere").await;
    let (_, theirs) = firm.house.world.caller(elsewhere, &[Scope::Service]).await;
    let (_, mallory) =
        firm.ask(&theirs, "POST", "/people", json!({ "email": "m@elsewhere.test", "role": "owner" })).await;
    let path = format!("/people/{}/link", mallory["id"]);
    assert_eq!(firm.ask(&firm.key, "POST", &path, Value::Null).await.0, 404, "S17");
    let (_, made) = firm.ask(&theirs, "POST", &path, Value::Null).await;
    let stranger = firm.open(made["url"].as_str().expect("a link")).await.expect("signed in");
    let (_, seen) = stranger.ask("GET", "/people", Value::Null).await;
    assert_eq!(seen["people"].as_array().map(Vec::len), Some(1), "S17: {seen}");
    assert_eq!(stranger.ask("POST", &format!("/people/{ann}/link"), Value::Null).await.0, 404, "S17");

    // Stored as a hash, and in no log.
    let sql = "select count(*) from tributary.sessions s where strpos(to_jsonb(s)::text, $1) > 0";
    let mut conn = firm.house.world.conn().await;
    let stored: i64 = sqlx::query_scalar(sql).bind(&once).fetch_one(&mut *conn).await.expect("a count");
    assert_eq!(stored, 0, "S13: a link is stored");
    assert!(!firm.house.app.printed().contains(&once), "S13: a link is in the log");
}

/// S17: what a role may not do is refused at every route there is, and changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn every_route_keeps_to_the_role_of_the_person_who_asks() {
    let raid = Raid::new().await;
    let url = raid.office.app.url.clone();
    let sign_in = async |email: &str, role: &str| {
        let ask = async |path: String, body: Value| {
            let request = client().post(format!("{url}/api/v1{path}")).bearer_auth(raid.office.key.reveal());
            let answer: Value = request.json(&body).send().await.expect("an answer").json().await.expect("JSON");
            answer
        };
        let person = ask("/people".into(), json!({ "email": email, "role": role })).await;
        let link = ask(format!("/people/{}/link", person["id"]), json!({})).await;
        let visit = Visit::open(&url, link["url"].as_str().expect("a link")).await.expect("signed in");
        Stranger::Session { cookie: visit.cookie, csrf: visit.csrf }
    };
    let reader = sign_in("reader@office.test", "read-only").await;
    let member = sign_in("member@office.test", "member").await;
    let rows = async || {
        let mut rows = raid.their_rows().await;
        rows.retain(|(table, ..)| table != "tributary.sessions"); // when they were used
        rows
    };
    let before = rows().await;
    // Asking is reading; the sessions and the assistants are one's own, and there is no such one. Programs' doors know no sessions.
    let apart = [
        "/ask",
        "/api/v1/answer",
        "/api/v1/sources/{id}/mail/rules/{name}/preview",
        "/signin/once",
        "/api/v1/sessions/{id}",
        "/settings/sessions/{id}/end",
        "/api/v1/assistants/{id}",
        "/settings/assistants/{id}/revoke",
        "/mcp",
    ];
    // A person among the clients is a contact.
    let owners = ["/api/v1/people", "/settings/people", "/keys", "/channels", "/connections/webhooks", "/tenants"];
    let forgotten = ["/contacts/", "/clients/people/", "/sources/", "/connections/accounts/", "/tenants/"];
    let (mut asked, mut wrong) = (0, Vec::new());
    for (method, route) in raid.routes() {
        if apart.contains(&route.as_str()) || route.starts_with("/oauth/") {
            continue;
        }
        for path in raid.filled(&route) {
            let is_of = |nouns: &[&str]| nouns.iter().any(|noun| path.contains(noun));
            let is_forgetting = (path.ends_with("/forget") && is_of(&forgotten))
                || (method == "DELETE" && route.ends_with("/contacts/{id}"));
            let is_owners = method != "GET" && (is_forgetting || owners.iter().any(|part| route.contains(part)));
            let is_looked = method == "GET" && !path.contains("/keys");
            for (name, who, is_refused) in [("reader", &reader, method != "GET"), ("member", &member, is_owners)] {
                if !is_refused {
                    continue;
                }
                let (status, answer) = raid.ask(who, &method, &path, raid.body(&method, &route)).await;
                // A form whose fields do not fit is refused before anybody asks whose it is; an operator's page is not there.
                let expected: &[u16] =
                    if path.starts_with("/api/v1/") && !path.contains("/tenants") { &[403] } else { &[403, 404, 422] };
                if !expected.contains(&status) {
                    wrong.push(format!(
                        "{name} at {method} {path}: {status}: {}",
                        answer.chars().take(120).collect::<String>()
                    ));
                }
                asked += 1;
            }
            if is_looked && path.starts_with("/api/v1/people") {
                assert_eq!(raid.ask(&reader, "GET", &path, None).await.0, 200, "{path}");
            }
        }
    }
    let forget = format!("/api/v1/sources/{}?forget=true", raid.id_of("sources"));
    assert_eq!(raid.ask(&member, "DELETE", &forget, None).await.0, 403, "a member forgets a source");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(asked > 100, "only {asked} requests");
    assert_eq!(rows().await, before, "something was changed");
    // What the pages show fits.
    let (status, page) = raid.ask(&reader, "GET", "/settings/people", None).await;
    assert!(status == 200 && !page.contains("Add person"), "{page}");
    let channel = format!("/connections/webhooks/{}", raid.id_of("channels"));
    let (_, page) = raid.ask(&member, "GET", &channel, None).await;
    assert!(!page.contains("Webhook URL") && !page.contains("/ingest/"), "a member sees a channel's secrets");
    let (_, refused) = raid.ask(&reader, "POST", "/api/v1/contacts", Some(json!({ "email": "x@y.test" }))).await;
    assert!(refused.contains("Your role does not allow that"), "{refused}");
    let added = raid.ask(&member, "POST", "/api/v1/contacts", Some(json!({ "email": "x@y.test" }))).await;
    assert_eq!(added.0, 201, "a member does the daily work: {}", added.1);
}

/// S17: nobody becomes more than they are.
#[tokio::test(flavor = "multi_thread")]
async fn no_request_makes_anybody_more_than_their_role() {
    let firm = Firm::new().await;
    let (ann, member) = firm.hire("ann@office.test", "member").await;
    let (bob, reader) = firm.hire("bob@office.test", "read-only").await;
    let (eve, owner) = firm.hire("eve@office.test", "owner").await;
    for (own, who) in [(ann, &member), (bob, &reader)] {
        for (method, path, body) in [
            ("PATCH", format!("/people/{own}"), json!({ "role": "owner" })),
            ("PATCH", format!("/people/{eve}"), json!({ "email": "ann2@office.test" })),
            ("POST", "/people".into(), json!({ "email": "mallory@office.test", "role": "owner" })),
            ("POST", format!("/people/{eve}/link"), Value::Null),
            ("POST", "/keys".into(), json!({ "name": "mine", "scopes": ["service"] })),
            ("GET", "/keys".into(), Value::Null),
            ("DELETE", format!("/people/{eve}"), Value::Null),
        ] {
            let (status, answer) = who.ask(method, &path, body.clone()).await;
            assert_eq!(status, 403, "{own}: {method} {path} {body}: {answer}");
        }
    }
    // A key of a person's is not the person: it would sign in with the rights of the role.
    let new = json!({ "name": "laptop", "scopes": ["read", "write", "agent"], "person": "eve@office.test" });
    let (_, key) = owner.ask("POST", "/keys", new).await;
    let key = Secret::new(key["key"].as_str().expect("an owner makes keys"));
    assert_eq!(firm.ask(&key, "POST", &format!("/people/{eve}/link"), Value::Null).await.0, 403);
    // Nor does a session reach the agents' routes, or one's own role.
    let rest = client().get(format!("{}/rest/v1/sales", firm.house.app.url)).header("cookie", &member.cookie);
    assert_eq!(rest.send().await.expect("an answer").status().as_u16(), 403);
    let (status, refused) = owner.ask("PATCH", &format!("/people/{eve}"), json!({ "role": "member" })).await;
    assert_eq!(
        (status, &refused["detail"]),
        (409, &json!("nobody changes their own role: somebody else has to do it"))
    );
    assert_eq!(owner.ask("DELETE", &format!("/people/{eve}"), Value::Null).await.0, 409);

    // A role that is changed counts at once.
    assert_eq!(member.ask("POST", "/contacts", json!({ "email": "a@x.test" })).await.0, 201);
    assert_eq!(owner.ask("PATCH", &format!("/people/{ann}"), json!({ "role": "read-only" })).await.0, 200);
    assert_eq!(member.ask("POST", "/contacts", json!({ "email": "b@x.test" })).await.0, 403, "an old role counts");
    assert_eq!(owner.ask("PATCH", &format!("/people/{ann}"), json!({ "role": "owner" })).await.0, 200);
    assert_eq!(member.ask("GET", "/keys", Value::Null).await.0, 200);
    assert_eq!(member.ask("PATCH", &format!("/people/{eve}"), json!({ "role": "king" })).await.0, 422);

    // A change needs the token of our own pages, from whichever route.
    let link = format!("{}/api/v1/people/{eve}/link", firm.house.app.url);
    let bare = client().post(link).header("cookie", &owner.cookie).send().await.expect("an answer");
    assert_eq!(bare.status().as_u16(), 403, "S16");
    for (csrf, expected) in [("", 403), (member.csrf.as_str(), 403), (owner.csrf.as_str(), 200)] {
        assert_eq!(owner.post(&format!("/settings/people/{bob}/link"), &[("csrf", csrf)]).await, expected, "S16");
    }
}

/// S25: sessions are seen and ended by those they belong to and by an owner, and end with the person.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_ended_by_their_person_by_an_owner_and_with_the_person() {
    let firm = Firm::new().await;
    let (ann, first) = firm.hire("ann@office.test", "read-only").await;
    let (bob, other) = firm.hire("bob@office.test", "owner").await;
    // Ann makes a link for her phone herself.
    let (status, made) = first.ask("POST", &format!("/people/{ann}/link"), Value::Null).await;
    assert_eq!(status, 201, "{made}");
    let life = chrono::DateTime::parse_from_rfc3339(made["expires_at"].as_str().expect("a time")).expect("a time");
    assert!(life < chrono::Utc::now() + chrono::TimeDelta::minutes(16), "a link of one's own lasts 15 minutes");
    let (_, waiting) = first.ask("GET", "/sessions", Value::Null).await;
    let kinds = |listed: &Value| {
        let all = listed["sessions"].as_array().expect("sessions").iter();
        let mut kinds: Vec<String> = all.map(|one| one["kind"].as_str().expect("a kind").to_owned()).collect();
        kinds.sort();
        kinds
    };
    assert_eq!(kinds(&waiting), ["link", "session"]);
    let second = firm.open(made["url"].as_str().expect("a link")).await.expect("signed in");
    let (_, listed) = second.ask("GET", "/sessions", Value::Null).await;
    assert_eq!(kinds(&listed), ["session", "session"], "her own, and nobody else's: {listed}");
    let id_of = |listed: &Value, is_current: bool| {
        let all = listed["sessions"].as_array().expect("sessions").iter();
        let mut found = all.filter(|one| one["is_current"] == is_current);
        found.next().expect("a session")["id"].as_str().expect("an id").to_owned()
    };
    let (_, bobs) = other.ask("GET", "/sessions", Value::Null).await;
    assert_eq!(kinds(&bobs).len(), 3, "an owner sees everybody's");
    let bobs_own = id_of(&bobs, true);
    assert_eq!(second.ask("DELETE", &format!("/sessions/{bobs_own}"), Value::Null).await.0, 404);
    assert!(other.is_good().await);
    assert_eq!(
        second.post(&format!("/settings/sessions/{}/end", id_of(&listed, false)), &[("csrf", "x")]).await,
        403,
        "S16"
    );
    let ended = second.ask("DELETE", &format!("/sessions/{}", id_of(&listed, false)), Value::Null).await.0;
    assert_eq!((ended, first.is_good().await, second.is_good().await), (204, false, true), "S25");

    // An owner ends hers; the command line shows and ends sessions too.
    let third = firm.open(&firm.invite(ann).await).await.expect("signed in");
    let (_, stdout, _) = firm.tributary(&["person", "sessions", "ann@office.test", "--json"]);
    let shown: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(kinds(&shown).len(), 2, "{shown}");
    let (_, listed) = third.ask("GET", "/sessions", Value::Null).await;
    assert_eq!(other.ask("DELETE", &format!("/sessions/{}", id_of(&listed, true)), Value::Null).await.0, 204);
    assert!(!third.is_good().await && second.is_good().await, "S25");
    let (_, listed) = second.ask("GET", "/sessions", Value::Null).await;
    let (is_done, _, stderr) = firm.tributary(&["person", "end-session", &id_of(&listed, true)]);
    assert!(is_done, "{stderr}");
    assert!(
        wait_until(Duration::from_secs(6), async || !second.is_good().await).await,
        "S25: ended elsewhere, good here"
    );

    // With the person everything of theirs ends: sessions, and links that were not used.
    let (is_done, stdout, stderr) = firm.tributary(&["person", "invite", "ann@office.test"]);
    assert!(is_done && stderr.contains("nobody else"), "{stderr}");
    let fourth = firm.open(stdout.trim()).await.expect("signed in");
    let unused = firm.invite(ann).await;
    let page = client().get(format!("{}/settings/people/{ann}", firm.house.app.url)).header("cookie", &other.cookie);
    let page = page.send().await.expect("an answer").text().await.expect("a page");
    assert!(page.contains("2 sessions end.") && page.contains("a link that was not used yet"), "{page}");
    assert_eq!(other.ask("DELETE", &format!("/people/{ann}"), Value::Null).await.0, 200);
    assert!(!fourth.is_good().await, "S25: a removed person's session is good");
    assert_eq!(firm.open(&unused).await.err(), Some(401), "S25: a removed person's link is good");
    assert_eq!(firm.house.number("select count(*) from tributary.sessions").await, 1, "bob's is left");
    assert_eq!(other.ask("DELETE", &format!("/people/{bob}"), Value::Null).await.0, 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_invites_on_a_page_and_the_person_signs_in_and_adds_a_device() {
    let firm = Firm::new().await;
    let ann = firm.add("ann@office.test").await;
    let url = &firm.house.app.url;
    let own_page = format!("{url}/settings/people/{ann}");
    let link_of = async |browser: &Browser| {
        let link = browser.script("return document.querySelector('#signing-in .copy input').value").await;
        link.as_str().expect("a link").replace(crate::channels::PUBLIC_URL, url)
    };
    let browser = Browser::signed_in(&firm.house.app, &firm.house.world).await;
    browser.goto(&own_page).await;
    assert!(browser.shows("Make an invitation link", SOON).await, "{}", browser.text().await);
    browser.click("#signing-in button").await;
    assert!(browser.shows("It works once", SOON).await, "{}", browser.text().await);
    browser.photograph("person-invited").await;
    let link = link_of(&browser).await;
    browser.close().await;

    let browser = Browser::start().await;
    browser.goto(&link).await;
    assert!(browser.shows("Sign out", SOON).await, "{}", browser.text().await);
    let address = browser.client.current_url().await.expect("a URL").to_string();
    assert!(!address.contains("once"), "the secret stays in the address: {address}");
    browser.goto(&own_page).await;
    assert!(browser.shows("Make a link for another device", SOON).await, "{}", browser.text().await);
    assert!(browser.shows("this browser", SOON).await && !browser.text().await.contains("Remove this person"));
    browser.click("#signing-in button").await;
    assert!(browser.shows("Open it on your other device", SOON).await, "{}", browser.text().await);
    let another = firm.open(&link_of(&browser).await).await.expect("the other device");
    browser.goto(&format!("{url}/settings/sessions")).await;
    assert!(browser.shows("Firefox on Linux", SOON).await, "{}", browser.text().await);
    browser.photograph("sessions").await;
    // The other device is the one that is not this browser.
    browser.click("tr:not(:has(.chip)) button").await;
    assert!(browser.shows("That browser has to sign in again", SOON).await, "{}", browser.text().await);
    assert!(!another.is_good().await);
    browser.goto(&link).await;
    assert!(browser.shows("This link was used already", SOON).await, "{}", browser.text().await);
    browser.close().await;
}
