//! `./tributary`, the script that builds and runs the program, in a small checkout and with a cargo that only copies.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::app::{Folder, run};

/// Builds "the program": a script that prints the source. It notes that it was called, and fails where a file tells it to.
const CARGO: &str = r#"#!/bin/sh
echo "$@" >>"$FOLDER/calls"
[ ! -e "$FOLDER/broken" ] || { echo "error: it does not compile" >&2; exit 1; }
mkdir -p "$CARGO_TARGET_DIR/fast"
printf '#!/bin/sh\necho %s "$@"\n' "$(cat crates/web/src/lib.rs)" >"$CARGO_TARGET_DIR/fast/tributary.new"
chmod +x "$CARGO_TARGET_DIR/fast/tributary.new"
mv "$CARGO_TARGET_DIR/fast/tributary.new" "$CARGO_TARGET_DIR/fast/tributary"
"#;

struct Checkout {
    folder: Folder,
}

impl Checkout {
    fn new() -> Self {
        let checkout = Self { folder: Folder::new() };
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (from, to) in [("tributary", "one/tributary"), ("tributary", "two/tributary")] {
            checkout.write(to, &std::fs::read_to_string(root.join(from)).expect("the script"));
            checkout.executable(to);
        }
        for name in ["setup.sh", "pgserver.lock", "wordllama.lock", "onnxruntime.lock"] {
            let text = std::fs::read_to_string(root.join("scripts").join(name)).expect("a script");
            checkout.write(&format!("one/scripts/{name}"), &text);
            checkout.write(&format!("two/scripts/{name}"), &text);
        }
        checkout.write("one/crates/web/src/lib.rs", "first");
        checkout.write("two/crates/web/src/lib.rs", "other");
        checkout.write("one/crates/web/tests/it.rs", "a test");
        checkout.write("bin/cargo", CARGO);
        checkout.executable("bin/cargo");
        checkout
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.0.join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    fn executable(&self, path: &str) {
        std::fs::set_permissions(self.at(path), std::fs::Permissions::from_mode(0o755)).expect("a mode");
    }

    /// Runs the script of one of the two checkouts. Returns what it printed, or its last words.
    fn start(&self, which: &str) -> Result<String, String> {
        let mut command = Command::new(self.at(which).join("tributary"));
        let path = format!("{}:{}", self.at("bin").display(), std::env::var("PATH").expect("a path"));
        command.env("PATH", path).env("FOLDER", &self.folder.0).env("TRIBUTARY_CACHE", self.at("cache"));
        command.env("CARGO_TARGET_DIR", self.at("target")).arg("word");
        for folder in ["PG_BIN_DIR", "PG16_BIN_DIR", "FAST_MODEL_DIR", "LOCAL_MODEL_DIR", "ONNXRUNTIME_LIB"] {
            command.env(folder, "/nowhere");
        }
        let (output, said, error) = run(&mut command);
        if output.status.success() { Ok(said.trim().to_owned()) } else { Err(error) }
    }

    /// The number of times that cargo was called.
    fn calls(&self) -> usize {
        std::fs::read_to_string(self.at("calls")).map_or(0, |calls| calls.lines().count())
    }
}

/// Cargo goes by names and times: what another checkout built later would pass for built from this one's files.
#[test]
fn a_checkout_that_builds_after_another_is_compiled_anew() {
    let t = Checkout::new();
    let modified = || t.at("one/crates/web/src/lib.rs").metadata().and_then(|file| file.modified()).expect("its time");
    t.start("one").expect("it starts");
    let first = modified();
    t.write("one/crates/web/src/page.rs", "a page");
    t.start("one").expect("it starts");
    assert_eq!(modified(), first, "nobody else built");
    t.start("two").expect("it starts");
    t.write("one/crates/web/src/page.rs", "a longer page");
    t.start("one").expect("it starts");
    assert!(modified() > first, "to cargo it has changed");
}

#[test]
fn the_script_asks_cargo_when_something_changed_and_not_otherwise() {
    let t = Checkout::new();
    assert_eq!((t.start("one"), t.calls()), (Ok("first word".into()), 1));
    assert_eq!((t.start("one"), t.calls()), (Ok("first word".into()), 1), "nothing changed");
    t.write("one/crates/web/tests/it.rs", "another test");
    t.write("one/scripts/notes.txt", "no source");
    assert_eq!((t.start("one"), t.calls()), (Ok("first word".into()), 1), "no part of the program changed");
    t.write("one/crates/web/src/lib.rs", "second");
    assert_eq!((t.start("one"), t.calls()), (Ok("second word".into()), 2));
    for new in ["one/migrations/0001.sql", "one/fixtures/a.json", "one/Cargo.lock", "one/docs/ARCHITECTURE.md"] {
        let before = t.calls();
        t.write(new, "new");
        assert_eq!((t.start("one"), t.calls()), (Ok("second word".into()), before + 1), "{new}");
    }
    std::fs::remove_file(t.at("one/fixtures/a.json")).expect("removed");
    let before = t.calls();
    assert_eq!((t.start("one"), t.calls()), (Ok("second word".into()), before + 1), "a file is gone");
}

#[test]
fn the_script_never_runs_an_older_program_or_another_checkouts() {
    let t = Checkout::new();
    assert_eq!(t.start("one"), Ok("first word".into()));
    assert_eq!(t.start("two"), Ok("other word".into()), "both build into one folder");
    assert_eq!((t.start("one"), t.calls()), (Ok("first word".into()), 2), "its own is still there");
    t.write("one/crates/web/src/lib.rs", "second");
    t.write("broken", "");
    let refused = t.start("one").expect_err("it does not compile");
    assert!(refused.contains("it does not compile") && refused.contains("the build failed"), "{refused}");
    assert!(t.start("one").is_err(), "nor the next time");
    std::fs::remove_file(t.at("broken")).expect("removed");
    assert_eq!(t.start("one"), Ok("second word".into()));
}
