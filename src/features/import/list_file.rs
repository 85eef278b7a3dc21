//! The file of a list, which is read twice: once to plan its import, and once to import it.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use super::ImportError;

/// The name that means standard input instead of a file.
pub const STANDARD_INPUT: &str = "-";

/// Most bytes from a source that can be read only once: they are kept on disk meanwhile.
const KEPT_BYTES_MAX: u64 = 1 << 30;

/// A list that can be read again.
#[derive(Debug)]
pub struct ListFile {
    name: String,
    file: File,
    bytes: u64,
}

impl ListFile {
    /// Opens a file, or standard input if its name is `-`. A source that can be read only once,
    /// such as a pipe, is read now, into a nameless file that ends with the process.
    ///
    /// # Errors
    /// A file that cannot be read; more than 1 GiB from a source that can be read only once.
    pub fn open(path: &Path) -> Result<Self, ImportError> {
        let is_input = path == Path::new(STANDARD_INPUT);
        let name = if is_input { "standard input".into() } else { path.display().to_string() };
        let opened = || {
            if is_input {
                return kept(io::stdin().lock());
            }
            let file = File::open(path)?;
            let kind = file.metadata()?.file_type();
            if kind.is_file() || kind.is_dir() { Ok(file) } else { kept(file) }
        };
        let bytes = |file: File| Ok((file.metadata()?.len(), file));
        match opened().and_then(bytes) {
            Ok((bytes, file)) => Ok(ListFile { name, file, bytes }),
            Err(cause) => Err(ImportError::File { file: name, cause }),
        }
    }

    /// Its name in messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How large it is.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The file, to be read from its beginning: nothing else reads it meanwhile.
    pub(super) fn reopened(&self) -> io::Result<File> {
        let mut file = self.file.try_clone()?;
        file.rewind()?;
        Ok(file)
    }
}

/// Copies a source into a nameless file.
fn kept(source: impl Read) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    if io::copy(&mut source.take(KEPT_BYTES_MAX + 1), &mut file)? > KEPT_BYTES_MAX {
        let why = "more than 1 GiB; save it as a file and name that";
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    file.flush()?;
    Ok(file)
}
