//! The destination of an export: standard output, a file that takes its name once it is complete,
//! or a device, pipe or the like, which stays in place and is written through.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Stdout, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use tempfile::NamedTempFile;

use crate::terminal::output::unless_closed;

/// The destination. A file that is not kept is removed when its value is dropped.
pub(super) enum Target {
    /// Standard output.
    Stdout(Stdout),
    /// A temporary file in the folder of the named one.
    File { beside: NamedTempFile, path: PathBuf },
    /// Something that is not a file.
    Through { open: File, path: PathBuf },
}

/// Folders of the system: nothing in them is replaced or created.
const OF_SYSTEM: [&str; 2] = ["/dev", "/proc"];

/// A folder of files nevertheless.
const OF_FILES: &str = "/dev/shm";

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
        if is_no_file(&path) {
            let open = OpenOptions::new().write(true).open(&path).with_context(|| cannot(&path))?;
            return Ok(Target::Through { open, path });
        }
        let beside = tempfile::Builder::new().prefix(".export-").tempfile_in(folder_of(&path));
        let beside = beside.with_context(|| cannot(&path))?;
        Ok(Target::File { beside, path })
    }

    /// The folder of the file.
    pub(super) fn folder(&self) -> Option<&Path> {
        match self {
            Target::Stdout(_) | Target::Through { .. } => None,
            Target::File { path, .. } => Some(folder_of(path)),
        }
    }

    /// What remains of an interrupted export.
    pub(super) fn left(&self) -> String {
        match self {
            Target::Stdout(_) => "standard output has a part of the numbers".to_owned(),
            Target::Through { path, .. } => format!("{} has a part of the numbers", path.display()),
            Target::File { .. } => "no file was written".to_owned(),
        }
    }

    /// The context of an error during writing.
    pub(super) fn name(&self) -> String {
        match self {
            Target::Stdout(_) => "standard output cannot be written".to_owned(),
            Target::File { path, .. } | Target::Through { path, .. } => cannot(path),
        }
    }

    /// Gives the file its name; it is complete, and on the disk.
    ///
    /// # Errors
    /// Errors of the file system; the file that had the name is then unchanged.
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
            Target::Stdout(stdout) => {
                unless_closed(stdout.write_all(bytes))?;
                Ok(bytes.len())
            }
            Target::File { beside, .. } => beside.write(bytes),
            Target::Through { open, .. } => open.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Target::Stdout(stdout) => unless_closed(stdout.flush()),
            Target::File { beside, .. } => beside.flush(),
            Target::Through { open, .. } => open.flush(),
        }
    }
}

/// Whether a name, through any links, is of a device, a pipe and the like, or of the system: a file
/// that replaced it would replace it for all users.
fn is_no_file(path: &Path) -> bool {
    let is_else = fs::metadata(path).is_ok_and(|found| !found.is_file());
    let folder = folder_of(path).canonicalize().unwrap_or_default();
    let is_of_system = OF_SYSTEM.iter().any(|name| folder.starts_with(name));
    is_else || is_of_system && !folder.starts_with(OF_FILES)
}

/// The folder of a file; that of the process for a mere name.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn cannot(path: &Path) -> String {
    format!("{} cannot be written", path.display())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
    use std::process::Command;

    use super::*;

    #[test]
    fn what_was_interrupted_says_what_there_is_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = Target::open(Some(folder.path().join("register.csv"))).unwrap();
        assert_eq!(file.left(), "no file was written");
        let through = Target::open(Some("/dev/null".into())).unwrap();
        assert_eq!(through.left(), "/dev/null has a part of the numbers");
    }

    fn write(to: &Path, text: &str) -> anyhow::Result<()> {
        let mut target = Target::open(Some(to.to_owned()))?;
        target.write_all(text.as_bytes())?;
        target.keep()
    }

    #[test]
    fn what_is_no_file_is_written_through_and_stays_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, link) = (folder.path().join("pipe"), folder.path().join("link"));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        symlink(&pipe, &link).unwrap();
        for name in [&pipe, &link] {
            let reading = {
                let pipe = pipe.clone();
                std::thread::spawn(move || fs::read_to_string(pipe).unwrap())
            };
            write(name, "rows").unwrap();
            assert_eq!(reading.join().unwrap(), "rows");
        }
        assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
        assert!(fs::symlink_metadata(&link).unwrap().file_type().is_symlink());
        write(Path::new("/dev/null"), "rows").unwrap();
        assert!(fs::symlink_metadata("/dev/null").unwrap().file_type().is_char_device());
        // Nothing is created in the folder of devices either.
        let absent = Path::new("/dev/numerator-export-of-a-test");
        write(absent, "rows").unwrap_err();
        assert!(!absent.exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside them");
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_a_link_to_one_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "before").unwrap();
        symlink(&file, &link).unwrap();
        write(&link, "rows").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "before");
        let found = fs::symlink_metadata(&link).unwrap();
        assert!(found.is_file() && found.permissions().mode() & 0o777 == 0o600);
        let shared = Path::new(OF_FILES).join(format!("numerator-export-{}", std::process::id()));
        if Path::new(OF_FILES).is_dir() {
            write(&shared, "rows").unwrap();
            fs::remove_file(shared).unwrap();
        }
    }
}
