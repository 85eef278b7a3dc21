//! `audit.*`: the key that signs, read where it is needed.

use std::fmt;
use std::time::Duration;

use anyhow::Context as _;

use crate::audit::AuditKey;

/// What the text of a key in PEM form begins with; anything else is the name of a file.
const PEM: &str = "-----BEGIN";

/// The record under seal.
#[derive(Clone, PartialEq, Eq)]
pub struct AuditSettings {
    /// `audit.key`, the key itself or its file; absent: batches have seals, and nobody signs.
    pub(super) key: Option<String>,
    /// `audit.checkpoint`: time between two checkpoints.
    pub checkpoint: Duration,
}

impl AuditSettings {
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
