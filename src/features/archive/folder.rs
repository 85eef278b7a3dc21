//! The folder of an archive: its lock, its files, and its leftovers. Gives a file its name only
//! once the ledger knows it; removes no file that has its name.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// How the files of rows are called.
const PREFIX: &str = "journal-";
const SUFFIX: &str = ".parquet";
/// Suffix of a file that the ledger may not know yet.
const PARTIAL: &str = ".partial";
/// Suffix of a manifest, after the name of its file.
const MANIFEST: &str = ".manifest.json";
/// The file that a writer of the folder locks.
const LOCK: &str = ".archive.lock";

/// A folder of archive files.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Prefix of the names of this ledger's files.
    prefix: String,
    /// Held while this process writes there.
    lock: Option<File>,
}

impl Folder {
    /// The folder, for reading.
    ///
    /// # Errors
    /// A folder that does not exist.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        if !path.is_dir() {
            bail!("{} is no folder that can be read", path.display());
        }
        Ok(Folder { path: path.to_owned(), prefix: PREFIX.into(), lock: None })
    }

    /// The folder, locked against other writers. Created if missing. `deployment` distinguishes the
    /// files of this ledger from those of others.
    ///
    /// # Errors
    /// A folder that is not writable, or that another process writes to.
    pub fn open_to_write(path: &Path, deployment: Uuid) -> anyhow::Result<Self> {
        let shown = path.display();
        fs::create_dir_all(path).with_context(|| format!("{shown} cannot be made"))?;
        let whole = path.canonicalize().with_context(|| format!("{shown} cannot be found"))?;
        for above in whole.ancestors().skip(1) {
            // A new folder must be as durable as its content; those of others may be closed.
            let _ = File::open(above).and_then(|above| above.sync_all());
        }
        let prefix = format!("{PREFIX}{}-", &deployment.simple().to_string()[..8]);
        let lock = OpenOptions::new().create(true).append(true).mode(0o600).open(path.join(LOCK));
        let lock = lock.with_context(|| format!("{shown} takes no file"))?;
        match lock.try_lock() {
            Ok(()) => Ok(Folder { path: path.to_owned(), prefix, lock: Some(lock) }),
            Err(TryLockError::WouldBlock) => {
                bail!("another process archives to {shown} at this moment; wait for its end")
            }
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("{shown} cannot be locked"))
            }
        }
    }

    /// Its name.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A name that no file has.
    pub(super) fn new_name(&self) -> String {
        format!("{}{}{SUFFIX}", self.prefix, Uuid::now_v7().simple())
    }

    /// Whether a file exists.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.file(name).is_file()
    }

    /// The path of a file of rows.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Its path until the ledger knows it.
    pub(super) fn partial(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}{PARTIAL}"))
    }

    /// Where its manifest is.
    pub(super) fn manifest(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}{MANIFEST}"))
    }

    /// Makes a file that the ledger does not know, for its owner alone.
    pub(super) fn make(&self, name: &str) -> anyhow::Result<File> {
        debug_assert!(self.lock.is_some(), "nobody writes without the lock");
        let path = self.partial(name);
        let made =
            OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path);
        made.with_context(|| format!("{} cannot be made", path.display()))
    }

    /// Removes a file that the ledger does not know.
    pub(super) fn remove_partial(&self, name: &str) {
        // Leftovers are removed by the next archiver.
        let _ = fs::remove_file(self.partial(name));
    }

    /// Gives a file that the ledger knows by now its name, and writes its manifest. Safe to repeat.
    pub(super) fn publish(&self, name: &str, manifest: &str) -> anyhow::Result<()> {
        let (partial, file) = (self.partial(name), self.file(name));
        let shown = file.display();
        let beside = self.manifest(name);
        if !beside.exists() {
            let written = write_whole(&self.path, &beside, manifest);
            written.with_context(|| format!("{} cannot be written", beside.display()))?;
        }
        if partial.exists() && !file.exists() {
            fs::rename(&partial, &file).with_context(|| format!("{shown} cannot be made"))?;
        }
        if !file.exists() {
            bail!("{shown} is not there");
        }
        self.sync().with_context(|| format!("{} cannot be kept", self.path.display()))
    }

    /// Has the disk keep the names of files.
    pub(super) fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    /// Removes the leftovers of an archiver that ended before the ledger knew its file.
    pub(super) fn tidy(&self, is_known: impl Fn(&str) -> bool) -> anyhow::Result<()> {
        for name in self.names(&format!("{SUFFIX}{PARTIAL}"))? {
            let Some(name) = name.strip_suffix(PARTIAL) else { continue };
            if !is_known(name) {
                self.remove_partial(name);
            }
        }
        Ok(())
    }

    /// The names of the manifests' files, in their order.
    pub(super) fn described(&self) -> anyhow::Result<Vec<String>> {
        let manifests = self.names(&format!("{SUFFIX}{MANIFEST}"))?;
        Ok(manifests.iter().filter_map(|name| Some(name.strip_suffix(MANIFEST)?.into())).collect())
    }

    /// The names of all files of rows, whatever their origin, and of those that have only a
    /// manifest, in their order.
    pub(super) fn all(&self) -> anyhow::Result<Vec<String>> {
        let any = Folder { path: self.path.clone(), prefix: String::new(), lock: None };
        let mut all = any.names(SUFFIX)?;
        all.extend(any.described()?);
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }

    fn names(&self, suffix: &str) -> anyhow::Result<Vec<String>> {
        let shown = self.path.display();
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path).with_context(|| format!("{shown} cannot be read"))? {
            let name = entry.with_context(|| format!("{shown} cannot be read"))?.file_name();
            if let Some(name) = name.to_str()
                && name.starts_with(&self.prefix)
                && name.ends_with(suffix)
            {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}

/// Writes a file atomically: it is complete or absent.
fn write_whole(folder: &Path, path: &Path, text: &str) -> anyhow::Result<()> {
    use std::io::Write as _;
    let mut beside = tempfile::Builder::new().prefix(".manifest-").tempfile_in(folder)?;
    beside.write_all(text.as_bytes())?;
    beside.as_file().sync_all()?;
    beside.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// SHA-256 of the content of a file.
pub(super) fn sha256_of(path: &Path) -> anyhow::Result<[u8; 32]> {
    let shown = || format!("{} cannot be read", path.display());
    let mut file = File::open(path).with_context(shown)?;
    let mut sha256 = Sha256::new();
    let mut part = vec![0; 1 << 20];
    loop {
        let count = file.read(&mut part).with_context(shown)?;
        if count == 0 {
            return Ok(sha256.finalize().into());
        }
        sha256.update(&part[..count]);
    }
}

/// Removes a file and its manifest, with or without its final name, once the ledger has recorded
/// that. Safe to repeat.
///
/// # Errors
/// Errors of the file system.
pub fn remove(folder: &Folder, name: &str) -> anyhow::Result<()> {
    for path in [folder.partial(name), folder.file(name), folder.manifest(name)] {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let shown = path.display();
                return Err(error).with_context(|| format!("{shown} cannot be removed"));
            }
            _ => {}
        }
    }
    Ok(())
}
