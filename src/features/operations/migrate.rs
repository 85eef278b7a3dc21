//! `numerator migrate`: sets an empty ledger up, or brings the schema of one that is older than
//! this program up to date; on request it gives the roles of the ledger their rights to it. Does
//! not join as a node and sets no partitions: the first service does.

use anyhow::Context as _;
use clap::Args;

use crate::config::Settings;
use crate::ledger::{LedgerSettings, Migrate};
use crate::startup;
use crate::terminal::output::print;
use crate::terminal::ownership::must_own_ledger;
use crate::terminal::session::{clock, note_act};

/// What else is to be done.
#[derive(Clone, Debug, Args)]
pub struct MigrateArgs {
    /// Then give the roles of deploy/postgres/roles.sql their rights, and take all others of theirs
    #[arg(long)]
    pub roles: bool,
}

/// Migrates, regardless of `database.migrate`.
///
/// # Errors
/// A ledger that cannot be reached, is newer than this program, or gives a migration no lock;
/// missing roles, or tables of another owner.
pub async fn run(settings: &Settings, args: &MigrateArgs) -> anyhow::Result<()> {
    let database = LedgerSettings { migrate: Migrate::Auto, ..settings.database };
    must_own_ledger(settings)?;
    let ledger = startup::open(&settings.database_url, database, clock())
        .await
        .context("the ledger (database.url) is not up to date")?;
    // The migration of an older ledger is recorded when it is opened.
    if let Some(migrated) = ledger.migrated().filter(|migrated| migrated.from == 0) {
        note_act(&ledger, "migrated", serde_json::json!({ "from": 0, "to": migrated.to })).await;
    }
    print(["the ledger's schema is up to date"])?;
    if args.roles {
        let granted = ledger.grant_roles().await;
        // Each start of a pod runs this.
        if granted.context("the roles of the ledger have no rights to it yet")? {
            note_act(&ledger, "roles-granted", serde_json::json!({})).await;
        }
        print(["the roles of the ledger have their rights"])?;
    }
    Ok(())
}
