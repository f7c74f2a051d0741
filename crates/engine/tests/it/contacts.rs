//! The contact of an event: many spellings of an address, matched in the database for every writer.

use domain::{Caller, ContactId, Region, normal_address};
use engine::channels::NewChannel;
use store::channels::{self, NewRefusal};
use store::contacts::{self, NewContact};
use testkit::World;

struct People {
    world: World,
    region: Region,
}

impl People {
    async fn new() -> Self {
        Self { world: World::now().await, region: "US".parse().expect("a region") }
    }

    /// As the doors bring people in: addresses in their normal form.
    async fn contact(&self, email: Option<&str>, phone: Option<&str>) -> ContactId {
        let new = NewContact {
            email: email.map(str::to_owned),
            phone_number: phone.map(str::to_owned),
            ..NewContact::default()
        };
        let new = engine::contacts::checked(new, Some(self.region)).expect("a contact");
        contacts::create(&mut *self.world.conn().await, self.world.tenant_id, &new).await.expect("a contact")
    }

    /// Inserts an event from this address, with the library's form beside it as intake does, or as somebody else would.
    async fn owner(&self, from: &str, is_intake: bool) -> Option<ContactId> {
        let key = is_intake.then(|| normal_address(from, Some(self.region))).flatten();
        let owner: Option<i64> = sqlx::query_scalar(
            "insert into activities (tenant_id, type, raw_data, metadata)
             values ($1, 'note', '{\"source_type\":\"text\",\"content\":\"x\"}', jsonb_strip_nulls(jsonb_build_object('from', $2::text, 'from_key', $3::text)))
             returning contact_id",
        )
        .bind(self.world.tenant_id.0)
        .bind(from)
        .bind(key)
        .fetch_one(&mut *self.world.conn().await)
        .await
        .expect("an activity");
        owner.map(ContactId)
    }
}

fn email_forms(local: &str, domain: &str) -> Vec<String> {
    let address = format!("{local}@{domain}");
    vec![
        address.clone(),
        address.to_ascii_uppercase(),
        format!(" {address} "),
        format!("<{address}>"),
        format!("Somebody <{address}>"),
        format!("Somebody<{address}>"),
        format!("\"Body, Some\" <{address}>"),
        format!("\"boss@corp.test\" <{address}>"),
        format!("\"a \\\"quoted\\\" name\" <{address}>"),
        format!("{address} (Somebody)"),
        format!("Somebody (at work) <{address}>"),
        format!("{address}."),
        format!("{local}@{}", domain.to_ascii_uppercase()),
        format!("\"{local}\"@{domain}"),
        format!("{address}, other@elsewhere.test"),
        format!("Group: {address};"),
        format!("\u{202a}{address}\u{202c}"),
        format!("\u{feff}{address}"),
        format!("=?utf-8?q?S=C3=B6me?= <{address}>"),
    ]
}

/// `grouped`: country code, then the groups in which people write the rest.
fn phone_forms(grouped: &[&str]) -> Vec<String> {
    let (country, rest) = grouped.split_first().expect("a country");
    let plain = rest.concat();
    let wide: String = format!("+{country}{plain}")
        .chars()
        .map(|c| char::from_u32(0xff00 + u32::from(c) - 0x20).unwrap_or(c))
        .collect();
    vec![
        format!("+{country}{plain}"),
        format!("+{country} {}", rest.join(" ")),
        format!("+{country}-{}", rest.join("-")),
        format!("+{country}.{}", rest.join(".")),
        format!("+{country} ({}) {}", rest[0], rest[1..].join("-")),
        format!("+{country} ({}) {}", rest[0], rest[1..].join(" ")),
        format!("00{country}{plain}"),
        format!("00 {country} {}", rest.join(" ")),
        format!("tel:+{country}{plain}"),
        format!("tel:+{country}-{};ext=12", rest.join("-")),
        format!("whatsapp:+{country}{plain}"),
        format!("sms:+{country}{plain}"),
        format!("sip:+{country}{plain}@pbx.example.com"),
        format!("+{country}{plain} ext. 12"),
        format!("+{country} {} x7", rest.join(" ")),
        format!("\u{202d}+{country} {}\u{202c}", rest.join("\u{2011}")),
        format!("  +{country}\u{a0}{} ", rest.join("\u{a0}")),
        format!("+{country} {}", rest.join(" / ")),
        format!("+{country} {}", rest.join("–")),
        wide,
    ]
}

