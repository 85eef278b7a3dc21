//! Where an export goes: standard output, or a file that takes its name once it is whole.

use std::io::{self, Stdout, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use tempfile::NamedTempFile;

/// What is written to. A file that is not kept goes away with its value.
pub(super) enum Target {
    /// Standard output.
    Stdout(Stdout),
    /// A file beside the one that is named.
    File { beside: NamedTempFile, path: PathBuf },
}

impl Target {
    /// Makes the file, which only its owner may read: it names people.
    ///
    /// # Errors
    /// A folder that takes no file, a name that is a folder's.
    pub(super) fn open(to: Option<PathBuf>) -> anyhow::Result<Self> {
        let Some(path) = to else { return Ok(Target::Stdout(io::stdout())) };
        if path.is_dir() {
            bail!("--to {} is a folder: name a file in it", path.display());
        }
        let beside = tempfile::Builder::new().prefix(".export-").tempfile_in(folder_of(&path));
        let beside = beside.with_context(|| cannot(&path))?;
        Ok(Target::File { beside, path })
    }

    /// The folder of the file.
    pub(super) fn folder(&self) -> Option<&Path> {
        match self {
            Target::Stdout(_) => None,
            Target::File { path, .. } => Some(folder_of(path)),
        }
    }

    /// What an error means that came while it was written.
    pub(super) fn name(&self) -> String {
        match self {
            Target::Stdout(_) => "standard output cannot be written".to_owned(),
            Target::File { path, .. } => cannot(path),
        }
    }

    /// Gives the file its name; it is whole, and on the disk.
    ///
    /// # Errors
    /// What the file system says; then the file that had the name is as it was.
    pub(super) fn keep(mut self) -> anyhow::Result<()> {
        self.flush().with_context(|| self.name())?;
        if let Target::File { beside, path } = self {
            beside.as_file().sync_all().with_context(|| cannot(&path))?;
            beside.persist(&path).map_err(|error| error.error).with_context(|| cannot(&path))?;
        }
        Ok(())
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Target::Stdout(stdout) => stdout.write(bytes),
            Target::File { beside, .. } => beside.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Target::Stdout(stdout) => stdout.flush(),
            Target::File { beside, .. } => beside.flush(),
        }
    }
}

/// The folder of a file; that of the process for a mere name.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn cannot(path: &Path) -> String {
    format!("{} cannot be written", path.display())
}
