//! The API as somebody meets it who generates a client: its description passes others' checks, clients made from it work, and a request that the
//! server does not understand is told why.

use std::path::{Path, PathBuf};
use std::process::Command;

use domain::Scope;
use serde_json::{Value, json};
use testkit::World;

use crate::app::{App, Folder, client, run};
use crate::browser::serve;

/// A server, its description in a file, and a key that may do everything in its tenant.
struct Described {
    app: App,
    key: String,
    folder: Folder,
    file: PathBuf,
    _world: World,
}

impl Described {
    async fn new() -> Self {
        let (world, folder) = (World::now().await, Folder::new());
        let app = serve(&world, &folder).await;
        let key =
            world.caller(world.tenant_id, &[Scope::Read, Scope::Write, Scope::Service]).await.1.reveal().to_owned();
        std::fs::create_dir_all(&folder.0).expect("a folder");
        let file = folder.0.join("openapi.json");
        let answer = client().get(format!("{}/api/v1/openapi.json", app.url)).send().await.expect("an answer");
        let description: Value = answer.json().await.expect("JSON");
        assert_eq!(description["servers"][0]["url"], app.url, "a client must know where to ask");
        std::fs::write(&file, description.to_string()).expect("a file");
        Self { app, key, folder, file, _world: world }
    }

    async fn ask(&self, path: &str, key: Option<&str>) -> (u16, Value) {
        let request = client().get(format!("{}{path}", self.app.url));
        let request = key.into_iter().fold(request, |request, key| request.bearer_auth(key));
        let answer = request.send().await.expect("an answer");
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }
}

fn node_packages() -> PathBuf {
    PathBuf::from(std::env::var("NODE_PACKAGES_DIR").expect("NODE_PACKAGES_DIR; ./test sets it")).join("node_modules")
}

fn ours(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/openapi").join(name)
}