/// S31.
#[tokio::test]
async fn an_address_finds_its_contact_however_it_is_written() {
    let people = People::new().await;
    let ann = people.contact(Some("Ann@Example.com"), Some("(415) 867-5309")).await;
    let bob = people.contact(Some("bob.smith@gmail.com"), Some("+44 20 7946 0958")).await;
    let jo = people.contact(Some("Jürgen@münchen.example"), Some("+54 9 11 2345 6789")).await;
    let rosa = people.contact(None, Some("+55 11 91234-5678")).await;
    let luz = people.contact(None, Some("+52 55 1234 5678")).await;
    let mut forms: Vec<(String, ContactId)> = Vec::new();
    for (contact, local, domain) in
        [(ann, "ann", "example.com"), (bob, "bob.smith", "gmail.com"), (jo, "jürgen", "xn--mnchen-3ya.example")]
    {
        forms.extend(email_forms(local, domain).into_iter().map(|form| (form, contact)));
    }
    for local in ["bobsmith", "b.o.b.s.m.i.t.h", "BobSmith+invoices"] {
        forms.extend(["gmail.com", "googlemail.com", "GMAIL.com"].map(|domain| (format!("{local}@{domain}"), bob)));
    }
    let numbers: [(ContactId, &[&str]); 8] = [
        (ann, &["1", "415", "867", "5309"]),
        (bob, &["44", "20", "7946", "0958"]),
        (jo, &["54", "9", "11", "2345", "6789"]),
        (jo, &["54", "11", "2345", "6789"]),
        (rosa, &["55", "11", "91234", "5678"]),
        (rosa, &["55", "11", "9123", "45678"]),
        (luz, &["52", "1", "55", "1234", "5678"]),
        (luz, &["52", "55", "1234", "5678"]),
    ];
    for (contact, grouped) in numbers {
        forms.extend(phone_forms(grouped).into_iter().map(|form| (form, contact)));
    }
    for national in
        ["415-867-5309", "(415) 867-5309", "415.867.5309", "4158675309", "1-415-867-5309", "1 (415) 867 5309"]
    {
        forms.push((national.into(), ann));
    }
    forms.push(("+44 (0)20 7946 0958".into(), bob));
    assert!(forms.len() >= 200, "only {} forms", forms.len());
    for (form, contact) in &forms {
        assert_eq!(people.owner(form, true).await, Some(*contact), "through the door: {form:?}");
    }
    // Other programs insert by SQL, without the library: all numbers, and plain addresses.
    let by_sql = forms.iter().filter(|(form, _)| {
        !form.contains('@') || !form.contains(['(', ',', ';', '"', '\u{202a}', '\u{feff}']) || form.starts_with("sip:")
    });
    let mut n = 0;
    for (form, contact) in by_sql {
        assert_eq!(people.owner(form, false).await, Some(*contact), "by SQL alone: {form:?}");
        n += 1;
    }
    println!("{} forms through the door, {n} by SQL alone", forms.len());
    assert!(n >= 190, "only {n} by SQL alone");
}

#[tokio::test]
async fn who_is_not_meant_is_not_matched() {
    let people = People::new().await;
    people.contact(Some("ann@example.com"), Some("+14158675309")).await;
    people.contact(None, Some("+1 212 555 0100")).await;
    people.contact(None, Some("+44 2125 550100")).await;
    let nobody = [
        "",
        "anonymous",
        "Restricted",
        "+266696687",
        "32665",
        "ACME",
        "client:ann",
        "ann@example.com.evil.test",
        "ann@example.co",
        "nn@example.com",
        "ann+shop@example.com",
        "a.n.n@example.com",
        "\"ann@example.com\" <mallory@evil.test>",
        "ann@example.com <mallory@evil.test>",
        "аnn@example.com", // a Cyrillic а
        "+14158675308",
        "867-5309",
        "<script>alert(1)</script>",
        "'; drop table contacts; --",
    ];
    for form in nobody {
        for is_intake in [true, false] {
            assert_eq!(people.owner(form, is_intake).await, None, "{form:?}");
        }
    }
    assert_eq!(people.owner("2125550100", false).await, None, "the last ten digits of two");
}

