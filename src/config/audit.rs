//! `audit.*`: the key that signs, read where it is needed.

use super::bounds::{Checked, secs, wait};
use super::layer;
use crate::engine::sealing::{AuditSettings, Keyless};

/// Bounds of its settings.
pub(super) fn audit(audit: &layer::Audit) -> Checked<AuditSettings> {
    Ok(AuditSettings {
        key: audit.key.clone(),
        keyless: if audit.without_key { Keyless::Told } else { Keyless::Refused },
        checkpoint: wait("audit.checkpoint", audit.checkpoint, secs(1)..=secs(3_600))?,
    })
}
