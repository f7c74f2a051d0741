//! A record, outside the engine, of what senders were promised. Each entry is on disk before the test goes on.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use uuid::Uuid;

/// An append-only file. Every entry is synced, so it survives a crash of the test itself.
pub struct Ledger {
    file: Mutex<File>,
    path: PathBuf,
}

impl Ledger {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tributary-ledger-{name}-{}", Uuid::now_v7().simple()));
        let file = File::options().create_new(true).append(true).open(&path).expect("a ledger file");
        Self { file: Mutex::new(file), path }
    }

    pub fn write(&self, item: Uuid, kind: &str) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(file, "{item} {kind}").and_then(|()| file.sync_data()).expect("a ledger that can be written");
    }

    /// Every item that was acknowledged, and its kind.
    pub fn read(&self) -> HashMap<Uuid, String> {
        entries(&std::fs::read_to_string(&self.path).expect("a ledger that can be read"))
    }
}

/// The whole entries of a ledger. A writer that was killed may have left half of one behind its last line end; it promised nothing yet.
fn entries(text: &str) -> HashMap<Uuid, String> {
    let (whole, _) = text.rsplit_once('\n').unwrap_or_default();
    whole
        .lines()
        .map(|line| line.split_once(' ').expect("item and kind"))
        .map(|(item, kind)| (item.parse().expect("an item"), kind.to_owned()))
        .collect()
}

impl Drop for Ledger {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_an_entry_at_the_end_is_left_out() {
        let item = Uuid::now_v7();
        for rest in ["", "0198", "0198 o", &format!("{} o", Uuid::now_v7())] {
            let found = entries(&format!("{item} ok\n{rest}"));
            assert_eq!(found, HashMap::from([(item, "ok".to_owned())]), "{rest}");
        }
        assert!(entries("").is_empty() && entries("0198").is_empty());
    }
}