#[tokio::test]
async fn keys_follow_a_contact_and_other_tenants_are_nobody() {
    let people = People::new().await;
    let ann = people.contact(Some("ann@example.com"), None).await;
    let tenant_id = people.world.tenant_id;
    let mut conn = people.world.conn().await;
    sqlx::query("update contacts set email = 'ann@new.example', phone_number = '+14158675309' where id = $1")
        .bind(ann.0)
        .execute(&mut *conn)
        .await
        .expect("changed");
    assert_eq!(people.owner("ann@example.com", true).await, None);
    assert_eq!(people.owner("ann@new.example", true).await, Some(ann));
    assert_eq!(people.owner("415 867 5309", true).await, Some(ann));
    contacts::add_address(&mut conn, tenant_id, ann, "ann@home.example").await.expect("added");
    sqlx::query("update contacts set email = 'ann@newer.example' where id = $1")
        .bind(ann.0)
        .execute(&mut *conn)
        .await
        .expect("changed");
    assert_eq!(people.owner("ann@home.example", true).await, Some(ann), "what a person added stays");
    let known = contacts::addresses(&mut conn, tenant_id, ann).await.expect("addresses");
    assert_eq!(known, ["ann@home.example", "ann@newer.example", "+14158675309"]);
    let elsewhere = people.world.other_tenant("elsewhere").await;
    let owner: Option<i64> = sqlx::query_scalar(
        "insert into activities (tenant_id, type, raw_data, metadata) values ($1, 'note', '{\"source_type\":\"text\"}', '{\"from\":\"ann@newer.example\"}') returning contact_id",
    )
    .bind(elsewhere.0)
    .fetch_one(&mut *conn)
    .await
    .expect("an activity");
    assert_eq!(owner, None, "S17");
    let to_her: Option<i64> = sqlx::query_scalar(
        "insert into activities (tenant_id, type, direction, raw_data, metadata)
         values ($1, 'email', 'outbound', '{\"source_type\":\"text\"}', '{\"from\":\"us@example.com\",\"to\":[\"Ann <ann@newer.example>\"]}') returning contact_id",
    )
    .bind(tenant_id.0)
    .fetch_one(&mut *conn)
    .await
    .expect("an activity");
    assert_eq!(to_her, Some(ann.0), "what goes out is of whom it goes to");
    sqlx::query("delete from contacts where id = $1").bind(ann.0).execute(&mut *conn).await.expect("deleted");
    let left: i64 =
        sqlx::query_scalar("select count(*) from contact_keys").fetch_one(&mut *conn).await.expect("a count");
    assert_eq!(left, 0);
}

#[tokio::test]
async fn new_contacts_take_what_waited_for_them() {
    let people = People::new().await;
    for from in ["Ann <ann@example.com>", "ann@EXAMPLE.com", "bob@example.com"] {
        assert_eq!(people.owner(from, true).await, None);
    }
    let (env, tenant_id) = (&people.world.env, people.world.tenant_id);
    let report = engine::contacts::import(
        env,
        tenant_id,
        b"email,name\nann@example.com,Ann\n\"bob@example.com\",\"Bob, the second\"\n",
    )
    .await;
    let report = report.expect("an import");
    assert_eq!((report.created, report.linked, report.left_out.len()), (2, 3, 0));
    let again = engine::contacts::import(env, tenant_id, b"email,name\nann@example.com,Another name\n")
        .await
        .expect("an import");
    assert_eq!((again.created, again.updated, again.unchanged), (0, 0, 1), "nobody is overwritten");
    let waiting: i64 = sqlx::query_scalar("select count(*) from pgmq.q_remember_activity")
        .fetch_one(&mut *people.world.conn().await)
        .await
        .expect("a count");
    assert_eq!(waiting, 6, "each is remembered when it comes and when it is linked");
}

#[tokio::test]
async fn a_channel_that_refuses_much_is_told_and_one_that_refuses_little_is_not() {
    let people = People::new().await;
    let (env, tenant_id) = (&people.world.env, people.world.tenant_id);
    let mut conn = people.world.conn().await;
    let mut channel = async |name: &str, n: i32| {
        let new = NewChannel { provider: "generic".into(), name: name.into(), ..NewChannel::default() };
        let channel_id =
            engine::channels::add(env, &Caller::local("test", tenant_id, false), new).await.expect("a channel").id;
        let (reason, address) = ("the signature does not match".to_owned(), "203.0.113.7".to_owned());
        let refusal = NewRefusal { tenant_id, channel_id, status: 401, reason, address, n };
        channels::add_refusals(&mut conn, &[refusal.clone(), refusal]).await.expect("refusals");
    };
    channel("shop", 10).await;
    channel("form", 9).await;
    let caller = Caller::local("test", tenant_id, false);
    let findings = engine::health::overview(env, &caller).await.expect("an overview").findings;
    let told: Vec<&str> =
        findings.iter().filter(|one| one.kind == "channel_refuses").map(|one| one.what.as_str()).collect();
    assert_eq!(told, ["channel shop refused 20 requests within ten minutes: the signature does not match"]);
}
