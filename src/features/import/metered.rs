//! Reads a file within bounds: counts and hashes its bytes, and ends at an endless record. Does not
//! interpret the bytes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::Path;

use numbering::hexadecimal;
use sha2::{Digest, Sha256};

use super::ImportError;

/// Most bytes of one line, record or statement's beginning.
const RECORD_BYTES_MAX: u64 = 1_048_576;

/// A file that is being read.
pub(super) struct Metered {
    file: File,
    digest: Sha256,
    bytes: u64,
    /// Bytes read since the reader last reported a complete record.
    since_record: u64,
}

impl Metered {
    /// Opens a file and returns its first line with it.
    pub(super) fn open(path: &Path) -> Result<(Self, String), ImportError> {
        let opened = File::open(path).and_then(Self::of);
        opened.map_err(|cause| ImportError::file(path, cause))
    }

    /// The same of a file that is open already.
    pub(super) fn of(mut file: File) -> io::Result<(Self, String)> {
        let mut head = Vec::new();
        let mut start = BufReader::new(&mut file).take(RECORD_BYTES_MAX);
        start.read_until(b'\n', &mut head)?;
        file.rewind()?;
        let head = String::from_utf8_lossy(&head);
        let head = head.strip_prefix('\u{feff}').unwrap_or(&head).trim_end().to_owned();
        Ok((Metered { file, digest: Sha256::new(), bytes: 0, since_record: 0 }, head))
    }

    /// A record is complete.
    pub(super) fn record_read(&mut self) {
        self.since_record = 0;
    }

    /// Bytes read so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// SHA-256 of the bytes read so far, hex.
    pub(super) fn sha256(&self) -> String {
        let hash = self.digest.clone().finalize();
        hexadecimal(&hash)
    }
}

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.digest.update(&buffer[..count]);
        self.bytes += count as u64;
        self.since_record += count as u64;
        if self.since_record > RECORD_BYTES_MAX {
            let why = "a record has more than 1 MiB; is a quotation mark left open?";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok(count)
    }
}
