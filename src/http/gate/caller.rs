//! Who calls, as handlers are told.

use std::sync::{Arc, OnceLock};

use super::super::holdings::Holdings;
use super::super::language::Language;
use super::super::limited::Limited;
use crate::access::Identity;
use crate::ledger::IssuePath;

/// Who calls. Handlers get it as an extension, whichever door they are behind.
#[derive(Clone, Debug)]
pub(in crate::http) struct Caller {
    /// What it may do.
    pub(in crate::http) identity: Arc<Identity>,
    /// Name of the identity, or of the person for whom it asks, through it.
    pub(in crate::http) user_id: Arc<str>,
    /// The person's address, where the identity says so; else the other end of the connection, or
    /// what a trusted proxy says. Headers of anybody else that claim an address are not believed.
    pub(in crate::http) ip_address: Option<Arc<str>>,
    /// Name of this call in answers and log lines.
    pub(in crate::http) request_id: Arc<str>,
    /// In which language problems speak to the user.
    pub(in crate::http) language: Language,
    /// What took the call's numbers.
    pub(in crate::http) served_by: ServedBy,
    /// Until when it waits, where it says so.
    pub(in crate::http) by: Option<tokio::time::Instant>,
    /// What of the call counts, where a limit counts it.
    pub(in crate::http) limited: Option<Arc<Limited>>,
    /// What the call keeps in memory, and whom that counts for.
    pub(in crate::http) holdings: Holdings,
}

impl Caller {
    /// The address as records carry it.
    pub(in crate::http) fn address(&self) -> Option<String> {
        self.ip_address.as_deref().map(str::to_owned)
    }
}

/// Which path took the numbers of a call; nothing for a call that took none. Of several, the first.
#[derive(Clone, Debug, Default)]
pub(in crate::http) struct ServedBy(Arc<OnceLock<IssuePath>>);

impl ServedBy {
    /// Notes the path.
    pub(in crate::http) fn note(&self, path: IssuePath) {
        // Only the first of a batch is kept.
        let _ = self.0.set(path);
    }

    pub(super) fn name(&self) -> &'static str {
        self.0.get().map_or("", |path| path.name())
    }
}
