//! The identity of the file at the ledger's path. It may be replaced or removed while connections
//! have the former one open: further writes would go where they are never read (F25).

use std::fs::metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Longer than the opening of a file takes. A connection counts its age from then on: one that was
/// opened while the file was replaced may have the former one.
const OPENING_TIME: Duration = Duration::from_millis(250);

/// The place of a ledger's file.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    /// `None` until the first look.
    found: Mutex<Option<SeenFile>>,
}

/// The result of the last look.
#[derive(Debug)]
struct SeenFile {
    /// Device and number; `None` where there was no file.
    file: Option<(u64, u64)>,
    /// When it was found in the place of another; `None`: it is the first.
    since: Option<Instant>,
}

impl Place {
    /// The ledger's path.
    pub(super) fn of(ledger: &Path) -> Self {
        Place { path: ledger.to_owned(), found: Mutex::default() }
    }

    /// Whether a connection has the present file open, by how long it has been open. The first look
    /// takes the file that it finds for that of all open connections.
    pub(super) fn is_of(&self, age: Duration) -> bool {
        let file = metadata(&self.path).ok().map(|found| (found.dev(), found.ino()));
        let now = Instant::now();
        let mut held = self.found.lock().expect("no holder of this lock panics");
        let found = held.get_or_insert(SeenFile { file, since: None });
        if found.file != file {
            let path = self.path.display();
            tracing::error!(%path, is_gone = file.is_none(), "another file lies there by now");
            *found = SeenFile { file, since: Some(now) };
        }
        file.is_some() && found.since.is_none_or(|since| age + OPENING_TIME < now - since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: Duration = Duration::ZERO;
    const OLD: Duration = Duration::from_secs(3_600);

    #[test]
    fn what_was_open_before_another_file_came_is_not_of_the_place_any_more() {
        let folder = tempfile::tempdir().expect("folder");
        let [path, other] = ["ledger.db", "copy.db"].map(|name| folder.path().join(name));
        std::fs::write(&path, "a").expect("written");
        std::fs::write(&other, "b").expect("written");
        let place = Place::of(&path);
        assert!(place.is_of(OLD) && place.is_of(NEW));
        std::fs::rename(&other, &path).expect("renamed");
        assert!(!place.is_of(OLD));
        while !place.is_of(NEW) {}
        assert!(!place.is_of(OLD), "nor at the next look");
        std::fs::remove_file(&path).expect("removed");
        assert!(!place.is_of(NEW) && !place.is_of(OLD));
    }
}
