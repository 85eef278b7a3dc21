//! Files and folders that a process leaves for others of its deployment (F46). They get the owner
//! of the place in which they are made: a command that root runs does not lock the service out.
//! Only root may give anything away; what other users make stays their own.

use std::fs::{DirBuilder, File, metadata};
use std::io::{ErrorKind, Result};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, chown, fchown};
use std::path::Path;

/// Makes a folder with a mode, and its missing parents, for the owner of the nearest existing one.
/// An existing folder stays as it is.
///
/// # Errors
/// When no folder can be made there.
pub fn make_folder(folder: &Path, mode: u32) -> Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    let above = folder.parent().filter(|above| !above.as_os_str().is_empty());
    let above = above.unwrap_or(Path::new("."));
    make_folder(above, mode)?;
    match DirBuilder::new().mode(mode).create(folder) {
        // Another process has just made it.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => return Ok(()),
        made => made?,
    }
    let (made, place) = (metadata(folder)?, metadata(above)?);
    if made.uid() == place.uid() {
        return Ok(());
    }
    unless_forbidden(chown(folder, Some(place.uid()), Some(place.gid())))
}

/// Gives a file that was just made to the owner of what is at `like`.
///
/// # Errors
/// When either cannot be read, or the file system keeps no owners.
pub fn give(file: &File, like: &Path) -> Result<()> {
    let (made, like) = (file.metadata()?, metadata(like)?);
    if made.uid() == like.uid() {
        return Ok(());
    }
    unless_forbidden(fchown(file, Some(like.uid()), Some(like.gid())))
}

fn unless_forbidden(given: Result<()>) -> Result<()> {
    match given {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
        given => given,
    }
}

/// What to do about a file or folder that this process may not use; nothing for other failures.
/// Never advises to delete it: it may be the only proof that a ledger was put back.
#[must_use]
pub fn remedy(error: &std::io::Error, path: &Path) -> String {
    if error.kind() != ErrorKind::PermissionDenied {
        return String::new();
    }
    let path = path.display();
    format!(
        "; give it to the user that runs this process (chown USER {path}), and do not delete it"
    )
}
