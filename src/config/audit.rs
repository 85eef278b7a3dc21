//! `audit.*`: the key that signs, read where it is needed.

use super::layer;
use crate::engine::sealing::{AuditSettings, Keyless};

/// Its settings.
pub(super) fn audit(audit: &layer::Audit) -> AuditSettings {
    AuditSettings {
        key: audit.key.clone(),
        keyless: if audit.without_key { Keyless::Told } else { Keyless::Refused },
        checkpoint: audit.checkpoint.0,
    }
}
