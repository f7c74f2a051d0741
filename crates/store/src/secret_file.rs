//! Files that contain a secret: written completely or not at all, readable only by their owner.

use std::fs::File;
use std::io::{Result, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Creates the file with its text. If another process was faster, its file stays. A crash leaves no partial file.
pub fn create(path: &Path, text: &str) -> Result<()> {
    let aside = path.with_extension(format!("new-{}", uuid::Uuid::now_v7().simple()));
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&aside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    let linked = std::fs::hard_link(&aside, path); // unlike a rename, it never replaces an existing file
    std::fs::remove_file(&aside)?;
    match linked {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_first_one_stays_and_is_its_owners_alone() {
        let path = std::env::temp_dir().join(format!("tributary-secret-{}", uuid::Uuid::now_v7()));
        super::create(&path, "first").expect("a file");
        super::create(&path, "second").expect("no error");
        assert_eq!(std::fs::read_to_string(&path).expect("text"), "first");
        assert_eq!(std::fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
        std::fs::remove_file(&path).expect("removed");
    }
}
