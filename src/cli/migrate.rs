//! `numerator migrate`: sets an empty ledger up, or brings the schema of one that is older than
//! this program up to date. Joins as no node and says nothing about partitions: the first service
//! does.

use anyhow::Context as _;

use super::output::print;
use super::ownership::must_own_ledger;
use super::session::clock;
use crate::config::Settings;
use crate::ledger::{LedgerSettings, Migrate};
use crate::service;

/// Migrates, whatever `database.migrate` says.
///
/// # Errors
/// A ledger that cannot be reached, is newer than this program, or gives a migration no lock.
pub async fn run(settings: &Settings) -> anyhow::Result<()> {
    let database = LedgerSettings { migrate: Migrate::Auto, ..settings.database };
    must_own_ledger(settings)?;
    let _ledger = service::open(&settings.database_url, database, clock())
        .await
        .context("the ledger (database.url) is not up to date")?;
    print(["the ledger's schema is up to date"])?;
    Ok(())
}
