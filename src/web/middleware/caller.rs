//! Who calls, as handlers are told.

use std::sync::{Arc, OnceLock};

use super::super::holdings::Holdings;
use super::super::language::Language;
use super::super::limited::Limited;
use crate::auth::Identity;
use crate::ledger::IssuePath;

/// Who calls. Handlers get it as an extension, whichever door they are behind.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// What it may do.
    pub(crate) identity: Arc<Identity>,
    /// Name of the identity, or of the person for whom it asks, through it.
    pub(crate) user_id: Arc<str>,
    /// The person's address, where the identity says so; else the other end of the connection, or
    /// what a trusted proxy says. Headers of anybody else that claim an address are not believed.
    pub(crate) ip_address: Option<Arc<str>>,
    /// Name of this call in answers and log lines.
    pub(crate) request_id: Arc<str>,
    /// In which language problems speak to the user.
    pub(crate) language: Language,
    /// What took the call's numbers.
    pub(crate) served_by: ServedBy,
    /// Until when it waits, where it says so.
    pub(crate) by: Option<tokio::time::Instant>,
    /// What of the call counts, where a limit counts it.
    pub(crate) limited: Option<Arc<Limited>>,
    /// What the call keeps in memory, and whom that counts for.
    pub(crate) holdings: Holdings,
}

impl Caller {
    /// The address as records carry it.
    pub(crate) fn address(&self) -> Option<String> {
        self.ip_address.as_deref().map(str::to_owned)
    }
}

/// Which path took the numbers of a call; nothing for a call that took none. Of several, the first.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServedBy(Arc<OnceLock<IssuePath>>);

impl ServedBy {
    /// Notes the path.
    pub(crate) fn note(&self, path: IssuePath) {
        // Only the first of a batch is kept.
        let _ = self.0.set(path);
    }

    pub(super) fn name(&self) -> &'static str {
        self.0.get().map_or("", |path| path.name())
    }
}
