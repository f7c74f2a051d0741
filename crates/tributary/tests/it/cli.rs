//! The output of commands, without any secret in it.

use testkit::World;

use crate::app::{Folder, command, run};

#[test]
fn help_reads_as_documented() {
    let folder = Folder::new();
    let (output, said, _) = run(command(&folder.0, 7171).arg("-h"));
    assert!(output.status.success());
    insta::assert_snapshot!("help", said);
}

/// S13.
#[test]
fn config_prints_every_setting_and_no_secret() {
    let folder = Folder::new();
    let mut asked = command(&folder.0, 7171);
    asked
        .env("DATABASE_URL", "postgres://me:canary-1a2b@db/x")
        .env("MASTER_KEY", "canary-3c4d")
        .env("ALERT_WEBHOOK_URL", "https://x/canary-5e6f");
    let (output, said, error) = run(asked.args(["config", "--lane-slots", "3"]));
    assert!(output.status.success(), "{error}");
    assert!(!format!("{said}{error}").contains("canary"), "S13: {said}");
    for (setting, value, from) in
        [("DATABASE_URL", "***", "environment"), ("LANE_SLOTS", "3", "flag"), ("REQUEST_SECS", "30", "default")]
    {
        let line = said
            .lines()
            .find(|line| line.starts_with(setting))
            .unwrap_or_else(|| panic!("{setting} is missing:\n{said}"));
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words, [setting, value, from]);
    }
    assert!(said.contains("tributary.alerts") && said.contains("90 days"), "retention is missing:\n{said}");
}

#[test]
fn a_wrong_crash_point_is_refused_and_the_right_ones_are_listed() {
    let folder = Folder::new();
    let (output, _, said) = run(command(&folder.0, 7171).env("TRIBUTARY_CRASH", "nowhere:abort").arg("config"));
    assert!(!output.status.success() && said.contains("crash-points"), "{said}");
    let (output, said, _) = run(command(&folder.0, 7171).arg("crash-points"));
    assert!(output.status.success());
    assert_eq!(said.lines().count(), store::crash::Point::ALL.len());
}

/// A reader such as `head` goes away before the output is written.
#[test]
fn a_command_whose_reader_is_gone_ends_quietly() {
    let folder = Folder::new();
    for args in
        [&["crash-points"][..], &["config"], &["--help"], &["--help-settings"], &["completions", "zsh"], &["man"]]
    {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = command(&folder.0, 7171).args(args).stdout(writer).output().expect("the binary");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
        assert!([Some(0), Some(141)].contains(&output.status.code()), "{args:?}: {}", output.status);
    }
}

/// Both ends of `2>&1 | head -1` are gone.
#[test]
fn an_error_that_nobody_reads_ends_quietly() {
    let folder = Folder::new();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut asked = command(&folder.0, 7171);
    asked.args(["queue", "list"]).env("DATABASE_URL", "postgres://nobody@127.0.0.1:1/none");
    let ended = asked.stdout(writer.try_clone().expect("a pipe")).stderr(writer).status().expect("the binary");
    assert!([Some(1), Some(141)].contains(&ended.code()), "{ended}");
}

#[test]
fn a_commands_help_has_its_own_options_and_the_settings_have_their_own_page() {
    let folder = Folder::new();
    let ask = |args: &[&str]| run(command(&folder.0, 7171).args(args));
    for args in [&["--help"][..], &["up", "--help"], &["channel", "add", "--help"], &["help", "source", "sync"]] {
        let (output, said, error) = ask(args);
        assert!(output.status.success(), "{args:?}: {error}");
        assert!(!said.contains("DATABASE_URL") && !said.contains("--request-secs"), "{args:?}:\n{said}");
        assert!(said.contains("--help-settings"), "{args:?}:\n{said}");
    }
    assert!(ask(&["channel", "add", "--help"]).1.contains("--auto-create-contacts"));
    for args in [&["--help-settings"][..], &["up", "--help-settings"]] {
        let (output, said, error) = ask(args);
        assert!(output.status.success(), "{args:?}: {error}");
        for setting in ["DATABASE_URL", "LISTEN", "REQUEST_SECS", "HUBSPOT_CLIENT_ID"] {
            assert!(said.contains(setting), "{setting} is missing:\n{said}");
        }
        assert!(!said.contains("Commands:"), "{said}");
    }
    // A setting is still an option of every command.
    assert!(ask(&["config", "--request-secs", "7"]).1.contains("flag"));
}

