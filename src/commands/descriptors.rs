//! File descriptors: each connection is one, and a process without any left accepts no connections
//! and reaches neither Redis nor the ledger.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::Settings;
use crate::web::HEALTH_CONNECTIONS_MAX;

/// Descriptors besides connections of callers and to the ledger: Redis, its log, files.
const OTHERS: usize = 256;

/// Raises the limit as far as the process may, and warns if the bounds of the settings exceed it.
pub(crate) fn provide(settings: &Settings) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = current != maximum
        && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
    let available = if raised { maximum } else { current };
    let needed = needed(settings);
    // No number means no limit.
    if let Some(available) = available.filter(|available| *available < needed) {
        tracing::warn!(
            available,
            needed,
            "the bounds of the settings (http.connections_max, database.connections_max) are \
             beyond the open files that this process may have; raise that limit (ulimit -n, \
             LimitNOFILE=), or lower http.connections_max"
        );
    }
}

/// Descriptors in use when every bound of the settings is reached.
fn needed(settings: &Settings) -> u64 {
    let watched = settings.health_listen.map_or(0, |_| HEALTH_CONNECTIONS_MAX);
    let ledger = usize::try_from(settings.database.connections_max).unwrap_or(usize::MAX);
    let all = settings.http.connections_max.saturating_add(watched + OTHERS);
    u64::try_from(all.saturating_add(ledger)).unwrap_or(u64::MAX)
}
