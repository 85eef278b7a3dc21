//! Brings the schema of a PostgreSQL ledger up to date, next to running processes.
//!
//! One migrator works at a time, by a lock that is tried and never waited for: a wait within a
//! statement would keep an index from being built concurrently. A migration waits for a lock only
//! for a moment, since all others wait behind it; one that got none is undone and tried again.
//! Finished steps stay finished, and the next try continues after them.

use std::time::Duration;

use sqlx::Connection as _;
use sqlx::migrate::{Migrate as _, Migrator};
use sqlx::postgres::PgConnection;

use crate::call_timeout::SEARCH_TIME;
use crate::schema::{Migrated, Schema};
use crate::{LedgerError, LedgerSettings};

/// The roles and their rights, one statement.
const ROLES: &str = include_str!("../../../../deploy/postgres/roles.sql");

/// The table of the library's notes about migrations.
const TABLE: &str = "_sqlx_migrations";

/// Wait between two tries.
const DELAY: Duration = Duration::from_secs(1);

/// How long an index that is built concurrently waits for a transaction of others: as long as the
/// longest of the program. Nothing waits behind it, and a try that ends costs all that it built.
const INDEX_WAIT: Duration = SEARCH_TIME;

/// The lock of the migrator of this schema.
macro_rules! lock {
    ($function:literal) => {
        concat!(
            "select ",
            $function,
            "(hashtextextended('numerator migrate ' || coalesce(current_schema(), ''), 0))"
        )
    };
}

/// Runs the missing migrations, where the settings allow it.
///
/// # Errors
/// `Migration` for a schema that is newer, or older and not to be changed; `LockTimeout` where
/// another migrator is at work, or others hold a table, through all tries.
pub(super) async fn run(
    connection: &mut PgConnection,
    settings: LedgerSettings,
) -> Result<Option<Migrated>, LedgerError> {
    run_all(connection, known(), settings).await
}

/// The migrations of this program.
fn known() -> Migrator {
    sqlx_macros::migrate!("../../migrations/postgres")
}

/// The state of a ledger's schema; changes nothing.
///
/// # Errors
/// `Migration` for a schema that is newer than this program.
pub(super) async fn standing(connection: &mut PgConnection) -> Result<Schema, LedgerError> {
    schema(connection, &known()).await
}

async fn run_all(
    connection: &mut PgConnection,
    mut migrations: Migrator,
    settings: LedgerSettings,
) -> Result<Option<Migrated>, LedgerError> {
    migrations.set_locking(false);
    if schema(connection, &migrations).await? == Schema::Current {
        return Ok(None);
    }
    sqlx::query("set statement_timeout = 0").execute(&mut *connection).await?;
    let mut tries = 1;
    loop {
        match attempt(connection, &migrations, settings).await {
            // A connection that is lost stays lost: it is no wait for others.
            Err(error @ (LedgerError::LockTimeout { .. } | LedgerError::Conflict(_)))
                if tries < settings.migrate_attempts =>
            {
                tracing::info!(%error, tries, "the schema is not up to date yet; trying again");
                tries += 1;
                tokio::time::sleep(DELAY).await;
            }
            done => return done,
        }
    }
}

/// One try.
async fn attempt(
    connection: &mut PgConnection,
    migrations: &Migrator,
    settings: LedgerSettings,
) -> Result<Option<Migrated>, LedgerError> {
    let is_alone: bool =
        sqlx::query_scalar(lock!("pg_try_advisory_lock")).fetch_one(&mut *connection).await?;
    if !is_alone {
        let cause = "another process migrates this ledger".to_owned();
        return Err(LedgerError::LockTimeout { cause, counter: None });
    }
    let done = migrate(connection, migrations, settings).await;
    // A connection that is lost has let go.
    let unlock = sqlx::query(lock!("pg_advisory_unlock")).execute(connection).await;
    let done = done?;
    unlock?;
    Ok(done)
}

/// Runs the missing migrations; no other process does.
async fn migrate(
    connection: &mut PgConnection,
    migrations: &Migrator,
    settings: LedgerSettings,
) -> Result<Option<Migrated>, LedgerError> {
    // A schema that looked older may have been one that was just being set up.
    let schema = schema(connection, migrations).await?;
    let Some(migrated) = schema.is_behind(migrations, settings.migrate)? else { return Ok(None) };
    drop_broken_indexes(connection, migrations).await?;
    let indexes = migrations.iter().filter(|migration| migration.no_tx);
    let indexes: Vec<i64> = indexes.map(|migration| migration.version).collect();
    for index in indexes {
        wait_for_locks(connection, settings.migrate_lock_timeout).await?;
        migrations.run_direct(Some(index - 1), connection, false).await?;
        wait_for_locks(connection, INDEX_WAIT).await?;
        migrations.run_direct(Some(index), connection, false).await?;
    }
    wait_for_locks(connection, settings.migrate_lock_timeout).await?;
    migrations.run_direct(None, connection, false).await?;
    Ok(Some(migrated))
}

