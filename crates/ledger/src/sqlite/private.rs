//! Keeps a ledger's files for their owner: other users who may read them have its keys and
//! documents, and those who may open them can hold their locks without limit.

use std::ffi::OsString;
use std::fs::{File, Permissions, metadata, set_permissions};
use std::io::{ErrorKind, Result};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use numerator_runtime::owned;

/// Rights to a folder that is made, and to a file: only for its owner.
const FOLDER: u32 = 0o700;
const FILE: u32 = 0o600;

/// The rights of all users but the owner.
const OTHERS: u32 = 0o077;

/// A folder in which others may write, unless each may only remove his own files.
const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// The suffixes of the files of a ledger.
const BESIDE: [&str; 5] = ["", "-wal", "-shm", ".lock", ".mark"];

/// Makes a folder, and those above it that are missing. An existing one stays as it is: it may have
/// other uses.
pub(super) fn make_folder(folder: &Path) -> Result<()> {
    owned::make_folder(folder, FOLDER)?;
    let mode = metadata(folder).map_or(0, |found| found.permissions().mode());
    if mode & OTHERS_WRITE != 0 && mode & STICKY == 0 {
        let folder = folder.display();
        tracing::warn!(%folder, "others may put another ledger in its place: chmod 700 the folder");
    }
    Ok(())
}

/// Opens a file next to a ledger to read and write. Where it is missing it is made, and belongs to
/// the ledger's owner.
pub(super) fn open(path: &Path, ledger: &Path) -> Result<File> {
    let mut options = File::options();
    options.read(true).write(true).mode(FILE);
    match options.clone().create_new(true).open(path) {
        Ok(file) => {
            owned::give(&file, if ledger.exists() { ledger } else { folder_of(ledger) })?;
            Ok(file)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => options.open(path),
        Err(error) => Err(error),
    }
}

/// Makes a ledger's file where there is none, for the owner of its folder. An existing one is not
/// opened: closing it again would end the locks that other connections of this process have on it.
pub(super) fn make(ledger: &Path) -> Result<()> {
    match File::options().write(true).create_new(true).mode(FILE).open(ledger) {
        Ok(file) => owned::give(&file, folder_of(ledger)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// The folder of a ledger.
fn folder_of(ledger: &Path) -> &Path {
    match ledger.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Removes the rights of others to a ledger's files: those that were made earlier, or by another
/// program.
pub(super) fn tighten(ledger: &Path) {
    for beside in BESIDE {
        let mut name: OsString = ledger.as_os_str().to_owned();
        name.push(beside);
        let path = PathBuf::from(name);
        let Ok(found) = metadata(&path) else { continue };
        let mode = found.permissions().mode();
        if mode & OTHERS == 0 {
            continue;
        }
        match set_permissions(&path, Permissions::from_mode(mode & !OTHERS)) {
            Ok(()) => tracing::warn!(path = %path.display(), "was open to others; is not any more"),
            // Another process has just removed it.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "is open to others: chmod 600 it");
            }
        }
    }
}
