//! The last-seen mark in a process's data folder: what the ledger last confirmed to a process of
//! this machine, for the next one that starts (F25). A ledger that shows less was restored
//! meanwhile.
//!
//! One small file for each deployment, replaced at each heartbeat of any process; not synced: it
//! must outlive processes, not the machine. Only its owner may read it, and the owner stays the
//! same, so that a command of root does not lock the service out (F46). The other mark is in Redis,
//! for processes whose disk is gone. Never the reason that a number is issued.

use std::fs::{self, File, Permissions};
use std::io::{ErrorKind, Result, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use numerator_runtime::owned;

use crate::ledger::{At, Confirmed, Deployment, LedgerError, SharedLedger};
use crate::redis::{CounterError, Keys, Redis};

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Said {
    /// What the ledger confirmed.
    pub(super) confirmed: Confirmed,
    /// The epochs that it showed, by partition.
    pub(super) epochs: Vec<u64>,
}

impl Said {
    /// The epochs in the form that a hold of the ledger uses.
    pub(super) fn seen(&self) -> Vec<At> {
        let at = |(partition, epoch): (u32, &u64)| At { partition, epoch: *epoch };
        (0..).zip(&self.epochs).map(at).collect()
    }
}

/// Why a ledger is held that lacks what Redis knows of it.
const PUT_BACK: &str = "the ledger went back while nothing ran: it has forgotten what it confirmed \
                        to a process that has left word of that in redis";

/// Compares the ledger with what the last process of each partition has left in Redis when it
/// trimmed its outbox, and holds it where that is missing; before this process joins. A Redis that
/// does not answer is no witness: returns whether all of it did.
///
/// # Errors
/// When the ledger does not answer.
pub async fn hear_redis(
    ledger: &SharedLedger,
    redis: &Redis,
    keys: &Keys,
    deployment: &Deployment,
) -> std::result::Result<bool, LedgerError> {
    for partition in 0..deployment.partitions {
        let survey: std::result::Result<_, CounterError> = redis.survey(keys, partition, &[]).await;
        let owner = match survey {
            Ok(survey) => survey.owner,
            Err(error) => {
                tracing::info!(partition, %error, "redis is no witness of the ledger");
                return Ok(false);
            }
        };
        let mine = deployment.deployment_id.to_string();
        let Some(owner) = owner.filter(|owner| owner.deployment == mine) else { continue };
        let said = owner.confirmed.and_then(|said| serde_json::from_str(&said).ok());
        let Some(confirmed): Option<Confirmed> = said else { continue };
        if !ledger.nodes().remembers(&confirmed).await? {
            tracing::error!(?confirmed, "THE LEDGER WENT BACK while nothing ran");
            let seen = [At { partition, epoch: owner.epoch }];
            ledger.hold_all_after(&confirmed, &seen, PUT_BACK).await?;
            return Ok(true);
        }
    }
    Ok(true)
}

/// Where the witness of a deployment is written.
#[derive(Debug)]
pub struct LastSeenFile {
    path: PathBuf,
    /// Whether the last write failed: reported once, not at each heartbeat.
    is_failing: Mutex<bool>,
}

impl LastSeenFile {
    /// The witness of a deployment in a folder.
    #[must_use]
    pub fn within(folder: &Path, deployment: Uuid) -> Self {
        let path = folder.join(format!("witness-{}.json", deployment.simple()));
        LastSeenFile { path, is_failing: Mutex::default() }
    }

    /// What a process last wrote here; `None` where none did.
    ///
    /// # Errors
    /// When the file exists and cannot be read: what to do about it.
    pub(super) fn read(&self) -> std::result::Result<Option<Said>, String> {
        let path = self.path.display();
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(format!("{path}: {error}{}", owned::remedy(&error, &self.path)));
            }
        };
        let remedy = "where the ledger was not put back, delete it";
        let damaged = |error| format!("{path}: {error}; it is damaged: {remedy}");
        serde_json::from_slice(&text).map(Some).map_err(damaged)
    }

    /// Whether the folder can take the file.
    ///
    /// # Errors
    /// When it cannot: what to do about it.
    pub(super) fn must_be_writable(&self) -> std::result::Result<(), String> {
        let probed = self.make_new().and_then(|(new, _)| fs::remove_file(new));
        let (path, folder) = (self.path.display(), self.folder());
        probed.map_err(|error| {
            let remedy = owned::remedy(&error, folder);
            format!(
                "data.dir: {path} cannot be written: {error}{remedy}; without it nobody would \
                 notice that the ledger was put back while nothing ran"
            )
        })
    }

    fn folder(&self) -> &Path {
        self.path.parent().expect("a file in a folder")
    }

    /// Writes what is known now. A folder that takes no file leaves the ledger without this mark:
    /// that is reported, and has no other effect.
    pub(super) fn write(&self, said: &Said) {
        let failed = self.replace(said).err();
        let mut is_failing = self.is_failing.lock().expect("no holder of this lock panics");
        if let (Some(error), false) = (&failed, *is_failing) {
            let path = self.path.display();
            tracing::warn!(%path, %error, "no witness of the ledger is kept; see data.dir");
        }
        *is_failing = failed.is_some();
    }

    fn replace(&self, said: &Said) -> Result<()> {
        let (new, mut file) = self.make_new()?;
        file.write_all(&serde_json::to_vec(said)?)?;
        fs::rename(&new, &self.path)
    }

    /// A temporary file of this process next to the mark, with the owner and the mode of the one
    /// before; the first belongs to the folder's owner alone. It replaces the mark whole or not at
    /// all.
    fn make_new(&self) -> Result<(PathBuf, File)> {
        owned::make_folder(self.folder(), 0o700)?;
        let new = self.path.with_extension(format!("{}.new", std::process::id()));
        let mut options = File::options();
        let file = options.create(true).truncate(true).write(true).mode(0o600).open(&new)?;
        match fs::metadata(&self.path) {
            Ok(before) => {
                owned::give(&file, &self.path)?;
                file.set_permissions(Permissions::from_mode(before.permissions().mode() & 0o777))?;
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                owned::give(&file, self.folder())?;
            }
            Err(error) => return Err(error),
        }
        Ok((new, file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::NodeId;

    fn said(beat: i64) -> Said {
        let (node, nonce) = (NodeId(Uuid::nil()), Uuid::nil());
        let confirmed = Confirmed { node, beat, batches: 2, incarnation: 3, nonce, at_us: 4 };
        Said { confirmed, epochs: vec![0, 7] }
    }

    #[test]
    fn the_last_word_stays_and_a_damaged_one_is_no_word_at_all() {
        let folder = tempfile::tempdir().expect("folder");
        let last_seen_file = LastSeenFile::within(&folder.path().join("data"), Uuid::nil());
        assert_eq!(last_seen_file.read().expect("read"), None);
        last_seen_file.write(&said(1));
        last_seen_file.write(&said(2));
        assert_eq!(last_seen_file.read().expect("read"), Some(said(2)));
        assert_eq!(said(2).seen()[1], At { partition: 1, epoch: 7 });
        assert_eq!(fs::read_dir(folder.path().join("data")).expect("folder").count(), 1);
        fs::write(&last_seen_file.path, "{").expect("damaged");
        let error = last_seen_file.read().expect_err("damaged");
        assert!(error.contains("witness-"), "{error}");
    }
}
