//! A running installation for a test: the real binary, its own data folder or database, a free port.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use testkit::cluster::kill;
use testkit::wait_until;

pub const BINARY: &str = env!("CARGO_BIN_EXE_tributary");

/// A folder that is gone when the test is. Below the temporary folder, which every user may enter.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        let path = std::env::temp_dir().join(format!("tributary-it-{}", uuid::Uuid::now_v7().simple()));
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A server that still runs in it is ended by its own pid file, and has left before its folder is removed.
        if let Ok(text) = std::fs::read_to_string(self.0.join("postgres/postmaster.pid"))
            && let Some(pid) = text.lines().next().and_then(|line| line.trim().parse().ok())
        {
            kill(pid, rustix::process::Signal::QUIT);
            let deadline = Instant::now() + Duration::from_secs(5);
            while Path::new("/proc").join(pid.to_string()).exists() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(10)); // `drop` cannot await
            }
        }
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port()
}

/// The binary with nothing of this process's settings but what the test gives.
pub fn command(data_dir: &Path, port: u16) -> Command {
    let mut command = Command::new(BINARY);
    for variable in ["DATABASE_URL", "MASTER_KEY", "PUBLIC_URL", "TRIBUTARY_CRASH", "LOG"] {
        command.env_remove(variable);
    }
    command
        .env("DATA_DIR", data_dir)
        .env("LISTEN", format!("127.0.0.1:{port}"))
        .env("EMBEDDER", "fast")
        .env("TRANSCRIBE", "off")
        .env("WORKER_HEARTBEAT_SECS", "1")
        .env("DRAIN_SECS", "3");
    command.stdin(Stdio::null());
    command
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> (Output, String, String) {
    let output = command.output().expect("the binary");
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned());
    (output, stdout, stderr)
}

/// A server process and everything it has printed.
pub struct App {
    child: Child,
    pub url: String,
    printed: Arc<Mutex<String>>,
}

impl App {
    /// Starts `up`, `serve` or `worker`; does not wait for it.
    pub fn spawn(mut command: Command, args: &[&str], port: u16) -> Self {
        let mut child = command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary");
        let printed = Arc::new(Mutex::new(String::new()));
        for pipe in [child.stdout.take().map(Pipe::Out), child.stderr.take().map(Pipe::Err)].into_iter().flatten() {
            let printed = printed.clone();
            std::thread::spawn(move || {
                let mut add = |line: String| printed.lock().expect("printed").push_str(&(line + "\n"));
                match pipe {
                    Pipe::Out(out) => BufReader::new(out).lines().map_while(Result::ok).for_each(&mut add),
                    Pipe::Err(err) => BufReader::new(err).lines().map_while(Result::ok).for_each(&mut add),
                }
            });
        }
        Self { child, url: format!("http://127.0.0.1:{port}"), printed }
    }

    /// Starts it and waits until it answers.
    pub async fn start(command: Command, args: &[&str], port: u16) -> Self {
        let mut app = Self::spawn(command, args, port);
        let answers = wait_until(Duration::from_secs(60), async || {
            app.child.try_wait().ok().flatten().is_some() || get(&app.url, "/readyz").await.0 == 200
        });
        assert!(
            answers.await && app.child.try_wait().ok().flatten().is_none(),
            "it does not come up:\n{}",
            app.printed()
        );
        app
    }

    pub fn printed(&self) -> String {
        self.printed.lock().expect("printed").clone()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        kill(self.child.id(), signal);
    }

    pub async fn ended_within(&mut self, limit: Duration) -> Option<std::process::ExitStatus> {
        let mut status = None;
        wait_until(limit, async || {
            status = self.child.try_wait().expect("a child");
            status.is_some()
        })
        .await;
        status
    }

    /// The one-time link that `up` printed.
    pub fn link(&self) -> String {
        let printed = self.printed();
        let at = printed
            .find("http://127.0.0.1")
            .and_then(|_| printed.split_whitespace().find(|word| word.contains("/signin#once=")));
        at.unwrap_or_else(|| panic!("no link was printed:\n{printed}")).to_owned()
    }
}

enum Pipe {
    Out(std::process::ChildStdout),
    Err(std::process::ChildStderr),
}

impl Drop for App {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Status and body; 0 when nobody answers.
pub async fn get(url: &str, path: &str) -> (u16, String) {
    match client().get(format!("{url}{path}")).send().await {
        Ok(answer) => (answer.status().as_u16(), answer.text().await.unwrap_or_default()),
        Err(error) => (0, error.to_string()),
    }
}

pub fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client =
        reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(Duration::from_secs(20));
    client.build().expect("a client")
}

/// Of a process: `VmRSS` is what it has in memory, `VmHWM` the most it ever had.
pub fn resident_kb(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find(|line| line.starts_with(name)).expect("a line");
    line.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).expect("kB")
}
