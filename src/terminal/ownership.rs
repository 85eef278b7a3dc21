//! What a command leaves next to a ledger or in `data.dir` must be usable by the service (F46):
//! root gives it to the owner of the place, and any other user that would leave files that only it
//! may use is refused before anything is done.

use std::fs::{metadata, read_dir};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::config::Settings;

/// Refuses a command that opens the ledger of the settings as another user than its owner.
///
/// # Errors
/// A ledger's file, or the folder of a new one, that belongs to another user.
pub(crate) fn must_own_ledger(settings: &Settings) -> anyhow::Result<()> {
    must_own(&ledger_file(settings).into_iter().collect::<Vec<_>>())
}

/// The same for one that joins as a node, and leaves word of that in `data.dir`.
///
/// # Errors
/// The same of that folder, and of what earlier processes have left there.
pub(crate) fn must_own_data(settings: &Settings) -> anyhow::Result<()> {
    must_own_ledger(settings)?;
    let mut places = vec![settings.data_dir.clone()];
    let left = read_dir(&settings.data_dir).into_iter().flatten().flatten();
    let is_witness = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("witness-"))
    };
    places.extend(left.map(|entry| entry.path()).filter(is_witness));
    must_own(&places)
}

/// The file of a SQLite ledger.
pub(crate) fn ledger_file(settings: &Settings) -> Option<PathBuf> {
    let path = settings.database_url.strip_prefix("sqlite:")?;
    Some(PathBuf::from(path.strip_prefix("//").unwrap_or(path)))
}

fn must_own(places: &[PathBuf]) -> anyhow::Result<()> {
    let me = geteuid();
    // What root makes belongs to the owner of the place.
    if me.is_root() {
        return Ok(());
    }
    for place in places {
        // Of what is not there yet the nearest folder decides.
        let there = place.ancestors().find_map(|above| {
            let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
            metadata(above).ok().map(|found| (above, found.uid()))
        });
        let Some((there, owner)) = there else { continue };
        // A folder of root takes files of any user with write access, such as those of a container.
        anyhow::ensure!(
            owner == me.as_raw() || owner == 0,
            "{} belongs to the user {owner}, who could not use what this command would leave \
             there; nothing is done: run it as that user (sudo -u '#{owner}'), or as root",
            there.display()
        );
    }
    Ok(())
}
