//! The signing of the record: the key, which is read where it is needed, and how often.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;

use super::key::AuditKey;

/// The beginning of a key's text in PEM form; anything else is the name of a file.
const PEM: &str = "-----BEGIN";

/// The treatment of a process without the key where the ledger knows one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyless {
    /// It is refused.
    Refused,
    /// The settings allow it to write all the same.
    Told,
    /// It writes no number.
    Onlooker,
}

/// The record under seal.
#[derive(Clone, PartialEq, Eq)]
pub struct AuditSettings {
    /// `audit.key`, the key itself or its file; absent: batches have seals, and no signature.
    pub(crate) key: Option<String>,
    /// `audit.without_key`: what happens to a process without the key where the ledger knows one.
    pub keyless: Keyless,
    /// `audit.checkpoint`: time between two checkpoints.
    pub checkpoint: Duration,
}

impl AuditSettings {
    /// Whether there is a key.
    #[must_use]
    pub fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// The file of the key, where it is in one.
    #[must_use]
    pub fn key_file(&self) -> Option<&Path> {
        let key = self.key.as_deref()?;
        (!key.trim_start().starts_with(PEM)).then_some(Path::new(key))
    }

    /// Reads the key, if there is one.
    ///
    /// # Errors
    /// A file that cannot be read, or holds no key.
    pub fn read_key(&self) -> anyhow::Result<Option<AuditKey>> {
        let Some(key) = &self.key else { return Ok(None) };
        if key.trim_start().starts_with(PEM) {
            return Ok(Some(AuditKey::read(key).context("audit.key")?));
        }
        let pem = std::fs::read_to_string(key);
        let pem = pem.with_context(|| format!("audit.key: {key}: cannot be read"))?;
        Ok(Some(AuditKey::read(&pem).with_context(|| format!("audit.key: {key}"))?))
    }
}

/// Without the key.
impl fmt::Debug for AuditSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let checkpoint = &self.checkpoint;
        f.debug_struct("AuditSettings").field("checkpoint", checkpoint).finish_non_exhaustive()
    }
}
