//! A disk that fails on demand, without a mount: a small C library, loaded before a private server's own, refuses to let files grow or to sync
//! them. The linker that builds these tests compiles it.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cluster::{Cluster, bin_dir};

/// A server on such a disk, with fsync on.
pub struct BadDisk {
    pub cluster: Cluster,
    folder: PathBuf,
}

/// The kind of failure.
#[derive(Clone, Copy, Debug)]
pub enum Failure {
    /// No file of a table grows.
    FullData,
    /// No file of the log grows.
    FullWal,
    /// One fsync of a table fails.
    UnsyncedData,
    /// One fsync of the log fails.
    UnsyncedWal,
}

impl Failure {
    fn order(self) -> &'static str {
        match self {
            Self::FullData => "full-data",
            Self::FullWal => "full-wal",
            Self::UnsyncedData => "eio-data",
            Self::UnsyncedWal => "eio-wal",
        }
    }
}

impl BadDisk {
    pub async fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("tributary-disk-{}", uuid::Uuid::now_v7().simple()));
        let (programs, orders) = (folder.join("bin"), folder.join("orders"));
        for made in [&folder, &programs, &orders] {
            std::fs::create_dir_all(made).expect("a folder");
        }
        // The server's own user takes orders away.
        std::fs::set_permissions(&orders, std::fs::Permissions::from_mode(0o777)).expect("a folder for all");
        let library = folder.join("disk.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/disk.c");
        let mut compile = Command::new("cc");
        compile.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).arg("-ldl");
        assert!(compile.status().expect("cc, which also links these tests").success(), "cc does not compile disk.c");
        let real = bin_dir("PG_BIN_DIR");
        for entry in std::fs::read_dir(&real).expect("the server's programs") {
            let entry = entry.expect("an entry");
            if entry.file_name() != "pg_ctl" {
                symlink(entry.path(), programs.join(entry.file_name())).expect("a link");
            }
        }
        let pg_ctl = programs.join("pg_ctl");
        let script = format!(
            "#!/bin/sh\nexport LD_PRELOAD='{}' DISK_ORDERS='{}'\nexec '{}' \"$@\"\n",
            library.display(),
            orders.display(),
            real.join("pg_ctl").display()
        );
        std::fs::write(&pg_ctl, script).expect("a program");
        std::fs::set_permissions(&pg_ctl, std::fs::Permissions::from_mode(0o755)).expect("executable");
        Self { cluster: Cluster::private_by(&programs).await, folder }
    }

    pub fn fail(&self, failure: Failure) {
        std::fs::write(self.order(failure), "").expect("an order");
    }

    pub fn mend(&self, failure: Failure) {
        let _ = std::fs::remove_file(self.order(failure));
    }

    /// Whether an order that is for once has been carried out.
    pub fn has_failed(&self, failure: Failure) -> bool {
        !self.order(failure).exists()
    }

    fn order(&self, failure: Failure) -> PathBuf {
        self.folder.join("orders").join(failure.order())
    }
}

impl Drop for BadDisk {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