/// Runs a program that must succeed.
fn must(command: &mut Command) -> String {
    let (output, said, error) = run(command);
    assert!(output.status.success(), "{command:?}\n{said}\n{error}");
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn the_description_passes_redoclys_lint_and_a_validator() {
    let t = Described::new().await;
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/redocly.yaml");
    let mut lint = Command::new("node");
    lint.arg(node_packages().join("@redocly/cli/bin/cli.js")).arg("lint").arg(&t.file).arg("--config").arg(rules);
    lint.args(["--format", "stylish", "--max-problems", "1000"]).env("REDOCLY_TELEMETRY", "off");
    lint.env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true").current_dir(&t.folder.0);
    must(&mut lint);
    let said = must(Command::new("node").arg(ours("validate.mjs")).arg(&t.file));
    assert_eq!(said.trim(), "valid 3.1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_typescript_client_made_from_the_description_compiles_and_makes_a_first_request() {
    let t = Described::new().await;
    let folder = &t.folder.0;
    std::os::unix::fs::symlink(node_packages(), folder.join("node_modules")).expect("a link");
    std::fs::copy(ours("first_request.ts"), folder.join("first_request.ts")).expect("a copy");
    let program = |name: &str| {
        let mut node = Command::new("node");
        node.arg(node_packages().join(name)).current_dir(folder);
        node
    };
    must(program("openapi-typescript/bin/cli.js").arg(&t.file).args(["-o", "schema.d.ts"]));
    let options = json!({ "strict": true, "target": "es2022", "module": "es2022", "moduleResolution": "bundler", "outDir": "made", "types": [] });
    let settings = json!({ "compilerOptions": options, "files": ["first_request.ts"] });
    std::fs::write(folder.join("tsconfig.json"), settings.to_string()).expect("a file");
    must(program("typescript/bin/tsc").args(["--project", "tsconfig.json"]));
    std::fs::write(folder.join("package.json"), r#"{ "type": "module" }"#).expect("a file");
    let said = must(Command::new("node").arg(folder.join("made/first_request.js")).args([&t.app.url, &t.key]));
    let text = "Ann prefers calls on Friday mornings.";
    let expected = json!({ "title": "About Ann", "text": text, "refused": "/problems/unknown-key" });
    assert_eq!(serde_json::from_str::<Value>(&said).ok(), Some(expected), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_python_client_made_from_the_description_compiles_and_makes_a_first_request() {
    let t = Described::new().await;
    let packages = std::env::var("TEST_PACKAGES_DIR").expect("TEST_PACKAGES_DIR; ./test sets it");
    let mut python = Command::new("python3");
    python.arg(ours("first_request.py")).arg(&t.file).arg(&t.folder.0).args([&t.app.url, &t.key]);
    let said = must(python.env("PYTHONPATH", packages).env("PYTHONDONTWRITEBYTECODE", "1"));
    let last = said.lines().last().unwrap_or_default();
    let expected = json!({ "made": "shop", "listed": ["shop"], "hits": 0, "refused": "/problems/unknown-key" });
    assert_eq!(serde_json::from_str::<Value>(last).ok(), Some(expected), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_parameter_that_a_route_does_not_have_is_refused_by_name() {
    let t = Described::new().await;
    let description: Value = serde_json::from_slice(&std::fs::read(&t.file).expect("a file")).expect("JSON");
    let mut asked = 0;
    for (path, methods) in description["paths"].as_object().expect("paths") {
        if methods.get("get").is_none() || !path.starts_with("/api/") {
            continue;
        }
        let path = path.replace("{id}", "0198f0c2-7b1e-7c3a-9d55-2f6b8c1a4e77").replace("{lane}", "upkeep");
        let (status, problem) = t.ask(&format!("{path}?limt=1"), Some(&t.key)).await;
        assert_eq!((status, &problem["type"]), (400, &json!("/problems/malformed")), "{path}: {problem}");
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(detail.contains("`limt`"), "{path}: {detail}");
        asked += 1;
    }
    assert!(asked > 25, "{asked} routes");
    let (status, problem) = t.ask("/api/v1/documents?limit=1&befor=2&x", Some(&t.key)).await;
    let told = "the parameters `befor`, `x` are not known here: there are source, type, status, before, limit";
    assert_eq!((status, &problem["detail"]), (400, &json!(told)));
    let post = client().post(format!("{}/api/v1/contacts?dry_run=true", t.app.url)).bearer_auth(&t.key);
    let answer = post.json(&json!({ "email": "ann@acme.test" })).send().await.expect("an answer");
    assert_eq!(answer.status().as_u16(), 400, "nothing may be done that was not asked for so");
    assert_eq!(t.ask("/api/v1/contacts", Some(&t.key)).await.1["contacts"], json!([]));
    assert_eq!(t.ask("/api/v1/documents?limit=1", Some(&t.key)).await.0, 200);
    assert_eq!(t.ask("/healthz?probe=7", None).await.0, 200, "a probe may add what it likes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_key_and_a_wrong_one_are_told_apart_and_a_revoked_one_is_as_one_that_never_was() {
    let t = Described::new().await;
    let asked = async |key: Option<&str>| {
        let (status, mut problem) = t.ask("/api/v1/documents", key).await;
        problem["request_id"] = Value::Null;
        (status, problem)
    };
    let (status, missing) = asked(None).await;
    assert_eq!((status, &missing["type"]), (401, &json!("/problems/unauthenticated")));
    assert!(missing["detail"].as_str().is_some_and(|detail| detail.starts_with("no key was given")), "{missing}");
    let (status, wrong) = asked(Some("trb_wrong")).await;
    assert_eq!((status, &wrong["type"]), (401, &json!("/problems/unknown-key")));
    assert!(wrong["detail"].as_str().is_some_and(|detail| detail.contains("not known, or it was revoked")), "{wrong}");

    let keys = format!("{}/api/v1/keys", t.app.url);
    let made = client().post(&keys).bearer_auth(&t.key).json(&json!({ "name": "old", "scopes": ["read"] }));
    let made: Value = made.send().await.expect("an answer").json().await.expect("JSON");
    let (id, old) = (made["id"].as_str().expect("an id"), made["key"].as_str().expect("a key"));
    assert_eq!(asked(Some(old)).await.0, 200);
    let revoked = client().delete(format!("{keys}/{id}")).bearer_auth(&t.key).send().await.expect("an answer");
    assert_eq!(revoked.status().as_u16(), 204);
    assert_eq!(asked(Some(old)).await, (401, wrong), "it tells nothing about which keys there were");
}
