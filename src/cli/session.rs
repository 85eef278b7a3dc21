//! Opens what a command works on: the whole service, only its ledger, or only the series there.

use std::sync::Arc;

use crate::allocator::Catalog;
use crate::clock::{SharedClock, SystemClock};
use crate::config::Settings;
use crate::http::Problem;
use crate::ledger::SharedLedger;
use crate::service::{self, Mode, Service};

/// The clock of a process.
pub(super) fn clock() -> SharedClock {
    Arc::new(SystemClock)
}

/// Runs work on a service that joins, and leaves again whatever became of the work.
///
/// A number that was taken is good even where leaving fails: its record is in the outbox, and the
/// next node adopts it. So that failure is only a warning.
pub(super) async fn with_service<T>(
    settings: &Settings,
    work: impl AsyncFnOnce(&Service) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let service = Service::start(settings, clock(), Mode::Command).await?;
    let outcome = work(&service).await;
    if let Err(error) = service.stop().await {
        tracing::warn!("could not leave cleanly: {error:#}");
    }
    outcome
}

/// Opens the ledger alone, without joining as a node.
pub(super) async fn open_ledger(settings: &Settings) -> anyhow::Result<SharedLedger> {
    let (ledger, _) = service::open_ledger(settings, &clock()).await?;
    Ok(ledger)
}

/// Reads the series that a service would serve, without joining as a node and without Redis.
pub(super) async fn open_catalog(settings: &Settings) -> anyhow::Result<Catalog> {
    let (_, _, catalog) = service::open_catalog(settings, &clock()).await?;
    Ok(catalog)
}

/// A refusal as one line: where, what, and the slug that the HTTP interface gives it.
pub(super) fn refusal(problem: impl Into<Problem>) -> anyhow::Error {
    anyhow::Error::msg(problem.into())
}
