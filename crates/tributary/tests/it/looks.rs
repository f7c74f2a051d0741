//! Everything that users see, as files: the text of every page, an answer of every GET route, the API's description and every command's help.
//! A change of wording or shape shows up in review as a changed file. `INSTA_UPDATE=always ./test looks` writes them anew.

mod described;
pub mod letters;
pub mod office;
mod steady;

use serde_json::Value;

use crate::app::{Folder, command, run};
use described::described;
use office::Office;
use steady::{Steady, sample};

#[tokio::test(flavor = "multi_thread")]
async fn every_page_reads_as_it_did() {
    let office = Office::new().await;
    for (name, path) in office.pages().await {
        let (status, html) = office.page(&path).await;
        let expected = if name == "error" { 404 } else { 200 };
        assert_eq!(status, expected, "{name}: {path}\n{html}");
        insta::assert_snapshot!(format!("page_{name}"), Steady::default().page(&html));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_of_the_api_has_the_shape_it_had() {
    let office = Office::new().await;
    let openapi = office.answer("/api/v1/openapi.json").await;
    insta::assert_snapshot!("api_description", described(&openapi));
    let paths = openapi["paths"].as_object().expect("paths");
    for path in paths.iter().filter(|(_, methods)| methods.get("get").is_some()).map(|(path, _)| path.as_str()) {
        let Some(asked) = office.sample_of(path).await else { continue };
        let answer = sample(office.answer(&asked).await);
        let shown = serde_json::to_string_pretty(&answer).expect("JSON");
        let name =
            path.trim_start_matches("/api/v1").trim_matches('/').replace(['{', '}'], "").replace(['/', '-'], "_");
        insta::assert_snapshot!(format!("api_{name}"), format!("GET {path}\n{}", Steady::default().text(&shown)));
    }
}

/// The commands that a help text lists.
fn listed(help: &str) -> Vec<String> {
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let named = commands.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    named.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").map(str::to_owned).collect()
}

#[test]
fn every_command_explains_itself_as_it_did() {
    let folder = Folder::new();
    let help = |words: &[String]| {
        let (output, said, error) = run(command(&folder.0, 7171).args(words).arg("-h"));
        assert!(output.status.success(), "{words:?}: {error}");
        said.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    };
    for name in listed(&help(&[])) {
        let mut pages = vec![help(std::slice::from_ref(&name))];
        for below in listed(&pages[0]) {
            let said = help(&[name.clone(), below.clone()]);
            pages.push(format!("$ tributary {name} {below} -h\n\n{said}"));
        }
        insta::assert_snapshot!(format!("help_{name}"), pages.join("\n\n\n"));
    }
}

#[test]
fn values_that_differ_from_run_to_run_are_replaced_and_nothing_else_is() {
    let id = |n: u128| uuid::Uuid::from_u128(n).to_string();
    let mut steady = Steady::default();
    assert_eq!(steady.text(&format!("{} {} {}", id(1), id(2), id(1))), "<id 1> <id 2> <id 1>");
    for (text, expected) in [
        ("at 2026-11-16T11:52:02.123456Z", "at <time>"),
        ("http://127.0.0.1:40123/x", "http://127.0.0.1:<port>/x"),
        ("trb_abc-DEF_123456789012", "<secret>"),
        ("3 results in 12 ms", "3 results in <n> ms"),
        ("0.8123456", "<number>"),
        ("12.50 dollars, due 2026-11-01, 48,600", "12.50 dollars, due 2026-11-01, 48,600"),
    ] {
        assert_eq!(Steady::default().text(text), expected);
    }
    let long: Value = serde_json::json!([1, 2, 3, 4]);
    assert_eq!(sample(long), serde_json::json!([1, 2, "… and 2 more"]));
}
