//! The process that reads one file. It gets the bytes on its standard input and writes lines; it has no rights, and this end has the clock.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use bytes::Bytes;
use domain::Fault;
use domain::reading::{Line, Request, Unreadable};
use futures_util::stream::{Stream, StreamExt as _};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::task::JoinHandle;

/// The longest line that is taken: a page has at most 10 MB of text, and JSON may double it.
const MOST_LINE_BYTES: u64 = 24 << 20;
/// The largest picture of a page that is taken.
const MOST_PICTURE_BYTES: u64 = 4 << 20;
/// The end of what it says about its own death.
const MOST_STDERR_BYTES: u64 = 16 << 10;

/// The time that a file gets.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Between two lines.
    pub silent: Duration,
    pub total: Duration,
}

/// The next thing that is heard of a reader.
#[derive(Debug)]
pub enum Heard {
    Line(Line),
    /// It ended without an end of the file: it died, or was ended for its silence.
    Died(Unreadable),
}

/// A reader at work. Dropped, it is killed.
pub struct Reader {
    child: Child,
    lines: BufReader<ChildStdout>,
    /// Ends with the blob store's fault, if that could not give all bytes.
    feeding: JoinHandle<Result<(), Fault>>,
    dying_words: JoinHandle<String>,
    patience: Patience,
    until: Instant,
    is_over: bool,
}

impl Reader {
    /// Starts the program that reads files, this one unless another is named, and feeds it the request and the bytes.
    pub fn start(
        program: Option<&Path>,
        request: &Request,
        patience: Patience,
        bytes: impl Stream<Item = Result<Bytes, Fault>> + Send + 'static,
    ) -> Result<Self, Fault> {
        let broken =
            |error: std::io::Error, what: &'static str| Fault::Transient(anyhow::Error::new(error).context(what));
        let mut first = serde_json::to_vec(request).map_err(|error| Fault::Malformed { what: error.to_string() })?;
        first.push(b'\n');
        let program = program
            .map_or_else(own_program, |program| Ok(program.to_owned()))
            .map_err(|error| broken(error, "the program that reads files was not found"))?;
        let mut child = Command::new(program)
            .arg("read")
            .env_clear()
            .env("LANG", "C.UTF-8")
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| broken(error, "the program that reads files did not start"))?;
        let (Some(mut stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(Fault::Transient(anyhow::anyhow!("the program that reads files has no pipes")));
        };
        let feeding = tokio::spawn(async move {
            let mut bytes = std::pin::pin!(bytes);
            let mut fed = stdin.write_all(&first).await;
            while let (true, Some(piece)) = (fed.is_ok(), bytes.next().await) {
                fed = stdin.write_all(&piece?).await;
            }
            let _ = stdin.shutdown().await; // it may have read enough and be gone
            Ok(())
        });
        Ok(Self {
            lines: BufReader::new(stdout),
            dying_words: tokio::spawn(dying_words(stderr)),
            child,
            feeding,
            patience,
            until: Instant::now() + patience.total,
            is_over: false,
        })
    }

    /// Waits for the next line. None: the file is at its end.
    pub async fn next(&mut self) -> Result<Option<Heard>, Fault> {
        if self.is_over {
            return Ok(None);
        }
        let left = self.until.saturating_duration_since(Instant::now()).min(self.patience.silent);
        let mut line = Vec::new();
        let mut limited = (&mut self.lines).take(MOST_LINE_BYTES);
        match tokio::time::timeout(left, limited.read_until(b'\n', &mut line)).await {
            Err(_) => Ok(Some(self.died(Unreadable::TooSlow).await)),
            Ok(Err(error)) => Err(Fault::Transient(anyhow::Error::new(error).context("the reader's output broke off"))),
            Ok(Ok(_)) if line.last() != Some(&b'\n') => {
                let why = self.cause_of_death().await;
                let died = self.died(why).await;
                // It ends without a word when its bytes break off. Then the file is not to blame.
                match (&mut self.feeding).await {
                    Ok(Err(fault)) => Err(fault),
                    _ => Ok(Some(died)),
                }
            }
            Ok(Ok(_)) => match serde_json::from_slice::<Line>(&line) {
                Ok(line) => {
                    self.is_over = matches!(line, Line::End { .. } | Line::Refused { .. });
                    Ok(Some(Heard::Line(line)))
                }
                Err(_) => Ok(Some(self.died(Unreadable::Unsafe).await)),
            },
        }
    }

    /// Waits for the picture that it was asked for. None: it cannot be drawn.
    pub async fn picture(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        let Some(Heard::Line(Line::Picture { bytes: n @ 1..=MOST_PICTURE_BYTES })) = self.next().await? else {
            return Ok(None);
        };
        let mut picture = Vec::new();
        let left = self.until.saturating_duration_since(Instant::now());
        let mut limited = (&mut self.lines).take(n);
        let taken = tokio::time::timeout(left, limited.read_to_end(&mut picture)).await;
        Ok((matches!(taken, Ok(Ok(_))) && picture.len() as u64 == n).then_some(picture))
    }

    async fn died(&mut self, why: Unreadable) -> Heard {
        self.is_over = true;
        self.kill();
        let _ = self.child.wait().await;
        Heard::Died(why)
    }

    /// Kills it, and what it may have started.
    fn kill(&mut self) {
        if let Some(group) = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.start_kill();
    }

    /// Tells by its exit, and by its last words, what a reader died of.
    async fn cause_of_death(&mut self) -> Unreadable {
        use std::os::unix::process::ExitStatusExt as _;
        let ended = tokio::time::timeout(Duration::from_secs(5), self.child.wait()).await;
        let signal = ended.ok().and_then(Result::ok).and_then(|status| status.signal());
        let words = tokio::time::timeout(Duration::from_secs(1), &mut self.dying_words).await;
        let words = words.ok().and_then(Result::ok).unwrap_or_default();
        match signal {
            Some(XCPU) => Unreadable::TooSlow,
            Some(ABRT) if words.contains("memory allocation of") => Unreadable::TooMuchMemory,
            Some(KILL) => Unreadable::TooMuchMemory, // the system's own answer to too much memory
            _ => Unreadable::Unsafe,
        }
    }
}

const ABRT: i32 = 6;
const KILL: i32 = 9;
const XCPU: i32 = 24;

impl Drop for Reader {
    fn drop(&mut self) {
        self.kill();
        self.feeding.abort();
        self.dying_words.abort();
    }
}

async fn dying_words(stderr: ChildStderr) -> String {
    let mut words = Vec::new();
    let mut limited = stderr.take(MOST_STDERR_BYTES);
    let _ = limited.read_to_end(&mut words).await;
    let mut rest = limited.into_inner();
    let _ = tokio::io::copy(&mut rest, &mut tokio::io::sink()).await; // or a full pipe would hold it up
    String::from_utf8_lossy(&words).into_owned()
}

/// On Linux by its process: its file may have been replaced by a newer release.
fn own_program() -> std::io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}
