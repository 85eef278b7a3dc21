//! The caller, as passed to handlers.

use std::sync::{Arc, OnceLock};

use super::super::holdings::Holdings;
use super::super::language::Locale;
use super::super::limited::Limited;
use crate::auth::Identity;
use crate::ledger::IssuePath;

/// The caller. Handlers get it as an extension, whichever way the call took.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The identity with its rights.
    pub(crate) identity: Arc<Identity>,
    /// Name of the identity, or of the person on whose behalf it calls.
    pub(crate) user_id: Arc<str>,
    /// The person's address, if the identity names it; else the other end of the connection, or the
    /// address from a trusted proxy. Address headers from any other client are not trusted.
    pub(crate) ip_address: Option<Arc<str>>,
    /// Name of this call in answers and log lines.
    pub(crate) request_id: Arc<str>,
    /// The language in which problems address the user.
    pub(crate) language: Locale,
    /// The path that served the call's numbers.
    pub(crate) served_by: ServedBy,
    /// Until when it waits, if it says so.
    pub(crate) by: Option<tokio::time::Instant>,
    /// The counting of the call, if a limit counts it.
    pub(crate) limited: Option<Arc<Limited>>,
    /// What the call keeps in memory, and the caller for which that counts.
    pub(crate) holdings: Holdings,
}

impl Caller {
    /// The address as records carry it.
    pub(crate) fn address(&self) -> Option<String> {
        self.ip_address.as_deref().map(str::to_owned)
    }
}

/// Which path took the numbers of a call; none for a call that took none. Of several, the first.
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