#[test]
fn shells_complete_commands_and_manual_pages_can_be_read() {
    let folder = Folder::new();
    let ask = |args: &[&str]| run(command(&folder.0, 7171).args(args));
    std::fs::create_dir_all(&folder.0).expect("a folder");
    for (shell, says) in [("bash", "complete -F"), ("zsh", "#compdef tributary"), ("fish", "complete -c tributary")] {
        let (output, script, error) = ask(&["completions", shell]);
        assert!(output.status.success(), "{error}");
        assert!(script.contains(says) && script.contains("send-test"), "{shell}:\n{script}");
    }
    let (_, script, _) = ask(&["completions", "bash"]);
    std::fs::write(folder.0.join("complete.sh"), script).expect("a file");
    let asked = "source ./complete.sh; COMP_WORDS=(tributary chan); COMP_CWORD=1; _tributary tributary chan tributary; echo \"${COMPREPLY[@]}\"";
    let (_, completed, error) = run(std::process::Command::new("bash").args(["-c", asked]).current_dir(&folder.0));
    assert_eq!(completed.trim(), "channel", "{error}");
    let (output, _, error) = ask(&["completions", "tcsh"]);
    assert!(!output.status.success() && error.contains("bash"), "{error}");

    let (output, page, error) = ask(&["man"]);
    assert!(output.status.success() && page.contains(".TH") && page.contains("tributary"), "{error}{page}");
    let pages = folder.0.join("man1");
    let (output, _, error) = ask(&["man", "--to", pages.to_str().expect("a path")]);
    assert!(output.status.success(), "{error}");
    let page = std::fs::read_to_string(pages.join("tributary-channel-add.1")).expect("a page");
    assert!(page.contains("auto\\-create\\-contacts"), "{page}");
}

#[tokio::test]
async fn keys_are_made_listed_and_revoked() {
    let (world, folder) = (World::now().await, Folder::new());
    let ask = |args: &[&str]| run(command(&folder.0, 7171).env("DATABASE_URL", &world.database.url).args(args));
    let (made, secret, told) = ask(&["key", "create", "laptop", "--scopes", "read,agent", "--person", "ann@acme.test"]);
    assert!(made.status.success(), "{told}");
    assert!(secret.starts_with("trb_") && secret.trim().len() > 40, "{secret}");
    let (_, listed, _) = ask(&["key", "list"]);
    let line = listed.lines().find(|line| line.contains("laptop")).expect("a line");
    assert!(line.contains("read,agent") && line.contains("ann@acme.test") && line.contains("good"), "{line}");
    assert!(!listed.contains(secret.trim()));
    let id = line.split_whitespace().next().expect("an id");
    let (unasked, _, said) = ask(&["key", "revoke", id]);
    assert!(!unasked.status.success() && said.contains("Revoke key laptop") && said.contains("`--yes`"), "{said}");
    let (misspelt, _, said) = ask(&["key", "revoke", "laptp", "--yes"]);
    assert!(!misspelt.status.success() && said.contains("did you mean `laptop`?"), "{said}");
    let (revoked, said, _) = ask(&["key", "revoke", "Laptop", "--yes"]);
    assert!(revoked.status.success() && said.contains("within 5 s"), "{said}");
    let (again, _, said) = ask(&["key", "revoke", id, "--yes"]);
    assert!(!again.status.success() && said.contains("hint:"), "{said}");
    let (wrong, _, said) = ask(&["key", "create", "x", "--scopes", "everything"]);
    assert!(!wrong.status.success() && said.contains("scopes are read, write, agent and service"), "{said}");
}

#[tokio::test]
async fn items_are_listed_shown_retried_and_skipped_by_command() {
    let (world, folder) = (World::now().await, Folder::new());
    let ask = |args: &[&str]| run(command(&folder.0, 7171).env("DATABASE_URL", &world.database.url).args(args));
    let mut tx = world.env.db.begin().await.expect("a transaction");
    let nonsense = [serde_json::json!({ "task": 7 })];
    store::queue::Queue::new("upkeep").expect("a queue").send(&mut tx, world.tenant_id, &nonsense).await.expect("sent");
    tx.commit().await.expect("committed");
    world.run_upkeep().await;
    let (_, said, _) = ask(&["queue", "items", "upkeep", "--state", "dead"]);
    let line = said.lines().nth(1).unwrap_or_else(|| panic!("nothing is dead:\n{said}"));
    assert!(line.contains("does not parse"), "{line}");
    let id = line.split_whitespace().next().expect("an id");
    let (_, shown, _) = ask(&["queue", "show", "upkeep", id]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).expect("JSON")["state"], "dead");
    let (refused, _, said) = ask(&["queue", "cancel", "upkeep", id]);
    assert!(!refused.status.success() && said.contains("cannot be cancelled"), "{said}");
    assert!(ask(&["queue", "retry", "upkeep", id]).0.status.success());
    let (gone, _, said) = ask(&["queue", "retry", "upkeep", id]);
    assert!(!gone.status.success() && said.contains("has no item"), "{said}");
    let (other, _, said) = ask(&["queue", "items", "nowhere"]);
    assert!(
        !other.status.success() && said.contains("there is no lane \"nowhere\"") && said.contains("queue list"),
        "{said}"
    );
}
