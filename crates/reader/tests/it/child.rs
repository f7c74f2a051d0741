//! The reader in a process of its own, with limits on memory and time as the server sets them. What it needed is told, and a file that it dies of
//! fails the test.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use domain::reading::Models;
use reader::{Limits, Source, read};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::said::Said;

const MOST_MEMORY_BYTES: u64 = 1 << 30;
const MOST_CPU_SECS: u64 = 30;
/// The variable that tells the child which file to read. Beside it the child writes what it has to tell.
const FILE: &str = "READER_TEST_FILE";
const NAME: &str = "READER_TEST_NAME";

/// The outcome of reading a file, and its costs.
#[derive(Debug)]
pub struct Ended {
    /// None: the child died.
    pub said: Option<Said>,
    pub took: Duration,
    /// The most memory that the child held at once, with the file's bytes.
    pub peak_mib: u64,
}

/// Reads a file in another process.
pub fn run(bytes: &[u8], name: &str) -> Ended {
    static NTH: AtomicU32 = AtomicU32::new(0);
    let nth = NTH.fetch_add(1, Ordering::Relaxed);
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{nth}", std::process::id()));
    fs::write(&file, bytes).expect("written");
    let begun = Instant::now();
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "child::the_reader_as_a_process", "--nocapture"])
        .env(FILE, &file)
        .env(NAME, name)
        .output()
        .expect("a process");
    let took = begun.elapsed();
    let told = |ending: &str| fs::read(file.with_extension(ending)).unwrap_or_default();
    let said = output.status.success().then(|| Said::from_lines(&told("lines")));
    let peak = String::from_utf8_lossy(&told("peak")).trim().parse().unwrap_or(0);
    for path in [file.clone(), file.with_extension("lines"), file.with_extension("peak")] {
        let _ = fs::remove_file(path);
    }
    Ended { said, took, peak_mib: peak }
}

/// Is the child: without its variable there is nothing to do.
#[test]
fn the_reader_as_a_process() {
    let Some(file) = std::env::var_os(FILE).map(PathBuf::from) else { return };
    for (resource, most) in [(Resource::As, MOST_MEMORY_BYTES), (Resource::Cpu, MOST_CPU_SECS), (Resource::Core, 0)] {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) }).expect("a limit");
    }
    let source = Source { bytes: fs::read(&file).expect("a file"), name: std::env::var(NAME).ok(), media_type: None };
    let mut lines = fs::File::create(file.with_extension("lines")).expect("a file");
    read(source, Limits::default(), &Models::default(), &[], &mut lines).expect("written");
    let status = fs::read_to_string("/proc/self/status").expect("a status");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: u64 = peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse().ok()).expect("a peak");
    fs::write(file.with_extension("peak"), (kib / 1_024).to_string()).expect("written");
}
