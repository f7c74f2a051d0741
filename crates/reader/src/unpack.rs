//! Packed files: zip archives with a limit on what comes out of them, and the compound files of Outlook and old Office programs.

use std::io::{Cursor, Read as _};

use domain::reading::{FileKind, Unreadable};
use zip::ZipArchive;
use zip::result::ZipError;

use crate::sink::Sink;
use crate::{Result, Source, Stop, damaged, inside};

const MOST_ENTRIES: usize = 10_000;
/// A file that packs a hundred times better than text does is made to fill disks.
const MOST_RATIO: u64 = 200;
/// Below this size nobody asks how well it is packed.
const SMALL_BYTES: u64 = 1 << 20;

/// The files of an archive. None is ever written to a disk.
pub(crate) struct Unpacked<'a>(ZipArchive<Cursor<&'a [u8]>>);

impl<'a> Unpacked<'a> {
    pub fn open(bytes: &'a [u8]) -> Result<Self> {
        let archive =
            ZipArchive::new(Cursor::new(bytes)).map_err(|_| damaged("an archive whose list cannot be read"))?;
        if archive.len() > MOST_ENTRIES {
            return Err(Stop::Refused(Unreadable::Bomb, format!("an archive of {} files", archive.len())));
        }
        Ok(Self(archive))
    }

    pub fn names(&self) -> impl Iterator<Item = String> {
        self.0.file_names().filter_map(|name| name.ok().map(|name| name.into_owned()))
    }

    /// Whether a file of this name begins so.
    pub fn begins_with(&mut self, name: &str, begin: &[u8]) -> Result<bool> {
        let mut head = vec![0; begin.len()];
        let Ok(mut file) = self.0.by_name(name) else { return Ok(false) };
        Ok(file.read_exact(&mut head).is_ok() && head == begin)
    }

    /// The bytes of a file; none if there is no such file.
    pub fn file(&mut self, name: &str, sink: &mut Sink<'_>) -> Result<Option<Vec<u8>>> {
        match self.0.by_name(name) {
            Ok(file) => bytes(file, sink).map(Some),
            Err(ZipError::FileNotFound) => Ok(None),
            Err(error) => Err(refused(&error)),
        }
    }

    /// The same of one without which the whole cannot be read.
    pub fn needed(&mut self, name: &str, sink: &mut Sink<'_>) -> Result<Vec<u8>> {
        self.file(name, sink)?.ok_or_else(|| damaged(format!("{name} is missing")))
    }
}

fn bytes<R: std::io::Read>(file: zip::read::ZipFile<'_, R>, sink: &mut Sink<'_>) -> Result<Vec<u8>> {
    if file.encrypted() {
        return Err(Stop::Refused(Unreadable::Encrypted, "a file of the archive needs a password".into()));
    }
    // What is stated may be a lie, so what comes out is counted.
    let packed = file.compressed_size().max(1);
    let most = sink.room().min(packed.saturating_mul(MOST_RATIO).max(SMALL_BYTES));
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(|_| damaged("a file of the archive cannot be unpacked"))?;
    if bytes.len() as u64 > most {
        return Err(Stop::Refused(Unreadable::Bomb, format!("{packed} bytes unpack to more than {most}")));
    }
    sink.unpacked(bytes.len() as u64)?;
    Ok(bytes)
}

fn refused(error: &ZipError) -> Stop {
    match error {
        ZipError::UnsupportedArchive(what) if *what == ZipError::PASSWORD_REQUIRED => {
            Stop::Refused(Unreadable::Encrypted, "a file of the archive needs a password".into())
        }
        ZipError::UnsupportedArchive(what) => Stop::Refused(Unreadable::UnknownKind, (*what).to_owned()),
        _ => damaged("a file of the archive cannot be read"),
    }
}

/// Reads the files of an archive, in the order of their names.
pub(crate) fn archive(packed: &[u8], sink: &mut Sink<'_>, depth: u32) -> Result<()> {
    let mut files = Unpacked::open(packed)?;
    let mut names: Vec<(String, usize)> = Vec::new();
    for index in 0..files.0.len() {
        let file = files.0.by_index_raw(index).map_err(|error| refused(&error))?;
        // A name is shown, and never a path.
        let name = file.name().map_err(|error| refused(&error))?;
        let is_hidden = name.starts_with("__MACOSX/") || name.ends_with("/.DS_Store");
        if file.is_file() && !is_hidden {
            names.push((name.into_owned(), index));
        }
    }
    names.sort();
    sink.head(None, None)?;
    for (name, index) in names {
        let content = match files.0.by_index(index) {
            Ok(file) => bytes(file, sink),
            Err(error) => Err(refused(&error)),
        };
        match content {
            Ok(bytes) => inside(Source { bytes, name: Some(name), media_type: None }, sink, depth)?,
            Err(Stop::Refused(why, _)) if why != Unreadable::Bomb => {
                let before = sink.enter(&name);
                sink.unread(why)?;
                sink.leave(before);
            }
            Err(stop) => return Err(stop),
        }
    }
    Ok(())
}

/// The kind of a compound file: a message of Outlook, or something that is not read.
pub(crate) fn compound(bytes: &[u8]) -> Result<FileKind> {
    let file =
        cfb::CompoundFile::open(Cursor::new(bytes)).map_err(|_| damaged("a compound file that cannot be opened"))?;
    if file.is_stream("/__properties_version1.0") {
        return Ok(FileKind::Msg);
    }
    if file.is_stream("/EncryptedPackage") {
        return Err(Stop::Refused(Unreadable::Encrypted, "an office document with a password".into()));
    }
    Err(Stop::Refused(Unreadable::UnknownKind, "a document of an old Office program".into()))
}
