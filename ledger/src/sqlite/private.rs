//! Keeps a ledger's files for their owner: whoever else may read them has its keys and documents,
//! and whoever may open them can hold their locks for as long as he likes.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, Permissions, metadata, set_permissions};
use std::io::{ErrorKind, Result};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Rights to a folder that is made, and to a file: its owner's alone.
const FOLDER: u32 = 0o700;
const FILE: u32 = 0o600;

/// What may be done by anybody but the owner.
const OTHERS: u32 = 0o077;

/// A folder in which others may write, unless each may only remove what is his.
const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// What lies beside a ledger's file under its name.
const BESIDE: [&str; 5] = ["", "-wal", "-shm", ".lock", ".mark"];

/// Makes a folder, and those above it that are missing. One that is there stays as it is: it may
/// have other uses.
pub(super) fn make_folder(folder: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER).create(folder)?;
    let mode = metadata(folder).map_or(0, |found| found.permissions().mode());
    if mode & OTHERS_WRITE != 0 && mode & STICKY == 0 {
        let folder = folder.display();
        tracing::warn!(%folder, "others may put another ledger in its place: chmod 700 the folder");
    }
    Ok(())
}

/// Opens a file beside a ledger to read and write, made where it is missing.
pub(super) fn open(path: &Path) -> Result<File> {
    let mut options = File::options();
    options.create(true).truncate(false).read(true).write(true).mode(FILE).open(path)
}

/// Makes a ledger's file where there is none. One that is there is not opened: closing it again
/// would end the locks that other connections of this process have on it.
pub(super) fn make(ledger: &Path) -> Result<()> {
    match File::options().write(true).create_new(true).mode(FILE).open(ledger) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Takes from others what they may do with a ledger's files: those that were made before, or by
/// another program.
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
