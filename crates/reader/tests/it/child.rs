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
/// The same for a reader that has models.
const MODELS_MEMORY_BYTES: u64 = 4 << 30;
const MODELS_CPU_SECS: u64 = 300;
/// The variable that tells the child which file to read. Beside it the child writes what it has to tell.
const FILE: &str = "READER_TEST_FILE";
const NAME: &str = "READER_TEST_NAME";
/// The models that it has, as JSON.
const MODELS: &str = "READER_TEST_MODELS";

/// The outcome of reading a file, and its costs.
#[derive(Debug)]
pub struct Ended {
    /// None: the child died.
    pub said: Option<Said>,
    pub took: Duration,
    /// The most memory that the child held at once, with the file's bytes.
    pub peak_mib: u64,
    /// The processor's time.
    pub cpu_secs: f64,
}

/// Reads a file in another process.
pub fn run(bytes: &[u8], name: &str) -> Ended {
    run_with(bytes, name, &Models::default())
}

/// Reads a file with these models in another process.
pub fn run_with(bytes: &[u8], name: &str, models: &Models) -> Ended {
    static NTH: AtomicU32 = AtomicU32::new(0);
    let nth = NTH.fetch_add(1, Ordering::Relaxed);
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{nth}", std::process::id()));
    fs::write(&file, bytes).expect("written");
    let begun = Instant::now();
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "child::the_reader_as_a_process", "--nocapture"])
        .env(FILE, &file)
        .env(NAME, name)
        .env(MODELS, serde_json::to_string(models).expect("JSON"))
        .output()
        .expect("a process");
    let took = begun.elapsed();
    let told = |ending: &str| fs::read(file.with_extension(ending)).unwrap_or_default();
    let said = output.status.success().then(|| Said::from_lines(&told("lines")));
    let costs = told("costs");
    let costs = String::from_utf8_lossy(&costs);
    let (peak, cpu) = costs.split_once(' ').unwrap_or_default();
    for path in [file.clone(), file.with_extension("lines"), file.with_extension("costs")] {
        let _ = fs::remove_file(path);
    }
    Ended { said, took, peak_mib: peak.parse().unwrap_or(0), cpu_secs: cpu.parse().unwrap_or(0.0) }
}

/// Is the child: without its variable there is nothing to do.
#[test]
fn the_reader_as_a_process() {
    let Some(file) = std::env::var_os(FILE).map(PathBuf::from) else { return };
    let models: Models = serde_json::from_str(&std::env::var(MODELS).expect("models")).expect("JSON");
    let (bytes, secs) = match models.onnxruntime {
        Some(_) => (MODELS_MEMORY_BYTES, MODELS_CPU_SECS),
        None => (MOST_MEMORY_BYTES, MOST_CPU_SECS),
    };
    for (resource, most) in [(Resource::As, bytes), (Resource::Cpu, secs), (Resource::Core, 0)] {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) }).expect("a limit");
    }
    let source = Source { bytes: fs::read(&file).expect("a file"), name: std::env::var(NAME).ok(), media_type: None };
    let mut lines = fs::File::create(file.with_extension("lines")).expect("a file");
    read(source, Limits::default(), &models, &[], &mut lines).expect("written");
    let status = fs::read_to_string("/proc/self/status").expect("a status");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: u64 = peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse().ok()).expect("a peak");
    // In hundredths of a second; the fields are counted after the name, which is in brackets.
    let stat = fs::read_to_string("/proc/self/stat").expect("a status");
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: f64 = fields[11..13].iter().map(|ticks| ticks.parse::<f64>().expect("a number")).sum();
    fs::write(file.with_extension("costs"), format!("{} {}", kib / 1_024, ticks / 100.0)).expect("written");
}
