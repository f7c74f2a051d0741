//! Files that contain a secret: written completely or not at all, readable only by their owner.

use std::fs::{File, Metadata};
use std::io::{Error, ErrorKind, Result, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};

/// Creates the file with its text. If another process was faster, its file stays. A crash leaves no partial file.
pub fn create(path: &Path, text: &str) -> Result<()> {
    let aside = write_aside(path, text, None)?;
    let linked = std::fs::hard_link(&aside, path); // unlike a rename, it never replaces an existing file
    std::fs::remove_file(&aside)?;
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Replaces the file. A crash leaves the old one or the new one, on disk too. The new one has the old one's owner, because processes of that user
/// read it; where that cannot be, the old one stays.
pub fn replace(path: &Path, text: &str) -> Result<()> {
    let old = match std::fs::metadata(path) {
        Ok(old) => Some(old),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    std::fs::rename(write_aside(path, text, old.as_ref())?, path)?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// Writes the text beside the file, for the owner of the file that it is to replace.
fn write_aside(path: &Path, text: &str, replaced: Option<&Metadata>) -> Result<PathBuf> {
    let aside = path.with_extension(format!("new-{}", uuid::Uuid::now_v7().simple()));
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&aside)?;
    let mut write = || -> Result<()> {
        file.write_all(text.as_bytes())?;
        if let Some(old) = replaced {
            hand_over(&file, old)?;
        }
        file.sync_all()
    };
    match write() {
        Ok(()) => Ok(aside),
        Err(error) => {
            let _ = std::fs::remove_file(&aside);
            Err(error)
        }
    }
}

fn hand_over(file: &File, old: &Metadata) -> Result<()> {
    file.set_permissions(old.permissions())?; // those who could read the old one read the new one
    let new = file.metadata()?;
    if (new.uid(), new.gid()) == (old.uid(), old.gid()) {
        return Ok(());
    }
    match fchown(file, Some(old.uid()), Some(old.gid())) {
        Err(error) if new.uid() != old.uid() => {
            let what = format!("it belongs to user {}, so that user or root has to do this ({error})", old.uid());
            Err(Error::new(error.kind(), what))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};

    #[test]
    fn the_first_one_stays_and_is_its_owners_alone() {
        let path = std::env::temp_dir().join(format!("tributary-secret-{}", uuid::Uuid::now_v7()));
        super::create(&path, "first").expect("a file");
        super::create(&path, "second").expect("no error");
        assert_eq!(std::fs::read_to_string(&path).expect("text"), "first");
        assert_eq!(std::fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
        std::fs::remove_file(&path).expect("removed");
    }

    /// Root rotates the key of a service that runs as another user. Other users cannot give a file away, so they can show nothing here.
    #[test]
    fn a_file_that_is_replaced_keeps_its_owner_and_readers() {
        if !crate::embedded::is_root() {
            return;
        }
        let path = std::env::temp_dir().join(format!("tributary-secret-{}", uuid::Uuid::now_v7()));
        super::create(&path, "first").expect("a file");
        chown(&path, Some(65_534), Some(65_534)).expect("another owner");
        for mode in [0o600, 0o640] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("other readers");
            super::replace(&path, "second").expect("replaced");
            let found = std::fs::metadata(&path).expect("a file");
            assert_eq!((found.uid(), found.gid(), found.permissions().mode() & 0o777), (65_534, 65_534, mode));
        }
        assert_eq!(std::fs::read_to_string(&path).expect("text"), "second");
        std::fs::remove_file(&path).expect("removed");
    }
}
