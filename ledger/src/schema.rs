//! Which migrations a ledger has, and what that means for this program. Knows no engine.

use std::time::Duration;

use sqlx::migrate::{AppliedMigration, MigrateError, Migrator};

use super::{LedgerError, Migrate};

/// How long to wait for a heartbeat of processes that a migration must not meet.
pub(super) const HEARTBEATS: Duration = Duration::from_secs(3);

/// The heartbeats of the nodes that neither left nor were adopted.
pub(super) const BEATS: &str = "select node_id, beat from node \
     where left_at_us is null and adopted_at_us is null order by node_id";

/// Compares heartbeats with those of a while ago.
///
/// # Errors
/// `Migration` with the remedy, where a process is at work.
pub(super) fn nobody_is_at_work(
    before: &[(Vec<u8>, i64)],
    after: &[(Vec<u8>, i64)],
) -> Result<(), LedgerError> {
    if before == after {
        return Ok(());
    }
    let why = "processes of an earlier version are at work, and cannot read what this one writes; \
               stop all of them, then migrate again";
    Err(LedgerError::Migration(why.into()))
}

/// What a migration made of a ledger: its newest migration before, 0 of an empty one, and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// Before.
    pub from: i64,
    /// After.
    pub to: i64,
}

/// How a ledger's schema stands to this program's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// It has none yet.
    Empty,
    /// Migrations of this program are missing.
    Older {
        /// The newest that it has.
        has: i64,
        /// The newest of this program.
        needs: i64,
    },
    /// It has every migration of this program, and no other.
    Current,
}

impl Schema {
    /// How a ledger stands that has these migrations.
    ///
    /// # Errors
    /// `Migration` where it has one that this program does not know, or knows otherwise.
    pub(super) fn of(known: &Migrator, applied: &[AppliedMigration]) -> Result<Self, LedgerError> {
        for one in applied {
            match known.iter().find(|migration| migration.version == one.version) {
                None => return Err(MigrateError::VersionMissing(one.version).into()),
                Some(migration) if migration.checksum != one.checksum => {
                    return Err(MigrateError::VersionMismatch(one.version).into());
                }
                Some(_) => {}
            }
        }
        let is_applied = |version| applied.iter().any(|one| one.version == version);
        let newest = |versions: &mut dyn Iterator<Item = i64>| versions.max().unwrap_or_default();
        Ok(match known.iter().all(|migration| is_applied(migration.version)) {
            true => Schema::Current,
            false if applied.is_empty() => Schema::Empty,
            false => Schema::Older {
                has: newest(&mut applied.iter().map(|one| one.version)),
                needs: newest(&mut known.iter().map(|migration| migration.version)),
            },
        })
    }

    /// What migrations are to make of it; nothing where there are none to be run.
    ///
    /// # Errors
    /// `Migration` with the command, where the schema is older and only that command may change it.
    pub(super) fn is_behind(
        self,
        known: &Migrator,
        migrate: Migrate,
    ) -> Result<Option<Migrated>, LedgerError> {
        let to = known.iter().map(|migration| migration.version).max().unwrap_or_default();
        match (self, migrate) {
            (Schema::Current, _) => Ok(None),
            (Schema::Empty, _) => Ok(Some(Migrated { from: 0, to })),
            (Schema::Older { has, .. }, Migrate::Auto) => Ok(Some(Migrated { from: has, to })),
            (Schema::Older { has, needs }, Migrate::Explicit) => {
                Err(LedgerError::Migration(format!(
                    "the schema is older than this binary (migration {has} of {needs}); run \
                     `numerator migrate` once, then start again"
                )))
            }
        }
    }
}
