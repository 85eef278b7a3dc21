//! The ledger of the settings, opened: to read it, or to write numbers to it.

use std::sync::Arc;

use anyhow::Context as _;

use super::first_series;
use super::fitness::must_be_fit;
use super::opened::open;
use crate::clock::SharedClock;
use crate::config::Settings;
use crate::engine::allocator::Catalog;
use crate::ledger::{Deployment, LedgerSettings, SharedLedger};
use crate::node::system_random;

/// Opens the ledger of the settings; a new one is set up by them.
///
/// # Errors
/// When it cannot be reached, is newer than this program, or older where that is not to be changed,
/// or was set up with other settings.
pub async fn open_ledger(
    settings: &Settings,
    clock: &SharedClock,
) -> anyhow::Result<(SharedLedger, Deployment)> {
    let ledger = open_database(settings, clock).await?;
    let deployment = deploy(settings, &ledger).await?;
    Ok((ledger, deployment))
}

async fn open_database(settings: &Settings, clock: &SharedClock) -> anyhow::Result<SharedLedger> {
    let url = &settings.database_url;
    let mac_key = settings.audit.read_key()?.map(|key| key.proof());
    let database = LedgerSettings { mac_key, ..settings.database };
    let opened = open(url, database, Arc::clone(clock)).await;
    opened.context("the ledger (database.url) cannot be opened")
}

/// Sets an empty ledger up by the settings; an existing one must have been set up so.
async fn deploy(settings: &Settings, ledger: &SharedLedger) -> anyhow::Result<Deployment> {
    let wanted = Deployment {
        deployment_id: system_random(),
        partitions: settings.partitions,
        prefix: settings.redis_prefix.clone(),
    };
    Ok(ledger.deployment(&wanted).await?)
}

/// Opens the ledger of the settings and reads the series that a service on it serves.
///
/// # Errors
/// Like [`open_ledger`], and series that a newer version saved.
pub async fn open_catalog(
    settings: &Settings,
    clock: &SharedClock,
) -> anyhow::Result<(SharedLedger, Deployment, Catalog)> {
    let (ledger, deployment) = open_ledger(settings, clock).await?;
    read_catalog(settings, clock, ledger, deployment).await
}

/// The same for a read that writes nothing: a ledger without series stays so, and is read by those
/// that it would get.
///
/// # Errors
/// As [`open_catalog`].
pub async fn foresee_catalog(
    settings: &Settings,
    clock: &SharedClock,
) -> anyhow::Result<(SharedLedger, Catalog)> {
    let (ledger, _) = open_ledger(settings, clock).await?;
    let foreseen = first_series::definitions(&settings.series_load, &ledger).await?;
    let catalog = Catalog::load(&ledger).await.context("loading the series")?;
    let reference = Arc::clone(catalog.reference());
    let catalog = match foreseen.is_empty() {
        true => catalog,
        false => Catalog::foreseen(foreseen, reference),
    };
    Ok((ledger, catalog))
}

/// The same for a process that writes numbers: the database must have what they need.
pub(crate) async fn open_to_write(
    settings: &Settings,
    clock: &SharedClock,
) -> anyhow::Result<(SharedLedger, Deployment, Catalog)> {
    let ledger = open_database(settings, clock).await?;
    must_be_fit(&ledger).await?;
    let deployment = deploy(settings, &ledger).await?;
    read_catalog(settings, clock, ledger, deployment).await
}

/// Saves the series that a ledger without any gets, and reads them.
///
/// # Errors
/// As [`open_catalog`].
pub async fn load_catalog(
    settings: &Settings,
    clock: &SharedClock,
    ledger: &SharedLedger,
) -> anyhow::Result<Catalog> {
    first_series::load(&settings.series_load, ledger, clock).await?;
    Catalog::load(ledger).await.context("loading the series")
}

async fn read_catalog(
    settings: &Settings,
    clock: &SharedClock,
    ledger: SharedLedger,
    deployment: Deployment,
) -> anyhow::Result<(SharedLedger, Deployment, Catalog)> {
    let catalog = load_catalog(settings, clock, &ledger).await?;
    Ok((ledger, deployment, catalog))
}
