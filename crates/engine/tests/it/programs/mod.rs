//! Programs that tests start and kill. Each is this same test program, started again with the one test `run`: cargo builds
//! nothing more for it, and nobody starts a stale one.

mod crashling;
mod refresher;

use std::process::{Command, Stdio};

use testkit::process::{Start, Worker};

const ARGS: [&str; 4] = ["programs::run", "--exact", "--ignored", "--nocapture"];
const NAME: &str = "TEST_PROGRAM";

#[test]
#[ignore = "other tests start it, as the program that TEST_PROGRAM names"]
fn run() -> anyhow::Result<()> {
    match std::env::var(NAME).as_deref() {
        Ok("crashling") => crashling::main(),
        Ok("refresher") => refresher::main(),
        _ => Ok(()),
    }
}

/// Starts `crashling`. `env` adds to its environment, and `crash` says where it dies.
pub fn crashling(database_url: &str, crash: Option<&str>, env: &[(&str, &str)]) -> Worker {
    let env = [&[(NAME, "crashling")], env].concat();
    Worker::start(&Start { program: &path(), args: &ARGS, database_url, crash, env: &env })
}

/// The command that runs `refresher`.
pub fn refresher() -> Command {
    let mut command = Command::new(path());
    command.args(ARGS).env(NAME, "refresher").stdout(Stdio::null());
    command
}

fn path() -> String {
    let path = std::env::current_exe().expect("the path of this program");
    path.into_os_string().into_string().expect("a path in UTF-8")
}
