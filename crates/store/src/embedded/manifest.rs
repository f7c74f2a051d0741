//! Checks that a copied cluster is what the server sent, as `pg_verifybackup` does. The pinned package contains that program, but it
//! cannot start because its program headers are broken.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use domain::hex;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::backup::entries;

/// Files that the manifest does not cover: they are written after it, or checked in another way (the WAL, by reading it).
const UNLISTED: [&str; 5] = ["backup_manifest", "postgresql.auto.conf", "recovery.signal", "standby.signal", "pg_wal"];

#[derive(Deserialize)]
struct Manifest {
    #[serde(rename = "Files")]
    files: Vec<Listed>,
    #[serde(rename = "WAL-Ranges")]
    wal_ranges: Vec<WalRange>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Listed {
    path: Option<String>,
    size: u64,
    #[serde(rename = "Checksum-Algorithm")]
    algorithm: Option<String>,
    checksum: Option<String>,
}

/// A range of WAL that is needed for consistency.
#[derive(Deserialize)]
pub(super) struct WalRange {
    #[serde(rename = "Timeline")]
    pub timeline: u32,
    #[serde(rename = "Start-LSN")]
    pub start: String,
    #[serde(rename = "End-LSN")]
    pub end: String,
}

/// Compares every file with the manifest. Returns the WAL that is still to be checked, or an error in words.
pub(super) fn check(cluster: &Path) -> Result<Vec<WalRange>, String> {
    let text = std::fs::read_to_string(cluster.join("backup_manifest"))
        .map_err(|error| format!("backup_manifest cannot be read: {error}"))?;
    // The last line contains the hash of all others.
    let at = text.trim_end().rfind('\n').map_or(0, |at| at + 1);
    if !text[at..].contains(&format!("\"{}\"", hex::encode(Sha256::digest(&text[..at])))) {
        return Err("backup_manifest was changed".into());
    }
    let manifest: Manifest =
        serde_json::from_str(&text).map_err(|error| format!("backup_manifest does not parse: {error}"))?;
    let mut listed = HashSet::new();
    for file in &manifest.files {
        // A file name that is not UTF-8 comes as `Encoded-Path`; our cluster has none.
        let name = file.path.as_ref().ok_or("backup_manifest names a file that cannot be ours")?;
        if !Path::new(name).components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(format!("backup_manifest names {name:?}, which is no file of a cluster"));
        }
        check_file(&cluster.join(name), file).map_err(|what| format!("{name} {what}"))?;
        listed.insert(cluster.join(name));
    }
    match unlisted(cluster, cluster, &listed)? {
        None => Ok(manifest.wal_ranges),
        Some(path) => Err(format!("{} is not in backup_manifest", path.display())),
    }
}

fn check_file(path: &Path, listed: &Listed) -> Result<(), String> {
    let cannot = |error: std::io::Error| format!("cannot be read: {error}");
    let mut file = File::open(path).map_err(cannot)?;
    let size = file.metadata().map_err(cannot)?.len();
    if size != listed.size {
        return Err(format!("has {size} bytes instead of {}", listed.size));
    }
    if listed.algorithm.as_deref() != Some("SHA256") {
        return Err("has no SHA256 in backup_manifest".into());
    }
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer).map_err(cannot)? {
            0 => break,
            n => hash.update(&buffer[..n]),
        }
    }
    if listed.checksum.as_deref() != Some(&hex::encode(hash.finalize())) {
        return Err("was changed".into());
    }
    Ok(())
}

fn unlisted(cluster: &Path, folder: &Path, listed: &HashSet<PathBuf>) -> Result<Option<PathBuf>, String> {
    for (path, kind) in entries(folder).map_err(|error| error.to_string())? {
        if listed.contains(&path) || UNLISTED.iter().any(|name| path == cluster.join(name)) {
            continue;
        }
        let found = if kind.is_dir() { unlisted(cluster, &path, listed)? } else { Some(path) };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a folder with one file of a cluster and a correct manifest.
    fn copied(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("tributary-manifest-{name}-{}", uuid::Uuid::now_v7().simple()));
        std::fs::create_dir_all(dir.join("base/1")).expect("a folder");
        std::fs::create_dir(dir.join("pg_wal")).expect("a folder");
        std::fs::write(dir.join("base/1/1247"), "rows").expect("a file");
        std::fs::write(dir.join("pg_wal/1"), "wal").expect("a file");
        write_manifest(&dir, "base/1/1247");
        dir
    }

    fn write_manifest(dir: &Path, path: &str) {
        let file = format!(
            r#"{{ "Path": "{path}", "Size": 4, "Last-Modified": "2026-11-15 12:00:00 GMT", "Checksum-Algorithm": "SHA256", "Checksum": "{}" }}"#,
            hex::encode(Sha256::digest("rows"))
        );
        let wal = r#"{ "Timeline": 1, "Start-LSN": "0/2000028", "End-LSN": "0/2000120" }"#;
        let lines = format!(
            "{{ \"PostgreSQL-Backup-Manifest-Version\": 2,\n\"Files\": [\n{file}\n],\n\"WAL-Ranges\": [\n{wal}\n],\n"
        );
        let last = format!("\"Manifest-Checksum\": \"{}\"}}\n", hex::encode(Sha256::digest(&lines)));
        std::fs::write(dir.join("backup_manifest"), lines + &last).expect("a manifest");
    }

    #[test]
    fn whatever_differs_from_the_manifest_is_named() {
        let dir = copied("whole");
        assert_eq!(check(&dir).map(|wal| wal[0].end.clone()), Ok("0/2000120".into()));
        type Harm = fn(&Path);
        let harms: [(&str, Harm); 6] = [
            ("1247 was changed", |dir| std::fs::write(dir.join("base/1/1247"), "rowz").expect("changed")),
            ("has 3 bytes instead of 4", |dir| std::fs::write(dir.join("base/1/1247"), "row").expect("cut")),
            ("1247 cannot be read", |dir| std::fs::remove_file(dir.join("base/1/1247")).expect("removed")),
            ("is not in backup_manifest", |dir| std::fs::write(dir.join("base/1/9"), "").expect("added")),
            ("backup_manifest was changed", |dir| {
                let path = dir.join("backup_manifest");
                let text = std::fs::read_to_string(&path).expect("text");
                std::fs::write(path, text.replace("\"Size\": 4", "\"Size\": 5")).expect("changed");
            }),
            ("no file of a cluster", |dir| write_manifest(dir, "../../etc/passwd")),
        ];
        std::fs::remove_dir_all(&dir).expect("removed");
        for (what, harm) in harms {
            let dir = copied("harmed");
            harm(&dir);
            let said = check(&dir).err().unwrap_or_default();
            assert!(said.contains(what), "{what}: {said}");
            std::fs::remove_dir_all(&dir).expect("removed");
        }
    }
}
