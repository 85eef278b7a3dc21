//! The mark next to a SQLite ledger: how far the file had come when it last confirmed a commit
//! (F25). An older copy put in the file's place shows less.
//!
//! Written after each commit, before its answer; never synced: it outlives the process, and a crash
//! of the machine takes the mark back together with nothing that the file keeps.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use uuid::Uuid;

use super::private;
use crate::incarnation::Incarnation;

/// Bytes of a mark: number, nonce, generation.
const BYTES: usize = 32;

/// How far a ledger has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Come {
    /// The incarnation that was agreed on.
    pub(super) incarnation: Incarnation,
    /// Transactions that may have written.
    pub(super) generation: i64,
}

impl Come {
    /// Whether a mark like this need not record `come`: that is of the same incarnation and no
    /// further, or an earlier one. A process that marks a commit found the file on the mark's line.
    fn covers(&self, come: &Come) -> bool {
        let (mine, other) = (self.incarnation, come.incarnation);
        mine.number > other.number || mine == other && self.generation >= come.generation
    }
}

/// The file. Other processes write it too: each look and each change is made under its lock.
#[derive(Debug)]
pub(super) struct MarkFile {
    ledger: PathBuf,
    path: PathBuf,
    /// `None` until there is one: made with the first incarnation, never automatically.
    file: Mutex<Option<File>>,
}

impl MarkFile {
    /// The mark of a ledger's file.
    pub(super) fn beside(ledger: &Path) -> Self {
        let mut path = ledger.as_os_str().to_owned();
        path.push(".mark");
        MarkFile { ledger: ledger.to_owned(), path: path.into(), file: Mutex::default() }
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Its content; `None` where there is no mark.
    pub(super) fn read(&self) -> Result<Option<Come>> {
        let mut held = self.file.lock().expect("no holder of this lock panics");
        let Some(file) = self.opened(&mut held)? else { return Ok(None) };
        file.lock_shared()?;
        let come = read_from(file);
        file.unlock()?;
        come
    }

    /// Raises it; a higher one stays.
    pub(super) fn raise(&self, come: &Come) -> Result<()> {
        let mut held = self.file.lock().expect("no holder of this lock panics");
        if self.opened(&mut held)?.is_none() {
            *held = Some(private::open(&self.path, &self.ledger)?);
        }
        let file = held.as_ref().expect("opened or made just now");
        file.lock()?;
        let raised = match read_from(file) {
            Ok(Some(marked)) if marked.covers(come) => Ok(()),
            Ok(_) => file.write_all_at(&bytes_of(come), 0),
            Err(error) => Err(error),
        };
        file.unlock()?;
        raised
    }

    fn opened<'f>(&self, held: &'f mut Option<File>) -> Result<Option<&'f File>> {
        if held.is_none() {
            match File::options().read(true).write(true).open(&self.path) {
                Ok(file) => *held = Some(file),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(held.as_ref())
    }
}

fn read_from(file: &File) -> Result<Option<Come>> {
    let mut bytes = [0; BYTES];
    match file.read_exact_at(&mut bytes, 0) {
        Ok(()) => {}
        // Made, and not written yet.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let (number, rest) = bytes.split_at(8);
    let (nonce, generation) = rest.split_at(16);
    let signed = |bytes: &[u8]| bytes.try_into().map(i64::from_le_bytes).map_err(Error::other);
    let nonce = Uuid::from_slice(nonce).map_err(Error::other)?;
    let incarnation = Incarnation { number: signed(number)?, nonce };
    Ok(Some(Come { incarnation, generation: signed(generation)? }))
}

fn bytes_of(come: &Come) -> Vec<u8> {
    let Incarnation { number, nonce } = come.incarnation;
    [&number.to_le_bytes(), nonce.as_bytes().as_slice(), &come.generation.to_le_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn come(incarnation: Incarnation, generation: i64) -> Come {
        Come { incarnation, generation }
    }

    #[test]
    fn a_mark_only_rises_and_a_later_incarnation_is_more_than_any_generation() {
        let folder = tempfile::tempdir().expect("folder");
        let mark = MarkFile::beside(&folder.path().join("ledger.db"));
        assert_eq!(mark.read().expect("read"), None);
        let first = Incarnation::first();
        mark.raise(&come(first, 7)).expect("raised");
        mark.raise(&come(first, 3)).expect("left");
        assert_eq!(mark.read().expect("read"), Some(come(first, 7)));
        let second = Incarnation::after([first]);
        mark.raise(&come(second, 2)).expect("raised");
        mark.raise(&come(first, 9)).expect("left");
        let other = MarkFile::beside(&folder.path().join("ledger.db"));
        assert_eq!(other.read().expect("read"), Some(come(second, 2)));
    }
}
