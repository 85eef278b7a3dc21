//! The migrations that a ledger has, and their meaning for this program. Knows no engine.

use sqlx::migrate::{AppliedMigration, MigrateError, Migrator};

use super::{LedgerError, Migrate};

/// The last migration of the baseline, which makes the schema of 0.1.0; later ones change it.
const BASELINE: i64 = 8;

/// The newest migration of this program.
pub(crate) const NEWEST: i32 = 15;

/// The migration that made reservations. A process whose program does not know it takes reserved
/// values for lost.
pub(crate) const RESERVATIONS: i32 = 10;

/// The migration that made numbers by hand. A process whose program does not know it cannot read
/// their rows.
pub(crate) const REGISTRATIONS: i32 = 12;

/// The migration that made numbers as written. A process whose program does not know it cannot read
/// their rows, and saves series that read their texts.
pub(crate) const AS_WRITTEN: i32 = 13;

/// The migration that made assignments. A process whose program does not know it gives a document a
/// second number beside one of a range.
pub(crate) const ASSIGNMENTS: i32 = 14;

/// The migration that made blocks. A process whose program does not know it would return every
/// value of a block that it cancels.
pub(crate) const BLOCKS: i32 = 15;

/// The effect of migrations on a ledger: its newest migration before, 0 of an empty one, and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// Before.
    pub from: i64,
    /// After.
    pub to: i64,
}

/// How a ledger's schema compares to this program's.
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
    /// The state of a ledger that has these migrations.
    ///
    /// # Errors
    /// `Migration` where it has one that this program does not know, or knows otherwise. A ledger
    /// of another baseline has both.
    pub(super) fn of(known: &Migrator, applied: &[AppliedMigration]) -> Result<Self, LedgerError> {
        let known_as = |version| known.iter().find(|migration| migration.version == version);
        let is_other = |one: &&AppliedMigration| {
            known_as(one.version).is_some_and(|migration| migration.checksum != one.checksum)
        };
        match applied.iter().find(is_other) {
            Some(one) if one.version <= BASELINE => return Err(of_another_baseline(one.version)),
            Some(one) => return Err(MigrateError::VersionMismatch(one.version).into()),
            None => {}
        }
        if let Some(one) = applied.iter().find(|one| known_as(one.version).is_none()) {
            return Err(MigrateError::VersionMissing(one.version).into());
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

    /// The task of migrations; none where there are none to be run.
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

/// The refusal of a ledger whose schema does not begin with this program's.
fn of_another_baseline(version: i64) -> LedgerError {
    LedgerError::Migration(format!(
        "the ledger was made before version 0.1.0 (its migration {version} is not the one of this \
         program), and this version cannot go on with it; set database.url to an empty database, \
         or run the version that made the ledger"
    ))
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use sqlx::SqlStr;
    use sqlx::migrate::{Migration, MigrationType};

    use super::*;

    /// The beginnings of the checksums of all migrations, by engine. A migration is never edited: a
    /// change of the schema is a new migration, and its line comes last.
    const CHECKSUMS: [&[&str]; 2] = [
        &[
            "95e15b39aa40c2ab",
            "2cf3c60e1479c9af",
            "e4582fbff5a0f149",
            "18093f48e8d3f04f",
            "b3f138149921478d",
            "917cae86099eb2d9",
            "991b42e7d9c57a22",
            "b72caf24a2f7a5f8",
            "cd4ea76705ef1689",
            "93ef3e2c1b3503a6",
            "5f3542df3830d0c1",
            "0439d166fb54ae9f",
            "0342c577415d4ab0",
            "830d2452b554a54a",
            "e837d1722198f30f",
        ],
        &[
            "7235be131e645b40",
            "eeef534fb5589b99",
            "2c61b67740b8b147",
            "ac7b0fececfad1d3",
            "0f9cd6febb35b061",
            "6764838ab0e958c5",
            "b24bd69c3f316f13",
            "9b979d4544b1e7fb",
            "416f697e60176786",
            "b9068ec47daf55c7",
            "aa9d7ffd1e996166",
            "c8bbc5f1bf5ad7cd",
            "aa53568fd9073073",
            "79277d402ccc93d5",
            "22cca1f982987ea4",
        ],
    ];

    #[test]
    fn no_migration_was_edited() {
        let all = [
            sqlx_macros::migrate!("../../migrations/postgres"),
            sqlx_macros::migrate!("../../migrations/sqlite"),
        ];
        let seen = all.map(|migrator| {
            let sums = migrator.iter().map(|one| numbering::hexadecimal(&one.checksum[..8]));
            sums.collect::<Vec<String>>()
        });
        assert_eq!(seen.each_ref().map(Vec::as_slice), CHECKSUMS);
        assert_eq!(seen.map(|sums| i32::try_from(sums.len()).unwrap()), [NEWEST, NEWEST]);
    }

    /// The migrations of a program that has so many.
    fn program(count: i64) -> Migrator {
        let one = |version| {
            let sql = SqlStr::from_static("select 1");
            Migration::new(version, "test".into(), MigrationType::Simple, sql, false)
        };
        Migrator { migrations: (1..=count).map(one).collect(), ..Migrator::DEFAULT }
    }

    /// The migrations of a ledger that such a program migrated.
    fn ledger(count: i64) -> Vec<AppliedMigration> {
        let applied = |migration: &Migration| AppliedMigration {
            version: migration.version,
            checksum: migration.checksum.clone(),
        };
        program(count).iter().map(applied).collect()
    }

    #[test]
    fn a_ledger_is_empty_older_current_or_newer_by_a_next_migration() {
        let next = BASELINE + 1;
        assert_eq!(Schema::of(&program(next), &[]).ok(), Some(Schema::Empty));
        let older = Schema::Older { has: BASELINE, needs: next };
        assert_eq!(Schema::of(&program(next), &ledger(BASELINE)).ok(), Some(older));
        assert_eq!(Schema::of(&program(next), &ledger(next)).ok(), Some(Schema::Current));
        let newer = Schema::of(&program(BASELINE), &ledger(next)).expect_err("newer").to_string();
        assert!(newer.contains("migration 9") && newer.contains("newer"), "{newer}");
    }

    #[test]
    fn a_ledger_of_another_baseline_is_no_newer_one_and_no_edited_one() {
        let with_other = |version: i64| {
            let mut applied = ledger(BASELINE + 2);
            let index = usize::try_from(version - 1).expect("a version");
            applied[index].checksum = Cow::Borrowed(b"other");
            let known = program(version.max(BASELINE));
            Schema::of(&known, &applied).expect_err("refused").to_string()
        };
        for version in [1, BASELINE] {
            let said = with_other(version);
            assert!(said.contains("before version 0.1.0"), "{said}");
        }
        let edited = with_other(BASELINE + 1);
        assert!(!edited.contains("0.1.0") && edited.contains('9'), "{edited}");
    }
}
