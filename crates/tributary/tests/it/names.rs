//! Names: they stand for ids on the command line, and no two channels share one.

use domain::{Caller, Scope, Secret, TenantId};
use engine::ActError;
use engine::channels::{NewChannel, Opened};
use serde_json::{Value, json};
use testkit::World;

use crate::app::{Folder, client, command, run};
use crate::browser::serve;

/// Adds a channel. One whose name is taken gets another one.
pub async fn open_channel(world: &World, tenant_id: TenantId, new: NewChannel) -> Opened {
    let caller = Caller::local("test", tenant_id, false);
    for nth in 1..100 {
        let name = if nth == 1 { new.name.clone() } else { format!("{} {nth}", new.name) };
        match engine::channels::add(&world.env, &caller, NewChannel { name, ..new.clone() }).await {
            Err(ActError::Conflict(_)) => continue,
            made => return made.expect("a channel"),
        }
    }
    panic!("a hundred channels have that name");
}

/// Names work where ids do, in each command that takes an id.
#[tokio::test]
async fn things_are_meant_by_their_names_and_what_is_typed_wrongly_is_suggested() {
    let (world, folder) = (World::now().await, Folder::new());
    let ask = |args: &[&str]| run(command(&folder.0, 7171).env("DATABASE_URL", &world.database.url).args(args));
    let must = |args: &[&str]| {
        let (output, said, error) = ask(args);
        assert!(output.status.success(), "{args:?}: {said}{error}");
        said
    };
    must(&["contact", "add", "--email", "ann@acme.test", "--first-name", "Ann", "--last-name", "Lark"]);
    std::fs::create_dir_all(&folder.0).expect("a folder");
    std::fs::write(folder.0.join("note.md"), "# Opening hours\n\nWe open at nine.").expect("a note");
    must(&["remember", folder.0.join("note.md").to_str().expect("a path"), "--title", "Opening hours"]);
    for (args, says) in [
        (&["contact", "show", "ann LARK"][..], "ann@acme.test"),
        (&["contact", "show", "Ann@acme.test"], "Ann Lark"),
        (&["document", "show", "opening hours"], "We open at nine."),
        (&["search", "nine", "--contact", "Ann Lark", "--json"], "hits"),
    ] {
        let (_, said, error) = ask(args);
        assert!(said.contains(says), "{args:?}: {said}{error}");
    }
    for (args, suggested) in [
        (&["contact", "show", "Ann Lerk"][..], "`Ann Lark`"),
        (&["contact", "forget", "ann@acme.tset", "--yes"], "`ann@acme.test`"),
        (&["document", "show", "Opening ours"], "`Opening hours`"),
        (&["search", "nine", "--contact", "An Lark"], "`Ann Lark`"),
        (&["channel", "list", "--tenant", "defalt"], "`default`"),
        (&["queue", "items", "remember_activty"], "`remember_activity`"),
    ] {
        let (output, _, error) = ask(args);
        assert!(!output.status.success() && error.contains(&format!("did you mean {suggested}?")), "{args:?}: {error}");
    }
    let id = must(&["channel", "add", "shell", "--json"]);
    let id = serde_json::from_str::<Value>(&id).expect("JSON")["id"].as_str().expect("an id").to_owned();
    for (words, done) in [
        (&["show", "SHELL"][..], "url"),
        (&["disable", "shell"], "disabled"),
        (&["enable", &id[..13]], "enabled"),
        (&["rotate", "shell", "--url", "--yes"], "url"),
    ] {
        let said = must(&[&["channel"][..], words].concat());
        assert!(said.contains(done), "{words:?}: {said}");
    }
    for (words, told) in [
        (&["delete", "shell"][..], "Delete channel shell"),
        (&["rotate", "shell", "--url"], "`--yes`"),
        (&["disable", "shel"], "did you mean `shell`?"),
        (&["add", "Shell"], "a channel has that name already"),
    ] {
        let (output, _, error) = ask(&[&["channel"][..], words].concat());
        assert!(!output.status.success() && error.contains(told), "{words:?}: {error}");
    }
    must(&["channel", "delete", "shell", "--yes"]);
    let (unasked, _, error) = ask(&["contact", "forget", "Ann Lark"]);
    assert!(!unasked.status.success() && error.contains("no terminal") && error.contains("`--yes`"), "{error}");
    must(&["contact", "forget", "Ann Lark", "--yes"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_channels_of_a_tenant_cannot_have_one_name() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    let other = world.other_tenant("somebody else").await;
    let own = world.caller(world.tenant_id, &[Scope::Service]).await.1;
    let stranger = world.caller(other, &[Scope::Service]).await.1;
    let ask = async |method: &str, path: &str, key: &Secret, name: &str| {
        let request = client().request(method.parse().expect("a method"), format!("{}/api/v1/channels{path}", app.url));
        let answer = request.bearer_auth(key.reveal()).json(&json!({ "name": name })).send().await.expect("an answer");
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap_or_default())
    };
    let (status, shop) = ask("POST", "", &own, "shop").await;
    assert_eq!(status, 201, "{shop}");
    assert_eq!(ask("POST", "", &own, "crm").await.0, 201);
    let (status, told) = ask("POST", "", &own, " CRM").await;
    assert_eq!((status, &told["detail"]), (409, &json!("a channel has that name already")));
    let path = format!("/{}", shop["id"].as_str().expect("an id"));
    assert_eq!(ask("PATCH", &path, &own, "Crm").await.0, 409, "nor may it be renamed so");
    assert_eq!(ask("PATCH", &path, &own, "SHOP").await.0, 204, "its own name, in capitals");
    assert_eq!(ask("POST", "", &stranger, "crm").await.0, 201, "another tenant's names are its own");
}

/// Channels of an installation from before this rule.
#[tokio::test]
async fn channels_that_share_a_name_are_told_apart_by_the_migration() {
    let world = World::now().await;
    let mut conn = store::bench::administrator(&world.database.admin).await.expect("the owner");
    let before = "drop index public.ingestion_providers_name_key";
    sqlx::query(before).execute(&mut conn).await.expect("as it was before");
    let add = "insert into public.ingestion_providers (id, tenant_id, provider_code, name, ingestion_key_hash, created_at)
        select gen_random_uuid(), $1, 'generic', name, sha256(convert_to(name || nth, 'UTF8')), now() + make_interval(secs => nth)
        from unnest(array['shop', 'Shop', 'crm', 'shop', repeat('x', 200), repeat('x', 200)]) with ordinality as given (name, nth)";
    sqlx::query(add).bind(world.tenant_id.0).execute(&mut conn).await.expect("channels");
    let migration = include_str!("../../../../migrations/0026_channel_names.sql");
    sqlx::raw_sql(migration).execute(&mut conn).await.expect("migrated");
    let names: Vec<String> = sqlx::query_scalar("select name from public.ingestion_providers order by created_at")
        .fetch_all(&mut conn)
        .await
        .expect("names");
    let long = "x".repeat(200);
    assert_eq!([&names[0], &names[2], &names[4]], ["shop", "crm", &long], "the oldest keep theirs");
    assert!(names[1].starts_with("Shop ") && names[3].starts_with("shop ") && names[5].len() == 98, "{names:?}");
}