/// All rights on what is in the schema, and on the schema.
const RIGHTS: &str = "with ledger as (select oid, nspacl from pg_namespace
    where nspname = current_schema())
    select string_agg(granted, ',' order by granted) from (
    select concat(c.oid, ' ', acl) as granted from ledger
    join pg_class c on relnamespace = ledger.oid cross join unnest(relacl) as acl
    union all select concat(c.oid, '.', attnum, ' ', acl) from ledger
    join pg_class c on relnamespace = ledger.oid join pg_attribute on attrelid = c.oid
    cross join unnest(attacl) as acl
    union all select concat(p.oid, ' ', acl) from ledger
    join pg_proc p on pronamespace = ledger.oid cross join unnest(proacl) as acl
    union all select concat('schema ', acl) from ledger cross join unnest(nspacl) as acl) as it";

/// Gives the roles of a ledger their rights to the objects of the migrations, and takes all others;
/// whether that changed any. No migration runs meanwhile.
///
/// # Errors
/// `Fault` where the session does not own the tables, or there are no such roles.
pub(super) async fn grant_roles(connection: &mut PgConnection) -> Result<bool, LedgerError> {
    let mut tx = connection.begin().await?;
    sqlx::query(lock!("pg_advisory_xact_lock")).execute(&mut *tx).await?;
    let before: Option<String> = sqlx::query_scalar(RIGHTS).fetch_one(&mut *tx).await?;
    sqlx::raw_sql(ROLES).execute(&mut *tx).await?;
    let after: Option<String> = sqlx::query_scalar(RIGHTS).fetch_one(&mut *tx).await?;
    tx.commit().await?;
    Ok(before != after)
}

/// Has later statements wait so long for one lock.
async fn wait_for_locks(connection: &mut PgConnection, limit: Duration) -> Result<(), LedgerError> {
    let set = format!("set lock_timeout = {}", limit.as_millis());
    sqlx::query(sqlx::AssertSqlSafe(set)).execute(connection).await?;
    Ok(())
}

/// Drops the remains of an index that was not built to its end: the next try would take them for
/// the index.
async fn drop_broken_indexes(
    connection: &mut PgConnection,
    migrations: &Migrator,
) -> Result<(), LedgerError> {
    let broken: Vec<String> = sqlx::query_scalar(
        "select c.relname::text from pg_index i join pg_class c on c.oid = i.indexrelid
         join pg_namespace n on n.oid = c.relnamespace
         where not i.indisvalid and n.nspname = current_schema()",
    )
    .fetch_all(&mut *connection)
    .await?;
    let is_ours = |index: &String| {
        let mut concurrent = migrations.iter().filter(|migration| migration.no_tx);
        concurrent.any(|migration| migration.sql.as_str().contains(index.as_str()))
    };
    let ours: Vec<String> = broken.into_iter().filter(is_ours).collect();
    for index in ours {
        let drop = format!("drop index concurrently if exists \"{index}\"");
        sqlx::query(sqlx::AssertSqlSafe(drop)).execute(&mut *connection).await?;
    }
    Ok(())
}

async fn schema(
    connection: &mut PgConnection,
    migrations: &Migrator,
) -> Result<Schema, LedgerError> {
    let is_there: bool = sqlx::query_scalar(
        "select to_regclass(quote_ident(current_schema()) || '._sqlx_migrations') is not null",
    )
    .fetch_one(&mut *connection)
    .await?;
    let applied = match is_there {
        true => connection.list_applied_migrations(TABLE).await?,
        false => Vec::new(),
    };
    Schema::of(migrations, &applied)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::time::Instant;

    use sqlx::migrate::{Migration, MigrationType};
    use sqlx::{AssertSqlSafe, SqlStr};
    use testkit::postgres::Postgres;

    use super::*;

    const HASTY: LedgerSettings = LedgerSettings {
        connections_max: 1,
        lock_timeout: Duration::from_secs(10),
        call_limit: Duration::from_secs(15),
        migrate: crate::Migrate::Auto,
        migrate_lock_timeout: Duration::from_millis(1),
        migrate_attempts: 1,
        mac_key: None,
    };

    /// A table, and the next statement in its own migration.
    fn migrations(next: &'static str) -> Migrator {
        let one = |version, sql: &'static str| {
            let no_tx = sql.starts_with("-- no-transaction");
            let sql = SqlStr::from_static(sql);
            Migration::new(version, "test".into(), MigrationType::Simple, sql, no_tx)
        };
        let table = one(1, "create table line (value bigint)");
        Migrator { migrations: Cow::Owned(vec![table, one(2, next)]), ..Migrator::DEFAULT }
    }

    /// An index of it.
    const INDEX: &str =
        "-- no-transaction\ncreate index concurrently if not exists line_value on line (value)";

    /// Makes only the table.
    async fn make_table(connection: &mut PgConnection) {
        let mut table = migrations(INDEX);
        table.migrations.to_mut().pop();
        run_all(connection, table, HASTY).await.expect("table");
    }

    /// The process of the server that migrates, once it waits.
    async fn waiting(url: &str) -> i32 {
        let mut other = PgConnection::connect(url).await.expect("connection");
        let query = "select pid from pg_stat_activity where wait_event_type = 'Lock'
                     and query like '%line_value%'";
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let found = sqlx::query_scalar(query).fetch_optional(&mut other).await;
            if let Some(builder) = found.expect("activity") {
                return builder;
            }
            assert!(Instant::now() < deadline, "nobody waits");
        }
    }

    /// Goal: while an index is built, others write; an index whose building broke does not count as
    /// complete. Method: a transaction that the building waits for, a concurrent write, and an end
    /// by force.
    #[tokio::test]
    async fn an_index_is_built_beside_writers_and_one_that_broke_is_built_anew() {
        let postgres = Postgres::start();
        let url = postgres.empty_url("indexes");
        let mut ours = PgConnection::connect(&url).await.expect("connection");
        make_table(&mut ours).await;
        let mut writer = PgConnection::connect(&url).await.expect("connection");
        let mut open = writer.begin().await.expect("transaction");
        let insert = "insert into line (value) values (1)";
        sqlx::query(insert).execute(&mut *open).await.expect("row");
        let building = run_all(&mut ours, migrations(INDEX), HASTY);
        let (result, ()) = tokio::join!(building, async {
            let builder = waiting(&url).await;
            let mut other = PgConnection::connect(&url).await.expect("connection");
            sqlx::query("set lock_timeout = '50ms'").execute(&mut other).await.expect("setting");
            sqlx::query(insert).execute(&mut other).await.expect("a row beside the building");
            let cancel = AssertSqlSafe(format!("select pg_cancel_backend({builder})"));
            sqlx::query(cancel).execute(&mut other).await.expect("cancelled");
        });
        let error = result.expect_err("no index");
        assert!(matches!(error, LedgerError::LockTimeout { .. }), "{error}");
        assert!(error.to_string().contains("user request"), "it gave up by itself: {error}");
        open.commit().await.expect("commit");
        let is_whole = || {
            let index = "indexrelid = to_regclass('indexes.line_value')";
            postgres.sql(&format!("select indisvalid from pg_index where {index}"))
        };
        assert_eq!(is_whole(), "f", "the building has left something behind");
        run_all(&mut ours, migrations(INDEX), HASTY).await.expect("built");
        assert_eq!(is_whole(), "t");
    }

    /// Goal: a migration that waits for a table blocks others no longer than its own short wait.
    /// Method: a session that reads the table, and a statement that comes after the migration.
    #[tokio::test]
    async fn a_migration_waits_for_a_lock_in_short_tries() {
        const COLUMN: &str = "alter table line add column line_value bigint";
        let postgres = Postgres::start();
        let url = postgres.empty_url("locks");
        let mut ours = PgConnection::connect(&url).await.expect("connection");
        make_table(&mut ours).await;
        let mut other = PgConnection::connect(&url).await.expect("connection");
        let mut reader = other.begin().await.expect("transaction");
        let lock = "lock table line in access share mode";
        sqlx::query(lock).execute(&mut *reader).await.expect("lock");
        let hasty = LedgerSettings { migrate_lock_timeout: Duration::from_millis(100), ..HASTY };
        let error = run_all(&mut ours, migrations(COLUMN), hasty).await.expect_err("no lock");
        assert!(matches!(error, LedgerError::LockTimeout { .. }), "{error}");
        let patient = LedgerSettings { migrate_attempts: 60, ..hasty };
        let migrating = run_all(&mut ours, migrations(COLUMN), patient);
        let (migrated, ()) = tokio::join!(migrating, async {
            for _ in 0..2 {
                waiting(&url).await;
                let mut behind = PgConnection::connect(&url).await.expect("connection");
                let begun = Instant::now();
                let read = sqlx::query("select count(value) from line").execute(&mut behind).await;
                read.expect("a row behind the migration");
                let waited = begun.elapsed();
                assert!(waited < Duration::from_secs(2), "held up for {waited:?}");
            }
            reader.commit().await.expect("commit");
        });
        migrated.expect("migrated");
    }
}
